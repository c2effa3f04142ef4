"""`onrecord record serve`: the recorder as a process.

Source: running.md 1, 2, 12.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from onrecord.base.canonical import compact
from onrecord.base.configuration import Configuration
from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import MalformedError, StorageError, Where
from onrecord.base.findings import Finding
from onrecord.base.keys import ed25519_public_bytes, require_distinct, signer_from_uri
from onrecord.base.processes import announce_progress, announce_ready, harden, settle_memory
from onrecord.base.sockets import check_private_path
from onrecord.record.credentials import replace as replace_credentials
from onrecord.record.ledger.journal import Journal
from onrecord.record.recorder.directory import Directory
from onrecord.record.recorder.filtering import ContentFilter
from onrecord.record.recorder.hosts import Hosts, ProcessHosts
from onrecord.record.recorder.recording import Recording
from onrecord.record.recorder.sealing import Sealer
from onrecord.record.recorder.service import Recorder
from onrecord.record.recorder.settings import RecorderSettings
from onrecord.record.recorder.signing import FileSigning, Signing, SigningKey
from onrecord.record.vcon.canonical_text import canonical_text

NICENESS: Final = 5
"""The recorder gives way: what it writes is in a spool already, while agents wait for authority and guards."""


def settings_of(configuration: Configuration) -> RecorderSettings:
    """Return the recorder's settings from a configuration.

    Raises `ConfigurationError` for a group that does not exist.
    """
    is_system = configuration.mode == "system"
    recorder = configuration.recorder
    return RecorderSettings(
        socket=configuration.record_socket(),
        records=configuration.paths.records,
        own_uid=None if is_system else os.geteuid(),
        record_gid=configuration.record_gid,
        spools=None if is_system else configuration.paths.state / "srv",
        domain=recorder.domain,
        idle_seconds=recorder.idle_seconds,
        max_age_seconds=recorder.max_age_seconds,
        keep_bodies=recorder.keep_bodies,
        max_content_bytes=recorder.max_content_bytes,
    )


def make_recorder(
    settings: RecorderSettings,
    *,
    journal: Journal,
    directory: Directory,
    signing: Signing,
    hosts: Hosts | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> Recorder:
    """Return a recorder over an open journal, with our own check, signature form and credential filter."""
    recording = Recording(
        settings,
        directory=directory,
        journal=journal,
        content_filter=ContentFilter(replace_credentials, max_content_bytes=settings.max_content_bytes),
        hosts=hosts if hosts is not None else ProcessHosts(),
        clock=clock,
    )
    sealer = Sealer(
        journal,
        settings=settings,
        directory=directory,
        signing=signing,
        serialize=serialize,
        check=own_check,
        sign=sign,
        clock=clock,
    )
    return Recorder(
        settings,
        recording=recording,
        sealer=sealer,
        signing=signing,
        directory=directory,
        journal=journal,
        clock=clock,
    )


def serialize(document: dict[str, Any]) -> bytes:
    """Return the canonical bytes of a vCon, or compact ones where there is no canonical form (record.md D-25)."""
    try:
        return canonical_text(document)
    except MalformedError:
        return compact(document)


def own_check(data: bytes) -> Sequence[Finding]:
    """Check a vCon that is about to be signed."""
    from onrecord.record.checks.checker import check

    return check(data).findings


def sign(data: bytes, **how: Any) -> bytes:
    """Return the signed form, style C."""
    from onrecord.record.forms import sign as sign_form

    return sign_form(data, **how)


def run_recorder(configuration: Configuration, directory: Directory, *, ready_fd: int | None = None) -> None:
    """Run the recorder until SIGTERM or SIGINT.

    Raises `UsageError` with code "runs-as-root" or "already-running", `ConfigurationError` for paths that others can
    change, `KeyAccessError` for the journal key, `LogError` if the journal is not what it was.
    """
    harden(parent_pid=os.getppid())
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    settings = settings_of(configuration)
    _check_paths(configuration, settings)
    journal_signer = signer_from_uri(configuration.keys.recorder_journal, purpose="recorder_journal")
    ed25519_public_bytes(journal_signer)
    signing = FileSigning(configuration.keys.record, configuration.keys.record_chain)
    key = signing.now()
    if isinstance(key, SigningKey):
        require_distinct({"recorder_journal": journal_signer, "record": key.signer})
    with Journal.open(
        configuration.recorder_state,
        signer=journal_signer,
        name=f"{socket.gethostname() or 'localhost'}/recorder",
        marks=configuration.marks("recorder"),
        randomness=RandomPool(),
    ) as journal:
        recorder = make_recorder(settings, journal=journal, directory=directory, signing=signing)
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(recorder, ready_fd))


class RandomPool:
    """Salts from the kernel, fetched many at a time: a call for each body would give the interpreter lock away.

    No byte is handed out twice, whatever thread asks.
    """

    def __init__(self, *, size_bytes: int = 8192) -> None:
        self._size = size_bytes
        self._pool = b""
        self._at = 0
        self._lock = threading.Lock()

    def __call__(self, count: int) -> bytes:
        """Return `count` fresh random bytes."""
        with self._lock:
            if self._at + count > len(self._pool):
                self._pool, self._at = os.urandom(max(self._size, count)), 0
            begin, self._at = self._at, self._at + count
            return self._pool[begin : self._at]


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(recorder: Recorder, ready_fd: int | None) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    await recorder.start(progress=partial(announce_progress, ready_fd))
    settle_memory()
    try:
        if announce_ready(ready_fd):
            await ended.wait()
    finally:
        await recorder.stop()


def _check_paths(configuration: Configuration, settings: RecorderSettings) -> None:
    """Make the directories of user mode, and refuse those that somebody else could change."""
    own = os.geteuid()
    state, marks = configuration.recorder_state, configuration.marks("recorder")
    if not settings.is_system_mode:
        for path in (configuration.paths.runtime, state, marks, settings.records):
            _make_private(path)
    _check_directory(state, own, 0o077)
    _check_directory(marks, own, 0o077)
    _check_directory(settings.socket.parent, own, 0o022)
    _check_directory(settings.records, own, 0o027 if settings.is_system_mode else 0o077)


def _make_private(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make the directory ({error.strerror})", code="directory-unusable", where=Where(str(path))
        ) from error


def _check_directory(path: Path, owner: int, forbidden: int) -> None:
    check_private_path(path, owners={owner}, mode_forbidden=forbidden)

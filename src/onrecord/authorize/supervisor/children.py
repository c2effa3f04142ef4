"""Starting authority, recorder and guards as processes of their own principals.

Used by `onrecord up`, and by the demonstration, which starts the same children itself.

Source: running.md 1, 1.1, 2.3.
"""

from __future__ import annotations

import os
import pwd
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from onrecord.authorize.supervisor.restarts import START_TIMEOUT_S, Role
from onrecord.base.configuration import user_gid
from onrecord.base.errors import StorageError, UsageError
from onrecord.base.processes import Principal, spawn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onrecord.base.configuration import Configuration

_KEPT: Final = ("PATH", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "ONRECORD_DEBUG", "XDG_RUNTIME_DIR")
"""Variables that a child takes over. Everything else stays behind: it may hold the operator's secrets."""

_DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"

READY: Final = b"ready\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """One child to start: its role, its name in messages, its command line and its principal."""

    role: Role
    name: str
    argv: tuple[str, ...]
    principal: Principal | None
    env: Mapping[str, str]


def recorder_child(configuration: Configuration) -> Child:
    """Return the recorder as `onrecord up` starts it."""
    principal = None
    if configuration.mode == "system":
        principal = _principal(
            configuration.recorder_uid, configuration.record_gid, configuration.readers_gid
        )
    return _child(configuration, "recorder", "recorder", ("record", "serve"), principal=principal)


def authority_child(configuration: Configuration) -> Child:
    """Return the authority as `onrecord up` starts it."""
    principal = None
    if configuration.mode == "system":
        principal = _principal(
            configuration.authority_uid,
            configuration.call_gid,
            configuration.approval_gid,
            configuration.control_gid,
            configuration.record_gid,
        )
    return _child(configuration, "authority", "authority", ("authority", "serve"), principal=principal)


def guard_child(configuration: Configuration, server: str) -> Child:
    """Return the listening guard of `server`; system mode only."""
    entry = configuration.server(server)
    principal = None
    if configuration.mode == "system":
        principal = _principal(
            configuration.server_uid(server), configuration.call_gid, configuration.record_gid
        )
    passed = {name: os.environ[name] for name in entry.env_pass if name in os.environ}
    return _child(
        configuration,
        "guard",
        f"guard {server}",
        ("guard", server, "--listen"),
        principal=principal,
        passed=passed,
    )


def all_children(configuration: Configuration) -> tuple[Child, ...]:
    """Return all children in the order of their start. In user mode the connectors start the guards."""
    guards = configuration.servers if configuration.mode == "system" else ()
    return (
        recorder_child(configuration),
        authority_child(configuration),
        *(guard_child(configuration, server) for server in guards),
    )


def _principal(uid: int, *groups: int | None) -> Principal:
    gid = user_gid(uid)
    return Principal(uid, gid, tuple(sorted({one for one in groups if one is not None and one != gid})))


def _child(
    configuration: Configuration,
    role: Role,
    name: str,
    arguments: tuple[str, ...],
    *,
    principal: Principal | None,
    passed: Mapping[str, str] | None = None,
) -> Child:
    # -P keeps the current directory off the module path; -I, in system mode, the environment and user packages too.
    isolated = "-I" if configuration.mode == "system" else "-P"
    argv = (sys.executable, isolated, "-m", "onrecord", *arguments, "--config", str(configuration.file))
    uid = os.getuid() if principal is None else principal.uid
    return Child(
        role=role, name=name, argv=argv, principal=principal, env=child_environment(uid) | dict(passed or {})
    )


def child_environment(uid: int) -> dict[str, str]:
    """Return the environment of a child that runs as `uid`."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    kept |= {name: value for name, value in os.environ.items() if name.startswith("LC_")}
    if uid != os.getuid():
        kept.pop("XDG_RUNTIME_DIR", None)
        kept.pop("TMPDIR", None)
    try:
        account = pwd.getpwuid(uid)
        known = {"HOME": account.pw_dir, "USER": account.pw_name}
    except KeyError:
        known = {"HOME": "/", "USER": str(uid)}
    if uid == os.getuid() and os.environ.get("HOME"):
        known["HOME"] = os.environ["HOME"]
    return {"PATH": _DEFAULT_PATH} | kept | known


def start_child(
    child: Child, *, stderr: int | IO[bytes] | None = None
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a child; returns the process and the descriptor from which `READY` can be read.

    Its standard output goes where standard error goes, so that ours stays clean.

    Raises `ConfigurationError` with code "cannot-start".
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    try:
        process = spawn(
            [*child.argv, "--ready-fd", str(writer)],
            principal=child.principal,
            env=child.env,
            stdout=2 if stderr is None else stderr,
            stderr=stderr,
            pass_fds=(writer,),
            # Whose directory `up` was started in is not known, and a core dump or an empty part of PATH would mean it.
            cwd=None if child.principal is None else Path("/"),
            new_group=True,
        )
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return process, reader


def start_and_wait(
    child: Child, *, timeout_s: float = START_TIMEOUT_S, stderr: int | IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start a child and return when it is ready. Each sign of its progress gives it `timeout_s` anew.

    Raises `UsageError` with code "child-configuration" (it ended with status 2) or `StorageError` with code
    "child-not-ready".
    """
    process, reader = start_child(child, stderr=stderr)
    end = time.monotonic() + timeout_s
    try:
        said = b""
        while not said.endswith(READY):
            ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
            part = os.read(reader, len(READY)) if ready else b""
            if not part:
                break
            said = (said + part)[-len(READY) :]
            end = time.monotonic() + timeout_s
        if said.endswith(READY):
            return process
    finally:
        os.close(reader)
    try:
        # Its end may follow a closed descriptor by a moment; one that stays without a word is ended.
        status = process.wait(timeout=max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    message = f"{child.name} did not get ready (status {status})"
    if status == 2:
        raise UsageError(message, code="child-configuration", hint="its own message stands above")
    raise StorageError(message, code="child-not-ready", hint="its own message stands above")


def start_recorder(
    configuration: Configuration, *, stderr: int | IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start the recorder and wait until it is ready; errors as `start_and_wait`."""
    return start_and_wait(recorder_child(configuration), stderr=stderr)


def start_authority(
    configuration: Configuration, *, stderr: int | IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start the authority and wait until it is ready; errors as `start_and_wait`."""
    return start_and_wait(authority_child(configuration), stderr=stderr)


def start_guard(
    configuration: Configuration, server: str, *, stderr: int | IO[bytes] | None = None
) -> subprocess.Popen[bytes]:
    """Start the listening guard of `server` and wait until it is ready; errors as `start_and_wait`."""
    return start_and_wait(guard_child(configuration, server), stderr=stderr)

"""Verification of journals: a report with one entry per axis, offline, from the file, outside checkpoints and keys.

Source: transparency.md 4.7, 4.8, 4.11.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import orjson

from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.base.reports import Report
from onrecord.record.ledger import _rfc9162
from onrecord.record.ledger._c2sp_note import MAX_NOTE_BYTES, CheckpointText, Note
from onrecord.record.ledger._file_audit import FileAudit, Log
from onrecord.record.ledger.audit import Audit
from onrecord.record.ledger.checkpoints import Checkpoint, TrustedKeys

REQUIRED: Final = frozenset(
    {"structure", "records", "tree", "checkpoint-signatures", "floor", "history", "order"}
)
"""Axes that every journal has; sessions and bodies count when there are any."""

NEVER_CHECKED: Final = ("completeness", "content-truth", "time-evidence", "witnesses")
"""What no journal can show (transparency.md 4.1), and what comes later."""


def verify_journal(
    files: Sequence[Path], *, checkpoints: Sequence[bytes | str] = (), trusted: TrustedKeys | None = None
) -> Report:
    """Verify journal files against checkpoints that were kept outside of them.

    Each file needs an outside checkpoint of its own, else its end is not provable. `trusted` are the public keys
    of the journals by key id; None means that there is no trust file. Nothing is changed.

    Raises `UsageError` with code "file-missing" or "no-file".
    """
    if not files:
        raise UsageError("name at least one journal file", code="no-file")
    for file in files:
        if not file.is_file():
            raise UsageError(
                "there is no such file",
                code="file-missing",
                where=Where(str(file)),
                hint="name the files of a journal, journal-N.db in the state directory of its writer",
            )
    audit = Audit(trusted)
    wanted = frozenset(size for note in checkpoints if (size := _claimed_size(note)) is not None)
    logs: list[tuple[str | None, Log]] = []
    for file in files:
        log = FileAudit(audit, file).run(wanted)
        if log is not None:
            logs.append((str(file), log))
        else:
            audit.tallies["floor"].unknown += 1
    _check_floor(audit, logs, checkpoints)
    return _report(audit, REQUIRED)


def verify_log(
    leaves: Iterable[bytes], *, origin: str, checkpoints: Sequence[bytes | str], trusted: TrustedKeys | None
) -> Report:
    """Verify bare records, for instance exported ones, against checkpoints: signatures, floor and numbers only."""
    audit = Audit(trusted)
    wanted = {_claimed_size(note) for note in checkpoints}
    frontier: list[bytes] = []
    roots = {0: _rfc9162.EMPTY_ROOT}
    size = 0
    for leaf in leaves:
        _check_number(audit, leaf, size)
        _rfc9162.append(frontier, size=size, leaf=_rfc9162.leaf_hash(leaf))
        size += 1
        if size in wanted:
            roots[size] = _rfc9162.root(frontier)
    _check_floor(audit, [(None, Log(origin, size, roots))], checkpoints)
    return _report(audit, frozenset({"checkpoint-signatures", "floor", "order"}))


def _check_floor(
    audit: Audit, logs: Sequence[tuple[str | None, Log]], checkpoints: Sequence[bytes | str]
) -> None:
    """Compare every outside checkpoint with the log it is of."""
    proven: set[int] = set()
    only = logs[0][1].origin if len(logs) == 1 else None
    for number, note in enumerate(checkpoints, 1):
        pointer = f"/outside/{number}"
        checkpoint = audit.open_note(note, origin=only, pointer=pointer, file=None)
        if checkpoint is None:
            continue
        meant = [index for index, (_, log) in enumerate(logs) if log.origin == checkpoint.origin]
        if not meant:
            message = "the checkpoint is of none of these journals"
            audit.unknown("floor", "checkpoint-other-log", message, pointer=pointer, file=None)
            continue
        for index in meant:  # two files of one journal: neither may hide the other
            file, log = logs[index]
            if audit.is_of_key(checkpoint, log.key, pointer=pointer, file=file):
                proven.add(index)
                _compare(audit, checkpoint, log, pointer=pointer, file=file)
    for index, (file, _) in enumerate(logs):
        if index not in proven:
            message = (
                "no checkpoint from outside shows how many records there must be: a cut end would not be seen"
            )
            audit.unknown("floor", "end-not-provable", message, pointer="", file=file)


def _compare(audit: Audit, checkpoint: Checkpoint, log: Log, *, pointer: str, file: str | None) -> None:
    size = checkpoint.size
    if size > log.size:
        message = f"a checkpoint covers {size} records, the journal has {log.size}"
        audit.failed("floor", "log-truncated", message, pointer=pointer, file=file)
    elif log.roots.get(size) != checkpoint.root:
        message = f"the root over the first {size} records is not the one that was signed"
        audit.failed("floor", "log-rewritten", message, pointer=pointer, file=file)
    else:
        audit.verified("floor")


def _report(audit: Audit, required: frozenset[str]) -> Report:
    if audit.trusted is None:
        audit.tallies["checkpoint-signatures"].remarks.append("no trust file")
    optional = {name for name in ("sessions", "bodies") if audit.tallies[name].verified}
    not_checked = [*NEVER_CHECKED, *(() if audit.has_heartbeats else ("heartbeats",))]
    axes = {name: tally.axis() for name, tally in audit.tallies.items()}
    decisive = audit.failures or audit.doubts
    return Report(
        axes=axes,
        required=required | optional,
        not_checked=tuple(not_checked),
        findings=tuple(audit.findings),
        outcome_word=decisive[0] if decisive else None,
    )


def _claimed_size(note: bytes | str) -> int | None:
    """Return the size in a note that is not verified yet, to know which roots to keep."""
    try:
        return CheckpointText.read(Note.read(note).text).size
    except MalformedError:
        return None


def _check_number(audit: Audit, leaf: bytes, size: int) -> None:
    try:
        raw = orjson.loads(leaf)
    except ValueError:
        raw = None
    seq = raw.get("seq") if isinstance(raw, dict) else None
    if seq == size:
        audit.verified("order")
    elif isinstance(seq, int):
        message = f"record {size} says that it is record {seq}"
        audit.failed("order", "record-sequence", message, pointer=f"/record/{size}", file=None)
    else:
        message = f"record {size} has no number"
        audit.unknown("order", "record-malformed", message, pointer=f"/record/{size}", file=None)


def read_note(path: Path) -> bytes:
    """Read a file with one checkpoint, as it is; whether it is one is for the verification to say.

    Raises `UsageError` with code "checkpoint-unreadable".
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_NOTE_BYTES + 1)
    except OSError as error:
        raise UsageError(
            f"cannot read the checkpoint ({error.strerror})",
            code="checkpoint-unreadable",
            where=Where(str(path)),
        ) from error
    return data

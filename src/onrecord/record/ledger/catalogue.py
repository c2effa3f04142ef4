"""Finding codes of journal verification. Importing this module registers them."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from onrecord.base.findings import Code, Finding, register

CODES: Final = MappingProxyType(
    {
        "journal-unreadable": Code("error", "the file cannot be read", "transparency.md 4.9", fatal=True),
        "journal-malformed": Code("error", "the file is not a journal", "transparency.md 4.2", fatal=True),
        "journal-schema": Code(
            "error", "tables or triggers are not those of a journal", "transparency.md 4.2"
        ),
        "record-malformed": Code("error", "a record is not of the form", "transparency.md 4.3"),
        "record-sequence": Code(
            "error", "a record stands in another's place, or is missing", "transparency.md 4.7"
        ),
        "record-order": Code("error", "a record is older than the one before it", "transparency.md 4.8"),
        "log-truncated": Code(
            "error", "a checkpoint covers more records than there are", "transparency.md 4.7"
        ),
        "log-rewritten": Code("error", "records are not those that were signed", "transparency.md 4.7"),
        "tree-mismatch": Code("error", "a stored hash is not that of the records", "transparency.md 2.1"),
        "checkpoint-malformed": Code("error", "a note is not a checkpoint", "transparency.md 4.5"),
        "checkpoint-signature-invalid": Code(
            "error", "a known key's signature does not fit", "transparency.md 4.5"
        ),
        "checkpoint-key-unknown": Code("error", "no known key signed the checkpoint", "transparency.md 4.7"),
        "checkpoint-other-log": Code("error", "the checkpoint is of another log", "transparency.md 4.7"),
        "end-not-provable": Code(
            "warning", "no checkpoint from outside shows where the log ends", "transparency.md 4.7"
        ),
        "body-mismatch": Code("error", "a body is not the one that its record names", "transparency.md 4.10"),
        "body-missing": Code("error", "a record names a body that has no row", "transparency.md 4.10"),
        "body-unnamed": Code("error", "a body that no record names", "transparency.md 4.10"),
        "erasure-unrecorded": Code(
            "error", "a body was erased without a record of it", "transparency.md 4.10"
        ),
        "session-open": Code("warning", "a session has no close", "transparency.md 4.8"),
        "session-close": Code("warning", "a session was closed that is not open", "transparency.md 4.8"),
        "journal-not-closed": Code(
            "info", "the writer stopped without closing the journal", "transparency.md 4.8"
        ),
        "heartbeat-gap": Code(
            "warning", "heartbeats are further apart than they should", "transparency.md 4.8"
        ),
        "clock-step": Code("warning", "the wall clock was set", "transparency.md 4.8"),
        "write-gap": Code("warning", "the journal could not be written for a while", "call-proof.md 10.2"),
    }
)
"""Codes with their usual severity, meaning and source."""

register(CODES, group="journal")


def finding(code: str, message: str, *, pointer: str = "", file: str | None = None) -> Finding:
    """Return a finding of the catalogue; `pointer` is a record, a checkpoint, or empty for the whole file."""
    entry = CODES[code]
    data = None if file is None else {"file": file}
    return Finding(code, entry.severity, pointer, message, entry.source, fatal=entry.fatal, data=data)

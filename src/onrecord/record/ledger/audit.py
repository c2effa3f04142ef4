"""Axes and findings while a journal is being verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from onrecord.base.errors import LogError, MalformedError
from onrecord.base.findings import Finding
from onrecord.base.reports import Axis, Result
from onrecord.record.ledger.catalogue import finding
from onrecord.record.ledger.checkpoints import Checkpoint, TrustedKeys

MAX_FINDINGS: Final = 1000
"""Findings kept per run: a rewritten log has one for each record, and the first ones say it all."""

GROUNDS: Final[Mapping[str, str]] = {
    "structure": "tables, triggers and ids of the file",
    "records": "leaf hash of each record against the stored one",
    "tree": "hashes above the leaves, recomputed from the records",
    "checkpoint-signatures": "keys of the trust file",
    "floor": "checkpoints from outside",
    "history": "roots at the sizes of the file's own checkpoints",
    "order": "record numbers and the boot clock",
    "sessions": "session.open and session.close",
    "bodies": "salted digests in the records",
    "time-evidence": "there is none in this version",
    "witnesses": "there are none in this version",
}
"""The axes of transparency.md 4.11 in their order, and what vouches for each."""


@dataclass
class Tally:
    """One axis while it is being looked at: what held, what did not, what could not be told."""

    grounds: str
    verified: int = 0
    failed: int = 0
    unknown: int = 0
    remarks: list[str] = field(default_factory=list)

    def axis(self) -> Axis:
        """Return the axis: failed stands before not-evaluated before verified; nothing seen is not-checked."""
        result: Result = "not-checked"
        if self.failed:
            result = "failed"
        elif self.unknown:
            result = "not-evaluated"
        elif self.verified:
            result = "verified"
        return Axis(result, "; ".join((self.grounds, *self.remarks)), self.verified)


class Audit:
    """Collects axes and findings over any number of files."""

    def __init__(self, trusted: TrustedKeys | None) -> None:
        self.trusted = trusted
        self.tallies = {name: Tally(grounds) for name, grounds in GROUNDS.items()}
        self.findings: list[Finding] = []
        self.failures: list[str] = []
        self.doubts: list[str] = []
        self.has_heartbeats = False

    def verified(self, axis: str, count: int = 1) -> None:
        """Record that something on an axis holds."""
        self.tallies[axis].verified += count

    def failed(self, axis: str, code: str, message: str, *, pointer: str, file: str | None) -> None:
        """Record that something on an axis does not hold."""
        self.tallies[axis].failed += 1
        self.failures.append(code)
        self.report(code, message, pointer=pointer, file=file)

    def unknown(self, axis: str, code: str, message: str, *, pointer: str, file: str | None) -> None:
        """Record that something on an axis could not be told."""
        self.tallies[axis].unknown += 1
        self.doubts.append(code)
        self.report(code, message, pointer=pointer, file=file)

    def report(self, code: str, message: str, *, pointer: str, file: str | None) -> None:
        """Add a finding, up to the limit."""
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(finding(code, message, pointer=pointer, file=file))

    def open_note(
        self, note: str | bytes, *, origin: str | None, pointer: str, file: str | None
    ) -> Checkpoint | None:
        """Open one checkpoint and count its signature; None if it proves nothing.

        A known key's bad signature is a failure. A note by an unknown key, of another log, or that is no checkpoint
        accuses nobody: it could not be told.
        """
        axis = "checkpoint-signatures"
        if self.trusted is None:
            self.tallies[axis].unknown += 1
            return None
        try:
            checkpoint = Checkpoint.open(note, trusted=self.trusted, origin=origin)
        except MalformedError as error:
            self.unknown(axis, "checkpoint-malformed", str(error), pointer=pointer, file=file)
            return None
        except LogError as error:
            judge = self.failed if error.code == "checkpoint-signature-invalid" else self.unknown
            judge(axis, error.code, str(error), pointer=pointer, file=file)
            return None
        self.verified(axis)
        return checkpoint

    def is_of_key(self, checkpoint: Checkpoint, key: str | None, *, pointer: str, file: str | None) -> bool:
        """Say whether a checkpoint is signed by the key that its journal names, if it names one.

        A trust file has the keys of several journals, and none of them may speak for another (transparency.md 4.2).
        """
        if key is None or key in checkpoint.kids:
            return True
        message = "the checkpoint is signed by a key that is trusted, but is not the one of this journal"
        self.failed(
            "checkpoint-signatures", "checkpoint-signature-invalid", message, pointer=pointer, file=file
        )
        return False

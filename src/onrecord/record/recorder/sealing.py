"""Sealing a closed session: read its records back, correlate, assemble, check, sign, store, note the statement, erase.

Runs on a thread of its own. Everything comes from the journal, so a session can be sealed after any crash, and sealing
it twice gives the same file.

Source: running.md 9, 12.
"""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import orjson

from onrecord.base.canonical import compact
from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import MalformedError, OnrecordError, StorageError
from onrecord.base.findings import Finding
from onrecord.record.ledger.journal import Journal
from onrecord.record.ledger.records import STATEMENT, Body, Record, ranges_of
from onrecord.record.recorder import recorded
from onrecord.record.recorder.assembly import SessionFacts, assemble, date_of
from onrecord.record.recorder.carry import Carry, limited
from onrecord.record.recorder.correlation import Correlation, EventDraft, Placed, correlate
from onrecord.record.recorder.directory import Directory
from onrecord.record.recorder.hosts import label_boot
from onrecord.record.recorder.publication import Publication
from onrecord.record.recorder.recorded import Origin
from onrecord.record.recorder.session import RecordedGap, SessionKey
from onrecord.record.recorder.settings import CARRIED_CALLS, RecorderSettings
from onrecord.record.recorder.signing import NoSigningKey, Signing

READ_THROUGH: Final = 64
"""Records of other sessions that are read and skipped rather than asked around: a query costs more."""

ERASURE_REASON: Final = "sealed"

Check = Callable[[bytes], Sequence[Finding]]
"""Our own conformance check of a vCon's bytes."""

Sign = Callable[..., bytes]
"""`forms.sign`: vCon bytes, signer, chain and uuid to the signed form."""

Serialize = Callable[[dict[str, Any]], bytes]

State = Literal["open", "closing", "sealing", "signed", "unsigned", "empty", "failed"]

_log = logging.getLogger("onrecord.recorder")


@dataclass(slots=True, eq=False)
class ClosedSession:
    """A session that has ended: what the journal says of it, and what has become of its vCon.

    `ranges` are closed ranges of the numbers of its records. `statement_seq` is where its statement stands.
    """

    id: str
    key: SessionKey
    caller: str | None
    opened_us: int
    opened_ns: int
    boot: str
    open_seq: int
    previous: str | None
    cause: str
    closed: str
    vcon: str
    entries: int
    ranges: tuple[tuple[int, int], ...]
    gaps: tuple[RecordedGap, ...] = ()
    state: State = "sealing"
    file: str | None = None
    sha256: str | None = None
    check: dict[str, Any] | None = None
    statement_seq: int | None = None
    is_erased: bool = False
    has_carry: bool = False
    carry: Carry | None = field(default=None, repr=False)
    problem: str | None = None

    @property
    def is_finished(self) -> bool:
        """Say whether a new start need not know of the session at all."""
        return self.is_settled and self.is_erased and not self.has_carry

    @property
    def is_settled(self) -> bool:
        """Say whether nothing is left to do."""
        return self.state in ("signed", "empty")


class Sealer:
    """Makes the vCons of closed sessions. `seal` is called by one thread at a time."""

    def __init__(
        self,
        journal: Journal,
        *,
        settings: RecorderSettings,
        directory: Directory,
        signing: Signing,
        serialize: Serialize,
        check: Check,
        sign: Sign,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._journal = journal
        self._settings = settings
        self._directory = directory
        self._signing = signing
        self._serialize = serialize
        self._check = check
        self._sign = sign
        self._clock = clock
        self._publication = Publication(settings.records, is_shared=settings.is_system_mode)

    def seal(self, session: ClosedSession, *, carry: Carry | None) -> None:
        """Bring a session as far as possible: state "signed", "empty" or "unsigned".

        Raises `StorageError` if the journal or the disk does not allow it now; it can be called again then.
        """
        key = self._signing.now()
        if session.state == "unsigned" and isinstance(key, NoSigningKey):
            session.problem = key.code  # the file waits there already
            return
        # The close record gives the vCon its uuid: were it lost after the file is there, a second file would follow.
        self._journal.flush()
        if session.statement_seq is not None:
            session.carry = self.load_carry(session)
            self._finish(session)
            return
        placed, replaced = self._load(session)
        correlation = correlate(placed, carry=carry, scope=session.id)
        session.carry = limited(correlation.carry, count=CARRIED_CALLS)
        self._erase_refused(correlation)
        if not correlation.events:
            self._state(session, {"vcon": None, "events": 0})
            self._finish(session)
            return
        facts = SessionFacts(
            id=session.id,
            uid=session.key.uid,
            caller=session.caller or correlation.caller,
            uuid=session.vcon,
            opened_ms=_opened_ms(session, correlation),
            signed_ms=self._clock.now_ns() // 1_000_000,
            gaps=session.gaps,
            credentials_replaced=replaced,
        )
        path = self._publication.place(session.vcon, date=date_of(facts.opened_ms))
        unsigned = self._document(session, facts, correlation)
        data = self._publication.read(path)
        if data is not None:  # an attempt before this one got as far as the file
            self._publication.settle(path)
        elif isinstance(key, NoSigningKey):
            self._leave_unsigned(session, unsigned, key)
            return
        else:
            data = self._sign(unsigned, signer=key.signer, chain=key.chain, uuid=session.vcon)
            self._publication.write(path, data)
        self._state_signed(session, path_text=str(path.relative_to(self._publication.root)), data=data)
        self._finish(session)

    # Reading -------------------------------------------------------------------------------------------------

    def _load(self, session: ClosedSession) -> tuple[list[Placed], int]:
        """Return the entries of a session, without arguments and content, and how many credentials were replaced."""
        placed: list[Placed] = []
        replaced = 0
        is_foreign = label_boot(session.key.label) not in (None, session.boot.replace("-", "")[:8])
        for record in self.records(session.ranges):
            if record.type != recorded.TRACE:
                continue
            parts = {reference.part for reference in record.bodies}
            wanted = {recorded.DIGESTS} & parts
            if _kind(record) == "denied":
                wanted |= {recorded.CONTENT} & parts
            bodies = {part: self._journal.body(record.seq, part) for part in sorted(wanted)}
            entry = recorded.load(record.data, {part: raw for part, raw in bodies.items() if raw is not None})
            replaced += int(record.data.get("credentials_replaced", 0))
            if is_foreign or record.boot != session.boot:
                time_ms = entry.wall_ms
            else:
                offset_ns = entry.mono_ns - session.opened_ns
                time_ms = (session.opened_us * 1000 + offset_ns + 500_000) // 1_000_000
            placed.append(Placed(record.seq, Origin.of(record.data), entry, max(0, time_ms)))
        return placed, replaced

    def records(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Record]:
        """Yield the journal's records with these numbers, in order."""
        index = 0
        while index < len(ranges):
            first, last = ranges[index]
            wanted = [ranges[index]]
            index += 1
            while (
                index < len(ranges)
                and ranges[index][0] - last <= READ_THROUGH
                and ranges[index][1] - first < 10_000
            ):
                last = ranges[index][1]
                wanted.append(ranges[index])
                index += 1
            yield from self._read_ranges(wanted, first, last)

    def _read_ranges(self, wanted: Sequence[tuple[int, int]], first: int, last: int) -> Iterator[Record]:
        numbers = {seq for begin, end in wanted for seq in range(begin, end + 1)}
        position = first
        while position <= last:
            page = self._journal.read(position, min(10_000, last - position + 1))
            if not page:
                raise StorageError("records of a session are not in the journal", code="journal-incomplete")
            yield from (record for record in page if record.seq in numbers)
            position = page[-1].seq + 1

    def _content(self, draft: EventDraft) -> bytes | None:
        part = recorded.ARGUMENTS if draft.type == "tool-invocation" else recorded.CONTENT
        return self._journal.body(draft.seq, part)

    # Making --------------------------------------------------------------------------------------------------

    def _document(self, session: ClosedSession, facts: SessionFacts, correlation: Correlation) -> bytes:
        assembled = assemble(facts, correlation, directory=self._directory, load_content=self._content)
        data = self._serialize(assembled.document)
        session.check = self._own_check(data)
        if assembled.marked_servers:
            session.check["marked_servers"] = list(assembled.marked_servers)
        return data

    def _own_check(self, data: bytes) -> dict[str, Any]:
        """Check what we are about to sign. An error does not stop the record: it is told, never dropped."""
        try:
            findings = self._check(data)
        except OnrecordError as error:
            return {"errors": 1, "warnings": 0, "codes": {error.code: 1}}
        except Exception as error:  # our own check must not keep a record from being kept
            _log.error("the check of a vCon failed: %s", type(error).__name__)
            return {"errors": 1, "warnings": 0, "codes": {"check-failed": 1}}
        severities = Counter(finding.severity for finding in findings)
        codes = Counter(finding.code for finding in findings if finding.severity != "info")
        return {
            "errors": severities["error"],
            "warnings": severities["warning"],
            "codes": dict(sorted(codes.items())),
        }

    def _leave_unsigned(self, session: ClosedSession, data: bytes, key: NoSigningKey) -> None:
        path = self._publication.unsigned_place(session.vcon)
        self._publication.write(path, data, may_replace=True)
        session.state = "unsigned"
        session.file = str(path.relative_to(self._publication.root))
        session.problem = key.code

    def _state_signed(self, session: ClosedSession, *, path_text: str, data: bytes) -> None:
        session.sha256 = hashlib.sha256(data).hexdigest()
        session.file = path_text
        statement: dict[str, Any] = {
            "vcon": session.vcon,
            "file": path_text,
            "sha256": session.sha256,
            "bytes": len(data),
        }
        if session.check is not None:
            statement["check"] = session.check
        self._state(session, statement)

    def _state(self, session: ClosedSession, statement: dict[str, Any]) -> None:
        """Write the statement. It is written once: a journal that fails after taking it keeps it and goes on."""
        bodies = [Body(recorded.CARRY, compact(session.carry.to_json()))] if session.carry else []
        session.statement_seq = self._journal.append(STATEMENT, statement, session=session.id, bodies=bodies)
        session.has_carry = bool(session.carry)
        self._journal.flush()

    def _finish(self, session: ClosedSession) -> None:
        """Do what follows a statement that is on disk: no unsigned copy, no bodies."""
        self._publication.discard(self._publication.unsigned_place(session.vcon))
        self._erase(session)
        session.state = "signed" if session.sha256 is not None else "empty"
        session.problem = None

    def _erase_refused(self, correlation: Correlation) -> None:
        """Erase the arguments of refused calls, whatever keep_bodies says, before anything is stored (TI-124)."""
        seqs = [
            event.seq
            for event in correlation.events
            if not event.may_hold_arguments and self._journal.body(event.seq, recorded.ARGUMENTS) is not None
        ]
        if seqs:
            self._journal.erase(seqs, reason="refused")
            self._journal.flush()

    def _erase(self, session: ClosedSession) -> None:
        """Erase the bodies of a session that is sealed, unless they are kept for good."""
        if not session.is_erased and self._settings.keep_bodies == "until-closed":
            seqs = [seq for first, last in session.ranges for seq in range(first, last + 1)]
            if seqs:
                self._journal.erase(seqs, reason=f"{ERASURE_REASON} {session.id}")
                self._journal.flush()
        session.is_erased = True

    def load_carry(self, session: ClosedSession) -> Carry | None:
        """Return what a settled session left to the following one, from memory or from the journal."""
        if session.carry is not None or session.statement_seq is None:
            return session.carry
        raw = self._journal.body(session.statement_seq, recorded.CARRY) if session.has_carry else None
        try:
            return Carry() if raw is None else Carry.of(orjson.loads(raw))
        except (ValueError, KeyError, TypeError) as error:
            raise MalformedError("what a session left is not readable", code="carry-malformed") from error

    def forget_carry(self, session: ClosedSession) -> None:
        """Erase what a session left to a following one, when none is to be expected any more."""
        if session.has_carry and session.statement_seq is not None:
            self._journal.erase([session.statement_seq], reason="carry")
        session.has_carry = False


def ranges(seqs: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return numbers of records as sorted closed ranges."""
    return tuple((first, last) for first, last in ranges_of(seqs))


def _kind(record: Record) -> str | None:
    entry = record.data.get("entry")
    return entry.get("kind") if isinstance(entry, dict) else None


def _opened_ms(session: ClosedSession, correlation: Correlation) -> int:
    """Return when the session began: its opening, or its first event where that was observed earlier."""
    return min([session.opened_us // 1000, *(event.time_ms for event in correlation.events)])

"""What the journal says at start: how far each source is, which sessions are open, which are not sealed yet.

Source: running.md 7.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.errors import LogError
from onrecord.record.ledger.journal import Journal
from onrecord.record.ledger.records import ERASURE, SESSION_CLOSE, SESSION_OPEN, STATEMENT, Record
from onrecord.record.recorder import recorded
from onrecord.record.recorder.entries import Entry
from onrecord.record.recorder.recorded import Origin
from onrecord.record.recorder.sealing import ERASURE_REASON, ClosedSession
from onrecord.record.recorder.session import ConnectionKey, RecordedGap, Session, SessionKey
from onrecord.record.recorder.sources import Sources

_PAGE: Final = 10_000


@dataclass(slots=True, eq=False)
class Recovered:
    """The state of the recorder as the journal tells it. `entries` are those of open sessions, in order."""

    sources: Sources = field(default_factory=Sources)
    open: dict[str, Session] = field(default_factory=dict)
    closed: dict[str, ClosedSession] = field(default_factory=dict)
    last_times: dict[str, str] = field(default_factory=dict)
    last_time: str | None = None
    state_seq: int = 0
    seqs: list[int] = field(default_factory=list)
    connections: dict[ConnectionKey, int] = field(default_factory=dict)


def nothing() -> None:
    """Tell nobody of the progress."""


def scan(journal: Journal, *, progress: Callable[[], None] = nothing) -> Recovered:
    """Read the journal once, without bodies, from where the newest note of the recorder's state says on.

    `progress` is called after each page.

    Raises `LogError` with code "record-malformed", and what reading the journal raises.
    """
    found, position = _start(journal)
    while page := journal.read(position, _PAGE):
        for record in page:
            _take(found, record)
        position = page[-1].seq + 1
        progress()
    of_open = {seq for session in found.open.values() for seq in session.seqs}
    found.seqs = sorted(of_open | set(found.connections.values()))
    for session in found.open.values():
        session.seqs, session.origins = [], set()  # they come again with their entries
    return found


def _start(journal: Journal) -> tuple[Recovered, int]:
    """Return the newest noted state and where reading has to begin; an empty one and 0 without a note."""
    found = Recovered()
    end = journal.size
    while end > 0:
        begin = max(0, end - _PAGE)
        for record in reversed(journal.read(begin, end - begin)):
            if record.type == recorded.STATE:
                found.state_seq = record.seq
                return found, _take_state(found, record)
        end = begin
    return found, 0


def _take_state(found: Recovered, record: Record) -> int:
    try:
        for uid, server, name, through, seq, is_after_gap, mono_ns in record.data["sources"]:
            source = found.sources.of(Origin(int(uid), server, str(name)))
            source.through = source.committed = int(through)
            source.last_seq = int(seq)
            source.is_after_gap = is_after_gap is True
            source.last_mono_ns = int(mono_ns)
        return int(record.data["from"])
    except (KeyError, TypeError, ValueError):
        raise LogError(f"record {record.seq} tells no state", code="record-malformed") from None


def load(journal: Journal, record: Record) -> tuple[Entry, Origin, int]:
    """Return entry, origin and the size of the bodies of a trace record, with its digests."""
    raw = journal.body(record.seq, recorded.DIGESTS)
    entry = recorded.load(record.data, None if raw is None else {recorded.DIGESTS: raw})
    return entry, Origin.of(record.data), sum(body.length for body in record.bodies)


def _take(found: Recovered, record: Record) -> None:
    found.last_time = record.time
    if record.type in (recorded.TRACE, recorded.TRACE_INVALID):
        _take_trace(found, record)
    elif record.type == SESSION_OPEN:
        session = _opened(record)
        found.open[session.id] = session
        found.last_times[session.id] = record.time
    elif record.type == SESSION_CLOSE:
        ended = found.open.pop(_session_of(record), None)
        if ended is not None:
            found.closed[ended.id] = _closed(ended, record)
    elif record.type == STATEMENT and record.session in found.closed:
        _take_statement(found.closed[record.session], record)
    elif record.type == ERASURE:
        reason = str(record.data.get("reason", ""))
        word, _, id_ = reason.partition(" ")
        if word == ERASURE_REASON and id_ in found.closed:
            found.closed[id_].is_erased = _is_last_erasure(found.closed[id_], record)
    elif record.type == recorded.GAP and record.session in found.open:
        gap = _gap(record.data)
        session = found.open[record.session]
        session.gaps = [one for one in session.gaps if one.start != gap.start] + [gap]


def _take_trace(found: Recovered, record: Record) -> None:
    origin = Origin.of(record.data)
    source = found.sources.of(origin)
    entry = record.data.get("entry")
    n = entry.get("n") if isinstance(entry, dict) else record.data.get("n")
    if type(n) is int:
        source.through = source.committed = max(source.through, n)
        source.last_seq = record.seq
    kind = entry.get("kind") if isinstance(entry, dict) else None
    source.is_after_gap = kind == "gap"
    session = found.open.get(record.session) if record.session is not None else None
    if session is not None:
        session.seqs.append(record.seq)
        session.origins.add(origin)
        found.last_times[session.id] = record.time
    if isinstance(entry, dict) and kind == "connection":
        key = ConnectionKey(origin, str(entry.get("connection")))
        if entry.get("state") == "open":
            found.connections[key] = record.seq
        else:
            found.connections.pop(key, None)
    elif kind == "gap":
        for one in found.open.values():
            if origin in one.origins:
                one.seqs.append(record.seq)


def _session_of(record: Record) -> str:
    if record.session is None:
        raise LogError(f"record {record.seq} names no session", code="record-malformed")
    return record.session


def _opened(record: Record) -> Session:
    data = record.data
    try:
        return Session(
            id=_session_of(record),
            key=SessionKey(int(data["uid"]), str(data["label"])),
            caller=data.get("caller"),
            opened_us=int(data["wall_us"]),
            opened_ns=int(data["mono_ns"]),
            boot=record.boot,
            open_seq=record.seq,
            previous=data.get("previous"),
        )
    except (KeyError, TypeError, ValueError):
        raise LogError(f"record {record.seq} opens no session", code="record-malformed") from None


def _closed(session: Session, record: Record) -> ClosedSession:
    data = record.data
    try:
        return ClosedSession(
            id=session.id,
            key=session.key,
            caller=session.caller,
            opened_us=session.opened_us,
            opened_ns=session.opened_ns,
            boot=session.boot,
            open_seq=session.open_seq,
            previous=session.previous,
            cause=str(data["cause"]),
            closed=record.time,
            vcon=str(data["vcon"]),
            entries=int(data["entries"]),
            ranges=tuple((int(first), int(last)) for first, last in data["records"]),
            gaps=tuple(_gap(gap) for gap in data.get("gaps", ())),
        )
    except (KeyError, TypeError, ValueError):
        raise LogError(f"record {record.seq} closes no session", code="record-malformed") from None


def _take_statement(session: ClosedSession, record: Record) -> None:
    data: dict[str, Any] = dict(record.data)
    session.state = "signed" if data.get("vcon") is not None else "empty"
    session.statement_seq = record.seq
    session.has_carry = bool(record.bodies)
    session.file = data.get("file")
    session.sha256 = data.get("sha256")
    session.check = data.get("check")


def _is_last_erasure(session: ClosedSession, record: Record) -> bool:
    """Say whether nothing of a session is left after this erasure: a long one is spread over several, in order."""
    try:
        return bool(record.data["seqs"][-1][1] >= session.ranges[-1][1])
    except (KeyError, TypeError, IndexError):
        raise LogError(f"record {record.seq} erases nothing", code="record-malformed") from None


def _gap(data: Any) -> RecordedGap:
    try:
        return RecordedGap(str(data["from"]), str(data["to"]), str(data["cause"]), data.get("filled") is True)
    except (KeyError, TypeError, AttributeError):
        raise LogError("a gap record says nothing of a gap", code="record-malformed") from None

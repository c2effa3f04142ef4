"""Record sessions: which entry belongs to which, and when one ends. Holds no content, only numbers of records.

A session is the pair (peer uid, label); the label groups calls inside one uid and is trusted for nothing else.

Source: running.md 7.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.record.recorder.carry import CallKey
from onrecord.record.recorder.entries import (
    ENDS,
    Connection,
    Decision,
    Entry,
    Gap,
    Invocation,
    Proof,
    Response,
)
from onrecord.record.recorder.hosts import Hosts
from onrecord.record.recorder.recorded import Origin
from onrecord.record.recorder.session import ConnectionKey, Session, SessionKey
from onrecord.record.recorder.settings import (
    BUSY_CLOSE_MS,
    DEFAULT_LABEL,
    OPEN_CALLS,
    REMEMBERED,
    RecorderSettings,
)

_MS: Final = 1_000_000
_SECOND: Final = 1_000_000_000

BUSY_CAUSES: Final = frozenset({"max-age", "requested"})
"""Causes that end a session even while entries keep coming."""


@dataclass(slots=True, eq=False)
class _Call:
    """Where the responses of a call go. `seqs` is kept while the call may still turn out to be another session's."""

    key: SessionKey
    seqs: list[int] | None = None
    digest: str | None = None
    is_over: bool = False


@dataclass(slots=True, eq=False)
class _Connection:
    seqs: list[int] = field(default_factory=list)
    keys: list[SessionKey] = field(default_factory=list)
    calls: set[CallKey] = field(default_factory=set)


class _Proofs(OrderedDict[tuple[int, str, str], tuple[str | None, SessionKey]]):
    """Proofs by uid, server and proofRef; the oldest are forgotten."""


OpenSession = Callable[[SessionKey, str | None], Session]
"""Makes a session and writes its `session.open`."""


class SessionTable:
    """All open sessions. `open_session` writes `session.open`; `take` and `note` are called for every entry."""

    def __init__(self, settings: RecorderSettings, *, hosts: Hosts, open_session: OpenSession) -> None:
        self._settings = settings
        self._hosts = hosts
        self._open_session = open_session
        self._open: dict[SessionKey, Session] = {}
        self._per_uid: Counter[int] = Counter()
        self._calls: OrderedDict[CallKey, _Call] = OrderedDict()
        self._connections: dict[ConnectionKey, _Connection] = {}
        self._proofs = _Proofs()
        self._operations: OrderedDict[str, SessionKey] = OrderedDict()
        self._waiting: OrderedDict[tuple[int, str, str], list[CallKey]] = OrderedDict()

    # Looking -------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def find(self, id_: str) -> Session | None:
        """Return an open session by its id."""
        return next((one for one in self._open.values() if one.id == id_), None)

    def at(self, key: SessionKey) -> Session | None:
        """Return the open session of a key."""
        return self._open.get(key)

    def first_connection_seq(self) -> int | None:
        """Return the number of the oldest record of an open connection."""
        return min((seq for one in self._connections.values() for seq in one.seqs[:1]), default=None)

    def open_connections(self) -> Iterator[ConnectionKey]:
        """Yield the connections that are open."""
        yield from list(self._connections)

    # Placing -------------------------------------------------------------------------------------------------

    def take(self, entry: Entry, origin: Origin, *, caller: str | None) -> Session | None:
        """Return the session of an entry, opened if it has a new key; None for an entry without a session.

        `caller` is the caller id of the entry's uid. Raises what `open_session` raises; nothing has changed then.
        """
        key = self.key_of(entry, origin)
        if key is None:
            return None
        session = self._open.get(key)
        if session is None and not isinstance(entry, Connection):
            session = self._open_session(key, entry.caller if isinstance(entry, Decision) else caller)
            self.add(session)
        return session

    def key_of(self, entry: Entry, origin: Origin) -> SessionKey | None:
        """Return the key of an entry's session, by what is known now; None if nothing tells."""
        if isinstance(entry, Decision):
            return self._admitted(SessionKey(entry.uid, entry.label))
        if isinstance(entry, Invocation):
            own = self._admitted(SessionKey(entry.uid, entry.label))
            return self._by_proof(entry) or own
        if isinstance(entry, Response):
            call = self._calls.get(CallKey(origin, entry.connection, entry.call))
            if call is not None:
                return call.key
            connection = self._connections.get(ConnectionKey(origin, entry.connection))
            return connection.keys[-1] if connection is not None and connection.keys else None
        if isinstance(entry, Proof):
            return self._operations.get(entry.operation_id)
        if isinstance(entry, Connection):
            if entry.uid is not None and entry.label is not None:
                return SessionKey(entry.uid, entry.label)
            connection = self._connections.get(ConnectionKey(origin, entry.connection))
            return connection.keys[-1] if connection is not None and connection.keys else None
        return None

    def _admitted(self, key: SessionKey) -> SessionKey:
        """Return the key itself, or the uid's default label if the uid has too many labels open."""
        if key in self._open or self._per_uid[key.uid] < self._settings.labels_per_uid:
            return key
        return SessionKey(key.uid, DEFAULT_LABEL)

    def _by_proof(self, entry: Invocation) -> SessionKey | None:
        """Return the key of the decision that gave the proof of an invocation: its session wins in the join."""
        if entry.proof_ref is None:
            return None
        found = self._proofs.get((entry.uid, entry.server, entry.proof_ref))
        return found[1] if found is not None and found[0] == entry.action_digest else None

    def is_refused(self, entry: Invocation, session: Session) -> bool:
        """Say whether a call is known to be one that was refused. Another may turn out so later."""
        return (entry.server, entry.action_digest) in session.refused and self._by_proof(entry) is None

    def add(self, session: Session) -> None:
        """Take a session in."""
        self._open[session.key] = session
        self._per_uid[session.key.uid] += 1
        if session.host is None:
            session.host = self._hosts.find(session.key.label, uid=session.key.uid)

    def remove(self, session: Session) -> None:
        """Let a session go: later entries of its key open a following one."""
        if self._open.get(session.key) is session:
            del self._open[session.key]
            self._per_uid[session.key.uid] -= 1
            if not self._per_uid[session.key.uid]:
                del self._per_uid[session.key.uid]
        if session.host is not None:
            session.host.close()
            session.host = None

    # Noting --------------------------------------------------------------------------------------------------

    def note(
        self, entry: Entry, origin: Origin, session: Session | None, *, seq: int, size_bytes: int, now_ns: int
    ) -> None:
        """Remember a record that was appended: its number, and what later entries need to find their session."""
        if session is not None:
            self._note_in(session, origin, seq, size_bytes=size_bytes, now_ns=now_ns)
            session.last_wall_ms = max(session.last_wall_ms, entry.wall_ms)
            if session.cause == "idle":
                session.cause = None
        if isinstance(entry, Decision | Proof):
            self._note_decision(entry, session)
        elif isinstance(entry, Invocation):
            self._note_invocation(entry, origin, session, seq)
        elif isinstance(entry, Response):
            self._note_response(entry, origin, seq)
        elif isinstance(entry, Connection):
            self._note_connection(entry, origin, seq)
        elif isinstance(entry, Gap):
            for one in self._open.values():
                if origin in one.origins:
                    one.seqs.append(seq)

    @staticmethod
    def _note_in(session: Session, origin: Origin, seq: int, *, size_bytes: int, now_ns: int) -> None:
        session.seqs.append(seq)
        session.size_bytes += size_bytes
        session.last_ns = now_ns
        session.origins.add(origin)

    def _note_decision(self, entry: Decision | Proof, session: Session | None) -> None:
        if session is None:
            return
        if isinstance(entry, Decision):
            _remember(self._operations, entry.operation_id, session.key)
            action = entry.server, entry.action_digest
            if entry.decision == "disallowed":
                session.refused.add(action)
            else:
                session.refused.discard(action)
        if entry.proof_ref is None:
            return
        place = (session.key.uid, entry.server, entry.proof_ref)
        _remember(self._proofs, place, (entry.action_digest, session.key))
        for call_key in self._waiting.pop(place, ()):
            call = self._calls.get(call_key)
            if call is None:
                continue
            if call.digest == entry.action_digest:
                self._move(call_key, call, session)
            call.seqs = None
            self._forget_if_over(call_key, call)

    def _move(self, call_key: CallKey, call: _Call, session: Session) -> None:
        """Give a call to the session of its decision, which came later than the call."""
        seqs, call.seqs = call.seqs or [], None
        former = self._open.get(call.key)
        if former is session:
            return
        moved = set(seqs) if former is not None else set()
        if former is not None:
            moved &= set(former.seqs)
            former.seqs = [seq for seq in former.seqs if seq not in moved]
        session.seqs.extend(sorted(moved))
        call.key = session.key
        self._attach(ConnectionKey(call_key.origin, call_key.connection), session)

    def _note_invocation(self, entry: Invocation, origin: Origin, session: Session | None, seq: int) -> None:
        if session is None:
            return
        call_key = CallKey(origin, entry.connection, entry.call)
        call = self._calls[call_key] = _Call(session.key)
        if len(self._calls) > OPEN_CALLS:
            self._forget_call(next(iter(self._calls)))
        place = (entry.uid, entry.server, entry.proof_ref or "")
        if entry.proof_ref is not None and place not in self._proofs:
            call.seqs, call.digest = [seq], entry.action_digest
            self._waiting.setdefault(place, []).append(call_key)
            self._waiting.move_to_end(place)
            while len(self._waiting) > REMEMBERED:
                _, forgotten = self._waiting.popitem(last=False)
                for one in forgotten:
                    if (late := self._calls.get(one)) is not None:
                        late.seqs = None
                        self._forget_if_over(one, late)
        connection_key = ConnectionKey(origin, entry.connection)
        self._attach(connection_key, session)
        self._connections[connection_key].calls.add(call_key)

    def _note_response(self, entry: Response, origin: Origin, seq: int) -> None:
        call_key = CallKey(origin, entry.connection, entry.call)
        call = self._calls.get(call_key)
        if call is None:
            return
        call.is_over = call.is_over or entry.kind in ENDS
        if call.seqs is not None:
            call.seqs.append(seq)
        self._forget_if_over(call_key, call)

    def _forget_if_over(self, call_key: CallKey, call: _Call) -> None:
        """Forget a call that has ended and whose session is settled: a connection may stay open for weeks."""
        if call.is_over and call.seqs is None:
            self._forget_call(call_key)

    def _forget_call(self, call_key: CallKey) -> None:
        self._calls.pop(call_key, None)
        connection = self._connections.get(ConnectionKey(call_key.origin, call_key.connection))
        if connection is not None:
            connection.calls.discard(call_key)

    def _note_connection(self, entry: Connection, origin: Origin, seq: int) -> None:
        key = ConnectionKey(origin, entry.connection)
        if not entry.is_open:
            self._end_connection(key)
            return
        known = self._connections.setdefault(key, _Connection())
        known.seqs.append(seq)
        if entry.uid is not None and entry.label is not None:
            session = self._open.get(SessionKey(entry.uid, entry.label))
            if session is not None:
                self._attach(key, session)
            elif SessionKey(entry.uid, entry.label) not in known.keys:
                known.keys.append(SessionKey(entry.uid, entry.label))

    def _attach(self, key: ConnectionKey, session: Session) -> None:
        known = self._connections.setdefault(key, _Connection())
        if session.key in known.keys:
            known.keys.remove(session.key)
        known.keys.append(session.key)
        if key not in session.connections:
            session.connections.add(key)
            present = set(session.seqs) if known.seqs else ()
            session.seqs.extend(seq for seq in known.seqs if seq not in present)

    def _end_connection(self, key: ConnectionKey) -> None:
        """Forget a connection that its guard has closed, and its calls: nothing comes after the close."""
        known = self._connections.get(key)
        for call_key in list(known.calls) if known is not None else ():
            call = self._calls.get(call_key)
            if call is not None and call.seqs is None:
                del self._calls[call_key]
        self.drop_connection(key)

    def drop_connection(self, key: ConnectionKey) -> None:
        """Count a connection as closed. Its calls stay: a spool may still bring their ends."""
        known = self._connections.pop(key, None)
        for session_key in known.keys if known is not None else ():
            session = self._open.get(session_key)
            if session is not None:
                session.connections.discard(key)

    def resume_call(self, call_key: CallKey, key: SessionKey) -> None:
        """Remember a call that an earlier session left open."""
        self._calls.setdefault(call_key, _Call(key))

    # Ending --------------------------------------------------------------------------------------------------

    def full(self, session: Session) -> bool:
        """Say whether a session has as much as one vCon should hold."""
        return (
            len(session.seqs) >= self._settings.session_events
            or session.size_bytes >= self._settings.session_bytes
        )

    def longest_idle(self) -> Session | None:
        """Return the session to close when there are too many, or None while there are not."""
        if len(self._open) < self._settings.open_sessions:
            return None
        return min(self._open.values(), key=lambda one: one.last_ns)

    def begin_closing(self, session: Session, *, cause: str, now_ns: int) -> None:
        """Let a session end when nothing more comes for it."""
        if session.cause is None:
            session.cause = cause
            session.closing_ns = now_ns

    def look(self, now_ns: int) -> None:
        """Begin to close what has come to its end: process gone, idle, or too old (running.md 7.3)."""
        for session in self._open.values():
            if session.is_closing:
                continue
            if now_ns - session.opened_ns >= self._settings.max_age_seconds * _SECOND:
                self.begin_closing(session, cause="max-age", now_ns=now_ns)
            elif session.connections:
                continue
            elif session.host is not None and session.host.exited():
                self.begin_closing(session, cause="process-exit", now_ns=now_ns)
            elif now_ns - session.last_ns >= self._settings.idle_seconds * _SECOND:
                self.begin_closing(session, cause="idle", now_ns=now_ns)

    def due(self, now_ns: int, *, passed: Callable[[int], bool]) -> Iterable[Session]:
        """Return the closing sessions that may end now. `passed` says whether the authority has passed a moment."""
        grace = self._settings.close_grace_ms * _MS
        for session in list(self._open.values()):
            if not session.is_closing:
                continue
            quiet = now_ns - max(session.closing_ns, session.last_ns) >= grace
            forced = session.cause in BUSY_CAUSES and now_ns - session.closing_ns >= BUSY_CLOSE_MS * _MS
            if forced or (quiet and passed(session.closing_ns)):
                yield session


def _remember(table: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    table[key] = value
    table.move_to_end(key)
    while len(table) > REMEMBERED:
        table.popitem(last=False)

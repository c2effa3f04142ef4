"""What chats of one import have to do with each other: sub-agents and their calls, and sessions in two files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from onrecord.record.logs.gemini.message import Message
    from onrecord.record.logs.runs import Run
    from onrecord.record.logs.sessions import NativeSession
    from onrecord.record.logs.trace import Trace

FORMAT: Final = "gemini-json"


class Copies:
    """The messages of a session that an earlier file of the import has told."""

    def __init__(self, session: NativeSession, seen: dict[int, int], *, is_known: bool) -> None:
        self._session = session
        self._seen = seen
        self._is_known = is_known

    def is_equal(self, message: Message) -> bool | None:
        """Say whether an earlier file has told the message in the same words, None when it did not tell it."""
        if message.id is None:
            return None
        key = hash((self._session.agent_session_id, message.id))
        known = self._seen.get(key)
        self._seen[key] = message.digest
        return None if known is None or not self._is_known else known == message.digest

    def is_event_told(self, value: Any, *, file: int) -> bool:
        """Say whether an earlier file has the same record that is no message."""
        key = hash((self._session.agent_session_id, "event", orjson.dumps(value)))
        return self._seen.setdefault(key, file) != file

    def is_told(self, message: Message, kind: str, text: str) -> bool:
        """Say whether a piece of a message was told before, and note that it is now."""
        if message.id is None:
            return False
        key = hash((self._session.agent_session_id, message.id, kind, text))
        if key in self._seen:
            return True
        self._seen[key] = 0
        return False


class Links:
    """The links between the chats of one import."""

    def __init__(self, run: Run) -> None:
        self._seen = run.seen(FORMAT)
        self._calls: dict[str, tuple[NativeSession, str]] = {}

    @classmethod
    def of(cls, run: Run) -> Links:
        """Return the links of an import."""
        memory = run.memory(FORMAT)
        if "links" not in memory:
            memory["links"] = cls(run)
        links: Links = memory["links"]
        return links

    def copies(self, session: NativeSession) -> Copies:
        """Return what is known of a session from earlier files."""
        return Copies(session, self._seen, is_known=session.first_object is not None)

    def spawned(self, session: NativeSession, agent: str, call_id: str) -> None:
        """Note that a call of a session started this sub-agent."""
        self._calls[agent] = (session, call_id)
        child = session.trace.run.known_session(FORMAT, agent)
        if child is not None and child is not session and child.is_child:
            child.child_of(session, call_id=call_id)

    def join(self, session: NativeSession, trace: Trace) -> None:
        """Link a sub-agent with the call that started it, if that came first."""
        found = self._calls.get(session.agent_session_id)
        if found is not None and session.is_child and found[0] is not session:
            session.child_of(found[0], call_id=found[1])

"""What an importer of Claude's logs knows about each session while it reads one source.

Source: native-logs.md 4.1 (Envelope), D-LOG-10, D-LOG-11, D-LOG-20, D-LOG-21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal

from onrecord.record.logs import event_types
from onrecord.record.logs.claude.calls import Calls
from onrecord.record.logs.claude.graph import Branches, Replays
from onrecord.record.logs.claude.queue import Queue
from onrecord.record.logs.claude.records import session_above
from onrecord.record.logs.claude.subagents import Links
from onrecord.record.logs.sessions import Entry, NativeSession
from onrecord.record.logs.trace import Trace

FACTS: Final = (
    "cwd",
    "gitBranch",
    "version",
    "permissionMode",
    "entrypoint",
    "userType",
    "sessionKind",
    "teamName",
    "slug",
)
"""Members of records that say something about the session."""

MAX_SOURCES: Final = 1000
"""Sessions, newest first, among which the one is looked for that another goes on from."""

_INTERACTIVE: Final = frozenset(["cli", "claude-vscode", "claude-desktop"])


def format_of(name: str, said: str) -> Literal["interactive", "autonomous"] | None:
    """Return what a fact says about who drives the session (D-LOG-21)."""
    if name == "entrypoint":
        if said in _INTERACTIVE:
            return "interactive"
        return "autonomous" if said.startswith("sdk") else None
    return "autonomous" if name == "sessionKind" and said == "bg" else None


class State:
    """One session, as far as this source tells it."""

    def __init__(self, session: NativeSession, root_id: str) -> None:
        self.session = session
        self.root_id = root_id
        """Native id of the whole session, of which this one may be a sub-agent's."""
        self.branches = Branches(session)
        self.replays = Replays()
        self.queue = Queue()
        self.has_begun = False
        self.last_uuid: str | None = None
        self.foreign_parent: str | None = None
        """Native parent of the record at hand, if that is an entry of another session."""
        self.replaced_parent: str | None = None
        """Native parent of the record at hand, if that was skipped as a copy of another entry."""
        self.is_embedded = False
        """Whether the messages come from quotations in the log above."""
        self.is_prompted = not session.is_child
        self._said: dict[str, str] = {}
        self._facts: tuple[Any, ...] = ()

    def changes(self, entry: Entry, value: Mapping[str, Any], rest: dict[str, Any]) -> list[tuple[str, str]]:
        """Note what a record says about the session; return what changed and needs an event.

        What changed and has no event goes to `rest`.
        """
        get = value.get
        facts = (
            get("cwd"),
            get("gitBranch"),
            get("version"),
            get("permissionMode"),
            get("entrypoint"),
            get("userType"),
            get("sessionKind"),
            get("teamName"),
            get("slug"),
        )
        if facts == self._facts:
            return []
        self._facts = facts
        changes: list[tuple[str, str]] = []
        for name, said in zip(FACTS, facts, strict=True):
            if type(said) is str and said and self._said.get(name) != said:
                self._change(entry, name, said, rest, changes)
        return changes

    def permission(self, mode: Any) -> None:
        """Note the permission mode that a record of its own tells."""
        if type(mode) is str:
            self._said["permissionMode"] = mode

    def write(self, entry: Entry, changes: list[tuple[str, str]]) -> None:
        """Write the events of changes, after the record's own objects."""
        for name, said in changes:
            before = self._said.get(name)
            self._said[name] = said
            if name == "cwd":
                self.session.saw_working_dir(entry, said)
            elif name == "gitBranch":
                entry.event(event_types.WORKING_DIR_CHANGE, {"branch": {"from": before, "to": said}})
            else:
                entry.event(event_types.PERMISSION_CHANGE, {"from": before, "to": said})

    def _change(
        self, entry: Entry, name: str, said: str, rest: dict[str, Any], changes: list[tuple[str, str]]
    ) -> None:
        session = self.session
        is_first = name not in self._said
        if name == "version":
            session.agent.cli_version = said
        if name == "cwd" and session.working_dir is None:
            session.saw_working_dir(entry, said)
            self._said[name] = said
            return
        if name == "cwd":
            changes.append((name, said))
            return
        if name in ("gitBranch", "permissionMode") and not is_first:
            changes.append((name, said))
            return
        self._said[name] = said
        if name == "gitBranch":
            if not session.vcs:
                session.vcs = {"type": "git", "branch": said}
        elif is_first and name not in session.start_data:
            session.start_data[name] = said
            if session.format is None and not session.is_child:
                session.format = format_of(name, said)
        elif session.start_data.get(name) != said:
            rest[name] = said


class States:
    """The sessions of one source, by native id."""

    def __init__(self, trace: Trace, format: str, links: Links, calls: Calls) -> None:
        self._trace = trace
        self._format = format
        self._links = links
        self._calls = calls
        self._states: dict[str, State] = {}
        self._chains: dict[int, str] = {}
        self._mains: list[State] = []
        self._root_above = session_above(trace.path) if trace.path.name.startswith("agent-") else None

    def all(self) -> Iterator[State]:
        """Yield all sessions in order of appearance."""
        yield from list(self._states.values())

    def of_main(self, session_id: str) -> State:
        """Return the session of a native id."""
        state = self._states.get(session_id)
        if state is None:
            state = self._new(session_id, session_id)
        return state

    def of_child(self, root_id: str, value: Mapping[str, Any]) -> State:
        """Return the session of a sub-agent: by the agent's id, else by the chain that the record belongs to."""
        agent_id = value.get("agentId")
        named = root_id
        if type(agent_id) is str and agent_id:
            # Some versions give a sub-agent a session id of its own; its file lies in the folder of the session.
            root_id = self._root_above or root_id
            session_id = f"{root_id}/agent-{agent_id}"
        else:
            agent_id = None
            session_id = self._chain(root_id, value)
        state = self._states.get(session_id)
        if state is not None:
            return state
        session = self._trace.session(session_id)
        if session.parent is None:
            session.child_of(root_id)
        session.format = session.format or "autonomous"
        state = self._new(session_id, root_id)
        session.start_data.setdefault("sessionId", named)
        if agent_id is not None:
            session.start_data.setdefault("agentId", agent_id)
        self._links.started(session, root_id, agent_id)
        return state

    def begin(self, state: State, entry: Entry) -> None:
        """Write the beginning of a session with its first record: what it goes on from, if that is known."""
        state.has_begun = True
        session = state.session
        if session.has_begun:
            return
        data: dict[str, Any] = {}
        if not session.is_child:
            source = self._source(state)
            if source is not None:
                owner, entry_id = source
                kind = "resumed_from"
                if entry_id is not None:
                    known = self._states.get(owner.agent_session_id)
                    if known is not None and known.last_uuid != entry_id:
                        kind = "forked_from"
                data[kind] = {"agent_session_id": owner.agent_session_id}
                if entry_id is not None:
                    data[kind]["entry_id"] = entry_id
                self._trace.findings.add(
                    "resumed-session", record=entry.record.number, action="linked in session-start"
                )
            self._mains.append(state)
        session.begin(entry, data)

    def prompted(self, state: State, text: str) -> None:
        """Note a text in a user message; the first one of a sub-agent may tell whose it is."""
        if not state.is_prompted:
            state.is_prompted = True
            self._links.prompted(state.session, state.root_id, text)

    def _source(self, state: State) -> tuple[NativeSession, str | None] | None:
        """Return the session that another one goes on from, and the entry where."""
        parent = state.foreign_parent
        if parent is not None:
            for session in islice(reversed(self._trace.run.sessions), MAX_SOURCES):
                if session.format_id == self._format and session.node_of(parent) is not None:
                    return session, parent
        return (self._mains[-1].session, None) if self._mains else None

    def _new(self, session_id: str, root_id: str) -> State:
        session = self._trace.session(session_id)
        state = self._states[session_id] = State(session, root_id)
        self._calls.roots[session.index] = root_id
        return state

    def _chain(self, root_id: str, value: Mapping[str, Any]) -> str:
        """Return the session of a sidechain record without agent id: that of its parent, else its own (4.1)."""
        uuid, parent = value.get("uuid"), value.get("parentUuid")
        session_id = self._chains.get(hash((root_id, parent))) if type(parent) is str else None
        if session_id is None:
            name = uuid if type(uuid) is str and uuid else str(len(self._chains))
            session_id = f"{root_id}/sidechain-{name}"
        if type(uuid) is str:
            self._chains[hash((root_id, uuid))] = session_id
        return session_id

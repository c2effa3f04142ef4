"""The sessions of native logs: facts about each, its entries, and what it counts.

An importer gets them from its trace, and writes what happened with `session.entry(…)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from onrecord.record.logs import event_types
from onrecord.record.logs.agent_facts import AgentFacts
from onrecord.record.logs.entries import AGENT, FIRST_OTHER, NO_TIME, PARENT, USER, Entry
from onrecord.record.logs.entry_tree import EntryTree
from onrecord.record.logs.usage import Usage, to_token_usage
from onrecord.record.logs.usage_sums import Scope, UsageSums

if TYPE_CHECKING:
    from onrecord.record.logs.reading.records import Record
    from onrecord.record.logs.trace import Trace


class NativeSession:
    """One native session. It may be told by several sources; all of its objects go into one vCon."""

    def __init__(self, trace: Trace, *, index: int, format: str, agent_session_id: str) -> None:
        self.trace = trace
        self.index = index
        self.format_id = format
        self.agent_kind = trace.importer.agent_kind
        self.agent_session_id = agent_session_id
        self.agent = AgentFacts(cli_name=trace.importer.agent_kind, provider=trace.importer.provider)
        self.format: Literal["interactive", "autonomous"] | None = None
        self.working_dir: str | None = None
        self._now_dir: str | None = None
        self.vcs: dict[str, Any] = {}
        self.sandboxes: list[str] = []
        self.root_dir: str | None = None
        """Root of the repository, for file attribution; the working directory where the log names none."""
        self.titles: dict[int, str] = {}
        """Titles by rank: 0 set by a person, 1 made by a model, 2 a summary line. The last of the best rank holds."""
        self.user_name: str | None = None
        self.others: dict[str, int] = {}
        """Other agents that talk in the session, by name, with their speaker numbers."""
        self.parent: NativeSession | None = None
        self.parent_id: str | None = None
        self.parent_call: str | None = None
        self.child_note: str | None = None
        self.is_child = False
        self.is_reported_unlinked = False
        self.files: dict[int, None] = {}
        self.start_data: dict[str, Any] = {}
        self.file_attribution: list[dict[str, Any]] = []
        """File Objects, as `attribution` makes them."""
        self.vcon_members: dict[str, Any] = {}
        """Members of the vCon itself that the log gives when this is the root (VACR: uuid, created_at, …)."""
        self.environment_members: dict[str, Any] = {}
        """Further members of the environment, an open map."""
        self.rest: dict[str, Any] = {}
        """Native members about the session that have no home."""
        self.has_human_text = False
        self._is_model_reported = False
        self.first: tuple[int, str] | None = None
        self.last: tuple[int, str] | None = None
        self.borrowed: tuple[int, str] | None = None
        """First time of another session's that stands in for one of this session's."""
        self.counts = dict.fromkeys(
            (
                "dialogs",
                "user_turns",
                "agent_turns",
                "tool_calls",
                "tool_results",
                "reasoning",
                "system_events",
            ),
            0,
        )
        self.usage: dict[Scope, UsageSums] = {}
        self.first_object: int | None = None
        self._start_object: int | None = None
        self.tree = EntryTree(trace.run.spool)
        self.calls: dict[int, int] = {}
        self.results: set[int] = set()
        self.prompts: set[bytes] = set()

    # -- entries

    def entry(
        self,
        record: Record,
        *,
        id: Any = None,
        parent: Any = None,
        time: Any = NO_TIME,
        time_from: Literal["message", "tag"] | None = None,
    ) -> Entry:
        """Begin what one native record becomes.

        `id` and `parent` are the native ids, None where there are none; `time` the native time as it is (None, "" or
        nonsense are reported as `time-missing`), left out where the format has none for this record; `time_from` says
        that it is not the record's own.
        """
        return Entry(self, record, id, parent, time, time_from)

    def has_entry(self, id: str) -> bool:
        """Say whether an entry of this native id has objects in the session."""
        return self.tree.find(id) is not None

    def node_of(self, id: str) -> int | None:
        """Return the number of an entry of this session by its native id."""
        return self.tree.find(id)

    def parent_node(self, node: int) -> int:
        """Return the number of the entry above, -1 for a root."""
        return self.tree.above(node)

    @property
    def nodes(self) -> int:
        """How many entries there are or are waited for."""
        return len(self.tree)

    def flag_entry(self, node: int, flag: str) -> bool:
        """Add a flag to all objects of an entry; say whether there are any."""
        return self.tree.flag(node, flag)

    # -- facts

    def begin(self, entry: Entry, data: Mapping[str, Any] | None = None, **options: Any) -> None:
        """Write the session-start event, once; what is put into `start_data` until the end stands in it too.

        It has an id of its own, so that the record's first object keeps the native one. A later call writes another
        session-start event, as an object of the record, with its own data (a resume).
        """
        if self._start_object is None:
            self.start_data |= data or {}
            self._start_object = entry.beside(event_types.SESSION_START).event(
                event_types.SESSION_START, **options
            )
        else:
            entry.event(event_types.SESSION_START, data, **options)

    @property
    def has_begun(self) -> bool:
        """Whether the session-start event is written."""
        return self._start_object is not None

    def title(self, entry: Entry, text: Any, *, rank: int, data: Mapping[str, Any], **options: Any) -> int:
        """Write a title event. `rank`: 0 set by a person, 1 made by a model, 2 a summary line (D-LOG-29)."""
        if isinstance(text, str) and text.strip():
            self.titles[rank] = self.trace.shown(text)
        return entry.event(event_types.TITLE, data, **options)

    @property
    def subject(self) -> str | None:
        """The last title of the best rank."""
        return self.titles[min(self.titles)] if self.titles else None

    def saw_working_dir(self, entry: Entry, path: Any) -> None:
        """Note the working directory; a later change is an event (D-LOG-20)."""
        if not isinstance(path, str) or not path or path == self._now_dir:
            return
        if self.working_dir is None:
            self.working_dir = path
        else:
            entry.event(event_types.WORKING_DIR_CHANGE, {"from": self._now_dir, "to": path})
        self._now_dir = path

    def child_of(
        self, parent: NativeSession | str, *, call_id: str | None = None, description: str | None = None
    ) -> None:
        """Say whose sub-agent this session is: a session, or the native id of one that may come later."""
        self.is_child = True
        if isinstance(parent, NativeSession):
            self.parent = parent
            self.parent_id = parent.agent_session_id
        else:
            self.parent_id = parent
        self.parent_call = call_id or self.parent_call
        self.child_note = description or self.child_note

    def drop_event(self, number: int) -> None:
        """Leave a system-event out after all."""
        self.trace.run.spool.drop(number)
        self.counts["system_events"] -= 1

    def has_call(self, call_id: str) -> bool:
        """Say whether a call of this id was written."""
        return hash(call_id) in self.calls

    def has_result(self, call_id: str) -> bool:
        """Say whether a result for this call id was written."""
        return hash(call_id) in self.results

    def call_object(self, call_id: str) -> int | None:
        """Return the spool number of a call."""
        return self.calls.get(hash(call_id))

    def other(self, name: str) -> int:
        """Return the speaker number of another agent that talks in this session (D-LOG-12)."""
        return self.others.setdefault(name, FIRST_OTHER + len(self.others))

    # -- usage

    def attach_usage(self, number: int, usage: Usage, native: Any) -> None:
        """Put a response's usage on its first text, and count it. For each response once (D-LOG-03)."""
        members = to_token_usage(usage, native)
        if members is not None:
            self.trace.run.spool.late(number, {"token_usage": members})
        self.add_usage("response", usage)

    def add_usage(self, scope: Scope, usage: Usage) -> None:
        """Count a usage in the report, without an object."""
        self.report_invalid(usage)
        self.usage.setdefault(scope, UsageSums()).add(usage)

    def report_invalid(self, usage: Usage) -> None:
        """Report the members of a usage that are no counts."""
        for name in usage.invalid:
            self.trace.findings.add(
                "usage-invalid", name=name[:64], action="member left out; native value kept"
            )

    def usage_totals(self) -> tuple[dict[str, int], str | None]:
        """Return the usage of the report and its source: responses, else turns, else session totals, never a mix."""
        empty = UsageSums()
        responses = self.usage.get("response")
        if responses is not None:
            return responses.to_json(responses=responses.count), "responses"
        turns = self.usage.get("turn")
        if turns is not None:
            return turns.to_json(responses=turns.count), "turns"
        total = self.usage.get("session")
        if total is not None:
            return total.to_json(responses=0), "session-total"
        return empty.to_json(responses=0), None

    # -- the end

    def report_unknown_model(self) -> None:
        """Report, once, that the model or its provider is not in the log (D-LOG-19)."""
        if not self._is_model_reported:
            self._is_model_reported = True
            self.trace.findings.count("model-unknown", action='"unknown" written')

    def finish(self) -> None:
        """Report what stayed open: parents that never came, calls without results and results without calls."""
        findings, spool = self.trace.findings, self.trace.run.spool
        if self.first is None:
            self.first = self.last = self.borrowed
        for number, parent, record in self.tree.left_waiting():
            spool.late(number, None, {"parent": parent})
            findings.add("dangling-parent", record=record, action="kept in onrecord.parent")
        open_calls = sum(1 for call in self.calls if call not in self.results)
        if open_calls:
            findings.count("call-without-result", open_calls, action="kept open")
        lonely = sum(1 for call in self.results if call not in self.calls)
        if lonely:
            findings.count("result-without-call", lonely, action="kept as it is")
        if self._start_object is not None and self.start_data:
            spool.late(self._start_object, {"data": self.trace.shown(self.start_data)})
            self.start_data = {}

    def saw_time(self, ns: int, text: str) -> None:
        """Note a time of the session, in nanoseconds and as a Date."""
        if self.first is None or ns < self.first[0]:
            self.first = (ns, text)
        if self.last is None or ns > self.last[0]:
            self.last = (ns, text)


__all__ = ["AGENT", "NO_TIME", "PARENT", "USER", "Entry", "NativeSession"]

"""Which dialogs and events need not be looked at one by one, because many of one shape are right at once.

A record has thousands of elements with the same members. For such a group it is decided once what the names alone
decide, then each member of all of them is tried as a column. What is not proven to be without any finding is left to
the checks of single elements, which alone say what is wrong; a proof only ever saves time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Final

from onrecord.base.namespaces import AI_AGENT_EXTENSION, POLICY_DECISION, TOOL_INVOCATION_EXTENSION
from onrecord.record.checks.columns import MAX_DISTINCT, Columns, are_strings
from onrecord.record.checks.context import Context
from onrecord.record.checks.engine import Engine, Plan
from onrecord.record.checks.event_tables import CONTENT_LEVELS, EVENT
from onrecord.record.checks.groups import Group, Place
from onrecord.record.checks.tables import CONTENT_TYPES, DIALOG
from onrecord.record.checks.targets import decision_column, is_other_operation, server_faults
from onrecord.record.vcon.bodies import base64url_fault
from onrecord.record.vcon.event_types import kind_of

_TOOL_CALLS: Final = (POLICY_DECISION, "tool-invocation")


class Proofs:
    """Proofs about the elements of one vCon."""

    def __init__(self, context: Context, engine: Engine) -> None:
        self._context = context
        self._engine = engine
        self._columns = Columns(context.sizes, context.values, context.instants)
        self._listed = frozenset(context.extensions)

    def unproven_dialogs(self) -> Sequence[Place]:
        """Return the dialogs that must be checked one by one, in order."""
        return self._unproven("dialog", self._is_right_dialog)

    def unproven_events(self) -> Sequence[Place]:
        """Return the events that must be checked one by one, in order."""
        return self._unproven("events", self._is_right_event)

    def _unproven(self, array: str, is_right: Callable[[Group], bool]) -> Sequence[Place]:
        groups, rest = self._context.grouped(array)
        indices = [index for group in groups if not is_right(group) for index in group.indices]
        if not indices:
            return rest
        items = self._context.vcon[array]
        return sorted([*rest, *((index, items[index]) for index in indices)], key=itemgetter(0))

    def _is_right_dialog(self, group: Group) -> bool:
        if group.type not in DIALOG.levels:
            return False
        plan = self._engine.plan(DIALOG.name, group.type, tuple(group.first))
        return (
            self._fits(plan, group)
            and (group.type not in CONTENT_TYPES or self._has_right_content(group, json_strings=True))
            and self._used(plan)
        )

    def _is_right_event(self, group: Group) -> bool:
        kind = kind_of(group.first, self._listed)
        name = group.type
        if kind == TOOL_INVOCATION_EXTENSION:
            if "dialog" in group.names or not self._is_right_target(group):
                return False
            if name == POLICY_DECISION:
                column = decision_column(group.first)
                if is_other_operation(group.first) or not _are_all_like_first(
                    group, "policy_life", "operation"
                ):
                    return False
            else:
                column = name
                if not self._has_right_content(group, expected=CONTENT_LEVELS[name] == "S"):
                    return False
            own_session, other_session = "sessions", "session"
        elif kind == AI_AGENT_EXTENSION:
            column = name
            if name == "system-event" or {"status", "is_error"} <= group.names:
                return False
            own_session, other_session = "session", "sessions"
        elif kind == "core":
            column = name
            own_session, other_session = "sessions", "session"
        else:
            return False
        if own_session not in group.names or other_session in group.names:
            return False
        plan = self._engine.plan(EVENT.name, f"{kind} {column}", tuple(group.first))
        return self._fits(plan, group) and self._used(plan, kind)

    def _fits(self, plan: Plan, group: Group) -> bool:
        """Say whether names and values of a group give no finding, and nothing of it counts as absent."""
        if plan.presence or plan.inner or plan.renamed or plan.has_old_hash:
            return False
        ruled = {member for member, _, _ in plan.rules}
        return all(self._holds(kind, group, member) for member, kind, _ in plan.rules) and not any(
            None in group.columns[member] for member in group.names - ruled
        )

    def _holds(self, kind: str, group: Group, member: str) -> bool:
        values = group.columns[member]
        if kind != "date":
            return self._columns.hold(kind, values)
        return are_strings(values) and self._context.instants_of(group, member)[1]

    def _used(self, plan: Plan, kind: str = "core") -> bool:
        """Note the extensions that a right group uses. Always true."""
        if plan.uses_ai_agent:
            self._context.used.add(AI_AGENT_EXTENSION)
        if kind != "core":
            self._context.used.add(kind)
        return True

    def _has_right_content(self, group: Group, *, expected: bool = True, json_strings: bool = False) -> bool:
        names, columns = group.names, group.columns
        if "body" not in names:
            return names.isdisjoint(("encoding", "content_hash", "url")) and not expected
        if "url" in names or "content_hash" in names or not names.issuperset(("encoding", "mediatype")):
            return False
        encoding, bodies = group.first["encoding"], columns["body"]
        if encoding == "none":
            return are_strings(bodies)
        if encoding == "json":
            return not json_strings or str not in set(map(type, bodies))
        if encoding == "base64url":
            return are_strings(bodies) and not any(map(base64url_fault, bodies))
        return False

    def _is_right_target(self, group: Group) -> bool:
        if group.type not in _TOOL_CALLS or "server" not in group.names:
            return True
        servers = group.columns["server"]
        if not are_strings(servers):
            return False
        distinct = set(servers)
        return len(distinct) <= MAX_DISTINCT and not any(
            any(server_faults(server, self._context.extensions)) for server in distinct
        )


def _are_all_like_first(group: Group, *names: str) -> bool:
    """Say whether all elements have the first one's value of some members, which must be there and strings."""
    return all(
        name in group.names and are_strings(group.columns[name]) and len(set(group.columns[name])) == 1
        for name in names
    )

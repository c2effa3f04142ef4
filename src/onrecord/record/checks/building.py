"""Checks of single objects while a vCon is built: tables, values and relations, with the sizes of that moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from onrecord.base.findings import Finding
from onrecord.record.checks.building_relations import Relations
from onrecord.record.checks.collector import Collector
from onrecord.record.checks.context import ARRAYS, Context
from onrecord.record.checks.engine import Engine
from onrecord.record.checks.events import EventChecks
from onrecord.record.checks.privacy import check_element
from onrecord.record.checks.structure import (
    check_analyses,
    check_attachments,
    check_dialogs,
    check_parties,
    check_sessions,
    check_vcon,
    report_unlisted_extensions,
)
from onrecord.record.credentials import PATTERNS


class BuildingChecks:
    """Checks for the builder.

    Index rules depend on the sizes of the arrays they point into, others on the extensions; while those stay, so does
    what was prepared.
    """

    def __init__(self, members: dict[str, Any]) -> None:
        self._members = members
        self._prepared_for: object = None
        self._relations = Relations(members)
        self._collector = Collector()
        self._context = Context({}, self._collector)
        self._engine = Engine(self._context)

    def top(self, members: dict[str, Any]) -> tuple[Finding, ...]:
        """Check the top-level members."""
        collector = Collector()
        context = Context({name: value for name, value in members.items() if name not in ARRAYS}, collector)
        check_vcon(context, Engine(context))
        report_unlisted_extensions(context)
        return collector.in_order(None)

    def element(
        self, name: str, item: dict[str, Any], index: int, sessions: Sequence[int] = ()
    ) -> tuple[Finding, ...]:
        """Check one element of an array, which is at `index` or will be. A dialog will be in `sessions`."""
        self._prepare()
        context = self._context
        context.hold(name, index, item)
        context.used.clear()
        _RUNS[name](context, self._engine)
        self._relations.check(context, name, item, index, sessions)
        check_element(context, name, index, item, PATTERNS)
        report_unlisted_extensions(context)
        findings = self._collector.in_order(None)
        self._collector.clear()
        if name == "dialog":
            self._prepared_for = (
                None  # what the context remembers of dialogs that point at each other is stale now
            )
        return findings

    def accept(self, name: str, item: dict[str, Any], index: int, sessions: Sequence[int] = ()) -> None:
        """Remember an element that was added."""
        self._relations.accept(name, item, index, sessions)

    def _prepare(self) -> None:
        members = self._members
        sizes = [len(items) if isinstance(items := members.get(name), list) else 0 for name in _POINTED_AT]
        listed = members.get("extensions")
        state = (sizes, list(listed) if isinstance(listed, list) else None)
        if state != self._prepared_for:
            self._prepared_for = state
            self._context = Context(members, self._collector)
            self._engine = Engine(self._context)


_POINTED_AT: Final = ("parties", "sessions", "dialog", "attachments")


def _run_events(context: Context, engine: Engine) -> None:
    EventChecks(context, engine).run()


_RUNS: dict[str, Callable[[Context, Engine], None]] = {
    "parties": check_parties,
    "sessions": check_sessions,
    "dialog": check_dialogs,
    "attachments": check_attachments,
    "analysis": check_analyses,
    "events": _run_events,
}

"""What the checks of one vCon share: its arrays, its sizes, what is redacted, which extensions are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.base.findings import Severity
from onrecord.record.checks.collector import Collector
from onrecord.record.checks.groups import Group, Grouped, Place, grouped
from onrecord.record.checks.profiles import Profile, newest
from onrecord.record.checks.value_rules import Values
from onrecord.record.vcon.instants import Instants

_INTEGERS: Final = frozenset([int])

ARRAYS: Final = ("parties", "sessions", "events", "dialog", "analysis", "attachments")
"""The arrays of a vCon."""


class Context:
    """One unsigned vCon under check. Elements that are no objects are left out of the arrays, their places stay.

    `profile` holds the rules of its version, the newest unless given; `forced` says that the caller chose it. `listed`
    are its extensions as they stand there, `extensions` the same to ask for one.
    """

    def __init__(
        self,
        vcon: Mapping[str, Any],
        collector: Collector,
        *,
        profile: Profile | None = None,
        forced: bool = False,
    ) -> None:
        self.vcon = vcon
        self.collector = collector
        self.profile = profile or newest()
        self.forced = forced
        self.instants = Instants()
        self.sizes = {name: len(items) if isinstance(items := vcon.get(name), list) else 0 for name in ARRAYS}
        self.values = Values(self.sizes, self.instants)
        self.used: set[str] = set()
        self.redacted = any(_is_reference(vcon.get(name)) for name in ("redacted_from", "redacted"))
        listed = vcon.get("extensions")
        self.listed: tuple[str, ...] = (
            tuple(name for name in listed if isinstance(name, str)) if isinstance(listed, list) else ()
        )
        self.extensions = frozenset(self.listed)
        self._elements: dict[str, list[Place]] = {}
        self._grouped: dict[str, Grouped] = {}
        self._instants: dict[tuple[int, str], tuple[list[int | None], bool]] = {}
        self._moments: dict[str, list[int | None]] = {}
        self._targets: dict[tuple[int, str], frozenset[int]] = {}

    def add(
        self,
        code: str,
        pointer: str,
        *,
        severity: Severity | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a finding with the severity that it has in this version. `severity` is that of a rule, if it has one."""
        severities = self.profile.severities
        if code in severities:
            severity = severities[code]
            if severity is None:
                return
        self.collector.add(code, pointer, severity=severity, data=data)

    def elements(self, name: str) -> list[Place]:
        """Return index and object of each element of an array that is an object with members."""
        found = self._elements.get(name)
        if found is None:
            items = self.vcon.get(name)
            found = (
                [(index, item) for index, item in enumerate(items) if type(item) is dict and item]
                if isinstance(items, list)
                else []
            )
            self._elements[name] = found
        return found

    def grouped(self, name: str) -> Grouped:
        """Return the same elements in groups."""
        found = self._grouped.get(name)
        if found is None:
            items = self.vcon.get(name)
            found = self._grouped[name] = grouped(items if isinstance(items, list) else ())
        return found

    def instants_of(self, group: Group, member: str) -> tuple[list[int | None], bool]:
        """Return what a member's strings say as date-times, in the order of the group, and if all are normal."""
        key = (id(group), member)
        found = self._instants.get(key)
        if found is None:
            found = self._instants[key] = self.instants.read_all(group.columns[member])
        return found

    def moments(self, name: str) -> list[int | None]:
        """Return when each dialog or event began, in nanoseconds, None where no date-time says it."""
        member = "start" if name == "dialog" else "time"
        found = self._moments.get(name)
        if found is not None:
            return found
        found = self._moments[name] = [None] * self.sizes[name]
        groups, rest = self.grouped(name)
        for group in groups:
            if member in group.names:
                if set(map(type, group.columns[member])) == {str}:
                    for index, moment in zip(group.indices, self.instants_of(group, member)[0], strict=True):
                        found[index] = moment
                else:
                    for index, value in zip(group.indices, group.columns[member], strict=True):
                        found[index] = self.instants.ns(value)
        for index, item in rest:
            found[index] = self.instants.ns(item.get(member))
        return found

    def hold(self, name: str, index: int, item: dict[str, Any]) -> None:
        """Make one element the only one of its array that the checks see, at its index."""
        self._elements[name] = [(index, item)] if item else []
        self._grouped[name] = Grouped((), self._elements[name])
        self._instants.clear()
        self._moments.clear()

    def element(self, name: str, index: Any) -> dict[str, Any] | None:
        """Return the object that an index points at, or None. `{}` is returned as it is."""
        items = self.vcon.get(name)
        if isinstance(items, list) and type(index) in (int, float) and 0 <= index < len(items):
            item = items[int(index)]
            return item if type(item) is dict else None
        return None

    def targets(self, index: int, member: str) -> frozenset[int]:
        """Return the indices in a member of a dialog; kept, for all dialogs of a set may ask for the same list."""
        found = self._targets.get((index, member))
        if found is None:
            dialog = self.element("dialog", index) or {}
            found = self._targets[index, member] = frozenset(indices(dialog.get(member)))
        return found


def _is_reference(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def indices(value: Any) -> tuple[int, ...]:
    """Return the indices in a value that is one index or an array of them; what is no index is left out."""
    if type(value) is int:
        return (value,)
    if type(value) is list:
        if _INTEGERS.issuperset(map(type, value)):
            return tuple(value)
        return tuple(int(item) for item in value if type(item) is int or _integral(item))
    return (int(value),) if _integral(value) else ()


def _integral(value: Any) -> bool:
    return type(value) is float and value.is_integer()


def event_sessions(event: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the sessions of an event, under either name."""
    value = event.get("sessions")
    return indices(event.get("session") if value is None else value)


def dialog_parties(dialog: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the parties of a dialog, all levels flattened, in order."""
    value = dialog.get("parties")
    if type(value) is not list:
        return indices(value)
    found: list[int] = []
    for item in value:
        found.extend(indices(item))
    return tuple(found)

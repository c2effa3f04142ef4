"""Adding an element to a vCon: made JSON, checked, and then kept or taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from onrecord import __version__
from onrecord.base.errors import UsageError, Where
from onrecord.base.findings import Finding
from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.vcon.contents import Content
from onrecord.record.vcon.plain import plain
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.reader import Document
from onrecord.record.vcon.versions import KNOWN, profile_of, unsupported_critical

if TYPE_CHECKING:
    from onrecord.record.checks.building import BuildingChecks

_NULL_STAYS: Final = frozenset(["input", "output"])
"""Members whose null is written: the value was withheld (record.md D-09)."""

_NOT_YET: Final = frozenset(["session-required", "dialog-unreferenced", "conversation-empty"])
"""Findings about what is added later."""

_HINTS: Final = {
    "attachment-dialog-missing": "add the dialog that it belongs to first, and give its index as dialog=",
    "index-range": "add what it points at first; indices count from 0",
    "session-time": "give the session an earlier start, or set its duration when it has ended",
    "json-body-string": "Content.json takes the value itself, not a text of it",
}
"""What to do about a finding while building, where the catalogue speaks to those who have a file before them."""


class Additions:
    """What the builder needs to add anything."""

    def __init__(
        self, members: dict[str, Any], *, document: Document | None = None, lenient: bool = False
    ) -> None:
        self._members = members
        self._document = document
        self._lenient = lenient
        self._is_new = self._is_present = False
        self._problems: list[Finding] = []
        self._checks: BuildingChecks | None = None

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Return the findings about what was added in spite of them."""
        return tuple(self._problems)

    def _add(
        self,
        name: str,
        members: Mapping[str, Any],
        *,
        content: Content | None = None,
        sessions: Sequence[int] = (),
    ) -> int:
        if content is not None and not isinstance(content, Content):
            raise UsageError(
                f"content: expected a Content, found {type(content).__name__}",
                code="content-expected",
                hint="Content.text(...), .json(...), .binary(...) or .external(...) of onrecord.record makes one",
            )
        self._require_present_version()
        self._checks_at_hand()
        items = self._members.get(name)
        if not isinstance(items, list):
            items = self._members[name] = []
        index = len(items)
        pointer = f"/{name}/{index}"
        given = members if content is None else {**members, **content.members}
        try:
            item = {
                key: plain(value, pointer + step(key), lenient=self._lenient, depth=3)
                for key, value in given.items()
                if value is not None
                or key in _NULL_STAYS
                or (key == "body" and given.get("encoding") == "json")
            }
            items.append(item)
            used = self._judge(pointer, lambda checks: checks.element(name, item, index, sessions))
        except UsageError:
            del items[index:]
            if not items:
                del self._members[name]
            raise
        self._list(used)
        self._checks_at_hand().accept(name, item, index, sessions)
        self._document = None
        return index

    def _judge(
        self,
        pointer: str,
        run: Callable[[BuildingChecks], Sequence[Finding]],
        *,
        there: Sequence[Finding] = (),
    ) -> list[str]:
        """Check what is added, and return the extensions that it uses and that are not listed.

        The first error or warning is raised, or all are kept where this vCon is lenient. `there` were there before.
        """
        known = {(finding.code, finding.pointer, finding.message) for finding in there}
        used: list[str] = []
        found: list[Finding] = []
        for finding in run(self._checks_at_hand()):
            if (finding.code, finding.pointer, finding.message) in known:
                continue
            if finding.code == "extension-not-listed" and finding.data is not None:
                used.append(finding.data["extension"])
            elif finding.severity != "info" and finding.code not in _NOT_YET:
                found.append(finding)
        if found and not self._lenient:
            raise _refusal(pointer, found[0])
        self._problems += found
        return used

    def _checks_at_hand(self) -> BuildingChecks:
        if self._checks is None:
            from onrecord.record.checks.building import BuildingChecks

            self._checks = BuildingChecks(self._members)
        return self._checks

    def _require_present_version(self) -> None:
        """Refuse to add to a vCon of an older version, or one that may not be processed."""
        if self._is_present:
            return
        critical = unsupported_critical(self._members)
        if critical:
            raise UsageError(
                "the vCon calls an extension critical that is not supported, so it may not be processed",
                code="critical-unsupported",
                where=Where(pointer=critical[0]),
                hint=hint_of("critical-unsupported"),
            )
        version = profile_of(self._members)
        if version != KNOWN[-1]:
            raise UsageError(
                f"the vCon is one of version {version}, and {KNOWN[-1]} is written",
                code="version-not-written",
                hint="upgrade it first: onrecord.record.migrate(vcon).vcon",
            )
        self._is_present = True

    def _list(self, used: Sequence[str]) -> None:
        """List extensions that are used now (record.md D-18)."""
        if not used:
            return
        listed = self._members.setdefault("extensions", [])
        if isinstance(listed, list):
            listed += [name for name in used if name not in listed]
        if AI_AGENT_EXTENSION in used:
            self._name_recorder()

    def _name_recorder(self) -> None:
        """Say which program recorded a vCon of agents that was begun here (AA 3.2)."""
        if self._is_new and "recording_agent" not in self._members:
            self._members["recording_agent"] = {"name": "onrecord", "version": __version__}


def _refusal(pointer: str, finding: Finding) -> UsageError:
    """Return the error about what is not added. Its notes show place and advice in a traceback."""
    error = UsageError(
        f"{pointer or 'the vCon'} cannot be added: {finding.message}",
        code=finding.code,
        where=Where(pointer=finding.pointer),
        hint=hint_of(finding.code),
    )
    error.add_note(f"where: {error.where}")
    if error.hint:
        error.add_note(f"next: {error.hint}")
    return error


def hint_of(code: str) -> str | None:
    """Return what to do about a finding."""
    if code in _HINTS:
        return _HINTS[code]
    from onrecord.record.checks.catalogue import CATALOGUE

    return CATALOGUE[code].change or None

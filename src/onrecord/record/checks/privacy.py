"""Credentials and other things that a record should not hold. Findings name place and pattern, never the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.base.findings import Severity
from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.checks.context import ARRAYS, Context
from onrecord.record.credentials import (
    URL_USERINFO,
    Pattern,
    Span,
    active_patterns,
    find,
    is_credential_name,
    is_replaced,
    spans,
)
from onrecord.record.vcon.event_types import TI_EVENTS, kind_of
from onrecord.record.vcon.pointers import step

_INDEX_TYPES: Final = {int}
_FOUR_DIGITS: Final = re.compile(r"\d{4}")
_URL_MEMBERS: Final = frozenset(["url"])
_OWN_URL_RULE: Final = frozenset(["server"])
"""Members whose URL another rule holds to account (server-url-secret)."""

_URL_USERINFO: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*@", re.ASCII)
_MAX_HARMLESS: Final = 10_000
_TASK_NAMES: Final = frozenset(["taskId", "task_id"])
_REQUEST_STATE: Final = "requestState"
_CODES: Final = {"text": "credential-found", "member": "credential-key", "url": "url-userinfo"}


def check_privacy(context: Context, raw: bytes) -> None:
    """Search every value of the vCon. `raw` is its text, which tells which patterns can occur at all."""
    patterns = active_patterns(raw)
    has_states = b"requestState" in raw or b"\\u" in raw
    plain = _Search(context, patterns, None)
    for name in ARRAYS:
        if name == "events":
            strict = _Search(context, patterns, "error")
            for index, event in context.elements(name):
                search = strict if _is_tool_event(context, event) else plain
                search.event(event, index, has_states=has_states)
        else:
            for index, element in context.elements(name):
                plain.element(element, name, index)
    for index, party in context.elements("parties"):
        _check_validation(context, party, index)
    rest = {name: value for name, value in context.vcon.items() if name not in ARRAYS}
    plain.value(rest, "")


def check_element(
    context: Context, array: str, index: int, element: Mapping[str, Any], patterns: tuple[Pattern, ...]
) -> None:
    """Search one element of an array."""
    if array == "events":
        severity: Severity | None = "error" if _is_tool_event(context, element) else None
        _Search(context, patterns, severity).event(element, index, has_states=True)
        return
    _Search(context, patterns, None).element(element, array, index)
    if array == "parties":
        _check_validation(context, element, index)


def _holds_values(element: Mapping[str, Any]) -> bool:
    """Say whether a member is an object, or an array of something else than indices."""
    for value in element.values():
        kind = type(value)
        if (kind is dict or kind is list) and _is_nested(value):
            return True
    return False


def _is_nested(value: Any) -> bool:
    """Say whether an object or array can hold a credential under a harmless name: an array of indices cannot."""
    return type(value) is dict or (bool(value) and set(map(type, value)) != _INDEX_TYPES)


def _is_tool_event(context: Context, event: Mapping[str, Any]) -> bool:
    kind = event.get("type")
    if type(kind) is not str or kind not in TI_EVENTS:
        return False
    return kind != "tool-result" or kind_of(event, context.extensions) != AI_AGENT_EXTENSION


def _check_validation(context: Context, party: Mapping[str, Any], index: int) -> None:
    validation = party.get("validation")
    if type(validation) is str and _FOUR_DIGITS.search(validation):
        context.add("validation-secret", f"/parties/{index}/validation")


class _Search:
    """A search for credentials, with the severity that a hit has at this place."""

    __slots__ = ("_context", "_harmless", "_patterns", "_severity")

    def __init__(self, context: Context, patterns: tuple[Pattern, ...], severity: Severity | None) -> None:
        self._context = context
        self._patterns = patterns
        self._severity = severity
        self._harmless: set[str] = set()

    def event(self, event: Mapping[str, Any], index: int, *, has_states: bool) -> None:
        """Search an event, for protocol state too."""
        self.element(event, "events", index)
        if event.get("type") == "tool-pending":
            _check_tasks(self._context, event, f"/events/{index}")
        if has_states:
            _check_request_state(self._context, event, f"/events/{index}", self._severity)

    def element(self, element: Mapping[str, Any], array: str, index: int) -> None:
        """Search an element. Most of its members are short strings, and most files hold nothing."""
        patterns, harmless = self._patterns, self._harmless
        if not patterns and harmless.issuperset(element) and not _holds_values(element):
            return
        for name, value in element.items():
            kind = type(value)
            if kind is dict or kind is list:
                if _is_nested(value) or is_credential_name(name):
                    self.value({name: value}, f"/{array}/{index}")
                if name not in harmless and not is_credential_name(name):
                    self._named(name, None, array, index)
            elif name not in harmless:
                self._named(name, value, array, index)
            if patterns and kind is str and not (name == "body" and element.get("encoding") == "base64url"):
                found = spans(value, patterns)
                if found:
                    self._texts(found, name, array, index)

    def _named(self, name: str, value: Any, array: str, index: int) -> None:
        """Check what a member's name alone gives away; most names are harmless and remembered as such."""
        if is_credential_name(name):
            if value not in (None, "") and type(value) is not bool and not is_replaced(value):
                self._add("member", f"/{array}/{index}{step(name)}", name.lower())
        elif name in _URL_MEMBERS:
            if type(value) is str and _URL_USERINFO.match(value):
                self._add("url", f"/{array}/{index}{step(name)}", URL_USERINFO)
        elif len(self._harmless) < _MAX_HARMLESS:
            self._harmless.add(name)

    def _texts(self, found: list[Span], name: str, array: str, index: int) -> None:
        for span in found:
            kind = "url" if span.pattern == URL_USERINFO else "text"
            if kind != "url" or name not in _OWN_URL_RULE:
                self._add(kind, f"/{array}/{index}{step(name)}", span.pattern)

    def value(self, value: Any, pointer: str) -> None:
        """Search a value with everything in it."""
        for hit in find(value, pointer=pointer, patterns=self._patterns):
            self._add(hit.kind, hit.pointer, hit.pattern)

    def _add(self, kind: str, pointer: str, pattern: str) -> None:
        self._context.add(_CODES[kind], pointer, severity=self._severity, data={"pattern": pattern})


def _check_tasks(context: Context, event: Mapping[str, Any], pointer: str) -> None:
    body = event.get("body")
    if not isinstance(body, dict):
        return
    for owner, place in ((body, f"{pointer}/body"), (body.get("task"), f"{pointer}/body/task")):
        if isinstance(owner, dict):
            for name in _TASK_NAMES & owner.keys():
                if owner[name] not in (None, "") and not is_replaced(owner[name]):
                    context.add("task-handle-clear", place + step(name))


def _check_request_state(
    context: Context, event: Mapping[str, Any], pointer: str, severity: Severity | None
) -> None:
    work: list[tuple[Any, str]] = [(event, pointer)]
    while work:
        value, place = work.pop()
        if type(value) is dict:
            for name, member in value.items():
                if name == _REQUEST_STATE and member is not None:
                    context.add("request-state-recorded", place + step(name), severity=severity)
                work.append((member, place + step(name)))
        elif type(value) is list:
            work += [(member, place + step(number)) for number, member in enumerate(value)]

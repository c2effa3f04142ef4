"""Credentials and other things that a record should not hold. Findings name place and pattern, never the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from onrecord.base.findings import Severity
from onrecord.base.namespaces import AI_AGENT_EXTENSION
from onrecord.record.checks.context import ARRAYS, Context
from onrecord.record.credentials import (
    URL_USERINFO,
    Pattern,
    Span,
    active_patterns,
    is_credential_name,
    is_replaced,
    search,
    spans,
)
from onrecord.record.vcon.event_types import TI_EVENTS, kind_of
from onrecord.record.vcon.paths import Path, pointer_of
from onrecord.record.vcon.pointers import step

_INDEX_TYPES: Final = {int}
_CONTAINERS: Final = frozenset([dict, list])
_FOUR_DIGITS: Final = re.compile(r"\d{4}")
_URL_MEMBERS: Final = frozenset(["url"])
_OWN_URL_RULE: Final = frozenset(["server"])
"""Members whose URL another rule holds to account (server-url-secret)."""

_URL_USERINFO: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]*@", re.ASCII)
_MAX_HARMLESS: Final = 10_000
_TASK_NAMES: Final = frozenset(["taskId", "task_id"])
_REQUEST_STATE: Final = "requestState"
_REFERENCES: Final = ("redacted_from", "redacted", "amended_from", "amended", "appended")
_CODES: Final = {"text": "credential-found", "member": "credential-key", "url": "url-userinfo"}


def check_privacy(context: Context, raw: bytes) -> None:
    """Search every value of the vCon. `raw` is its text, which tells which patterns can occur at all.

    Nearly every file is clean, and is known to be from its text and the names of its members.
    """
    for index, party in context.elements("parties"):
        _check_validation(context, party, index)
    patterns = active_patterns(raw)
    names = _all_names(context)
    if patterns or any(map(is_credential_name, names)):
        _search_all(context, patterns)
    if any(pattern.name == URL_USERINFO for pattern in patterns):
        _check_links(context)
    if _REQUEST_STATE in names:
        for index, event in context.elements("events"):
            severity = _severity_in(context, event)
            _check_request_state(context, event, f"/events/{index}", severity)
    if not _TASK_NAMES.isdisjoint(names):
        for index, event in context.elements("events"):
            if event.get("type") == "tool-pending":
                _check_tasks(context, event, f"/events/{index}")


def _check_links(context: Context) -> None:
    """Report user information in URLs that stand deeper than `url` of an element; there a name alone is too much.

    In a text it takes a password to be one: a name before a host may be anything.
    """
    vcon = context.vcon
    links = [(f"/{name}/url", _member(vcon.get(name), "url")) for name in _REFERENCES]
    links.append(("/vcs/repository", _member(vcon.get("vcs"), "repository")))
    for index, session in context.elements("sessions"):
        repository = _member(_member(session.get("environment"), "vcs"), "repository")
        links.append((f"/sessions/{index}/environment/vcs/repository", repository))
    for number, file in _objects(_member(vcon.get("file_attribution"), "files")):
        for index, conversation in _objects(file.get("conversations")):
            place = f"/file_attribution/files/{number}/conversations/{index}"
            links.append((f"{place}/url", conversation.get("url")))
            links += [
                (f"{place}/related/{position}/url", resource.get("url"))
                for position, resource in _objects(conversation.get("related"))
            ]
    for pointer, value in links:
        if type(value) is str and _URL_USERINFO.match(value):
            context.add(_CODES["url"], pointer, data={"pattern": URL_USERINFO})


def _member(owner: Any, name: str) -> Any:
    return owner.get(name) if type(owner) is dict else None


def _objects(value: Any) -> list[tuple[int, dict[str, Any]]]:
    return [
        (index, item) for index, item in enumerate(value if type(value) is list else ()) if type(item) is dict
    ]


def _all_names(context: Context) -> set[str]:
    """Return the names of all members in the vCon. Columns without objects and arrays are not entered."""
    names: set[str] = set()
    inside: list[Any] = []
    for array in ARRAYS:
        groups, rest = context.grouped(array)
        for group in groups:
            names |= group.names
            for column in group.columns.values():
                inside += _containers(column)
        inside += [element for _, element in rest]
    inside.append({name: value for name, value in context.vcon.items() if name not in ARRAYS})
    return names | member_names(inside)


def _containers(column: Sequence[Any]) -> Sequence[Any]:
    """Return a column if there is an object or array in it. Of arrays alone their elements count: most are indices."""
    if {list}.issuperset(map(type, column)):
        column = list(chain.from_iterable(column))
    return () if _CONTAINERS.isdisjoint(map(type, column)) else column


def member_names(value: Any) -> set[str]:
    """Return the names of all members of all objects in a JSON value.

    It goes from level to level with the interpreter's own loops, since it is on the way of every check.
    """
    names: set[str] = set()
    level = [value]
    while level:
        objects = [item for item in level if type(item) is dict]
        arrays = [item for item in level if type(item) is list]
        names.update(chain.from_iterable(set(map(tuple, objects))))
        items = chain(chain.from_iterable(map(dict.values, objects)), chain.from_iterable(arrays))
        level = [item for item in items if type(item) in _CONTAINERS]
    return names


def _search_all(context: Context, patterns: tuple[Pattern, ...]) -> None:
    plain = _Search(context, patterns, None)
    strict = _Search(context, patterns, "error")
    for name in ARRAYS:
        for index, element in context.elements(name):
            own = strict if name == "events" and _is_tool_event(context, element) else plain
            own.element(element, name, index)
    rest = {name: value for name, value in context.vcon.items() if name not in ARRAYS}
    plain.value(rest, "")


def check_element(
    context: Context, array: str, index: int, element: Mapping[str, Any], patterns: tuple[Pattern, ...]
) -> None:
    """Search one element of an array."""
    severity = _severity_in(context, element) if array == "events" else None
    _Search(context, patterns, severity).element(element, array, index)
    if array == "events":
        _check_request_state(context, element, f"/events/{index}", severity)
        if element.get("type") == "tool-pending":
            _check_tasks(context, element, f"/events/{index}")
    elif array == "parties":
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


def _severity_in(context: Context, event: Mapping[str, Any]) -> Severity | None:
    """Return the severity of what is found in an event: tool events are held to more than what was imported."""
    return "error" if _is_tool_event(context, event) else None


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
        for hit in search(value, pointer=pointer, patterns=self._patterns):
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
    work: list[tuple[Any, Path]] = [(event, None)]
    while work:
        value, path = work.pop()
        if type(value) is dict and value.get(_REQUEST_STATE) is not None:
            place = pointer_of((path, _REQUEST_STATE), pointer)
            context.add("request-state-recorded", place, severity=severity)
        entries: Iterable[tuple[Any, Any]] = value.items() if type(value) is dict else enumerate(value)
        work += [(member, (path, key)) for key, member in entries if type(member) in _CONTAINERS]

"""OpenCode's JSON texts: exports, lists of messages, glued objects, and the server's events (layouts 2, 3, 6)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onrecord.record.logs.opencode import recognition
from onrecord.record.logs.opencode.items import Store
from onrecord.record.logs.opencode.rescue import cut_export
from onrecord.record.logs.opencode.stream import enter_event
from onrecord.record.logs.opencode.units import Units
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.parsing import parse
from onrecord.record.logs.reading.records import NotJson, Unreadable
from onrecord.record.logs.reading.values import read_values

_PEEK_BYTES: Final = 1 << 20
_PEEK_LINES: Final = 20
_BLANK: Final = b" \t\r\n\0"
_UNIT: Final = re.compile(r"(?:/messages)?(?:/\d+)?(?:/info|/parts/\d+)?")


def read_text(store: Store) -> None:
    """Enter everything that a JSON text holds."""
    trace = store.trace
    units = Units(store)
    read = read_lines if _is_of_lines(trace.file.head(_PEEK_BYTES)) else read_values
    with trace.file.open(trace.findings) as stream:
        for found in read(stream, trace.findings, objects=False):
            if isinstance(found, Unreadable):
                _enter_rest(store, units, found)
            else:
                _enter(store, units, found.value, Numbers(found.numbers))


class Numbers:
    """The pointers of changed numbers of a document, by the record in it that they belong to."""

    def __init__(self, pointers: Sequence[str]) -> None:
        self.pointers = pointers
        self._below: dict[str, list[str]] = {}
        for pointer in pointers:
            match = _UNIT.match(pointer)
            prefix = match[0] if match else ""
            self._below.setdefault(prefix, []).append(pointer[len(prefix) :])

    def of(self, prefix: str) -> list[str]:
        """Return the pointers inside of one record."""
        return self._below.get(prefix, [])


def _is_of_lines(head: bytes) -> bool:
    """Say whether a text has one record a line: the first of its first lines that is one of OpenCode's says so."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK)
    lines = text.split(b"\n", _PEEK_LINES)
    if len(lines) == 1 or lines[0].strip(_BLANK) in (b"[", b"{"):
        return False
    for line in lines[:-1]:
        try:
            value = parse(line.replace(b"\0", b"")).value
        except NotJson:
            continue
        if type(value) is dict and recognition.shape_of(value) is not None:
            return True
    return False


def _enter(store: Store, units: Units, value: Any, numbers: Numbers) -> None:
    """Enter one value of a text, which may be many records."""
    if type(value) is list:
        for index, element in enumerate(value):
            _enter_object(store, units, element, numbers, f"/{index}")
    else:
        _enter_object(store, units, value, numbers, "")


def _enter_object(store: Store, units: Units, value: Any, numbers: Numbers, prefix: str) -> None:
    if type(value) is not dict:
        units.not_an_object(value)
        return
    shape = recognition.shape_of(value)
    if shape == "export":
        _enter_export(store, units, value, numbers, prefix)
    elif shape == "answer":
        _enter_answer(store, units, value, numbers, prefix, None)
    else:
        pointers = list(numbers.pointers) if not prefix else numbers.of(prefix)
        record = store.trace.new_record(value, numbers=pointers)
        if shape == "event":
            enter_event(store, units, record)
        else:
            units.enter(record, shape)


def _enter_export(
    store: Store, units: Units, value: Mapping[str, Any], numbers: Numbers, prefix: str
) -> None:
    others = {name: member for name, member in value.items() if name not in ("info", "messages")}
    info = value["info"]
    messages = value["messages"]
    told = _joined(info, others)
    if type(told.get("id")) is not str and type(info) is dict:
        named = _first_session_id(messages)
        if named is not None:
            told["id"] = named
    record = store.trace.new_record(told, numbers=numbers.of(f"{prefix}/info"))
    item = store.enter("session", record)
    for index, message in enumerate(messages):
        place = f"{prefix}/messages/{index}"
        if type(message) is dict and ("info" in message or "parts" in message):
            _enter_answer(store, units, message, numbers, place, item.session)
        else:
            _enter_object(store, units, message, numbers, place)


def _enter_answer(
    store: Store,
    units: Units,
    value: Mapping[str, Any],
    numbers: Numbers,
    prefix: str,
    session: str | None,
) -> None:
    """Enter a message with its parts."""
    others = {name: member for name, member in value.items() if name not in ("info", "parts")}
    parts = value.get("parts")
    if parts is not None and type(parts) is not list:
        others["parts"] = parts
    told = _joined(value.get("info"), others)
    record = store.trace.new_record(told, numbers=numbers.of(f"{prefix}/info"))
    item = store.enter("message", record, session=session)
    for index, part in enumerate(parts if type(parts) is list else ()):
        if type(part) is not dict:
            units.not_an_object(part, session=item.session)
            continue
        record = store.trace.new_record(part, numbers=numbers.of(f"{prefix}/parts/{index}"))
        store.enter("part", record, session=item.session, message=item.message)


def _joined(info: Any, others: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a frame's `info`, and those beside it where there are any."""
    told = dict(info) if type(info) is dict else {"info": info}
    for name, member in others.items():
        if name not in told:
            told[name] = member
        else:
            told.setdefault("outside", {})
            if type(told["outside"]) is dict:
                told["outside"][name] = member
    return told


def _first_session_id(messages: Sequence[Any]) -> str | None:
    for message in messages:
        info = message.get("info") if type(message) is dict else None
        named = info.get("sessionID") if type(info) is dict else None
        if type(named) is str and named:
            return named
    return None


def _enter_rest(store: Store, units: Units, found: Unreadable) -> None:
    """Enter a piece that does not parse; of an export that breaks off, what is whole in it."""
    if found.code != "truncated-tail":
        units.unreadable(found)
        return
    with store.trace.file.open() as stream:
        rescued = cut_export(stream, found.offset)
    if rescued is None:
        units.unreadable(found)
        return
    session: str | None = None
    if rescued.info is not None:
        record = store.trace.new_record(rescued.info, numbers=rescued.numbers)
        session = store.enter("session", record).session
    for value, pointers, _ in rescued.messages:
        if type(value) is dict and ("info" in value or "parts" in value):
            _enter_answer(store, units, value, Numbers(pointers), "", session)
        else:
            _enter_object(store, units, value, Numbers(pointers), "")
    rest = rescued.rest
    units.unreadable(
        Unreadable(
            0,
            found.line,
            found.offset + rescued.rest_at,
            len(rest),
            found.code,
            hashlib.sha256(rest).hexdigest(),
            rest[:1024].decode("utf-8", "replace")[:256],
        )
    )

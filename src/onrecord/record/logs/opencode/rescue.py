"""What is whole in an export or a list of messages that breaks off: a pipe that closed, a disk that was full (R-07)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

from onrecord.record.logs.reading.extents import NOT_YET, Extent
from onrecord.record.logs.reading.parsing import Parsed, parse
from onrecord.record.logs.reading.records import NotJson

_INFO: Final = re.compile(rb'\s*\{\s*"info"\s*:\s*(?=\{)')
_MESSAGES: Final = re.compile(rb'\s*,\s*"messages"\s*:\s*\[')
_LIST: Final = re.compile(rb"\s*\[")
_NEXT: Final = re.compile(rb"[\s,]*")


@dataclass(slots=True)
class Rescued:
    """The session and the messages that are whole, and what is behind them."""

    info: dict[str, Any] | None = None
    numbers: list[str] = field(default_factory=list)
    messages: list[Parsed] = field(default_factory=list)
    rest: bytes = b""
    rest_at: int = 0


def cut_export(stream: BinaryIO, offset: int) -> Rescued | None:
    """Return what is whole in a value that begins at an offset of the text and breaks off, None if nothing is."""
    while offset > 0:
        skipped = len(stream.read(min(offset, 1 << 20)))
        if not skipped:
            return None
        offset -= skipped
    data = stream.read().replace(b"\0", b"")
    rescued = Rescued()
    at = 0
    head = _INFO.match(data)
    if head is not None:
        at = Extent().scan(data, head.end())
        if at == NOT_YET:
            return None
        try:
            rescued.info, rescued.numbers, _ = parse(data[head.end() : at])
        except NotJson:
            return None
    start = (_MESSAGES if head is not None else _LIST).match(data, at)
    if start is None and head is None:
        return None
    at = at if start is None else start.end()
    while start is not None:
        following = _NEXT.match(data, at)
        place = following.end() if following else at
        if data[place : place + 1] not in (b"{", b"["):
            break
        end = Extent().scan(data, place)
        if end == NOT_YET:
            break
        try:
            rescued.messages.append(parse(data[place:end]))
        except NotJson:
            break
        at = end
    if rescued.info is None and not rescued.messages:
        return None
    rescued.rest, rescued.rest_at = data[at:], at
    return rescued

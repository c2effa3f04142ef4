"""What stands in the content of a message: texts, calls, results and other parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

TEXT: Final = "text"
THOUGHT: Final = "thought"
CALL: Final = "functionCall"
RESULT: Final = "functionResponse"
INLINE: Final = "inlineData"
FILE: Final = "fileData"
ODD: Final = "odd"
"""A piece of content that is neither text nor an object."""

MASK: Final = "<tool_output_masked>"
"""How an output begins of which a checkpoint kept the ends only."""

_MODIFIERS: Final = frozenset(["thought", "thoughtSignature", "videoMetadata", "partMetadata"])
"""Members of a part that do not say what it is."""

_KNOWN: Final = frozenset([TEXT, THOUGHT, CALL, RESULT, INLINE, FILE, ODD])


class Part(NamedTuple):
    """One part: what it is, the part as it stands, and its text or its call id if it has one."""

    kind: str
    native: Any
    text: str = ""
    call_id: str | None = None


def parts_of(content: Any) -> Iterator[Part]:
    """Yield the parts of a `content`: a string, a part, or a list of both; null is empty."""
    if isinstance(content, list):
        for item in content:
            yield part_of(item)
    elif content is not None and content != "":
        yield part_of(content)


def part_of(item: Any) -> Part:
    """Return what one piece of content is. The kind of an unknown part is the name of its first telling member."""
    if isinstance(item, str):
        return Part(TEXT, item, item)
    if not isinstance(item, dict):
        return Part(ODD, item)
    text = item.get("text")
    if isinstance(text, str):
        return Part(THOUGHT if item.get("thought") is True else TEXT, item, text)
    for kind in (CALL, RESULT):
        inner = item.get(kind)
        if isinstance(inner, dict):
            call_id = inner.get("id")
            return Part(kind, item, "", call_id if isinstance(call_id, str) and call_id else None)
    for kind in (INLINE, FILE):
        if isinstance(item.get(kind), dict):
            return Part(kind, item)
    telling = next((name for name in item if name not in _MODIFIERS), "part")
    return Part(ODD if telling in _KNOWN else telling, item)


class Likeness(NamedTuple):
    """What two versions of a message have in common: hashes of its text and of the ids of its calls and results.

    `pieces` are the keys that the parts of a user's message would have as messages of their own: checkpoints join
    neighbours.
    """

    kind: str | None
    said: int
    calls: int
    results: int
    parts: tuple[Part, ...] = ()
    pieces: tuple[int, ...] = ()

    @property
    def key(self) -> int:
        """One number for all of it."""
        return hash((self.kind, self.said, self.calls, self.results))

    @property
    def is_telling(self) -> bool:
        """Whether there is an id that no other message has."""
        return bool(self.calls or self.results)


NOTHING: Final = Likeness(None, 0, 0, 0)


def likeness(message: dict[str, Any]) -> Likeness:
    """Return what a message says, whatever form it has."""
    parts = tuple(parts_of(message.get("content")))
    text: list[str] = []
    calls: set[str] = set()
    results: set[str] = set()
    for part in parts:
        if part.kind == TEXT:
            text.append(part.text)
        elif part.call_id is not None:
            (calls if part.kind == CALL else results).add(part.call_id)
    recorded = message.get("toolCalls")
    if isinstance(recorded, list):
        for call in recorded:
            if isinstance(call, dict) and isinstance(call.get("id"), str):
                calls.add(call["id"])
    kind = message.get("type")
    if not isinstance(kind, str):
        kind = None
    pieces = tuple(_piece(kind, part) for part in parts) if kind == "user" and len(parts) > 1 else ()
    return Likeness(kind, hash("".join(text)), _hash(calls), _hash(results), parts, pieces)


def _hash(ids: set[str]) -> int:
    return hash(frozenset(ids)) if ids else 0


def _piece(kind: str | None, part: Part) -> int:
    ids = _hash({part.call_id}) if part.call_id is not None else 0
    calls, results = (ids, 0) if part.kind == CALL else (0, ids)
    return Likeness(kind, hash(part.text), calls, results).key


def is_masked(output: Any) -> bool:
    """Say whether an output holds a text of which a checkpoint kept the ends only."""
    for part in parts_of(output):
        if part.kind == TEXT and part.text.lstrip().startswith(MASK):
            return True
        if part.kind == RESULT:
            response = part.native[RESULT].get("response")
            if isinstance(response, dict):
                for value in response.values():
                    if isinstance(value, str) and value.lstrip().startswith(MASK):
                        return True
    return False

"""What an end event tells beyond the output that the model saw, which the program may have cut.

Source: native-logs.md 4.3, D-LOG-01.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

OUTPUT_MEMBERS: Final = (
    "aggregated_output",
    "formatted_output",
    "stdout",
    "stderr",
    "result",
    "results",
    "content_items",
    "output",
    "error",
)
"""Members of ends that hold an output, the fullest first."""

_HEAD_END: Final = "\nOutput:\n"
_NONE: Final[tuple[Any, ...]] = (None, "", [], {})


def seen_in(output: Any) -> frozenset[int]:
    """Return hashes of what an output shows: of it, of its part behind the program's head, of JSON in it."""
    if type(output) is not str:
        found = set(_marks(output))
        if type(output) is list:
            for part in output:
                text = part.get("text") if type(part) is dict else None
                if type(text) is str:
                    found |= seen_in(text)
        return frozenset(found)
    body = output.partition(_HEAD_END)[2]
    found = {_mark(output), _mark(body)} if body else {_mark(output)}
    native = (body or output).lstrip()
    if native.startswith(("{", "[")):
        try:
            value = orjson.loads(native.encode("utf-8", "replace"))
            found |= _marks(value)
        except (orjson.JSONDecodeError, orjson.JSONEncodeError):
            return frozenset(found)
        if type(value) is dict and type(value.get("output")) is str:
            found.add(_mark(value["output"]))
    return frozenset(found)


def seen_in_end(told: Mapping[str, Any]) -> frozenset[int]:
    """Return hashes of the outputs that an end tells."""
    return frozenset().union(*(_marks(told[name]) for name in OUTPUT_MEMBERS if told.get(name) not in _NONE))


def outputs_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs that an end tells, without those that are part of a fuller one."""
    kept: dict[str, Any] = {}
    for name in OUTPUT_MEMBERS:
        value = told.get(name)
        if value in _NONE:
            continue
        if type(value) is str and any(type(other) is str and value in other for other in kept.values()):
            continue
        kept[name] = value
    return kept


def unseen(outputs: Mapping[str, Any], seen: frozenset[int]) -> dict[str, Any]:
    """Return the outputs that the model did not see as they are."""
    return {name: value for name, value in outputs.items() if seen.isdisjoint(_marks(value))}


def size_of(outputs: Mapping[str, Any]) -> int:
    """Return about how many bytes outputs have."""
    return sum(len(value) if type(value) is str else len(orjson.dumps(value)) for value in outputs.values())


def _mark(text: str) -> int:
    return hash(text.strip())


def _marks(value: Any) -> set[int]:
    """Return the hashes by which equal outputs are known in the forms that events and items give them."""
    found: set[int] = set()
    if type(value) is dict and len(value) == 1:
        found.add(_mark_of_value(value))
        value = value.get("Ok", value.get("Err", value))
    if type(value) is dict and value.get("structuredContent") is None and "content" in value:
        found.add(_mark_of_value(value))
        value = value["content"]
    found.add(_mark(value) if type(value) is str else _mark_of_value(value))
    if type(value) is list and value:
        texts = [part.get("text") if type(part) is dict else part for part in value]
        told = [text for text in texts if type(text) is str]
        if len(told) == len(texts):
            found.add(_mark("".join(told)))
    return found


def _mark_of_value(value: Any) -> int:
    return hash(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))

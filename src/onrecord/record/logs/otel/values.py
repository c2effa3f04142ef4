"""Attributes of spans as plain values, whatever carrier they come in.

    >>> plain([{"key": "gen_ai.usage.input_tokens", "value": {"intValue": "97"}}])
    ({'gen_ai.usage.input_tokens': 97}, 0)
    >>> plain({"llm": {"model_name": "example-1"}})
    ({'llm.model_name': 'example-1'}, 0)

Source: native-logs.md 4.9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.reading.parsing import parse
from onrecord.record.logs.reading.records import NotJson

PREFIXES: Final = ("gen_ai.", "llm.", "openinference.", "ai.")
"""What the names of attributes begin with that tell of an agent."""

MAX_SAFE: Final = 2**53 - 1
"""Largest integer that stays one; larger ones are kept as their digits (D-LOG-24)."""

_NESTED: Final = frozenset(["gen_ai", "llm", "openinference", "ai", "input", "output", "tool", "session"])
"""Top names of attributes that some exporters write as objects instead of with dots."""

_SCALARS: Final = ("stringValue", "boolValue", "doubleValue", "bytesValue")


def plain(attributes: Any) -> tuple[dict[str, Any], int] | None:
    """Return attributes as one flat map, and how many names came twice; None for what are no attributes."""
    if isinstance(attributes, dict):
        if _NESTED.isdisjoint(attributes):
            return attributes, 0
        flat: dict[str, Any] = {}
        for name, value in attributes.items():
            if name in _NESTED and isinstance(value, dict):
                _flatten(name, value, flat)
            else:
                flat[name] = value
        return flat, 0
    if not isinstance(attributes, list):
        return None
    made: dict[str, Any] = {}
    repeated = 0
    for item in attributes:
        if not isinstance(item, dict) or not isinstance(item.get("key"), str):
            return None
        repeated += item["key"] in made
        made[item["key"]] = any_value(item.get("value"))
    return made, repeated


def any_value(value: Any) -> Any:
    """Return the value of an OTLP AnyValue; anything else as it is."""
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, inner),) = value.items()
    if kind in _SCALARS:
        return inner
    if kind == "intValue":
        return integer(inner)
    if kind == "arrayValue":
        items = inner.get("values", []) if _is_of_values(inner) else None
        return [any_value(item) for item in items] if isinstance(items, list) else value
    if kind == "kvlistValue":
        found = plain(inner.get("values", [])) if _is_of_values(inner) else None
        return value if found is None else found[0]
    return value


def _is_of_values(value: Any) -> bool:
    """Say whether an object is a list of OTLP and nothing else."""
    return isinstance(value, dict) and value.keys() <= {"values"}


def integer(value: Any) -> Any:
    """Return digits as an integer if it is one that JSON readers keep; anything else as it is."""
    if (
        isinstance(value, str)
        and len(value) <= 16
        and value.removeprefix("-").isdecimal()
        and value.isascii()
    ):
        number = int(value)
        return number if -MAX_SAFE <= number <= MAX_SAFE else value
    return value


def is_about_agents(attributes: Mapping[str, Any]) -> bool:
    """Say whether any attribute tells of an agent."""
    return any(name.startswith(PREFIXES) for name in attributes)


def embedded(value: Any) -> tuple[Any, list[str]] | None:
    """Return the value of a text that holds a JSON object or list, with the pointers of its changed numbers.

    A value that is structured already is returned as it is; None for any other text.
    """
    if not isinstance(value, str):
        return None if value is None else (value, [])
    if value.lstrip(" \t\r\n")[:1] not in ("[", "{"):
        return None
    try:
        parsed = parse(value.encode("utf-8", "replace"))
    except NotJson:
        return None
    return parsed.value, parsed.numbers


def _flatten(prefix: str, value: Mapping[str, Any], flat: dict[str, Any]) -> None:
    """Put the members of nested objects into one map; lists of objects get their places as names."""
    waiting: list[tuple[str, Any]] = [(prefix, value)]
    while waiting:
        name, inner = waiting.pop()
        if isinstance(inner, dict) and inner and name.count(".") < _MOST_NAMES:
            waiting += [(f"{name}.{member}", item) for member, item in reversed(inner.items())]
        elif isinstance(inner, list) and inner and all(isinstance(item, dict) for item in inner):
            waiting += [(f"{name}.{place}", item) for place, item in reversed(list(enumerate(inner)))]
        else:
            flat[name] = inner


_MOST_NAMES: Final = 12
"""Deepest name that is made of nested objects: a convention's longest has ten parts."""

"""The text that a vCon is written with.

>>> vcon_text({"b": 1, "a": 2**60})
b'{"a":1152921504606846976,"b":1}'

Source: record.md D-07, D-25.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from onrecord.base.errors import MalformedError, Where
from onrecord.record.vcon.canonical_text import canonical_text
from onrecord.record.vcon.paths import Path, pointer_of


def vcon_text(members: Mapping[str, Any]) -> bytes:
    """Return the canonical text (RFC 8785), or compact JSON where integers beyond 2^53-1 admit no canonical one.

    Raises `MalformedError` with code "not-canonical" for half surrogate pairs, numbers that are infinite, and whatever
    else cannot be written.
    """
    try:
        return canonical_text(members)
    except MalformedError as error:
        fault = _fault(members)
        if fault is None:
            try:
                text = json.dumps(
                    members, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
                )
                return text.encode("utf-8")
            except (TypeError, ValueError, RecursionError):
                fault = ("the vCon holds what JSON cannot say", None)
        message, path = fault
        raise MalformedError(
            message,
            code=error.code,
            where=Where(pointer=pointer_of(path)),
            hint="onrecord check FILE names each place (json-lone-surrogate, json-number-range)",
        ) from error


def _fault(members: Mapping[str, Any]) -> tuple[str, Path] | None:
    """Return what cannot be written in any way, and where it stands."""
    work: list[tuple[Any, Path]] = [(members, None)]
    seen: set[int] = set()
    while work:
        value, path = work.pop()
        if isinstance(value, (dict, list)):
            if id(value) in seen:
                continue
            seen.add(id(value))
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in entries:
                if isinstance(key, str) and _is_torn(key):
                    return "a member name holds half a surrogate pair, which UTF-8 cannot say", path
                work.append((item, (path, key)))
        elif isinstance(value, str) and _is_torn(value):
            return "a text holds half a surrogate pair, which UTF-8 cannot say", path
        elif isinstance(value, float) and not isfinite(value):
            return "a number is beyond what JSON readers hold", path
    return None


def _is_torn(text: str) -> bool:
    try:
        text.isascii() or text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False

"""RFC 8785 canonical JSON, with a fast path that gives the same bytes where the facts allow it."""

from __future__ import annotations

from typing import Any

import orjson
import rfc8785

from onrecord.base.errors import MalformedError
from onrecord.base.strict_json import Facts

_SORTED = orjson.OPT_SORT_KEYS


def canonicalize(value: Any, facts: Facts | None = None) -> bytes:
    """Return the canonical bytes of a parsed JSON value.

    `facts` come from the parse of the same text; with neither floats nor wide member names the fast path is taken,
    whose bytes equal the reference. Without `facts` the reference is taken.

    Raises `MalformedError` with code "not-canonical" for a value that has no canonical form.

    Source: RFC 8785; call-proof.md 3.3.
    """
    try:
        if facts is not None and not facts.floats and not facts.wide_keys:
            return orjson.dumps(value, option=_SORTED)
        return rfc8785.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedError("the value has no canonical JSON form", code="not-canonical") from error


def compact(value: Any) -> bytes:
    """Return sorted JSON without white space: the form of our own journal records and state files.

    Raises `MalformedError` with code "not-canonical" for a value that JSON cannot hold.
    """
    try:
        return orjson.dumps(value, option=_SORTED)
    except (TypeError, ValueError) as error:
        raise MalformedError("the value cannot be written as JSON", code="not-canonical") from error

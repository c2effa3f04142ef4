"""Setting `updated_at` of a vCon before it is signed.

    >>> from onrecord.base.dates import ManualClock
    >>> with_updated_at(b'{"uuid": "u", "parties": []}', clock=ManualClock())
    b'{"parties":[],"updated_at":"2026-11-30T10:00:00Z","uuid":"u"}'

Source: record.md 2.11, D-25.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, NoReturn

from onrecord.base.dates import SYSTEM_CLOCK, Clock, format_date
from onrecord.base.errors import MalformedError, Where
from onrecord.record.vcon.canonical_text import canonical_text
from onrecord.record.vcon.reader import MAX_NUMBER_CHARACTERS, read_json


def with_updated_at(vcon: bytes, *, clock: Clock = SYSTEM_CLOCK) -> bytes:
    """Return the text of an unsigned vCon with `updated_at` set to the present time, in canonical form.

    A text with integers beyond 2^53-1 has no canonical form and is written as compact JSON.

    Raises `MalformedError` with code "json-lone-surrogate", or "json-number-range" for a number that writing it anew
    would change, and otherwise as `read_json` does.
    """
    document = read_json(vcon)
    if not isinstance(document.value, dict):
        raise MalformedError("the text is no vCon", code="form-unknown", where=Where(pointer=""))
    document.require_whole_texts()
    moment = datetime.fromtimestamp(clock.now_ns() // 1_000_000 / 1000, tz=UTC)
    members: dict[str, Any] = {**document.value, "updated_at": format_date(moment)}
    if any(code == "json-number-range" for code, _ in document.notes):
        return _compact(vcon, members)
    return canonical_text(members)


def _compact(vcon: bytes, members: dict[str, Any]) -> bytes:
    """Write what has no canonical form, after making sure that every number is written as it was read."""
    json.loads(vcon, parse_float=_exact_float, parse_int=_exact_integer)
    return json.dumps(members, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def _exact_float(token: str) -> float:
    value = float(token)
    return value if repr(value) == token else _refuse()


def _exact_integer(token: str) -> int:
    return int(token) if len(token) <= MAX_NUMBER_CHARACTERS else _refuse()


def _refuse() -> NoReturn:
    raise MalformedError(
        "a number has more digits than can be written anew",
        code="json-number-range",
        hint="sign the text as it is: --keep-updated-at",
    )

"""What makes a vCon a new instance: a new uuid, its dates, and the reference to the one it was made from.

Source: record.md 2.10, D-03, D-10.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from onrecord.base.dates import SYSTEM_CLOCK, Clock, format_date
from onrecord.base.ids import uuid7, uuid8
from onrecord.record.vcon.references import NAMES

_OLDER_NAMES: Final = {
    "redacted_from": dict.fromkeys(("0.0.1", "0.0.2", "0.3.0", "0.4.0"), "redacted"),
    "amended_from": {**dict.fromkeys(("0.0.1", "0.0.2", "0.3.0"), "appended"), "0.4.0": "amended"},
}
"""Names of the prior references by version of vCon core (record.md 1.3)."""

REPLACED: Final = frozenset(
    ["uuid", "created_at", "updated_at", *NAMES["redacted_from"], *NAMES["amended_from"]]
)
"""Members of the vCon that a new instance gets anew, or not at all."""


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value. Raises `RecursionError` for one nested deeper than any that is read."""
    if type(value) is dict:
        return {name: copy_json(item) for name, item in value.items()}
    if type(value) is list:
        return [copy_json(item) for item in value]
    return value


def new_identity(*, domain: str | None = None, clock: Clock = SYSTEM_CLOCK) -> dict[str, Any]:
    """Return uuid, created_at and updated_at of a new instance. With a `domain` the uuid is one of version 8."""
    now = format_date(datetime.fromtimestamp(clock.now_ns() / 1e9, tz=UTC))
    uuid = uuid8(domain, clock=clock) if domain is not None else uuid7(clock=clock)
    return {"uuid": uuid, "created_at": now, "updated_at": now}


def prior_name(name: str, version: str) -> str:
    """Return how `redacted_from` or `amended_from` is called in a version of vCon core."""
    return _OLDER_NAMES[name].get(version, name)

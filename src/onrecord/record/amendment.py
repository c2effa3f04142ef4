"""Amends a vCon: a deep copy as a new instance that names the one it was made from, ready for additions.

>>> from onrecord.record.vcon.model import Vcon
>>> vcon = Vcon.read(b'{"uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd","created_at":"2026-11-02T09:00:00Z"}')
>>> amend(vcon).members["amended_from"]
{'uuid': '01a19b83-0f20-8b33-832a-bc92ac6830cd'}

A signed or encrypted vCon is never changed: this is how something is added to what it holds.

Source: record.md 2.10, D-32.
"""

from __future__ import annotations

from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.record.instances import REPLACED, copy_json, new_identity, prior_name
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.references import NAMES


def amend(
    vcon: Vcon, *, domain: str | None = None, clock: Clock = SYSTEM_CLOCK, uuid: str | None = None
) -> Vcon:
    """Return a deep copy of a vCon with a new uuid and `amended_from`.

    Everything comes along, also what nobody knows, except a reference to an earlier version: a vCon has one of them.
    Only the reference of a redacted vCon stays and is the one, for without it what redaction left would be an error;
    then there is no `amended_from`. The reference is called as in the vCon's own version of core. `domain` makes the
    new uuid one of version 8; `uuid` sets it.

    Raises `UsageError` with code "uuid-missing" if the vCon has none to be named by, and `MalformedError` with code
    "json-depth".
    """
    if vcon.uuid is None:
        raise UsageError(
            "the vCon has no uuid, so an amended one cannot name it",
            code="uuid-missing",
            where=Where(pointer="/uuid"),
            hint="give the original a uuid first",
        )
    try:
        members = {name: copy_json(value) for name, value in vcon.members.items() if name not in REPLACED}
    except RecursionError:
        raise MalformedError(
            "the vCon is nested too deep", code="json-depth", where=Where(pointer="")
        ) from None
    identity = new_identity(domain=domain, clock=clock)
    if uuid is not None:
        identity["uuid"] = uuid
    redacted = {
        name: copy_json(value)
        for name in NAMES["redacted_from"]
        if type(value := vcon.members.get(name)) is dict and value
    }
    reference = redacted or {prior_name("amended_from", vcon.version): {"uuid": vcon.uuid}}
    return Vcon({**identity, **members, **reference})

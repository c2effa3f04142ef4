"""Entries as trace records of the record journal: what stays, and what is beside it and can be erased.

Digests, arguments and content are bodies: short arguments can be guessed from a digest, so it goes with them.

Source: transparency.md 4.3, 4.10; running.md 3 (authority.digest_key), 9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from onrecord.base.canonical import compact
from onrecord.base.dates import format_ms
from onrecord.base.errors import LogError
from onrecord.record.ledger.records import Body
from onrecord.record.recorder.entries import (
    Connection,
    Decision,
    Entry,
    Gap,
    Invocation,
    Proof,
    Response,
    read_entry,
)
from onrecord.record.recorder.members import BadEntryError

TRACE: Final = "trace"
TRACE_INVALID: Final = "trace.invalid"
GAP: Final = "gap"
STATE: Final = "recorder.state"
"""Types of records that only the recorder writes."""

DIGESTS: Final = "digests"
ARGUMENTS: Final = "arguments"
CONTENT: Final = "content"
ENTRY: Final = "entry"
CARRY: Final = "carry"
"""Parts of bodies."""


class Origin(NamedTuple):
    """Who appends: peer uid, server id (None: the authority), and the source id of its hello."""

    uid: int
    server: str | None
    source: str

    def to_json(self) -> dict[str, Any]:
        """Return the members by which a trace record names its origin."""
        return {"source": self.source, "uid": self.uid, "server": self.server}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Origin:
        """Read the origin of a trace record."""
        try:
            return cls(int(data["uid"]), data["server"], str(data["source"]))
        except (KeyError, TypeError, ValueError):
            raise LogError("a trace record names no origin", code="record-malformed") from None


class Stored(NamedTuple):
    """A trace record as it goes into the journal."""

    data: dict[str, Any]
    bodies: tuple[Body, ...]
    size_bytes: int


def store(entry: Entry, origin: Origin, *, replaced: int = 0) -> Stored:
    """Return the record of an entry; `replaced` counts the credentials that were taken out of it."""
    wire: dict[str, Any] = {
        "n": entry.n,
        "kind": entry.kind,
        "time": format_ms(entry.wall_ms * 1_000_000),
        "mono_ns": entry.mono_ns,
    }
    digests: dict[str, str] = {}
    bodies: list[Body] = []
    _DESCRIBE[type(entry)](entry, wire, digests, bodies)
    if digests:
        bodies.append(Body(DIGESTS, compact(digests)))
    data: dict[str, Any] = {**origin.to_json(), "entry": {k: v for k, v in wire.items() if v is not None}}
    if replaced:
        data["credentials_replaced"] = replaced
    return Stored(data, tuple(bodies), sum(len(body.bytes) for body in bodies))


def load(data: Mapping[str, Any], bodies: Mapping[str, bytes] | None = None) -> Entry:
    """Return the entry of a trace record, with as much of its bodies as is at hand.

    Raises `LogError` with code "record-malformed".
    """
    wire = data.get("entry")
    if not isinstance(wire, dict):
        raise LogError("a trace record holds no entry", code="record-malformed")
    wire = dict(wire)
    try:
        for part, raw in (bodies or {}).items():
            if part == DIGESTS:
                wire.update(orjson.loads(raw))
            elif part in (ARGUMENTS, CONTENT):
                wire[part] = orjson.loads(raw)
        return read_entry(wire, is_stored=True)
    except (BadEntryError, ValueError) as error:
        raise LogError(
            "a trace record holds an entry that cannot be read", code="record-malformed"
        ) from error


def store_invalid(value: Any, origin: Origin, *, n: int, member: str, filtered: Any) -> Stored:
    """Return the record of an entry that cannot be read: which member is wrong, and what came as an erasable body.

    `filtered` is the entry without credentials. Arguments and content stay out: nobody can say whether the call was
    allowed.
    """
    kind = value.get("kind") if isinstance(value, dict) else None
    data: dict[str, Any] = {**origin.to_json(), "n": n, "member": member}
    if isinstance(kind, str) and len(kind) <= 32 and kind.isascii() and kind.replace("-", "").isalpha():
        data["kind"] = kind
    kept = filtered
    if isinstance(filtered, dict):
        kept = {name: part for name, part in filtered.items() if name not in (ARGUMENTS, CONTENT)}
        omitted = sorted({ARGUMENTS, CONTENT} & set(filtered))
        if omitted:
            data["omitted"] = omitted
    raw = compact(kept)
    return Stored(data, (Body(ENTRY, raw),), len(raw))


def _describe_decision(
    entry: Decision, wire: dict[str, Any], digests: dict[str, str], _bodies: list[Body]
) -> None:
    wire["session"] = {"uid": entry.uid, "caller": entry.caller, "label": entry.label}
    wire["server"] = entry.server
    wire["tool"] = entry.tool
    wire["decision"] = entry.decision
    wire["operationId"] = entry.operation_id
    wire["proofRef"] = entry.proof_ref
    wire["approvalId"] = entry.approval_id
    wire["ref"] = entry.ref
    wire["reason"] = entry.reason
    if entry.action_digest is not None:
        digests["actionDigest"] = entry.action_digest
    if entry.input_digest is not None:
        digests["inputDigest"] = entry.input_digest


def _describe_proof(entry: Proof, wire: dict[str, Any], digests: dict[str, str], _bodies: list[Body]) -> None:
    wire["operationId"] = entry.operation_id
    wire["server"] = entry.server
    wire["proofRef"] = entry.proof_ref
    wire["approvalId"] = entry.approval_id
    wire["round"] = entry.round
    if entry.action_digest is not None:
        digests["actionDigest"] = entry.action_digest


def _describe_connection(
    entry: Connection, wire: dict[str, Any], _digests: dict[str, str], _bodies: list[Body]
) -> None:
    wire["connection"] = entry.connection
    wire["state"] = "open" if entry.is_open else "close"
    wire["protocol"] = entry.protocol
    wire["cause"] = entry.cause
    wire["serverInfo"] = _named(name=entry.server_name, version=entry.server_version)
    wire["clientInfo"] = _named(name=entry.client_name, version=entry.client_version)
    wire["peer"] = _named(uid=entry.peer_uid, pid=entry.peer_pid)
    wire["session"] = _named(uid=entry.uid, label=entry.label)


def _named(**members: Any) -> dict[str, Any] | None:
    kept = {name: value for name, value in members.items() if value is not None}
    return kept or None


def _describe_invocation(
    entry: Invocation, wire: dict[str, Any], digests: dict[str, str], bodies: list[Body]
) -> None:
    wire["connection"] = entry.connection
    wire["call"] = entry.call
    wire["session"] = {"uid": entry.uid, "label": entry.label}
    wire["server"] = entry.server
    wire["tool"] = entry.tool
    wire["proofRef"] = entry.proof_ref
    wire["operationId"] = entry.operation_id
    wire["admitted"] = entry.is_admitted
    if entry.action_digest is not None:
        digests["actionDigest"] = entry.action_digest
    if entry.arguments is not None:
        bodies.append(Body(ARGUMENTS, compact(entry.arguments)))


def _describe_response(
    entry: Response, wire: dict[str, Any], _digests: dict[str, str], bodies: list[Body]
) -> None:
    wire["connection"] = entry.connection
    wire["call"] = entry.call
    if entry.content is not None:
        bodies.append(Body(CONTENT, compact(entry.content)))


def _describe_gap(entry: Gap, wire: dict[str, Any], _digests: dict[str, str], _bodies: list[Body]) -> None:
    wire["from"] = entry.start
    wire["to"] = entry.end
    wire["entries"] = entry.entries
    wire["cause"] = entry.cause


_DESCRIBE: Final[Mapping[type[Entry], Any]] = {
    Decision: _describe_decision,
    Proof: _describe_proof,
    Connection: _describe_connection,
    Invocation: _describe_invocation,
    Response: _describe_response,
    Gap: _describe_gap,
}

"""Entries of record/append: read once, at the border, into objects that have a member for nothing secret.

    >>> entry = read_entry({"n": 3, "kind": "timeout", "time": "2026-11-30T10:00:00.000Z", "mono_ns": 7,
    ...                     "connection": "1", "call": "1.3", "content": {"waited_ms": 60000}})
    >>> entry.kind, entry.n, entry.call
    ('timeout', 3, '1.3')

Members that no entry has are dropped: whoever sends a proof value by mistake does not get it recorded.

Source: running.md 8.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from onrecord.record.recorder.members import (
    MAX_NUMBER,
    BadEntryError,
    action_digest,
    digest,
    matching,
    mono_ns,
    object_member,
    optional_date,
    optional_object,
    optional_text,
    optional_uint,
    text_member,
    uid,
    wall_ms,
)

AUTHORITY_KINDS: Final = frozenset({"decision", "proof", "gap"})
"""Kinds that the authority may append."""

RESPONSE_KINDS: Final = frozenset(
    {
        "progress",
        "pending",
        "input",
        "input-response",
        "result",
        "failure",
        "error",
        "denied",
        "timeout",
        "cancel",
    }
)
"""Kinds that belong to a call and become the event `tool-<kind>`."""

ENDS: Final = frozenset({"result", "failure", "error", "denied"})
"""Kinds that end an attempt."""

GUARD_KINDS: Final = frozenset({"connection", "invocation", "gap"}) | RESPONSE_KINDS
"""Kinds that a guard may append."""

MAX_TOOL: Final = 1024
"""Characters of a tool's name."""

MAX_NAME: Final = 256
"""Characters of the name or version that a server or client gives itself."""

_LABEL = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)
_SERVER = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_REASON = re.compile(r"call-proof: [a-z_]{1,40}", re.ASCII)
_REF = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What every entry has: number, wall time of the observation in ms since 1970, CLOCK_BOOTTIME in ns."""

    n: int
    kind: str
    wall_ms: int
    mono_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Entry):
    """A decision of the authority about one operation. `action_digest` is None only when it was erased."""

    uid: int
    caller: str
    label: str
    server: str
    tool: str
    action_digest: str | None
    input_digest: str | None
    decision: Literal["allowed", "permission-required", "disallowed"]
    operation_id: str
    proof_ref: str | None
    approval_id: str | None
    ref: str | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof(Entry):
    """A proof without a decision of its own: after an approval, or for a later round."""

    operation_id: str
    server: str
    action_digest: str | None
    proof_ref: str
    approval_id: str | None
    round: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection(Entry):
    """A client's connection to a guard. `label` and `uid` name its record session, if the guard knows it."""

    connection: str
    is_open: bool
    protocol: str | None
    server_name: str | None
    server_version: str | None
    client_name: str | None
    client_version: str | None
    peer_uid: int | None
    peer_pid: int | None
    uid: int | None
    label: str | None
    cause: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation(Entry):
    """A tools/call that reached a guard. `arguments` is None unless the call was admitted and had some."""

    connection: str
    call: str
    uid: int
    label: str
    server: str
    tool: str
    action_digest: str | None
    proof_ref: str | None
    operation_id: str
    is_admitted: bool
    arguments: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Response(Entry):
    """Something that happened in a call after its invocation. `content` is None when there is none."""

    connection: str
    call: str
    content: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap(Entry):
    """Entries were lost. `start` and `end` are dates of the last one before and the first one after, if known."""

    start: str | None
    end: str | None
    entries: int
    cause: str


def entry_number(value: Any) -> int | None:
    """Return the number of an entry, or None if it has none that could be one."""
    n = value.get("n") if isinstance(value, dict) else None
    return n if type(n) is int and 1 <= n <= MAX_NUMBER else None


def read_entry(value: Any, *, is_stored: bool = False) -> Entry:
    """Read one entry. With `is_stored` it comes from the journal, and digests may have been erased.

    Raises `BadEntryError` naming the first member that is missing or wrong, never its value.

    Source: running.md 8.
    """
    if not isinstance(value, dict):
        raise BadEntryError("(entry)")
    n = entry_number(value)
    if n is None:
        raise BadEntryError("n")
    kind = text_member(value, "kind", 32)
    common: dict[str, Any] = {"n": n, "kind": kind, "wall_ms": wall_ms(value), "mono_ns": mono_ns(value)}
    if kind == "decision":
        return _decision(value, common, is_stored=is_stored)
    if kind == "invocation":
        return _invocation(value, common)
    if kind in RESPONSE_KINDS:
        return Response(
            connection=text_member(value, "connection", 64),
            call=text_member(value, "call", 128),
            content=_response_content(kind, value.get("content")),
            **common,
        )
    if kind == "proof":
        return Proof(
            operation_id=text_member(value, "operationId", 64),
            server=matching(value, "server", _SERVER),
            action_digest=action_digest(value, is_optional=is_stored),
            proof_ref=digest(value, "proofRef"),
            approval_id=optional_text(value, "approvalId", 64),
            round=optional_uint(value, "round"),
            **common,
        )
    if kind == "connection":
        return _connection(value, common)
    if kind == "gap":
        return Gap(
            start=optional_date(value, "from"),
            end=optional_date(value, "to"),
            entries=optional_uint(value, "entries") or 0,
            cause=optional_text(value, "cause", 200) or "unknown",
            **common,
        )
    raise BadEntryError("kind")


def _decision(value: dict[str, Any], common: dict[str, Any], *, is_stored: bool) -> Decision:
    session = object_member(value, "session")
    decision = value.get("decision")
    if decision not in ("allowed", "permission-required", "disallowed"):
        raise BadEntryError("decision")
    reason = value.get("reason")
    ref = value.get("ref")
    return Decision(
        uid=uid(session, "uid"),
        caller=text_member(session, "caller", 256),
        label=matching(session, "label", _LABEL),
        server=matching(value, "server", _SERVER),
        tool=text_member(value, "tool", MAX_TOOL),
        action_digest=action_digest(value, is_optional=is_stored),
        input_digest=digest(value, "inputDigest") if value.get("inputDigest") is not None else None,
        decision=decision,
        operation_id=text_member(value, "operationId", 64),
        proof_ref=digest(value, "proofRef") if value.get("proofRef") is not None else None,
        approval_id=optional_text(value, "approvalId", 64),
        # Nothing but the two fixed forms: a reason could otherwise quote what was refused (TI-124).
        ref=ref if isinstance(ref, str) and _REF.fullmatch(ref) else None,
        reason=reason if isinstance(reason, str) and _REASON.fullmatch(reason) else None,
        **common,
    )


def _invocation(value: dict[str, Any], common: dict[str, Any]) -> Invocation:
    session = object_member(value, "session")
    admitted = value.get("admitted")
    if type(admitted) is not bool:
        raise BadEntryError("admitted")
    arguments = value.get("arguments") if admitted else None
    if arguments is not None and not isinstance(arguments, dict):
        raise BadEntryError("arguments")
    return Invocation(
        connection=text_member(value, "connection", 64),
        call=text_member(value, "call", 128),
        uid=uid(session, "uid"),
        label=matching(session, "label", _LABEL),
        server=matching(value, "server", _SERVER),
        tool=text_member(value, "tool", MAX_TOOL),
        action_digest=action_digest(value, is_optional=True),
        proof_ref=digest(value, "proofRef") if value.get("proofRef") is not None else None,
        operation_id=text_member(value, "operationId", 64),
        is_admitted=admitted,
        arguments=arguments,
        **common,
    )


def _connection(value: dict[str, Any], common: dict[str, Any]) -> Connection:
    state = value.get("state")
    if state not in ("open", "close"):
        raise BadEntryError("state")
    server_info = optional_object(value, "serverInfo")
    client_info = optional_object(value, "clientInfo")
    peer = optional_object(value, "peer")
    session = optional_object(value, "session")
    return Connection(
        connection=text_member(value, "connection", 64),
        is_open=state == "open",
        protocol=optional_text(value, "protocol", 64),
        server_name=optional_text(server_info, "name", MAX_NAME),
        server_version=optional_text(server_info, "version", MAX_NAME),
        client_name=optional_text(client_info, "name", MAX_NAME),
        client_version=optional_text(client_info, "version", MAX_NAME),
        peer_uid=uid(peer, "uid") if peer.get("uid") is not None else None,
        peer_pid=optional_uint(peer, "pid"),
        uid=uid(session, "uid") if session else None,
        label=matching(session, "label", _LABEL) if session else None,
        cause=optional_text(value, "cause", 64),
        **common,
    )


_ENVELOPE: Final[Mapping[str, tuple[str, ...]]] = {
    "result": ("_meta", "resultType", "requestState"),
    "failure": ("_meta", "resultType", "requestState"),
    "progress": ("_meta", "progressToken"),
    "pending": ("_meta", "taskId", "requestState"),
    "input": ("_meta", "requestState"),
    "input-response": ("_meta", "requestState"),
}
"""Members of protocol envelopes. A guard leaves them out already; here they are kept out (record.md 7.1, PR-02)."""

_HTTP_DENIAL: Final = ("http_status", "error", "scope", "error_description")


def _response_content(kind: str, content: Any) -> Any:
    if not isinstance(content, dict):
        return content
    if kind == "denied":
        return _denial(content)
    dropped = _ENVELOPE.get(kind)
    if dropped is not None and any(name in content for name in dropped):
        return {name: member for name, member in content.items() if name not in dropped}
    return content


def _denial(content: dict[str, Any]) -> dict[str, Any]:
    """Return what a denial may say: code, message and reason, or the HTTP form (record.md D-60, D-61)."""
    if "code" not in content and "http_status" in content:
        return {name: content[name] for name in _HTTP_DENIAL if name in content}
    kept: dict[str, Any] = {name: content[name] for name in ("code", "message") if name in content}
    data = content.get("data")
    if isinstance(data, dict) and "reason" in data:
        kept["data"] = {"reason": data["reason"]}
    return kept

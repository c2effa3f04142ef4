"""Parameters of the callProof methods, parsed once at the border. Unknown members are ignored.

Source: call-proof.md 5.1, 5.2, 5.4, 5.7.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from onrecord.authorize.authority.limits import MAX_WAIT_MS
from onrecord.authorize.authority.reasons import CODES, MESSAGES, Reason
from onrecord.authorize.tool_names import MAX_TOOL_NAME_BYTES, MAX_TOOLS, is_tool_name
from onrecord.base.errors import MalformedError
from onrecord.base.hashes import SchemaHash
from onrecord.base.namespaces import PROTOCOL_VERSION
from onrecord.base.wire import RpcError

COVERED_METHODS: Final = ("tools/call",)
"""Version "1" covers exactly this method (call-proof.md 6.1)."""

SERVER_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
RECORD_SESSION: Final = re.compile(r"[A-Za-z0-9._:-]{1,64}", re.ASCII)

SHA256_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]", re.ASCII)
"""SHA-256 as canonical base64url without padding: the last character carries four bits, so its low bits are zero."""

MAX_OPERATION_ID_CHARACTERS: Final = 64
"""Longest operationId that is looked at (call-proof.md 5.2)."""

MAX_EVIDENCE_TYPES: Final = 16
"""Evidence types that one request may list; an authority has a handful."""


class RefusedRequest(RpcError):
    """A request that is refused with a reason of call-proof.md 5.3. `detail` is for the journal too."""

    def __init__(self, reason: Reason, *, detail: str | None = None, **extra: Any) -> None:
        data: dict[str, Any] = {"reason": str(reason)}
        if detail is not None:
            data["detail"] = detail
        super().__init__(CODES[reason], MESSAGES[reason], data | extra)
        self.refusal = reason
        self.detail = detail


def _invalid(detail: str) -> RefusedRequest:
    return RefusedRequest(Reason.INVALID_PARAMS, detail=detail)


class IssueParams(NamedTuple):
    """Parameters of callProof/issue."""

    method: str
    name: str
    arguments: dict[str, Any]
    server: str
    evidence_types: tuple[str, ...] | None
    wait_ms: int
    operation_id: str | None
    record_session: str | None


def read_issue(params: dict[str, Any]) -> IssueParams:
    """Read the parameters of an issue request.

    Raises `RefusedRequest` with invalid_params, unsupported_method or invalid_arguments; `detail` names the member.
    """
    method = params.get("method")
    if type(method) is not str:
        raise _invalid("method")
    if method not in COVERED_METHODS:
        raise RefusedRequest(Reason.UNSUPPORTED_METHOD)
    name = params.get("name")
    if not is_tool_name(name):
        raise _invalid("name")
    server = read_server(params)
    arguments = params.get("arguments", _ABSENT)
    if arguments is _ABSENT:
        arguments = {}
    elif type(arguments) is not dict:
        raise RefusedRequest(Reason.INVALID_ARGUMENTS, detail="not_object")
    return IssueParams(method, name, arguments, server, *_optional(params))


_ABSENT: Final = object()

_Optional = tuple[tuple[str, ...] | None, int, str | None, str | None]


def _optional(params: dict[str, Any]) -> _Optional:
    types = params.get("evidenceTypes")
    if "evidenceTypes" in params and (
        type(types) is not list
        or not 0 < len(types) <= MAX_EVIDENCE_TYPES
        or any(type(one) is not str or not one for one in types)
    ):
        raise _invalid("evidenceTypes")
    wait_ms = params.get("waitMs", 0)
    if type(wait_ms) is not int or not 0 <= wait_ms <= MAX_WAIT_MS:
        raise _invalid("waitMs")
    if "inputResponses" in params and type(params["inputResponses"]) is not dict:
        raise _invalid("inputResponses")
    if "requestState" in params and type(params["requestState"]) is not str:
        raise _invalid("requestState")
    operation = params.get("operationId")
    if "operationId" in params and (
        type(operation) is not str or len(operation) > MAX_OPERATION_ID_CHARACTERS
    ):
        raise _invalid("operationId")
    session = params.get("recordSession")
    if "recordSession" in params and (type(session) is not str or not RECORD_SESSION.fullmatch(session)):
        raise _invalid("recordSession")
    return (None if types is None else tuple(types), wait_ms, operation, session)


def read_server(params: dict[str, Any]) -> str:
    """Return the member `server`: a deployment id. Raises `RefusedRequest` with invalid_params."""
    server = params.get("server")
    if type(server) is not str or not SERVER_ID.fullmatch(server):
        raise _invalid("server")
    return server


class VerifyParams(NamedTuple):
    """Parameters of callProof/verify. `evidence` is judged by the proof store."""

    action_digest: str
    server: str
    evidence: Any
    method: str | None
    name: str | None
    input_digest: str | None
    peer_uid: int | None
    without_id: bool
    """The relay dropped a call that came as a notification (call-proof.md 6.5, rule 2)."""


def read_verify(params: dict[str, Any]) -> VerifyParams:
    """Read the parameters of a verify request. Raises `RefusedRequest` with invalid_params."""
    server = read_server(params)
    action_digest = _digest(params, "actionDigest")
    if "evidence" not in params:
        raise _invalid("evidence")
    input_digest = _digest(params, "inputDigest") if "inputDigest" in params else None
    method = _log_text(params, "method")
    name = _log_text(params, "name")
    peer_uid = params.get("peerUid")
    if "peerUid" in params and (type(peer_uid) is not int or not 0 <= peer_uid < 2**32):
        raise _invalid("peerUid")
    return VerifyParams(
        action_digest,
        server,
        params["evidence"],
        method,
        name,
        input_digest,
        peer_uid,
        params.get("withoutId") is True,
    )


def _digest(params: dict[str, Any], member: str) -> str:
    digest = params.get(member)
    if type(digest) is str and SHA256_TEXT.fullmatch(digest):
        return digest
    raise _invalid(member)


def _log_text(params: dict[str, Any], member: str) -> str | None:
    """Return a member that serves the log alone. What an agent made too long is cut, so that its report arrives."""
    value = params.get(member)
    if type(value) is str:
        return value[:MAX_TOOL_NAME_BYTES]
    if member in params:
        raise _invalid(member)
    return None


def read_tools(params: dict[str, Any]) -> dict[str, str]:
    """Read the list of a callProof/tools request: tool name to schema hash.

    Raises `RefusedRequest` with invalid_params for a name twice, a missing member, or a list that is too long.
    """
    tools = params.get("tools")
    if type(tools) is not list or len(tools) > MAX_TOOLS:
        raise _invalid("tools")
    hashes: dict[str, str] = {}
    for index, tool in enumerate(tools):
        name = tool.get("name") if type(tool) is dict else None
        if not is_tool_name(name):
            raise _invalid(f"tools/{index}/name")
        if name in hashes:
            raise _invalid(f"tools/{index}/name")
        try:
            hashes[name] = SchemaHash.read(tool.get("inputSchemaSha256"))
        except MalformedError:
            raise _invalid(f"tools/{index}/inputSchemaSha256") from None
    return hashes


def read_hello(params: dict[str, Any]) -> None:
    """Check that a hello has a version in common; without `versions` version "1" applies.

    Raises `RefusedRequest` with unsupported_version, or invalid_params if `versions` is no list of strings.
    """
    versions = params.get("versions", [PROTOCOL_VERSION])
    if type(versions) is not list or any(type(one) is not str for one in versions):
        raise _invalid("versions")
    if PROTOCOL_VERSION not in versions:
        raise RefusedRequest(Reason.UNSUPPORTED_VERSION, supported=[PROTOCOL_VERSION])


def loggable(params: dict[str, Any]) -> dict[str, str]:
    """Return server, method and name of a refused request, as far as they are short strings."""
    return {
        member: value
        for member in ("server", "method", "name")
        if type(value := params.get(member)) is str and len(value) <= MAX_TOOL_NAME_BYTES
    }

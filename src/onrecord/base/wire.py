"""JSON-RPC 2.0 over Unix sockets, one object a line (call-proof.md 4.2): reading, answering, calling.

A server is an object with `on_request`; answers are bytes, so that a hot path may build them as it likes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from onrecord.base.errors import OnrecordError
from onrecord.base.strict_json import MESSAGE_DEPTH, Facts, Refused, parse

LINE_BYTES: Final = 1_048_576
"""Largest line with its LF on the call-proof sockets (call-proof.md 4.2)."""

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
UNKNOWN_METHOD: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

Id = str | int | None


class RpcError(OnrecordError):
    """A JSON-RPC error: `rpc_code`, the message, and `data` whose member "reason" programs branch on."""

    def __init__(self, rpc_code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        self.data: dict[str, Any] = dict(data or {})
        reason = self.data.get("reason")
        word = reason.replace("_", "-") if isinstance(reason, str) else "rpc-error"
        super().__init__(message, code=word)
        self.rpc_code = rpc_code

    @property
    def reason(self) -> str | None:
        """Return `data.reason` in folded form: lower case, "-" and space as "_" (call-proof.md 6.3)."""
        reason = self.data.get("reason")
        return reason.lower().replace("-", "_").replace(" ", "_") if isinstance(reason, str) else None


class Request(NamedTuple):
    """One request: `id` is its id, `params` its parameters, `facts` and `raw` what canonicalization may use."""

    id: str | int
    method: str
    params: dict[str, Any]
    facts: Facts
    raw: bytes


def encode(message: Any) -> bytes:
    """Return one line: the message in compact UTF-8 JSON and LF."""
    return orjson.dumps(message) + b"\n"


def result_line(request_id: Id, result: Any) -> bytes:
    """Return the answer line of a request that succeeded."""
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "result": result}) + b"\n"


def error_line(request_id: Id, rpc_code: int, message: str, data: Mapping[str, Any] | None = None) -> bytes:
    """Return the answer line of a request that failed."""
    error: dict[str, Any] = {"code": rpc_code, "message": message}
    if data:
        error["data"] = dict(data)
    return orjson.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}) + b"\n"


TOO_LARGE_LINE: Final = error_line(None, INVALID_REQUEST, "Line too long", {"reason": "too_large"})


def read_line(line: bytes, *, max_depth: int = MESSAGE_DEPTH) -> Request | bytes | None:
    """Read one line without its LF: a request, the error line that answers a broken one, or None for a notification.

    Source: call-proof.md 4.2.
    """
    if line.endswith(b"\r"):
        line = line[:-1]
    try:
        message, facts = parse(line, max_depth=max_depth)
    except Refused as refusal:
        return _refuse(line, refusal.reason)
    if type(message) is not dict:
        return error_line(None, INVALID_REQUEST, "Not a JSON-RPC object", {"reason": "invalid_request"})
    method = message.get("method")
    request_id = message.get("id")
    if type(request_id) is not str and type(request_id) is not int:
        if "id" not in message and type(method) is str and message.get("jsonrpc") == "2.0":
            return None
        return error_line(
            None,
            INVALID_REQUEST,
            "The id is no string or integer",
            {"reason": "invalid_request", "detail": "id"},
        )
    if message.get("jsonrpc") != "2.0" or type(method) is not str:
        return error_line(
            request_id, INVALID_REQUEST, "Not a JSON-RPC 2.0 request", {"reason": "invalid_request"}
        )
    params = message.get("params", {})
    if type(params) is not dict:
        return error_line(
            request_id,
            INVALID_PARAMS,
            "params is no object",
            {"reason": "invalid_params", "detail": "params"},
        )
    return Request(request_id, method, params, facts, line)


def _refuse(line: bytes, reason: str) -> bytes:
    if reason in ("bom", "not_utf8", "syntax"):
        return error_line(None, PARSE_ERROR, "Not JSON", {"reason": "parse_error", "detail": reason})
    request_id, method = recover(line)
    if method == "callProof/issue":
        return error_line(
            request_id, INVALID_PARAMS, "Arguments refused", {"reason": "invalid_arguments", "detail": reason}
        )
    return error_line(
        request_id, INVALID_REQUEST, "Request refused", {"reason": "invalid_request", "detail": reason}
    )


def recover(line: bytes) -> tuple[Id, str | None]:
    """Read a refused line leniently, only to find its id and method. What cannot be found is None."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(message, dict):
        return None, None
    request_id, method = message.get("id"), message.get("method")
    if type(request_id) is int and abs(request_id) >= 2**63:
        request_id = None
    if type(request_id) is str and not request_id.isascii():
        request_id = request_id if request_id.encode("utf-8", "replace").decode() == request_id else None
    return (
        request_id if type(request_id) in (str, int) else None,
        method if isinstance(method, str) else None,
    )


class LineSplitter:
    """Cuts a byte stream into lines. `overflow` turns true when a line is longer than the limit."""

    __slots__ = ("_limit", "_parts", "_size", "overflow")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self.overflow = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes in and return the lines that are complete, without their LF.

        After a line over the limit nothing more is returned and `overflow` is true.
        """
        if self.overflow:
            return []
        lines = data.split(b"\n")
        rest = lines.pop()
        may_overflow = self._size + len(data) >= self._limit
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
        if may_overflow:
            for index, line in enumerate(lines):
                if len(line) >= self._limit:
                    self.overflow = True
                    return lines[:index]
        if rest:
            self._parts.append(rest)
            self._size += len(rest)
            if self._size >= self._limit:
                self.overflow = True
                self._parts.clear()
        return lines

    @property
    def pending(self) -> bytes:
        """Return the bytes of the line that is not complete yet."""
        return b"".join(self._parts)

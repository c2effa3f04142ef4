"""Reading lines of record.sock leniently: what a tool server answered is recorded, however odd its JSON is.

The call-proof sockets refuse what two parsers read in two ways, because a digest depends on it. Here nothing does, and
a refused line would stop a guard's spool for ever. Integers of any size, duplicate names (the last one counts) and
unpaired surrogates are read; the surrogates become U+FFFD, infinite numbers become strings.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import orjson

from onrecord.base.strict_json import Facts, nesting
from onrecord.base.wire import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Request, error_line
from onrecord.record.recorder.settings import MESSAGE_DEPTH

_FACTS: Final = Facts(floats=True, wide_keys=True)
_DIGITS: Final = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER: Final = b"0" * 20
"""A run of digits as long as the first number that does not fit into 64 bits."""

APPEND_LEVELS: Final = 3
"""Containers around an entry in record/append: message, params, entries."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INTEGER: Final = 2**63 - 1
"""Largest integer that our writer keeps as a number; a larger one becomes a string of its digits."""


def read_line(line: bytes) -> Request | bytes | None:
    """Read one line without its LF: a request, the error line that answers a broken one, None for a notification."""
    if _is_deeper(line, MESSAGE_DEPTH):
        return error_line(
            None, INVALID_REQUEST, "Nested too deeply", {"reason": "invalid_request", "detail": "depth"}
        )
    try:
        message = _loads(line)
    except (ValueError, RecursionError):
        return error_line(None, PARSE_ERROR, "Not JSON", {"reason": "parse_error"})
    if not isinstance(message, dict):
        return error_line(None, INVALID_REQUEST, "Not a JSON-RPC object", {"reason": "invalid_request"})
    method, request_id = message.get("method"), message.get("id")
    if type(request_id) is not str and type(request_id) is not int:
        if "id" not in message and isinstance(method, str) and message.get("jsonrpc") == "2.0":
            return None
        return error_line(
            None,
            INVALID_REQUEST,
            "The id is no string or integer",
            {"reason": "invalid_request", "detail": "id"},
        )
    if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
        return error_line(
            request_id, INVALID_REQUEST, "Not a JSON-RPC 2.0 request", {"reason": "invalid_request"}
        )
    params = message.get("params", {})
    if not isinstance(params, dict):
        return error_line(
            request_id,
            INVALID_PARAMS,
            "params is no object",
            {"reason": "invalid_params", "detail": "params"},
        )
    return Request(request_id, method, params, _FACTS, line)


def read_value(line: bytes) -> Any:
    """Read one line of a spool; None if it is no JSON, or nested deeper than it could be on the socket."""
    if _is_deeper(line, MESSAGE_DEPTH - APPEND_LEVELS):
        return None
    try:
        return _loads(line)
    except (ValueError, RecursionError):
        return None


def _is_deeper(line: bytes, depth: int) -> bool:
    return line.count(b"[") + line.count(b"{") > depth and nesting(line) > depth


def _loads(line: bytes) -> Any:
    # orjson is fast and exact up to 64 bits; beyond that, or for a surrogate or NaN, the standard reader helps.
    if _LONG_NUMBER not in line.translate(_DIGITS):
        try:
            return orjson.loads(line)
        except orjson.JSONDecodeError:
            pass
    return writable(json.loads(line.decode("utf-8")))


def writable(value: Any) -> Any:
    """Return a parsed value in which everything can be written as JSON again."""
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if -_MAX_INTEGER <= value <= _MAX_INTEGER else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list):
        return [writable(item) for item in value]
    return {writable(name): writable(member) for name, member in value.items()}

"""Lines of JSON-RPC for the lean server: what breaks a line, and how one is written.

Source: mcp.md 2 and 3.1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
CAPABILITY_MISSING: Final = -32021
UNSUPPORTED_VERSION: Final = -32022


class RefusalError(Exception):
    """A JSON-RPC error instead of a result."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({"data": dict(data)} if data else {})


def read(text: bytes) -> Any:
    """Return the value of a line. Raises `RefusalError` for what two readers could take differently.

    What is no JSON at all raises `ValueError` or `RecursionError`.
    """
    return json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_no_constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise RefusalError(INVALID_REQUEST, "A member occurs twice")
    return members


def _no_constant(_: str) -> None:
    raise RefusalError(INVALID_REQUEST, "NaN and Infinity are not JSON")


def lenient_id(text: bytes) -> str | int | None:
    """Find the id of a line that is JSON but breaks our rules, so that its sender does not wait for ever."""
    try:
        identifier = json.loads(text)["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return identifier if isinstance(identifier, str | int) and not isinstance(identifier, bool) else None


def error_line(identifier: str | int | None, refusal: RefusalError) -> bytes:
    """Return the line that refuses a request; the id is None when it could not be read."""
    return line_of({"jsonrpc": "2.0", "id": identifier, "error": refusal.error})


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"

"""Bounds of what a server may call its tools; the same for authority, guard and connector.

Source: call-proof.md 5.2, 5.7.
"""

from __future__ import annotations

from typing import Final, TypeGuard

MAX_TOOLS: Final = 4096
"""Tools of one server. Real servers have fewer than a hundred; the list stays in the authority's memory."""

MAX_TOOL_NAME_BYTES: Final = 256
"""Longest name of a tool in UTF-8 (call-proof.md 5.2): it stands in journals, records and errors."""


def is_tool_name(name: object) -> TypeGuard[str]:
    """Say whether this is a string of 1 to 256 bytes."""
    return type(name) is str and 0 < len(name.encode("utf-8", "surrogatepass")) <= MAX_TOOL_NAME_BYTES

"""Finds the SDK's lowlevel server inside of what a developer holds. The only place that knows the frameworks.

Both `MCPServer` and `FastMCP` keep one, under names of their own; its middleware sees every message.

Source: mcp.md 3, 5.
"""

from __future__ import annotations

import importlib.util
from typing import Any, Final

from onrecord.base.errors import UsageError

_INNER: Final = ("_lowlevel_server", "_mcp_server")
"""Attributes of MCPServer (mcp 2.x) and of FastMCP (fastmcp 4.x)."""


def lowlevel_server(server: Any) -> Any:
    """Return the lowlevel server of `server`, which may be one itself.

    Raises `UsageError` with code "mcp-missing", "mcp-version" or "server-unsupported".
    """
    if importlib.util.find_spec("mcp") is None:
        raise UsageError(
            "the MCP SDK is not installed",
            code="mcp-missing",
            hint="install onrecord[mcp] from its checkout: pip install '/path/to/the/checkout[mcp]'",
        )
    from mcp.server.lowlevel import Server

    found = server
    if not isinstance(found, Server):
        found = next(
            (value for name in _INNER if isinstance(value := getattr(server, name, None), Server)), None
        )
    if found is None:
        raise UsageError(
            f"a {type(server).__name__} cannot be protected",
            code="server-unsupported",
            hint="give an MCPServer or lowlevel Server of mcp 2.x, or a FastMCP of fastmcp 4.x; "
            "any other server goes behind the relay, without hook",
        )
    if not isinstance(getattr(found, "middleware", None), list) or not isinstance(
        getattr(found, "extensions", None), dict
    ):
        raise UsageError(
            "this version of the MCP SDK has no middleware",
            code="mcp-version",
            hint='pip install "mcp>=2.3,<3"',
        )
    return found

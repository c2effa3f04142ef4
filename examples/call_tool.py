"""Call one tool of a protected server, as any MCP client would: the client knows nothing of proofs.

    python call_tool.py SERVER TOOL '{"argument": "value"}'

Needs the extra `mcp`. The configuration is found as by every command (`ONRECORD_CONFIG`, or the user's own).
"""

import json
import os
import shutil
import sys
from pathlib import Path

import anyio
import mcp


async def call(server: str, tool: str, arguments: dict) -> int:
    beside_python = Path(sys.executable).with_name("onrecord")
    command = str(beside_python) if beside_python.exists() else shutil.which("onrecord") or "onrecord"
    # The SDK hands on only a few variables by itself. A configuration file would say --config instead.
    environment = {
        name: value for name, value in os.environ.items() if name in ("ONRECORD_CONFIG", "PATH", "HOME")
    }
    parameters = mcp.StdioServerParameters(command=command, args=["connect", server], env=environment)
    async with mcp.Client(parameters) as client:
        try:
            result = await client.call_tool(tool, arguments)
        except mcp.MCPError as error:
            print(f"refused: {error.message}")
            return 1
        for block in result.content:
            if block.type == "text":
                print(block.text.rstrip())
        return int(bool(result.is_error))


def is_closed(error: BaseException) -> bool:
    """Whether onrecord ended before it answered; what is wrong then stands on standard error already."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_closed(inner) for inner in error.exceptions)
    return isinstance(error, mcp.MCPError)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: call_tool.py SERVER TOOL [ARGUMENTS]")
    try:
        status = anyio.run(
            call, sys.argv[1], sys.argv[2], json.loads(sys.argv[3]) if len(sys.argv) == 4 else {}
        )
    except (mcp.MCPError, BaseExceptionGroup) as error:
        if not is_closed(error):
            raise
        sys.exit("call_tool.py: onrecord connect ended without an answer")
    sys.exit(status)

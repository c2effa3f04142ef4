"""The same server as `echo.py`, protected by the SDK hook: it checks its calls itself."""

from mcp.server import MCPServer

from onrecord.authorize.hook import protect

server = protect(MCPServer("bench-echo", version="1.0.0"))


@server.tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


if __name__ == "__main__":
    server.run()

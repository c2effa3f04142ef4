"""The server behind every variant: one MCPServer of the official SDK with one tool."""

from mcp.server import MCPServer

server = MCPServer("bench-echo", version="1.0.0")


@server.tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


if __name__ == "__main__":
    server.run()

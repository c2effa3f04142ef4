"""A FastMCP proxy over stdio in front of the command given as arguments. Runs in the peer's own environment."""

import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

if __name__ == "__main__":
    create_proxy(StdioTransport(command=sys.argv[1], args=sys.argv[2:])).run(
        transport="stdio", show_banner=False
    )

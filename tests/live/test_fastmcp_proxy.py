"""A FastMCP proxy between the client and the connector (acceptance 34): results pass, and so do our refusals."""

import sys

import pytest

from live.servers import fastmcp_python

pytestmark = pytest.mark.live

PROXY = """
import sys
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

create_proxy(StdioTransport(command=sys.argv[1], args=sys.argv[2:])).run(transport="stdio", show_banner=False)
"""
MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


def start(live, directory):
    """Start the example file server, of which `repo` may be read."""
    base = directory / "base"
    (base / "repo").mkdir(parents=True)
    (base / "repo" / "README.md").write_text("read me\n")
    command = [sys.executable, "-m", "onrecord.examples.files", "--base", str(base)]
    return live("filesystem", command, cwd=base, roots={"repo": base / "repo"}, bases={"default": base})


async def seen(connection):
    """Return the names of the tools, and what a permitted call gives: a text, or code and data of the error."""
    import mcp

    async with connection as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        try:
            result = await client.call_tool("read_file", {"path": "repo/README.md"})
        except mcp.MCPError as error:
            return names, (error.code, error.data)
        return names, result.content[0].text


def through_proxy(live, directory, *, mode, pipe=False):
    import anyio

    argv = [fastmcp_python(), "-c", PROXY]
    return anyio.run(seen, start(live, directory).behind(argv, mode=mode, pipe=pipe))


@MODES
def test_a_call_gets_its_proof(live, short_dir, mode):
    """Behind the proxy the connector attaches the proof, and the result arrives."""
    names, answer = through_proxy(live, short_dir, mode=mode)
    assert "read_file" in names
    assert answer == "read me\n"


@MODES
def test_a_missing_proof_is_still_an_error(live, short_dir, mode):
    """With --pipe nobody attaches a proof: the client of the proxy sees -32021 with the reason, not a result."""
    names, (code, data) = through_proxy(live, short_dir, mode=mode, pipe=True)
    assert "read_file" in names
    assert (code, data["reason"]) == (-32021, "missing")

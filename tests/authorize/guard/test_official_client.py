"""The official MCP client through connector and guard, in both eras (acceptance 34), against its own server."""

import json
import os

import pytest

from authorize.guard.processes import UserHouse

pytest.importorskip("mcp")

CLIENT = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(mode, argv):
    parameters = StdioServerParameters(command=argv[0], args=argv[1:])
    async with Client(stdio_client(parameters), mode=mode) as client:
        found = {"tools": [tool.name for tool in (await client.list_tools()).tools]}
        result = await client.call_tool("echo", {"text": "hello"})
        found["text"] = result.content[0].text
        try:
            await client.call_tool("deny_me", {})
        except Exception as error:
            found["denied"] = [error.error.code, error.error.message, error.error.data]
        capabilities = client.server_capabilities
        extensions = getattr(capabilities, "extensions", None) or {}
        experimental = getattr(capabilities, "experimental", None) or {}
        found["extensions"] = "io.modelcontextprotocol/call-proof" in extensions
        found["experimental"] = "io.modelcontextprotocol/call-proof" in experimental
        print(json.dumps(found))

asyncio.run(main(sys.argv[1], sys.argv[2:]))
"""

SERVER = """
from mcp.server import MCPServer
server = MCPServer("official")

@server.tool()
def echo(text: str) -> str:
    return text

server.run("stdio")
"""

PIPE_CLIENT = (
    CLIENT.replace('"hello"})', '"hello"})')
    .replace(
        'result = await client.call_tool("echo", {"text": "hello"})\n        found["text"] = result.content[0].text\n',
        "pass\n",
    )
    .replace('"deny_me", {}', '"echo", {"text": "x"}')
)


@pytest.fixture
def house(user_mode):
    it = UserHouse(user_mode, "plain")
    it.start_fakes()
    server = it.system.directory / "server.py"
    server.write_text(SERVER)
    os.chmod(server, 0o644)
    text = it.system.file.read_text()
    old = text[text.index('args = ["') : text.index("\n", text.index('args = ["'))]
    it.system.file.write_text(text.replace(old, f'args = ["-P", "{server}"]', 1))
    yield it
    it.close()


@pytest.mark.req("CP-124")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_it_works_and_reads_refusals(house, mode):
    """Advertised, enforced, and the refusal is an error that the SDK client can read."""
    done = house.system.python(CLIENT, mode, *house.system.command("connect", "files"), timeout=90)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = json.loads(done.stdout)
    assert found["tools"] == ["echo"]
    assert found["text"] == "hello"
    assert found["extensions"] is True
    assert found["experimental"] is (mode == "legacy")
    code, message, data = found["denied"]
    assert code == -33001
    assert message.startswith("Denied by policy (ref ")
    assert data["reason"] == "denied"


@pytest.mark.req("CP-128")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_missing_proof_is_readable(house, mode):
    """Trap 2: -32021 with the reason, and in the modern era with requiredCapabilities."""
    done = house.system.python(
        PIPE_CLIENT, mode, *house.system.command("connect", "files", "--pipe"), timeout=90
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    code, message, data = json.loads(done.stdout)["denied"]
    assert (code, message, data["reason"]) == (-32021, "Call proof rejected", "missing")
    assert ("requiredCapabilities" in data) is (mode == "auto")

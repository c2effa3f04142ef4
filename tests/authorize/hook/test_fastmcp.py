"""FastMCP with the hook, in its own environment: the same rules as for the SDK's own server."""

import json
import subprocess

import pytest

from authorize.guard.processes import Client
from authorize.hook.houses import SOURCE, HookHouse
from authorize.hook.test_hooked_server import PROOF_META, issue
from live.servers import fastmcp_python
from live.test_fastmcp_proxy import PROXY
from support.data import REPOSITORY
from support.runtime import child_environment

pytestmark = pytest.mark.live

IN_MEMORY = """
import asyncio, json
from fastmcp import Client, FastMCP
from onrecord.authorize.hook import protect

ran = []
server = FastMCP("hooked")

@server.tool
def echo(text: str = "") -> str:
    ran.append(text)
    return text

async def main():
    async with Client(protect(server, environ={})) as client:
        try:
            await client.call_tool("echo", {"text": "x"})
        except Exception as error:
            print(json.dumps([str(error), ran]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def python():
    """The interpreter of FastMCP's environment; onrecord itself comes by PYTHONPATH, its dependencies are there."""
    program = fastmcp_python()
    looked = subprocess.run([program, "-c", "import cedarpy, msgspec, orjson, rfc8785"], capture_output=True)
    if looked.returncode:
        pytest.skip("the environment of fastmcp lacks what onrecord needs; `make setup` makes it anew")
    return program


@pytest.fixture
def house(user_mode, python):
    it = HookHouse(user_mode, "fastmcp", python=python)
    it.start_fakes()
    yield it
    it.close()


@pytest.mark.req("CP-127")
def test_one_line_protects_it(house):
    """Acceptance 25, 31: run() speaks the strict transport; no proof reaches a tool, no rejected call runs one."""
    client = house.client()
    shown = client.open()["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/call-proof"]
    assert (shown["required"], shown["server"]) == (True, "files")
    assert client.call(1, text="hello")["result"]["content"][0]["text"] == "hello"
    dumped = client.call(2, name="context", meta={"progressToken": 7})["result"]["content"][0]["text"]
    assert "progress" in dumped
    for secret in ("CANARY", "callProof", "recordSession"):
        assert secret not in dumped
    assert client.call(3, name="stray")["result"]["content"][0]["text"] == "b''"
    assert client.end()[0] == 0
    pipe = house.client("--pipe")
    pipe.open()
    assert pipe.call(1, text="x")["error"]["data"] == {"reason": "missing"}
    proof = issue(house, "add", {"a": 7})
    assert pipe.call(2, name="add", meta={PROOF_META: proof}, a="7")["error"]["data"] == {
        "reason": "mismatch"
    }
    pipe.send(b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","name":"add"}}')
    assert pipe.read()["error"]["data"]["detail"] == "duplicate"
    assert pipe.call(4, name="add", meta={PROOF_META: proof}, a=7)["result"]["structuredContent"] == {
        "result": 8
    }
    assert pipe.end()[0] == 0
    assert [one["name"] for one in house.ran()] == ["echo", "context", "stray", "add"]
    assert house.kinds().count("invocation") == 6
    assert "CANARY" not in house.log()


def test_behind_a_fastmcp_proxy(house, python):
    """Acceptance 34, trap 4: the refusal of a hooked server is still an error with its code behind a proxy."""
    # The proxy hands on few variables, and PYTHONPATH is none of them.
    command = ["env", f"PYTHONPATH={SOURCE}", *house.system.command("connect", "files", "--pipe")]
    argv = [python, "-c", PROXY, *command]
    environment = child_environment(HOME=str(house.system.directory))
    house.clients.append(Client(argv, principal=house.principal, env=environment))
    client = house.clients[-1]
    client.open()
    error = client.call(1, text="x")["error"]
    assert (error["code"], error["data"]["reason"]) == (-32021, "missing")
    assert house.ran() == []


def test_over_another_transport(python):
    """A client in memory of a protected FastMCP gets each call refused."""
    environment = child_environment(PYTHONPATH=str(SOURCE))
    done = subprocess.run([python, "-c", IN_MEMORY], env=environment, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout.splitlines()[-1]) == ["Call proof rejected", []]


def test_the_example(python, tmp_path):
    """examples/protected_fastmcp.py lists its tools; without a guard no call of them runs."""
    (tmp_path / "note.txt").write_text("buy milk")
    client = Client(
        [python, str(REPOSITORY / "examples" / "protected_fastmcp.py")],
        env=child_environment(PYTHONPATH=str(SOURCE)),
        cwd=tmp_path,
    )
    client.open()
    tools = client.ask(1, "tools/list")["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["read_note", "add_note"]
    error = client.call(2, name="read_note", path="note.txt")["error"]
    assert (error["code"], error["data"]["reason"]) == (-32021, "authority_unreachable")
    assert "hook.unguarded" in client.end()[1]

"""The gate in the server object: only what the strict transport has let through reaches a tool."""

import asyncio
import importlib.util
import subprocess
import sys

import pytest

from onrecord.authorize.hook import protect, serve_stdio
from onrecord.authorize.hook.admission import Admitted
from onrecord.base.errors import UsageError
from support.runtime import child_environment

mcp = pytest.importorskip("mcp")

EXTENSION = "io.modelcontextprotocol/call-proof"
PROOF_META = "io.modelcontextprotocol/callProof"
LABEL_META = "dev.onrecord/recordSession"


@pytest.fixture
def server():
    """A protected MCPServer without a guard, and the list of what its tool did."""
    from mcp.server import MCPServer

    ran = []
    made = MCPServer("hooked")

    @made.tool()
    def echo(text: str = "") -> str:
        ran.append(text)
        return text

    return protect(made, environ={}), ran


async def refused(server, mode):
    async with mcp.Client(server, mode=mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
        with pytest.raises(mcp.MCPError) as error:
            await client.call_tool("echo", {"text": "x"}, meta={PROOF_META: {"type": "t", "value": "v"}})
    return error.value.error


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_another_transport_gets_its_calls_refused(server, mode):
    """A client in memory lists the tools, and no call runs, whatever proof it shows; a modern one reads what to do."""
    error = asyncio.run(refused(server[0], mode))
    assert (error.code, error.data["reason"]) == (-32021, "authority_unreachable")
    assert ("requiredCapabilities" in error.data) is (mode == "auto")
    assert server[1] == []


def test_the_extension_is_advertised(server):
    """A modern client sees that calls need a proof, over any transport."""

    async def look():
        async with mcp.Client(server[0]) as client:
            return client.server_capabilities.extensions

    assert asyncio.run(look())[EXTENSION]["required"] is True


class Seen:
    """A request context as the SDK makes them, and what came through the gate."""

    def __init__(self, server, *, method="tools/call", request=None, request_id=1, params=None):
        from mcp.server.context import ServerRequestContext

        self.gate = server._lowlevel_server.middleware[0]
        proof = {PROOF_META: {"type": "t", "value": "CANARY"}, LABEL_META: "x", "progressToken": 1}
        self.params = {"name": "echo", "_meta": dict(proof)} if params is None else params
        self.passed = []
        self.context = ServerRequestContext(
            session=None, lifespan_context={}, protocol_version="2025-11-25", method=method, params=self.params,
            request_id=request_id, meta=dict(proof), request=request,
        )  # fmt: skip

    def run(self):
        async def call_next(context):
            self.passed.append(context)
            return {}

        return asyncio.run(self.gate(self.context, call_next))


@pytest.mark.req("CP-127")
def test_both_copies_of_the_proof_are_gone(server):
    """Acceptance 31, trap 5: what passes has no proof and no label in params nor in meta; other members stay."""
    gate = server[0]._lowlevel_server.middleware[0]
    seen = Seen(server[0], request=Admitted(gate))
    assert seen.run() == {}
    (context,) = seen.passed
    assert context.params["_meta"] == context.meta == {"progressToken": 1}
    assert context.request is None


def test_an_admission_is_good_once(server):
    """An admission that tool code has kept lets no second call through, and none of another server."""
    gate = server[0]._lowlevel_server.middleware[0]
    admission = Admitted(gate)
    Seen(server[0], request=admission).run()
    again = Seen(server[0], request=admission)
    with pytest.raises(mcp.MCPError):
        again.run()
    from mcp.server import MCPServer

    other = Seen(protect(MCPServer("other"), environ={}), request=Admitted(gate))
    with pytest.raises(mcp.MCPError):
        other.run()
    assert (again.passed, other.passed) == ([], [])


@pytest.mark.parametrize("request_value", [None, object(), {"facts": 1}, "admitted"])
def test_missing_facts_are_a_refusal(server, request_value):
    """Fail closed: anything but an admission of ours is refused."""
    seen = Seen(server[0], request=request_value)
    with pytest.raises(mcp.MCPError) as error:
        seen.run()
    assert error.value.error.code == -32021
    assert seen.passed == []


def test_a_call_without_id_is_dropped(server):
    """Trap 7 of the SDK: a tools/call that became a notification runs nothing and is not answered."""
    seen = Seen(server[0], request_id=None)
    assert seen.run() is None
    assert seen.passed == []


@pytest.mark.parametrize("params", [None, [], "x", {"_meta": None}, {"_meta": []}])
def test_odd_params_do_not_get_around(server, params):
    """The gate judges by the method alone, not by the form of the parameters."""
    seen = Seen(server[0], params=params or {})
    seen.context.params = params
    with pytest.raises(mcp.MCPError):
        seen.run()


def test_other_methods_pass(server):
    """Only tools/call is covered."""
    seen = Seen(server[0], method="tools/list")
    assert seen.run() == {}
    assert seen.passed == [seen.context]


def test_protecting_twice(server):
    """The second protect is an error: two checks would spend each proof twice."""
    with pytest.raises(UsageError) as error:
        protect(server[0])
    assert error.value.code == "already-protected"


@pytest.mark.parametrize("thing", [object(), "server", None, mcp.Client])
def test_what_is_no_server(thing):
    """Something else than a known server is refused, not silently left alone."""
    with pytest.raises(UsageError) as error:
        protect(thing)
    assert error.value.code == "server-unsupported"


def test_a_framework_that_changed():
    """A server whose middleware list is gone cannot be protected, and says so."""
    from mcp.server.lowlevel import Server

    changed = Server("changed")
    changed.middleware = ()
    with pytest.raises(UsageError) as error:
        protect(changed)
    assert error.value.code == "mcp-version"


def test_the_sdk_is_absent(monkeypatch):
    """Without mcp the error names the extra."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError) as error:
        protect(object())
    assert (error.value.code, "onrecord[mcp]" in error.value.hint) == ("mcp-missing", True)


def test_the_package_imports_without_the_sdk():
    """The hook is part of every installation; only its use needs the extra."""
    code = "import sys; sys.modules['mcp'] = sys.modules['anyio'] = None; import onrecord.authorize.hook"
    done = subprocess.run([sys.executable, "-c", code], env=child_environment(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_serving_what_is_not_protected():
    """serve_stdio protects nobody by accident."""
    from mcp.server.lowlevel import Server

    with pytest.raises(UsageError) as error:
        asyncio.run(serve_stdio(Server("plain")))
    assert error.value.code == "not-protected"


def test_another_event_loop(short_dir):
    """Under trio there is no asyncio loop: the server does not start, instead of running unchecked."""
    from mcp.server.lowlevel import Server

    file = short_dir / "onrecord.toml"
    file.write_text(
        f'mode = "user"\n[paths]\nstate = "{short_dir}"\nruntime = "{short_dir}"\n[servers.a]\ncommand = "x"\n'
    )
    run = serve_stdio(protect(Server("plain"), config=file, server_id="a", environ={}))
    with pytest.raises(UsageError) as error:
        run.send(None)
    assert error.value.code == "hook-needs-asyncio"

"""Servers with the SDK hook as real processes behind a guard, in user mode, with fake daemons."""

import json
import sys

import pytest

from authorize.guard.processes import Client
from authorize.guard.test_official_client import CLIENT, PIPE_CLIENT
from authorize.hook.houses import SOURCE, HookHouse
from support.runtime import child_environment, wait_for

pytest.importorskip("mcp")

PROOF_META = "io.modelcontextprotocol/callProof"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}


@pytest.fixture
def house(user_mode):
    made = []

    def make(kind, *daemons, **values):
        made.append(HookHouse(user_mode, kind, **values))
        made[-1].start_fakes(*daemons)
        return made[-1]

    yield make
    for one in made:
        one.close()


def issue(it, name, arguments, **more):
    """Get a proof from the fake authority as an agent program would; return its evidence."""
    code = (
        "import asyncio, json, sys; from pathlib import Path;"
        "from onrecord.authorize.client import CallProofClient; from onrecord.base.configuration import Configuration\n"
        "async def main(file, name, arguments, more):\n"
        "    client = await CallProofClient.connect(Configuration.load(Path(file)))\n"
        "    proof = await client.issue('files', name, arguments, **more)\n"
        "    print(json.dumps(dict(proof.evidence)))\n"
        "asyncio.run(main(*[json.loads(one) for one in sys.argv[1:]]))"
    )
    given = [json.dumps(one) for one in (str(it.system.file), name, arguments, more)]
    done = it.system.python(code, *given)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.req("CP-124", "CP-127")
def test_a_client_that_knows_nothing_works(house):
    """Acceptance 31, 34: advertised, proven, executed, recorded; no tool sees the proof or the channel."""
    it = house("mcpserver")
    client = it.client()
    capabilities = client.open()["result"]["capabilities"]
    for place in ("extensions", "experimental"):
        shown = capabilities[place]["io.modelcontextprotocol/call-proof"]
        assert (shown["required"], shown["server"]) == (True, "files")
        assert shown["authority"] == f"unix://{it.configuration.agent_socket()}"
    assert client.call(1, text="hello")["result"]["content"][0]["text"] == "hello"
    dumped = client.call(2, name="context", meta={"progressToken": 7})["result"]["content"][0]["text"]
    assert "progress_token" in dumped
    for secret in ("CANARY", "callProof", "recordSession"):
        assert secret not in dumped
    assert client.call(3, name="stray")["result"]["content"][0]["text"] == "b''"
    assert client.call(4, name="fail", text="x")["result"]["isError"] is True
    assert client.call(5, name="broken")["error"]["code"] == -32603
    assert client.call(6, name="deny_me")["error"]["code"] == -33001
    assert client.call(7, name="add", a="7")["result"]["structuredContent"] == {"result": 8}
    assert client.end()[0] == 0
    assert [one["name"] for one in it.ran()] == ["echo", "context", "stray", "fail", "broken", "add"]
    calls = ["invocation", "result"] * 3 + [
        "invocation",
        "failure",
        "invocation",
        "error",
        "invocation",
        "result",
    ]
    assert it.kinds() == ["connection", *calls, "connection"]
    assert list(it.state.glob("*.spool")) == []
    for text in (it.log(), json.dumps(it.fakes.entries())):
        assert "PROOF-CANARY" not in text


@pytest.mark.req("CP-122", "CP-125", "CP-128")
def test_the_spy_never_fires(house):
    """Acceptance 25, 28, 29, 30: no rejection runs anything; every refused line is answered, with its id."""
    it = house("mcpserver")
    client = it.client("--pipe")
    client.open()
    good = issue(it, "echo", {"text": "x"})
    rejected = [
        ("missing", None, "x"),
        ("malformed", {"type": good["type"]}, "x"),
        ("malformed", good["value"], "x"),
        ("mismatch", good, "y"),
        ("invalid", {**good, "value": "PROOF-CANARY-99999999"}, "x"),
    ]
    for number, (reason, proof, text) in enumerate(rejected):
        answer = client.call(number, meta=None if proof is None else {PROOF_META: proof}, text=text)
        assert (answer["id"], answer["error"]["code"], answer["error"]["data"]) == (
            number,
            -32021,
            {"reason": reason},
        )
    proven = json.dumps({PROOF_META: good})
    head = '{"jsonrpc":"2.0","id":50,"method":"tools/call","params":'
    call = f'{{"name":"echo","arguments":{{"text":"x"}},"_meta":{proven}}}'
    refused = [
        (head + call.replace('"text":"x"', '"text":"x","text":"x"') + "}", 50),
        (head + call.replace('"name":"echo"', '"name":"echo","name":"echo"') + "}", 50),
        (head + call.replace('{"text":"x"}', "NaN") + "}", None),
        (head + call.replace('{"text":"x"}', '{"text":12345678901234567890}') + "}", 50),
        (head + call.replace('"x"', r'"\ud800"') + "}", 50),
        (head + call.replace('{"text":"x"}', "[]") + "}", 50),
        (head + call.replace('{"text":"x"}', "null") + "}", 50),
        (head + call.replace('{"text":"x"}', '{"text":' + "[" * 300 + "]" * 300 + "}") + "}", 50),
        (head.replace("50", "null") + call + "}", None),
        (head.replace("50", "1.0") + call + "}", None),
        ("[" + head + call + "}]", None),
        ("\ufeff" + head + call + "}", None),
        (head + call.replace('"x"', '"\xff"').replace("\xff", "\udcff") + "}", None),
    ]
    for line, request_id in refused:
        client.send(line.encode("utf-8", "surrogateescape"))
        answer = client.read()
        assert answer["id"] == request_id, line
        assert answer["error"]["code"] in (-32700, -32600, -32602)
    client.send({"jsonrpc": "2.0", "method": "tools/call", "params": json.loads(call)})
    assert client.ask(60, "ping")["result"] == {}
    assert it.ran() == []
    assert client.call(61, meta={PROOF_META: good}, text="x")["result"]["content"][0]["text"] == "x"
    assert client.call(62, meta={PROOF_META: good}, text="x")["error"]["data"] == {"reason": "replayed"}
    assert [one["text"] for one in it.ran()] == ["x"]
    # Trap 6: "7" is digested as it was sent, although the SDK makes a 7 of it afterwards.
    as_number, as_text = (issue(it, "add", {"a": value}) for value in (7, "7"))
    answer = client.call(63, name="add", meta={PROOF_META: as_number}, a="7")
    assert answer["error"]["data"] == {"reason": "mismatch"}
    answer = client.call(64, name="add", meta={PROOF_META: as_text}, a="7")
    assert answer["result"]["structuredContent"] == {"result": 8}
    # The SDK would say nothing to parameters that are no object: the transport answers, and the connection lives.
    client.send({"jsonrpc": "2.0", "id": 65, "method": "ping", "params": [1]})
    answer = client.read()
    assert (answer["id"], answer["error"]["code"]) == (65, -32602)
    client.send({"jsonrpc": "2.0", "method": "notifications/x", "params": "x"})
    assert client.ask(66, "ping")["result"] == {}


def test_without_an_authority(house):
    """Acceptance 26: nobody to ask means authority_unreachable, and nothing runs; listing works."""
    it = house("mcpserver", "record")
    client = it.client("--pipe")
    client.open()
    assert client.ask(1, "tools/list")["result"]["tools"][0]["name"] == "echo"
    proof = {"type": "dev.onrecord/handle", "value": "AAAA"}
    answer = client.call(2, meta={PROOF_META: proof}, text="x")
    assert answer["error"]["data"] == {"reason": "authority_unreachable"}
    assert it.ran() == []


@pytest.mark.req("CP-122")
def test_audit_mode(house):
    """Acceptance 32: a call without proof runs and is reported, a bad proof is rejected, and a warning says it all."""
    it = house("mcpserver")

    def audit(document):
        document["servers"].append(
            {
                "id": "files", "uid": it.system.uid, "enforce": "audit", "refuse_methods": [], "discloseCaller": False,
                "roots": {}, "bases": {}, "tiServer": "test", "bindings": "bindings/none.json",
            }
        )  # fmt: skip

    (it.configuration.policy.source / "bindings" / "none.json").write_text("[]")
    it.system.edit_policy(audit)
    client = it.client("--pipe")
    capabilities = client.open()["result"]["capabilities"]
    assert capabilities["extensions"]["io.modelcontextprotocol/call-proof"]["required"] is False
    assert client.call(1, text="x")["result"]["content"][0]["text"] == "x"
    bad = {"type": "dev.onrecord/handle", "value": "PROOF-CANARY-99999999"}
    assert client.call(2, meta={PROOF_META: bad}, text="y")["error"]["data"]["reason"] == "invalid"
    assert client.end()[0] == 0
    assert [one["text"] for one in it.ran()] == ["x"]
    assert it.fakes.requests("callProof/verify")[0]["evidence"] is None
    assert "mode.audit" in it.log()


@pytest.mark.req("CP-124", "CP-128")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client(house, mode):
    """Acceptance 34: in both eras it sees the extension and calls; a missing proof is an error with its reason."""
    it = house("mcpserver")
    done = it.system.python(CLIENT, mode, *it.system.command("connect", "files"), timeout=90)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    found = json.loads(done.stdout)
    assert (found["text"], found["denied"][0], found["extensions"]) == ("hello", -33001, True)
    assert found["experimental"] is (mode == "legacy")
    if mode == "legacy":
        return  # the refusal in this era: test_the_spy_never_fires
    done = it.system.python(PIPE_CLIENT, mode, *it.system.command("connect", "files", "--pipe"), timeout=90)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    code, message, data = json.loads(done.stdout)["denied"]
    assert (code, message, data["reason"]) == (-32021, "Call proof rejected", "missing")
    assert data["requiredCapabilities"] == {"extensions": {"io.modelcontextprotocol/call-proof": {}}}


def test_a_lowlevel_server(house):
    """serve_stdio does for a lowlevel Server what run() does for the others."""
    it = house("lowlevel")
    client = it.client()
    client.open()
    assert client.call(1, text="hello")["result"]["content"][0]["text"] == "hello"
    for number in range(300):  # more than the queue between transport and server holds
        client.send({"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"})
    assert {client.read()["id"] for _ in range(300)} == {f"p{number}" for number in range(300)}
    assert client.end()[0] == 0
    assert it.kinds() == ["connection", "invocation", "result", "connection"]


def test_a_crash_loses_no_event(house):
    """A server that dies in a call leaves its spool; its guard ships it."""
    it = house("lowlevel-crash")
    client = it.client("--pipe")
    client.open()
    client.send(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
         "params": {"name": "echo", "_meta": {PROOF_META: issue(it, "echo", {})}}}
    )  # fmt: skip
    assert client.read() is None
    assert "server.exited" in it.log()
    wait_for(lambda: "invocation" in it.kinds(), what="the guard ships what the dead server has left")
    assert [one["admitted"] for one in it.fakes.entries() if one["kind"] == "invocation"] == [True]


@pytest.mark.parametrize("kind", ["lowlevel-unprotected", "lowlevel-other-transport"])
def test_hook_true_in_front_of_a_server_without_one(house, kind):
    """Nothing passes to a program that has no hook, or uses it on another transport; its end is in the log."""
    it = house(kind, **{"limits.stop_grace_seconds": 1})
    client = it.client("--pipe")
    client.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo"}})
    wait_for(it.real_servers, what="the real server starts")
    client.process.stdin.close()
    assert client.read() is None
    assert it.ran() == []


def alone(it, kind, *arguments):
    """Run a server without a guard, with a client at its pipes."""
    argv = [sys.executable, "-P", str(it.system.directory / "sdk_servers.py"), kind, str(it.spy), *arguments]
    environment = child_environment(HOME=str(it.system.directory), PYTHONPATH=str(SOURCE))
    it.clients.append(Client(argv, principal=it.principal, env=environment))
    return it.clients[-1]


def test_without_a_guard(house):
    """Started by hand, the server works but for its tools: each call is refused, and standard error says why."""
    it = house("mcpserver")
    client = alone(it, "mcpserver")
    client.open()
    assert client.ask(1, "tools/list")["result"]["tools"][0]["name"] == "echo"
    error = client.call(2, text="x")["error"]
    assert (error["code"], error["data"]["reason"]) == (-32021, "authority_unreachable")
    assert error["data"]["detail"] == "this server does not run behind its onrecord guard"
    assert "hook.unguarded" in client.end()[1]
    assert it.ran() == []


def test_another_transport_of_a_protected_server(house):
    """The SDK's own stdio transport under a protected server carries no tool call."""
    it = house("lowlevel")
    for kind, detail in (("lowlevel-other-transport", "only stdio"), ("lowlevel", "does not run behind")):
        client = alone(it, kind)
        client.open()
        error = client.call(1, text="x")["error"]
        assert (error["code"], error["data"]["reason"]) == (-32021, "authority_unreachable")
        assert detail in error["data"]["detail"]
    assert it.ran() == []


def test_explicit_configuration(house):
    """Without a guard, config and server_id are enough: proofs are checked and calls are recorded."""
    it = house("mcpserver")
    client = alone(it, "mcpserver-explicit", str(it.system.file))
    client.open()
    assert client.call(1, text="x")["error"]["data"] == {"reason": "missing"}
    proof = issue(it, "echo", {"text": "x"})
    assert client.call(2, meta={PROOF_META: proof}, text="x")["result"]["content"][0]["text"] == "x"
    client.end()
    assert it.kinds() == ["connection", "invocation", "denied", "invocation", "result", "connection"]


def test_input_in_between(house):
    """Acceptance 36: a modern call that asks gets a proof per round; all of it is one attempt in the record."""
    it = house("mcpserver")
    base = it.system.directory / "base"
    pulls = base / "pulls"
    pulls.mkdir(parents=True)
    (pulls / "17.json").write_text("{}")
    for path in (base, pulls, pulls / "17.json"):
        path.chmod(0o777)
    text = it.system.file.read_text()
    old = next(line for line in text.splitlines() if line.startswith("args = ["))
    it.system.file.write_text(
        text.replace(
            old,
            "args = " + json.dumps(["-P", "-m", "onrecord.examples.files", "--hook", "--base", str(base)]),
        )
    )
    client = it.client()
    params = {"name": "request_review", "arguments": {"number": 17}, "_meta": MODERN}
    asked = client.ask(1, "tools/call", params)["result"]
    assert asked["resultType"] == "input_required", asked
    (key,) = asked["inputRequests"]
    params |= {
        "inputResponses": {key: {"action": "accept", "content": {"reviewer": "Ada"}}},
        "requestState": asked["requestState"],
    }
    done = client.ask(2, "tools/call", params)["result"]
    assert (done["isError"], done["content"][0]["text"]) == (
        False,
        "Ada was asked to review pull request 17.",
    )
    assert client.end()[0] == 0
    assert it.kinds() == ["connection", "invocation", "input", "input-response", "result", "connection"]
    assert len(it.fakes.requests("callProof/verify")) == 2
    assert (pulls / "17.reviews.jsonl").read_text() == '{"reviewer": "Ada"}\n'

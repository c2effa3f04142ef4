"""One Action Digest for everybody: relay, client helper, authority and command line have no other, nor other limits.

The connector and `--pipe` carry calls and digest nothing; this too is held here.
"""

import ast
import asyncio
import inspect
import json
import os
from pathlib import Path

import orjson
import pytest

import onrecord.authorize
from authorize.authority.house import House, issue_params
from authorize.guard.fakes import FakeAuthority, serve
from authorize.guard.relays import Bench
from onrecord.authorize import digest as digests
from onrecord.authorize.client import CallProofClient
from onrecord.base.errors import BindingError
from onrecord.base.hashes import ActionDigest
from onrecord.base.strict_json import Refused
from onrecord.cli.main import main
from support.runtime import make_short_dir
from support.uids import uid_block_or_skip

PATCHED = ActionDigest.of(b"patched")
ROOM = Path(inspect.getfile(onrecord.authorize)).parent
HASHING = {"hashlib", "hmac"}


def nested(levels):
    """Return arguments of so many levels; the arguments object is the first."""
    value = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def issue_by_helper(arguments, *, answer=None):
    """Let the client helper ask a fake authority; return what it gets."""
    directory = make_short_dir()

    async def run():
        authority = FakeAuthority()
        if answer is not None:
            authority.answers["callProof/issue"] = [answer]
        server = await serve(authority, directory / "a.sock")
        client = await CallProofClient.connect(socket=directory / "a.sock", expected_uid=os.getuid())
        try:
            return await client.issue("files", "echo", arguments)
        finally:
            await client.close()
            await server.stop()

    try:
        return asyncio.run(run())
    finally:
        directory.rmdir()


@pytest.fixture
def authority():
    """A running authority in user mode that knows the tools of its server."""
    uids = uid_block_or_skip() if os.getuid() == 0 else None
    house = House(make_short_dir(), mode="user", uids=uids)
    try:
        house.start()
        house.report()
        yield house
    finally:
        house.remove()


@pytest.fixture
def relay(tmp_path):
    """A relay with both ends in the test's hands."""
    bench = Bench(tmp_path)
    yield bench
    bench.close()


class TestOneFunction:
    """Acceptance 4: patched in its one place, the digest changes everywhere."""

    @pytest.fixture(autouse=True)
    def patched(self, monkeypatch):
        monkeypatch.setattr(digests, "action_digest", lambda *_, **__: PATCHED)

    def test_authority(self, authority):
        """The authority issues and verifies the patched digest."""
        with authority.agent_wire() as agent, authority.server_wire() as server:
            issued = authority.proof(agent)
            assert issued["actionDigest"] == PATCHED
            assert server.result("callProof/verify", authority.verify_params(issued))["valid"] is True

    def test_relay(self, relay):
        """The relay asks for the patched digest."""
        relay.call()
        assert relay.verifier.asked[0]["actionDigest"] == PATCHED

    def test_client_helper(self):
        """The client helper expects the patched digest, and refuses the true one."""
        evidence = {"type": "t", "value": "v"}
        answer = {"actionDigest": str(PATCHED), "server": "files", "evidence": evidence}
        assert issue_by_helper({"a": 1}, answer=answer).action_digest == PATCHED
        true = "w5s6xGNCZZG9RwUm2RwnbKFaVODAR9Bt5Rgr6wUejDo"
        with pytest.raises(BindingError):
            issue_by_helper({"a": 1}, answer={**answer, "actionDigest": true})

    def test_command(self, capsysbinary):
        """`onrecord digest` prints the patched digest."""
        with pytest.raises(SystemExit):
            main(["digest", "--name", "echo", "--json"])
        assert json.loads(capsysbinary.readouterr().out) == {"digest": PATCHED}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)


def test_the_connector_hashes_nothing():
    """What the connector sends on is what came; it neither canonicalizes nor hashes, so it can have no digest."""
    for path in (ROOM / "connector").rglob("*.py"):
        names = set(imported(ast.parse(path.read_text(encoding="utf-8"))))
        assert not {name for name in names if name.split(".")[0] in HASHING}, path
        assert not {name for name in names if name.startswith("onrecord.base.canonical")}, path


OUTSIDE = (
    {},
    {"_meta": {"progressToken": 1, "other": "x"}},
    {"task": {"ttl": 1000}},
    {"inputResponses": {"sure": {"action": "accept"}}, "requestState": "st"},
)
CALL = {"name": "echo", "arguments": {"text": "x"}}


class TestOutside:
    """`_meta`, `task` and the inputs of a later round are outside of the digest."""

    @pytest.mark.req("CP-126")
    def test_relay(self, relay):
        """The relay asks for one digest, whatever stands beside name and arguments."""
        for number, members in enumerate(OUTSIDE):
            meta = members.get("_meta")
            others = {name: value for name, value in members.items() if name != "_meta"}
            relay.call(number, meta=meta, name=CALL["name"], arguments=CALL["arguments"], **others)
        asked = {one["actionDigest"] for one in relay.verifier.asked}
        assert len(relay.verifier.asked) == len(OUTSIDE)
        assert asked == {digests.action_digest("tools/call", CALL["name"], CALL["arguments"])}

    @pytest.mark.req("CP-126")
    def test_authority(self, authority):
        """The authority issues for one digest too."""
        with authority.agent_wire() as agent:
            issued = {authority.proof(agent, **members)["actionDigest"] for members in OUTSIDE}
        assert len(issued) == 1


class TestDepth:
    """Acceptance 5: 64 levels of arguments pass and 65 are refused, at every place that digests."""

    def test_relay(self, relay):
        """The relay asks for 64 levels, and answers 65 itself."""
        relay.call(1, arguments=nested(64))
        assert len(relay.verifier.asked) == 1
        relay.call(2, arguments=nested(65))
        assert len(relay.verifier.asked) == 1
        assert relay.client[-1]["id"] == 2
        assert relay.client[-1]["error"]["data"]["detail"] == "depth"

    def test_authority(self, authority):
        """The authority answers 65 levels with the class; 64 are judged like any call."""
        with authority.agent_wire() as agent:
            line = issue_params(name="get_pull_request", arguments=nested(65))
            assert agent.error("callProof/issue", line)["data"]["detail"] == "depth"
            answer = agent.call("callProof/issue", {**line, "arguments": nested(64)})
            assert answer.get("error", {}).get("data", {}).get("reason") in (None, "denied")

    def test_client_helper(self):
        """The client helper asks with 64 levels, and refuses 65 before anything is sent."""
        assert issue_by_helper(nested(64)).evidence["value"]
        with pytest.raises(Refused) as refused:
            issue_by_helper(nested(65))
        assert refused.value.reason == "depth"

    def test_command(self, capsysbinary):
        """`onrecord digest` prints a digest for 64 levels and refuses 65."""
        for levels, status in ((64, 0), (65, 2)):
            with pytest.raises(SystemExit) as ended:
                main(
                    ["digest", "--name", "t", "--json", "--arguments", orjson.dumps(nested(levels)).decode()]
                )
            assert ended.value.code == status
        assert json.loads(capsysbinary.readouterr().out.split(b"}\n", 1)[1])["error"]["reason"] == "depth"

"""Calls that ask for input, and calls that become tasks, through authority, connector, guard and recorder.

The example file server asks who should review before it requests a review (acceptance 36; trap 8).
"""

import json
import sys
from types import SimpleNamespace

import pytest

from live.clients import connect

pytestmark = pytest.mark.live

ASK = {"number": 17}
DONE = "Grace was asked to review pull request 17."
IN_TURN = ["tool-invocation", "tool-input", "tool-input-response"]


def start(live_servers, directory):
    """Start the example file server behind a guard; return its `Live`, and the file that counts its calls."""
    from onrecord.examples.files import FileTools

    base, counter = directory / "base", directory / "counter"
    (base / "pulls").mkdir(parents=True)
    (base / "pulls" / "17.json").write_text("{}")
    tools = FileTools(base)
    advertised = [SimpleNamespace(name=tool.name, input_schema=tool.input_schema) for tool in tools.tools()]
    tools.close()
    command = [
        sys.executable,
        "-m",
        "onrecord.examples.files",
        "--base",
        str(base),
        "--counter",
        str(counter),
    ]
    return live_servers({"files": (command, advertised, {})})["files"], counter


async def grace(context, params):
    import mcp_types

    assert params.message == "Who should review pull request 17?"
    return mcp_types.ElicitResult(action="accept", content={"reviewer": "Grace"})


class House:
    """What a test does with the running deployment, each thing in a record session of its own."""

    def __init__(self, running, counter):
        self.running = running
        self._counter = counter

    @property
    def executed(self):
        return len(self._counter.read_text().splitlines()) if self._counter.exists() else 0

    def client(self, session, *, mode="auto", pipe=False):
        from onrecord.authorize.mcp_tasks import CallTasks

        return connect(
            self.running.connector(pipe=pipe),
            mode=mode,
            log=self.running.cwd / "client.log",
            env={"ONRECORD_RECORD_SESSION": session},
            proof_aware=pipe,
            extensions=[CallTasks()],
            elicitation_callback=grace,
        )

    async def proofs(self, session):
        from onrecord.authorize.client import CallProofClient

        return await CallProofClient.connect(self.running.configuration, record_session=session)


async def rejected(coroutine):
    """Return the reason with which a call is rejected."""
    import mcp

    with pytest.raises(mcp.MCPError) as refused:
        await coroutine
    assert refused.value.error.code == -32021
    return refused.value.error.data["reason"]


async def unaware(house):
    """Clients that know nothing of proofs: the connector gets a fresh one for each round, in both eras."""
    for session, mode in (("task", "auto"), ("legacy", "legacy")):
        async with house.client(session, mode=mode) as client:
            result = await client.call_tool("request_review", ASK)
            assert (result.is_error, result.content[0].text) == (False, DONE)


async def aware(house):
    """Clients with proofs of their own: with the helper it works, and by hand each round is bound."""
    from onrecord.authorize.proven_calls import proven_call

    async with house.client("helper", pipe=True) as client:
        proofs = await house.proofs("helper")
        result = await proven_call(client, proofs, "files", "request_review", ASK)
        assert (result.is_error, result.content[0].text) == (False, DONE)
        await proofs.close()
        proofs = await house.proofs("by-hand")
        await by_hand(house, client, proofs)
        await proofs.close()


async def by_hand(house, client, proofs):
    from onrecord.authorize.mcp_tasks import follow_task

    # The official client drives the rounds itself, with one proof for all of them.
    meta = proofs.proof_meta(await proofs.issue("files", "request_review", ASK))
    assert await rejected(client.call_tool("request_review", ASK, meta=meta)) == "mismatch"

    async def round_(proof, **inputs):
        return await client.session.call_tool(
            "request_review",
            ASK,
            meta=proofs.proof_meta(proof),
            allow_input_required=True,
            allow_claimed=True,
            **inputs,
        )

    before = house.executed
    first = await proofs.issue("files", "request_review", ASK)
    asked = await round_(first)
    answers = {"reviewer": {"action": "accept", "content": {"reviewer": "Grace"}}}
    inputs = {"input_responses": answers, "request_state": asked.request_state}
    second = await proofs.issue("files", "request_review", ASK, continues=first, **inputs)
    other = {"reviewer": {"action": "accept", "content": {"reviewer": "Mallory"}}}
    changed = {"input_responses": other, "request_state": asked.request_state}
    assert await rejected(round_(second, **changed)) == "mismatch"
    assert await rejected(round_(second, input_responses=answers)) == "mismatch"
    assert house.executed == before
    done = await follow_task(client.session, await round_(second, **inputs))
    assert done.content[0].text == DONE
    assert await rejected(round_(second, **inputs)) == "replayed"


@pytest.mark.req("TI-243")
def test_rounds_and_tasks(live_servers, short_dir):
    """A fresh proof for each round works, one for two rounds and changed inputs do not; one attempt in the record."""
    import anyio

    from live.conftest import onrecord
    from onrecord.record.checks.checker import check

    house = House(*start(live_servers, short_dir))
    anyio.run(unaware, house)
    assert house.executed == 2
    anyio.run(aware, house)
    assert house.executed == 4

    onrecord(house.running.configuration, "record", "close", "--all")
    records = {}
    for file in house.running.configuration.paths.records.rglob("*.vcon.json"):
        assert [finding for finding in check(file.read_bytes()).findings if finding.severity == "error"] == []
        events = payload(file)["events"]
        kinds = [event["type"] for event in events if event["type"].startswith(("tool-", "policy-"))]
        attempts = {
            (event.get("operation_id"), event.get("attempt")) for event in events if "attempt" in event
        }
        records.setdefault(tuple(kinds), []).append(len(attempts))
    decided = ["policy-decision", *IN_TURN]
    assert records.pop((*decided, "tool-pending", "tool-result")) == [1, 1]  # task and helper
    assert records.pop((*decided, "tool-result")) == [1]  # legacy
    ((by_hand_kinds, _),) = records.items()
    assert by_hand_kinds.count("tool-denied") == 4
    assert by_hand_kinds.count("tool-result") == 1


def payload(file):
    from base64 import urlsafe_b64decode

    encoded = json.loads(file.read_text())["payload"]
    return json.loads(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))

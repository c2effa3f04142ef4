"""Approvals through the real connector, guard, authority and recorder: what client, person and record see."""

from __future__ import annotations

import base64
import json

import pytest

from authorize.authority.house import on_thread
from onrecord.authorize.approver import ApproverClient
from support.runtime import wait_for

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}

RULE = """
@id("echo-needs-approval") @approval("1") @approvers("operators")
forbid(principal, action == Action::"tools/call", resource == Tool::"files/echo")
unless { context.approvals.contains("echo-needs-approval") };
"""


@pytest.fixture
def asking(echo_deployment):
    """A factory of deployments whose one tool runs only after a person has approved it."""

    def make(kind="plain", **values):
        settings = {f"connector.{name}": value for name, value in values.items()}
        made = echo_deployment(values=settings, kind=kind, rules=RULE)
        made.system.start_all()
        return made

    return make


def as_approver(deployment, work):
    """Run `work` with a connection to the approval socket, under the deployment's uid."""

    def run():
        with ApproverClient.connect(deployment.configuration) as client:
            return work(client)

    return on_thread(run, uid=deployment.system.uid)


def pending(deployment):
    return as_approver(deployment, lambda client: client.pending())


def decide(deployment, approval, decision="approve"):
    return as_approver(deployment, lambda client: client.decide(approval.id, decision)).state


def the_pending(deployment):
    """Wait until exactly one call waits for a person, and return it."""

    def look(client):
        wait_for(lambda: len(client.pending()) == 1, what="a call waits for a person")
        return client.pending()[0]

    try:
        return as_approver(deployment, look)
    except AssertionError as error:
        raise AssertionError(f"{error}; the journal has {deployment.records()}") from None


def opened(deployment):
    """Return a client whose server is known to the authority.

    A call that comes sooner waits for that 1.5 seconds and is denied then, which a busy machine makes happen.
    """
    client = deployment.client()
    client.open()
    wait_for(lambda: types(deployment, "tools.changed"), what="the tools are reported")
    return client


def ask(client, request_id, text="hello", **meta):
    params = {"name": "echo", "arguments": {"text": text}, **({"_meta": meta} if meta else {})}
    client.send({"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params})


def types(deployment, *prefixes):
    return [type_ for type_, _ in deployment.records() if type_.startswith(prefixes)]


def vcon_of(deployment):
    """Close the one record session and return its vCon."""
    closed = deployment.system.run("record", "close", "--all", "--json")
    assert closed.returncode == 0, closed.stdout.decode() + closed.stderr.decode()
    (session,) = json.loads(closed.stdout)["sessions"]
    assert session["check"]["errors"] == 0
    vcon = json.loads((deployment.configuration.paths.records / session["vcon"]["file"]).read_text())
    payload = vcon["payload"]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


@pytest.mark.req("CP-049", "CP-051")
def test_approved_while_the_client_waits(asking):
    """The call is held with progress for the host, a person approves, it runs once, and the record tells all of it."""
    it = asking()
    client = opened(it)
    ask(client, 1, progressToken="t")
    notice = client.read()
    assert notice["method"] == "notifications/progress"
    assert notice["params"]["progressToken"] == "t"
    assert notice["params"]["message"] == "waiting for approval by reviewers"
    assert notice["params"]["progress"] < 0
    waiting = the_pending(it)
    assert 'text: "hello"' in waiting.summary
    assert it.ran() == []
    done = it.system.run("approvals", "approve", waiting.id)
    assert done.returncode == 0, done.stderr.decode()
    answer = client.read()
    while "method" in answer:
        answer = client.read()
    assert answer["result"]["content"][0]["text"] == "hello"
    assert len(it.ran()) == 1
    assert types(it, "approval.", "issue.granted", "verify.") == [
        "approval.pending",
        "approval.granted",
        "issue.granted",
        "verify.valid",
    ]
    granted = next(data for type_, data in it.records() if type_ == "approval.granted")
    assert granted["isolation"] == "degraded"
    assert client.end()[0] == 0
    record = vcon_of(it)
    events = {event["type"]: event for event in record["events"] if "attempt" in event}
    assert list(events) == ["policy-decision", "tool-invocation", "tool-result"]
    assert events["policy-decision"]["decision"] == "permission-required"
    assert len({event["operation_id"] for event in events.values()}) == 1
    assert events["tool-invocation"]["body"] == {"text": "hello"}


def test_nobody_answers(asking):
    """At the limit the client gets the text of running.md 6; the approval stays, and the same call finds it again."""
    it = asking(approval_wait_seconds=0)
    client = opened(it)
    ask(client, 1)
    error = client.read()["error"]
    waiting = the_pending(it)
    assert error["code"] == -33002
    assert error["data"]["reason"] == "approval_pending"
    assert error["data"]["approvalId"] == waiting.id
    assert error["message"] == (
        f"Waiting for approval {waiting.id}: nothing was executed. Ask the user to run "
        "`onrecord approvals`, then repeat exactly this call."
    )
    decide(it, waiting)
    ask(client, 2)
    assert client.read()["result"]["content"][0]["text"] == "hello"
    assert len(it.ran()) == 1
    assert client.end()[0] == 0


def test_rejected_and_cancelled(asking):
    """A person's no is told to the client and holds; a cancelled call takes no proof from the one that asks again."""
    it = asking()
    client = opened(it)
    ask(client, 1, text="bad")
    decide(it, the_pending(it), "reject")
    error = client.read()["error"]
    assert (error["code"], error["message"]) == (-33003, "A person rejected this call.")
    ask(client, 2, text="bad")
    assert client.read()["error"]["data"]["reason"] == "approval_rejected"
    assert pending(it) == ()
    assert it.ran() == []

    ask(client, 3)
    waiting = the_pending(it)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})
    ask(client, 4)
    # The second call is known to the authority once it was told that it has to wait.
    reasons = lambda: [data["reason"] for type_, data in it.records() if type_ == "issue.refused"]
    wait_for(lambda: "approval_pending" in reasons(), what="the second call waits too")
    decide(it, waiting)
    answer = client.read()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (4, "hello")
    assert len(it.ran()) == 1
    assert client.end()[0] == 0
    assert pending(it) == ()


def test_no_input_that_nobody_approved(asking):
    """call-proof.md 6.6: a question that the server asks during an approved call is answered with cancel."""
    it = asking(kind="elicit")
    client = opened(it)
    ask(client, 1)
    decide(it, the_pending(it))
    answer = client.read()
    assert (answer["id"], answer["result"]["content"][0]["text"]) == (1, "hello cancel")
    assert client.end()[0] == 0


def test_each_round_is_asked(asking):
    """An MRTR retry carries other input, so it needs an approval of its own, and the approver sees the answers."""
    it = asking(kind="mrtr")
    client = it.client()
    ask(client, 1, **MODERN)
    first = the_pending(it)
    decide(it, first)
    result = client.read()["result"]
    assert result["resultType"] == "input_required"
    retry = {
        "name": "echo",
        "arguments": {"text": "hello"},
        "inputResponses": {"sure": {"action": "accept", "content": {"target": "repo/a"}}},
        "requestState": result["requestState"],
        "_meta": MODERN,
    }
    client.send({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": retry})
    second = the_pending(it)
    assert second.id != first.id
    assert 'input sure: {"action":"accept","content":{"target":"repo/a"}}' in second.summary
    decide(it, second)
    assert client.read()["result"]["content"][0]["text"] == "hello"
    assert client.end()[0] == 0
    assert len(it.ran()) == 2
    assert types(it, "verify.") == ["verify.valid"] * 2
    kinds = [event["type"] for event in vcon_of(it)["events"] if "operation_id" in event]
    assert kinds.count("tool-invocation") == 1
    assert {"tool-input", "tool-input-response", "tool-result"} <= set(kinds)

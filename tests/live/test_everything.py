"""The reference server @modelcontextprotocol/server-everything, which does nearly all that a legacy server can do."""

import json
from types import SimpleNamespace

import pytest

from live.conversation import Conversation
from live.servers import node_server
from support.runtime import child_environment, wait_for

pytestmark = pytest.mark.live

TASK = {"topic": "python", "ambiguous": True}
LONG = {"ttl": 60_000}
LABEL = {"dev.onrecord/recordSession": "everything"}
PAGE = "https://login.example.com/start?for=17"
TI_TYPES = {
    "policy-decision", "tool-invocation", "tool-pending", "tool-progress", "tool-input", "tool-input-response",
    "tool-result", "tool-failure", "tool-error", "tool-denied", "tool-timeout", "tool-cancel",
}  # fmt: skip


def start(live_servers, short_dir):
    """Return the running deployment, and a function that opens a conversation through `onrecord connect`."""
    command = node_server("@modelcontextprotocol/server-everything")
    with Conversation(command, log=short_dir / "client.log") as direct:
        tools = [
            SimpleNamespace(name=tool["name"], input_schema=tool["inputSchema"]) for tool in direct.tools()
        ]
    running = live_servers({"everything": (command, tools, {})})["everything"]

    def talk(**more):
        environment = child_environment(ONRECORD_RECORD_SESSION="everything")
        return Conversation(running.connector(**more), log=short_dir / "client.log", env=environment)

    return running, talk


def use_everything(client):
    """Have the server do all that it can; return what came."""
    seen = {}
    task = client.answer(client.call("simulate-research-query", TASK, task=LONG))["result"]["task"]
    seen["sum"] = client.answer(client.call("get-sum", {"a": 0.1, "b": 1e21}))
    seen["failure"] = client.answer(client.call("get-structured-content", {"location": "Nowhere"}))
    seen["error"] = client.answer(client.call("trigger-url-elicitation", {"url": PAGE, "errorPath": True}))

    duration = {"duration": 0.1, "steps": 2}
    running = client.call("trigger-long-running-operation", duration, _meta={"progressToken": "tok"})
    seen["progress"] = [client.asked("notifications/progress")["params"] for _ in range(2)]
    seen["long"] = client.answer(running)

    hours = {"duration": 7200, "steps": 72_000}
    slow = client.call("trigger-long-running-operation", hours, _meta={"progressToken": "slow"})
    client.asked("notifications/progress")  # now it runs in the server
    client.notify("notifications/cancelled", {"requestId": slow, "reason": "Request timed out"})

    asking = client.call("trigger-elicitation-request")
    question = client.asked("elicitation/create")
    client.send({"id": question["id"], "result": {"action": "decline"}})
    seen["elicitation"] = client.answer(asking)

    def needs_input():
        state = client.answer(client.request("tasks/get", {"taskId": task["taskId"]}))["result"]
        return state["status"] == "input_required"

    wait_for(needs_input, what="the task to ask")
    result = client.request("tasks/result", {"taskId": task["taskId"]})
    question = client.asked("elicitation/create")
    choice = {"action": "accept", "content": {"interpretation": "programming"}}
    client.send({"id": question["id"], "result": choice})
    seen["task"] = client.answer(result)
    return seen


def test_all_that_a_legacy_server_does(live_servers, short_dir):
    """Progress, elicitation, tasks, cancellation, failures and errors pass.

    Each of the twelve types of events is in the record, which is verified and has no error (trap 12).
    """
    from live.conftest import onrecord
    from onrecord.examples.demo.evidence import examine

    running, talk = start(live_servers, short_dir)
    with talk() as client, talk(pipe=True) as unproven:
        missing = unproven.answer(unproven.call("simulate-research-query", TASK, task=LONG, _meta=LABEL))
        assert missing["error"]["data"] == {"reason": "missing"}
        # Trap 9: the start of a task is gated, polling is not; the server itself says that there is no such task.
        polled = unproven.answer(unproven.request("tasks/get", {"taskId": "no-such-task"}))
        assert polled["error"]["code"] not in (-32021, -32601)
        seen = use_everything(client)
    assert seen["sum"]["result"]["content"][0]["text"].startswith("The sum of 0.1 and 1e+21")
    assert seen["failure"]["result"]["isError"] is True
    assert seen["error"]["error"]["code"] == -32042
    assert seen["progress"] == [{"progress": n, "total": 2, "progressToken": "tok"} for n in (1, 2)]
    assert "completed" in seen["long"]["result"]["content"][0]["text"]
    assert "declined" in str(seen["elicitation"]["result"]["content"])
    assert "programming" in seen["task"]["result"]["content"][0]["text"]

    onrecord(running.configuration, "record", "close", "everything")
    found = examine(running.configuration)
    assert (found.report.verdict, found.errors) == ("verified", 0)
    events = json.loads(found.report.payload)["events"]
    assert {event["type"] for event in events} >= TI_TYPES
    task = _operation_of(events, "tool-pending")
    of_task = [event["type"] for event in events if event.get("operation_id") == task]
    assert [kind for kind in of_task if kind != "tool-progress"] == [
        "policy-decision", "tool-invocation", "tool-pending", "tool-input", "tool-input-response", "tool-result",
    ]  # fmt: skip
    (error,) = [event["body"] for event in events if event["type"] == "tool-error"]
    assert "elicitationId" in str(seen["error"])
    assert "elicitationId" not in str(error)
    assert "?" not in error["data"]["elicitations"][0]["url"]


def _operation_of(events, kind):
    (found,) = [event["operation_id"] for event in events if event["type"] == kind]
    return found

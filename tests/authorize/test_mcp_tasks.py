"""Following the tasks of a server to their end."""

import asyncio

import pytest

mcp = pytest.importorskip("mcp")

import mcp_types as types  # noqa: E402

from onrecord.authorize import mcp_tasks  # noqa: E402
from onrecord.authorize.mcp_tasks import CallTask, CallTasks, follow_task  # noqa: E402
from onrecord.base.errors import NetworkError  # noqa: E402

RESULT = {"resultType": "complete", "content": [{"type": "text", "text": "done"}], "isError": False}
QUESTION = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}},
}


class Session:
    """Answers tasks/get with one state after the other; keeps what it was asked."""

    def __init__(self, *states):
        self.states = list(states)
        self.asked = []

    async def send_request(self, request, result_type):
        self.asked.append((request.method, request.params))
        return result_type.model_validate(self.states.pop(0) if request.method == "tasks/get" else {})


async def grace(key, request):
    return types.ElicitResult(action="accept", content={key: "Grace"})


def follow(*states, interval=None):
    session, slept = Session(*states), []

    async def sleep(seconds):
        slept.append(seconds)

    task = CallTask(task_id="t", status="working", poll_interval_ms=interval)
    result = asyncio.run(follow_task(session, task, answer=grace, sleep=sleep))
    return result, session.asked, slept


def asks(*keys):
    return {"status": "input_required", "inputRequests": dict.fromkeys(keys, QUESTION)}


COMPLETED = {"status": "completed", "result": RESULT}


def test_the_result_of_a_completed_task():
    """It is polled until it ends; its result is that of the call."""
    result, asked, slept = follow({"status": "working"}, COMPLETED, interval=1000)
    assert (result.is_error, result.content[0].text) == (False, "done")
    assert asked == [("tasks/get", {"taskId": "t"})] * 2
    assert slept == [1.0, 1.0]


def test_a_tool_that_failed_gives_a_result():
    """An isError result of a completed task is that of the tool, not an error of the protocol."""
    assert follow({"status": "completed", "result": RESULT | {"isError": True}})[0].is_error


@pytest.mark.parametrize(
    ("named", "seconds"), [(None, 0.5), (0, 0.02), (1, 0.02), (250, 0.25), (10**9, 60.0), (-5, 0.02)]
)
def test_the_interval_is_bounded(named, seconds):
    """A server cannot make us spin or sleep for ever."""
    assert follow(COMPLETED, interval=named)[2] == [seconds]


def test_the_server_may_change_the_interval():
    """The newest one counts; what is no number does not."""
    states = (
        {"status": "working", "pollIntervalMs": 100},
        {"status": "working", "pollIntervalMs": "soon"},
        COMPLETED,
    )
    assert follow(*states, interval=1000)[2] == [1.0, 0.1, 0.5]


def test_each_question_is_answered_once():
    """A question that is still shown after its answer is not asked again; a new one beside it is."""
    _, asked, _ = follow(asks("a"), asks("a"), asks("a", "b"), COMPLETED)
    updates = [params["inputResponses"] for method, params in asked if method == "tasks/update"]
    assert updates == [
        {"a": {"action": "accept", "content": {"a": "Grace"}}},
        {"b": {"action": "accept", "content": {"b": "Grace"}}},
    ]


def test_a_task_that_keeps_asking_is_given_up():
    """Eight rounds, then no more."""
    states = [asks(str(number)) for number in range(mcp_tasks.MAX_TASK_ROUNDS)]
    assert not follow(*states, COMPLETED)[0].is_error
    with pytest.raises(NetworkError) as error:
        follow(*states, asks("more"), COMPLETED)
    assert error.value.code == "input-rounds"


def test_a_task_that_failed_is_an_error():
    """With the code and data of the server."""
    error = {"code": -32050, "message": "no", "data": {"x": 1}}
    with pytest.raises(mcp.MCPError) as raised:
        follow({"status": "failed", "error": error})
    assert (raised.value.error.code, raised.value.error.data) == (-32050, {"x": 1})


def test_a_cancelled_task_is_an_error():
    """Nobody gets an empty result for it."""
    with pytest.raises(mcp.MCPError):
        follow({"status": "cancelled"})


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"status": 7},
        {"status": "COMPLETED", "result": RESULT},
        {"status": "completed"},
        {"status": "completed", "result": {"content": "TASK-CANARY"}},
        {"status": "failed", "error": "TASK-CANARY"},
        {"status": "input_required", "inputRequests": {"a": {"method": "TASK-CANARY"}}},
        {"status": "input_required", "inputRequests": ["TASK-CANARY"]},
    ],
)
def test_what_is_no_task_is_said_without_its_text(state):
    """No foreign exception, and nothing of a hostile answer in the message."""
    with pytest.raises(NetworkError) as error:
        follow(state)
    assert error.value.code == "task-unreadable"
    assert "CANARY" not in str(error.value)


def test_the_extension_claims_the_result_type():
    """With it the official client declares tasks and takes their results."""
    (claim,) = CallTasks().claims()
    assert (CallTasks().identifier, claim.result_type) == ("io.modelcontextprotocol/tasks", "task")


def test_a_client_that_declines_ends_the_task():
    """Without an answer of our own the client's callbacks answer; an error of theirs is raised."""

    class Declining(Session):
        async def dispatch_input_request(self, context, request):
            return types.ErrorData(code=-32600, message="not supported")

    async def sleep(seconds):
        return

    task = CallTask(task_id="t", status="working")
    with pytest.raises(mcp.MCPError) as error:
        asyncio.run(follow_task(Declining(asks("a")), task, sleep=sleep))
    assert error.value.error.code == -32600

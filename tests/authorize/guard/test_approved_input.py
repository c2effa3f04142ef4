"""Nobody feeds other input into what a person has approved (call-proof.md 6.6)."""

import json

import pytest

from authorize.guard.relays import PROOF, PROOF_META, Bench
from onrecord.authorize.guard import approved_input
from onrecord.authorize.guard.approved_input import ApprovedTasks
from onrecord.authorize.guard.authority_link import Verdict

APPROVED = Verdict(None, approved=True)


@pytest.fixture
def bench(tmp_path):
    made = []

    def build(name="one", **more):
        directory = tmp_path / name
        directory.mkdir()
        it = Bench(directory, **more)
        made.append(it)
        return it

    yield build
    for it in made:
        it.close()


def ask(it, method="elicitation/create", **params):
    it.say({"jsonrpc": "2.0", "id": "ask", "method": method, "params": {"message": "Target?", **params}})


def start_task(it, request_id, task):
    it.call(request_id)
    it.answer(request_id, {"resultType": "task", "taskId": task, "status": "working"})


def update(it, request_id, task, **params):
    it.send(
        {"jsonrpc": "2.0", "id": request_id, "method": "tasks/update", "params": {"taskId": task, **params}}
    )
    return it.client[-1] if it.client and it.client[-1].get("id") == request_id else None


def test_a_question_that_was_answered_here_is_in_the_record(bench):
    """The server asked and was told "cancel": both stand there, with the question, in the call's attempt."""
    it = bench(verdict=APPROVED)
    it.call()
    ask(it)
    assert it.client == []
    it.answer(7, {"content": []})
    kinds = [(one["kind"], one.get("content")) for one in it.entries[2:]]
    assert kinds == [
        ("input", {"message": "Target?"}),
        ("input-response", {"action": "cancel"}),
        ("result", {"content": []}),
    ]


def test_sampling_is_input_too(bench):
    """What a model says would reach the approved call, so the server gets the answer that the user refused."""
    it = bench(verdict=APPROVED)
    it.call()
    ask(it, "sampling/createMessage")
    assert it.client == []
    assert it.server[1]["id"] == "ask"
    assert it.server[1]["error"]["code"] == -1
    assert "input" not in [one["kind"] for one in it.entries]


def test_a_question_without_an_id_ends_here(bench):
    """There is nobody to answer, and the client must not take it for one."""
    it = bench(verdict=APPROVED)
    it.call()
    it.say({"jsonrpc": "2.0", "method": "elicitation/create", "params": {}})
    assert it.client == []
    assert len(it.server) == 1


def test_other_requests_of_the_server_pass(bench):
    """Roots and pings bring nothing that the call would not have had before."""
    it = bench(verdict=APPROVED)
    it.call()
    ask(it, "roots/list")
    ask(it, "ping")
    assert [one["method"] for one in it.client] == ["roots/list", "ping"]


def test_after_the_end_of_the_approved_call_questions_pass(bench):
    """An approval binds its own call and no other."""
    it = bench(verdict=APPROVED)
    it.call()
    it.answer(7, {"content": []})
    it.verifier.at_once = Verdict(None)
    it.call(8)
    ask(it)
    assert it.client[-1]["method"] == "elicitation/create"


def test_a_cancelled_approved_call_still_gets_no_input(bench):
    """The server may go on with it all the same."""
    it = bench(verdict=APPROVED)
    it.call()
    it.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
    ask(it)
    assert it.client == []


def test_a_question_of_another_task_passes(bench):
    """With its task named, a question belongs to the call of that task, approved or not."""
    it = bench(verdict=APPROVED)
    start_task(it, 7, "approved")
    it.verifier.at_once = Verdict(None)
    start_task(it, 8, "other")
    it.client_bytes.clear()
    related = lambda task: {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": task}}}
    ask(it, **related("other"))
    assert [one["method"] for one in it.client] == ["elicitation/create"]
    it.client_bytes.clear()
    ask(it, **related("approved"))
    ask(it)
    assert it.client == []


def test_an_update_without_input_passes(bench):
    """Only inputResponses are input."""
    it = bench(verdict=APPROVED)
    start_task(it, 7, "t")
    assert update(it, 9, "t") is None
    assert it.server[-1]["method"] == "tasks/update"


@pytest.mark.parametrize("inputs", [{}, {"a": {"action": "accept"}}, None, "x"])
def test_any_input_is_refused(bench, inputs):
    """Whatever inputResponses are, for as long as the guard runs: a server may take them after the task's end."""
    it = bench(verdict=APPROVED)
    start_task(it, 7, "t")
    it.send({"jsonrpc": "2.0", "id": 8, "method": "tasks/get", "params": {"taskId": "t"}})
    it.answer(8, {"taskId": "t", "status": "completed", "result": {"content": []}})
    assert update(it, 9, "t", inputResponses=inputs)["error"]["data"] == {"reason": "missing"}
    assert it.server[-1]["method"] == "tasks/get"


def test_a_task_outlives_its_connection(bench):
    """Input through another connection of the same server is refused as well."""
    first, second = bench(verdict=APPROVED), bench("two")
    tasks = first.relay._approved_input._tasks
    second.relay._approved_input._tasks = tasks
    start_task(first, 7, "t")
    assert update(second, 9, "t", inputResponses={})["error"]["code"] == -32021
    assert update(second, 10, "unknown", inputResponses={}) is None


def test_no_task_id_is_written_anywhere(bench):
    """A task id may be a bearer secret: neither log nor spool has it."""
    it = bench(verdict=APPROVED)
    start_task(it, 7, "TASK-CANARY")
    update(it, 9, "TASK-CANARY", inputResponses={"a": "INPUT-CANARY"})
    assert "CANARY" not in it.log_text()
    assert "CANARY" not in json.dumps(it.entries)


def test_the_memory_is_bounded(monkeypatch):
    """The oldest goes first."""
    monkeypatch.setattr(approved_input, "MAX_APPROVED_TASKS", 2)
    tasks = ApprovedTasks()
    for name in ("a", "b", "c"):
        tasks.add(name)
    assert [name in tasks for name in ("a", "b", "c")] == [False, True, True]


def test_an_approved_round_makes_the_whole_call_approved(bench):
    """If a later round was approved, its task takes no input either."""
    it = bench()
    it.call(1)
    it.answer(1, {"resultType": "input_required", "requestState": "st"})
    it.verifier.at_once = APPROVED
    it.call(2, requestState="st")
    it.answer(2, {"resultType": "task", "taskId": "t", "status": "working"})
    assert update(it, 3, "t", inputResponses={})["error"]["code"] == -32021
    assert PROOF_META not in json.dumps(it.server)
    assert PROOF["value"] not in json.dumps(it.server)


def test_input_cannot_run_ahead_of_its_task(bench):
    """Ids of tasks may be guessed: while an approved call is on its way, an unknown task may be its task."""
    it = bench(verdict=None)
    it.call()
    assert update(it, 9, "t1", inputResponses={}) is None
    it.verifier.waiting[0](APPROVED)
    assert (it.client[-1]["id"], it.client[-1]["error"]["data"]) == (9, {"reason": "missing"})
    assert update(it, 10, "t1", inputResponses={})["error"]["code"] == -32021
    it.answer(7, {"content": []})
    assert update(it, 11, "t1", inputResponses={}) is None
    assert [one["method"] for one in it.server] == ["tools/call", "tasks/update"]


def test_a_known_task_gets_its_input_beside_an_approved_call(bench):
    """It belongs to a call of its own, which nobody had to approve."""
    it = bench()
    start_task(it, 7, "open")
    it.verifier.at_once = APPROVED
    it.call(8)
    assert update(it, 9, "open", inputResponses={}) is None
    assert it.server[-1]["method"] == "tasks/update"


def test_an_update_without_an_id_is_dropped(bench):
    """A server may take a request that asks for no answer all the same."""
    it = bench(verdict=APPROVED)
    start_task(it, 7, "t")
    it.send({"jsonrpc": "2.0", "method": "tasks/update", "params": {"taskId": "t", "inputResponses": {}}})
    assert [one["method"] for one in it.server] == ["tools/call"]
    assert len(it.client) == 1


@pytest.mark.parametrize(
    "params",
    [
        {"taskId": "t", "input_responses": {}},
        {"taskId": "t", "InputResponses": {}},
        {"task_id": "t", "inputResponses": {}},
        {"taskid": "t", "taskId": "other", "inputResponses": {}},
        {"taskId": ["t"], "inputResponses": {}},
        {"inputResponses": {}},
    ],
)
def test_odd_spellings_bring_no_input(bench, params):
    """A lenient server might understand them, so after an approved task they are refused."""
    it = bench(verdict=APPROVED)
    start_task(it, 7, "t")
    it.send({"jsonrpc": "2.0", "id": 9, "method": "tasks/update", "params": params})
    assert it.client[-1]["error"]["data"] == {"reason": "missing"}
    assert [one["method"] for one in it.server] == ["tools/call"]


def test_without_any_approved_call_odd_updates_are_the_servers_business(bench):
    """Nothing is refused that no approval is about."""
    it = bench()
    start_task(it, 7, "t")
    it.send(
        {
            "jsonrpc": "2.0",
            "id": 9,
            "method": "tasks/update",
            "params": {"task_id": "t", "inputResponses": {}},
        }
    )
    assert it.server[-1]["id"] == 9


def test_a_question_about_an_approved_task_of_another_connection(bench):
    """A server that keeps its tasks outside of its process gets no input through the second connection either."""
    first, second = bench(verdict=APPROVED), bench("two")
    second.relay._approved_input._tasks = first.relay._approved_input._tasks
    start_task(first, 7, "t")
    second.call()
    ask(second, _meta={"io.modelcontextprotocol/related-task": {"taskId": "t"}})
    assert second.client == []
    assert second.server[-1]["result"] == {"action": "cancel"}

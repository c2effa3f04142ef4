"""The example server's questions to a person, and its tasks, in both eras."""

import json
from concurrent.futures import Executor, Future

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.examples import asking
from onrecord.examples.asking import CallSeal, Question, Tasks, ToolError
from onrecord.examples.stdio import MAX_QUESTIONS, Tool, ToolServer

TASKS = "io.modelcontextprotocol/tasks"
QUESTION = Question("name", "Who?")
SCHEMA = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
ANSWER = {"action": "accept", "content": {"name": " Grace "}}


class Later(Executor):
    """Runs work when a test says so."""

    def __init__(self):
        self.work = []

    def submit(self, function, /):
        future = Future()
        self.work.append((future, function))
        return future

    def run(self):
        for future, function in self.work:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(function())
                except Exception as fault:
                    future.set_exception(fault)
        self.work.clear()


class House:
    """A server with one tool that asks, and what ran."""

    def __init__(self):
        self.ran = []
        self.later = Later()
        tool = Tool("greet", "Greets.", SCHEMA, self._greet, question=self._ask, is_task=True)
        self.server = ToolServer("s", "1", [tool], tasks=lambda: Tasks(lambda: self.later))

    def _ask(self, arguments):
        if arguments["number"] < 0:
            raise ToolError("no such number")
        return QUESTION

    def _greet(self, arguments):
        self.ran.append(dict(arguments))
        if arguments["number"] == 13:
            raise RuntimeError("secret detail")
        return f"Good day, {arguments['name']}."

    def send(self, message):
        line = self.server.answer(json.dumps({"jsonrpc": "2.0", **message}).encode())
        return None if line is None else json.loads(line)

    def modern(self, method, *, tasks=True, elicitation=True, number=1, **params):
        capabilities = {"elicitation": {}} if elicitation else {}
        capabilities |= {"extensions": {TASKS: {}}} if tasks else {}
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }
        return self.send({"id": number, "method": method, "params": {**params, "_meta": meta}})

    def call(self, *, number=7, **more):
        return self.modern("tools/call", name="greet", arguments={"number": number}, **more)

    def legacy(self, *, capabilities=None):
        capabilities = {"elicitation": {}} if capabilities is None else capabilities
        self.send(
            {
                "id": 0,
                "method": "initialize",
                "params": {"protocolVersion": "2025-11-25", "capabilities": capabilities},
            }
        )

    def legacy_call(self, request_id=1, number=7):
        params = {"name": "greet", "arguments": {"number": number}}
        return self.send({"id": request_id, "method": "tools/call", "params": params})


@pytest.fixture
def house():
    return House()


def text(answer):
    result = answer["result"]
    return result["content"][0]["text"], result["isError"]


class TestModern:
    def test_it_asks_first(self, house):
        """The first round gives the question and a state, and nothing ran."""
        result = house.call()["result"]
        assert result["resultType"] == "input_required"
        assert result["inputRequests"]["name"]["params"]["message"] == "Who?"
        assert isinstance(result["requestState"], str)
        assert house.ran == []

    def test_the_second_round_is_a_task(self, house):
        """It answers at once; the result stands in tasks/get when the work is done."""
        state = house.call()["result"]["requestState"]
        task = house.call(requestState=state, inputResponses={"name": ANSWER})["result"]
        assert (task["resultType"], task["status"]) == ("task", "working")
        assert house.ran == []
        get = lambda: house.modern("tasks/get", taskId=task["taskId"])["result"]
        assert get()["status"] == "working"
        house.later.run()
        ended = get()
        assert ended["status"] == "completed"
        assert ended["result"]["content"][0]["text"] == "Good day, Grace."
        assert house.ran == [{"number": 7, "name": "Grace"}]
        assert get() | {"lastUpdatedAt": None} == ended | {"lastUpdatedAt": None}

    def test_without_the_extension_it_waits(self, house):
        """A client that cannot follow tasks gets the result itself."""
        state = house.call(tasks=False)["result"]["requestState"]
        answer = house.call(tasks=False, requestState=state, inputResponses={"name": ANSWER})
        assert text(answer) == ("Good day, Grace.", False)

    def test_a_client_that_cannot_ask(self, house):
        """It is told which capability is missing; nothing runs."""
        error = house.call(elicitation=False)["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"elicitation": {}}})

    @pytest.mark.parametrize(
        "inputs",
        [
            {"inputResponses": {"name": ANSWER}},
            {"requestState": "", "inputResponses": {"name": ANSWER}},
            {"requestState": "0" * 64, "inputResponses": {"name": ANSWER}},
            {"requestState": ["x"], "inputResponses": {"name": ANSWER}},
            {"requestState": "\ud800", "inputResponses": {"name": ANSWER}},
        ],
    )
    def test_a_forged_state(self, house, inputs):
        """A state that was not made for this call is refused."""
        assert house.call(**inputs)["error"]["code"] == -32602
        assert house.ran == []

    def test_the_state_of_another_call(self, house):
        """It is bound to the arguments, and to the process."""
        state = house.call(number=8)["result"]["requestState"]
        assert house.call(requestState=state, inputResponses={"name": ANSWER})["error"]["code"] == -32602
        state = House().call()["result"]["requestState"]
        assert house.call(requestState=state, inputResponses={"name": ANSWER})["error"]["code"] == -32602

    @pytest.mark.parametrize(
        "responses",
        [
            {},
            {"other": ANSWER},
            {"name": {"action": "decline"}},
            {"name": {"action": "accept"}},
            {"name": {"action": "accept", "content": {"name": ""}}},
            {"name": {"action": "accept", "content": {"name": "  "}}},
            {"name": {"action": "accept", "content": {"name": "x" * 201}}},
            {"name": {"action": "accept", "content": {"name": 7}}},
            {"name": "accept"},
            None,
        ],
    )
    def test_no_answer_no_work(self, house, responses):
        """Declined, empty, too long or of another kind: the tool does not run."""
        state = house.call()["result"]["requestState"]
        answer = house.call(tasks=False, requestState=state, inputResponses=responses)
        assert text(answer)[1] is True
        assert house.ran == []

    def test_the_longest_answer(self, house):
        """200 characters are taken."""
        state = house.call()["result"]["requestState"]
        longest = {"action": "accept", "content": {"name": "x" * asking.MAX_ANSWER_CHARS}}
        answer = house.call(tasks=False, requestState=state, inputResponses={"name": longest})
        assert text(answer)[1] is False

    def test_a_question_that_cannot_be_asked(self, house):
        """What the tool refuses before it asks is a failure, without a question."""
        assert text(house.call(number=-1)) == ("no such number", True)


class TestTasks:
    def start(self, house, **more):
        state = house.call(**more)["result"]["requestState"]
        return house.call(requestState=state, inputResponses={"name": ANSWER}, **more)["result"]["taskId"]

    def test_cancelled_before_it_began(self, house):
        """It does not run any more."""
        task = self.start(house)
        assert house.modern("tasks/cancel", taskId=task)["result"]["resultType"] == "complete"
        house.later.run()
        assert house.modern("tasks/get", taskId=task)["result"]["status"] == "cancelled"
        assert house.ran == []

    def test_cancelled_after_its_end(self, house):
        """It stays completed."""
        task = self.start(house)
        house.later.run()
        house.modern("tasks/cancel", taskId=task)
        assert house.modern("tasks/get", taskId=task)["result"]["status"] == "completed"

    def test_a_fault_is_an_error_without_its_text(self, house):
        """Status failed, with a JSON-RPC error."""
        task = self.start(house, number=13)
        house.later.run()
        state = house.modern("tasks/get", taskId=task)["result"]
        assert (state["status"], state["error"]["code"]) == ("failed", -32603)
        assert "secret" not in str(state)

    @pytest.mark.parametrize("task", ["no-such-task", 7, None, ["x"]])
    @pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
    def test_an_unknown_task(self, house, method, task):
        """An error, whatever stands in the place of the id."""
        assert house.modern(method, taskId=task)["error"]["code"] == -32602

    def test_an_update_is_taken_and_ignored(self, house):
        """Tasks of this server ask nothing."""
        task = self.start(house)
        answer = house.modern("tasks/update", taskId=task, inputResponses={"x": {}})
        assert answer["result"]["resultType"] == "complete"

    def test_tasks_need_their_extension(self, house):
        """A client that did not declare it is told so."""
        error = house.modern("tasks/get", tasks=False, taskId=self.start(house))["error"]
        assert (error["code"], "requiredCapabilities" in error["data"]) == (-32021, True)

    def test_they_are_advertised(self, house):
        """Only by a server that has tools which become tasks."""
        capabilities = house.modern("server/discover")["result"]["capabilities"]
        assert capabilities == {"tools": {}, "extensions": {TASKS: {}}}

    def test_the_memory_is_bounded(self, monkeypatch):
        """The oldest task is forgotten."""
        monkeypatch.setattr(asking, "MAX_TASKS", 2)
        tasks = Tasks(Later)
        ids = [tasks.start(dict)["taskId"] for _ in range(3)]
        assert [tasks.get(one) is None for one in ids] == [True, False, False]

    def test_the_real_executor(self):
        """At the end it waits for what was begun."""
        tasks = Tasks()
        task = tasks.start(lambda: {"done": True})["taskId"]
        tasks.close()
        assert tasks.get(task)["result"] == {"done": True}


class TestLegacy:
    def test_it_asks_by_a_request_of_its_own(self, house):
        """elicitation/create comes first, the result after the answer; there are no tasks."""
        house.legacy()
        asked = house.legacy_call()
        assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", "Who?")
        answer = house.send({"id": asked["id"], "result": ANSWER})
        assert (answer["id"], text(answer)) == (1, ("Good day, Grace.", False))
        assert house.send({"id": asked["id"], "result": ANSWER}) is None
        assert len(house.ran) == 1

    def test_other_requests_are_answered_meanwhile(self, house):
        """A question that is open holds nothing up, and answers find their own call."""
        house.legacy()
        first, second = house.legacy_call("a"), house.legacy_call("b", number=8)
        assert house.send({"id": 5, "method": "ping"})["result"] == {}
        assert house.send({"id": second["id"], "result": ANSWER})["id"] == "b"
        assert house.send({"id": first["id"], "result": ANSWER})["id"] == "a"

    @pytest.mark.parametrize(
        "answer", [{"result": {"action": "cancel"}}, {"error": {"code": -32601, "message": "no"}}]
    )
    def test_no_answer_no_work(self, house, answer):
        """Cancelled, or an error of the client: the call fails."""
        house.legacy()
        asked = house.legacy_call()
        assert text(house.send({"id": asked["id"], **answer}))[1] is True
        assert house.ran == []

    def test_a_cancelled_call_is_forgotten(self, house):
        """The answer to its question runs nothing."""
        house.legacy()
        asked = house.legacy_call()
        house.send({"method": "notifications/cancelled", "params": {"requestId": 1}})
        assert house.send({"id": asked["id"], "result": ANSWER}) is None
        assert house.ran == []

    def test_a_client_that_cannot_ask(self, house):
        """The call fails with a text for the model."""
        house.legacy(capabilities={})
        assert text(house.legacy_call())[1] is True

    def test_open_questions_are_bounded(self, house):
        """Sixteen; the next call is an error."""
        house.legacy()
        for number in range(MAX_QUESTIONS):
            assert "method" in house.legacy_call(number)
        assert house.legacy_call(99)["error"]["code"] == -32603

    def test_a_fault_after_the_answer(self, house):
        """The call gets its error, without the text of the fault."""
        house.legacy()
        asked = house.legacy_call(number=13)
        error = house.send({"id": asked["id"], "result": ANSWER})["error"]
        assert (error["code"], "secret" in str(error)) == (-32603, False)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(response=JSON, state=JSON, arguments=st.dictionaries(st.text(max_size=5), JSON, max_size=3))
def test_nothing_hostile_gets_through(response, state, arguments):
    """A response is a text or a `ToolError`, and no state is taken that was not made here."""
    seal = CallSeal()
    assert not seal.fits(state, "greet", arguments)
    assert seal.fits(seal.seal("greet", arguments), "greet", arguments)
    try:
        assert QUESTION.answer(response)
    except ToolError:
        pass

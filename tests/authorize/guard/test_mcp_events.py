"""What MCP messages mean for the record: the mapping vectors, and cases beside them."""

import json

import pytest

from onrecord.authorize.guard.mcp_content import (
    bare_url,
    error_content,
    error_kind,
    input_responses,
    needs_care,
    storable,
)
from onrecord.authorize.guard.mcp_events import ABSENT, Attempts, Observation
from support.data import shared_data

KINDS = {
    "tool-pending": "pending", "tool-progress": "progress", "tool-input": "input", "tool-input-response": "input-response",  # noqa: E501
    "tool-result": "result", "tool-failure": "failure", "tool-error": "error", "tool-denied": "denied",
    "tool-cancel": "cancel", "tool-timeout": "timeout", "tool-invocation": "invocation",
}  # fmt: skip


def follow(capture):
    """Run a capture through the bookkeeping; return (kind, operation, content) in order, without what HTTP tells."""
    attempts = Attempts("1")
    seen = []
    operations = {}
    calls = {}
    skipped = set()
    started = 0
    for row in capture:
        message = row.get("msg")
        observed = []
        if "http" in row or (row.get("local") and row["local"] != "timeout"):
            skipped.add(row.get("for") or row["http"]["for"])
        elif row.get("local") == "timeout":
            continue
        elif row["dir"] == "recv":
            observed = attempts.from_server(message)
        elif message.get("method") == "tools/call":
            params = message["params"]
            digest = json.dumps([params["name"], params.get("arguments")])
            token = params.get("_meta", {}).get("progressToken")
            open_one = (
                attempts.continued(digest, params.get("requestState"))
                if {"inputResponses", "requestState"} & params.keys()
                else None
            )
            if open_one is not None:
                observed = [
                    attempts.resume(
                        open_one,
                        message["id"],
                        token=token,
                        responses=params.get("inputResponses"),
                        approved=False,
                    )
                ]
            else:
                call = attempts.next_call()
                if "retry_of" not in row:
                    started += 1
                operations[call] = f"op-{started}"
                attempts.start(message["id"], call=call, digest=digest, token=token, started_ns=0)
                calls[message["id"]] = call
                observed = [Observation("invocation", call, params.get("arguments", ABSENT))]
        else:
            observed = attempts.from_client(message.get("method"), message, now_ns=30_000_000_000)
        seen += [(one.kind, operations[one.call], one.content) for one in observed]
    return seen, {operations[calls[request]] for request in skipped}


@pytest.mark.req("TI-243")
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_mapping_vectors(revision):
    """The captures of both revisions give the events that they must, apart from what only HTTP can tell."""
    directory = shared_data("vcon", "mcp")
    rows = [json.loads(line) for line in (directory / f"{revision}.capture.jsonl").read_text().splitlines()][
        1:
    ]
    seen, skipped = follow(rows)
    expected = [
        (KINDS[event["type"]], event["operation_id"], event.get("body", ABSENT))
        for event in json.loads((directory / f"{revision}.expected.json").read_text())["events"]
    ]
    assert seen == [
        (kind, operation, content)
        for kind, operation, content in expected
        if not (operation in skipped and (kind != "invocation" and not _from_message(operation, kind, seen)))
    ]


def _from_message(operation, kind, seen):
    return any(one[0] == kind and one[1] == operation for one in seen)


def started(**more):
    attempts = Attempts("1")
    attempts.start(7, call=attempts.next_call(), digest="d", token=None, started_ns=1_000_000_000, **more)
    return attempts


def cancel(attempts, reason, now_ns=61_000_000_000):
    params = {"requestId": 7, **({} if reason is None else {"reason": reason})}
    return attempts.from_client("notifications/cancelled", {"params": params}, now_ns=now_ns)


@pytest.mark.parametrize("reason", ["Request timed out", "timeout", "TIMEOUT of 60 s"])
def test_a_cancellation_for_time_is_first_a_timeout(reason):
    """R-09: timeout with the time since the invocation, then the cancellation, of one moment."""
    assert cancel(started(), reason) == [
        Observation("timeout", "1.1", {"waited_ms": 60_000}),
        Observation("cancel", "1.1", {"reason": reason}),
    ]


def test_a_cancellation_for_another_reason_is_only_that():
    """A person pressed a key."""
    assert cancel(started(), "user") == [Observation("cancel", "1.1", {"reason": "user"})]
    assert cancel(started(), None) == [Observation("cancel", "1.1", {"signal": "notifications/cancelled"})]


def test_a_second_cancellation_says_nothing_new():
    """One cancel per attempt."""
    attempts = started()
    cancel(attempts, "user")
    assert cancel(attempts, "user") == []


def test_a_late_result_belongs_to_its_own_call():
    """After timeout and cancellation the answer is still recorded."""
    attempts = started()
    cancel(attempts, "timeout")
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"content": []}}
    assert attempts.from_server(answer) == [Observation("result", "1.1", {"content": []})]
    assert attempts.from_server(answer) == []


def test_the_end_of_the_server_ends_each_open_attempt():
    """D-62: an error with the transport, once for each attempt that has no end."""
    attempts = started()
    attempts.start(8, call=attempts.next_call(), digest="e", token=None, started_ns=0)
    attempts.from_server({"id": 8, "result": {"content": []}})
    assert attempts.transport_ended() == [Observation("error", "1.1", {"transport": "eof"})]
    assert attempts.transport_ended() == []


def test_ids_of_two_types_are_two_ids():
    """The answer to "7" is none to 7."""
    assert started().from_server({"id": "7", "result": {}}) == []


def test_no_secret_of_the_protocol_is_content():
    """PR-02, PR-05: no request state, task id, elicitation id, progress token or _meta in any content."""
    attempts = Attempts("1")
    for number in (1, 2):
        attempts.start(
            number, call=attempts.next_call(), digest=str(number), token=f"TOKEN-{number}", started_ns=0
        )
    seen = attempts.from_server({"id": 1, "result": {
        "resultType": "input_required", "requestState": "STATE", "_meta": {"m": "META"},
        "inputRequests": {"a": {"method": "elicitation/create", "params": {"elicitationId": "ELIC", "url": "https://u:SECRET@a.example/p?q=QUERY", "_meta": {"m": "META"}}},  # noqa: E501
                          "b": {"method": "sampling/createMessage", "params": {"messages": ["SAMPLE"]}}}}})  # fmt: skip
    open_one = attempts.continued("1", None)
    seen.append(
        attempts.resume(
            open_one,
            3,
            token=None,
            approved=False,
            responses={"a": {"action": "accept"}, "b": {"text": "SAMPLE"}},
        )
    )
    seen += attempts.from_server(
        {
            "method": "notifications/progress",
            "params": {"progressToken": "TOKEN-2", "progress": 1, "_meta": {"m": "META"}},
        }
    )
    seen += attempts.from_server(
        {
            "id": 2,
            "result": {"resultType": "task", "taskId": "TASK", "status": "working", "_meta": {"m": "META"}},
        }
    )
    text = json.dumps([one for one in seen if one.content is not ABSENT])
    for marker in ("STATE", "TASK", "ELIC", "TOKEN", "META", "QUERY", "SECRET", "SAMPLE"):
        assert marker not in text
    assert [one.kind for one in seen] == ["input", "input-response", "progress", "pending"]


def test_a_question_goes_to_the_only_active_call():
    """D-65: a legacy elicitation has no link to its call; of several the latest, and that is counted."""
    attempts = started()
    (asked,) = attempts.from_server({"id": "s", "method": "elicitation/create", "params": {"message": "?"}})
    assert asked == Observation("input", "1.1", {"message": "?"})
    (said,) = attempts.from_client(None, {"id": "s", "result": {"action": "decline"}}, now_ns=0)
    assert said == Observation("input-response", "1.1", {"action": "decline"})
    attempts.start(8, call=attempts.next_call(), digest="e", token=None, started_ns=0)
    (asked,) = attempts.from_server({"id": "s", "method": "elicitation/create", "params": {"message": "?"}})
    assert asked.call == "1.2"
    assert attempts.unattributed == 1


def test_polling_does_not_repeat_itself():
    """The same status twice is one observation; the end of a task is one end."""
    attempts = started()
    attempts.from_server({"id": 7, "result": {"resultType": "task", "taskId": "t", "status": "working"}})

    def poll(number, status):
        attempts.from_client("tasks/get", {"id": number, "params": {"taskId": "t"}}, now_ns=0)
        return attempts.from_server({"id": number, "result": {"taskId": "t", **status}})

    assert poll(1, {"status": "working"}) == []
    asks = {
        "status": "input_required",
        "inputRequests": {"a": {"method": "elicitation/create", "params": {}}},
    }
    assert [one.kind for one in poll(2, asks)] == ["input"]
    assert poll(3, asks) == []
    end = {"status": "completed", "result": {"content": [], "isError": True}}
    assert [one.kind for one in poll(4, end)] == ["failure"]
    assert poll(5, end) == []


def task_of(attempts, *, request_id=7, task="t"):
    attempts.from_server(
        {"id": request_id, "result": {"resultType": "task", "taskId": task, "status": "working"}}
    )


def look(attempts, number, requests, *, task="t"):
    """Poll a task that asks; return what that means."""
    attempts.from_client("tasks/get", {"id": number, "params": {"taskId": task}}, now_ns=0)
    state = {"taskId": task, "status": "input_required", "inputRequests": requests}
    return attempts.from_server({"id": number, "result": state})


ELICIT = {"method": "elicitation/create", "params": {"message": "?"}}
SAMPLE = {"method": "sampling/createMessage", "params": {}}


def test_a_task_may_ask_again():
    """A key that was not shown before is a new question, even if no other status was seen in between."""
    attempts = started()
    task_of(attempts)
    assert look(attempts, 1, {"a": ELICIT}) == [Observation("input", "1.1", {"a": ELICIT})]
    assert look(attempts, 2, {"a": ELICIT}) == []
    assert look(attempts, 3, {"a": ELICIT, "b": ELICIT}) == [Observation("input", "1.1", {"b": ELICIT})]
    assert look(attempts, 4, {}) == []
    assert look(attempts, 5, "hostile") == []


def test_a_sampling_answer_stays_out_for_all_questions_of_a_task():
    """D-63: what was asked by sampling is not recorded, whenever it is answered."""
    attempts = started()
    task_of(attempts)
    assert look(attempts, 1, {"s": SAMPLE}) == [Observation("input", "1.1")]
    look(attempts, 2, {"a": ELICIT})
    answers = {"s": {"text": "SAMPLE"}, "a": {"action": "accept"}}
    update = {"id": 3, "params": {"taskId": "t", "inputResponses": answers}}
    assert attempts.from_client("tasks/update", update, now_ns=0) == [
        Observation("input-response", "1.1", {"a": {"action": "accept"}})
    ]


def test_equal_calls_are_told_apart_by_their_state():
    """Two calls with one digest ask; each goes on with its own state, and an unknown state with the newest."""
    attempts = Attempts("1")
    for number, state in ((1, "one"), (2, "two")):
        attempts.start(number, call=attempts.next_call(), digest="d", token=None, started_ns=0)
        attempts.from_server(
            {"id": number, "result": {"resultType": "input_required", "requestState": state}}
        )
    assert attempts.continued("d", "one").call == "1.1"
    assert attempts.continued("d", "two").call == "1.2"
    assert attempts.continued("d", None).call == "1.2"
    assert attempts.continued("e", "one") is None


def test_what_nobody_waits_for_is_forgotten_first(monkeypatch):
    """With too many open attempts a cancelled one goes, then a task; never one that a person has approved."""
    monkeypatch.setattr("onrecord.authorize.guard.mcp_events.MAX_FORGOTTEN", 2)
    attempts = Attempts("1")
    begin = lambda number, **more: attempts.start(
        number, call=attempts.next_call(), digest=str(number), token=None, started_ns=0, **more
    )
    begin(1, approved=True)
    task_of(attempts, request_id=1, task="approved")
    begin(2)
    task_of(attempts, request_id=2, task="idle")
    begin(3)
    assert [one.call for one in attempts._open.values()] == ["1.1", "1.3"]
    attempts.from_client("notifications/cancelled", {"params": {"requestId": 3}}, now_ns=0)
    begin(4)
    assert [one.call for one in attempts._open.values()] == ["1.1", "1.4"]
    begin(5)
    assert len(attempts._open) == 3


def test_the_task_of_an_approved_call_is_told():
    """The guard keeps its id, to refuse input for it on every connection."""
    told = []
    attempts = Attempts("1", approved_task=told.append)
    for number, approved in ((7, True), (8, False)):
        attempts.start(
            number, call=attempts.next_call(), digest="d", token=None, started_ns=0, approved=approved
        )
        task_of(attempts, request_id=number, task=f"t-{number}")
    assert told == ["t-7"]


@pytest.mark.req("CP-128")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32021, "message": "x", "data": {"reason": "missing", "more": "SECRET"}}, "denied"),
        ({"code": -32021, "message": "x", "data": {"reason": "Unknown-Type"}}, "denied"),
        ({"code": -32021, "message": "x", "data": {"reason": "else"}}, "error"),
        ({"code": -32021, "message": "x", "data": {"requiredCapabilities": {}}}, "error"),
        ({"code": -32602, "message": "x", "data": {"reason": "missing"}}, "error"),
        ("no object", "error"),
    ],
)
def test_a_rejection_is_a_denial_only_with_its_code_and_reason(error, kind):
    """D-60, PR-03: only code, message and reason are kept of it."""
    assert error_kind(error) == kind
    if kind == "denied":
        assert set(error_content(error)) == {"code", "message", "data"}
        assert list(error_content(error)["data"]) == ["reason"]


def test_content_that_strict_readers_refuse_is_made_storable():
    """Wide integers, infinities, broken surrogates and deep nesting keep their place, as text."""
    deep = value = []
    for _ in range(80):
        value.append([])
        value = value[0]
    made = storable(
        {"n": 2**70, "w": 2**60, "f": float("inf"), "s": "a\ud800", "deep": deep, "ok": [1, 1.5, None, True]}
    )
    assert made["n"] == str(2**70)
    assert made["w"] == 2**60
    assert made["f"] == "inf"
    assert made["s"] == "a\ufffd"
    assert made["ok"] == [1, 1.5, None, True]
    assert json.dumps(made).count("[") < 70
    assert needs_care(b'{"n":1180591620717411303424}')
    assert not needs_care(b'{"n":115292}')


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("https://user:pass@login.example.com:8443/start?token=x#f", "https://login.example.com:8443/start"),
        ("https://login.example.com/start", "https://login.example.com/start"),
        ("http://[bad", ""),
    ],
)
def test_urls_lose_what_may_be_secret(url, bare):
    """PR-06: no userinfo, query or fragment."""
    assert bare_url(url) == bare


@pytest.mark.parametrize("method", [[], {}, 7, None, True])
def test_a_method_that_is_no_text_means_nothing(method):
    """A server can send it; neither connection nor record may break."""
    assert started().from_server({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}}) == []


@pytest.mark.parametrize("request_id", ["7", " 7", "+7", "0_7", "\u0667"])
def test_a_cancellation_by_text_is_recorded(request_id):
    """The SDKs take it for that of request 7 and end the call, so the record has to show why."""
    message = {"method": "notifications/cancelled", "params": {"requestId": request_id}}
    observed = started().from_client(message["method"], message, now_ns=0)
    assert [(one.kind, one.call) for one in observed] == [("cancel", "1.1")]


@pytest.mark.parametrize("request_id", ["8", "x", "", "7.0", "9" * 5000, True, 7.0, None])
def test_a_cancellation_of_nothing_is_not(request_id):
    """Other texts are no number of a request; a very long one is not even tried."""
    message = {"method": "notifications/cancelled", "params": {"requestId": request_id}}
    assert started().from_client(message["method"], message, now_ns=0) == []


def test_a_round_after_a_cancelled_one_can_be_cancelled_too():
    """The call goes on, so it counts as running, and its end is recorded."""
    attempts = started()
    cancelled = {"params": {"requestId": 7, "reason": "tired"}}
    attempts.from_client("notifications/cancelled", cancelled, now_ns=0)
    attempts.from_server({"id": 7, "result": {"resultType": "input_required", "requestState": "st"}})
    attempt = attempts.continued("d", "st")
    attempts.resume(attempt, 8, token=None, responses=None, approved=False)
    assert attempts.running == 1
    again = attempts.from_client(
        "notifications/cancelled", {"params": {"requestId": 8, "reason": "no"}}, now_ns=0
    )
    assert again == [Observation("cancel", "1.1", {"reason": "no"})]


@pytest.mark.parametrize("answer", [{"action": "accept", "content": {"target": "x"}}, {"roots": []}])
def test_an_answer_cannot_hide_as_one_of_a_model(answer):
    """Members that only a sampled answer has do not take another answer out of the record."""
    said = {**answer, "role": "assistant", "model": "m"}
    sampled = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}}
    assert input_responses({"a": said, "b": sampled}, frozenset()) == {"a": said}

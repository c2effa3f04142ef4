"""A fresh proof for each round of a call, and what ends it."""

import asyncio
from types import SimpleNamespace

import pytest

mcp = pytest.importorskip("mcp")

import mcp_types as types  # noqa: E402

from onrecord.authorize import proven_calls  # noqa: E402
from onrecord.authorize.client import Proof  # noqa: E402
from onrecord.authorize.mcp_tasks import CallTask  # noqa: E402
from onrecord.authorize.proven_calls import MAX_ROUNDS, proven_call  # noqa: E402
from onrecord.base.dates import ManualClock  # noqa: E402
from onrecord.base.errors import NetworkError, OnrecordError  # noqa: E402
from onrecord.base.wire import RpcError  # noqa: E402

DONE = types.CallToolResult(content=[types.TextContent(type="text", text="done")])
ELICIT = types.ElicitRequest(
    params=types.ElicitRequestFormParams(
        message="Who?", requested_schema={"type": "object", "properties": {}}
    )
)


def asks(state="st", *keys):
    return types.InputRequiredResult(request_state=state, input_requests=dict.fromkeys(keys, ELICIT) or None)


def rejects(reason):
    return mcp.MCPError(code=-32021, message="Call proof rejected", data={"reason": reason})


def pending():
    return RpcError(-33002, "Approval pending", {"reason": "approval_pending", "approvalId": "w1"})


class Proofs:
    """The authority's end: one proof after the other, or the refusals that a test lists first."""

    def __init__(self, *refusals, clock=None, approval=None):
        self.refusals = list(refusals)
        self.asked = []
        self.clock = clock
        self.approval = approval

    async def issue(self, server, name, arguments, **more):
        self.asked.append({"arguments": arguments, **more})
        if self.clock is not None:
            self.clock.advance(more["wait_ms"] / 1000)
        if self.refusals:
            raise self.refusals.pop(0)
        return Proof(
            evidence={"type": "t", "value": f"p{len(self.asked)}"},
            action_digest="x",
            operation_id="op",
            expires_at="",
            server=server,
            approval_id=self.approval,
        )

    def proof_meta(self, proof):
        return {"proof": proof.evidence["value"]}


class Session:
    """The server's end: one answer after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.sent = []

    async def call_tool(self, name, arguments, **more):
        assert more.pop("allow_input_required")
        assert more.pop("allow_claimed")
        self.sent.append(more)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def dispatch_input_request(self, context, request):
        return types.ElicitResult(action="decline")


async def grace(key, request):
    return types.ElicitResult(action="accept", content={"reviewer": "Grace"})


def call(proofs, session, **more):
    return asyncio.run(proven_call(SimpleNamespace(session=session), proofs, "files", "t", {"a": 1}, **more))


def test_each_round_has_its_own_proof():
    """mcp.md 10.2: the proof of a round is asked for with the answers of that round, and continues the operation."""
    proofs, session = Proofs(), Session(asks("st-1", "who"), asks("st-2", "who"), DONE)
    assert call(proofs, session, answer=grace) is DONE
    assert [one["meta"]["proof"] for one in session.sent] == ["p1", "p2", "p3"]
    said = {"who": {"action": "accept", "content": {"reviewer": "Grace"}}}
    assert [one["input_responses"] for one in proofs.asked] == [None, said, said]
    assert [one["request_state"] for one in session.sent] == [None, "st-1", "st-2"]
    assert [one["continues"] is None for one in proofs.asked] == [True, False, False]


def test_the_inputs_of_the_proof_are_those_of_the_call():
    """What is digested is what the official client writes."""
    proofs, session = Proofs(), Session(asks("st", "who"), DONE)
    call(proofs, session, answer=grace)
    params = types.CallToolRequestParams(
        name="t", arguments={"a": 1}, input_responses=session.sent[1]["input_responses"]
    )
    assert (
        proofs.asked[1]["input_responses"]
        == params.model_dump(by_alias=True, mode="json", exclude_none=True)["inputResponses"]
    )


def test_without_an_answer_the_callbacks_answer():
    """The client was made with them."""
    proofs, session = Proofs(), Session(asks("st", "who"), DONE)
    call(proofs, session)
    assert proofs.asked[1]["input_responses"] == {"who": {"action": "decline"}}


def test_a_state_alone_is_given_back(monkeypatch):
    """The server wanted time: the next round has the state and no answers."""
    monkeypatch.setattr(proven_calls, "STATE_ONLY_SECONDS", 0)
    proofs, session = Proofs(), Session(asks("later"), DONE)
    call(proofs, session, answer=grace)
    assert (proofs.asked[1]["input_responses"], proofs.asked[1]["request_state"]) == (None, "later")


def test_a_server_that_keeps_asking_is_given_up():
    """Eight rounds, and no ninth proof."""
    proofs, session = Proofs(), Session(*[asks("st", "who")] * MAX_ROUNDS)
    with pytest.raises(NetworkError) as error:
        call(proofs, session, answer=grace)
    assert error.value.code == "input-rounds"
    assert len(proofs.asked) == MAX_ROUNDS
    assert call(Proofs(), Session(*[asks("st", "who")] * (MAX_ROUNDS - 1), DONE), answer=grace) is DONE


@pytest.mark.parametrize("reason", ["expired", "replayed", "missing", "revoked"])
def test_one_new_proof_where_a_retry_makes_sense(reason):
    """CP-130: once, for the whole call."""
    proofs, session = Proofs(), Session(rejects(reason), DONE)
    assert call(proofs, session) is DONE
    assert [one["meta"]["proof"] for one in session.sent] == ["p1", "p2"]
    with pytest.raises(mcp.MCPError):
        call(Proofs(), Session(rejects(reason), asks("st", "who"), rejects(reason), DONE), answer=grace)


@pytest.mark.parametrize(
    "error", [rejects("mismatch"), rejects("invalid"), mcp.MCPError(code=-32602, message="no")]
)
def test_no_new_proof_where_it_makes_none(error):
    """A mismatch stays one, and so does an error of the server."""
    proofs = Proofs()
    with pytest.raises(mcp.MCPError) as raised:
        call(proofs, Session(error, DONE))
    assert raised.value is error
    assert len(proofs.asked) == 1


def test_it_waits_for_a_person():
    """The question to the authority is held open until the approval is there."""
    clock = ManualClock()
    proofs, session = Proofs(pending(), pending(), clock=clock), Session(DONE)
    assert call(proofs, session, clock=clock) is DONE
    assert [one["wait_ms"] for one in proofs.asked] == [0, 25_000, 25_000]


def test_it_does_not_wait_for_ever():
    """At the limit the refusal is raised, with the approval's id; the approval stays, so the call may be repeated."""
    clock = ManualClock()
    proofs = Proofs(*[pending()] * 9, clock=clock)
    with pytest.raises(RpcError) as error:
        call(proofs, Session(), approval_seconds=60, clock=clock)
    assert error.value.data["approvalId"] == "w1"
    assert [one["wait_ms"] for one in proofs.asked] == [0, 25_000, 25_000, 10_000]


@pytest.mark.parametrize("proofs", [lambda: Proofs(pending()), lambda: Proofs(approval="w1")])
def test_a_model_adds_nothing_to_an_approved_call(proofs):
    """However the approval came, `answer` is not asked; without a person's answer the call ends."""
    with pytest.raises(OnrecordError) as error:
        call(proofs(), Session(asks("st", "who")), answer=grace)
    assert error.value.code == "input-needs-person"
    by_person = Session(asks("st", "who"), DONE)
    assert call(proofs(), by_person, answer_approved=grace) is DONE
    assert by_person.sent[1]["input_responses"]["who"].action == "accept"


@pytest.mark.parametrize("reason", ["denied", "approval_rejected", "rate_limited"])
def test_other_refusals_are_raised(reason):
    """Nothing is sent without a proof."""
    session = Session(DONE)
    with pytest.raises(RpcError) as error:
        call(Proofs(RpcError(-33001, "no", {"reason": reason})), session)
    assert error.value.reason == reason
    assert session.sent == []


def test_a_task_is_followed(monkeypatch):
    """The call ends with the result of its task."""
    followed = []

    async def follow(session, task, *, answer):
        followed.append(task.task_id)
        return DONE

    monkeypatch.setattr(proven_calls, "follow_task", follow)
    assert call(Proofs(), Session(CallTask(task_id="t-1", status="working")), answer=grace) is DONE
    assert followed == ["t-1"]


def test_an_unknown_kind_of_result_is_said():
    """A result of some other extension is not taken for one of ours."""
    with pytest.raises(NetworkError) as error:
        call(Proofs(), Session(types.EmptyResult()))
    assert error.value.code == "result-unknown"

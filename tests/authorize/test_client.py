"""The client for agent programs that bring their own proofs."""

import asyncio
import os

import pytest

from authorize.guard.fakes import FakeAuthority, serve
from onrecord.authorize.client import Advice, CallProofClient, advice, rejection_reason
from onrecord.base.errors import BindingError, NetworkError, UsageError
from onrecord.base.namespaces import CALL_PROOF_REASONS
from onrecord.base.strict_json import Refused
from onrecord.base.wire import RpcError


def run(test, directory, **more):
    async def inner():
        authority = FakeAuthority()
        server = await serve(authority, directory / "a.sock")
        client = await CallProofClient.connect(socket=directory / "a.sock", expected_uid=os.getuid(), **more)
        try:
            return await test(client, authority)
        finally:
            await client.close()
            await server.stop()

    return asyncio.run(inner())


@pytest.mark.req("CP-111", "CP-065")
def test_a_proof_and_its_place_in_a_call(short_dir):
    """Evidence is copied unchanged; the label goes with it."""

    async def test(client, authority):
        proof = await client.issue("files", "read_file", {"path": "repo/README.md"})
        assert proof.action_digest == "kYDQcUpVz7E57-sIPwtHHXdp-lOn9_jaIxYRTVnR4CM"
        assert client.proof_meta(proof) == {
            "io.modelcontextprotocol/callProof": {
                "type": "dev.onrecord/handle",
                "value": proof.evidence["value"],
            },
            "dev.onrecord/recordSession": "me",
        }
        assert proof.evidence["value"] not in repr(proof)
        assert authority.asked("issue")[0]["recordSession"] == "me"

    run(test, short_dir, record_session="me")


def test_rounds_continue_an_operation(short_dir):
    """The operation id of an earlier proof goes along, and the inputs of the round."""

    async def test(client, authority):
        first = await client.issue("files", "t")
        second = await client.issue(
            "files", "t", continues=first, request_state="st", input_responses={"a": {}}
        )
        assert second.operation_id == first.operation_id
        asked = authority.asked("issue")[1]
        assert (asked["requestState"], asked["inputResponses"]) == ("st", {"a": {}})
        assert "arguments" not in asked

    run(test, short_dir)


@pytest.mark.req("CP-112")
def test_a_refusal_is_an_error_with_its_reason(short_dir):
    """Programs branch on the code, which is the reason in kebab case."""

    async def test(client, authority):
        with pytest.raises(RpcError) as e:
            await client.issue("files", "deny_this")
        assert (e.value.code, e.value.data["ref"]) == ("denied", "q7Zt0cXn4LmA")

    run(test, short_dir)


@pytest.mark.parametrize(
    "arguments", [{"a": "\ud800"}, {"a": float("nan")}, {"a": 2**53}, {"a": object()}, {1: 2}]
)
def test_arguments_without_a_digest_are_not_sent(short_dir, arguments):
    """They are refused here, before anything is asked or called."""

    async def test(client, authority):
        with pytest.raises(Refused):
            await client.issue("files", "t", arguments)
        assert authority.asked("issue") == []

    run(test, short_dir)


def test_an_answer_for_another_call_is_refused(short_dir):
    """The digest that comes back is compared with the own one."""

    async def test(client, authority):
        authority.answers["callProof/issue"] = [
            {"actionDigest": "x" * 43, "server": "files", "evidence": {"type": "t", "value": "v"}}
        ]
        with pytest.raises(BindingError) as e:
            await client.issue("files", "t")
        assert e.value.code == "digest-mismatch"

    run(test, short_dir)


@pytest.mark.parametrize("answer", [{}, [], {"evidence": None}, {"evidence": {"type": "t", "value": 1}}])
def test_an_answer_without_proof_is_unreadable(short_dir, answer):
    """Nothing is taken for a proof that is none."""

    async def test(client, authority):
        authority.answers["callProof/issue"] = [answer]
        with pytest.raises(NetworkError) as e:
            await client.issue("files", "t")
        assert e.value.code == "answer-unreadable"

    run(test, short_dir)


@pytest.mark.req("CP-106")
def test_a_squatter_gets_no_byte(short_dir):
    """Acceptance 18: another uid at the socket ends it before anything is sent."""

    async def inner():
        authority = FakeAuthority()
        server = await serve(authority, short_dir / "a.sock")
        with pytest.raises(NetworkError) as e:
            await CallProofClient.connect(socket=short_dir / "a.sock", expected_uid=os.getuid() + 1)
        assert e.value.code == "peer-uid"
        assert authority.requests == []
        await server.stop()

    asyncio.run(inner())


def test_it_must_be_said_who_serves(short_dir):
    """A socket without a uid is no authority."""
    with pytest.raises(UsageError) as e:
        asyncio.run(CallProofClient.connect(socket=short_dir / "a.sock"))
    assert e.value.code == "authority-unnamed"


@pytest.mark.req("CP-123")
@pytest.mark.parametrize("member", ["extensions", "experimental"])
def test_an_advertised_authority_is_compared_and_never_used(short_dir, member):
    """A server that names another authority is not called, and that one is not connected to."""

    async def test(client, authority):
        def capabilities(address):
            return {member: {"io.modelcontextprotocol/call-proof": {"required": True, "authority": address}}}

        assert client.check_advertised(capabilities(client.authority))["required"] is True
        assert client.check_advertised({"tools": {}}) is None
        with pytest.raises(BindingError) as e:
            client.check_advertised(capabilities("unix:///tmp/rogue.sock"))
        assert e.value.code == "authority-differs"

    run(test, short_dir)


@pytest.mark.req("CP-129")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"code": -32021, "data": {"reason": "missing"}}, "missing"),
        ({"code": -32021, "data": {"reason": "Unknown-Type"}}, "unknown_type"),
        ({"code": -32021, "data": {"reason": "AUTHORITY UNREACHABLE"}}, "authority_unreachable"),
        ({"code": -31021, "data": {"reason": "expired"}}, "expired"),
        ({"code": -32021, "data": {"requiredCapabilities": {}}}, None),
        ({"code": -32021}, None),
        ({"code": -32602, "data": {"reason": "missing"}}, None),
        ({"code": -32021, "data": {"reason": "new"}}, None),
    ],
)
def test_reasons_are_read_tolerantly(error, reason):
    """The reason decides, folded; the code alone says nothing."""
    assert rejection_reason(error) == reason


@pytest.mark.req("CP-130")
@pytest.mark.parametrize("reason", CALL_PROOF_REASONS)
def test_advice(reason):
    """One retry after accidents, none after what looks like an attack."""
    retried = {"missing", "expired", "replayed", "revoked", "authority_unreachable"}
    assert advice(reason) == (Advice.RETRY_ONCE if reason in retried else Advice.DO_NOT_RETRY)

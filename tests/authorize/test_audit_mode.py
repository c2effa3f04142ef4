"""Audit mode from end to end: the matrix of call-proof.md 6.4, and what an operator sees of it.

Where a proof is needed, it is asked for on the authority's socket and attached by hand behind `connect --pipe`.
"""

from __future__ import annotations

import json
import signal

import pytest

from support.runtime import stop, wait_for

PROOF_META = "io.modelcontextprotocol/callProof"

ISSUE = """
import json, socket, sys
with socket.socket(socket.AF_UNIX) as sock:
    sock.connect(sys.argv[1])
    answers = sock.makefile("rb")
    for text in sys.argv[2:]:
        params = {"method": "tools/call", "name": "echo", "arguments": {"text": text}, "server": "files"}
        line = {"jsonrpc": "2.0", "id": 1, "method": "callProof/issue", "params": params}
        sock.sendall(json.dumps(line).encode() + b"\\n")
        print(json.dumps(json.loads(answers.readline())["result"]["evidence"]))
"""


def proofs(deployment, *texts):
    """Fresh proofs, as `_meta`, for the calls echo(text)."""
    done = deployment.system.python(ISSUE, str(deployment.configuration.agent_socket()), *texts)
    assert done.returncode == 0, done.stderr.decode()
    return [{PROOF_META: json.loads(line)} for line in done.stdout.splitlines()]


def reason(answer):
    return answer["error"]["data"]["reason"] if "error" in answer else None


@pytest.mark.req("CP-044", "CP-122")
@pytest.mark.parametrize("enforce", ["required", "audit"])
def test_matrix(echo_deployment, enforce):
    """Acceptance 32: audit mode forgives the absence of a proof and nothing else, also while the authority is down."""
    is_audit = enforce == "audit"
    deployment = echo_deployment(enforce=enforce)
    deployment.system.start_all()
    client = deployment.client("--pipe")
    extension = client.open()["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/call-proof"]
    assert extension["required"] is not is_audit
    assert client.ask("list", "tools/list")["result"]["tools"][0]["name"] == "echo"
    assert ("mode.audit" in deployment.log()) is is_audit

    good, other, unused = proofs(deployment, "valid", "a", "down")
    assert reason(client.call(1, text="absent")) == (None if is_audit else "missing")
    assert reason(client.call(2, meta=good, text="valid")) is None
    assert reason(client.call(3, meta=good, text="valid")) == "replayed"
    assert reason(client.call(4, meta=other, text="b")) == "mismatch"
    forged = {PROOF_META: {"type": "dev.onrecord/handle", "value": "A" * 27}}
    assert reason(client.call(5, meta=forged, text="forged")) == "expired"
    counters = deployment.status()["counters"]
    assert (counters["verify.missing"], counters["verify.valid"], counters["verify.replayed"]) == (1, 1, 1)

    forged = {PROOF_META: {"type": "dev.onrecord/handle", "value": "no handle"}}
    assert reason(client.call(6, meta=forged, text="malformed")) == "malformed"
    assert reason(client.call(9, meta={PROOF_META: "text"}, text="malformed")) == "malformed"

    stop(deployment.system.authority, signal_number=signal.SIGKILL)
    assert reason(client.call(7, text="absent and down")) == (None if is_audit else "missing")
    assert reason(client.call(8, meta=unused, text="down")) == "authority_unreachable"
    ran = [one["params"]["arguments"]["text"] for one in deployment.ran()]
    assert ran == (["absent", "valid", "absent and down"] if is_audit else ["valid"])
    if is_audit:
        wait_for(lambda: "call.unproven" in deployment.log(), what="the guard counts the unproven call")
    assert ("call.unproven" in deployment.log()) is is_audit
    missing = [data for type_, data in deployment.records() if data.get("reason") == "missing"]
    assert [(one["name"], one["server"]) for one in missing] == [("echo", "files")]


@pytest.mark.req("CP-044", "CP-122")
def test_audit_mode_through_the_connector(echo_deployment):
    """Behind the connector audit mode still asks for proofs: permitted calls are proven, denied ones are not sent."""
    deployment = echo_deployment(enforce="audit")
    deployment.system.start_all()
    client = deployment.client()
    client.open()
    assert client.call(1, text="one")["result"]["content"][0]["text"] == "one"
    assert client.call(2, name="unbound", text="two")["error"]["code"] == -33001
    assert [one["params"]["name"] for one in deployment.ran()] == ["echo"]
    assert {type_ for type_, _ in deployment.records() if type_.startswith("verify.")} == {"verify.valid"}

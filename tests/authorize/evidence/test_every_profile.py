"""One tool server, unchanged, behind every evidence profile (CP section 9; acceptance 43)."""

from __future__ import annotations

import pytest

from onrecord.authorize.evidence import PROFILES


@pytest.mark.req("CP-054", "CP-055", "CP-114")
@pytest.mark.parametrize("name", PROFILES)
def test_same_server(echo_deployment, name):
    """The same server binary runs permitted calls, and only them, with every profile; nothing of it shows there."""
    deployment = echo_deployment(values={"authority.evidence": (name,)})
    deployment.system.start_all()
    client = deployment.client()
    client.open()
    assert client.call(1, text="one")["result"]["content"][0]["text"] == "one"
    assert client.call(2, name="unbound", text="two")["error"]["code"] == -33001
    pipe = deployment.client("--pipe")
    pipe.open()
    forged = {"io.modelcontextprotocol/callProof": {"type": PROFILES[name].type, "value": "A" * 40}}
    for request_id, meta, reason in ((1, None, "missing"), (2, forged, "malformed")):
        answer = pipe.call(request_id, meta=meta, text="three")
        assert answer["error"]["data"]["reason"] == reason
    assert client.call(3, text="four")["result"]["content"][0]["text"] == "four"
    assert [one["params"] for one in deployment.ran()] == [
        {"name": "echo", "arguments": {"text": text}} for text in ("one", "four")
    ]
    records = deployment.records()
    used = {data["evidenceType"] for type_, data in records if type_ == "verify.valid"}
    assert used == {PROFILES[name].type}

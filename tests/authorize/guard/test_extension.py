"""The call-proof extension on the wire."""

import orjson
import pytest

from onrecord.authorize.guard.extension import Advertisement, Evidence, Malformed, read_evidence
from onrecord.base.errors import ConfigurationError

HANDLE = {"type": "dev.onrecord/handle", "value": "AAAAAQABAgMEBQYHCAkKCwwNDg8"}


def advertisement(**changes):
    values = {
        "required": True,
        "methods": ("tools/call",),
        "authority": "unix:///run/a.sock",
        "server": "files",
    }
    return Advertisement(**{**values, **changes})


@pytest.mark.req("CP-063", "CP-064", "CP-124")
@pytest.mark.parametrize("is_initialize", [True, False])
def test_what_is_advertised(is_initialize):
    """required, methods and authority as CP has them, version and server of ours; legacy clients get a copy."""
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"capabilities": {"tools": {}, "experimental": {"x": {}}}}}
    line = advertisement(authority="unix:///run/mcp-call-authority.sock").add_to(
        answer, is_initialize=is_initialize
    )
    capabilities = orjson.loads(line)["result"]["capabilities"]
    expected = {
        "required": True, "methods": ["tools/call"], "authority": "unix:///run/mcp-call-authority.sock",
        "version": "1", "server": "files",
    }  # fmt: skip
    assert capabilities["extensions"] == {"io.modelcontextprotocol/call-proof": expected}
    assert ("io.modelcontextprotocol/call-proof" in capabilities["experimental"]) is is_initialize
    assert capabilities["tools"] == {}
    assert capabilities["experimental"]["x"] == {}


def test_an_error_is_not_advertised_into():
    """An initialize that failed passes as it is."""
    assert advertisement().add_to({"jsonrpc": "2.0", "id": 1, "error": {}}, is_initialize=True) is None


@pytest.mark.req("CP-092")
@pytest.mark.parametrize("methods", [(), ("tools/call", "resources/read"), ("prompts/get",)])
def test_other_methods_cannot_be_covered(methods):
    """Version 1 covers exactly tools/call; anything else ends the start."""
    with pytest.raises(ConfigurationError) as e:
        advertisement(methods=methods)
    assert e.value.code == "methods-unknown"


@pytest.mark.req("CP-125")
@pytest.mark.parametrize(
    "value",
    [
        None, [], "x", 7, {}, {"type": "a"}, {"value": "b"}, {"type": "", "value": "b"}, {"type": "a", "value": ""},
        {"type": 1, "value": "b"}, {"type": "a", "value": None}, {"type": "a", "value": "é"}, {"type": "a", "value": "\n"},  # noqa: E501
        {"type": "a", "value": "x" * 4097},
    ],
)  # fmt: skip
def test_what_is_no_proof_is_malformed(value):
    """Two non-empty strings, the value printable ASCII of 4096 characters at most."""
    assert isinstance(read_evidence(value), Malformed)


def test_extra_members_of_a_proof_are_ignored():
    """Only type and value count."""
    assert read_evidence({**HANDLE, "more": 1}) == Evidence(HANDLE["type"], HANDLE["value"])


def test_a_proof_does_not_show_its_value():
    """The value of a proof is in no representation that a log could hold."""
    assert HANDLE["value"] not in repr(Evidence(**HANDLE))

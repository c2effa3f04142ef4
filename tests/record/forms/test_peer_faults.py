"""The ten faults that record.md 11 found in the package `vcon` 0.10.0 of PyPI, each as a claim about this one."""

import json
import logging
from functools import cache

import pytest

from onrecord.base.errors import MalformedError
from onrecord.base.ids import uuid8
from onrecord.record.checks.checker import check
from onrecord.record.forms import (
    ENCRYPTED,
    SIGNED,
    decrypt_and_verify,
    encrypt,
    open_form,
    resign,
    sign,
    verify,
)
from onrecord.record.vcon.canonical_text import canonical_text
from onrecord.record.vcon.model import Vcon
from support.jwe import b64
from support.vcons import NOW, UUID, answered, certify, pki, text, vcon

DOCUMENT = answered()
PAYLOAD = canonical_text(DOCUMENT)
TIME = "2026-11-02T12:00:00Z"


@cache
def signed():
    return sign(PAYLOAD, signer=pki().signer("rsa"), chain=pki().chain("rsa"))


@cache
def encrypted():
    reader = certify("Reader", pki().keys["rsa"], usage=False)
    return encrypt(signed(), recipients=[reader], at=NOW)


def result(data):
    return verify(data, anchors=[pki().root], at=NOW)


def errors(document):
    found = check(document if isinstance(document, bytes) else text(document)).findings
    return {(one.code, one.pointer) for one in found if one.severity == "error"}


def conversation(**members):
    """A vCon of one dialog without an error of its own."""
    return vcon(
        extensions=None,
        events=None,
        parties=[{"name": "A"}, {"name": "B"}],
        sessions=[{"start": TIME, "parties": [0, 1], "dialog": [0]}],
        dialog=[
            {
                "type": "text",
                "start": TIME,
                "parties": [0, 1],
                "mediatype": "text/plain",
                "encoding": "none",
                "body": "hello",
                **members,
            }
        ],
    )


def test_1_clear_copy():
    """A clear copy beside the signed payload is never verified, changed or not."""
    head = b64(b'{"alg":"RS256"}')
    value = pki().signer("rsa").sign(f"{head}.{b64(PAYLOAD)}".encode(), alg="RS256")
    copied = {
        **DOCUMENT,
        "payload": b64(PAYLOAD),
        "signatures": [{"protected": head, "signature": b64(value)}],
    }
    with_certificates = {**DOCUMENT, **json.loads(signed())}
    for data in (
        copied,
        {**copied, "subject": "forged"},
        with_certificates,
        {**with_certificates, "subject": "forged"},
    ):
        report = result(json.dumps(data).encode())
        assert (report.verdict, report.payload) == ("failed", None)
        assert "form-hybrid" in [one.code for one in report.findings]


def test_2_output():
    """The signed form holds payload and signatures and nothing else, with the certificates in the header."""
    message = json.loads(signed())
    assert set(message) == {"payload", "signatures"}
    assert set(message["signatures"][0]) == {"protected", "header", "signature"}
    assert len(message["signatures"][0]["header"]["x5c"]) == 2


@pytest.mark.parametrize("size", [256_000, 1_100_000])
def test_3_size(size):
    """A signed vCon beyond 256,000 characters, and beyond a megabyte, verifies."""
    big = canonical_text({**DOCUMENT, "subject": "x" * size})
    data = sign(big, signer=pki().signer(), chain=pki().chain())
    assert len(data) > size * 4 / 3
    assert (result(data).verdict, result(data).payload) == ("verified", big)


def test_4_signing_twice():
    """A signed vCon is not taken for one to sign; a second envelope is made only on request, and reads as one vCon."""
    with pytest.raises(MalformedError) as caught:
        sign(signed(), signer=pki().signer(), chain=pki().chain())
    assert caught.value.code == "form-not-unsigned"
    again = resign(signed(), signer=pki().signer(), chain=pki().chain(), anchors=[pki().root], at=NOW)
    assert result(again).payload == PAYLOAD


def test_5_forms():
    """Signed and encrypted files are told as such, and nothing is added to them on reading."""
    for data, kind in ((signed(), SIGNED), (encrypted(), ENCRYPTED)):
        assert open_form(data).kind == kind
        assert check(data).form == kind
        with pytest.raises(MalformedError) as caught:
            Vcon.read(data)
        assert caught.value.code == "form-not-unsigned"


@pytest.mark.parametrize("date", [TIME, "2026-11-02T12:00:00+00:00", "2026-11-02T13:00:00.000+01:00"])
def test_6_round_trip(date):
    """What was read is written byte for byte, dates as they were spelled."""
    data = json.dumps({**DOCUMENT, "created_at": date}, indent=2).encode()
    assert Vcon.read(data).to_bytes() == data


@pytest.mark.parametrize(
    "date", ["11/02/2026", "2026-11-02", "2026-11-02T12:00:00", "Mon, 02 Nov 2026 12:00:00 GMT"]
)
def test_6_dates(date):
    """Dates of other kinds are errors."""
    assert ("date-invalid", "/created_at") in errors({**DOCUMENT, "created_at": date})


@pytest.mark.parametrize(
    "members",
    [
        {"parties": 0},
        {"parties": [[0, 1], 0]},
        {"mediatype": "text/markdown"},
        {"mediatype": "text/plain; charset=utf-8"},
        {"type": "recording", "mediatype": "audio/ogg; codecs=opus", "encoding": "base64url", "body": "AAAA"},
        {
            "type": "recording",
            "parties": [0, None],
            "mediatype": "audio/ogg",
            "encoding": "base64url",
            "body": "AAAA",
        },
    ],
)
def test_7_legal(members):
    """Parties as one integer or nested, an unused channel, and media types with parameters are no errors."""
    assert errors(conversation(**members)) == set()


def test_7_recording_set():
    """A set of recordings is no error."""
    one = {
        "type": "recording",
        "start": TIME,
        "recording_set": 0,
        "mediatype": "audio/ogg",
        "encoding": "base64url",
    }
    whole = {"type": "recording-set", "start": TIME, "parties": [0, 1], "recordings": [1, 2]}
    channels = [{**one, "parties": party, "body": "AAAA"} for party in (0, 1)]
    document = conversation()
    session = {**document["sessions"][0], "dialog": [0, 1, 2]}
    assert errors({**document, "sessions": [session], "dialog": [whole, *channels]}) == set()


def test_7_analysis_by_url():
    """An analysis by reference is no error."""
    analysis = {
        "type": "summary",
        "dialog": 0,
        "vendor": "Example",
        "mediatype": "text/plain",
        "url": "https://example.com/a.txt",
        "content_hash": "sha512-" + "A" * 86,
    }
    assert errors({**conversation(), "analysis": [analysis]}) == set()


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (conversation(url="https://example.com/a", content_hash="sha512-" + "A" * 86), "body-and-url"),
        ({**conversation(), "critical": ["x"]}, "critical-unsupported"),
        ({**conversation(), "sessions": 5}, "type-mismatch"),
        ({**conversation(), "sessions": [{"start": TIME, "parties": [7]}]}, "index-range"),
        ({**DOCUMENT, "events": [{"type": 5}]}, "type-mismatch"),
        ({**DOCUMENT, "events": "none"}, "type-mismatch"),
    ],
)
def test_8_illegal(document, code):
    """Body beside url, unknown critical extensions, broken sessions and events are errors."""
    assert code in {found for found, _ in errors(document)}


def test_9_uuid():
    """The domain part of a version 8 uuid is the high 62 bits of SHA-1, as the draft says."""
    assert uuid8("example.com")[19:] == "832a-bc92ac6830cd"


def test_10_silence(caplog, capfd):
    """Nothing is logged or printed, whatever is done and whatever goes wrong."""
    caplog.set_level(logging.DEBUG)
    check(signed())
    check(text({**DOCUMENT, "created_at": "yesterday", "critical": ["x"]}))
    result(signed().replace(b"A", b"B", 1))
    decrypt_and_verify(encrypted(), key=pki().keys["rsa"], anchors=[pki().root], at=NOW)
    decrypt_and_verify(encrypted(), key=pki().keys["p256"], anchors=[pki().root], at=NOW)
    Vcon.read(text(DOCUMENT)).to_bytes()
    assert UUID not in caplog.text
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")

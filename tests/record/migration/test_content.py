"""Hashes, encodings and bodies of older versions."""

import json

import pytest

from onrecord.record.vcon.bodies import decode_base64url
from support.legacy import changes, migrated, old_vcon, result, turned_back

HASH = "Re9R7UWKaD7yN9kxoYLbFFNSKU8XfH18NFbTc3AgT4_aBubMtvGUEtRmP6XUxSS3Nl4LU-1mOCtezoTHQ67cVQ"


def document(**content):
    """A vCon whose analysis has this content; it has no dialog, so that no session is derived."""
    return old_vcon(vcon="0.0.1", analysis=[{"type": "summary", "vendor": "example", **content}])


def told(**content):
    """The codes about this content, and the analysis in the result."""
    codes = [code for code, pointer in changes(document(**content)) if pointer.startswith("/analysis/0")]
    return codes, result(document(**content))["analysis"][0]


def is_turned_back(**content):
    """Say whether undoing gives the same content."""
    back = turned_back(migrated(document(**content)))["analysis"][0]
    return back == document(**content)["analysis"][0]


class TestHash:
    def test_joined(self):
        """Alg SHA-512 and its signature are one content hash, and come apart again."""
        content = {"url": "https://example.com/a", "alg": "SHA-512", "signature": HASH}
        codes, item = told(**content)
        assert codes == ["hash-joined"]
        assert item["content_hash"] == f"sha512-{HASH}"
        assert is_turned_back(**content)

    def test_padded(self):
        """Padding and the standard alphabet are read; the old spelling is lost."""
        standard = HASH.replace("_", "/").replace("-", "+") + "=="
        codes, item = told(alg="SHA-512", signature=standard)
        assert codes == ["hash-joined"]
        assert item["content_hash"] == f"sha512-{HASH}"
        assert not is_turned_back(alg="SHA-512", signature=standard)

    @pytest.mark.parametrize(
        "content",
        [
            {"alg": "LMOTS_SHA256_N32_W8", "signature": HASH},
            {"alg": "sha512", "signature": HASH},
            {"alg": "SHA-512", "signature": HASH[:-1]},
            {"alg": "SHA-512", "signature": "!" + HASH[1:]},
            {"alg": "SHA-512", "signature": 5},
            {"alg": ["SHA-512"], "signature": HASH},
            {"alg": "SHA-512"},
            {"signature": HASH},
            {"alg": "SHA-512", "signature": HASH, "content_hash": "sha512-" + "A" * 86},
        ],
    )
    def test_kept(self, content):
        """What is no SHA-512 hash, or stands beside one, stays."""
        codes, item = told(**content)
        assert codes == ["hash-kept"]
        assert item == {"type": "summary", "vendor": "example", **content}


class TestEncoding:
    @pytest.mark.parametrize(
        ("content", "encoding"),
        [
            ({"mimetype": "text/plain", "body": "Hello."}, "none"),
            ({"mediatype": "TEXT/html", "body": "AAAA"}, "none"),
            ({"mimetype": "audio/x-wav", "body": "UklGRgAA"}, "base64url"),
            ({"body": "UklGRgAA"}, "base64url"),
            ({"body": "Hello, all."}, "none"),
            ({"body": {"a": 1}}, "json"),
            ({"body": 5}, "json"),
            ({"mimetype": None, "body": "Hello.", "encoding": None}, "none"),
        ],
    )
    def test_derived(self, content, encoding):
        """A missing encoding is written down as the body is read (record.md D-16), and can be taken back."""
        codes, item = told(**content)
        assert "encoding-derived" in codes
        assert item["encoding"] == encoding
        assert is_turned_back(**content)

    @pytest.mark.parametrize(
        "content",
        [
            {"mediatype": "application/json", "body": '{"a":1}'},
            {"encoding": "hex", "body": "00"},
            {"encoding": "base64", "body": "Hello."},
            {"encoding": "base64", "body": 5},
            {"encoding": "none", "body": {"a": 1}},
            {"encoding": ["json"], "body": {}},
        ],
    )
    def test_kept(self, content):
        """An encoding that does not follow from the body is not made up."""
        codes, item = told(**content)
        assert codes == ["encoding-kept"]
        assert item == {"type": "summary", "vendor": "example", **content}

    @pytest.mark.parametrize("content", [{"body": ""}, {"body": None}, {"encoding": "base64"}, {}])
    def test_nothing_to_encode(self, content):
        """Without a body there is nothing to say about it."""
        assert told(**content)[0] == []

    @pytest.mark.parametrize(
        ("body", "reversible"),
        [
            ("+/8=", True),
            ("+/8", True),
            ("-_8=", True),
            ("-_8", True),
            ("+/ 8=", False),
            ("+_8=", False),
            ("+/8==", False),
        ],
    )
    @pytest.mark.parametrize("encoding", ["base64", "base64url"])
    def test_respelled(self, encoding, body, reversible):
        """Any base64 becomes the one of the drafts, with the same bytes; a usual spelling can be restored."""
        _, item = told(encoding=encoding, body=body)
        assert (item["encoding"], item["body"]) == ("base64url", "-_8")
        assert decode_base64url(item["body"]) == decode_base64url(body)
        assert is_turned_back(encoding=encoding, body=body) is reversible


class TestJson:
    @pytest.mark.parametrize(
        ("body", "reversible"),
        [
            ('{"a":[1,2]}', True),
            ('{"a": [1, 2]}', True),
            ('{\n  "a": 1\n}', True),
            ('["\u00e9"]', True),
            (r'["\u00e9"]', True),
            ('{"b":1,"a":2}', False),
            ("[1.0]", False),
            (' {"a":1}', False),
        ],
    )
    def test_parsed(self, body, reversible):
        """A string that holds JSON becomes the value; a usual spelling of it can be restored (record.md D-15)."""
        codes, item = told(encoding="json", body=body)
        assert codes == ["json-parsed"]
        assert item["body"] == json.loads(body)
        assert is_turned_back(encoding="json", body=body) is reversible

    @pytest.mark.parametrize(
        "body",
        [
            '{"a":1,"a":2}',
            "[12345678901234567890]",
            "[0.10000000000000000001]",
            "[" * 126 + "]" * 126,
        ],
    )
    def test_inexact(self, body):
        """JSON that has no exact value, or nests too deep here, stays a string."""
        codes, item = told(encoding="json", body=body)
        assert codes == ["json-kept"]
        assert item["body"] == body

    @pytest.mark.parametrize("body", ['"[1]"', "5", "null", "Hello.", "{", [1], {"a": "{}"}])
    def test_no_json_inside(self, body):
        """A JSON string, and what is a value already, are no older form."""
        codes, item = told(encoding="json", body=body)
        assert codes == []
        assert item["body"] == body

    def test_deepest(self):
        """A value at the depth that is parsed leaves a result that can be read."""
        body = "[" * 124 + "]" * 124
        assert told(encoding="json", body=body)[0] == ["json-parsed"]


def test_every_content_array():
    """Dialogs and attachments are converted as analyses are; events are not, their strings are strings."""
    content = {"mimetype": "text/plain", "body": "Hello."}
    event = {"type": "x", "encoding": "json", "body": "[1]", "sessions": 0}
    done = result(
        old_vcon(
            dialog=[{"type": "text", **content}],
            attachments=[{"party": 0, **content}],
            sessions=[{"dialog": [0]}],
            events=[event],
        )
    )
    for name in ("dialog", "attachments"):
        assert done[name][0]["encoding"] == "none"
        assert done[name][0]["mediatype"] == "text/plain"
    assert done["events"] == [event]

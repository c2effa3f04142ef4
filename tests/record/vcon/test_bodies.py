"""Bodies: which encoding a body has, how far base64 is read leniently, and in how many steps."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.vcon.bodies import (
    ENCODINGS,
    bare_base64url,
    base64url_fault,
    body_bytes,
    decode_base64url,
    derived_encoding,
    encoding_of,
    has_body,
    holds_json,
    mediatype_of,
)
from support.hostile import ODD_VALUES

UNPADDED = st.binary(max_size=60).map(lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode())


class TestBase64Url:
    @given(st.binary(max_size=100))
    def test_strict_text_has_no_fault(self, data):
        """What the draft asks for is read without a word and gives the bytes."""
        text = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
        assert (base64url_fault(text), decode_base64url(text)) == (None, data)

    @given(st.binary(min_size=1, max_size=60), st.data())
    def test_other_spellings_are_lenient(self, data, draws):
        """Standard base64 with padding and white space anywhere gives the same bytes and one warning."""
        text = base64.b64encode(data).decode()
        for _ in range(draws.draw(st.integers(0, 3))):
            place = draws.draw(st.integers(0, len(text)))
            text = text[:place] + draws.draw(st.sampled_from([" ", "\n", "\r\n", "\t"])) + text[place:]
        assert decode_base64url(text) == data
        strict = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
        assert base64url_fault(text) == (None if text == strict else "base64url-lenient")

    @pytest.mark.parametrize(
        "text",
        ["A", "AAAAA", "A===", "AA=A", "=AA", "A A A A A", "AA!", "AAé", "\uff21\uff21", "AA\x00", "AA.AA"],
    )
    def test_what_is_no_base64(self, text):
        """Impossible lengths, padding before the end and foreign characters are no base64."""
        assert (base64url_fault(text), decode_base64url(text)) == ("base64url-invalid", None)

    @given(st.text(alphabet="Aa0-_+/= \n!é", max_size=30))
    def test_fault_and_decoding_agree(self, text):
        """A text is decoded exactly if the checks do not call it invalid."""
        assert (decode_base64url(text) is None) == (base64url_fault(text) == "base64url-invalid")

    @pytest.mark.parametrize("filler", [" ", "=", "= ", "A=", "A "])
    def test_hostile_text_is_read_in_one_pass(self, filler):
        """A megabyte of what may be skipped before a bad character ends: steps grow with the text, not its square."""
        assert base64url_fault(filler * (1_000_000 // len(filler)) + "é") == "base64url-invalid"

    def test_bare(self):
        """The bare form has the characters of base64url only, and no padding."""
        assert bare_base64url("+/ A\n=\n=") == "-_A"


class TestEncoding:
    @pytest.mark.parametrize(
        ("members", "encoding"),
        [
            ({"body": "AAAA", "encoding": "none"}, "none"),
            ({"body": "AAAA", "encoding": "json"}, "json"),
            ({"body": "AAAA", "encoding": "base64", "mediatype": "text/plain"}, "base64url"),
            ({"body": "AAAA", "encoding": "hex", "mediatype": "text/plain"}, "none"),
            ({"body": "AAAA", "encoding": ["none"]}, "base64url"),
            ({"body": {"a": 1}}, "json"),
            ({"body": None}, "json"),
            ({"body": "AAAA"}, "base64url"),
            ({"body": "AAAAA"}, "none"),
            ({"body": "AA AA"}, "none"),
            ({"body": ""}, "none"),
            ({"body": "AAAA", "mediatype": "TEXT/plain"}, "none"),
            ({"body": "AAAA", "mimetype": "text/plain"}, "none"),
            ({"body": "AAAAA", "mediatype": "audio/x-wav"}, "base64url"),
        ],
    )
    def test_rule(self, members, encoding):
        """A known encoding holds, base64 is base64url, and otherwise body and media type decide (D-16)."""
        assert encoding_of(members) == encoding

    @given(st.sampled_from(ODD_VALUES), st.sampled_from(ODD_VALUES), st.sampled_from(ODD_VALUES))
    def test_every_value_has_one(self, body, encoding, mediatype):
        """Whatever stands in the three members, there is an encoding, and bytes or none."""
        item = {"body": body, "encoding": encoding, "mediatype": mediatype}
        assert encoding_of(item) in ENCODINGS
        assert derived_encoding(body, mediatype) in ENCODINGS
        assert type(body_bytes(item)) in (bytes, type(None))

    def test_mediatype(self):
        """The present name wins over that of 0.0.1; a null is absent; a wrong type is none."""
        assert mediatype_of({"mimetype": "text/plain"}) == "text/plain"
        assert mediatype_of({"mediatype": "audio/ogg", "mimetype": "text/plain"}) == "audio/ogg"
        assert mediatype_of({"mediatype": None, "mimetype": "text/plain"}) == "text/plain"
        assert mediatype_of({"mediatype": 7, "mimetype": "text/plain"}) is None


class TestBody:
    @pytest.mark.parametrize(
        ("members", "there"),
        [
            ({}, False),
            ({"body": None}, False),
            ({"body": None, "encoding": "none"}, False),
            ({"body": None, "encoding": "json"}, True),
            ({"body": ""}, True),
            ({"body": False}, True),
        ],
    )
    def test_null_is_a_body_of_json_only(self, members, there):
        """Null is content if the encoding is json, and absent otherwise."""
        assert has_body(members) is there

    @pytest.mark.parametrize(
        ("members", "data"),
        [
            ({"body": "SGk", "encoding": "base64url"}, b"Hi"),
            ({"body": "SGk=", "encoding": "base64", "mediatype": "text/plain"}, b"Hi"),
            ({"body": "Hé", "encoding": "none"}, "Hé".encode()),
            ({"body": "SGk", "mimetype": "text/plain"}, b"SGk"),
            ({"body": "{}", "encoding": "json"}, None),
            ({"body": {}, "encoding": "base64url"}, None),
            ({"body": "!", "encoding": "base64url"}, None),
        ],
    )
    def test_bytes(self, members, data):
        """Bytes are known of base64 and text, not of JSON."""
        assert body_bytes(members) == data

    @pytest.mark.parametrize(
        ("text", "holds"),
        [("{}", True), (" [1]", True), ("7", False), ('"x"', False), ("{", False), ("", False), ("[" * 5000, False)],
    )  # fmt: skip
    def test_strings_with_json(self, text, holds):
        """Only an object or an array in a String is the form of older drafts."""
        assert holds_json(text) is holds

    @given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4))
    def test_every_object_is_held(self, value):
        """The text of an object holds JSON, however it is indented."""
        assert holds_json(json.dumps(value, indent=1))

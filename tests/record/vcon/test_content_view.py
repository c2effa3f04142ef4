"""Content: decoded as its encoding says, in events and elsewhere, in every version; never fetched."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError, UsageError
from onrecord.record.vcon.content_view import HashToken, hashes_of
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.views import Analysis, Attachment, Dialog, Event
from support.data import shared_data
from support.hostile import ODD_VALUES

VIEWS = (Dialog, Attachment, Analysis, Event)


def token(data):
    """The content_hash of bytes, made here from the rule and not by the code under test."""
    return "sha512-" + base64.urlsafe_b64encode(hashlib.sha512(data).digest()).rstrip(b"=").decode()


class TestContent:
    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize(
        ("members", "value"),
        [
            ({"body": "SGk", "encoding": "base64url", "mediatype": "text/plain"}, b"Hi"),
            ({"body": "SG k=", "encoding": "base64"}, b"Hi"),
            ({"body": "SGk", "encoding": "none"}, "SGk"),
            ({"body": "", "mediatype": "text/plain"}, ""),
            ({"body": {"a": [1.0]}, "encoding": "json"}, {"a": [1.0]}),
            ({"body": None, "encoding": "json"}, None),
            ({"body": 7}, 7),
            ({"body": "7", "encoding": "json"}, "7"),
            ({"body": "Hello", "mimetype": "text/html"}, "Hello"),
        ],
    )
    def test_decoded(self, view, members, value):
        """base64url gives bytes, none a str, json the value; a missing encoding is derived."""
        assert view(0, members).content() == value

    @pytest.mark.parametrize("view", VIEWS)
    def test_json_in_a_string(self, view):
        """A String that holds JSON is the value in what older drafts had, and a String in events (D-15)."""
        item = view(0, {"body": '{"a": [1]}', "encoding": "json"})
        assert item.content() == ('{"a": [1]}' if view is Event else {"a": [1]})

    @pytest.mark.parametrize("body", ['{"a":1,"a":2}', '["\\ud800", {"b":1,"b":1}]', "[" * 200 + "]" * 200])
    def test_json_that_is_refused_stays_a_string(self, body):
        """JSON that no vCon may hold is not taken out of its String."""
        assert Dialog(0, {"body": body, "encoding": "json"}).content() == body

    @pytest.mark.parametrize("view", VIEWS)
    @pytest.mark.parametrize(
        ("members", "code"),
        [
            ({}, "content-missing"),
            ({"body": None, "encoding": "none"}, "content-missing"),
            ({"url": "https://media.example.com/a.wav"}, "content-missing"),
            ({"body": {}, "encoding": "base64url"}, "encoding-body-type"),
            ({"body": 1, "encoding": "none"}, "encoding-body-type"),
            ({"body": "secret!", "encoding": "base64url"}, "base64url-invalid"),
        ],
    )
    def test_what_cannot_be_had_is_loud(self, view, members, code):
        """Nothing there and nothing readable are errors with a code, never None, and never quote the body."""
        with pytest.raises((MalformedError, UsageError)) as caught:
            view(0, members).content()
        assert caught.value.code == code
        assert caught.value.hint
        assert "secret" not in str(caught.value)

    @given(st.sampled_from(VIEWS), st.dictionaries(
        st.sampled_from(["body", "encoding", "mediatype", "mimetype", "url", "content_hash", "alg", "signature"]),
        st.sampled_from([*ODD_VALUES, "sha512-x", ["sha512-x", 7], "SHA-512", "text/plain", "AA AA", '{"a":1}']),
    ))  # fmt: skip
    def test_any_values(self, view, members):
        """Whatever stands in an object, its content is a value or one of our errors, and hashes are tokens."""
        item = view(0, members)
        try:
            item.content()
        except (MalformedError, UsageError) as error:
            assert item.has_body is (error.code != "content-missing")
        assert item.encoding is None or item.has_body
        assert all(type(part) is HashToken for part in item.hashes)
        assert item.fits(b"") in (True, False, None)
        item.content_bytes()


class TestHashes:
    def test_parts(self):
        """A hash is algorithm and value; what has no algorithm is none."""
        found = hashes_of({"content_hash": ["sha512-AB-C", "blake3-x", "sha512", "-x", "sha512-", 7]})
        assert found == (("sha512", "AB-C"), ("blake3", "x"), ("sha512", ""))
        assert str(found[0]) == "sha512-AB-C"

    def test_old_names(self):
        """The pair alg SHA-512 and signature is a sha512, also padded; another alg is no hash; content_hash wins."""
        old = {"alg": "SHA-512", "signature": "A+/B=="}
        assert hashes_of(old) == (("sha512", "A-_B"),)
        assert hashes_of({**old, "alg": "LMOTS_SHA256_N32_W8"}) == ()
        assert hashes_of({**old, "content_hash": "sha512-new"}) == (("sha512", "new"),)

    @given(st.binary(max_size=50), st.binary(max_size=50))
    def test_fits(self, data, other):
        """Bytes fit if they have the hash, and no others do."""
        item = Dialog(0, {"url": "https://media.example.com/a", "content_hash": token(data)})
        assert item.fits(data) is True
        assert item.fits(other) is (other == data)

    def test_every_sha512_must_fit(self):
        """One wrong sha512 among others refuses; an unknown algorithm is passed over, alone it says nothing."""
        assert Dialog(0, {"content_hash": ["blake3-x", token(b"a")]}).fits(b"a") is True
        assert Dialog(0, {"content_hash": [token(b"a"), token(b"b")]}).fits(b"a") is False
        assert Dialog(0, {"content_hash": "blake3-x"}).fits(b"a") is None
        assert Dialog(0, {"content_hash": token(b"a").upper()}).fits(b"a") is None
        assert Dialog(0, {}).fits(b"a") is None

    def test_published_recording(self):
        """The working group's recording fits its published hash, and no changed byte does."""
        recording = shared_data("vcon", "wg-core", "ab_call.mp3").read_bytes()
        vcon = Vcon.read(shared_data("vcon", "wg-core", "ab_call_ext_rec.vcon").read_bytes())
        assert vcon.dialogs[0].fits(recording) is True
        assert vcon.dialogs[0].fits(recording + b"\0") is False

    def test_published_inline_recording(self):
        """A recording inside of a vCon comes out as the file it was."""
        dialog = Vcon.read(shared_data("vcon", "wg-core", "ab_call_int_rec.vcon").read_bytes()).dialogs[0]
        assert dialog.content()[:4] == b"RIFF"
        assert dialog.content_bytes() == dialog.content()

"""Binary content in native logs."""

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.logs.media import from_data_url, medium


@given(st.binary(min_size=1), st.booleans(), st.booleans())
def test_round_trip(raw, is_url_safe, is_padded):
    """Base64 of either alphabet, padded or not, becomes base64url without padding, with size and hash of the bytes."""
    text = (base64.urlsafe_b64encode if is_url_safe else base64.b64encode)(raw).decode()
    found = medium("image/png", text if is_padded else text.rstrip("="))
    assert found is not None
    assert base64.urlsafe_b64decode(found.body + "=" * (-len(found.body) % 4)) == raw
    assert (found.size, found.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert "=" not in found.body


@pytest.mark.parametrize("data", [None, "", 5, [], "not base64!", "a", "?", "päng", "AA\ud800A"])
def test_no_content(data):
    """What is no base64 is no content."""
    assert medium("image/png", data) is None


@pytest.mark.parametrize("kind", [None, "", "png", "image/png; a=b", "image/" + "x" * 200, "i\n/p", 7])
def test_unknown_type(kind):
    """A media type that is none is not taken over."""
    assert medium(kind, "AAAA").mediatype == "application/octet-stream"


def test_data_url():
    """A data: URL with base64 gives its content; others give none."""
    found = from_data_url("data:image/PNG;name=x;base64,AAAA")
    assert (found.mediatype, found.body) == ("image/png", "AAAA")
    for other in ("data:image/png,AAAA", "https://example.com/a.png", "data:", 5, None):
        assert from_data_url(other) is None

"""Typed hashes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError
from onrecord.base.hashes import (
    ActionDigest,
    ContentHash,
    ProofRef,
    SchemaHash,
    b64url,
    b64url_decode_strict,
)


class TestBase64url:
    @given(st.binary(max_size=64))
    def test_round_trip(self, data):
        """What is encoded is decoded to the same bytes, without padding on the way."""
        text = b64url(data)
        assert "=" not in text
        assert b64url_decode_strict(text) == data

    @pytest.mark.parametrize(
        "text", ["A", "AA=", "AA==", "AB", "AAB", "A+", "A/", "A A", "AA\n", "é", "AAAAA"]
    )
    def test_not_canonical(self, text):
        """Padding, other alphabets, white space and bits that say nothing are refused."""
        with pytest.raises(MalformedError) as caught:
            b64url_decode_strict(text)
        assert caught.value.code == "base64url-invalid"


class TestTypes:
    def test_action_digest(self):
        """An Action Digest has 43 characters and is its own type."""
        digest = ActionDigest.of(b"x")
        assert len(digest) == 43
        assert isinstance(digest, ActionDigest)
        assert not isinstance(digest, ProofRef)

    @pytest.mark.parametrize("value", [None, 1, "", "x" * 42, "x" * 44, "=" * 43, "x" * 43 + "=", "x" * 43])
    def test_read_refuses(self, value):
        """A value from the wire that is no canonical 32-byte base64url is refused."""
        with pytest.raises(MalformedError) as caught:
            ActionDigest.read(value)
        assert caught.value.code == "hash-malformed"

    def test_schema_hash(self):
        """A schema hash carries its algorithm and refuses other spellings."""
        value = SchemaHash.of(b"{}")
        assert value == "sha-256:" + b64url(hashlib.sha256(b"{}").digest())
        assert SchemaHash.read(str(value)) == value
        for bad in (value[8:], "sha256:" + value[8:], value + "A", None):
            with pytest.raises(MalformedError):
                SchemaHash.read(bad)

    def test_content_hash(self):
        """A vCon content hash is sha512, a hyphen and 86 characters."""
        value = ContentHash.of(b"")
        assert value.startswith("sha512-")
        assert len(value) == 7 + 86

"""Evidence profiles: what CP section 9 asks of each, and the handle."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.evidence import PROFILES, HandleProfile, ProofClaims, enabled_profiles
from onrecord.authorize.evidence.interface import MAX_PROFILE_VALUE_CHARACTERS, TYPE_NAME
from onrecord.base.errors import ConfigurationError, MalformedError, OnrecordError

START = bytes.fromhex("00000001")
CLAIMS = ProofClaims(
    action_digest="S-sEkYFCUR01UPHSGshDxsqQ3cBhLpO12jehKE-IEUs",
    input_digest=None,
    server="filesystem",
    caller="code-review",
    issued_seconds=1_796_032_800,
    window_seconds=15,
)


@pytest.mark.parametrize("name", PROFILES)
class TestEveryProfile:
    @pytest.mark.req("CP-054")
    def test_identifier(self, name):
        """The type stands under a domain, and the registry knows it by its short name."""
        profile = PROFILES[name]()
        assert TYPE_NAME.fullmatch(profile.type)
        assert profile.short_name == name
        assert profile.facts.identifier == profile.type

    @pytest.mark.req("CP-055", "CP-056", "CP-057", "CP-059", "CP-060")
    def test_six_points(self, name):
        """The profile answers all six points of CP section 9."""
        for field in dataclasses.fields(PROFILES[name].facts):
            assert getattr(PROFILES[name].facts, field.name)

    @pytest.mark.req("CP-061")
    def test_compact(self, name):
        """Values are printable ASCII of at most 512 characters, and read back to the key they were made with."""
        profile = PROFILES[name]()
        value, key = profile.mint(CLAIMS, start_id=START)
        assert value.isascii()
        assert value.isprintable()
        assert profile.min_characters <= len(value) <= profile.max_characters <= MAX_PROFILE_VALUE_CHARACTERS
        assert profile.read(value) == key
        assert key.start_id == START


class TestHandle:
    @pytest.mark.req("CP-055")
    def test_vector(self):
        """Start id 00000001 and bytes 00..0f give the value of call-proof.md 5.2."""
        handle = HandleProfile(randomness=lambda size: bytes(range(16)) * (size // 16))
        value, key = handle.mint(CLAIMS, start_id=START)
        assert value == "AAAAAQABAgMEBQYHCAkKCwwNDg8"
        assert key.key == START + bytes(range(16))

    @pytest.mark.parametrize(
        "value",
        [
            "AAAAAQECAwQFBgcICQoLDA0ODxB",  # the same bytes, with a low bit set
            "AAAAAQECAwQFBgcICQoLDA0ODxA=",
            "AAAAAQECAwQFBgcICQoLDA0ODx",
            "AAAAAQECAwQFBgcICQoLDA0ODxAA",
            "AAAAAQECAwQFBgcICQoLDA0OD+A",
            "AAAAAQECAwQFBgcICQoLDA0OD/A",
            "AAAAAQECAwQFBgcICQoLDA0OD A",
            "AAAAAQECAwQFBgcICQoLDA0ODxA\n",
            "",
        ],
    )
    def test_non_canonical(self, value):
        """Only canonical base64url of exactly 20 bytes is a handle."""
        with pytest.raises(MalformedError):
            HandleProfile().read(value)

    def test_values_are_different(self):
        """No value is handed out twice, also across the batches of random bytes."""
        handle = HandleProfile()
        values = {handle.mint(CLAIMS, start_id=START)[0] for _ in range(1000)}
        assert len(values) == 1000

    @given(st.text(max_size=40))
    def test_any_text(self, text):
        """Reading any text gives a key that writes back to the same text, or one of our errors."""
        handle = HandleProfile()
        try:
            key = handle.read(text)
        except OnrecordError:
            return
        again = HandleProfile(randomness=lambda size: key.key[4:] * (size // 16))
        assert again.mint(CLAIMS, start_id=key.start_id)[0] == text


class TestRegistry:
    def test_handle(self):
        """The default configuration enables the handle."""
        assert [profile.type for profile in enabled_profiles(["handle"])] == ["dev.onrecord/handle"]

    @pytest.mark.parametrize("name", ["jws", "passkey", "otc", "otc-soft"])
    def test_later(self, name):
        """A profile that is specified and not built is refused by its name, never ignored."""
        with pytest.raises(ConfigurationError) as error:
            enabled_profiles(["handle", name])
        assert error.value.code == "not-built-yet"
        assert name in str(error.value)

    @pytest.mark.parametrize("names", [[], ["none"], ["Handle"]])
    def test_unknown(self, names):
        """An unknown name, and no name at all, are configuration errors."""
        with pytest.raises(ConfigurationError) as error:
            enabled_profiles(names)
        assert error.value.code == "evidence-unknown"

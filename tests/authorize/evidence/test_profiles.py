"""Evidence profiles: what CP section 9 asks of each, and the handle."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.evidence import (
    PROFILES,
    HandleProfile,
    ProfileSupplies,
    ProofClaims,
    enabled_profiles,
    registry,
)
from onrecord.authorize.evidence.interface import MAX_PROFILE_VALUE_CHARACTERS, TYPE_NAME
from onrecord.base.configuration_keys import EVIDENCE_NAMES, LATER_EVIDENCE
from onrecord.base.errors import ConfigurationError, KeyAccessError, MalformedError, OnrecordError
from onrecord.base.hashes import b64url
from onrecord.base.keys import PrivateKeySigner, generate_private_key

START = bytes.fromhex("00000001")
CLAIMS = ProofClaims(
    action_digest="S-sEkYFCUR01UPHSGshDxsqQ3cBhLpO12jehKE-IEUs",
    input_digest=None,
    server="filesystem",
    caller="code-review",
    issued_seconds=1_796_032_800,
    window_seconds=15,
)


SUPPLIES = ProfileSupplies(proof_key=lambda: PrivateKeySigner(generate_private_key("ed25519")))


def without_key():
    raise KeyAccessError("gone", code="key-missing")


@pytest.mark.parametrize("name", PROFILES)
class TestEveryProfile:
    @pytest.mark.req("CP-054")
    def test_identifier(self, name):
        """The type stands under a domain, and the registry knows it by its short name."""
        profile = PROFILES[name].make(SUPPLIES)
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
        """Values are printable ASCII of at most 512 characters for ids of 30, and read back to their key, twice."""
        profile = PROFILES[name].make(SUPPLIES)
        long = CLAIMS._replace(server="s" * 30, caller="c" * 30, input_digest=CLAIMS.action_digest)
        for claims in (CLAIMS, long):
            value, key = profile.mint(claims, start_id=START)
            assert value.isascii()
            assert value.isprintable()
            assert profile.min_characters <= len(value) <= profile.max_characters
            assert len(value) <= MAX_PROFILE_VALUE_CHARACTERS
            assert profile.read(value) == key
            assert profile.read(value) == key
            assert key.start_id == START

    @pytest.mark.req("CP-061")
    def test_longest(self, name):
        """The longest ids that a bundle admits give a value within the profile's own bound and the hard limit."""
        profile = PROFILES[name].make(SUPPLIES)
        claims = CLAIMS._replace(server="s" * 64, caller='"' * 256, input_digest=CLAIMS.action_digest)
        value, key = profile.mint(claims, start_id=START)
        assert len(value) <= profile.max_characters <= 4096
        assert profile.read(value) == key

    @pytest.mark.req("CP-059")
    def test_no_secret_in_text(self, name):
        """What a profile publishes and how it prints hold no private key and no proof value."""
        private = generate_private_key("ed25519")
        supplies = ProfileSupplies(proof_key=lambda: PrivateKeySigner(private))
        profile = PROFILES[name].make(supplies)
        value, _ = profile.mint(CLAIMS, start_id=START)
        told = repr(profile) + str(dict(profile.published()))
        assert b64url(private.private_bytes_raw()) not in told
        assert private.private_bytes_raw().hex() not in told
        assert value not in told


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
        enabled = enabled_profiles(["handle"], supplies=SUPPLIES)
        assert [profile.type for profile in enabled.profiles] == ["dev.onrecord/handle"]

    def test_order(self):
        """The configuration's order is kept: the best one first."""
        enabled = enabled_profiles(["jws", "handle"], supplies=SUPPLIES)
        assert [profile.short_name for profile in enabled.profiles] == ["jws", "handle"]
        assert not enabled.disabled

    def test_same_names_as_the_configuration(self):
        """The registry and the reader of onrecord.toml know the same names."""
        assert tuple(PROFILES) == EVIDENCE_NAMES
        assert registry.LATER == LATER_EVIDENCE

    @pytest.mark.req("CP-059")
    @pytest.mark.parametrize(("names", "left"), [(["jws"], []), (["jws", "handle"], ["handle"])])
    def test_without_key(self, names, left):
        """A profile whose key is gone is disabled by name; no other one takes its place."""
        enabled = enabled_profiles(names, supplies=ProfileSupplies(proof_key=without_key))
        assert [profile.short_name for profile in enabled.profiles] == left
        assert dict(enabled.disabled) == {"dev.onrecord/jws": "key-missing"}

    @pytest.mark.req("CP-059")
    def test_handle_needs_no_key(self):
        """The default profile never asks for the key."""
        enabled = enabled_profiles(["handle"], supplies=ProfileSupplies(proof_key=without_key))
        assert len(enabled.profiles) == 1
        assert not enabled.disabled

    def test_wrong_kind_of_key(self):
        """A key of another kind disables the type: nothing is signed with another algorithm."""
        supplies = ProfileSupplies(proof_key=lambda: PrivateKeySigner(generate_private_key("p256")))
        assert dict(enabled_profiles(["jws"], supplies=supplies).disabled) == {"dev.onrecord/jws": "key-alg"}

    @pytest.mark.parametrize("name", ["passkey", "otc", "otc-soft"])
    def test_later(self, name):
        """A profile that is specified and not built is refused by its name, never ignored."""
        with pytest.raises(ConfigurationError) as error:
            enabled_profiles(["handle", name], supplies=SUPPLIES)
        assert error.value.code == "not-built-yet"
        assert name in str(error.value)

    @pytest.mark.parametrize("names", [[], ["none"], ["Handle"]])
    def test_unknown(self, names):
        """An unknown name, and no name at all, are configuration errors."""
        with pytest.raises(ConfigurationError) as error:
            enabled_profiles(names, supplies=SUPPLIES)
        assert error.value.code == "evidence-unknown"

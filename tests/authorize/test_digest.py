"""The Action Digest."""

from __future__ import annotations

import json
import math
import random

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.digest import digest_of_text, input_digest
from onrecord.base import strict_json
from onrecord.base.canonical import canonicalize
from support.data import shared_data

VECTORS = json.loads(shared_data("call-proof", "digest-vectors.json").read_text(encoding="utf-8"))


def arguments_of(vector) -> bytes | None:
    if vector.get("arguments_absent"):
        return None
    if "arguments_hex" in vector:
        return bytes.fromhex(vector["arguments_hex"])
    return vector["arguments_text"].encode("utf-8", "surrogatepass")


class TestVectors:
    @pytest.mark.req(
        "CP-022", "CP-023", "CP-025", "CP-026", "CP-028", "CP-029", "CP-030", "CP-031", "CP-032", "CP-036"
    )
    @pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
    def test_vector(self, vector):
        """Each vector gives its digest and canonical bytes, or is refused with its class."""
        data = arguments_of(vector)
        if vector["expect"] == "refuse":
            with pytest.raises(strict_json.Refused) as refused:
                digest_of_text(vector["tool"], data, method=vector["method"])
            assert refused.value.reason == vector["reason"]
            return
        assert digest_of_text(vector["tool"], data, method=vector["method"]) == vector["digest"]
        value, facts = ({}, strict_json.PLAIN) if data is None else strict_json.parse_arguments(data)
        preimage = {"method": vector["method"], "name": vector["tool"], "arguments": value}
        assert (not facts.floats and not facts.wide_keys) == vector["fast_path"]
        expected = vector.get("canonical")
        if expected is not None:
            assert canonicalize(preimage, facts) == expected.encode("utf-8")

    def test_inputs(self):
        """The input digest covers inputResponses and requestState as far as they are there."""
        responses = {"sure": {"action": "accept", "content": {"target": "repo/a"}}}
        both = {"inputResponses": responses, "requestState": "st"}
        assert input_digest(both) == "8000uQemCzs1UlJp4cr_KszjGk0dQO1MNY7QEJ03v0w"
        assert input_digest({"requestState": "st"}) == "2AUmMWo96TSZlwksjy3ZJk-_0bMmLTD_P-KOY3drNdg"
        assert input_digest({"name": "read_file"}) is None


class TestBounds:
    def nested(self, levels: int) -> bytes:
        return b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)

    def test_depth(self):
        """64 levels of arguments pass, 65 do not; brackets in strings do not count."""
        digest_of_text("t", self.nested(64))
        with pytest.raises(strict_json.Refused) as refused:
            digest_of_text("t", self.nested(65))
        assert refused.value.reason == "depth"
        digest_of_text("t", json.dumps({"a": "[" * 1000}).encode())

    def test_size(self):
        """1 MiB of arguments passes, one byte more is too_large."""
        text = b'{"a":"' + b"x" * (1_048_576 - 8) + b'"}'
        assert len(text) == 1_048_576
        digest_of_text("t", text)
        with pytest.raises(strict_json.Refused) as refused:
            digest_of_text("t", text + b" ")
        assert refused.value.reason == "too_large"


class TestForms:
    def test_fast_path_equals_reference(self):
        """On 100,000 random values the bytes of the fast path are those of the reference."""
        source = random.Random(8785)
        strings = ["", "a", "é", "\u2028", "\U00010000", "\x00\x1f\x7f", '"\\/', "\ue000", "~/.aws", "\ufb33"]

        def value(depth: int):
            kind = source.randrange(7 if depth else 5)
            if kind == 0:
                return source.choice(strings) + chr(source.randrange(0x20, 0xD7FF))
            if kind == 1:
                return source.randrange(-(2**53) + 1, 2**53)
            if kind == 2:
                return source.choice([True, False, None, 0, -1, 2**53 - 1])
            if kind == 3:
                return source.randrange(1000)
            if kind == 4:
                return source.choice(strings)
            if kind == 5:
                return [value(depth - 1) for _ in range(source.randrange(3))]
            return {f"k{source.randrange(50)}": value(depth - 1) for _ in range(source.randrange(3))}

        for _ in range(100_000):
            preimage = {"arguments": {"a": value(2)}, "method": "tools/call", "name": "t"}
            assert canonicalize(preimage, strict_json.PLAIN) == rfc8785.dumps(preimage)

    @given(
        st.dictionaries(
            st.text(max_size=5),
            st.one_of(
                st.text(max_size=8),
                st.integers(-(2**53) + 1, 2**53 - 1),
                st.floats(allow_nan=False, allow_infinity=False),
                st.booleans(),
                st.none(),
            ),
            max_size=6,
        ),
        st.randoms(use_true_random=False),
    )
    def test_respelled(self, value, source):
        """Order of members, blanks, escapes and spellings of numbers do not change the digest."""

        def spell(item) -> str:
            if isinstance(item, str):
                return '"' + "".join(self.letter(char, source) for char in item) + '"'
            if isinstance(item, bool) or item is None:
                return json.dumps(item)
            if isinstance(item, int):
                return source.choice([str(item), f"{item}.0"]) if item else source.choice(["0", "-0", "0e3"])
            return source.choice([repr(item), f"{item:.17e}", f"{item:.17E}"])

        members = list(value.items())
        plain = "{" + ",".join(f"{json.dumps(name)}:{self.plain(item)}" for name, item in members) + "}"
        source.shuffle(members)
        blank = lambda: source.choice(["", " ", "\n\t", "\r"])
        respelled = (
            "{"
            + ",".join(f"{blank()}{spell(name)}{blank()}:{spell(item)}" for name, item in members)
            + "}"
            + blank()
        )
        assert digest_of_text("t", respelled.encode()) == digest_of_text("t", plain.encode())

    @staticmethod
    def plain(item) -> str:
        return repr(item) if isinstance(item, float) and not math.isnan(item) else json.dumps(item)

    @staticmethod
    def letter(char: str, source) -> str:
        units = char.encode("utf-16-be")
        escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))
        if char in '"\\' or ord(char) < 0x20:
            return escaped
        return source.choice([char, escaped])

"""RFC 8785: the fast path gives the bytes of the reference."""

from __future__ import annotations

import json
import math

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.canonical import canonicalize, compact
from onrecord.base.errors import MalformedError
from onrecord.base.strict_json import Refused, parse

TEXT = st.text(max_size=6)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


class TestFastPath:
    @settings(max_examples=1500)
    @given(VALUES)
    def test_equals_reference(self, value):
        """Whatever the facts decide, the bytes are those of the reference canonicalizer."""
        parsed, facts = parse(json.dumps(value, ensure_ascii=False).encode())
        assert canonicalize(parsed, facts) == rfc8785.dumps(parsed)

    def test_hundred_thousand_texts(self):
        """100,000 random texts, seeded: each is refused, or its canonical bytes equal the reference."""
        import random

        rng = random.Random(8785)
        pieces = [
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            '"a"',
            '"b"',
            '"é"',
            "1",
            "-0",
            "1.5",
            "1e21",
            "true",
            "null",
            " ",
        ]

        def value(depth):
            kind = rng.randrange(9 if depth < 4 else 6)
            if kind >= 7:
                return "[" + ",".join(value(depth + 1) for _ in range(rng.randrange(4))) + "]"
            if kind == 6:
                names = rng.sample(
                    ["a", "b", "B", "aa", "é", "\\u0061x", "\ue000", "\U00010000", ""], rng.randrange(5)
                )
                return "{" + ",".join(f'"{name}":{value(depth + 1)}' for name in names) + "}"
            return rng.choice(
                [
                    "1",
                    "-0",
                    "0",
                    "1.0",
                    "1e21",
                    "1e-7",
                    "9007199254740991",
                    "true",
                    "null",
                    '"x"',
                    '"\\u00e9"',
                    '"é\\n"',
                ]
            )

        compared = 0
        for _ in range(100_000):
            text = value(0) if rng.random() < 0.9 else "".join(rng.choices(pieces, k=rng.randrange(12)))
            try:
                parsed, facts = parse(text.encode())
            except Refused:
                continue
            compared += 1
            assert canonicalize(parsed, facts) == rfc8785.dumps(parsed), text
        assert compared > 85_000


class TestReference:
    @pytest.mark.req("CP-028")
    def test_utf16_order(self):
        """Member names sort by UTF-16 code units: U+10000 before U+E000."""
        parsed, facts = parse('{"\ue000":1,"\U00010000":2}'.encode())
        assert canonicalize(parsed, facts) == '{"\U00010000":2,"\ue000":1}'.encode()

    def test_numbers(self):
        """Numbers are written as ECMAScript writes them."""
        parsed, facts = parse(b"[1.0,-0.0,1e21,1e-7,0.000001]")
        assert canonicalize(parsed, facts) == b"[1,0,1e+21,1e-7,0.000001]"

    @pytest.mark.parametrize("value", [math.nan, 2**53, {1: 2}, object(), "\ud800"])
    def test_refused(self, value):
        """A value without a canonical form is an error of ours."""
        with pytest.raises(MalformedError) as caught:
            canonicalize(value)
        assert caught.value.code == "not-canonical"

    def test_compact(self):
        """Our own records are sorted and have no white space; what JSON cannot hold is an error of ours."""
        assert compact({"b": [1], "a": "é"}) == '{"a":"é","b":[1]}'.encode()
        with pytest.raises(MalformedError):
            compact({"a": object()})

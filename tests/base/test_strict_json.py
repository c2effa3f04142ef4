"""Strict I-JSON: what is accepted, what is refused, and with which class."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base import _json_scan, strict_json
from onrecord.base.strict_json import (
    ARGUMENTS_BYTES,
    MAX_SAFE_INTEGER,
    REASONS,
    Refused,
    nesting,
    parse,
    parse_arguments,
)


def reason_of(text: str | bytes, **limits) -> str:
    with pytest.raises(Refused) as caught:
        parse(text.encode() if isinstance(text, str) else text, **limits)
    return caught.value.reason


class TestAccepted:
    @pytest.mark.parametrize(
        ("text", "floats", "wide_keys"),
        [
            ('{"a":1}', False, False),
            ('{"a":1.0}', True, False),
            ('{"a":1e3}', True, False),
            ('{"a":"é"}', False, False),
            ('{"é":1}', False, True),
            ('{"\\u00e9":1}', False, True),
            ('[{"o":{"ö":[]}}]', False, True),
            (" \t\r\n{} \r\n", False, False),
        ],
    )
    def test_facts(self, text, floats, wide_keys):
        """The facts say whether a float token and whether a non-ASCII member name occurred, at any depth."""
        _, facts = parse(text.encode())
        assert (facts.floats, facts.wide_keys) == (floats, wide_keys)

    def test_facts_do_not_leak(self):
        """A parse starts with no facts, whatever the one before it saw or however it ended."""
        parse(b'{"\xc3\xa9":1.5}')
        assert reason_of('{"\u00e9":1.5,') == "syntax"
        assert parse(b"{}")[1] == (False, False)

    def test_minus_zero_and_underflow(self):
        """-0 and numbers that underflow are doubles like others."""
        assert parse(b"[-0,-0.0,1e-400]")[0] == [0, 0.0, 0.0]

    def test_special_names(self):
        """Names that other parsers treat specially are plain members."""
        assert parse(b'{"__proto__":1,"__entity":2,"":3}')[0] == {"__proto__": 1, "__entity": 2, "": 3}

    def test_surrogate_pair(self):
        """A proper surrogate pair is one character."""
        assert parse(b'["\\ud83d\\ude00"]')[0] == ["\U0001f600"]

    def test_safe_integer_bounds(self):
        """The largest safe integers are kept exactly."""
        assert parse(f"[{MAX_SAFE_INTEGER},-{MAX_SAFE_INTEGER}]".encode())[0] == [
            MAX_SAFE_INTEGER,
            -MAX_SAFE_INTEGER,
        ]


class TestRefused:
    @pytest.mark.req("CP-029", "CP-030", "CP-031", "CP-032")
    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("", "syntax"),
            ("nul", "syntax"),
            ("{", "syntax"),
            ("{}x", "syntax"),
            ("{} {}", "syntax"),
            ("[1,]", "syntax"),
            ('{"a":1,}', "syntax"),
            ("{a:1}", "syntax"),
            ("{'a':1}", "syntax"),
            ("[01]", "syntax"),
            ("[+1]", "syntax"),
            ("[.5]", "syntax"),
            ("[1.]", "syntax"),
            ("[NaN]", "syntax"),
            ("[Infinity]", "syntax"),
            ("[-Infinity]", "syntax"),
            ('["a\tb"]', "syntax"),
            ('["\\x"]', "syntax"),
            ('["\\u12"]', "syntax"),
            ("\u00a0{}", "syntax"),
            ('{"a":1,"a":1}', "duplicate"),
            ('{"a":1,"\\u0061":2}', "duplicate"),
            ('[{"x":{"b":0,"b":0}}]', "duplicate"),
            ("[1e400]", "nonfinite"),
            ("[-1e400]", "nonfinite"),
            ("[9007199254740992]", "unsafe_integer"),
            ("[-9007199254740993]", "unsafe_integer"),
            ("[" + "9" * 5000 + "]", "unsafe_integer"),
            ('["\\ud800"]', "surrogate"),
            ('["\\udc00\\ud800"]', "surrogate"),
            ('{"\\ud800":1}', "surrogate"),
            ("[1152921504606846976]", "unsafe_integer"),
            ("[18446744073709551616]", "unsafe_integer"),
        ],
    )
    def test_class(self, text, reason):
        """Each broken text has the class that call-proof.md 3.2 gives it."""
        assert reason_of(text) == reason

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ('{"a":1,"a":1e400}', "duplicate"),
            ('{"a":1e400,"a":1}', "nonfinite"),
            ('{"a":{"b":1,"b":2},"c":9007199254740993}', "duplicate"),
            ('{"c":9007199254740993,"a":{"b":1,"b":2}}', "unsafe_integer"),
            ('{"a":1,"a":2', "duplicate"),
            ('{"a":"\\ud800","a":2}', "duplicate"),
            ('[1e400,"\\ud800"]', "nonfinite"),
            ('[NaN,{"a":1,"a":1}]', "syntax"),
        ],
    )
    def test_first_fault_in_text_order(self, text, reason):
        """With several faults the first one in the text counts, surrogates last."""
        assert reason_of(text) == reason

    @pytest.mark.parametrize(
        ("tail", "reason"),
        [
            ('{"a":1,"a":1}', "duplicate"),
            ('{"a":1,"a":1e400}', "nonfinite"),
            ("9007199254740993", "unsafe_integer"),
            ("NaN", "syntax"),
            ("1,", "syntax"),
        ],
    )
    def test_far_inside_the_fault_that_was_met_counts(self, tail, reason):
        """The exact search has a bound, or one line of a mebibyte would hold up every other client for seconds."""
        assert reason_of("[" + "1," * _json_scan.MAX_TURNS + tail + "]") == reason

    def test_a_string_without_end_is_one_string(self):
        """Brackets in it do not count, and counting takes no memory for each of its bytes."""
        assert nesting(b'[{"' + b'\\"[' * (1 << 20)) == 2

    def test_bom(self):
        """A byte order mark is refused before anything is parsed."""
        assert reason_of(b"\xef\xbb\xbf{}") == "bom"

    @pytest.mark.parametrize(
        "raw", [b'["\xff"]', b'["\xc0\x80"]', b'["\xed\xa0\x80"]', b'["\xf4\x90\x80\x80"]']
    )
    def test_not_utf8(self, raw):
        """Bad bytes, overlong forms, encoded surrogates and code points beyond Unicode are refused."""
        assert reason_of(raw) == "not_utf8"

    def test_size_before_everything(self):
        """The size limit is tested first and holds for the text, one byte decides."""
        assert parse(b"[1,2]", max_bytes=5)[0] == [1, 2]
        assert reason_of(b"\xef\xbb\xbf[", max_bytes=3) == "too_large"

    def test_depth(self):
        """The limit counts containers; brackets in strings do not count."""
        text = "[" * 64 + "]" * 64
        assert parse(text.encode(), max_depth=64)
        assert reason_of("[" + text + "]", max_depth=64) == "depth"
        assert parse(b'["' + b"[" * 100 + b'\\"{"]', max_depth=1)[0] == ["[" * 100 + '"{']
        assert parse(b"[" + b"{}," * 100 + b"{}]", max_depth=2)

    def test_deep_junk_does_not_recurse(self):
        """A million brackets are refused by counting, not by running out of stack."""
        assert reason_of(b"[" * 1_000_000) == "depth"

    @pytest.mark.req("CP-036")
    @pytest.mark.parametrize("text", [b"null", b"[]", b'"x"', b"0", b"true"])
    def test_arguments_must_be_an_object(self, text):
        """Arguments that are present and no object are refused, never read as {}."""
        with pytest.raises(Refused) as caught:
            parse_arguments(text)
        assert caught.value.reason == "not_object"

    def test_arguments_limits(self):
        """1 MiB of arguments and 64 levels pass, one more of either is refused."""
        fill = b'{"t":"' + b"x" * (ARGUMENTS_BYTES - 8) + b'"}'
        assert parse_arguments(fill)
        with pytest.raises(Refused, match="too_large"):
            parse_arguments(fill[:-2] + b'x"}')
        deep = b'{"a":' + b"[" * 63 + b"]" * 63 + b"}"
        assert parse_arguments(deep)
        with pytest.raises(Refused, match="depth"):
            parse_arguments(deep.replace(b"[]", b"[[]]"))

    def test_error_shape(self):
        """A refusal has code "refused" and its class as `reason`, and never quotes the text."""
        with pytest.raises(Refused) as caught:
            parse(b'{"canary-7":1,"canary-7":2}')
        error = caught.value.to_json()["error"]
        assert (error["code"], error["reason"]) == ("refused", "duplicate")
        assert "canary" not in str(error)


class TestProperties:
    @given(st.binary(max_size=200))
    def test_any_bytes(self, data):
        """Any bytes give a value or a refusal with a known class, nothing else."""
        try:
            parse(data)
        except Refused as refusal:
            assert refusal.reason in REASONS

    @given(st.text(alphabet='{}[]",:0129.eE+-\\udaZ \n\ttrfalsn', max_size=60))
    def test_agrees_with_json(self, text):
        """What is accepted is what the standard parser reads too, and what is "syntax" it cannot read or is NaN."""
        try:
            value, _ = parse(text.encode())
        except Refused as refusal:
            if refusal.reason == "syntax":
                with pytest.raises((ValueError, RecursionError)):
                    json.loads(text, parse_constant=lambda token: int("no"))
        else:
            assert json.loads(text) == value

    @given(st.text(alphabet='{}[]",:01dex.E-tu', max_size=24))
    def test_shortcut_changes_nothing(self, text):
        """The shortcut for plain texts accepts only what the strict parser accepts, with the same value and facts."""
        plain = strict_json._read_plain(text.encode())
        if plain is not None:
            assert parse(b" " + text.encode()) == plain  # a blank in front rules the shortcut out
            assert parse(text.encode()) == plain

    @given(
        st.recursive(
            st.none() | st.integers() | st.floats() | st.text(max_size=4),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
        )
    )
    def test_shortcut_on_written_values(self, value):
        """The same for texts that a writer makes, with any integer and any double in them."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        results = []
        for variant in (text, b" " + text):
            try:
                results.append(repr(parse(variant)))
            except Refused as refusal:
                results.append(refusal.reason)
        assert results[0] == results[1]

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=20,
        )
    )
    def test_round_trip(self, value):
        """Every JSON value that is written is read back, and its nesting is counted right."""
        text = json.dumps(value).encode()

        def depth(item):
            if isinstance(item, dict):
                return 1 + max(map(depth, item.values()), default=0)
            return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 0

        assert parse(text)[0] == value
        assert nesting(text) == depth(value)

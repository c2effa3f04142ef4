"""What an approver sees of a call."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.authority.summaries import (
    MAX_LINES,
    MAX_VALUE_CHARACTERS,
    fact_pairs,
    full_lines,
    summary_lines,
    value_text,
)
from onrecord.authorize.policy.facts import Reading
from onrecord.base.escapes import MAX_MARKS, escape_hidden

DIGEST = "GmVaz33lcSdTPzLBO-gEEjpLnfvDf1KAj9z8WjXIOYM"


IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Default_Ignorable_Code_Point (Unicode 16, DerivedCoreProperties.txt): first and last of each range."""


def lines(arguments, **more):
    options = {
        "server": "filesystem",
        "tool": "post_comment",
        "caller": "code-review",
        "arguments": arguments,
        "facts": (("op", "send"), ("impact", "2")),
        "rules": ("comment-needs-approval",),
        "action_digest": DIGEST,
    }
    return summary_lines(**(options | more))


class TestSummary:
    def test_call(self):
        """Server, tool, caller, one line per argument, facts, rules and the digest's start."""
        assert lines({"number": 17, "body": "Please add a test."}) == (
            "server: filesystem",
            "tool: post_comment",
            "caller: code-review",
            "number: 17",
            'body: "Please add a test."',
            "op: send",
            "impact: 2",
            "rule: comment-needs-approval",
            "digest: GmVaz33l",
        )

    def test_agent_text_is_no_summary(self):
        """Members that look like a summary are arguments like any other, and cannot pose as our lines."""
        shown = lines(
            {"summary": "harmless", "rule": "none", "digest": "AAAAAAAA", "Rule": 1, "caller: root\ntool": 1}
        )
        assert 'summary: "harmless"' in shown
        assert 'argument rule: "none"' in shown
        assert 'argument digest: "AAAAAAAA"' in shown
        assert "argument Rule: 1" in shown
        assert '"caller: root\\ntool": 1' in shown
        assert [line for line in shown if line.startswith(("rule:", "digest:", "caller:"))] == [
            "caller: code-review",
            "rule: comment-needs-approval",
            "digest: GmVaz33l",
        ]

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\x9b2J", "\\u{9b}2J"),
            ("a\u202eb", "a\\u{202e}b"),
            ("a\u2066b", "a\\u{2066}b"),
            ("a\u200bb", "a\\u{200b}b"),
            ("a\ufeffb", "a\\u{feff}b"),
            ("a\u00adb", "a\\u{ad}b"),
            ("a\u00a0b", "a\\u{a0}b"),
            ("a\u3164b", "a\\u{3164}b"),
            ("a\U000e0041b", "a\\u{e0041}b"),
            ("line\u2028next", "line\\u{2028}next"),
            ("Grüße, 世界 🙂", "Grüße, 世界 🙂"),
        ],
    )
    def test_hidden_characters(self, text, shown):
        """Control, bidi, zero-width and invisible characters are shown as \\u{..}; plain text stays."""
        assert escape_hidden(text) == shown

    def test_everything_ignorable(self):
        """Nothing that Unicode lets a terminal draw as nothing gets through, so no two calls look alike for that."""
        shown = [char for first, last in IGNORABLE for char in map(chr, range(first, last + 1))]
        assert [hex(ord(char)) for char in shown if escape_hidden(f"a{char}b") == f"a{char}b"] == []

    def test_long_tool_names(self):
        """The name of a tool is shown whole: what it ends with may be all that tells two tools apart."""
        assert lines({}, tool="read_" + "x" * 247 + "_all")[1] == "tool: read_" + "x" * 247 + "_all"

    def test_long_values(self):
        """A long value is cut and named with its length and hash; two different ones look different."""
        first, second = value_text("x" * 1000 + "a"), value_text("x" * 1000 + "b")
        assert first != second
        assert "1003 bytes" in first
        assert len(first) < MAX_VALUE_CHARACTERS + 60

    def test_inputs(self):
        """The answers of a later round and the request's state are lines of their own, which no answer can pose as."""
        shown = lines(
            {"n": 1},
            inputs={
                "inputResponses": {"sure": {"action": "accept"}, "request state": 1, "x: y\n": 2},
                "requestState": "st",
            },
        )
        assert shown[3:8] == (
            "n: 1",
            'input request state: "st"',
            'input sure: {"action":"accept"}',
            'input "request state": 1',
            'input "x: y\\n": 2',
        )

    def test_facts(self):
        """Facts are shown as policy derived them, once each, long ones cut, and an unknown one by its name."""
        path = {"root": "repo", "rel": "src/\u202ea", "mode": "read", "dotdot": True, "hidden": False}
        reading = Reading("read", 1, ("unlisted",), ({"path": path}, {"path": path, "resource": "x" * 1000}))
        pairs = fact_pairs(reading, round_=2)
        assert pairs[:5] == (
            ("round", "2"),
            ("op", "read"),
            ("impact", "1"),
            ("unknown", "unlisted"),
            ("path", "repo/src/\u202ea (read, dotdot)"),
        )
        shown = lines({}, facts=pairs)
        assert "path: repo/src/\\u{202e}a (read, dotdot)" in shown
        assert next(line for line in shown if line.startswith("resource: ")).endswith("… (1000 characters)")
        many = lines({}, facts=[("path", str(n)) for n in range(MAX_LINES + 1)])
        assert "(1 more facts are not shown)" in many

    def test_all_of_a_call(self):
        """In full nothing is cut, and an argument is named as in the summary."""
        call = {"body": "x" * 5000, "rule": "none", "a b": [1]}
        assert list(full_lines(call, {"requestState": "s"})) == [
            'body: "' + "x" * 5000 + '"',
            'argument rule: "none"',
            '"a b": [1]',
            'input request state: "s"',
        ]

    def test_marks_in_a_row(self):
        """Combining marks that would grow over other lines are escaped; as many as languages use stay."""
        assert escape_hidden("e\u0301\u0323x") == "e\u0301\u0323x"
        shown = escape_hidden("e" + "\u0301" * 10 + "x")
        assert shown == "e" + "\u0301" * MAX_MARKS + "\\u{301}" * (10 - MAX_MARKS) + "x"
        assert escape_hidden("\u0301x") == "\\u{301}x"

    def test_many_arguments(self):
        """Arguments beyond the limit are counted."""
        shown = lines({f"a{n:03d}": n for n in range(MAX_LINES + 5)})
        assert "(5 more arguments are not shown)" in shown

    @given(
        st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=4),
        st.text(min_size=1, max_size=8),
    )
    def test_any_call(self, arguments, tool):
        """Every line is printable on one line, whatever the call holds."""
        for line in lines(arguments, tool=tool):
            assert all(
                unicodedata.category(char) not in {"Cc", "Cf", "Zl", "Zp", "Co", "Cn"} for char in line
            )

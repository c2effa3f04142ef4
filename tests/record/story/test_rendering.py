"""The story: what it tells, and that nothing in a vCon reaches the terminal or is taken for markup."""

import io
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from onrecord.record.plain_text import excerpt, visible
from onrecord.record.story import render, tell
from onrecord.record.story.choosing import MAX_ITEMS, MAX_LINES
from onrecord.record.story.rendering import MAX_LISTED, Rendering
from onrecord.record.story.words import value_excerpt
from onrecord.record.vcon.model import Vcon
from support.vcons import answer, decision, invocation, standing, text, vcon

HOSTILE = [
    "\x1b[31mred\x1b]0;title\x07",
    "\u202eevil\u2066",
    "[bold]markup[/bold] [link=https://example.com]x[/link]",
    "<script>alert(1)</script>",
    "a\u200bb\ufeffc",
    "line\r\nover\x08\x7f",
    "\U000e0041tag",
    ":smile:",
    "\u115f\u2800\u3164",
    "z" + "\u0301" * 40,
    "\U0001f1e6\ufe0f\u034f",
    "\x9b31m",
]


def shown(document, width=140, *, everything=False, color_system=None):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=color_system, highlight=False)
    console.print(render(Vcon.read(text(document)), everything=everything))
    return out.getvalue()


def json_body(value):
    return {"mediatype": "application/json", "encoding": "json", "body": value}


class TestStory:
    @pytest.mark.req("TI-093")
    def test_tells(self):
        """Server and tool, decision and where it came from, each state, times and how long it took."""
        made = vcon(
            standing("allowed", 0, tool=None),
            decision("permission-required", 1, reason="writes"),
            invocation(2, **json_body({"zone": "UTC"})),
            answer("tool-input", 3),
            answer("tool-input-response", 5),
            answer("tool-result", 9),
        )
        out = shown(made)
        for part in ("clock › now", "completed", "permission-required (once)", "writes", '{"zone":"UTC"}',
                     "12:00:03.000Z", "input-required", "7.0 s", "every tool", "Agent (bot)"):  # fmt: skip
            assert part in out
        lines = tell(Vcon.read(text(made))).operations[0].lines
        assert [line.state for line in lines] == [
            "permission-required", "running", "input-required", "running", "completed",
        ]  # fmt: skip
        assert lines[-1].took_ms == 7_000

    @pytest.mark.parametrize("width", [1, 10, 20])
    def test_very_narrow(self, width):
        """A terminal of a few columns gets lines of a few columns, wide characters too."""
        made = vcon(invocation(1, server="会議" * 30), answer("tool-result", body="日本" * 60),
                    dialog=[{"type": "text", "parties": 0, "body": "日本語" * 9}])  # fmt: skip
        assert all(cell_len(line) <= width for line in shown(made, width=width).splitlines())

    @pytest.mark.parametrize("width", [40, 80, 120])
    def test_fits(self, width):
        """Every event and every content is one line of the terminal, cut with an ellipsis and never wrapped."""
        made = vcon(
            decision("allowed"),
            invocation(**json_body({"path": "a/long/way/" * 20})),
            answer("tool-result", 9, body="word " * 50),
        )
        lines = shown(made, width=width).splitlines()
        assert all(cell_len(line) <= width for line in lines)
        contents = [line for line in lines if "a/long/way" in line or "word word" in line]
        assert len(contents) == 2
        assert all(line.endswith("…") for line in contents)

    def test_one_form_of_times(self):
        """Times of day have three digits after the second, however many were written."""
        times = [
            "2026-11-30T21:19:18.39Z",
            "2026-11-30T21:19:19Z",
            "2026-11-30T21:19:20.123456+01:00",
            "soon",
        ]
        made = vcon(*(decision(operation_id=str(n), time=time) for n, time in enumerate(times)))
        out = shown(made)
        for clock in ("21:19:18.390Z", "21:19:19.000Z", "21:19:20.123+01:00", "soon"):
            assert clock in out

    def test_not_cut_in_a_pipe(self):
        """Without a terminal the excerpt is whole."""
        out = io.StringIO()
        console = Console(file=out, width=40, soft_wrap=True)
        console.print(render(Vcon.read(text(vcon(invocation(**json_body({"path": "x" * 90})))))))
        assert "x" * 90 in out.getvalue()

    def test_refused_and_unfinished(self):
        """A refused call and one without an answer are told as what they are."""
        out = shown(vcon(decision("disallowed"), invocation(operation_id="b")))
        assert "not-performed" in out
        assert "unfinished" in out
        assert "no decision observed" in out

    def test_many(self):
        """Of a long record the ends are shown and what went wrong between them; the gaps say what is left out."""
        events = [
            one
            for number in range(MAX_ITEMS + 50)
            for one in (
                invocation(number // 10, operation_id=f"op-{number}"),
                answer(
                    "tool-denied" if number == 120 else "tool-result",
                    number // 10,
                    operation_id=f"op-{number}",
                ),
            )
        ]
        out = shown(vcon(*events))
        for number in (0, 59, 120, 249):
            assert f"operation op-{number}\n" in out
        assert "operation op-100\n" not in out
        assert "60 left out (60 completed); --all shows them" in out
        assert "69 left out (69 completed); --all shows them" in out
        everything = shown(vcon(*events), everything=True)
        assert everything.count("    operation op-") == MAX_ITEMS + 50
        assert "left out" not in everything
        assert len(tell(Vcon.read(text(vcon(*events)))).to_json()["operations"]) == MAX_ITEMS + 50

    def test_repeated_progress(self):
        """Progress that says the same is one line with a count; an operation with many events is cut inside."""
        progress = [answer("tool-progress", 2) for _ in range(500)]
        out = shown(vcon(invocation(1), *progress, answer("tool-result", 9)))
        assert "attempt 1: tool-progress × 500" in out
        assert out.count("tool-progress") == 1
        assert shown(vcon(invocation(1), *progress), everything=True).count("tool-progress") == 500
        attempts = [
            one
            for n in range(1, 30)
            for one in (invocation(n, attempt=n), answer("tool-error", n, attempt=n))
        ]
        out = shown(vcon(*attempts))
        assert f"… {58 - MAX_LINES} events left out; --all shows them" in out
        assert "attempt 29: tool-error" in out

    def test_lists_are_cut(self):
        """Long lists of parties, standing decisions and sessions are cut and say by how much."""
        count = MAX_LISTED + 3
        made = vcon(
            *(standing(tool=f"t{number}") for number in range(count)),
            parties=[{"name": f"p{number}"} for number in range(count)],
            sessions=[{}] * count,
        )
        out = shown(made)
        for words in ("and 3 more parties", "and 3 more standing decisions", "3 more sessions"):
            assert f"{words}; --all shows them" in out
        assert "--all" not in shown(made, everything=True)

    def test_days(self):
        """Where the day changes the new date stands on a line of its own."""
        made = vcon(invocation(1), answer("tool-result", time="2026-11-03T00:00:01Z"),
                    invocation(operation_id="b", time="2026-11-04T08:00:00Z"))  # fmt: skip
        lines = [line.strip() for line in shown(made).splitlines()]
        assert lines.count("2026-11-04") == 1
        assert "2026-11-02" not in lines  # the session began on that day

    @pytest.mark.req("AA-178")
    def test_tree_and_reasoning(self):
        """Reasoning is shown with its words, and what follows an entry stands below it."""
        made = vcon(
            {"type": "reasoning", "time": "2026-11-02T12:00:02Z", "session": 0, "party": 0, "content": "Look first.",
             "entry_id": "b", "parent_id": "a"},
            {"type": "tool-call", "time": "2026-11-02T12:00:03Z", "session": 0, "party": 0, "tool_name": "Read",
             "input": {"path": "x"}, "call_id": "c", "entry_id": "c", "parent_id": "a"},
            {"type": "tool-result", "time": "2026-11-02T12:00:05Z", "session": 0, "party": 0, "output": "words",
             "call_id": "c", "is_error": True},
            extensions=["ai_agent"],
            dialog=[{"type": "text", "start": "2026-11-02T12:00:01Z", "parties": 0, "body": "Hi", "entry_id": "a"}],
            sessions=[{"dialog": [0]}],
        )  # fmt: skip
        lines = shown(made).splitlines()
        words = (
            "Agent: text",
            "├ Agent: reasoning",
            "│   Look first.",
            "├ Agent: tool-call Read  failed  2.0 s",
            '{"path":"x"}',
            "→ words",
        )
        at = {word: next(number for number, line in enumerate(lines) if word in line) for word in words}
        assert list(at.values()) == sorted(at.values())

    def test_colours(self):
        """States have colours on a terminal that has them, and only there."""
        made = vcon(decision("disallowed"), invocation(1), answer("tool-result"))
        coloured = shown(made, color_system="standard")
        assert "\x1b[31mdisallowed (once)\x1b[0m" in coloured
        assert "\x1b[32mcompleted\x1b[0m" in coloured
        assert "\x1b" not in shown(made)

    @pytest.mark.parametrize(
        ("members", "words"),
        [
            ({"mediatype": "text/plain", "encoding": "base64url", "body": "SMOkbGxv"}, "Hällo"),
            ({"mediatype": "text/plain", "encoding": "base64url", "body": "_____w"}, "4 bytes of text/plain"),
            (
                {"mediatype": "audio/x-wav", "encoding": "base64url", "body": "AAAA" * 1_000},
                "3,000 bytes of audio/x-wav",
            ),
            ({"mimetype": "audio/x-wav", "encoding": "base64", "body": "AAAA"}, "3 bytes of audio/x-wav"),
            ({"body": "hello"}, "hello"),
            (
                {"encoding": "json", "body": [{"type": "text", "text": "one"}, {"type": "image"}]},
                "one [image]",
            ),
            (
                {"encoding": "json", "body": {"content": [{"type": "text", "text": "two"}], "isError": True}},
                "two",
            ),
            ({"encoding": "json", "body": [{"type": 1}]}, '[{"type":1}]'),
            ({"encoding": "none", "body": " \n" * 900 + "hidden"}, "hidden"),
            ({"encoding": "none", "body": "seen" + " " * 900 + "hidden"}, "seen…"),
            ({"encoding": "json", "body": [{"type": "text", "text": " " * 900 + "hidden"}]}, "hidden"),
            ({"encoding": "json", "body": [{"type": "text", "text": "y"}] * 21}, " ".join(["y"] * 20) + " …"),
            ({"mediatype": "text/plain", "encoding": "base64url", "body": "ICAg" * 700 + "eA"}, "…"),
            ({"encoding": "json", "body": ["shown", 10**30]}, '["shown","(a large number)"]'),
            ({"encoding": "json", "body": None}, "null"),
            ({"url": "https://example.com/a"}, "at https://example.com/a"),
            ({"content_hash": "sha512-x"}, "removed, its hash is kept"),
        ],
    )
    def test_content(self, members, words):
        """Content is shown as people read it: text decoded, blocks as their text, binary by its size; never fetched."""
        made = vcon(dialog=[{"type": "text", "start": "2026-11-02T12:00:01Z", "parties": 0, **members}])
        assert f"  {words}\n" in shown(made)

    def test_no_column_in_a_name(self):
        """A name cannot look like the columns beside it: two blanks in a row part columns, and are in no name."""
        name = "x  completed  allowed (once)"
        made = vcon(invocation(tool=name, server=name), {"type": "join", "time": name, "sessions": 0, "party": 0},
                    parties=[{"name": name}])  # fmt: skip
        out = shown(made).partition("Session 0")[2]
        assert "x ␣completed ␣allowed (once)" in out
        assert "x  completed" not in out

    def test_tool_without_a_name(self):
        """A decision for the tool "" is not told as one for every tool."""
        assert "clock › every tool" not in shown(vcon(standing("allowed", 0, tool="")))

    def test_plain(self):
        """A line as text is the line that a terminal of any width would get, without styles."""
        made = vcon(
            standing(), decision(reason="why"), invocation(2, **json_body({"a": 1})), answer("tool-failure")
        )
        rows = Rendering(tell(Vcon.read(text(made))), everything=True).rows()
        assert "".join(f"{row.plain()}\n" for row in rows) == shown(made, 1_000, everything=True)

    @pytest.mark.parametrize("hostile", HOSTILE)
    @pytest.mark.req("TI-211", "AA-153", "AA-154")
    def test_hostile_everywhere(self, hostile):
        """In every slot of a vCon hostile text comes out as harmless characters."""
        made = vcon(
            decision(reason=hostile, operation_id=hostile, server=hostile, tool=hostile),
            invocation(operation_id=hostile, server=hostile, tool=hostile, **json_body({hostile: hostile})),
            answer("tool-result", operation_id=hostile, body=hostile),
            {"type": "tool-call", "time": hostile, "session": 0, "party": 0, "tool_name": hostile, "input": hostile},
            uuid=hostile,
            created_at=hostile,
            extensions=["tool-invocation", hostile],
            recording_agent={"name": hostile, "version": hostile},
            parties=[{"name": hostile, "type": hostile}],
            sessions=[{"start": hostile, "agent_session_id": hostile, "sessions": [{"session": 0, "type": hostile}]}],
            dialog=[{"type": hostile, "start": hostile, "parties": 0, "body": hostile, "encoding": "none",
                     "token_usage": {"input": hostile}, "party_history": [{"event": hostile, "button": hostile}]}],
            subject=hostile,
            updated_at=hostile,
            redacted_from={"uuid": hostile, "type": hostile},
            attachments=[{"filename": hostile, "purpose": hostile, "mediatype": hostile, "party": 0}],
            analysis=[{"type": hostile, "vendor": hostile, "product": hostile}],
        )  # fmt: skip
        out = shown(made)
        assert not re.search("[\u115f\u2800\u3164\u034f\ufe0f]|\u0301{5}", out)
        assert not [char for char in out if not char.isprintable() and char != "\n"]
        if "[bold]" in hostile or ":smile:" in hostile:
            assert hostile.split()[0] in out

    @given(st.recursive(
        st.none() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
        max_leaves=10,
    ))  # fmt: skip
    def test_any_body(self, value):
        """Any content gives one printable line of bounded length."""
        line = excerpt(value)
        assert all(char.isprintable() for char in line)
        assert len(visible("x" * 1_000, limit=20)) == 20

    @given(st.binary(max_size=80))
    def test_any_bytes(self, data):
        """Whatever can be read can be told."""
        from onrecord.base.errors import OnrecordError

        try:
            made = Vcon.read(b'{"uuid":"x","events":[' + data + b"]}")
        except OnrecordError:
            return
        json.dumps(tell(made).to_json())
        render(made)

    @pytest.mark.parametrize(
        ("value", "words"),
        [
            ([1] * 21, "[" + "1," * 20 + '"… 1"]'),
            (dict.fromkeys("abcdefghijklmnopqrstuv", 1), '"t":1,"…":2}'),
            ([[[["deep"]]]], '[[[["… 1"]]]]'),
            ([[[{"deep": 1}]]], '[[[{"…":1}]]]'),
            ([[[[], {}]]], "[[[[],{}]]]"),
        ],
    )
    def test_what_is_left_out_is_told(self, value, words):
        """A value of which not all is looked at says so, and is never told as an empty one."""
        assert excerpt(value, limit=1_000).endswith(words)

    def test_blocks_without_words(self):
        """Blocks that have no words at their beginning are shown as they are, not as nothing."""
        blocks = [{"type": "text", "text": ""}] * 20 + [{"type": "text", "text": "x"}]
        assert value_excerpt(blocks).startswith('[{"type":"text","text":""},')

    def test_big_content_is_not_copied(self):
        """An excerpt of a large value looks at its beginning only."""
        assert len(excerpt({"a": "x" * 5_000_000, "b": [["y"] * 1_000] * 1_000})) < 200

"""The story: what it tells, and that nothing in a vCon reaches the terminal or is taken for markup."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from onrecord.record.plain_text import excerpt, visible
from onrecord.record.story import MAX_OPERATIONS, render, tell
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
    "\x9b31m",
]


def shown(document, width=140, **options):
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=True, color_system=None, highlight=False, **options
    )
    console.print(render(Vcon.read(text(document))))
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

    @pytest.mark.parametrize("width", [40, 80, 120])
    def test_fits(self, width):
        """Every event and every content is one line of the terminal, cut with an ellipsis and never wrapped."""
        made = vcon(
            decision("allowed"),
            invocation(**json_body({"path": "a/long/way/" * 20})),
            answer("tool-result", 9, body="word " * 50),
        )
        lines = shown(made, width=width).splitlines()
        assert all(len(line) <= width for line in lines)
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
        """A long record is cut and says by how much."""
        events = [invocation(operation_id=str(number)) for number in range(MAX_OPERATIONS + 7)]
        assert "and 7 more" in shown(vcon(*events))
        assert len(tell(Vcon.read(text(vcon(*events)))).to_json()["operations"]) == MAX_OPERATIONS + 7

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
            dialog=[{"type": hostile, "start": hostile, "parties": 0, "body": hostile, "encoding": "none"}],
        )  # fmt: skip
        out = shown(made)
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

    def test_big_content_is_not_copied(self):
        """An excerpt of a large value looks at its beginning only."""
        assert len(excerpt({"a": "x" * 5_000_000, "b": [["y"] * 1_000] * 1_000})) < 200

"""Transcripts of Cursor become the objects that the map says (native-logs.md 4.6)."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from onrecord.record.logs.cursor.transcript import CursorTranscript
from support.native_logs import Imported, import_files, import_lines, mutations, odd_shapes, to_bytes

FORMAT = "cursor-jsonl"


def said(role: str, *content: Any, **more: Any) -> dict[str, Any]:
    """Return a message."""
    return {"role": role, "message": {"content": list(content)}, **more}


def text(body: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": body}


USE = {"type": "tool_use", "name": "Shell", "input": {"command": "ls"}}
LOG = [
    said(
        "user",
        text(
            "<timestamp>Wednesday, Jul 1, 2026, 10:00 AM (UTC+2)</timestamp>\n<rules>\nbe kind\n</rules>\n"
            "<user_query>\nlist them\n</user_query>"
        ),
    ),
    said("assistant", {"type": "thinking", "thinking": "hm"}, text("Listing.\n\n[REDACTED]\n\nSoon."), USE),
    said("assistant", {**USE, "id": "t1"}, model="example-model"),
    said("user", {"type": "tool_result", "tool_use_id": "t1", "content": [text("a.txt")], "is_error": True}),
    said("assistant", text("One file."), id="m1"),
    {"type": "turn_ended", "status": "success"},
]
"""A transcript with everything in it once."""


def run(*lines: Any) -> Imported:
    imported = import_lines(list(lines), FORMAT, name="0f0e0d0c.jsonl")
    imported.assert_sound()
    return imported


def test_whole_transcript() -> None:
    """Query, rules, time tag, reasoning, calls, results and the end of a turn all find their place."""
    imported = run(*LOG)
    assert imported.bodies == ["list them", "Listing.\n\nSoon.", "One file."]
    assert imported.vcon["sessions"][0]["agent_session_id"] == "0f0e0d0c"
    first = imported.dialogs[0]
    assert first["start"] == "2026-07-01T08:00:00Z"
    assert first["onrecord"]["time"] == "tag"
    context = imported.events("injected-context")[0]
    assert context["data"] == {"tag": "rules", "text": "<rules>\nbe kind\n</rules>"}
    assert context["onrecord"]["rest"]["timestamp"] == "Wednesday, Jul 1, 2026, 10:00 AM (UTC+2)"
    assert [event["content"] for event in imported.events("reasoning")] == ["hm", ""]
    assert imported.events("reasoning")[1]["onrecord"]["flags"] == ["withheld"]
    assert [event["call_id"] for event in imported.events("tool-call")] == ["L2#2", "t1"]
    result = imported.events("tool-result")[0]
    assert (result["output"], result["status"], result["is_error"]) == ([text("a.txt")], "error", True)
    assert imported.events("turn-ended")[0]["data"]["status"] == "success"
    assert imported.dialogs[2]["entry_id"] == "m1"
    assert imported.vcon["parties"][1]["agent_meta"]["model_id"] == "example-model"


def test_no_result_is_inferred() -> None:
    """A call without data stays open although the turn ended well."""
    imported = run(said("assistant", USE), {"type": "turn_ended", "status": "success"})
    assert imported.counts()["tool_results"] == 0
    assert imported.codes["call-without-result"] == 1


@pytest.mark.parametrize(
    ("body", "bodies", "injected"),
    [
        ("plain", ["plain"], 0),
        ("before <user_query>in</user_query> after", ["before ", "in", " after"], 0),
        (
            "<user_query>tell me about <rules>these</rules></user_query>",
            ["tell me about <rules>these</rules>"],
            0,
        ),
        ("<rules>never closed", ["<rules>never closed"], 0),
        ("<unknown>stays</unknown>", ["<unknown>stays</unknown>"], 0),
        ("<git_status>M a</git_status><user_info>linux</user_info>", [], 2),
        ("<timestamp>Wednesday, Jul 1, 2026, 10:00 AM (UTC+2)</timestamp>", [], 1),
    ],
)
def test_users_text_is_cut_at_the_listed_tags(body: str, bodies: list[str], injected: int) -> None:
    """D-LOG-07: only the closed list of tags is cut out, all other text is a person's."""
    imported = run(said("user", text(body)))
    assert imported.bodies == bodies
    assert len(imported.events("injected-context")) == injected


def test_time_tag_that_nobody_can_read_is_kept() -> None:
    """A nonsense time is reported and stands in rest; the time is derived."""
    imported = run(said("user", text("<timestamp>soon</timestamp>\n<user_query>x</user_query>")))
    assert imported.codes["time-missing"] == 1
    assert imported.dialogs[0]["onrecord"]["rest"]["timestamp"] == "soon"


def test_withheld_text_alone_makes_no_dialog() -> None:
    """The marker gives reasoning without content, each one, and leaves the text."""
    imported = run(
        said("assistant", text("[REDACTED]\n\n[REDACTED]")), said("assistant", {"type": "redacted"})
    )
    assert imported.bodies == []
    assert imported.codes["text-withheld"] == 3
    assert [event["content"] for event in imported.events("reasoning")] == ["", "", ""]


def test_other_names_of_blocks() -> None:
    """Dashes and other words for calls and results are the same; the native word is kept."""
    imported = run(
        said("assistant", {"type": "tool_call", "name": "read", "input": {}, "metadata": {"k": 1}}),
        said("user", {"type": "tool-result", "name": "read", "content": "text"}),
        said("assistant", {"type": "tool_use", "input": {}}),
        said("assistant", {"type": "redacted_thinking", "data": "c2VhbGVk"}),
        said("assistant", {"type": "novel", "text": "x"}),
    )
    assert imported.events("tool-call")[0]["onrecord"]["rest"] == {"metadata": {"k": 1}, "type": "tool_call"}
    assert imported.events("tool-result")[0]["onrecord"]["rest"] == {"name": "read", "type": "tool-result"}
    assert len(imported.events("block/tool_use")) == 1
    assert imported.events("reasoning")[0]["encrypted"] == "c2VhbGVk"
    assert imported.events("block/novel")[0]["data"] == {"type": "novel", "text": "x"}
    assert imported.codes["unknown-block-type"] == 1


def test_other_roles_and_types_are_kept() -> None:
    """D-LOG-26: a role or type of a later version is an event with the whole record."""
    imported = run(
        said("system", text("x")),
        {"type": "error", "error": "timeout"},
        {"type": "novel", "x": 1},
        {"role": 3},
    )
    assert imported.events("role/system")[0]["data"]["message"] == {"content": [text("x")]}
    assert imported.events("error")[0]["data"]["error"] == "timeout"
    assert imported.events("novel")[0]["data"]["x"] == 1
    assert imported.codes["unknown-record-type"] == 3


def test_members_without_a_home_are_kept() -> None:
    """Members of record and message stand in rest, and the model of a message without text."""
    line = {
        "role": "assistant",
        "message": {"content": [USE], "model": "m", "extra": 1},
        "metadata": {"a": 2},
    }
    rest = run(line).events("tool-call")[0]["onrecord"]["rest"]
    assert rest == {"metadata": {"a": 2}, "message": {"extra": 1}, "model": "m"}


@pytest.mark.parametrize("content", [None, "", []])
def test_empty_content_is_a_frame(content: Any) -> None:
    """A message without blocks gives an event."""
    assert len(run({"role": "user", "message": {"content": content}}).events("message")) == 1


def test_sub_agent_is_a_child_of_the_call_with_its_prompt(tmp_path: Path) -> None:
    """D-LOG-11: the folder names the parent, an equal prompt the call."""
    parent = tmp_path / "p1" / "p1.jsonl"
    child = tmp_path / "p1" / "subagents" / "c1.jsonl"
    child.parent.mkdir(parents=True)
    task = {"type": "tool_use", "id": "t9", "name": "Task", "input": {"prompt": "count the files"}}
    parent.write_bytes(to_bytes([said("user", text("go")), said("assistant", task)]))
    child.write_bytes(
        to_bytes(
            [said("user", text("<user_query>\ncount the files\n</user_query>")), said("assistant", text("3"))]
        )
    )
    imported = import_files([parent, child], FORMAT)
    imported.assert_sound()
    assert imported.vcon["sessions"][0]["sessions"] == [{"session": 1, "type": "child"}]
    prompt = next(dialog for dialog in imported.dialogs if dialog["body"] == "count the files")
    assert prompt["parties"] == [1, 2]
    assert imported.sessions[1].parent_call == "t9"
    alone = import_files([child], FORMAT)
    assert alone.codes["child-unlinked"] == 1


def test_same_transcript_in_two_places_is_one(tmp_path: Path) -> None:
    """R-17: a copy adds nothing, a longer copy what is new."""
    first, longer = tmp_path / "a" / "s.jsonl", tmp_path / "b" / "s.jsonl"
    for path, lines in ((first, LOG), (longer, [*LOG, said("user", text("more"))])):
        path.parent.mkdir()
        path.write_bytes(to_bytes(lines))
    imported = import_files([first, longer], FORMAT)
    imported.assert_sound()
    assert imported.bodies == ["list them", "Listing.\n\nSoon.", "One file.", "more"]
    assert imported.accounting[1]["of_duplicates"] == {"duplicate-entry": len(LOG)}


def test_foreign_record_is_not_interpreted() -> None:
    """A record of another agent is reported and leaves no text."""
    imported = run(LOG[0], {"type": "gemini", "id": "a", "content": "stranger"})
    assert imported.codes["foreign-record"] == 1
    assert imported.bodies == ["list them"]


@pytest.mark.parametrize(
    ("record", "is_cursor"),
    [
        (said("user", text("x")), True),
        ({"type": "turn_ended"}, True),
        (said("user", text("x"), sessionId="s"), False),
        (said("user", text("x"), type="message"), False),
        (said("user", text("x"), timestamp="2026-07-01T10:00:00Z"), False),
        (said("tool", text("x")), False),
        ({"role": "user", "message": "x"}, False),
        ({"role": ["user"], "message": {"content": []}}, False),
        ({"type": "error", "error": "x"}, False),
    ],
)
def test_decisive_records(record: dict[str, Any], is_cursor: bool) -> None:
    """Messages without the marks of other formats decide, and ends of turns."""
    assert CursorTranscript.recognises(record) is is_cursor


def test_many_open_tags_take_linear_time() -> None:
    """A hostile text of tags that never close is one text."""
    body = "<rules>" * 200_000
    assert run(said("user", text(body))).bodies == [body]


@pytest.mark.parametrize("number", range(len(LOG)))
def test_odd_shape_of_every_member(number: int) -> None:
    """R-10: members of each record in wrong kinds are kept; nothing fails, the account adds up.

    Every second variant is enough here, to save time.
    """
    for variant, record in islice(odd_shapes(LOG[number]), number % 2, None, 2):
        imported = import_lines([*LOG[:number], record, *LOG[number + 1 :]], FORMAT)
        assert imported.accounting[0]["records"] == len(LOG), variant
    imported.assert_sound()


@settings(max_examples=50, deadline=None)
@given(mutations(LOG))
def test_broken_logs(data: bytes) -> None:
    """Whatever is broken in a transcript, the import ends, the account adds up and the vCon has no error."""
    import_lines(data, FORMAT).assert_sound()


def test_many_line_breaks_before_a_marker_take_linear_time() -> None:
    """Blank lines that do not touch the marker are text."""
    body = "\n" * 500_000 + "x"
    assert run(said("assistant", text(body + "[REDACTED]"))).bodies == [body]


def test_arguments_that_are_text() -> None:
    """D-LOG-18: a string of JSON becomes the input, another string stays and is reported."""
    uses = [{**USE, "id": "a", "input": '{"command": "ls"}'}, {**USE, "id": "b", "input": "{bad"}]
    imported = import_lines([said("assistant", *uses)], FORMAT)
    imported.assert_sound()
    assert [event["input"] for event in imported.events("tool-call")] == [{"command": "ls"}, "{bad"]
    assert imported.codes["arguments-unparsed"] == 1


def test_call_without_a_name_is_kept_as_it_is() -> None:
    """No id and no name are made up for a `tool_use` that has none."""
    imported = import_lines([said("assistant", {"type": "tool_use", "input": {"x": 1}})], FORMAT)
    imported.assert_sound()
    (kept,) = imported.events("block/tool_use")
    assert kept["data"] == {"type": "tool_use", "input": {"x": 1}}


def test_marker_in_a_text_is_not_looked_for_in_the_vcon() -> None:
    """The content check takes the marker of withheld text as the line break that it becomes (A-05)."""
    record = said("assistant", text("Part one [REDACTED] and part two"), USE)
    looked_for = CursorTranscript.without_hashed(record)
    assert looked_for["message"]["content"] == [text("Part one \n and part two"), USE]
    assert CursorTranscript.without_hashed(said("user", text("[REDACTED]"))) == said(
        "user", text("[REDACTED]")
    )


def test_time_tag_without_a_zone_is_reported() -> None:
    """R-14, B-14: a local time is read as UTC, and the finding says so."""
    zoned, naive = "Wednesday, Jul 1, 2026, 10:00 AM (UTC+2)", "Wednesday, Jul 1, 2026, 10:00 AM"
    lines = [
        said("user", text(f"<timestamp>{tag}</timestamp><user_query>x</user_query>"))
        for tag in (zoned, naive)
    ]
    imported = import_lines(lines, FORMAT)
    imported.assert_sound()
    assert imported.codes["time-naive"] == 1
    assert [dialog["start"][11:13] for dialog in imported.dialogs] == ["08", "10"]


def test_other_conversation_of_the_same_name_is_reported(tmp_path: Path) -> None:
    """Two files of one name are one session; when they tell different things, a finding says so."""
    paths = []
    for folder in ("a", "b"):
        path = tmp_path / folder / "same.jsonl"
        path.parent.mkdir()
        path.write_bytes(to_bytes([said("user", text(f"of {folder}")), said("assistant", text("yes"))]))
        paths.append(path)
    imported = import_files(paths, FORMAT)
    imported.assert_sound()
    assert imported.bodies == ["of a", "yes", "of b", "yes"]
    assert imported.codes["duplicate-entry-differs"] == 1

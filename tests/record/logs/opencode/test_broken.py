"""Broken logs of OpenCode lose what is broken and nothing else (native-logs.md section 8, in this format)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from support.native_logs import ODD_VALUES, Imported, mutations, odd_shapes
from support.opencode_logs import (
    SESSION,
    answers,
    assistant,
    conversation,
    event,
    events,
    export,
    import_text,
    part,
    session,
    times,
    tool,
    user,
)

BODIES = ["Why does the shop fail?", "It does not fail any more.", "Thank you."]


def _records() -> list[dict[str, Any]]:
    return [session(), *(value for info, parts in conversation() for value in (info, *parts))]


def _lines(values: list[dict[str, Any]] | None = None) -> list[bytes]:
    return [json.dumps(value, ensure_ascii=False).encode() for value in values or _records()]


def _import(data: bytes) -> Imported:
    imported = import_text(data)
    imported.assert_sound()
    return imported


def test_a_byte_order_mark_and_crlf_change_nothing() -> None:
    """A mark at the start is reported, CRLF is a line end."""
    imported = _import(b"\xef\xbb\xbf" + b"\r\n".join(_lines()) + b"\r\n")
    assert imported.bodies == BODIES
    assert imported.codes["bom"] == 1


def test_line_separators_inside_of_strings_are_text() -> None:
    """U+2028, U+2029 and NEL cut no record."""
    body = "one\u2028two\u2029three\u0085four"
    message = user(1)
    values = [message, part(message, 1, "text", text=body)]
    assert _import(b"\n".join(_lines(values))).bodies == [body]


@pytest.mark.parametrize(
    "junk", [b"{nonsense}", b'{"id": "prt_1", "type": ', b"\xff\xfe rubbish", b"[1, 2", b"true"]
)
def test_a_broken_line_costs_itself(junk: bytes) -> None:
    """What does not parse in the middle is kept as an unreadable record, in its place."""
    lines = _lines()
    imported = _import(b"\n".join([*lines[:4], junk, *lines[4:]]))
    assert imported.bodies == BODIES
    assert len(imported.events("unreadable-record")) == imported.accounting[0]["reported"] == 1


def test_a_cut_end_costs_the_last_record() -> None:
    """A file that ends inside a value keeps everything before it."""
    imported = _import(b"\n".join(_lines())[:-20])
    assert imported.bodies == BODIES
    assert imported.codes["truncated-tail"] == 1


def test_two_records_on_one_line_are_two_records() -> None:
    """R-06, in lines."""
    lines = _lines()
    imported = _import(b"\n".join([lines[0], lines[1] + lines[2], *lines[3:]]))
    assert imported.bodies == BODIES
    assert imported.codes["multiple-values-on-line"] == 1


def test_broken_encodings_are_mended() -> None:
    """R-04, D-LOG-25: bytes that are no UTF-8 and lone surrogates become U+FFFD."""
    message = user(1)
    lines = _lines([message, part(message, 1, "text", text="AXB"), part(message, 2, "text", text="CYD")])
    imported = _import(b"\n".join(lines).replace(b"X", b"\xff").replace(b"Y", b"\\ud83d"))
    assert imported.bodies == ["A\ufffdB", "C\ufffdD"]
    assert (imported.codes["invalid-utf8"], imported.codes["lone-surrogate"]) == (1, 1)


def test_numbers_that_no_reader_keeps_are_kept_as_text() -> None:
    """D-LOG-24: the pointer is that inside the record, also in an export of many records."""
    message = assistant(1, parentID=None)
    data = export([(message, [tool(message, 1, input={"wide": 5, "none": 6})])])
    data = data.replace(b'"wide": 5', b'"wide": 12345678901234567890').replace(b'"none": 6', b'"none": NaN')
    imported = _import(data)
    (call,) = imported.events("tool-call")
    assert call["input"] == {"wide": "12345678901234567890", "none": None}
    assert call["onrecord"]["rest"]["numbers"] == ["/state/input/wide", "/state/input/none"]


def test_deep_nesting_costs_its_record() -> None:
    """R-08: a record nested too deeply is unreadable, the file goes on."""
    lines = _lines()
    deep = b'{"id":"prt_9","messageID":"m","type":"text","text":' + b"[" * 3_000 + b"]" * 3_000 + b"}"
    imported = _import(b"\n".join([*lines[:3], deep, *lines[3:]]))
    assert imported.bodies == BODIES
    assert imported.codes["too-deep"] == 1


def test_values_in_the_place_of_objects_are_reported() -> None:
    """R-10: what is no object in a list of messages or of parts is reported and kept."""
    told: list[Any] = answers(conversation())
    told[0]["parts"][:0] = [None, 7, "text", ["x"]]
    told[1:1] = [None, "news", [], 3.5]
    imported = _import(json.dumps({"info": session(), "messages": told}).encode())
    assert imported.bodies == BODIES
    assert imported.codes["not-an-object"] == 8
    assert len(imported.events("unreadable-record")) == 8


def test_records_of_another_format_are_reported() -> None:
    """A line of another agent's log is not interpreted."""
    foreign = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "x"}}
    imported = _import(b"\n".join([*_lines(), json.dumps(foreign).encode()]))
    assert imported.bodies == BODIES
    assert imported.codes["foreign-record"] == 1


@pytest.mark.parametrize("time", [None, "", "soon", True, -5, 10**40, [], {}])
def test_times_that_are_none_are_derived(time: Any) -> None:
    """R-14: a time that cannot be read is reported, and derived from what is there."""
    message = user(1)
    value = part(message, 1, "text", text="Hello", time={"start": time})
    (dialog,) = _import(export([(message, [value])])).dialogs
    assert (dialog["start"], dialog["onrecord"]["time"]) == ("2026-07-01T10:00:01Z", "message")


def test_empty_texts_and_messages_are_kept() -> None:
    """A text of nothing makes no Dialog, a message without parts an event."""
    message, other = user(1), user(2)
    imported = _import(export([(message, [part(message, 1, "text", text=" \n")]), (other, [])]))
    assert not imported.dialogs
    assert len(imported.events("empty-text")) == 1
    assert imported.events("message")[0]["data"]["role"] == "user"


def test_credentials_are_told_and_stay() -> None:
    """D-LOG-13: a text with a credential is not changed."""
    message = user(1)
    secret = "password=" + "x7Gk2" * 5
    imported = _import(export([(message, [part(message, 1, "text", text=f"Use {secret}")])]))
    assert imported.bodies == [f"Use {secret}"]


def test_members_of_any_kind_are_kept() -> None:
    """Each member of each record, replaced by each odd value or left out: all is kept, nothing fails."""
    question, answer = (
        user(1, system="Be kind.", tools={"bash": True}),
        assistant(2, error={"name": "E"}, summary=True),
    )
    parts = [
        part(
            answer,
            1,
            "reasoning",
            text="t",
            metadata={"openai": {"reasoningEncryptedContent": "e"}},
            time=times(1, 2),
        ),
        tool(
            answer, 2, "task", raw="{", error="e", metadata={"sessionId": "ses_x", "exit": 0, "output": "o"}
        ),
        tool(
            answer,
            3,
            "edit",
            metadata={"filediff": {"file": "/home/alice/shop/a", "before": "", "after": "b"}},
        ),
        tool(
            answer,
            4,
            "patch",
            metadata={
                "files": [{"filePath": "a", "type": "move", "movePath": "b", "patch": "@@ -1 +1 @@\n-a\n+b"}]
            },
        ),
        tool(answer, 5, "multi", metadata={"results": [{"filediff": {"file": "a", "patch": "p"}}]}),
        tool(
            answer,
            6,
            "edit",
            input={"filePath": "a"},
            metadata={"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n"},
        ),
        tool(answer, 7, "read", attachments=[{"mime": "image/png", "url": "data:image/png;base64,AAAA"}]),
        part(question, 8, "file", mime="image/png", url="data:image/png;base64,AAAA"),
        part(answer, 9, "step-finish", tokens=answer["tokens"], cost=1.5),
        part(answer, 10, "patch", files=["/home/alice/shop/a"]),
        part(question, 11, "text", text="t", synthetic=True, time=times(1, 2)),
    ]
    share = {"url": "https://share.example.com/x", "secret": "s"}
    opening = session(
        share=share, revert={"messageID": "m", "partID": "p"}, parentID="ses_y", tokens={"input": 1}
    )
    values = [value for record in (opening, question, answer, *parts) for _, value in odd_shapes(record)]
    stream = [value for record in events(conversation())[:4] for _, value in odd_shapes(record)]
    deltas = event("message.part.delta", sessionID=SESSION, partID="p", field="text", delta="d")
    stream += [value for _, value in odd_shapes(deltas)]
    imported = _import(b"\n".join(json.dumps(value).encode() for value in (*values, *stream)))
    assert imported.accounting[0]["records"] == len(values) + len(stream)
    assert imported.codes["odd-shape"] > 100


@pytest.mark.parametrize("odd", ODD_VALUES)
def test_an_export_may_have_any_frame(odd: Any) -> None:
    """Frames of the wrong kind cost nothing of what is in them."""
    told = answers(conversation()[:1])
    text = "Why does the shop fail?"
    for value in (
        {"info": odd, "messages": told},
        {"info": session(), "messages": [*told, {"info": odd, "parts": odd}]},
        {"info": session(), "messages": told, "info2": odd, "share": odd},
        [*told, {"info": odd, "parts": [odd]}],
    ):
        assert text in _import(json.dumps(value).encode()).bodies


@settings(max_examples=40, deadline=None)
@given(mutations(_records()))
def test_no_mutation_breaks_the_import(data: bytes) -> None:
    """Whatever is done to a valid log, its account adds up and no vCon has an error."""
    _import(data)

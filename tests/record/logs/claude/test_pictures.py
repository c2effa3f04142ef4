"""Pictures that Claude Code writes twice: in the block of a message and in its notes beside it."""

from __future__ import annotations

import base64
import hashlib

import pytest

from onrecord.record.logs.runs import Options
from support.claude_logs import PICTURE, STREAM, assistant, call, record, result, streamed, user
from support.native_logs import import_lines

RAW = base64.b64decode(PICTURE)
TOLD = {"sha256": hashlib.sha256(RAW).hexdigest(), "bytes": len(RAW)}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
NOTES = {"type": "image", "file": {"base64": PICTURE, "type": "image/png", "originalSize": 70}}
LOG = [
    user(1, "look"),
    assistant(2, [call("c1", "Read", file_path="x.png")], 1),
    user(3, [result("c1", [BLOCK])], 2, toolUseResult=NOTES),
]
OTHER = base64.b64encode(b"%PDF-1.7 an invented document").decode()


def copies(found, data: str = PICTURE) -> int:
    """Return how often a picture stands in the vCon, in either alphabet."""
    start = data[:24]
    url_form = start.replace("+", "-").replace("/", "_")
    return sum(found.texts[0].count(form.encode()) for form in {start, url_form})


@pytest.mark.parametrize(("choice", "number"), [("default", 1), ("inline", 1), ("attach", 1), ("hash", 0)])
def test_the_copy_beside_a_result_is_told_by_its_hash(choice, number):
    """D-LOG-14: the bytes stand in the vCon once, or not at all with --media=hash."""
    found = import_lines(LOG, "claude-jsonl", options=Options(media=choice))
    found.assert_sound()
    (event,) = found.events("tool-result")
    notes = {**NOTES, "file": {**NOTES["file"], "base64": TOLD}}
    assert event["onrecord"]["rest"]["toolUseResult"] == notes
    assert copies(found) == number


@pytest.mark.parametrize(("choice", "number"), [("default", 1), ("attach", 1), ("hash", 0)])
def test_bytes_that_stand_in_the_notes_alone(choice, number):
    """D-LOG-14: a document that no block of the message has stays by default; it is moved or omitted when asked."""
    notes = {"type": "pdf", "file": {"filePath": "a.pdf", "base64": OTHER}}
    log = [*LOG[:2], user(3, [result("c1", "PDF read")], 2, toolUseResult=notes)]
    log.append(record(4, "attachment", 3, attachment={"type": "file", "content": NOTES}))
    found = import_lines(log, "claude-jsonl", options=Options(media=choice))
    found.assert_sound()
    assert (copies(found, OTHER), copies(found)) == (number, number)
    if choice == "hash":
        assert found.codes["media-omitted"] == 2


def test_what_is_no_picture_stays():
    """D-LOG-26: texts that are called data or base64 and are none are kept as they are."""
    notes = {"file": {"base64": "not base64 !", "data": "plain"}, "items": [{"data": 7}, None, "data:,x"]}
    log = [*LOG[:2], user(3, [result("c1", [BLOCK])], 2, toolUseResult=notes)]
    found = import_lines(log, "claude-jsonl", options=Options(media="hash"))
    (event,) = found.events("tool-result")
    assert event["onrecord"]["rest"]["toolUseResult"] == notes


def test_copies_in_the_stream_are_told_by_their_hash():
    """D-LOG-14: the SDK's stream repeats pictures in the same way."""
    last = streamed(
        9, "user", message={"role": "user", "content": [result("toolu_p", [BLOCK])]}, tool_use_result=NOTES
    )
    found = import_lines([*STREAM[:3], last], "claude-stream-json", options=Options(media="hash"))
    found.assert_sound()
    assert copies(found) == 0

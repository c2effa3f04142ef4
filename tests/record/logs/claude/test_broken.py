"""Claude logs that are broken in the ways of native-logs.md section 8."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings

from support.claude_logs import SESSION, SID, assistant, user
from support.native_logs import import_lines, mutations, to_bytes

FORMAT = "claude-jsonl"
TALK = [user(1, "hello"), assistant(2, "hi", 1), user(3, "more", 2), assistant(4, "done", 3, id="msg_2")]


def lines_of(values) -> list[bytes]:
    """Return the lines of a log without their ends."""
    return to_bytes(values).split(b"\n")[:-1]


ONE, TWO, THREE, FOUR = lines_of(TALK)


@pytest.mark.parametrize(
    ("data", "codes", "records"),
    [
        (b"\xef\xbb\xbf" + b"\r\n".join([ONE, TWO, THREE, FOUR]) + b"\r\n", {"bom": 1}, 4),
        (b"\n".join([ONE, TWO, b'{"type": "user", }', b"rubbish", THREE, FOUR]), {"malformed-line": 2}, 6),
        (b"\n".join([ONE + TWO, THREE + b" " + FOUR]), {"multiple-values-on-line": 2}, 4),
        (b"\n".join([ONE, TWO, b"\0" * 512, THREE, FOUR]), {"nul-bytes": 1}, 4),
        (b"\n\n".join([ONE, TWO, b" ", THREE, FOUR]), {}, 4),
        (b"\n".join([ONE, TWO, b"[" * 3000, THREE, FOUR]), {"too-deep": 1}, 5),
        (b"\n".join([ONE, TWO, b'"text"', b"[1]", THREE, FOUR]), {"not-an-object": 2}, 6),
        ("\n".join(line.decode() for line in (ONE, TWO, THREE, FOUR)).encode("utf-16"), {"utf-16": 1}, 4),
        (b"\n".join([ONE, TWO, THREE, FOUR, b'{"type": "us']), {"truncated-tail": 1}, 5),
    ],
    ids=["bom", "malformed", "glued", "nul", "blank", "deep", "scalars", "utf16", "tail"],
)
def test_one_bad_line_costs_no_other(data, codes, records):
    """R-01 to R-10: the four messages are there, the fault is reported, and every record has its fate."""
    found = import_lines(data, FORMAT)
    found.assert_sound()
    assert found.bodies == ["hello", "hi", "more", "done"]
    assert found.counts()["output"] == 10
    assert found.accounting[0]["records"] == records
    assert {code: found.codes[code] for code in codes} == codes


def test_bytes_that_are_no_utf8_are_replaced_in_place():
    """R-04: U+FFFD for the broken sequence, the record is there."""
    found = import_lines(b"\n".join([ONE.replace(b"hello", b"he\xffllo"), TWO]), FORMAT)
    found.assert_sound()
    assert found.bodies == ["he\ufffdllo", "hi"]
    assert found.codes["invalid-utf8"] == 1


def test_times_of_all_kinds():
    """R-14: offsets, naive times and numbers are read, and the native form is kept."""
    times = [
        "2026-07-01T10:00:00Z",
        "2026-07-01T12:00:01.5+02:00",
        1782900002000,
        "2026-07-01 10:00:03",
        None,
    ]
    found = import_lines(
        [{**user(number, f"t{number}"), "timestamp": time} for number, time in enumerate(times)], FORMAT
    )
    found.assert_sound()
    assert [dialog["start"] for dialog in found.dialogs] == [
        "2026-07-01T10:00:00Z",
        "2026-07-01T10:00:01.5Z",
        "2026-07-01T10:00:02Z",
        "2026-07-01T10:00:03Z",
        "2026-07-01T10:00:03Z",
    ]
    assert found.dialogs[1]["onrecord"]["rest"]["time"] == times[1]
    assert found.dialogs[4]["onrecord"]["time"] == "previous"
    assert (found.codes["time-naive"], found.codes["time-epoch"], found.codes["time-missing"]) == (1, 1, 1)


def test_a_circle_of_parents_is_cut():
    """R-19: no loop, all entries, and the native parent is kept."""
    circle = [{**TALK[0], "parentUuid": TALK[3]["uuid"]}, *TALK[1:]]
    found = import_lines(circle, FORMAT)
    found.assert_sound()
    assert found.codes["parent-cycle"] == 1
    assert found.bodies == ["hello", "hi", "more", "done"]


def test_an_empty_file_of_bookkeeping_is_a_session():
    """A file with only bookkeeping is a session without messages."""
    found = import_lines([{"type": "mode", "mode": "normal", "sessionId": SID}], FORMAT)
    found.assert_sound()
    assert found.counts()["sessions"] == 1
    assert not found.bodies


def test_an_empty_file_gives_nothing():
    """Nothing in it, nothing out of it."""
    assert import_lines(b"", FORMAT).vcons == []


def test_text_of_a_session_is_found_again():
    """A-05: every string of eight or more characters of a mapped record stands in the vCon."""
    found = import_lines(SESSION, FORMAT)
    text = b"".join(found.texts).decode()
    for line in SESSION:
        if line["type"] == "bridge-session":
            continue
        for string in strings(line):
            if len(string) >= 8 and "<system-reminder>" not in string:
                shown = json.dumps(string, ensure_ascii=False)[1:-1]
                assert shown in text or shown.rstrip("=").replace("+", "-").replace("/", "_") in text, string


def strings(value):
    """Yield the strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, member in value.items():
            if name not in ("timestamp", "type", "role"):
                yield from strings(member)
    elif isinstance(value, list):
        for member in value:
            yield from strings(member)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutations(SESSION))
def test_broken_logs_are_imported(data):
    """Whatever is wrong with a log: no exception, the account adds up, no error in the vCon."""
    import_lines(data, FORMAT).assert_sound()

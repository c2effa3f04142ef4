"""Broken Codex logs: whatever stands in them gives findings, never an exception or a vCon with an error."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from support.codex_logs import EXEC, OWN, WHOLE, meta, says, turn
from support.native_logs import import_lines, mutations, odd_shapes, to_bytes

HEAD = [meta(), turn()]


@pytest.mark.parametrize("number", range(len(WHOLE)))
def test_members_of_any_kind_are_kept_in_rollouts(number: int) -> None:
    """Each member of each record replaced by each other kind leaves a sound import with all records in it."""
    variants = [value for _, value in odd_shapes(WHOLE[number])]
    imported = import_lines([*HEAD, *variants, says("user", "still here")], "codex-jsonl")
    imported.assert_sound()
    assert imported.accounting[0]["records"] == len(variants) + 3
    assert "still here" in imported.bodies


@pytest.mark.parametrize("number", range(len(EXEC)))
def test_members_of_any_kind_are_kept_in_event_streams(number: int) -> None:
    """Each member of each event replaced by each other kind leaves a sound import with all records in it."""
    variants = [value for _, value in odd_shapes(EXEC[number])]
    last = {"type": "item.completed", "item": {"id": "z", "type": "agent_message", "text": "still here"}}
    imported = import_lines([EXEC[0], *variants, last], "codex-exec-json")
    imported.assert_sound()
    assert imported.accounting[0]["records"] == len(variants) + 2
    assert "still here" in imported.bodies


@given(mutations(WHOLE))
@settings(max_examples=50, deadline=None)
def test_mutated_rollouts_import(data: bytes) -> None:
    """A rollout with deleted, repeated, swapped and damaged records and bytes imports soundly."""
    import_lines(data, "codex-jsonl").assert_sound()


@given(mutations(EXEC))
@settings(max_examples=30, deadline=None)
def test_mutated_event_streams_import(data: bytes) -> None:
    """An event stream with deleted, repeated, swapped and damaged records and bytes imports soundly."""
    import_lines(data, "codex-exec-json").assert_sound()


def _bodies(data: bytes) -> tuple[list[str], dict[str, int]]:
    imported = import_lines(data, "codex-jsonl")
    imported.assert_sound()
    return imported.bodies, dict(imported.codes)


TALK = to_bytes([*HEAD, says("user", "hello"), says("assistant", "hi")])


def _deep() -> bytes:
    return (
        b'{"timestamp":"2026-07-01T10:00:09.000Z","type":"response_item","payload":'
        + b"[" * 3000
        + b"]" * 3000
    )


KINDS: dict[str, tuple[bytes, list[str], dict[str, int]]] = {
    "byte order mark and CRLF": (
        b"\xef\xbb\xbf" + TALK.replace(b"\n", b"\r\n"),
        ["hello", "hi"],
        {"bom": 1},
    ),
    "line separators inside a text": (
        TALK.replace(b"hello", "he\u2028l\u2029l\u0085o".encode()),
        ["he\u2028l\u2029l\u0085o", "hi"],
        {},
    ),
    "truncated tail": (TALK[:-30], ["hello"], {"truncated-tail": 1}),
    "malformed middle": (TALK.replace(b"\n", b"\n{no\n", 1), ["hello", "hi"], {"malformed-line": 1}),
    "two records on one line": (
        TALK.replace(b"}\n{", b"}{", 1),
        ["hello", "hi"],
        {"multiple-values-on-line": 1},
    ),
    "broken UTF-8": (TALK.replace(b"hello", b"he\xffo"), ["he\ufffdo", "hi"], {"invalid-utf8": 1}),
    "deep nesting": (TALK + _deep() + b"}\n", ["hello", "hi"], {"too-deep": 1}),
    "NUL bytes": (TALK + b"\0" * 64 + b"\n", ["hello", "hi"], {"nul-bytes": 1}),
    "not an object": (TALK + b"[1]\n", ["hello", "hi"], {"not-an-object": 1}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_broken_lines_cost_nothing_else(kind: str) -> None:
    """B-7, B-8, R-01 to R-09: a broken place in a rollout is reported and costs no other entry."""
    data, bodies, codes = KINDS[kind]
    found, reported = _bodies(data)
    assert found == bodies
    assert {code: reported.get(code) for code in codes} == codes


def test_a_long_line_is_one_record() -> None:
    """B-6: a line of 12 MB is read like any other."""
    text = "x" * 10_500_000
    assert import_lines([*HEAD, says("user", text)], "codex-jsonl").bodies == [text]


def test_unknown_types_are_kept_whole() -> None:
    """D-LOG-26: unknown envelopes, items, events and parts are system-events with one finding for each name."""
    news: list[dict[str, Any]] = [
        {"timestamp": "2026-07-01T10:00:02.000Z", "type": "brand_new", "payload": {"a": "content one"}},
        {"timestamp": "2026-07-01T10:00:02.000Z", "type": "event_msg", "payload": {"type": "odd_event"}},
        {"timestamp": "2026-07-01T10:00:02.000Z", "type": "event_msg", "payload": {"type": "odd_event"}},
        {"timestamp": "2026-07-01T10:00:02.000Z", "type": "response_item", "payload": {"type": "odd_item"}},
        says("user", "hello"),
    ]
    news[-1]["payload"]["content"].append({"type": "hologram", "data": "content two"})
    imported = import_lines([*HEAD, *news], "codex-jsonl")
    assert [event["data"] for event in imported.events("brand_new")] == [news[0]]
    assert len(imported.events("event_msg/odd_event")) == 2
    assert imported.events("response_item/odd_item")[0]["data"] == news[3]
    assert imported.events("block/hologram")[0]["data"] == {"type": "hologram", "data": "content two"}
    found = [(finding.code, finding.count) for finding in imported.findings if "unknown" in finding.code]
    assert sorted(found) == [
        ("unknown-block-type", 1),
        ("unknown-record-type", 1),
        ("unknown-record-type", 1),
        ("unknown-record-type", 2),
    ]


def test_records_of_other_formats_are_reported() -> None:
    """Section 3: a record of another format in a rollout is foreign and becomes no object."""
    foreign = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "other"}}
    imported = import_lines([*HEAD, says("user", "own"), foreign], "codex-jsonl")
    assert imported.codes["foreign-record"] == 1
    assert imported.bodies == ["own"]
    assert imported.accounting[0]["reported"] == 1


def test_a_log_without_session_meta_is_named_by_its_file() -> None:
    """The session id of a log without a session meta is the one in its file's name."""
    name = f"rollout-2026-07-17T09-00-00-{OWN}.jsonl"
    imported = import_lines([says("user", "hello")], "codex-jsonl", name=name)
    assert imported.vcon["sessions"][0]["agent_session_id"] == OWN


def test_times_that_are_none_are_derived() -> None:
    """D-LOG-04: records without a time get one from their neighbours, and say so."""
    values = [*HEAD, says("user", "hello"), says("assistant", "hi")]
    values[2]["timestamp"] = None
    values[3]["timestamp"] = 1782900009
    imported = import_lines(values, "codex-jsonl")
    assert [dialog["start"] for dialog in imported.dialogs] == [
        "2026-07-01T10:00:01Z",
        "2026-07-01T10:00:09Z",
    ]
    assert imported.dialogs[0]["onrecord"]["time"] == "previous"
    assert (imported.codes["time-missing"], imported.codes["time-epoch"]) == (1, 1)


def test_equal_ids_stay_cheap_and_unique() -> None:
    """Two thousand records of one id give two thousand entry ids."""
    imported = import_lines([*HEAD, *(says("user", "x", id="same") for _ in range(2000))], "codex-jsonl")
    assert len({dialog["entry_id"] for dialog in imported.dialogs}) == 2000
    assert json.dumps(imported.vcon).count('"same~2"') >= 1

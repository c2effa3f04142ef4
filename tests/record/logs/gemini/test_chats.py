"""Files of Gemini CLI are told apart, read whatever their form, and linked (native-logs.md 4.4)."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from onrecord.record.logs.gemini.chats import GeminiChats
from onrecord.record.logs.importing import import_paths
from support.gemini_logs import HEADER, LOG, SESSION, TOKENS, answer, at, call, user
from support.native_logs import import_files, import_lines, to_bytes

FORMAT = "gemini-json"
MESSAGES = [user("a", 1, "one"), answer("b", 2, "two"), user("a", 3, "one, later")]
WHOLE = {**HEADER, "messages": MESSAGES}


def write(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(to_bytes(list(values)))
    return path


@pytest.mark.parametrize(
    ("record", "is_gemini"),
    [
        (HEADER, True),
        ({"$set": {}}, True),
        ({"$rewindTo": "x"}, True),
        ({"type": "gemini"}, True),
        ({"type": "user", "id": "a", "content": "x"}, False),
        ({"type": "user", "sessionId": "s", "uuid": "u", "message": {}}, False),
        ({"role": "user", "message": {"content": []}}, False),
        ({}, False),
    ],
)
def test_decisive_records(record: dict[str, Any], is_gemini: bool) -> None:
    """Headers, operations and answers decide; the shape of other agents does not."""
    assert GeminiChats.recognises(record) is is_gemini


def test_decisive_documents() -> None:
    """A session object and a list of prompts decide, other lists do not."""
    assert GeminiChats.recognises_document(WHOLE)
    assert GeminiChats.recognises_document(
        [{"sessionId": "s", "messageId": 0, "type": "user", "message": "x"}]
    )
    assert GeminiChats.recognises_document(
        [None, *[{"sessionId": "s", "messageId": n, "type": "user", "message": "x"} for n in range(2)]]
    )
    assert not GeminiChats.recognises_document([{"role": "user"}])
    assert not GeminiChats.recognises_document([])
    assert GeminiChats.recognises_members(frozenset(WHOLE))


@pytest.mark.parametrize("indent", [None, 1])
def test_whole_object(indent: int | None) -> None:
    """One object, on one line or many, gives a record for its header and each message (A-01); the newest id wins."""
    imported = import_lines(json.dumps(WHOLE, indent=indent), FORMAT, name="session.json")
    imported.assert_sound()
    assert imported.accounting[0]["records"] == 4
    assert imported.bodies == ["one, later", "two"]
    assert imported.codes["duplicate-entry-differs"] == 1


def test_whole_objects_between_lines() -> None:
    """Records behind an object on a line are numbered behind its messages."""
    other = {**HEADER, "sessionId": "other"}
    imported = import_lines([WHOLE, other, user("c", 5, "three")], FORMAT)
    imported.assert_sound()
    assert imported.accounting[0]["records"] == 6
    assert [vcon["dialog"][-1]["onrecord"]["src"][1] for vcon in imported.vcons] == [3, 6]


def test_numbers_that_no_reader_keeps_are_named_at_their_message() -> None:
    """D-LOG-24: the pointer of a wide integer in an object is that of the message."""
    text = json.dumps({**HEADER, "messages": [user("a", 1, "one", n=2**60)]}, indent=1)
    imported = import_lines(text, FORMAT, name="session.json")
    assert imported.dialogs[0]["onrecord"]["rest"] == {"n": str(2**60), "numbers": ["/n"]}


def test_messages_of_wrong_kinds_are_kept() -> None:
    """Elements of messages that are no objects are records with events."""
    imported = import_lines(json.dumps({**HEADER, "messages": ["odd", 7, None, user("a", 1, "one")]}), FORMAT)
    imported.assert_sound()
    assert imported.codes["odd-shape"] == 3
    assert [event["data"] for event in imported.events("message")[:2]] == [{"value": "odd"}, {"value": 7}]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"), "bom"),
        (lambda data: data[:-20], "truncated-tail"),
        (lambda data: data + b"{'no': json}\n", "malformed-line"),
        (lambda data: data.replace(b"list the files", b"list the \xff\xfe files"), "invalid-utf8"),
        (lambda data: data.replace(b'}\n{"id": "m7"', b'}{"id": "m7"'), "multiple-values-on-line"),
        (lambda data: data + b"[" * 3000 + b"]" * 3000 + b"\n", "too-deep"),
        (lambda data: data + b"[1]\n", "not-an-object"),
        (lambda data: data + b"\0" * 100 + b"\n", "nul-bytes"),
        (lambda data: data.replace(b"list the files", "list\u2028the\u0085files".encode()), None),
        (gzip.compress, None),
        (lambda data: gzip.compress(data)[:-12], "truncated-archive"),
    ],
)
def test_broken_bytes(change: Any, code: str | None) -> None:
    """Each kind of damage of section 8 costs what it hits and nothing else (R-01 to R-11)."""
    imported = import_lines(change(to_bytes(LOG)), FORMAT)
    imported.assert_sound()
    assert code is None or imported.codes[code] >= 1
    assert "There are two files." in imported.bodies
    assert imported.counts()["tool_results"] == 1


def test_header_alone_is_an_empty_session() -> None:
    """Bookkeeping without a message is an empty session, not an unknown one."""
    imported = import_lines([HEADER, {"$set": {"lastUpdated": at(3)}}], FORMAT)
    imported.assert_sound()
    (session,) = imported.sessions
    assert (session.agent_session_id, session.counts["dialogs"]) == (SESSION, 0)
    assert imported.accounting[0]["of_duplicates"] == {"heartbeat": 1}


def test_log_without_header_is_named_after_its_file() -> None:
    """The beginning of a log may be lost."""
    imported = import_lines(LOG[1:], FORMAT, name="session-2026-07-01T10-00-abcdef12.jsonl")
    imported.assert_sound()
    assert imported.sessions[0].agent_session_id == "session-2026-07-01T10-00-abcdef12"
    assert len(imported.bodies) == 5


def test_same_session_in_two_files_is_one(tmp_path: Path) -> None:
    """R-16, R-17: an older copy of a chat adds nothing, a longer one what is new."""
    first = write(tmp_path / "a" / "session-1.jsonl", *LOG)
    longer = write(tmp_path / "b" / "session-1.jsonl", *LOG, user("m9", 20, "and one more"))
    imported = import_files([first, longer], FORMAT)
    imported.assert_sound()
    assert len(imported.sessions) == 1
    assert imported.bodies.count("list the files") == 1
    assert imported.bodies[-1] == "and one more"
    assert imported.counts()["responses"] == 2
    assert imported.counts()["tool_calls"] == 1
    assert imported.codes["duplicate-entry"] >= 5
    assert len(imported.events("session-start")) == len(imported.events("title")) == 1


def test_rewind_in_another_file_marks_what_the_first_has_told(tmp_path: Path) -> None:
    """D-LOG-09: a copy taken after a rewind says what was superseded."""
    lines = [HEADER, user("a", 1, "one"), user("b", 2, "two")]
    first = write(tmp_path / "a.jsonl", *lines)
    second = write(tmp_path / "b.jsonl", *lines, {"$rewindTo": "b"})
    imported = import_files([first, second], FORMAT)
    imported.assert_sound()
    assert [dialog["onrecord"].get("flags") for dialog in imported.dialogs] == [None, ["superseded"]]


@pytest.mark.parametrize("is_child_first", [True, False])
def test_sub_agent_is_a_child_of_the_call(tmp_path: Path, is_child_first: bool) -> None:
    """D-LOG-11: the folder names the parent, agentId the call; the opening prompt is the parent's."""
    started = call("c1", "report", 9, name="investigate", agentId="agent-1")
    parent = write(
        tmp_path / "chats" / "session-x.jsonl",
        HEADER,
        user("a", 1, "go"),
        answer("b", 2, "", toolCalls=[started]),
    )
    header = {**HEADER, "sessionId": "agent-1", "kind": "subagent"}
    child = write(
        tmp_path / "chats" / SESSION / "agent-1.jsonl",
        header,
        user("x", 3, "look into it"),
        answer("y", 4, "report"),
    )
    imported = import_files([child, parent] if is_child_first else [parent, child], FORMAT)
    imported.assert_sound()
    root, below = imported.vcon["sessions"]
    assert root["sessions"] == [{"session": 1, "type": "child"}]
    assert below["format"] == "autonomous"
    prompt = next(dialog for dialog in imported.dialogs if dialog["body"] == "look into it")
    assert prompt["parties"] == [1, 2]
    assert any(event.get("parent_id") == "b" for event in imported.events("session-start"))


def test_lonely_sub_agent_has_a_vcon_of_its_own(tmp_path: Path) -> None:
    """Without its parent a sub-agent is reported as unlinked."""
    header = {**HEADER, "sessionId": "agent-1", "kind": "subagent"}
    child = write(tmp_path / "chats" / SESSION / "agent-1.jsonl", header, user("x", 3, "look"))
    imported = import_files([child], FORMAT)
    imported.assert_sound()
    assert imported.codes["child-unlinked"] == 1


def test_prompts_are_twins_of_the_chat(tmp_path: Path) -> None:
    """The list of prompts adds only sessions that no chat tells of."""
    chat = write(tmp_path / "chats" / "session-x.jsonl", *LOG)
    prompts = [
        {
            "sessionId": SESSION,
            "messageId": 0,
            "type": "user",
            "message": "list the files",
            "timestamp": at(1),
        },
        {
            "sessionId": "gone",
            "messageId": 0,
            "type": "user",
            "message": "hello?",
            "timestamp": at(2),
            "more": 1,
        },
        "odd",
    ]
    logs = tmp_path / "logs.json"
    logs.write_text(json.dumps(prompts, indent=1))
    imported = import_files([chat, logs], FORMAT)
    imported.assert_sound()
    assert imported.accounting[1]["of_duplicates"] == {"twin": 1}
    assert imported.accounting[1]["records"] == 3
    assert imported.bodies.count("list the files") == 1
    hello = next(dialog for dialog in imported.dialogs if dialog["body"] == "hello?")
    assert hello["onrecord"]["rest"] == {"more": 1, "messageId": 0}


def test_prompts_are_told_by_their_chats_wherever_they_lie(tmp_path: Path) -> None:
    """In a walk the list of prompts is read behind the chats that it repeats, though its folder comes first."""
    store = tmp_path / ".gemini" / "tmp" / "work"
    write(store / "chats" / "session-x.jsonl", HEADER, user("a", 1, "one"))
    prompt = {"sessionId": SESSION, "messageId": 0, "type": "user", "message": "one", "timestamp": at(1)}
    (store / "logs.json").write_text(json.dumps([prompt]))
    (tmp_path / ".gemini" / "oauth_creds.json").write_text("{}")
    report = import_paths([tmp_path / ".gemini"], to=tmp_path / "vcons")
    assert len(report.files) == 2
    told = [session["counts"]["user_turns"] for part in report.files for session in part["sessions"]]
    assert told == [1]


def test_working_directory_is_that_of_the_table_of_projects(tmp_path: Path) -> None:
    """The hash of the project is looked up in projects.json of the same store, and nowhere else."""
    store = tmp_path / ".gemini"
    chat = store / "tmp" / "calc" / "chats" / "session-x.jsonl"
    digest = hashlib.sha256(b"/srv/calc").hexdigest()
    write(chat, {**HEADER, "projectHash": digest}, user("a", 1, "one"))
    table = store / "projects.json"
    table.write_text(json.dumps({"projects": {"/srv/other": "calc", "/srv/calc": "renamed"}}))
    imported = import_files([chat], FORMAT)
    assert imported.vcon["sessions"][0]["environment"]["working_dir"] == "/srv/calc"
    assert GeminiChats.is_side_file(table)
    for hostile in ("[", "[]", '{"projects": []}', '{"projects": {"/x": 3}}'):
        table.write_text(hostile)
        assert "environment" not in import_files([chat], FORMAT).vcon["sessions"][0]
    table.unlink()
    table.symlink_to(tmp_path / "elsewhere.json")
    (tmp_path / "elsewhere.json").write_text(json.dumps({"projects": {"/srv/calc": "calc"}}))
    assert "environment" not in import_files([chat], FORMAT).vcon["sessions"][0]


def test_a_thousand_checkpoints_are_linear_in_their_size() -> None:
    """Many copies keep one message each: the index does not grow with the square of the log."""
    lines: list[dict[str, Any]] = [HEADER, user("a", 1, "go")]
    for number in range(300):
        copy = user(f"n{number}", 2, [{"text": "go"}])
        lines += [copy, {"$set": {"messages": [copy]}}]
    imported = import_lines(lines, FORMAT)
    assert imported.bodies == ["go"]
    assert imported.codes["replayed-entry"] == 300


def test_newer_version_in_another_file_adds_what_is_new(tmp_path: Path) -> None:
    """R-16: a later copy of a message brings its call and its usage; what was told is not told again."""
    thoughts = [{"description": "think"}]
    older = answer("b", 2, "Looking.", thoughts=thoughts)
    newer = answer("b", 2, "Looking.", thoughts=thoughts, tokens=TOKENS, toolCalls=[call("c1", "out", 3)])
    first = write(tmp_path / "a.jsonl", HEADER, user("a", 1, "go"), older)
    second = write(tmp_path / "b.jsonl", HEADER, user("a", 1, "go"), newer)
    third = write(tmp_path / "c.jsonl", HEADER, user("a", 1, "go"), {**newer, "novelty": 1})
    imported = import_files([first, second, third], FORMAT)
    imported.assert_sound()
    assert imported.bodies == ["go", "Looking."]
    counts = imported.counts()
    assert (counts["reasoning"], counts["tool_calls"], counts["tool_results"], counts["responses"]) == (
        1,
        1,
        1,
        1,
    )
    assert imported.codes["duplicate-entry-differs"] == 2
    assert imported.accounting[2]["of_duplicates"] == {"duplicate-entry": 2, "older-version": 1}

"""Every layout in which OpenCode has written its sessions tells the same session."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from support.opencode_logs import (
    SESSION,
    START,
    answers,
    assistant,
    conversation,
    event,
    events,
    export,
    glued,
    import_messages,
    import_places,
    import_text,
    part,
    session,
    user,
    write_database,
    write_folder,
)

COUNTS = {
    "user_turns": 2,
    "agent_turns": 1,
    "tool_calls": 2,
    "tool_results": 2,
    "reasoning": 1,
    "responses": 2,
    "input": 1800,
    "cached": 600,
    "output": 160,
    "reasoning_tokens": 64,
    "total": 1960,
}


def _spoken(vcon: dict[str, Any]) -> list[Any]:
    """What is said and done, without what a layout adds of its own."""
    told = [(entry["entry_id"], entry["start"], entry["body"], entry["parties"]) for entry in vcon["dialog"]]
    told += [
        (entry["entry_id"], entry["time"], entry.get("input"), entry.get("output"), entry.get("content"))
        for entry in vcon["events"]
        if entry["type"] != "system-event"
    ]
    return told


@pytest.mark.parametrize("layout", ["folder", "export", "list", "glued", "sqlite", "events", "lines"])
def test_every_layout_tells_the_same_session(layout: str, tmp_path: Path) -> None:
    """B-13: folder, export, bare list, glued objects, SQLite and event stream give the same words, calls and tokens."""
    messages = conversation()
    texts = {
        "export": export(messages),
        "list": json.dumps(answers(messages)).encode(),
        "glued": glued(messages),
        "events": b"".join(json.dumps(value).encode() + b"\n" for value in events(messages)),
        "lines": b"".join(json.dumps(value).encode() + b"\n" for value in answers(messages)),
    }
    expected = _spoken(import_messages(messages).vcon)
    if layout in texts:
        imported = import_text(texts[layout])
        imported.assert_sound()
        counts = imported.counts()
        assert {name: counts[name] for name in COUNTS} == COUNTS
        vcons = imported.vcons
    else:
        place = (
            write_folder(tmp_path / "storage", messages) if layout == "folder" else tmp_path / "opencode.db"
        )
        if layout == "sqlite":
            write_database(place, messages)
        report, vcons = import_places(place)
        (source,) = report["files"]
        assert source["accounting"]["records"] == 1 + len(messages) + 8
        usage = source["sessions"][0]["usage"]
        assert usage == {
            "responses": 2,
            "input": 1800,
            "output": 160,
            "cached": 600,
            "reasoning": 64,
            "total": 1960,
        }
    (vcon,) = vcons
    assert vcon["sessions"][0]["agent_session_id"] == SESSION
    assert _spoken(vcon) == expected


def test_layouts_of_one_session_make_one_session(tmp_path: Path) -> None:
    """A folder store that a database has taken over adds nothing: every record is a duplicate entry (R-17)."""
    messages = conversation()
    write_database(tmp_path / "opencode.db", messages)
    write_folder(tmp_path / "storage", messages)
    report, vcons = import_places(tmp_path)
    (vcon,) = vcons
    assert [entry["body"] for entry in vcon["dialog"]] == [
        "Why does the shop fail?",
        "It does not fail any more.",
        "Thank you.",
    ]
    told, repeated = sorted(
        (part["accounting"] for part in report["files"]), key=lambda one: one["duplicates"]
    )
    assert told["duplicates"] == 0
    assert repeated["of_duplicates"] == {"duplicate-entry": 13}
    assert {"account", "token-of-alice", "alice@example.com"}.isdisjoint(json.dumps(vcon).split('"'))


def test_a_store_that_goes_on_adds_what_is_new(tmp_path: Path) -> None:
    """A second source with one more message adds this message only, and counts no usage again."""
    messages = conversation()
    write_database(tmp_path / "a.db", messages[:2])
    (tmp_path / "b.json").write_bytes(export(messages))
    report, (vcon,) = import_places(tmp_path / "a.db", tmp_path / "b.json")
    assert [entry["body"] for entry in vcon["dialog"]][1:] == ["It does not fail any more.", "Thank you."]
    told = [session for source in report["files"] for session in source["sessions"]]
    assert [session["usage"]["responses"] for session in told] == [2]


def test_the_newest_copy_is_told(tmp_path: Path) -> None:
    """R-16: of two copies of a message in two files, that of the file which was changed last is kept."""
    older, newer = conversation(), conversation()
    older[1][1][-1]["text"] = "It still fails"
    for name, messages, when in (("a.json", older, 1_000), ("b.json", newer, 2_000)):
        (tmp_path / name).write_bytes(export(messages))
        os.utime(tmp_path / name, (when, when))
    _, (vcon,) = import_places(tmp_path)
    spoken = [entry["body"] for entry in vcon["dialog"]]
    assert "It still fails" not in spoken
    assert len(spoken) == 3


def test_ids_stand_in_the_path_where_the_file_has_none(tmp_path: Path) -> None:
    """A part without messageID belongs to its folder, and a message without sessionID to its own."""
    first = user(1)
    value = part(first, 1, "text", text="Hello from Alice")
    del value["messageID"], value["sessionID"], first["sessionID"]
    _, (vcon,) = import_places(write_folder(tmp_path / "storage", [(first, [value])]))
    assert [entry["body"] for entry in vcon["dialog"]] == ["Hello from Alice"]
    assert vcon["sessions"][0]["agent_session_id"] == SESSION


def test_the_oldest_folders_are_read(tmp_path: Path) -> None:
    """Before version 0.2 all three folders lay in `session`."""
    root = write_folder(tmp_path / "old", conversation())
    inner = tmp_path / "storage" / "session"
    inner.mkdir(parents=True)
    (root / "session" / "project-of-alice").rename(inner / "info")
    (root / "message").rename(inner / "message")
    (root / "part").rename(inner / "part")
    _, (vcon,) = import_places(tmp_path / "storage")
    assert len(vcon["dialog"]) == 3


def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    """R-21: a link in the store that leads elsewhere is not followed."""
    root = write_folder(tmp_path / "storage", conversation()[:1])
    secret = user(9)
    outside = tmp_path / "outside.json"
    outside.write_text(json.dumps(secret))
    os.symlink(outside, root / "message" / SESSION / "msg_0009user.json")
    os.symlink(root, root / "part" / "loop")
    report, (vcon,) = import_places(root)
    assert report["files"][0]["accounting"]["records"] == 3
    assert "msg_0009user" not in json.dumps(vcon)


def test_todo_lists_and_differences_are_events_of_their_session(tmp_path: Path) -> None:
    """Files about a session are kept as system-events, and a share file is left out."""
    root = write_folder(tmp_path / "storage", conversation()[:1])
    for name, value in (
        ("todo", [{"content": "Call Bob", "status": "pending"}]),
        ("session_diff", [{"file": "a.py", "before": "", "after": "x"}]),
        ("share", {"id": "s", "secret": "secret-of-the-share", "url": "https://share.example.com/s"}),
    ):
        (root / name).mkdir()
        (root / name / f"{SESSION}.json").write_text(json.dumps(value))
    report, (vcon,) = import_places(root)
    kinds = {entry.get("event_type"): entry.get("data") for entry in vcon["events"]}
    assert kinds["todo"] == {"value": [{"content": "Call Bob", "status": "pending"}]}
    assert kinds["session_diff"]["value"][0]["file"] == "a.py"
    assert "secret-of-the-share" not in json.dumps(vcon)
    assert report["files"][0]["accounting"]["reported"] == 1


def test_files_beside_the_store_are_no_logs(tmp_path: Path) -> None:
    """Credentials, diagnostics and copies of files in the program's folder are not opened on a walk."""
    home = tmp_path / "share" / "opencode"
    write_folder(home / "storage", conversation())
    for name in ("auth.json", "log/today.json", "snapshot/5ca1/ab1e"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text('{"id": "ses_1", "projectID": "p", "directory": "/w", "time": {}}')
    report, vcons = import_places(home)
    assert [Path(source["file"]).name for source in report["files"]] == ["storage"]
    assert len(vcons) == 1


def test_account_tables_are_not_read(tmp_path: Path) -> None:
    """Of the account tables only the number of rows is told."""
    report, (vcon,) = import_places(write_database(tmp_path / "opencode.db", conversation()))
    found = [entry for entry in report["files"][0]["findings"] if entry["code"] == "share-secret-dropped"]
    assert [(entry["count"], entry["data"]["name"]) for entry in found] == [(1, "account")]
    assert "alice@example.com" not in json.dumps([report, vcon])


def test_rows_may_hold_anything(tmp_path: Path) -> None:
    """Cells of any type, tables with other columns and rows without JSON are kept or reported, never fatal."""
    path = tmp_path / "opencode.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE session (id, time_created, tokens_input, news);"
            "CREATE TABLE message (id, session_id, data);"
            "CREATE TABLE part (id, message_id, data, time_created);"
        )
        connection.execute("INSERT INTO session VALUES (?,?,?,?)", ("s1", "yesterday", 2**60, b"\xff\x00"))
        for cell in (None, 7, 1.5, b"\xff", "{", "[]", '{"role":"user"}', '{"role":5,"time":7,"id":"x"}'):
            connection.execute("INSERT INTO message VALUES (?,?,?)", (f"m{cell!r}", "s1", cell))
        for cell in (b'{"type":"text","text":"hello"}', '{"type":"text","text":"again"}', "nonsense"):
            connection.execute(
                "INSERT INTO part VALUES (?,?,?,?)", (None, 'm\'{"role":"user"}\'', cell, 2**62)
            )
    connection.close()
    report, (vcon,) = import_places(path)
    account = report["files"][0]["accounting"]
    assert account["records"] == 12
    assert account["reported"] == 7
    assert [entry["body"] for entry in vcon["dialog"]] == ["hello", "again"]


def test_version_two_tables_are_read(tmp_path: Path) -> None:
    """Layout 5: messages of the renamed tables become the same objects; other types stay events."""
    path = tmp_path / "opencode.db"
    rows = [
        ("msg_1", "user", {"text": "Hello", "time": {"created": START}}),
        (
            "msg_2",
            "assistant",
            {
                "content": [
                    {"type": "reasoning", "text": "Alice greets."},
                    {
                        "type": "tool",
                        "id": "call_1",
                        "name": "read",
                        "state": {"status": "completed", "input": {}, "output": "x"},
                    },
                    {"type": "text", "text": "Hello Alice"},
                ],
                "tokens": {"input": 5, "output": 2},
                "modelID": "example-large",
            },
        ),
        ("msg_3", "model-switched", {"model": "example-small"}),
    ]
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE session_v2 (id, directory, title, news);"
            "CREATE TABLE session_message (id, session_id, type, seq, time_created, data);"
            "INSERT INTO session_v2 VALUES ('ses_1', '/w', 'T', 'later');"
        )
        for number, (name, kind, data) in enumerate(rows):
            row = (name, "ses_1", kind, number, START + number, json.dumps(data))
            connection.execute("INSERT INTO session_message VALUES (?,?,?,?,?,?)", row)
    connection.close()
    report, (vcon,) = import_places(path)
    assert [entry["body"] for entry in vcon["dialog"]] == ["Hello", "Hello Alice"]
    assert {"tool-call", "tool-result", "reasoning"} <= {entry["type"] for entry in vcon["events"]}
    assert "model-switched" in {entry.get("event_type") for entry in vcon["events"]}
    codes = {entry["code"] for entry in report["files"][0]["findings"]}
    assert "unknown-member" in codes


def test_the_newest_state_of_the_stream_counts() -> None:
    """Older states and additions that a later state holds are older versions; what came after it is kept as partial."""
    first, answer = user(1), assistant(2)
    told = part(answer, 1, "text", text="")
    lines = [
        event("server.connected"),
        event("session.updated", info=session()),
        event("message.updated", info=first),
        event("message.part.updated", part=part(first, 1, "text", text="Go on")),
        event("message.updated", info=answer),
        event("message.part.updated", part=told),
        event("message.part.delta", sessionID=SESSION, partID=told["id"], field="text", delta="On "),
        event("message.part.updated", part={**told, "text": "On "}),
        event("message.part.delta", sessionID=SESSION, partID=told["id"], field="text", delta="my "),
        event("message.part.delta", sessionID=SESSION, partID=told["id"], field="text", delta="way"),
        event("server.heartbeat"),
        event("server.heartbeat"),
        event("session.error", sessionID=SESSION, error={"name": "ProviderError"}),
        event("brand.new", sessionID=SESSION),
    ]
    imported = import_text(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    imported.assert_sound()
    assert imported.bodies == ["Go on", "On my way"]
    assert imported.dialogs[1]["onrecord"]["flags"] == ["partial"]
    assert imported.accounting[0]["of_duplicates"] == {"older-version": 2, "heartbeat": 1}
    assert imported.codes["partial-entry"] == 1
    assert imported.codes["unknown-record-type"] == 1
    assert len(imported.events("error")) == 1


def test_what_the_server_removed_is_superseded() -> None:
    """A message that was removed stays, flagged."""
    messages = conversation()
    lines = [*events(messages), event("message.removed", sessionID=SESSION, messageID=messages[1][0]["id"])]
    imported = import_text(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    imported.assert_sound()
    flagged = [
        entry["body"] for entry in imported.dialogs if "superseded" in entry["onrecord"].get("flags", ())
    ]
    assert flagged == ["It does not fail any more."]
    assert imported.codes["superseded"] == 5


@pytest.mark.parametrize("kind", ["export", "list"])
def test_an_export_that_breaks_off_keeps_its_whole_messages(kind: str) -> None:
    """A pipe that closes in the middle of an export costs the message it closed in, not the session (B-8)."""
    messages = conversation()
    data = export(messages) if kind == "export" else json.dumps(answers(messages)).encode()
    cut = data[: data.index(b"Thank you") + 4]
    imported = import_text(cut)
    imported.assert_sound()
    assert imported.bodies == ["Why does the shop fail?", "It does not fail any more."]
    assert imported.codes["truncated-tail"] == 1
    assert imported.accounting[0]["reported"] == 1
    assert len(imported.events("unreadable-record")) == 1


def test_what_events_say_beside_their_subject_is_kept() -> None:
    """The id and the folder of an event, and each piece of a text that was not told whole, stay (D-LOG-01, A-05)."""
    message = assistant(1, parentID=None)
    told = part(message, 1, "text", text="It begins")
    pieces = [
        {"type": "message.updated", "properties": {"info": message}},
        {"type": "message.part.updated", "properties": {"part": told}},
        {
            "type": "message.part.delta",
            "properties": {"partID": told["id"], "field": "text", "delta": " and goes on"},
        },
    ]
    lines = [
        {"directory": "/home/alice/p", "payload": {"id": f"evt_{place}", **piece}}
        for place, piece in enumerate(pieces)
    ]
    imported = import_text(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    imported.assert_sound()
    (dialog,) = imported.dialogs
    assert dialog["body"] == "It begins and goes on"
    rest = dialog["onrecord"]["rest"]
    assert rest["event"] == {"directory": "/home/alice/p", "id": "evt_1"}
    assert rest["message"]["event"] == {"directory": "/home/alice/p", "id": "evt_0"}
    added = {"directory": "/home/alice/p", "id": "evt_2", "delta": " and goes on"}
    assert rest["deltas"] == {"text": "It begins", "added": [added]}


def test_files_of_a_store_that_lost_their_bytes(tmp_path: Path) -> None:
    """NUL bytes and byte order marks in a store's files are taken out and told; a file of NULs is no record (R-03)."""
    root = write_folder(tmp_path / "storage", conversation())
    (message,) = list((root / "part").iterdir())[:1]
    (message / "prt_zz0.json").write_bytes(bytes(50))
    (message / "prt_zz1.json").write_bytes(
        b'\xef\xbb\xbf{"id":"prt_zz1","type":"text","te\0xt":"still here"}'
    )
    report, vcons = import_places(root)
    (file,) = report["files"]
    assert file["accounting"]["reported"] == 0
    codes = sorted(found["code"] for found in file["findings"] if found["code"] in ("bom", "nul-bytes"))
    assert codes == ["bom", "nul-bytes", "nul-bytes"]
    assert "still here" in json.dumps(vcons)

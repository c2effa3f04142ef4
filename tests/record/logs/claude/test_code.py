"""Claude Code's session files: records, sessions, repetitions, and the bug reports of native-logs.md section 12."""

from __future__ import annotations

import hashlib
import json

import pytest

from onrecord.record.logs.claude.code import MAX_HELD, ClaudeCode
from onrecord.record.logs.runs import Options
from support.claude_logs import (
    CWD,
    PICTURE,
    SESSION,
    SID,
    assistant,
    call,
    record,
    result,
    text,
    user,
    uuid,
)
from support.native_logs import Imported, import_files, import_lines, odd_shapes, to_bytes


def imported(*lines, name: str = f"{SID}.jsonl", options: Options | None = None) -> Imported:
    """Import a log and check that it is sound."""
    found = import_lines(list(lines), "claude-jsonl", name=name, options=options)
    found.assert_sound()
    return found


def test_the_whole_session():
    """A session with every kind of record gives its Dialogs, calls, child session and title."""
    found = imported(*SESSION)
    assert found.bodies[:4] == ["write the module", "I write it.", "look at it", "looked"]
    assert found.vcon["subject"] == "The module"
    assert [session["agent_session_id"] for session in found.vcon["sessions"]] == [
        SID,
        f"{SID}/agent-abc123",
        f"{SID}/agent-def456",
    ]
    assert found.vcon["sessions"][0]["environment"] == {
        "working_dir": CWD,
        "vcs": {"type": "git", "branch": "main"},
    }
    assert found.vcon["file_attribution"]["files"][0]["path"] == "a.py"
    agent = found.vcon["parties"][1]["agent_meta"]
    assert (agent["model_id"], agent["cli_version"]) == ("claude-opus-4-6", "2.1.220")
    assert not found.unreadable


def test_unknown_types_are_kept():
    """B-1, D-LOG-26: new types of records, subtypes, attachments and blocks are system-events with all they hold."""
    news = {"type": "brand-new", "sessionId": SID, "payload": {"x": [1, "a string of some length"]}}
    found = imported(
        user(1, "hi"),
        news,
        record(2, "system", 1, subtype="from_the_future", content="?"),
        record(3, "attachment", 2, attachment={"type": "novelty", "text": "kept"}),
        assistant(4, [{"type": "hologram", "data": 1}], 3),
        user(5, "bye", 4, brandNewMember={"a": 1}),
    )
    assert found.bodies == ["hi", "bye"]
    assert found.codes["unknown-record-type"] == 3
    assert found.codes["unknown-block-type"] == found.codes["unknown-member"] == 1
    assert found.events("brand-new")[0]["data"] == news
    assert found.events("system/from_the_future")
    assert found.events("attachment/novelty")
    assert found.events("block/hologram")[0]["data"] == {"type": "hologram", "data": 1}
    assert found.dialogs[-1]["onrecord"]["rest"]["brandNewMember"] == {"a": 1}


def test_bookkeeping_first_does_not_hide_the_format():
    """B-2: a file that begins with bookkeeping is recognised by a later record, and keeps it."""
    lines = [
        {"type": "summary", "summary": "S", "leafUuid": uuid(1)},
        {"type": "file-history-snapshot", "messageId": uuid(1), "snapshot": {}},
        user(1, "hi"),
    ]
    assert all(ClaudeCode.recognises(line) for line in lines)
    found = imported(*lines)
    assert [event["event_type"] for event in found.events("system-event")] == [
        "session-start",
        "title",
        "snapshot",
    ]
    assert found.vcon["sessions"][0]["agent_session_id"] == SID
    assert found.vcon["subject"] == "S"


def test_a_summary_of_another_session_is_no_title():
    """A summary line whose leaf is not in the session is kept, and does not name the session."""
    found = imported({"type": "summary", "summary": "Other", "leafUuid": uuid(77)}, user(1, "hi"))
    assert "subject" not in found.vcon
    assert found.events("title")[0]["data"]["summary"] == "Other"


def test_a_line_of_ten_megabytes_is_read():
    """B-6: a long line is a record like any other."""
    body = "x" * 4_000_000 + "\u00e4" * 3_000_000
    assert imported(user(1, body), assistant(2, "ok", 1)).bodies == [body, "ok"]


def test_line_separators_of_unicode_do_not_cut_records():
    """B-7: only a line feed ends a line."""
    body = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
    data = json.dumps(user(1, body), ensure_ascii=False).encode().replace(b"\\u", b"\\u") + b"\n"
    assert imported(user(1, body)).bodies == [body]
    assert import_lines(data, "claude-jsonl").bodies == [body]


def test_a_broken_last_line_costs_only_itself():
    """B-8: what a crash left of the last line is one unreadable record."""
    data = to_bytes([user(1, "hi"), assistant(2, "ho", 1)]) + to_bytes([user(3, "lost", 2)])[:-40]
    found = import_lines(data, "claude-jsonl")
    found.assert_sound()
    assert found.bodies == ["hi", "ho"]
    assert found.codes["truncated-tail"] == len(found.events("unreadable-record")) == 1


def test_messages_repeated_by_compaction_are_told_once():
    """B-9: what compaction writes again under a new id is a duplicate, and its children hang below the first."""
    found = imported(
        user(1, "hello"),
        assistant(2, "hi", 1),
        record(3, "system", subtype="compact_boundary", content="Conversation compacted"),
        user(4, "This session is being continued", 3, isCompactSummary=True),
        {**user(5, "hello", 4), "timestamp": user(1, "")["timestamp"]},
        assistant(6, "again", 5, id="msg_2"),
        user(7, "hello", 6),
    )
    assert found.bodies == ["hello", "hi", "again", "hello"]
    assert found.codes["replayed-entry"] == 1
    assert found.dialogs[2]["parent_id"] == uuid(1)
    assert found.events("compaction")
    assert found.events("compaction-summary")


def test_snapshot_ids_are_no_entry_ids():
    """B-10: a snapshot that names a user record neither hides it nor becomes its parent."""
    found = imported(
        {"type": "file-history-snapshot", "messageId": uuid(1), "snapshot": {}, "sessionId": SID},
        user(1, "hi"),
        assistant(2, "ho", 1),
    )
    assert found.bodies == ["hi", "ho"]
    assert found.dialogs[1]["parent_id"] == uuid(1)


def test_missing_parents_hide_nothing():
    """B-10: an entry with an unknown parent is there, and says which parent it names."""
    found = imported(user(1, "hi", 70), assistant(2, "ho", 1))
    assert found.bodies == ["hi", "ho"]
    assert found.dialogs[0]["onrecord"]["parent"] == uuid(70)
    assert found.codes["dangling-parent"] == 1


def test_a_session_in_two_folders_counts_once(tmp_path):
    """B-16, R-17: a second file with the same entries adds what is new, and nothing else."""
    places = [tmp_path / "a" / f"{SID}.jsonl", tmp_path / "b" / f"{SID}.jsonl"]
    for place in places:
        place.parent.mkdir()
    places[0].write_bytes(to_bytes(SESSION))
    places[1].write_bytes(to_bytes([*SESSION, user(30, "one more", 11)]))
    once, both = import_files(places[:1], "claude-jsonl"), import_files(places, "claude-jsonl")
    both.assert_sound()
    assert both.bodies == [*once.bodies, "one more"]
    assert both.accounting[1]["duplicates"] == len(SESSION)
    assert both.counts()["output"] == once.counts()["output"]
    assert both.accounting[1]["of_mapped"]["conversation"] == 1


def test_an_id_that_occurs_with_other_content():
    """R-16: of two records of one id the oldest holds; one that cannot be read is not the oldest."""
    found = imported(
        user(1, "first"),
        user(1, "second"),
        {**user(2, "", 1), "message": "error"},
        user(2, "readable", 1),
        user(1, "first"),
    )
    assert found.bodies == ["first", "readable"]
    assert (found.codes["duplicate-entry"], found.codes["duplicate-entry-differs"]) == (1, 1)


def test_sessions_that_go_on_from_others():
    """D-LOG-10: the second session of a file says from where it was resumed, a third one where it forked."""
    one, two = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
    found = imported(
        user(1, "a"),
        assistant(2, "b", 1),
        {**user(3, "c", 2), "sessionId": one},
        {**user(4, "d", 1), "sessionId": two},
    )
    starts = {vcon["sessions"][0]["agent_session_id"]: vcon["events"][0]["data"] for vcon in found.vcons}
    assert starts[one]["resumed_from"] == {"agent_session_id": SID, "entry_id": uuid(2)}
    assert starts[two]["forked_from"] == {"agent_session_id": SID, "entry_id": uuid(1)}
    assert found.codes["resumed-session"] == 2
    assert not found.codes["dangling-parent"]
    assert found.vcons[1]["dialog"][0]["onrecord"]["parent"] == uuid(2)


def test_files_without_session_ids_are_told_apart(tmp_path):
    """Two logs of one name without session ids are two sessions; the same log twice is one."""
    lines = [
        {key: value for key, value in user(1, body).items() if key != "sessionId"} for body in ("a", "b")
    ]
    places = []
    for number, line in enumerate([*lines, lines[0]]):
        place = tmp_path / str(number) / "input.jsonl"
        place.parent.mkdir()
        place.write_bytes(to_bytes([{**line, "uuid": f"u{line['message']['content']}"}]))
        places.append(place)
    found = import_files(places, "claude-jsonl")
    assert sorted(found.bodies) == ["a", "b"]
    assert found.codes["duplicate-entry"] == 1


def test_records_without_session_id_do_not_wait_for_ever():
    """More bookkeeping than is held back goes to a session named after the file, in order."""
    lines = [{"type": "summary", "summary": f"s{n}", "leafUuid": uuid(n)} for n in range(MAX_HELD + 5)]
    found = imported(*lines, user(1, "hi"))
    assert len(found.events("title")) == MAX_HELD + 5
    assert found.counts()["sessions"] == 1


def test_changes_of_settings_are_events():
    """D-LOG-20: a later folder, branch, permission mode is an event; a later version stays in rest."""
    changed = {
        **user(2, "b", 1),
        "cwd": "/tmp/other",
        "gitBranch": "side",
        "permissionMode": "plan",
        "version": "2.2.0",
    }
    found = imported({**user(1, "a"), "permissionMode": "default", "entrypoint": "cli"}, changed)
    moves = [event["data"] for event in found.events("working-dir-change")]
    assert {"from": CWD, "to": "/tmp/other"} in moves
    assert {"branch": {"from": "main", "to": "side"}} in moves
    assert found.events("permission-change")[0]["data"] == {"from": "default", "to": "plan"}
    assert found.dialogs[1]["onrecord"]["rest"]["version"] == "2.2.0"
    assert found.dialogs[1]["entry_id"] == uuid(2)
    assert found.vcon["sessions"][0]["format"] == "interactive"
    assert found.vcon["parties"][1]["agent_meta"]["cli_version"] == "2.2.0"


def test_queued_prompts_are_told_once():
    """A prompt that several records tell is one Dialog with the flag queued, or the user's own."""
    queued = {"type": "queued_command", "commandMode": "prompt"}
    found = imported(
        user(1, "start"),
        record(2, "attachment", 1, attachment={**queued, "prompt": "first"}),
        user(3, "first", 2),
        assistant(4, "ok", 3),
        {"type": "queue-operation", "operation": "remove", "content": "second", "sessionId": SID},
        assistant(5, "ok then", 4, id="msg_2"),
        record(6, "attachment", 5, attachment={**queued, "prompt": "third", "source_uuid": uuid(1)}),
        user(7, "first", 5),
        {"type": "queue-operation", "operation": "remove", "content": "fourth", "sessionId": SID},
        record(8, "attachment", 7, attachment={**queued, "prompt": "fourth"}),
    )
    told = [(dialog["body"], dialog["onrecord"].get("flags")) for dialog in found.dialogs]
    assert told == [
        ("start", None),
        ("first", ["queued"]),
        ("ok", None),
        ("second", ["queued"]),
        ("ok then", None),
        ("first", None),
        ("fourth", ["queued"]),
    ]
    assert found.accounting[0]["of_duplicates"] == {"repeated-input": 2}
    assert found.dialogs[2]["parent_id"] == uuid(2)


def test_queued_prompts_of_equal_text_are_repeated_one_by_one():
    """Each user record repeats one queued prompt; what has no such partner, or a picture more, is a message."""
    queued = {"type": "queued_command", "commandMode": "prompt"}
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="},
    }
    found = imported(
        user(1, "start"),
        record(2, "attachment", 1, attachment={**queued, "prompt": "go"}),
        record(3, "attachment", 2, attachment={**queued, "prompt": "go"}),
        user(4, "go", 3),
        user(5, "go", 4),
        user(6, "go", 5),
        record(7, "attachment", 6, attachment={**queued, "prompt": "look", "source_uuid": uuid(8)}),
        user(8, "look", 7),
        user(9, "look", 8),
        record(10, "attachment", 9, attachment={**queued, "prompt": "see"}),
        user(11, [text("see"), picture], 10),
    )
    assert found.bodies == ["start", "go", "go", "go", "look", "look", "see", "see"]
    assert found.accounting[0]["of_duplicates"] == {"repeated-input": 3}
    assert len(found.vcon["attachments"]) == 1


def test_messages_of_the_program_itself_are_no_dialogs():
    """Synthetic messages and errors are events without usage, and nothing of them is lost."""
    found = imported(
        user(1, "hi"),
        assistant(2, "API Error: 500", 1, isApiErrorMessage=True, error="server_error", usage=None),
        assistant(3, "No response requested.", 2, model="<synthetic>", id="msg_2"),
    )
    assert found.bodies == ["hi"]
    assert found.events("error")[0]["data"] == {"text": "API Error: 500"}
    assert found.events("meta")[0]["onrecord"]["rest"]["message"]["usage"]["input_tokens"] == 3
    assert found.counts()["responses"] == 0


def test_results_tell_status_and_origin():
    """D-LOG-16, D-LOG-17: status by what the log says, origin by the tool's name and the kind of block."""
    calls = [
        call("c1", "Bash", command="ls"),
        call("c2", "mcp__docs__find", query="q"),
        {"type": "server_tool_use", "id": "c3", "name": "web_search", "input": {}},
        call("c4", "AskUserQuestion"),
        call("c5", "Bash"),
    ]
    found = imported(
        user(1, "go"),
        assistant(2, calls, 1),
        assistant(3, [{"type": "web_search_tool_result", "tool_use_id": "c3", "content": []}], 2),
        user(4, [result("c1", "x")], 3, toolUseResult={"stdout": "x", "interrupted": True}),
        user(5, [result("c2", [text("y")], is_error=False)], 4),
        user(6, [result("c4", "z")], 5, toolUseResult={"questions": [], "answers": {"a": "b"}}),
        user(7, [result("c5", "no")], 6, toolDenialKind="user"),
    )
    results = {event["call_id"]: event for event in found.events("tool-result")}
    assert (results["c1"]["status"], results["c1"]["is_error"]) == ("error", True)
    assert results["c2"]["status"] == "success"
    assert "is_error" not in results["c2"]
    assert results["c2"]["onrecord"]["origin"] == {"kind": "mcp", "server": "docs", "tool": "find"}
    assert results["c3"]["onrecord"]["origin"] == {"kind": "provider"}
    assert "status" not in results["c4"]
    assert results["c4"]["onrecord"]["flags"] == ["human-input"]
    assert results["c5"]["status"] == "error"
    assert results["c1"]["onrecord"]["rest"]["toolUseResult"] == {"stdout": "x", "interrupted": True}


def test_pictures_of_users_are_attachments():
    """D-LOG-14: a picture in a user message is an attachment of its first Dialog; what is broken stays a block."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
    broken = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no base64 !"}}
    found = imported(user(1, [text("look"), picture, broken]))
    (attachment,) = found.vcon["attachments"]
    assert (attachment["mediatype"], attachment["dialog"]) == ("image/png", 0)
    assert found.events("block/image")[0]["data"] == broken


def test_owner_ids_are_hashed():
    """D-LOG-13: the account of a bridge session is told by its SHA-256."""
    found = imported(*SESSION)
    owner = "99999999-2222-4333-8444-555555555555"
    assert owner.encode() not in b"".join(found.texts)
    digest = hashlib.sha256(owner.encode()).hexdigest()
    assert found.events("bridge-session")[0]["data"]["ownerAccountUuid"] == digest


def test_teammates_speak_with_their_own_party():
    """D-LOG-12: a teammate's message is a Dialog of that agent's party."""
    found = imported(user(1, '<teammate-message teammate_id="alice" color="blue">done</teammate-message>'))
    (dialog,) = found.dialogs
    assert dialog["body"] == "done"
    assert found.vcon["parties"][dialog["parties"][0]] == {"type": "bot", "name": "alice"}


def test_web_exports_are_read():
    """One object with `loglines` is a header and the records in it, on one line or many."""
    lines = [{key: value for key, value in line.items() if key != "sessionId"} for line in (user(1, "hi"),)]
    for data in (json.dumps({"loglines": lines}), json.dumps({"loglines": [*lines, 7]}, indent=2)):
        found = import_lines(data, "claude-jsonl", name="export.json")
        found.assert_sound()
        assert found.bodies == ["hi"]
        assert found.accounting[0]["records"] >= 2


def test_what_is_no_record_of_an_export_is_kept():
    """D-LOG-26: values and exports in `loglines` are system-events, with all that they hold."""
    nested = {"loglines": [user(2, "inner text")]}
    found = import_lines(json.dumps({"loglines": [user(1, "hi"), "a text", nested]}), "claude-jsonl")
    found.assert_sound()
    assert [event["data"] for event in found.events("unknown")] == [{"value": "a text"}, nested]
    assert found.codes["not-an-object"] == 1


def test_a_role_that_contradicts_the_type_is_kept():
    """D-LOG-01: only the role that the record's type says already is left out."""
    found = imported(user(1, "hi"), record(2, "user", 1, message={"role": "assistant", "content": "ho"}))
    assert "message" not in found.dialogs[0]["onrecord"].get("rest", {})
    assert found.dialogs[1]["onrecord"]["rest"]["message"] == {"role": "assistant"}


def test_records_of_other_formats_are_reported():
    """Section 3: a record that is decisive for another format is reported, not interpreted."""
    foreign = {"timestamp": "2026-07-01T10:00:00Z", "type": "session_meta", "payload": {"id": "x"}}
    found = imported(user(1, "hi"), foreign)
    assert found.codes["foreign-record"] == found.accounting[0]["reported"] == 1


def test_credentials_are_kept_or_replaced():
    """D-LOG-13: a secret is reported and kept; with --redact it is nowhere in the vCon."""
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    log = [user(1, f"use {secret}"), assistant(2, [call("c", "Bash", command=f"echo {secret}")], 1)]
    assert imported(*log).codes["credential-found"] == 2
    hidden = imported(*log, options=Options(redact=True))
    assert secret.encode() not in b"".join(hidden.texts)


@pytest.mark.parametrize("number", range(len(SESSION)), ids=lambda n: SESSION[n]["type"])
def test_odd_shapes_are_kept(number):
    """Each member of each record with each other kind: no exception, all records accounted, no error."""
    changed = []
    for place, (_, value) in enumerate(odd_shapes(SESSION[number])):
        if value.get("uuid") == SESSION[number].get("uuid") and "uuid" in value:
            value["uuid"] = f"odd-{place}"
        changed.append(value)
    found = imported(*SESSION, *changed)
    assert found.accounting[0]["records"] == len(SESSION) + len(changed)
    assert found.bodies[:2] == ["write the module", "I write it."]

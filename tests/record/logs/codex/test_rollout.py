"""Rollouts become sessions: frames, messages, reasoning, calls and news, each in its place."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from onrecord.record.logs.runs import Options
from support.codex_logs import (
    OWN,
    WHOLE,
    calls,
    counted,
    event,
    gives,
    item,
    line,
    meta,
    says,
    tokens,
    turn,
)
from support.native_logs import Imported, import_lines

PICTURE = "iVBORw0KGgo"


def _import(*values: dict[str, Any], options: Options | None = None) -> Imported:
    imported = import_lines([meta(), turn(), *values], "codex-jsonl", options=options)
    imported.assert_sound()
    return imported


def test_the_session_meta_is_the_session() -> None:
    """The first session meta gives id, environment, agent and format, and its prompt is a system-prompt."""
    git = {"commit_hash": "4f2a9c1d", "branch": "main", "repository_url": "https://me:pw@example.com/r.git"}
    first = meta(
        source="exec",
        git=git,
        runtime_workspace_roots=["/home/dev/example"],
        base_instructions={"text": "Be a good agent."},
        account_id="acc-1234",
    )
    imported = import_lines([first, turn(), says("assistant", "hi")], "codex-jsonl")
    session = imported.vcon["sessions"][0]
    assert (session["agent_session_id"], session["format"]) == (OWN, "autonomous")
    vcs = {"type": "git", "revision": "4f2a9c1d", "branch": "main", "repository": "https://example.com/r.git"}
    assert session["environment"] == {
        "working_dir": "/home/dev/example",
        "vcs": vcs,
        "sandboxes": ["/home/dev/example"],
    }
    assert imported.vcon["parties"][1]["agent_meta"] == {
        "model_id": "gpt-5.2-codex",
        "model_provider": "openai",
        "models": ["gpt-5.2-codex"],
        "cli_name": "codex-cli",
        "cli_version": "0.142.0",
    }
    assert imported.events("system-prompt")[0]["data"]["text"] == "Be a good agent."
    started = imported.events("session-start")[0]["data"]
    assert started["account_id"] == f"sha256:{hashlib.sha256(b'acc-1234').hexdigest()}"


def test_a_later_session_meta_of_the_same_id_is_a_resume() -> None:
    """A session that goes on has a second session-start, and a finding that says so."""
    imported = _import(says("user", "one"), meta(second=5), says("user", "two"))
    assert imported.codes["resumed-session"] == 1
    assert imported.bodies == ["one", "two"]
    assert len(imported.vcon["sessions"]) == 1


def test_a_meta_of_another_id_is_marked_as_replayed() -> None:
    """Identity is never the copied id; without a fork's marks nothing is cut, and that is reported."""
    imported = _import(says("user", "one"), meta("someone-else", second=5), says("user", "two"))
    assert imported.vcon["sessions"][0]["agent_session_id"] == OWN
    assert [start["onrecord"].get("flags") for start in imported.events("session-start")] == [
        None,
        None,
        ["replayed"],
    ]
    assert imported.codes["fork-replay-suspected"] == 1
    assert imported.codes["resumed-session"] == 0


def test_settings_of_turns_tell_what_changed() -> None:
    """The first turn context starts the session; later ones are model, permission, folder or settings changes."""
    imported = _import(
        turn(2),
        turn(3, model="gpt-5.3"),
        turn(4, model="gpt-5.3", approval_policy="on-request"),
        turn(5, model="gpt-5.3", approval_policy="on-request", cwd="/home/dev/other"),
        says("assistant", "hi", second=6),
    )
    kinds = [event["event_type"] for event in imported.events("system-event")]
    assert kinds == [
        "session-start",
        "session-start",
        "settings-change",
        "model-change",
        "permission-change",
        "settings-change",
        "working-dir-change",
    ]
    assert imported.events("model-change")[0]["data"]["from"] == "gpt-5.2-codex"
    assert imported.events("permission-change")[0]["data"]["changed"] == ["approval_policy"]
    assert imported.dialogs[0]["model_id"] == "gpt-5.3"


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("<environment_context>\n<cwd>/x</cwd></environment_context>", "injected-context"),
        ("<user_instructions>be kind</user_instructions>", "injected-context"),
        ("# AGENTS.md instructions for /x", "injected-context"),
        ("<permissions instructions>ask</permissions instructions>", "injected-context"),
        ("<skills_instructions>none</skills_instructions>", "injected-context"),
        ("<turn_aborted>stop</turn_aborted>", "injected-context"),
        ("<subagent_notification>{}</subagent_notification>", "injected-context"),
        ("<collaboration_mode>plan</collaboration_mode>", "injected-context"),
        ("<user_shell_command><command>ls</command></user_shell_command>", "local-command"),
    ],
)
def test_what_the_program_put_into_a_message_is_no_turn(text: str, event_type: str) -> None:
    """D-LOG-07: texts of the closed list are events with the exact text."""
    imported = _import(says("user", text, "the human"))
    assert imported.bodies == ["the human"]
    assert imported.events(event_type)[0]["data"] == {"text": text}


def test_kinds_of_parts_tell_injected_texts() -> None:
    """A part whose kind is not the user's is injected; the context of an editor is part of the human's message."""
    told = {
        "internal_chat_message_metadata_passthrough": {"content_item_kinds": ["hooks.context", "user.text"]}
    }
    imported = _import(
        says("user", "from a hook", "from me", **told), says("user", "# Context from my IDE setup:\n\nfix it")
    )
    assert imported.bodies == ["from me", "# Context from my IDE setup:\n\nfix it"]


def test_developer_messages_are_prompts() -> None:
    """Messages of the developer or system role are system-prompts, never user turns."""
    imported = _import(says("developer", "one"), says("system", "two"), says("user", "hello"))
    assert [prompt["data"]["role"] for prompt in imported.events("system-prompt")] == ["developer", "system"]
    assert imported.counts()["user_turns"] == 1


def test_pictures_of_the_user_are_attachments() -> None:
    """D-LOG-14: a data: URL becomes an attachment, one without content stays an event."""
    parts = [
        {"type": "input_text", "text": "look"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}=", "detail": "auto"},
        {"type": "input_image", "image_url": None},
    ]
    imported = _import(item({"type": "message", "role": "user", "content": parts}))
    attachment = imported.vcon["attachments"][0]
    assert (attachment["mediatype"], attachment["body"], attachment["dialog"]) == ("image/png", PICTURE, 0)
    assert attachment["onrecord"]["rest"]["part"] == {"type": "input_image", "detail": "auto"}
    assert imported.events("block/input_image")[0]["data"] == parts[2]


@pytest.mark.parametrize(
    ("media", "stays"), [("default", True), ("inline", True), ("hash", False), ("attach", False)]
)
def test_pictures_in_outputs_stay_in_place(media: Any, stays: bool) -> None:
    """D-LOG-14: a picture in an output stays unless told otherwise, and is described either way."""
    part = {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}="}
    output = [{"type": "input_text", "text": "x"}, part]
    values = [says("user", "hi"), calls("c1"), gives("c1", output)]
    result = _import(*values, options=Options(media=media)).events("tool-result")[0]
    assert (result["output"] == output) is stays
    assert result["onrecord"]["media"] == [
        {
            "pointer": "/output/1",
            "mediatype": "image/png",
            "bytes": 8,
            "sha256": hashlib.sha256(bytes.fromhex("89504e470d0a1a0a")).hexdigest(),
        }
    ]


def test_reasoning_joins_its_texts() -> None:
    """Summaries and contents are joined by blank lines; the first heading is the subject; nothing readable is ""."""
    imported = _import(
        item(
            {
                "type": "reasoning",
                "summary": [
                    {"type": "summary_text", "text": "**Plan**\n\none"},
                    {"type": "summary_text", "text": "two"},
                ],
                "content": [{"type": "reasoning_text", "text": "three"}],
            }
        ),
        item({"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}),
    )
    first, second = imported.events("reasoning")
    assert (first["content"], first["subject"]) == ("**Plan**\n\none\n\ntwo\n\nthree", "Plan")
    assert (second["content"], second["encrypted"]) == ("", "gAAAA")


@pytest.mark.parametrize(
    ("payload", "name", "input", "origin"),
    [
        ({"type": "function_call", "name": "a", "arguments": '{"b":1}'}, "a", {"b": 1}, {"kind": "host"}),
        ({"type": "function_call", "name": "a", "arguments": {"b": 1}}, "a", {"b": 1}, {"kind": "host"}),
        ({"type": "function_call", "name": "a"}, "a", "", {"kind": "host"}),
        (
            {"type": "function_call", "name": "read", "namespace": "mcp__files__", "arguments": "{}"},
            "read",
            {},
            {"kind": "mcp", "server": "files", "tool": "read"},
        ),
        (
            {"type": "function_call", "name": "mcp__files__read", "arguments": "{}"},
            "mcp__files__read",
            {},
            {"kind": "mcp", "server": "files", "tool": "read"},
        ),
        (
            {"type": "custom_tool_call", "name": "exec", "input": "text(1)"},
            "exec",
            "text(1)",
            {"kind": "host"},
        ),
        (
            {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"]}},
            "local_shell",
            {"type": "exec", "command": ["ls"]},
            {"kind": "host"},
        ),
        (
            {"type": "tool_search_call", "arguments": {"query": "q"}},
            "tool_search",
            {"query": "q"},
            {"kind": "host"},
        ),
        (
            {"type": "web_search_call", "action": {"query": "q"}},
            "web_search",
            {"query": "q"},
            {"kind": "provider"},
        ),
    ],
)
def test_calls_keep_name_input_and_origin(
    payload: dict[str, Any], name: str, input: Any, origin: dict[str, str]
) -> None:
    """Section 13: each call has the name as logged, the parsed input, and where it went."""
    call = _import(item({"call_id": "c1", **payload})).events("tool-call")[0]
    assert (call["tool_name"], call["input"], call["call_id"]) == (name, input, "c1")
    assert call["onrecord"]["origin"] == origin


def test_arguments_that_need_their_text_keep_it() -> None:
    """D-LOG-18: the raw arguments stay when they do not parse or have a duplicate member."""
    imported = _import(
        item({"type": "function_call", "name": "a", "arguments": '{"a":', "call_id": "c1"}),
        item({"type": "function_call", "name": "a", "arguments": '{"a":1,"a":2}', "call_id": "c2"}),
    )
    first, second = imported.events("tool-call")
    assert first["onrecord"]["rest"]["arguments"] == '{"a":'
    assert (second["input"], second["onrecord"]["rest"]["arguments"]) == ({"a": 2}, '{"a":1,"a":2}')
    assert imported.codes["arguments-unparsed"] == 1


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("a.txt", None),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nx", "success"),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 7\nOutput:\nx", "error"),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nx", "error"),
        ("Wall time: 0.1 seconds\nOutput:\nExit code: 1", None),
        ("the script said\nExit code: 1", None),
        (json.dumps({"output": "x", "metadata": {"exit_code": 0}}), "success"),
        (json.dumps({"output": "x", "metadata": {"exit_code": 2}}), "error"),
        ('{"metadata":{"exit_code":2}', None),
        ([{"type": "input_text", "text": "Exit code: 3\nOutput:\n"}], "error"),
        ({"content": "x", "success": False}, "error"),
    ],
)
def test_exit_codes_are_read_from_outputs(output: Any, status: str | None) -> None:
    """D-LOG-17: a status is only what the log says; what a command printed itself says nothing."""
    result = _import(calls("c1"), gives("c1", output)).events("tool-result")[0]
    assert result.get("status") == status
    assert result.get("is_error") is (True if status == "error" else None)
    assert result["output"] == output


def test_messages_between_agents_have_their_sender() -> None:
    """D-LOG-12: a message of another agent is said by a party of its own; protected parts are reasoning."""
    content = [
        {"type": "input_text", "text": "found it"},
        {"type": "encrypted_content", "encrypted_content": "gAAAA"},
    ]
    other = {"type": "agent_message", "author": "/root/helper", "recipient": "/root", "content": content}
    own = {"type": "agent_message", "author": "/root", "recipient": "/root/helper", "content": content[:1]}
    imported = _import(item(other), item(own), line("inter_agent_communication", {"content": "plain"}))
    names = [party.get("name") for party in imported.vcon["parties"]]
    assert [names[dialog["parties"][0]] for dialog in imported.dialogs] == [
        "/root/helper",
        "codex-cli",
        "agent",
    ]
    assert imported.events("reasoning")[0]["encrypted"] == "gAAAA"


def test_compactions_are_data() -> None:
    """D-LOG-08, B-15: a replacement history makes no turns, and one above 1 MiB is told by its hash."""
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x" * 2_000_000}]}
    ]
    imported = _import(
        says("user", "hello"),
        line("compacted", {"message": "so far", "replacement_history": history[:0]}),
        line("compacted", {"message": "", "replacement_history": history}),
    )
    assert imported.bodies == ["hello"]
    assert imported.events("compaction-summary")[0]["data"] == {"text": "so far"}
    raw = json.dumps(history, separators=(",", ":")).encode()
    assert imported.events("compaction")[1]["data"]["replacement_history"] == {
        "sha256": hashlib.sha256(raw).hexdigest(),
        "bytes": len(raw),
    }
    assert imported.codes["media-omitted"] == 1


def test_a_rollback_flags_what_it_discards() -> None:
    """D-LOG-09: entries from the n-th last turn on are superseded, stay in the vCon, and their usage counts."""
    imported = _import(
        says("user", "one"),
        says("assistant", "first"),
        says("user", "two", "and more"),
        says("assistant", "second"),
        counted(tokens(100, 10)),
        event("thread_rolled_back", num_turns=1),
        says("user", "three"),
        event("thread_rolled_back", num_turns=2),
        says("user", "four"),
    )
    flags = {dialog["body"]: dialog["onrecord"].get("flags") for dialog in imported.dialogs}
    gone = ["superseded"]
    assert flags == {
        "one": gone,
        "first": gone,
        "two": gone,
        "and more": gone,
        "second": gone,
        "three": gone,
        "four": None,
    }
    assert imported.codes["superseded"] == 2
    assert imported.counts()["total"] == 110


def test_a_rollback_of_more_turns_than_there_are_is_reported() -> None:
    """A rollback behind the first turn flags from there on and says that the target is missing."""
    imported = _import(says("user", "one"), event("thread_rolled_back", num_turns=3))
    assert (imported.codes["rewind-target-missing"], imported.codes["superseded"]) == (1, 1)
    imported = _import(event("thread_rolled_back", num_turns=3))
    assert (imported.codes["rewind-target-missing"], imported.codes["superseded"]) == (1, 0)


def test_many_rollbacks_are_cheap() -> None:
    """Each rollback looks only at what was not flagged before."""
    talk = [says("user", str(number)) for number in range(1500)]
    imported = _import(*talk, *(event("thread_rolled_back", num_turns=1) for _ in range(1500)))
    assert all(dialog["onrecord"]["flags"] == ["superseded"] for dialog in imported.dialogs)


def test_news_have_words() -> None:
    """Titles, errors, interruptions and limits are named by the words of section 1.4."""
    imported = _import(
        says("assistant", "all done"),
        event("thread_name_updated", thread_name="A good name"),
        event("turn_aborted", reason="interrupted"),
        event("error", message="no"),
        event("stream_error", message="no"),
        event("context_compacted"),
        event("token_count", info=None, rate_limits={"primary": {"used_percent": 1.0}}),
        event("task_complete", last_agent_message="all done"),
        event("task_complete", last_agent_message="never said"),
        item({"type": "ghost_snapshot", "ghost_commit": {"id": "4f2a9c1d"}}),
        item({"type": "additional_tools", "tools": [{"name": "read"}]}),
    )
    assert imported.vcon["subject"] == "A good name"
    kinds = [event["event_type"] for event in imported.events("system-event")][2:]
    assert kinds == [
        "title",
        "interrupted",
        "error",
        "error",
        "compaction",
        "rate-limits",
        "task_complete",
        "task_complete",
        "snapshot",
        "tool-definitions",
    ]
    first, second = imported.events("task_complete")
    assert "last_agent_message" not in first["data"]
    assert second["data"]["last_agent_message"] == "never said"


def test_logs_without_envelopes_are_read() -> None:
    """Generation (a): the first line has the only time, items stand bare, states are kept."""
    imported = import_lines(
        [
            {
                "id": OWN,
                "timestamp": "2025-06-01T10:00:00.000Z",
                "instructions": None,
                "git": {"branch": "main"},
            },
            {"record_type": "state", "note": "kept as it is"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]},
            {"type": "function_call", "name": "shell", "arguments": "{}", "call_id": "c1"},
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
        ],
        "codex-jsonl",
    )
    imported.assert_sound()
    assert imported.vcon["sessions"][0]["agent_session_id"] == OWN
    assert imported.events("state")[0]["data"]["note"] == "kept as it is"
    assert imported.dialogs[0]["start"] == "2025-06-01T10:00:00Z"
    assert imported.codes["time-missing"] == 0


def test_members_without_a_home_stay_in_rest() -> None:
    """D-LOG-01: members of the payload and of the envelope without a place are kept, or left out visibly."""
    value = {**says("assistant", "hi", phase="final"), "ordinal": 7, "metadata": {"a": "b"}}
    assert _import(value).dialogs[0]["onrecord"]["rest"] == {
        "phase": "final",
        "ordinal": 7,
        "metadata": {"a": "b"},
    }
    bare = _import(value, options=Options(with_rest=False))
    assert "rest" not in bare.dialogs[0]["onrecord"]
    assert bare.codes["rest-omitted"] >= 1


def test_secrets_are_reported_and_replaced_on_demand() -> None:
    """D-LOG-13: a credential stays unless --redact replaces it, in ends of calls too."""
    key = "sk-proj-" + "A1b2C3d4" * 6
    values = [
        calls("c1"),
        gives("c1"),
        event("exec_command_end", call_id="c1", exit_code=0, status=key),
    ]
    assert _import(*values).codes["credential-found"] >= 1
    assert key not in json.dumps(_import(*values, options=Options(redact=True)).vcon)


def test_the_whole_log_is_told() -> None:
    """Every record of a log with all kinds is mapped, or the twin of another one."""
    imported = import_lines(WHOLE, "codex-jsonl")
    imported.assert_sound()
    assert imported.accounting[0]["records"] == len(WHOLE)
    assert imported.accounting[0]["of_duplicates"] == {"twin": 4}
    assert imported.counts()["total"] == 980
    files = imported.vcon["file_attribution"]["files"]
    assert [file["path"] for file in files] == ["notes.md"]


def test_a_made_picture_stands_in_its_result_only() -> None:
    """The picture of an image generation is not kept a second time, so that `--media=hash` takes it out."""
    made = {"type": "image_generation_call", "id": "ig1", "status": "completed", "result": f"{PICTURE}="}
    imported = _import(item(made))
    call, result = imported.events("tool-call")[0], imported.events("tool-result")[0]
    assert result["output"] == f"{PICTURE}="
    assert "result" not in call["onrecord"]["rest"]
    assert call["onrecord"]["origin"] == result["onrecord"]["origin"] == {"kind": "provider"}
    hashed = _import(item(made), options=Options(media="hash"))
    assert PICTURE not in json.dumps(hashed.vcon)


def test_a_result_comes_from_where_its_call_went() -> None:
    """D-LOG-16: the result of a call to an MCP server names the server, also when no event tells of it."""
    imported = _import(calls("m1", "mcp__files__read", {"path": "a"}), gives("m1"))
    origins = [event["onrecord"]["origin"] for event in imported.vcon["events"] if "call_id" in event]
    assert origins == [{"kind": "mcp", "server": "files", "tool": "read"}] * 2

"""Sub-agents of Claude Code: child sessions, the calls that started them, and the files beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.claude_logs import SID, USAGE, assistant, call, record, result, text, user, uuid
from support.native_logs import import_files, to_bytes


def child(line: dict, agent_id: str = "abc123") -> dict:
    """Return a record as one of a sub-agent."""
    return {**line, "isSidechain": True, "agentId": agent_id}


SPAWN = assistant(2, [call("toolu_t", "Task", description="look", prompt="look at it")], 1)
CHILD = [child(user(10, "look at it")), child(assistant(11, "looked", 10, id="msg_9"))]


def store(folder: Path, main: list, agents: dict[str, list], **side: object) -> list[Path]:
    """Write a session and its sub-agents as Claude Code does; return the logs, the main one first."""
    logs = [folder / f"{SID}.jsonl"]
    logs[0].write_bytes(to_bytes(main))
    below = folder / SID / "subagents"
    below.mkdir(parents=True)
    for agent_id, lines in agents.items():
        logs.append(below / f"agent-{agent_id}.jsonl")
        logs[-1].write_bytes(to_bytes(lines))
    for name, content in side.items():
        (below / f"agent-{name}.meta.json").write_text(json.dumps(content), encoding="utf-8")
    return logs


def parent_of_child(paths: list[Path]):
    """Import the files; return the sub-agent's first Dialog and the vCon."""
    found = import_files(paths, "claude-jsonl")
    found.assert_sound()
    vcon = found.vcon
    (index,) = (
        place for place, session in enumerate(vcon["sessions"]) if "agent-" in session["agent_session_id"]
    )
    assert {"session": index, "type": "child"}.items() <= vcon["sessions"][0]["sessions"][0].items()
    start = next(event for event in vcon["events"] if event["session"] == index)
    return start.get("parent_id"), vcon


@pytest.mark.parametrize("is_child_first", [False, True])
@pytest.mark.parametrize(
    ("answer", "details", "meta", "prompt"),
    [
        ("ok", None, {"toolUseId": "toolu_t", "agentType": "Explore"}, "another prompt"),
        ("ok", {"agentId": "abc123"}, None, "another prompt"),
        ("ok\nagentId: abc123 (internal)", None, None, "another prompt"),
        ("ok", None, None, "look at it"),
    ],
    ids=["meta", "details", "text", "prompt"],
)
def test_the_call_that_started_an_agent_is_found(tmp_path, answer, details, meta, prompt, is_child_first):
    """D-LOG-11: by description file, result details, result text or prompt, whichever file comes first."""
    main = [user(1, "go"), SPAWN, user(3, [result("toolu_t", [text(answer)])], 2)]
    if details is not None:
        main[-1]["toolUseResult"] = details
    agent = [child(user(10, prompt)), CHILD[1]]
    paths = store(tmp_path, main, {"abc123": agent}, **({} if meta is None else {"abc123": meta}))
    parent, vcon = parent_of_child(paths[::-1] if is_child_first else paths)
    assert parent == uuid(2)
    first = next(dialog for dialog in vcon["dialog"] if dialog["body"] == prompt)
    assert first["parties"] == [1, 2] if not is_child_first else first["parties"]
    if meta is not None:
        assert any(party.get("name") == "Explore" for party in vcon["parties"])


def test_equal_prompts_of_two_calls_link_none(tmp_path):
    """A prompt that two calls gave does not say which of them started the agent; the parent session stays known."""
    twice = assistant(4, [call("toolu_u", "Task", prompt="look at it")], 3, id="msg_2")
    main = [user(1, "go"), SPAWN, user(3, [result("toolu_t", "ok")], 2), twice]
    parent, _ = parent_of_child(store(tmp_path, main, {"abc123": CHILD}))
    assert parent is None


def test_agents_of_a_workflow_hang_below_its_call(tmp_path):
    """The run file names the task that the Workflow call's result names; journal and run are kept."""
    main = [
        user(1, "go"),
        assistant(2, [call("toolu_w", "Workflow", script="x")], 1),
        user(3, [result("toolu_w", "Workflow launched in background. Task ID: task_1\n")], 2),
    ]
    logs = store(tmp_path, main, {})
    folder = tmp_path / SID / "subagents" / "workflows" / "wf_1"
    folder.mkdir(parents=True)
    run = tmp_path / SID / "workflows" / "wf_1.json"
    run.parent.mkdir()
    run.write_text(json.dumps({"runId": "wf_1", "taskId": "task_1", "status": "completed"}, indent=1))
    agent, journal = folder / "agent-abc123.jsonl", folder / "journal.jsonl"
    agent.write_bytes(to_bytes(CHILD))
    journal.write_bytes(to_bytes([{"type": "started", "key": "k", "agentId": "abc123"}]))
    parent, vcon = parent_of_child([*logs, agent, journal, run])
    assert parent == uuid(2)
    kinds = [event.get("event_type") for event in vcon["events"]]
    assert "workflow/started" in kinds
    assert "workflow/run" in kinds


def test_the_sum_that_a_result_repeats_is_not_added(tmp_path):
    """The usage in a Task's result is a token-count of scope turn, beside the responses of the sub-agent."""
    main = [user(1, "go"), SPAWN, user(3, [result("toolu_t", "ok")], 2)]
    main[-1]["toolUseResult"] = {"agentId": "abc123", "totalTokens": 1108, "usage": dict(USAGE)}
    found = import_files(store(tmp_path, main, {"abc123": CHILD}), "claude-jsonl")
    found.assert_sound()
    (event,) = (event for event in found.events("token-count") if event["data"]["scope"] == "turn")
    assert event["data"]["native"] == {"totalTokens": 1108, "usage": USAGE}
    assert event["data"]["usage"]["total"] == 1108
    assert found.counts()["output"] == 2 * USAGE["output_tokens"]


@pytest.mark.parametrize("own", [f"{SID}#agent-abc123", "agent-abc123"])
def test_agents_with_session_ids_of_their_own_belong_to_their_folder(tmp_path, own):
    """A sub-agent's file below `<session>/subagents` is that session's, whatever session id its lines have."""
    main = [user(1, "go"), SPAWN, user(3, [result("toolu_t", "ok\nagentId: abc123")], 2)]
    lines = [{**line, "sessionId": own} for line in CHILD]
    parent, vcon = parent_of_child(store(tmp_path, main, {"abc123": lines}))
    assert parent == uuid(2)
    starts = [event["data"] for event in vcon["events"] if event.get("event_type") == "session-start"]
    assert own in [data.get("sessionId") for data in starts]


def test_an_agent_without_its_parent_is_a_vcon_of_its_own(tmp_path):
    """D-LOG-11: no parent in the import: own root, reported."""
    paths = store(tmp_path, [user(1, "go")], {"abc123": CHILD})
    found = import_files(paths[1:], "claude-jsonl")
    found.assert_sound()
    assert found.codes["child-unlinked"] == 1
    assert found.vcon["sessions"][0]["agent_session_id"] == f"{SID}/agent-abc123"
    assert found.vcon["sessions"][0]["format"] == "autonomous"


def test_sidechains_without_agent_id_are_told_apart_by_their_chain(tmp_path):
    """Each chain root is a child session; a parent in the main session is named, not lost."""
    side = [
        {**user(10, "look at it", 2), "isSidechain": True},
        {**assistant(11, "looked", 10, id="msg_8"), "isSidechain": True},
        {**assistant(12, "alone", 99, id="msg_9"), "isSidechain": True},
    ]
    path = tmp_path / f"{SID}.jsonl"
    path.write_bytes(to_bytes([user(1, "go"), SPAWN, *side]))
    found = import_files([path], "claude-jsonl")
    found.assert_sound()
    assert [len(session["dialog"]) for session in found.vcon["sessions"]] == [1, 2, 1]
    first = next(dialog for dialog in found.dialogs if dialog["body"] == "look at it")
    assert first["onrecord"]["parent"] == uuid(2)


def test_quoted_messages_of_an_agent_are_told_once(tmp_path):
    """`agent_progress` quotes: with the agent's file they are twins, without it they make its session."""
    quotes = [
        record(
            20 + number,
            "progress",
            2,
            data={"type": "agent_progress", "agentId": "abc123", "message": {**line, "uuid": f"q{number}"}},
        )
        for number, line in enumerate(CHILD)
    ]
    paths = store(tmp_path, [user(1, "go"), SPAWN, *quotes], {"abc123": CHILD})
    alone = import_files(paths[:1], "claude-jsonl")
    for order in (paths, paths[::-1]):
        both = import_files(order, "claude-jsonl")
        both.assert_sound()
        assert sorted(both.bodies) == sorted(alone.bodies) == ["go", "look at it", "looked"]
        assert sum(account["of_duplicates"].get("twin", 0) for account in both.accounting) == 2
        assert both.counts()["responses"] == 2


def test_overflow_texts_are_read_from_the_store_only(tmp_path):
    """R-21: a text that did not fit is read from the session's folder by the call's id, never by a path."""
    secret = tmp_path / "secret.txt"
    secret.write_text("not part of the log")
    said = "<persisted-output>Output too large. Full output saved to: {}</persisted-output>"
    main = [
        user(1, "go"),
        assistant(2, [call("toolu_a", "Bash"), call("../../secret", "Bash"), call("toolu_l", "Bash")], 1),
        user(3, [result("toolu_a", said.format("/x/tool-results/toolu_a.txt"))], 2),
        user(4, [result("../../secret", said.format("/x/tool-results/../../secret.txt"))], 3),
        user(5, [result("toolu_l", said.format("/x/tool-results/toolu_l.txt"))], 4),
    ]
    paths = store(tmp_path, main, {})
    folder = tmp_path / SID / "tool-results"
    folder.mkdir()
    (folder / "toolu_a.txt").write_text("all of it")
    (folder / "toolu_l.txt").symlink_to(secret)
    found = import_files(paths, "claude-jsonl")
    found.assert_sound()
    rests = {event["call_id"]: event["onrecord"].get("rest", {}) for event in found.events("tool-result")}
    assert rests["toolu_a"]["overflow"] == {"file": "tool-results/toolu_a.txt", "text": "all of it"}
    assert "overflow" not in rests["../../secret"]
    assert "overflow" not in rests["toolu_l"]


@pytest.mark.parametrize("about", ["[1]", "{", "", '{"toolUseId": 7, "agentType": [], "description": {}}'])
def test_descriptions_of_any_shape_do_no_harm(tmp_path, about):
    """A broken description file costs nothing but itself."""
    paths = store(tmp_path, [user(1, "go"), SPAWN], {"abc123": CHILD})
    (paths[1].parent / "agent-abc123.meta.json").write_text(about)
    _, vcon = parent_of_child(paths)
    assert len(vcon["dialog"]) == 3

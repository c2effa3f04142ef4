"""What the places of Claude Code's files say: which are no logs, and which come behind others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from onrecord.record.logs.claude.code import ClaudeCode
from onrecord.record.logs.importing import import_paths
from support.claude_logs import SID, assistant, call, record, text, user, uuid
from support.native_logs import to_bytes


@pytest.mark.parametrize(
    "name",
    [
        ".credentials.json",
        "settings.json",
        "settings.local.json",
        "history.jsonl",
        "stats-cache.json",
        ".claude.json",
        "todos/a-agent-a.json",
        "statsig/statsig.cached.evaluations",
        "shell-snapshots/x.sh",
        "ide/1.lock",
        "plugins/market/one/plugin.json",
        "file-history/s/x@v1",
        "debug/s.txt",
    ],
)
def test_what_lies_beside_the_logs_is_not_opened(name):
    """Keys, settings and histories in Claude Code's folder are no logs; elsewhere the names say nothing."""
    assert ClaudeCode.is_side_file(Path("/home/dev/.claude") / name)
    assert not ClaudeCode.is_side_file(Path("/home/dev/claude") / name)
    assert not ClaudeCode.is_side_file(Path("/home/dev/.claude/projects/-p") / name)


@pytest.mark.parametrize(
    "name", ["projects/-p/x.jsonl", "todos", "transcripts/x.jsonl", "teams/t/inbox.json"]
)
def test_other_files_are_looked_at(name):
    """Logs in Claude Code's folder, and what is not known there, are opened."""
    assert not ClaudeCode.is_side_file(Path("/home/dev/.claude") / name)


def quoting(folder: Path, agent_id: str = "abc123") -> Path:
    """Write a session that quotes its agent, and the agent's file, as an older version did; return the session."""
    agent = [
        {**line, "isSidechain": True, "agentId": agent_id}
        for line in (user(10, "look at it"), assistant(11, [text("looked")], 10, id="msg_9"))
    ]
    quotes = [
        record(
            20 + number,
            "progress",
            2,
            data={
                "type": "agent_progress",
                "agentId": agent_id,
                "message": {name: line[name] for name in ("type", "uuid", "timestamp", "message")},
            },
        )
        for number, line in enumerate(agent)
    ]
    spawn = assistant(2, [call("toolu_t", "Task", description="look", prompt="look at it")], 1)
    log = folder / f"{SID}.jsonl"
    log.write_bytes(to_bytes([user(1, "go"), spawn, *quotes]))
    below = folder / SID / "subagents"
    below.mkdir(parents=True)
    (below / f"agent-{agent_id}.jsonl").write_bytes(to_bytes(agent))
    return log


def test_an_agents_own_file_wins_over_quotations(tmp_path):
    """4.1 (`progress`): with the agent's file in the import the quotations are its duplicates; its tree is whole."""
    (tmp_path / "in").mkdir()
    quoting(tmp_path / "in")
    report = import_paths([tmp_path / "in"], to=tmp_path / "out")
    (path,) = (tmp_path / "out").glob("*.vcon")
    vcon = json.loads(path.read_text())
    bodies = {dialog["body"]: dialog for dialog in vcon["dialog"]}
    assert len(vcon["dialog"]) == 3
    assert bodies["looked"]["parent_id"] == uuid(10)
    assert bodies["looked"]["onrecord"]["rest"]["requestId"] == "req_msg_9"
    (index,) = (
        place for place, session in enumerate(vcon["sessions"]) if "agent-" in session["agent_session_id"]
    )
    start = next(event for event in vcon["events"] if event["session"] == index)
    assert start["parent_id"] == uuid(2)
    assert report.totals()["duplicates"] == 2
    assert "duplicate-entry-differs" not in [finding["code"] for finding in report.findings()]


def test_agents_with_a_copy_of_the_session_come_behind_it(tmp_path):
    """B-16: an agent that compacts is given the session's own entries, which are the session's."""
    assert not ClaudeCode.comes_last(quoting(tmp_path, "acompact-1"))
    (tmp_path / "x").mkdir()
    assert ClaudeCode.comes_last(quoting(tmp_path / "x"))
    assert not ClaudeCode.comes_last(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    "said",
    [
        "please explain <command-name>foo</command-name> to me",
        "what is a<system-reminder>be brief, be kind</system-reminder>nd what is not",
    ],
)
@pytest.mark.parametrize("as_block", [False, True])
def test_texts_around_a_tag_are_found_again(tmp_path, said, as_block):
    """A-05: human text on both sides of what was cut out is one text in the vCon, and nothing is missing."""
    log = tmp_path / f"{SID}.jsonl"
    log.write_bytes(to_bytes([user(1, [text(said)] if as_block else said), assistant(2, "so", 1)]))
    report = import_paths([log], to=tmp_path / "out", verify=True)
    assert "content-not-found" not in [finding["code"] for finding in report.findings()]

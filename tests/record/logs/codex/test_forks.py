"""Forks and sub-agents tell their own part once, under their own id, in the right vCon."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.codex_logs import OWN, PARENT, calls, counted, event, meta, says, tokens, turn
from support.native_logs import Imported, import_files, import_lines, to_bytes

SPENT = tokens(1000, 10)
HISTORY = [
    turn(1),
    says("user", "parent prompt", second=2),
    says("assistant", "parent answer", second=3),
    counted(SPENT, SPENT, 4),
]
CHILD = [
    turn(20, turn_id="t2"),
    says("user", "child prompt", second=21),
    says("assistant", "child answer", second=22),
    counted(tokens(1200, 20), tokens(2200, 30), 23),
]
PARENT_LOG = [meta(PARENT), *HISTORY, says("user", "parent goes on", second=9)]


def _copied(second: int = 10) -> list[dict[str, Any]]:
    """Return the parent's history as a fork has it: the same payloads at the time of the fork."""
    at = f"2026-07-01T10:00:{second:02d}.000Z"
    return [{**value, "timestamp": at} for value in [meta(PARENT), *HISTORY]]


def _at_once(values: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return records at the time of the fork, so that times cannot tell them from the copied ones."""
    return [{**value, "timestamp": "2026-07-01T10:00:10.000Z"} for value in values]


def _import(*logs: Sequence[dict[str, Any]]) -> Imported:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.jsonl" for number in range(len(logs))]
        for path, log in zip(paths, logs, strict=True):
            path.write_bytes(to_bytes(log))
        imported = import_files(paths, "codex-jsonl")
    imported.assert_sound()
    return imported


def _of_child(imported: Imported) -> tuple[list[str], int]:
    session = next(session for session in imported.sessions if session.agent_session_id == OWN)
    vcon = next(vcon for vcon in imported.vcons for own in vcon["sessions"] if own["agent_session_id"] == OWN)
    place = next(own for own in vcon["sessions"] if own["agent_session_id"] == OWN)
    return [vcon["dialog"][index]["body"] for index in place["dialog"]], session.usage_totals()[0]["input"]


OWN_PART = (["child prompt", "child answer"], 1200)


def test_a_fork_is_cut_at_the_ordinal() -> None:
    """B-5, rule 1: the record with the start ordinal is the first of the child's own."""
    log = [
        meta(forked_from_id=PARENT, subagent_history_start_ordinal=6, second=10),
        *_copied(),
        *_at_once(CHILD),
    ]
    log = [{**value, "ordinal": number} for number, value in enumerate(log)]
    imported = _import(log)
    assert _of_child(imported) == OWN_PART
    assert [finding.count for finding in imported.findings if finding.code == "fork-replay"] == [5]


def test_a_fork_is_cut_behind_what_its_parent_tells() -> None:
    """B-5, rule 2: with the parent in the import the common history is the parent's alone."""
    imported = _import(PARENT_LOG, [meta(forked_from_id=PARENT, second=10), *_copied(), *_at_once(CHILD)])
    assert _of_child(imported) == OWN_PART
    assert imported.counts()["input"] == 2200
    assert len(imported.vcons) == 2
    start = next(vcon for vcon in imported.vcons if vcon["sessions"][0]["agent_session_id"] == OWN)["events"][
        0
    ]
    assert start["data"]["forked_from"] == {"agent_session_id": PARENT}


def test_a_fork_without_its_parent_is_cut_at_its_first_turn() -> None:
    """B-5, rule 3: the first turn later than the copied session meta is the child's, a task start before a context."""
    assert _of_child(_import([meta(forked_from_id=PARENT, second=10), *_copied(), *CHILD])) == OWN_PART
    task = event("task_started", 19, turn_id="t2")
    log = [meta(forked_from_id=PARENT, second=10), *_copied(), task, *CHILD]
    imported = _import(log)
    assert _of_child(imported) == OWN_PART
    assert len(imported.events("task_started")) == 1


def test_siblings_share_their_history_once() -> None:
    """B-5, rule 4: of two forks without a copied session meta the first keeps what both tell."""
    first = [meta("sibling", forked_from_id=PARENT, second=10), *_copied()[1:], *CHILD[:2]]
    second = [
        meta(forked_from_id=PARENT, second=10),
        *_copied()[1:],
        turn(30),
        says("user", "other", second=31),
    ]
    imported = _import(first, second)
    assert _of_child(imported) == (["other"], 0)
    assert imported.codes["fork-replay-suspected"] == 1


def test_nothing_is_cut_without_proof() -> None:
    """B-5, rule 5: a fork of which nothing else is known keeps all, and says that it may be a copy."""
    imported = _import([meta(forked_from_id=PARENT, second=10), *_copied()[1:]])
    assert _of_child(imported) == (["parent prompt", "parent answer"], 1000)
    assert imported.codes["fork-replay-suspected"] == 1
    assert imported.codes["fork-replay"] == 0


def test_totals_go_on_from_the_copied_history() -> None:
    """Totals of a fork count from where its parent was."""
    log = [
        meta(forked_from_id=PARENT, second=10),
        *_copied(),
        *CHILD[:3],
        counted(None, tokens(2200, 30), 23),
    ]
    assert _of_child(_import(log)) == OWN_PART


def test_many_forks_count_the_history_once() -> None:
    """B-5: a parent with ten forks, each with the whole history, spends the history's tokens once."""
    forks = [
        [meta(f"fork-{number}", forked_from_id=PARENT, second=10), *_copied(), *CHILD] for number in range(10)
    ]
    assert _import(PARENT_LOG, *forks).counts()["input"] == 1000 + 10 * 1200


def _sub_agent(**members: Any) -> list[dict[str, Any]]:
    return [
        meta(second=10, **members),
        turn(11),
        says("user", "do this", second=12),
        says("assistant", "done", second=13),
    ]


SPAWN = [
    meta(PARENT),
    turn(),
    calls("call_spawn", "spawn_agent"),
    event("collab_agent_spawn_end", call_id="call_spawn", new_thread_id=OWN, new_agent_nickname="Ada"),
]


def test_sub_agents_are_children_of_their_parent() -> None:
    """D-LOG-11: a sub-agent is a session of its parent's vCon, opened by the parent's agent."""
    source = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "spawn_call_id": "call_spawn"}}}
    for logs in ([SPAWN, _sub_agent(source=source)], [_sub_agent(source=source), SPAWN]):
        imported = _import(*logs)
        sessions = imported.vcon["sessions"]
        assert [session["agent_session_id"] for session in sessions] == [PARENT, OWN]
        assert sessions[0]["sessions"][0]["session"] == 1
        assert sessions[1]["format"] == "autonomous"
        assert imported.dialogs[0]["parties"] == [1, 2]


def test_a_spawn_event_links_a_child_that_names_no_parent() -> None:
    """`new_thread_id` of the parent links the child, whichever file is read first."""
    for logs in ([SPAWN, _sub_agent()], [_sub_agent(), SPAWN]):
        assert [session["agent_session_id"] for session in _import(*logs).vcon["sessions"]] == [PARENT, OWN]


def test_a_sub_agent_without_its_parent_is_a_root() -> None:
    """A sub-agent whose parent is not in the import has its own vCon and a finding."""
    imported = _import(_sub_agent(parent_thread_id=PARENT))
    assert imported.vcon["sessions"][0]["agent_session_id"] == OWN
    assert imported.codes["child-unlinked"] == 1


def test_a_session_in_two_files_is_one() -> None:
    """R-17: a copy of a session's file adds what the first did not have, and nothing twice."""
    longer = [*PARENT_LOG, says("user", "only here", second=30)]
    for logs in ([PARENT_LOG, longer], [longer, PARENT_LOG]):
        imported = _import(*logs)
        assert imported.bodies == ["parent prompt", "parent answer", "parent goes on", "only here"]
        assert imported.counts()["input"] == 1000
        assert imported.codes["duplicate-entry"] == 6


def test_a_second_file_of_a_fork_is_cut_too() -> None:
    """B-5: another file of a fork that has nothing in common with the first is still cut."""
    fork = [meta(forked_from_id=PARENT, second=10), *_copied(), *CHILD]
    imported = _import([meta(), says("user", "elsewhere")], fork)
    assert imported.bodies == ["elsewhere", "child prompt", "child answer"]
    assert (imported.codes["resumed-session"], imported.codes["fork-replay"]) == (1, 5)


def test_a_fork_of_itself_ends() -> None:
    """A session that names itself as its parent is a root."""
    imported = import_lines([meta(forked_from_id=OWN, parent_thread_id=OWN), *CHILD], "codex-jsonl")
    imported.assert_sound()
    assert imported.vcon["sessions"][0]["agent_session_id"] == OWN

"""Branches that a rewind left, and siblings that are none."""

from __future__ import annotations

from onrecord.record.logs.claude.graph import DIFFERENT, NEW, SAME, Identities, Replays
from support.claude_logs import assistant, call, record, result, text, user
from support.native_logs import import_lines


def superseded(*lines) -> set[str]:
    """Return the bodies and call ids of what is flagged."""
    found = import_lines(list(lines), "claude-jsonl")
    found.assert_sound()
    return {
        thing.get("body") or thing.get("call_id") or thing["type"]
        for thing in [*found.dialogs, *found.events()]
        if "superseded" in thing["onrecord"].get("flags", ())
    }


def test_a_second_prompt_at_the_same_place_is_a_rewind():
    """D-LOG-09: the branch without the last record is flagged, whole."""
    assert superseded(
        user(1, "a"),
        assistant(2, "b", 1),
        user(3, "wrong", 2),
        assistant(4, "wrong answer", 3, id="msg_2"),
        user(5, "right", 2),
        assistant(6, "right answer", 5, id="msg_3"),
    ) == {"wrong", "wrong answer"}


def test_going_back_to_the_first_branch_leaves_the_second():
    """The branch that holds the last record of the file is the live one."""
    assert superseded(
        user(1, "a"),
        assistant(2, "b", 1),
        user(3, "first", 2),
        user(5, "second", 2),
        assistant(6, "goes on", 3, id="msg_3"),
    ) == {"second"}


def test_a_second_answer_to_a_prompt_is_a_rewind():
    """A fork below a user record leaves the older answer."""
    assert superseded(user(1, "a"), assistant(2, "old", 1), assistant(3, "new", 1, id="msg_2")) == {"old"}


def test_going_on_after_a_compaction_is_no_rewind():
    """D-LOG-09: below a message that compaction wrote again only what was left afterwards is flagged."""
    before = [user(1, "a"), assistant(2, "b", 1), user(3, "c", 2), assistant(4, "d", 3, id="msg_2")]
    again = {**user(6, "a", 5), "timestamp": before[0]["timestamp"]}
    boundary = record(5, "system", subtype="compact_boundary")
    goes_on = assistant(7, "e", 6, id="msg_3")
    assert not superseded(*before, boundary, again, goes_on)
    assert superseded(*before, boundary, again, goes_on, assistant(8, "f", 6, id="msg_4")) == {"e"}


def test_parallel_calls_are_no_rewind():
    """Calls of one response and their results make siblings, and hooks hang beside messages."""
    assert not superseded(
        user(1, "a"),
        record(2, "attachment", 1, attachment={"type": "hook_success"}),
        assistant(3, [call("c1", "Bash")], 1),
        assistant(4, [call("c2", "Bash")], 3),
        user(5, [result("c1", "x")], 3),
        user(6, [result("c2", "y")], 4),
        assistant(7, [text("done")], 6, id="msg_2"),
        record(8, "system", 5, subtype="turn_duration"),
    )


def test_named_entries_are_superseded():
    """`supersedesUuids` flags the entries that it names."""
    lines = [user(1, "a"), assistant(2, "b", 1)]
    lines.append(assistant(3, "c", 2, id="msg_2", supersedesUuids=[lines[1]["uuid"], 7, "unknown"]))
    assert superseded(*lines) == {"b"}


def test_ten_thousand_rewinds_at_one_place():
    """Each of many branches at one place is left but the last, in linear time."""
    lines = [user(1, "a")]
    lines += [{**user(2, f"p{n}", 1), "uuid": f"u{n}"} for n in range(3000)]
    assert len(superseded(*lines)) == 2999


def test_identities_tell_same_from_different():
    """R-16, R-17: an id is new once in a run, however many sources there are."""
    seen: dict[int, int] = {}
    first, second = Identities(seen, 0), Identities(seen, 1)
    assert [first.compare("u", 5), second.compare("u", 5), second.compare("u", 6)] == [NEW, SAME, DIFFERENT]
    line = {"type": "mode"}
    assert not first.is_from_before("s", line)
    assert not first.is_from_before("s", line)
    assert second.is_from_before("s", line)
    assert not second.is_from_before("t", line)


def test_replays_are_found_only_after_a_compaction():
    """Equal messages without a compaction between them are two."""
    replays = Replays()
    replays.add(1, 10)
    assert replays.replayed(1) is None
    replays.compacted()
    assert (replays.replayed(1), replays.replayed(2)) == (10, None)
    replays.add(2, 20)
    assert replays.replayed(2) == 20

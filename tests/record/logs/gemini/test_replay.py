"""The append log of Gemini CLI is played again: nothing doubled, nothing lost (B-11)."""

from __future__ import annotations

from typing import Any

import pytest

from support.gemini_logs import (
    HEADER,
    LOG,
    TOKENS,
    answer,
    at,
    beat,
    burst,
    call,
    checkpoint,
    function_call,
    response,
    user,
)
from support.native_logs import Imported, import_lines

FORMAT = "gemini-json"
MASKED = "<tool_output_masked>\nline 1\n... [2 lines omitted] ...\n</tool_output_masked>"
OUTPUT = "line 1\nline 2\nline 3\nline 4"


def run(*lines: dict[str, Any]) -> Imported:
    imported = import_lines([HEADER, *lines], FORMAT)
    imported.assert_sound()
    return imported


def outputs(imported: Imported) -> list[str]:
    return [
        event["output"][0]["functionResponse"]["response"]["output"]
        for event in imported.events("tool-result")
    ]


STEPS = [
    user("m1", 1, [{"text": "go"}]),
    answer("m2", 2, "Step one.", thoughts=[{"subject": "S", "description": "D"}], tokens=TOKENS),
    answer(
        "m2",
        2,
        "Step one.",
        thoughts=[{"subject": "S", "description": "D"}],
        tokens=TOKENS,
        toolCalls=[call("c1", OUTPUT, 3)],
    ),
    user("m3", 3, [response("c1", OUTPUT)]),
]


def compacted(text: str = MASKED, *, prefix: str = "n") -> list[tuple[str, dict[str, Any]]]:
    """Return the messages of STEPS as a checkpoint has them."""
    said = answer("", 2, [{"text": "Step one."}, function_call("c1")], thoughts=[], tokens=None)
    del said["model"]
    return [
        (f"{prefix}1", user("", 1, [{"text": "go"}])),
        (f"{prefix}2", said),
        (f"{prefix}3", user("", 3, [response("c1", text)])),
    ]


def test_log_is_neither_empty_nor_doubled() -> None:
    """B-11: versions, heartbeats, a checkpoint and a rewind give each message once."""
    imported = run(*LOG[1:])
    assert imported.bodies == [
        "list the files",
        "There are two files.",
        "wrong",
        "thanks",
        "You are welcome.",
    ]
    counts = imported.counts()
    assert (counts["tool_calls"], counts["tool_results"], counts["reasoning"]) == (1, 1, 1)
    assert (counts["responses"], counts["input"], counts["cached"], counts["output"]) == (2, 1800, 300, 160)
    assert imported.accounting[0]["of_duplicates"] == {"heartbeat": 1, "older-version": 1, "twin": 1}
    assert imported.vcon["subject"] == "Files of the folder"


@pytest.mark.parametrize("rounds", [1, 3])
def test_checkpoint_that_loses_data_changes_nothing(rounds: int) -> None:
    """B-11: new ids, masked outputs and missing tokens of checkpoints do not reach the vCon."""
    lines = list(STEPS)
    for number in range(rounds):
        lines += burst(*compacted(prefix=f"n{number}-"))
    imported = run(*lines)
    assert imported.bodies == ["go", "Step one."]
    assert outputs(imported) == [OUTPUT]
    counts = imported.counts()
    assert (counts["tool_calls"], counts["reasoning"], counts["responses"], counts["input"]) == (1, 1, 1, 900)
    assert imported.codes["checkpoint-restored"] == 2
    assert imported.codes["replayed-entry"] == 3 * rounds
    assert len(imported.events("checkpoint")) == rounds
    assert imported.events("checkpoint")[0]["data"]["messages"] == 3


@pytest.mark.parametrize("kept", range(1, 6))
def test_checkpoint_that_was_cut_off_doubles_nothing(kept: int) -> None:
    """B-11: the lines in front of a checkpoint are known as copies although its list is missing."""
    imported = run(*STEPS, *burst(*compacted())[:5][: max(kept, 3)])
    assert imported.bodies == ["go", "Step one."]
    assert outputs(imported) == [OUTPUT]


def test_session_goes_on_after_a_checkpoint() -> None:
    """Messages after a checkpoint are new, a newer version under a new id belongs to the old message."""
    more = answer("n2", 60, "Step one, corrected.", tokens=None)
    imported = run(*STEPS, *burst(*compacted()), user("m4", 61, "go"), more)
    assert imported.bodies == ["go", "Step one, corrected.", "go"]
    assert imported.counts()["responses"] == 1
    assert imported.counts()["tool_calls"] == 1


def test_richer_output_of_a_checkpoint_wins() -> None:
    """Unmasked goes before masked and longer before shorter, wherever it stands."""
    masked = [STEPS[0], answer("m2", 2, "Step one.", toolCalls=[call("c1", MASKED, 3)])]
    assert outputs(run(*masked, checkpoint(*[{**m, "id": i} for i, m in compacted(OUTPUT)]))) == [OUTPUT]
    assert outputs(run(*masked, user("m3", 3, [response("c1", OUTPUT)]))) == [OUTPUT]
    assert outputs(run(*STEPS, answer("m2", 2, "Step one.", toolCalls=[call("c1", "line 1", 3)]))) == [OUTPUT]


def test_result_names_the_record_that_has_it() -> None:
    """The source of a restored output is the record with the richest version."""
    imported = run(
        STEPS[0],
        answer("m2", 2, "", toolCalls=[call("c1", MASKED, 3)]),
        user("m3", 3, [response("c1", OUTPUT)]),
    )
    assert imported.events("tool-call")[0]["onrecord"]["src"][1] == 3
    assert imported.events("tool-result")[0]["onrecord"]["src"][1] == 4


def test_checkpoint_that_joins_neighbours_doubles_nothing() -> None:
    """Two messages of the user that a checkpoint makes one stay two."""
    context = user("m0", 0, [{"text": "<session_context>\ninvented\n</session_context>"}])
    joined = user("", 0, [*context["content"], {"text": "go"}])
    rest = compacted()[1:]
    imported = run(
        checkpoint(context, second=0), *STEPS, *burst(("n1", joined), *rest), *burst(("o1", joined), *rest)
    )
    assert imported.bodies == ["go", "Step one."]
    assert len(imported.events("injected-context")) == 1


def test_equal_texts_of_a_person_stay_apart() -> None:
    """Somebody who says the same twice said it twice, before and after a checkpoint."""
    lines = [user("a", 1, "again"), answer("b", 2, "yes"), user("c", 3, "again"), answer("d", 4, "yes")]
    copies = [
        (f"n{number}", {**line, "content": [{"text": line["content"]}]}) for number, line in enumerate(lines)
    ]
    assert run(*lines).bodies == ["again", "yes", "again", "yes"]
    assert run(*lines, *burst(*copies)).bodies == ["again", "yes", "again", "yes"]
    assert run(*lines, *burst(*copies), user("e", 70, "again")).bodies == ["again", "yes"] * 2 + ["again"]


def test_messages_only_in_a_checkpoint_are_kept() -> None:
    """A list that is the first to tell of messages gives them."""
    imported = run(checkpoint(user("a", 1, "question"), answer("b", 2, [{"text": "reply"}])))
    assert imported.bodies == ["question", "reply"]
    assert imported.accounting[0]["mapped"] == 2


def test_shortened_history_keeps_what_it_leaves_out() -> None:
    """Messages that a checkpoint replaces by a summary stay; those it cuts off at the end are superseded."""
    lines = [user("a", 1, "one"), answer("b", 2, "two"), user("c", 3, "three"), answer("d", 4, "four")]
    summary = run(*lines, checkpoint(user("s", 5, "summary of all"), lines[3]))
    assert summary.bodies == ["one", "two", "three", "four", "summary of all"]
    assert "superseded" not in summary.codes
    assert summary.events("checkpoint")[0]["data"]["left_out"] == 3
    restored = run(*lines, checkpoint(*lines[:2]))
    assert restored.codes["superseded"] == 2
    assert [dialog["onrecord"].get("flags") for dialog in restored.dialogs] == [
        None,
        None,
        ["superseded"],
        ["superseded"],
    ]


def test_rewind_marks_the_message_and_all_later_ones() -> None:
    """A rewound answer stays with its usage; the message of that id may come again."""
    lines = [user("a", 1, "one"), user("b", 2, "two"), answer("c", 3, "three", tokens=TOKENS)]
    imported = run(*lines, {"$rewindTo": "b"}, user("d", 4, "other"))
    assert imported.codes["superseded"] == 2
    assert [dialog["onrecord"].get("flags") for dialog in imported.dialogs] == [
        None,
        ["superseded"],
        ["superseded"],
        None,
    ]
    assert imported.counts()["responses"] == 1
    assert len(imported.events("rewind")) == 1
    again = run(*lines, {"$rewindTo": "b"}, user("b", 5, "two, better"))
    assert again.bodies == ["one", "two, better", "three"]
    assert again.codes["superseded"] == 1


def test_rewind_to_nowhere_marks_nothing() -> None:
    """An unknown rewind target is reported and supersedes nothing."""
    imported = run(user("a", 1, "one"), {"$rewindTo": "zzz"}, user("b", 2, "two"))
    assert imported.codes["rewind-target-missing"] == 1
    assert "superseded" not in imported.codes
    assert imported.bodies == ["one", "two"]


def test_null_and_empty_never_overwrite() -> None:
    """Members of a newer version are merged: null and empty text leave the known ones."""
    newer = answer("b", 2, "", thoughts=None, tokens=None, model=None)
    imported = run(
        user("a", 1, "one"), answer("b", 2, "two", tokens=TOKENS, thoughts=[{"description": "D"}]), newer
    )
    assert imported.bodies == ["one", "two"]
    assert imported.dialogs[1]["model_id"] == "gemini-3-pro"
    assert imported.counts()["input"] == 900
    assert imported.counts()["reasoning"] == 1


def test_equal_line_is_a_duplicate() -> None:
    """The same version twice is reported once as duplicate-entry."""
    imported = run(user("a", 1, "one"), user("a", 1, "one"), beat(2))
    assert imported.codes["duplicate-entry"] == 1
    assert imported.bodies == ["one"]


def test_order_is_that_of_first_appearance() -> None:
    """A newer version keeps the place of the message, and unreadable lines keep theirs."""
    lines = [HEADER, user("a", 1, "one"), "{broken", user("b", 2, "two"), user("a", 1, "one!")]
    data = b"".join(
        (line if isinstance(line, str) else __import__("json").dumps(line)).encode() + b"\n" for line in lines
    )
    imported = import_lines(data, FORMAT)
    imported.assert_sound()
    assert imported.bodies == ["one!", "two"]
    assert [event["event_type"] for event in imported.events()] == ["session-start", "unreadable-record"]
    assert imported.events("unreadable-record")[0]["time"] == at(1).replace(".000", "")
    assert imported.unreadable == 1


def test_calls_that_share_an_id_stay_apart() -> None:
    """Answers whose calls have the same ids but other tools or arguments are no copies of each other."""
    lines = [
        answer(
            f"m{n}",
            n,
            "",
            toolCalls=[call("call_0", f"output {n}" + "." * n, n, args={"command": f"do {n}"})],
        )
        for n in range(1, 4)
    ]
    imported = run(*lines, user("m9", 9, [response("call_0", "output 3...")]))
    assert [event["input"] for event in imported.events("tool-call")] == [
        {"command": f"do {n}"} for n in range(1, 4)
    ]
    assert outputs(imported) == ["output 1.", "output 2..", "output 3..."]
    assert imported.codes["duplicate-call"] == 2
    assert "replayed-entry" not in imported.codes


def test_newer_version_without_a_type() -> None:
    """A line with the id of a message and without a type is a newer version of it: members are merged."""
    imported = run(
        answer("m1", 1, "an answer"), {"id": "m1", "tokens": TOKENS}, {"id": "new", "tokens": TOKENS}
    )
    assert imported.bodies == ["an answer"]
    assert imported.counts()["responses"] == 1
    assert imported.codes["unknown-record-type"] == 1


def test_message_whose_content_stands_in_another_record() -> None:
    """A message all of whose content a later record has in a richer form is an older version of it."""
    imported = run(user("m1", 1, [response("c1", MASKED)]), user("m2", 2, [response("c1", OUTPUT)]))
    assert outputs(imported) == [OUTPUT]
    assert imported.accounting[0]["of_duplicates"] == {"older-version": 1}

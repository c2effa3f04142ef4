"""Each response of a Codex session is counted once, from the best source that the log has."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.record.logs.codex.tokens import difference
from support.codex_logs import calls, counted, event, line, meta, says, tokens, turn
from support.native_logs import Imported, import_lines

FIRST, SECOND = tokens(900, 80, 300, 32), tokens(2000, 200, 900, 50)
SUM = tokens(2900, 280, 1200, 82)


def _import(*values: dict[str, Any]) -> Imported:
    imported = import_lines([meta(), turn(), *values], "codex-jsonl")
    imported.assert_sound()
    return imported


def test_usage_goes_to_the_first_text_of_its_response() -> None:
    """D-LOG-03: items since the usage before belong to the next one, and its first text carries it."""
    imported = _import(
        says("assistant", "one"), says("assistant", "two"), counted(FIRST, FIRST), says("assistant", "three")
    )
    assert [dialog.get("token_usage") for dialog in imported.dialogs] == [
        {"input": 900, "output": 80, "cached": 300, "reasoning": 32, "total": 980, "native": FIRST},
        None,
        None,
    ]
    assert imported.counts()["responses"] == 1
    assert imported.events("token-count") == []


def test_usage_without_a_text_is_an_event() -> None:
    """D-LOG-02: a response that only calls has a token-count event, and no other response gets its usage."""
    imported = _import(calls("c1"), counted(FIRST, FIRST), says("assistant", "later"))
    (event_,) = imported.events("token-count")
    assert event_["data"]["scope"] == "response"
    assert event_["data"]["usage"] == {
        "input": 900,
        "output": 80,
        "cached": 300,
        "reasoning": 32,
        "total": 980,
    }
    assert event_["data"]["native"] == FIRST
    assert "token_usage" not in imported.dialogs[0]


def test_usage_records_are_the_best_source() -> None:
    """With usage records all token counts are twins; a response told twice counts once."""
    record = line("token_usage_record", {"response_id": "resp_1", "usage": FIRST})
    imported = _import(says("assistant", "one"), record, counted(FIRST, FIRST), record)
    assert imported.counts()["total"] == 980
    assert imported.accounting[0]["of_duplicates"] == {"twin": 1, "usage-repeated": 1}
    assert imported.codes["usage-repeated"] == 1


def test_counts_before_the_first_usage_record_count() -> None:
    """A session that an older program began: its responses are counted by their token counts, later ones once."""
    limits = event("token_count", info={"last_token_usage": SECOND, "total_token_usage": SUM})
    record = line("token_usage_record", {"response_id": "resp_2", "usage": SECOND})
    for newer in ([record, limits], [limits, record], [limits, limits, record]):
        imported = _import(
            says("assistant", "one"),
            counted(FIRST, FIRST),
            says("user", "on"),
            says("assistant", "two"),
            *newer,
        )
        assert (imported.counts()["responses"], imported.counts()["total"]) == (2, 3180)
        assert [dialog.get("token_usage", {}).get("total") for dialog in imported.dialogs] == [
            980,
            None,
            2200,
        ]


def test_a_repeated_total_is_no_usage() -> None:
    """A token count with the total of the one before is a duplicate."""
    imported = _import(
        says("assistant", "one"), counted(FIRST, FIRST), counted(FIRST, FIRST), counted(SECOND, SUM)
    )
    assert (imported.counts()["responses"], imported.counts()["total"]) == (2, 3180)
    assert imported.codes["usage-repeated"] == 1


def test_totals_alone_are_subtracted() -> None:
    """Without the last usage the difference of the totals counts, which is reported once a file."""
    imported = _import(counted(None, FIRST), counted(None, SUM))
    counts = imported.counts()
    assert (counts["input"], counts["cached"], counts["output"], counts["reasoning_tokens"]) == (
        2900,
        1200,
        280,
        82,
    )
    assert [finding.count for finding in imported.findings if finding.code == "usage-from-totals"] == [2]


@pytest.mark.parametrize(
    "members",
    [
        {"info": {"prompt": 900, "completion": 80}},
        {"info": {"prompt_tokens": 900, "completion_tokens": 80}},
        {"usage": {"prompt_tokens": 900, "completion_tokens": 80, "total_tokens": 980}},
        {"usage": {"input_tokens": 900, "output_tokens": 80}},
    ],
)
def test_older_names_are_read(members: dict[str, Any]) -> None:
    """Older logs have other names for the same counts."""
    counts = _import(says("assistant", "one"), event("token_count", **members)).counts()
    assert (counts["responses"], counts["input"], counts["output"]) == (1, 900, 80)


def test_news_about_limits_are_kept_from_duplicates() -> None:
    """Rate limits that changed are an event although the usage beside them is a duplicate."""
    info = {"total_token_usage": FIRST, "last_token_usage": FIRST}
    limits = [{"primary": {"used_percent": percent}} for percent in (1.0, 1.0, 2.0)]
    imported = _import(*(event("token_count", info=info, rate_limits=limit) for limit in limits))
    assert [event_["data"] for event_ in imported.events("rate-limits")] == [{"rate_limits": limits[2]}]
    assert imported.accounting[0]["of_duplicates"] == {"usage-repeated": 1}
    assert imported.counts()["responses"] == 1


def test_counts_that_are_none_are_reported() -> None:
    """Negative, fractional and spelled counts are left out, and totals that nothing gives are reported."""
    imported = _import(
        says("assistant", "one"), counted({"input_tokens": -1, "output_tokens": "7", "total_tokens": 5})
    )
    assert imported.codes["usage-invalid"] == 2
    imported = _import(says("assistant", "one"), counted({**FIRST, "total_tokens": 5}))
    assert imported.codes["usage-inconsistent"] == 1


COUNTS = st.dictionaries(
    st.sampled_from(["input_tokens", "output_tokens", "cached_input_tokens"]), st.integers(0, 9)
)


@given(st.lists(COUNTS, min_size=1, max_size=6))
def test_differences_add_up_to_the_last_total(steps: list[dict[str, int]]) -> None:
    """The differences of growing totals add up to the last total."""
    total: dict[str, int] = {}
    spent: dict[str, int] = {}
    for step in steps:
        new = {name: total.get(name, 0) + step.get(name, 0) for name in total.keys() | step.keys()}
        for name, number in difference(new, total).items():
            spent[name] = spent.get(name, 0) + number
        total = new
    assert spent == total


def test_totals_that_go_down_start_anew() -> None:
    """After a reset the new total is what was spent."""
    assert difference(FIRST, SUM) == FIRST


def test_a_usage_without_a_valid_count_is_reported() -> None:
    """Counts that are negative, fractional or no numbers are `usage-invalid`, also when no valid one is left."""
    usage = {"input_tokens": -4, "output_tokens": "x", "cached_input_tokens": 1.5}
    rollout = import_lines([meta(), turn(), counted(usage)], "codex-jsonl")  # type: ignore[arg-type]
    stream = import_lines(
        [{"type": "thread.started", "thread_id": "t1"}, {"type": "turn.completed", "usage": usage}],
        "codex-exec-json",
    )
    for imported in (rollout, stream):
        imported.assert_sound()
        assert imported.codes["usage-invalid"] == 3
        assert imported.counts()["responses"] == 0

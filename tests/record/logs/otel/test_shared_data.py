"""The span samples of the shared data give the counts that the MANIFEST states."""

import csv

import pytest

from support.data import shared_data
from support.native_logs import import_files

TRACES = shared_data("traces")
COUNTS = (
    *("sessions", "user_turns", "agent_turns", "tool_calls", "tool_results", "reasoning", "responses"),
    *("input", "cached", "output", "reasoning_tokens", "total", "records", "unreadable"),
)


def _rows():
    with (TRACES / "MANIFEST.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row for row in rows if row["format"] == "otel"]


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row["file"])
def test_samples_have_the_stated_counts(row):
    """Each sample alone has exactly the counts of its row, a sound account and vCons without errors."""
    imported = import_files([TRACES / row["file"]], "otel")
    counts = imported.counts()
    stated = {name: int(row[name]) for name in COUNTS if row[name] != "-"}
    assert {name: counts[name] for name in stated} == stated
    imported.assert_sound()

"""The samples of Gemini CLI and Cursor give the counts and findings that the tables of the shared data state."""

from __future__ import annotations

import csv

import pytest

from support.data import shared_data
from support.native_logs import import_files

TRACES = shared_data("traces")
FORMATS = ("gemini-json", "cursor-jsonl", "cursor-stream-json")
COUNTS = (
    *("sessions", "user_turns", "agent_turns", "tool_calls", "tool_results", "reasoning", "responses"),
    *("input", "cached", "output", "reasoning_tokens", "total", "records", "unreadable"),
)


def _rows(table: str, folder: str) -> list[dict[str, str]]:
    with (TRACES / table).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        {**row, "file": folder + row["file"]}
        for row in rows
        if row["format"] in FORMATS and row["sessions"] != "-"
    ]


MANIFEST = [row for row in _rows("MANIFEST.tsv", "") if not row["file"].startswith("edge-cases/")]
EDGES = _rows("edge-cases/expected.tsv", "edge-cases/")


@pytest.mark.parametrize("row", [*MANIFEST, *EDGES], ids=lambda row: row["file"])
def test_sample_has_the_stated_counts_and_findings(row: dict[str, str]) -> None:
    """Each sample alone has exactly the counts of its row, the findings, and a vCon without errors."""
    imported = import_files([TRACES / row["file"]], row["format"])
    counts = imported.counts()
    stated = {name: int(row[name]) for name in COUNTS if row[name] != "-"}
    assert {name: counts[name] for name in stated} == stated
    if "big" not in row["file"]:  # 13 MB of the same kinds of objects
        imported.assert_sound()
    for finding in row.get("findings", "-").split(";"):
        code, _, number = finding.partition("=")
        if code.startswith("!"):
            assert code[1:] not in imported.codes
        elif code != "-":
            assert imported.codes[code] >= 1
            assert not number or imported.codes[code] == int(number)


def test_there_are_samples() -> None:
    """The tables name samples of all three formats."""
    assert {row["format"] for row in MANIFEST} == set(FORMATS)
    assert len(EDGES) == 2

"""The OpenCode samples of the shared data give the counts and findings that their tables state."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.data import shared_data
from support.native_logs import UNREADABLE, import_files
from support.opencode_logs import FORMAT, import_places

TRACES = shared_data("traces")
COUNTS = (
    "sessions",
    "user_turns",
    "agent_turns",
    "tool_calls",
    "tool_results",
    "reasoning",
    "responses",
    "input",
)
MORE_COUNTS = ("cached", "output", "reasoning_tokens", "total", "records", "unreadable")


def _rows(table: str, folder: str) -> list[dict[str, str]]:
    with (TRACES / table).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [{**row, "file": folder + row["file"]} for row in rows if row["format"] == FORMAT]


EXPECTED = [
    row
    for row in (*_rows("MANIFEST.tsv", ""), *_rows("edge-cases/expected.tsv", "edge-cases/"))
    if row["records"] != "-" or row["file"].endswith("event_stream.jsonl")
]


def _counts_of_store(path: Path) -> tuple[dict[str, int], Counter[str]]:
    report, _ = import_places(path)
    counts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for source in report["files"]:
        counts["records"] += source["accounting"]["records"]
        for finding in source["findings"]:
            codes[finding["code"]] += finding["count"]
        for session in source["sessions"]:
            counts["sessions"] += 1
            told: dict[str, Any] = {**session["counts"], **session["usage"]}
            told["reasoning_tokens"] = session["usage"]["reasoning"]
            told["reasoning"] = session["counts"]["reasoning"]
            counts.update({name: told[name] for name in (*COUNTS[1:], *MORE_COUNTS[:4])})
    counts["unreadable"] = sum(codes[code] for code in UNREADABLE)
    return counts, codes


@pytest.mark.parametrize("row", EXPECTED, ids=[row["file"] for row in EXPECTED])
def test_samples_have_the_stated_counts_and_findings(row: dict[str, str]) -> None:
    """Each sample alone has exactly the counts of its row, and its findings as often as stated."""
    path = TRACES / row["file"]
    if path.is_dir():
        counts, codes = _counts_of_store(path)
    else:
        imported = import_files([path], FORMAT)
        imported.assert_sound()
        counts, codes = Counter(imported.counts()), imported.codes
    stated = {name: int(row[name]) for name in (*COUNTS, *MORE_COUNTS) if row[name] != "-"}
    assert {name: counts[name] for name in stated} == stated
    for required in filter(None, (row.get("findings") or "").split(";")):
        code, _, number = required.partition("=")
        assert codes[code] == int(number), required


def test_the_share_record_is_not_in_the_vcon() -> None:
    """The secret of the edge case's share is nowhere in what comes out."""
    path = TRACES / "edge-cases/opencode-concat-pretty-share-secret-truncated.json"
    for text in import_files([path], FORMAT).texts:
        assert b"00000000-0000-0000-0000-000000000000" not in text
        assert b"share.example" not in text

"""The Codex samples of the shared data give the counts and findings that their tables state."""

from __future__ import annotations

import csv
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.data import shared_data
from support.native_logs import Imported, import_files

TRACES = shared_data("traces")
FORMATS = ("codex-jsonl", "codex-exec-json")
COUNTS = (
    "sessions",
    "user_turns",
    "agent_turns",
    "tool_calls",
    "tool_results",
    "reasoning",
    "responses",
    "input",
    "cached",
    "output",
    "reasoning_tokens",
    "total",
    "records",
    "unreadable",
)


def _rows(table: str, folder: str) -> list[dict[str, str]]:
    with (TRACES / table).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [{**row, "file": folder + row["file"]} for row in rows if row["format"] in FORMATS]


EXPECTED = [
    *_rows("MANIFEST.tsv", ""),
    *_rows("edge-cases/expected.tsv", "edge-cases/"),
]


@cache
def _import(file: str, format: str) -> Imported:
    return import_files([TRACES / file], format)


@pytest.mark.parametrize("row", EXPECTED, ids=[row["file"] for row in EXPECTED])
def test_samples_have_the_stated_counts(row: dict[str, str]) -> None:
    """Each sample alone has exactly the counts of its row, a sound account and a vCon without errors."""
    imported = _import(row["file"], row["format"])
    counts = imported.counts()
    stated = {name: int(row[name]) for name in COUNTS if row[name] != "-"}
    assert {name: counts[name] for name in stated} == stated
    imported.assert_sound()


@pytest.mark.parametrize("row", [row for row in EXPECTED if row.get("findings")], ids=lambda row: row["file"])
def test_edge_cases_have_the_stated_findings(row: dict[str, str]) -> None:
    """The required codes of an edge case appear, as often as stated."""
    found = Counter(finding.code for finding in _import(row["file"], row["format"]).findings)
    for required in row["findings"].split(";"):
        code, _, number = required.partition("=")
        if code.startswith("!"):
            assert not found[code[1:]]
        elif number:
            assert found[code] == int(number), required
        else:
            assert found[code], required


def test_the_compressed_twin_tells_the_same_session() -> None:
    """B-12: a .jsonl.zst gives the same objects as its plain twin."""
    plain = _import("codex-jsonl/own/codex-0.171.0-small-resumed.jsonl", "codex-jsonl").vcon
    packed = _import("codex-jsonl/own/codex-0.171.0-small-resumed.jsonl.zst", "codex-jsonl").vcon
    assert plain == packed


def test_a_second_copy_of_a_session_adds_nothing() -> None:
    """R-17: the same records in a second file are duplicates, and the session is counted once."""
    path = TRACES / "codex-jsonl/own/codex-0.171.0-small-resumed.jsonl"
    imported = import_files([path, path.with_name(f"{path.name}.zst")], "codex-jsonl")
    once = _import("codex-jsonl/own/codex-0.171.0-small-resumed.jsonl", "codex-jsonl")
    assert {**imported.counts(), "records": 150} == once.counts()
    assert imported.accounting[1]["of_duplicates"] == {"duplicate-entry": 150}


def test_files_are_attributed_as_expected() -> None:
    """The patch log gives the File Objects of expected.json."""
    expected = json.loads(Path(TRACES / "file-attribution/expected.json").read_text())["codex-patch.jsonl"]
    found = _import("file-attribution/codex-patch.jsonl", "codex-jsonl").vcon["file_attribution"]["files"]
    assert [_ranges(file) for file in found] == [
        {
            "path": file["path"],
            "ranges": [
                (span["start_line"], span["end_line"], span["type"], span["content_hash"])
                for span in file["ranges"]
            ],
        }
        for file in expected["files"]
    ]


def _ranges(file: dict[str, Any]) -> dict[str, Any]:
    spans = [
        (
            span["start_line"],
            span["end_line"],
            (span.get("contributor") or conversation["contributor"])["type"],
            span["content_hash"],
        )
        for conversation in file["conversations"]
        for span in conversation["ranges"]
    ]
    return {"path": file["path"], "ranges": spans}

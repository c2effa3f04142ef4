"""The sample logs of Claude Code and of its SDK give the counts and findings that their manifest states."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest

from support.data import shared_data, shared_root
from support.native_logs import import_files

FORMATS = ("claude-jsonl", "claude-stream-json")
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


def rows(*place: str) -> list[dict[str, str]]:
    """Return the rows of a table of the shared data, none without it."""
    root = shared_root()
    path = None if root is None else root.joinpath("traces", *place)
    if path is None or not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


SAMPLES = [row for row in rows("MANIFEST.tsv") if row["format"] in FORMATS]
REQUIRED = {row["file"]: row["findings"] for row in rows("edge-cases", "expected.tsv")}


def test_there_are_samples():
    """The shared data holds samples of both formats (skipped visibly without it)."""
    shared_data("traces", "MANIFEST.tsv")
    assert {row["format"] for row in SAMPLES} == set(FORMATS)


@pytest.mark.parametrize("row", SAMPLES, ids=lambda row: row["file"][-60:])
def test_sample_gives_the_stated_counts(row):
    """Counts, usage and required findings are exactly the stated ones, and the vCons have no error."""
    path = shared_data("traces", *Path(row["file"]).parts)
    imported = import_files([path], row["format"])
    imported.assert_sound()
    found = imported.counts()
    stated = {name: int(row[name]) for name in COUNTS if row[name] not in ("-", "")}
    assert {name: found.get(name, 0) for name in stated} == stated
    if row["file"].startswith("edge-cases/"):
        for required in REQUIRED[path.name].split(";"):
            code, _, count = required.partition("=")
            if code == "-":
                continue
            if code.startswith("!"):
                assert not imported.codes[code[1:]]
            elif count:
                assert imported.codes[code] == int(count), code
            else:
                assert imported.codes[code], code


def test_the_text_between_unicode_separators_is_unchanged():
    """B-7: U+2028, NEL, FF and VT inside a text neither cut the record nor change the text."""
    path = shared_data("traces", "edge-cases", "claude-u2028-nel-ff-vt-in-string.jsonl")
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    said = [line["message"]["content"] for line in lines]
    texts = [content if isinstance(content, str) else content[0]["text"] for content in said]
    assert any(separator in text for text in texts for separator in "\u2028\x85\x0b\x0c")
    assert import_files([path], "claude-jsonl").bodies == texts


def test_attribution_of_the_sample_is_the_expected_one():
    """F-01 to F-06: the edits of the sample give the ranges and hashes of expected.json."""
    folder = shared_data("traces", "file-attribution")
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))["claude-edits.jsonl"]
    imported = import_files([folder / "claude-edits.jsonl"], "claude-jsonl")
    found: dict[str, list[tuple[int, int, str, str]]] = {}
    for file in imported.vcon["file_attribution"]["files"]:
        for told in file["conversations"]:
            for span in told["ranges"]:
                by = span.get("contributor", told.get("contributor"))
                found.setdefault(file["path"], []).append(
                    (span["start_line"], span["end_line"], by["type"], span["content_hash"])
                )
    lines = {
        file["path"]: {
            line: span["type"]
            for span in file["ranges"]
            for line in range(span["start_line"], span["end_line"] + 1)
        }
        for file in expected["files"]
    }
    assert {
        path: {line: kind for start, end, kind, _ in spans for line in range(start, end + 1)}
        for path, spans in found.items()
    } == lines
    texts = "".join(span["text"] for span in expected["files"][0]["ranges"]).splitlines(keepends=True)
    for start, end, _, digest in found["src/app.py"]:
        assert digest == hashlib.sha256("".join(texts[start - 1 : end]).encode()).hexdigest()
    for code in expected["findings"]:
        assert imported.codes[code]

"""docs/failure-modes.md names a test for each row, and each named test exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from support.data import REPOSITORY, shared_root

PAGE = REPOSITORY / "docs" / "failure-modes.md"
NAMED = re.compile(r"`(tests/[^`]+\.py)::([^`]+)`")


def rows(heading):
    """The data rows of the first table below a heading, as cells."""
    section = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    table = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1:]]


@cache
def names_in(path):
    """All test functions of a file, as pytest names them without parameters."""
    names = set()
    for node in ast.parse((REPOSITORY / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
    return names


def test_named_tests_exist():
    """Every test that the page names is there under this name."""
    named = NAMED.findall(PAGE.read_text(encoding="utf-8"))
    assert len(named) > 60
    assert [f"{path}::{name}" for path, name in named if name not in names_in(path)] == []


@pytest.mark.parametrize(
    ("heading", "count"), [("The call proof side", 24), ("Recording and the rest", 12), ("kill -9", 7)]
)
def test_each_row_has_one(heading, count):
    """Acceptance 70: no row is without a fault test, and no row of the documents is left out."""
    table = rows(heading)
    assert [row[0] for row in table if not NAMED.search(row[-1])] == []
    assert len(table) == count


@pytest.mark.parametrize(
    ("spec", "start", "end", "left"),
    [
        ("call-proof.md", "## 11. Failure behaviour", "## 12.", 23),
        ("running.md", "## 12. Failure rows and limits", "| constant |", 12),
    ],
)
def test_as_many_as_the_documents(spec, start, end, left):
    """The documents have no more failure rows than the page; skipped where they are not at hand."""
    root = shared_root()
    path = None if root is None else root.parent / "spec" / spec
    if path is None or not path.is_file():
        pytest.skip("the documents are not beside the shared data")
    section = path.read_text(encoding="utf-8").split(start, 1)[1].split(end, 1)[0]
    count = sum(line.startswith("| ") for line in section.splitlines()) - 1
    assert count <= left

"""docs/evidence-profiles.md tells the six points of every profile as the code has them."""

from __future__ import annotations

import dataclasses

import pytest

from onrecord.authorize.evidence import PROFILES
from onrecord.authorize.evidence.registry import LATER
from support.data import REPOSITORY

PAGE = REPOSITORY / "docs" / "evidence-profiles.md"


def table(type_):
    """The rows of the page's table for one type: point to text."""
    rows = {}
    lines = iter(PAGE.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if line == f"| point | `{type_}` |":
            assert next(lines) == "|---|---|"
            for row in lines:
                if not row.startswith("| "):
                    break
                _, point, text, _ = row.split("|")
                rows[point.strip().replace(" ", "_")] = text.strip().strip("`")
    return rows


@pytest.mark.req("CP-055", "CP-056", "CP-057", "CP-059", "CP-060")
@pytest.mark.parametrize("name", PROFILES)
def test_six_points(name):
    """The page has one table per profile, with the six points word for word."""
    assert table(PROFILES[name].type) == dataclasses.asdict(PROFILES[name].facts)


def test_nothing_more():
    """No table is left over from a profile that is gone, and none stands there for one that is not built."""
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("| point | ") == len(PROFILES)
    for name in LATER:
        assert f"| point | `dev.onrecord/{name}`" not in text

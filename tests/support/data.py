"""Finds the shared test vectors; a test without them is skipped and says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


def shared_root() -> Path | None:
    """Return the directory of shared data: `$ONRECORD_SHARED_DATA`, `shared/data` in or beside the checkout."""
    named = os.environ.get("ONRECORD_SHARED_DATA")
    places = [Path(named)] if named else [REPOSITORY / "shared/data", REPOSITORY.parent / "shared/data"]
    return next((place for place in places if place.is_dir()), None)


def shared_data(*parts: str) -> Path:
    """Return a file or directory of the shared data, or skip the test.

    At module level (for parametrization) the whole module is skipped.
    """
    root = shared_root()
    if root is None:
        pytest.skip(
            "shared data not found; set ONRECORD_SHARED_DATA to its directory", allow_module_level=True
        )
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared data has no {'/'.join(parts)}", allow_module_level=True)
    return path

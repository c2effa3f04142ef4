"""kill -9 of every part under load: what `benchmarks/kills.py` shows in 200 rounds, in 20."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.data import REPOSITORY
from support.runtime import child_environment

KILLS = REPOSITORY / "benchmarks" / "kills.py"


def kills(as_user, *arguments):
    """Run the benchmark as an ordinary user; returns its exit status and its document."""
    done = subprocess.run(
        [sys.executable, str(KILLS), "--json", "--parts", "all", *arguments],
        capture_output=True,
        env=child_environment(PYTHONDONTWRITEBYTECODE="1"),
        cwd="/",
        **as_user,
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return done.returncode, json.loads(done.stdout)


@pytest.fixture
def as_user(ordinary_uid):
    """Options of subprocess that make the child an ordinary user."""
    if os.getuid() != 0:
        return {}
    return {"user": ordinary_uid, "group": ordinary_uid, "extra_groups": []}


@pytest.mark.req("CP-042", "CP-043", "CP-114", "CP-117", "CP-120")
@pytest.mark.timeout(300)
def test_twenty_rounds(as_user):
    """No call runs without a journaled valid verification, none twice for one proof, and each one is on record."""
    status, document = kills(as_user, "--rounds", "20")
    assert {one["bar"]: one["value"] for one in document["bars"] if one["value"]} == {}
    assert status == 0
    done = document["results"]["all"]
    assert all(done["killed"].values()), done["killed"]
    assert done["executed"] >= 20


@pytest.mark.timeout(120)
def test_the_check_can_fail(as_user):
    """Where unproven calls may run, in audit mode, the same program finds them and fails."""
    status, document = kills(as_user, "--rounds", "1", "--enforce", "audit")
    assert status == 1
    broken = {one["bar"] for one in document["bars"] if not one["met"]}
    assert "executed calls without a journaled valid verification" in broken
    assert "denied, unproven or re-used calls that were executed" in broken

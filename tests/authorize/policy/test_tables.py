"""Table tests, with the rows of the examples (running.md 4.2)."""

import json

import pytest

from onrecord.authorize.policy import check_policy, read_bundle
from onrecord.authorize.policy.cedar import Policy
from onrecord.authorize.policy.tables import failures, load_rows, read_rows, run_rows
from onrecord.base.errors import PolicyError
from support.data import shared_data
from support.policies import POLICY_SOURCE

CHECKED = check_policy(POLICY_SOURCE)


@pytest.mark.parametrize("outcome", CHECKED.outcomes, ids=lambda outcome: outcome.row.id)
def test_own_rows(outcome):
    """Each row of our copy of the examples comes out as stated."""
    assert outcome.is_as_expected


def test_all_rows_ran():
    """All ten rows were there, and the source is clean."""
    assert [outcome.row.id for outcome in CHECKED.outcomes] == [f"t{n}" for n in range(1, 11)]
    assert CHECKED.source.findings == ()


def test_shared_rows():
    """The rows of the shared data come out as stated, decided by the shared bundle."""
    bundle, findings = read_bundle(shared_data("running/policy.bundle.json").read_bytes())
    assert findings == ()
    outcomes = run_rows(Policy(bundle), load_rows(shared_data("running/policy/tests.json")))
    assert len(outcomes) == 10
    assert [outcome.row.id for outcome in outcomes if not outcome.is_as_expected] == []


def test_differences():
    """A wrong effect and wrong rules are differences; rows without rules compare the effect only."""
    rows, _ = read_rows(
        [
            {"id": "a", "caller": "code-review", "server": "git", "name": "x", "expect": "allow"},
            {"id": "b", "caller": "code-review", "server": "git", "name": "x", "expect": "deny", "rules": []},
            {"id": "c", "caller": "code-review", "server": "git", "name": "x", "expect": "deny"},
        ]
    )
    outcomes = run_rows(CHECKED.policy, rows)
    assert [outcome.is_as_expected for outcome in outcomes] == [False, False, True]
    assert [item.code for item in failures(outcomes)] == ["test-failed"] * 2
    assert outcomes[1].to_json() == {
        "id": "b",
        "expected": {"effect": "deny", "rules": []},
        "observed": {"effect": "deny", "rules": ["onrecord.unknown"], "detail": "unknown_tool"},
        "ok": False,
    }


@pytest.mark.parametrize(
    "value",
    [
        {},
        [1],
        [{"id": "a"}],
        [{"id": "a", "caller": "c", "server": "s", "name": "n", "expect": "maybe"}],
        [{"id": "a", "caller": "c", "server": "s", "name": "n", "expect": "deny", "rule": []}],
        [{"id": "a", "caller": "c", "server": "s", "name": "n", "expect": "deny", "arguments": []}],
    ],
)
def test_malformed_rows(value):
    """A row with an unknown or missing member is refused, so a typo does not pass as a test."""
    assert read_rows(value)[1][0].code == "bundle-malformed"


def test_duplicate_rows(tmp_path):
    """Two rows with one id are refused, from a file as well."""
    row = {"id": "a", "caller": "c", "server": "s", "name": "n", "expect": "deny"}
    assert read_rows([row, row])[1][0].code == "id-duplicate"
    (tmp_path / "rows.json").write_text(json.dumps([row, row]))
    with pytest.raises(PolicyError) as e:
        load_rows(tmp_path / "rows.json")
    assert e.value.code == "policy-lint"

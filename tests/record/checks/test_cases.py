"""The single-fault cases and the expected findings of the shared data."""

import copy
import json

import pytest

from onrecord.record.checks.checker import check
from onrecord.record.operations import read_operations
from support.data import shared_data
from support.vcons import findings, text

DATA = shared_data("vcon")
CASES = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))["cases"]
CLEAN = {
    "ai-agent-example.json": set(),
    "ai-agent-redacted.json": {("placeholder", "/events/1"), ("placeholder", "/events/2")},
    "tool-invocation-minimal.json": {("content-missing", "/events/0"), ("undecided", "/events/0")},
    "both-extensions.json": {("not-performed", "/events/8")},
    "core-transfer-0.5.0.json": {("event-type-unknown", "/events/7/type")},
    "migrate/call-0.5.0.json": set(),
    "migrate/chat-0.5.0.json": {
        ("unknown-member", "/parties/0/role"),
        ("unknown-member", "/parties/1/role"),
        ("originator-redundant", "/dialog/0/originator"),
    },
}


def apply(document, operations):
    """Apply a JSON Patch with the operations add, remove and replace."""
    for operation in operations:
        *path, last = (
            token.replace("~1", "/").replace("~0", "~") for token in operation["path"].split("/")[1:]
        )
        place = document
        for token in path:
            place = place[int(token)] if isinstance(place, list) else place[token]
        if isinstance(place, list):
            if operation["op"] == "add":
                place.insert(len(place) if last == "-" else int(last), operation["value"])
            elif operation["op"] == "remove":
                del place[int(last)]
            else:
                place[int(last)] = operation["value"]
        elif operation["op"] == "remove":
            del place[last]
        else:
            place[last] = operation["value"]
    return document


def base(name):
    return json.loads((DATA / name).read_text(encoding="utf-8"))


class TestCases:
    @pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
    def test_case(self, case):
        """Every listed finding appears, and no error or warning that the base does not have."""
        document = apply(copy.deepcopy(base(case["base"])), case["patch"])
        found = set(findings(document))
        expected = {(one["code"], one["severity"], one["pointer"]) for one in case["expect"] + case["info"]}
        assert expected <= found
        new = found - expected - set(findings(base(case["base"])))
        assert {entry for entry in new if entry[1] != "info"} == set()

    @pytest.mark.parametrize("name", CLEAN)
    def test_own_examples(self, name):
        """The examples of the specification have no error and no warning, and exactly the notes expected."""
        result = check((DATA / name).read_bytes())
        assert {(finding.code, finding.pointer) for finding in result.findings} == CLEAN[name]
        assert {finding.severity for finding in result.findings} <= {"info"}

    @pytest.mark.req("TI-029", "TI-032", "TI-093")
    def test_flow(self):
        """The flow has the findings and the operations that the specification lists for it."""
        expected = json.loads((DATA / "tool-invocation-flow.expected.json").read_text(encoding="utf-8"))
        flow = base("tool-invocation-flow.json")
        assert sorted(findings(flow)) == sorted(
            (one["code"], one["severity"], one["pointer"]) for one in expected["findings"]
        )
        told = {one.operation_id: one.to_json() for one in read_operations(flow["events"]).operations}
        for operation in expected["operations"]:
            own = told[operation["operation_id"]]
            assert {name: own[name] for name in operation if name != "attempts"} == {
                name: value for name, value in operation.items() if name != "attempts"
            }
            assert len(own["attempts"]) == len(operation["attempts"])
            for mine, theirs in zip(own["attempts"], operation["attempts"], strict=True):
                assert theirs.items() <= mine.items()

    @pytest.mark.parametrize("name", ["mcp/2025-11-25.expected.json", "mcp/2026-07-28.expected.json"])
    def test_mapping_vectors(self, name):
        """The expected results of the MCP mapping are without fault."""
        result = check(text(base(name)))
        assert {finding.severity for finding in result.findings} == {"info"}

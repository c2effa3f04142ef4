"""The edge cases of the shared samples through the whole import: told by content, counted, clean, and complete."""

import csv

from onrecord.record.checks.checker import check
from onrecord.record.logs.importing import import_paths
from support.data import shared_data

COUNTS = ("user_turns", "agent_turns", "tool_calls", "tool_results", "reasoning")
USAGE = {"responses": "responses", "input": "input", "cached": "cached", "output": "output", "total": "total"}


def rows():
    with shared_data("traces", "edge-cases", "expected.tsv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def found(part):
    """What the report says about a file, in the columns of the table."""
    sessions = part["sessions"]
    return {
        "format": part["format"],
        "sessions": str(len(sessions)),
        **{name: str(sum(session["counts"][name] for session in sessions)) for name in COUNTS},
        **{name: str(sum(session["usage"][kind] for session in sessions)) for name, kind in USAGE.items()},
        "reasoning_tokens": str(sum(session["usage"]["reasoning"] for session in sessions)),
        "records": str(part["accounting"]["records"]),
    }


def codes(part):
    """How often each code was found: as findings, and with what these count."""
    counts = {}
    for finding in part["findings"]:
        findings, places = counts.get(finding["code"], (0, 0))
        counts[finding["code"]] = findings + 1, places + finding["count"]
    return counts


class TestEdgeCases:
    def test_each_alone(self, tmp_path):
        """Section 8: each file has its counts and findings, no text of it is lost, and no vCon has an error."""
        for number, row in enumerate(rows()):
            file = shared_data("traces", "edge-cases", row["file"])
            report = import_paths([file], to=tmp_path / str(number), verify=True)
            (part,) = report.files
            expected = {name: row[name] for name in found(part) if row[name] != "-"}
            assert {name: found(part)[name] for name in expected} == expected, row["file"]
            counts = codes(part)
            for wanted in row["findings"].split(";"):
                code, _, count = wanted.partition("=")
                if code.startswith("!"):
                    assert code[1:] not in counts, row["file"]
                elif count:
                    # A history of four records that was copied is one finding.
                    assert int(count) in counts.get(code, ()), (row["file"], code)
                elif code != "-":
                    assert code in counts, (row["file"], code)
            assert "content-not-found" not in counts, row["file"]
            assert not report.has_failed
            for vcon in (tmp_path / str(number)).glob("*.vcon"):
                assert check(vcon.read_bytes(), strict=True).is_valid, row["file"]

    def test_as_a_folder(self, tmp_path):
        """All of them at once: the sums add up, nothing fails, and a second import changes nothing."""
        folder = shared_data("traces", "edge-cases")
        first = import_paths([folder], to=tmp_path)
        totals = first.totals()
        assert totals["records"] == totals["mapped"] + totals["duplicates"] + totals["reported"]
        assert not first.has_failed
        assert not first.has_fatal
        assert dict(import_paths([folder], to=tmp_path, everything=True).changes) == {
            "same": sum(first.changes.values())
        }

"""The catalogue: its rows are those of the specification, and every code that the checks use is in it."""

import csv
import re
from pathlib import Path

import onrecord.record
from onrecord.base.findings import known
from onrecord.record.checks.catalogue import CATALOGUE, STRICT
from onrecord.record.checks.collector import MAX_QUOTED, Collector
from support.data import shared_data
from support.vcons import text, vcon

SOURCES = sorted(Path(onrecord.record.__file__).parent.rglob("*.py"))


class TestRows:
    def test_same_as_specification(self):
        """Codes, severities and fatality are those of the specification's table, none more and none less."""
        with shared_data("vcon", "findings.tsv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        expected = {row["code"]: (row["severity"], row["fatal"] == "true") for row in rows}
        assert {name: (code.severity, code.fatal) for name, code in CATALOGUE.items()} == expected

    def test_registered(self):
        """Every code is in the one registry of the house, with a source in the drafts and a meaning."""
        for name, code in CATALOGUE.items():
            assert known()[name] == code
            assert re.match(r"(core|TI|AA)", code.source)
            assert code.meaning
            assert code.severity == "error" or not code.fatal

    def test_strict_raises_warnings_only(self):
        """--strict touches nine warnings of form; warnings that state a fact are not among them."""
        assert len(STRICT) == 9
        assert {CATALOGUE[code].severity for code in STRICT} == {"warning"}
        assert not STRICT & {"call-id-dangling", "credential-found", "credential-key", "url-userinfo"}

    def test_codes_in_the_source_are_known(self):
        """No module adds a code that is not in the catalogue."""
        pattern = re.compile(r'(?:add|report|fault|Problem|Remark)\(\s*"([a-z0-9-]+)"')
        used = {code for path in SOURCES for code in pattern.findall(path.read_text("utf-8")) if "-" in code}
        assert len(used) > 60
        assert used <= set(CATALOGUE)


class TestCollector:
    def test_no_duplicates(self):
        """One code at one place with the same data is one finding; other data make another."""
        collector = Collector()
        for parameter in ("a", "a", "b"):
            collector.add("required-missing", "/events/0", data={"parameter": parameter})
        assert len(collector.in_order({})) == 2

    def test_cap_counts_what_it_leaves_out(self):
        """Beyond the cap findings are counted by severity, so that errors among them still count."""
        collector = Collector(limit=3)
        for number in range(5):
            collector.add("uuid-version", f"/{number}")
        collector.add("uuid-missing", "/uuid")
        assert len(collector.in_order({})) == 3
        assert collector.left_out == {"info": 3}
        assert collector.errors == 1

    def test_notes_do_not_crowd_out_errors(self):
        """At the cap a more severe finding takes the place of a less severe one, and not the other way round."""
        collector = Collector(limit=2)
        for code in (
            "uuid-version",
            "updated-before-created",
            "uuid-missing",
            "created-at-missing",
            "uuid-invalid",
        ):
            collector.add(code, f"/{code}")
        collector.add("member-null", "/late")
        assert {one.severity for one in collector.in_order({})} == {"error"}
        assert collector.left_out == {"info": 2, "warning": 1, "error": 1}

    def test_document_order(self):
        """Findings come in the order of the document, then by code; what is absent comes last in its object."""
        collector = Collector()
        document = {"b": [{"y": 1, "x": 2}], "a": 1}
        for pointer in ("/a", "/b/0/x", "/b/0/z", "/b/0/y", "/b/0", "/zz", "/b/10"):
            collector.add("unknown-member", pointer)
        collector.add("member-null", "/a")
        order = [finding.pointer for finding in collector.in_order(document)]
        assert order == ["/b/0", "/b/0/y", "/b/0/x", "/b/0/z", "/b/10", "/a", "/a", "/zz"]

    def test_long_names_are_cut(self):
        """A member name of any length does not make a message of any length."""
        collector = Collector()
        collector.add("closed-object-member", "/x", data={"object": "y" * 10_000})
        assert len(collector.in_order({})[0].message) < 3 * MAX_QUOTED


class TestMessages:
    def test_no_content_in_findings(self):
        """No finding quotes a value: a marker in every slot of a bad vCon is in none of them."""
        from onrecord.record.checks.checker import check

        marker = "MARKER-4711"
        event = dict.fromkeys(
            (
                "time",
                "sessions",
                "party",
                "operation_id",
                "attempt",
                "server",
                "tool",
                "body",
                "encoding",
                "url",
            ),
            marker,
        )
        event.update({"type": "tool-result", "mediatype": marker, "content_hash": marker, "decision": marker})
        document = vcon(event, {"type": marker}, uuid=marker, created_at=marker, subject=3)
        document["dialog"] = [
            {"type": marker, "start": marker, "parties": marker, "body": {"password": marker}}
        ]
        result = check(text(document))
        assert len(result.findings) > 10
        assert marker not in str([finding.to_json() for finding in result.findings])

"""The catalogue: its rows are those of the specification, and every code that the checks use is in it."""

import csv
import re
from pathlib import Path

import pytest

import onrecord.record
from onrecord.base.errors import UsageError
from onrecord.base.findings import known
from onrecord.record.checks.catalogue import CATALOGUE, STRICT, known_code
from onrecord.record.checks.collector import MAX_POINTER_CHARACTERS, Collector
from onrecord.record.checks.messages import MAX_QUOTED
from onrecord.record.checks.suppression import Suppressions
from support.data import shared_data
from support.vcons import TEXT_CONTENT, UUID, findings, invocation, text, vcon

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
        """No module adds a code that is not in the catalogue; the importers have one of their own, and a test of it."""
        pattern = re.compile(r'(?:add|report|fault|Problem|Remark)\(\s*"([a-z0-9-]+)"')
        sources = [path for path in SOURCES if "logs" not in path.parts]
        used = {code for path in sources for code in pattern.findall(path.read_text("utf-8")) if "-" in code}
        assert len(used) > 60
        assert used <= set(CATALOGUE)


_OF_THE_FORMS = (
    "alg",
    "cty",
    "x5c",
    "protected",
    "header",
    "signature",
    "signatures",
    "payload",
    "recipients",
    "b64",
)
"""Members of the envelopes that the sentences show."""

_OF_OTHERS = ("vcon", "local", "remote", "a")
"""The member of the version, those of a SessionId, and the one of an example of JSON."""


class TestAdvice:
    def test_every_code_has_a_sentence(self):
        """Each code says in one short paragraph what to change, and no two codes that differ in kind say it alike."""
        for name, code in CATALOGUE.items():
            assert code.change[0].isupper(), name
            assert code.change.endswith((".", '."')), name
            assert 20 < len(code.change) < 200, name
            assert code.change.lower() != code.meaning.lower(), name
        assert len({code.change for code in CATALOGUE.values()}) > 0.95 * len(CATALOGUE)

    def test_errors_always_ask_for_a_change(self):
        """Nothing to change: this is said of notes, and of the two warnings that no change of the file can cure."""
        without = {name for name, code in CATALOGUE.items() if code.change.startswith("Nothing to change")}
        severe = {name for name in without if CATALOGUE[name].severity != "info"}
        assert severe == {"attachment-dialog-missing", "invocation-after-disallowed"}

    def test_members_in_quotes_exist(self):
        """A member that a sentence shows as "name": is one that some table, header or address knows."""
        from onrecord.record.checks import event_tables, tables

        known = {*_OF_THE_FORMS, *_OF_OTHERS}
        for table in (*tables.OBJECTS.values(), tables.VCON, tables.PARTY, tables.DIALOG, tables.ATTACHMENT):
            known |= set(table.kinds)
        known |= set(event_tables.EVENT.kinds)
        for name, code in CATALOGUE.items():
            for member in re.findall(r'"(\w+)":', code.change):
                assert member in known, (name, member)

    @pytest.mark.parametrize(
        ("code", "bad", "good"),
        [
            ("uuid-missing", {"uuid": ""}, {"uuid": "01a19b83-0f20-8b33-832a-bc92ac6830cd"}),
            (
                "uuid-invalid",
                {"uuid": "urn:uuid:01a19b83-0f20-8b33-832a-bc92ac6830cd"},
                {"uuid": "01a19b83-0f20-8b33-832a-bc92ac6830cd"},
            ),
            ("created-at-missing", {"created_at": None}, {"created_at": "2026-11-30T12:00:00Z"}),
            ("date-invalid", {"created_at": "30/11/2026"}, {"created_at": "2026-11-30T13:00:00.5+01:00"}),
            (
                "date-not-normal",
                {"created_at": "2026-11-30t12:00:00.000z"},
                {"created_at": "2026-11-30T12:00:00Z"},
            ),
            ("extension-not-listed", {"extensions": []}, {"extensions": ["tool-invocation"]}),
            (
                "session-required",
                {"sessions": []},
                {"sessions": [{"start": "2026-11-02T12:00:00Z", "parties": [0]}]},
            ),
            ("did-invalid", {"parties": [{"did": "example"}]}, {"parties": [{"did": "did:example:123"}]}),
            (
                "civicaddress-case",
                {"parties": [{"civicaddress": {"COUNTRY": "CH"}}]},
                {"parties": [{"civicaddress": {"country": "CH"}}]},
            ),
            (
                "agent-party-type",
                {"parties": [{"agent_meta": {"model_id": "m", "model_provider": "p"}}]},
                {"parties": [{"agent_meta": {"model_id": "m", "model_provider": "p"}, "type": "bot"}]},
            ),
            ("group-present", {"group": [{"uuid": UUID}]}, {}),
            ("redacted-empty", {"redacted_from": {}}, {}),
        ],
    )
    def test_members_of_the_vcon(self, code, bad, good):
        """A vCon with the fault has the finding; written as the sentence shows, it has not."""
        assert code in {one for one, _, _ in findings(vcon(invocation(), **bad))}
        assert code not in {one for one, _, _ in findings(vcon(invocation(), **good))}

    @pytest.mark.parametrize(
        ("code", "bad", "good"),
        [
            ("attempt-invalid", {"attempt": 0}, {"attempt": 1}),
            ("integer-as-float", {"attempt": 1.0}, {"attempt": 1}),
            ("event-session-missing", {"sessions": None}, {"sessions": [0]}),
            ("server-reserved", {"server": "!other"}, {"server": "!host"}),
            (
                "server-url-secret",
                {"server": "https://u:p@mcp.example.com/"},
                {"server": "https://mcp.example.com/"},
            ),
            (
                "server-url-form",
                {"server": "https://mcp.example.com/?a=1"},
                {"server": "https://mcp.example.com/"},
            ),
            ("event-dialog-member", {"dialog": 0}, {}),
            ("encoding-missing", {**TEXT_CONTENT, "encoding": None}, TEXT_CONTENT),
            (
                "encoding-invalid",
                {**TEXT_CONTENT, "encoding": "base64"},
                {**TEXT_CONTENT, "encoding": "base64url"},
            ),
            (
                "encoding-body-type",
                {**TEXT_CONTENT, "body": {"a": 1}},
                {**TEXT_CONTENT, "body": {}, "encoding": "json"},
            ),
            ("mediatype-missing", {**TEXT_CONTENT, "mediatype": None}, TEXT_CONTENT),
            (
                "mediatype-invalid",
                {**TEXT_CONTENT, "mediatype": "wav"},
                {**TEXT_CONTENT, "mediatype": "audio/x-wav"},
            ),
            (
                "content-hash-invalid",
                {"url": "https://media.example.com/a", "content_hash": "sha512:" + "A" * 86},
                {"url": "https://media.example.com/a", "content_hash": "sha512-" + "A" * 86},
            ),
            (
                "url-not-https",
                {"url": "http://media.example.com/call.wav"},
                {"url": "https://media.example.com/call.wav"},
            ),
            ("url-invalid", {"url": "call.wav"}, {"url": "https://media.example.com/call.wav"}),
        ],
    )
    def test_members_of_an_event(self, code, bad, good):
        """The same for a tool event and its content."""
        with_fault = {one for one, _, _ in findings(_with_event(bad))}
        assert code in with_fault
        assert code not in {one for one, _, _ in findings(_with_event(good))}

    def test_unknown_code(self):
        """Whoever asks for a code that is none gets the nearest ones."""
        with pytest.raises(UsageError) as caught:
            known_code("uuid-mising")
        assert caught.value.code == "finding-code-unknown"
        assert "uuid-missing" in caught.value.hint
        with pytest.raises(UsageError):
            known_code("z" * 100_000)


def _with_event(members):
    event = {name: value for name, value in invocation(**members).items() if value is not None}
    return vcon(event)


class TestCollector:
    def test_no_duplicates(self):
        """One code at one place with the same data is one finding; other data make another."""
        collector = Collector()
        for parameter in ("a", "a", "b"):
            collector.add("required-missing", "/events/0", data={"parameter": parameter})
        assert len(collector.in_order({})) == 2

    def test_found_again_and_severer(self):
        """A finding that is added again as an error is one, in whichever order, and is not lost as a warning."""
        for order in (("warning", "error"), ("error", "warning")):
            collector = Collector(limit=1)
            for severity in order:
                collector.add("jws-alg-refused", "/signatures/0", severity=severity)
            assert [finding.severity for finding in collector.in_order({})] == ["error"]
            assert collector.errors == 1
            collector.add("chain-weak", "/signatures/0")
            assert collector.left_out == {"error": 1}

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

    def test_long_names_do_not_multiply(self):
        """Pointers of one file are kept up to a number of characters; findings beyond are counted, and none is lost."""
        collector = Collector()
        head = "/" + "n" * (MAX_POINTER_CHARACTERS // 10)
        for number in range(50):
            collector.add("uuid-missing", f"{head}/{number}")
        kept = len(collector.in_order({}))
        assert kept == 9
        assert collector.left_out == {"error": 41}
        assert collector.errors == 50
        collector.add("critical-unsupported", head)
        assert collector.has("critical-unsupported")

    def test_suppressed_are_counted_before_the_cap(self):
        """What is suppressed takes no room, is counted once, and does not fail a run by being left out."""
        chosen = Suppressions.of([("date-not-normal", "/dialog"), ("uuid-version", "")])
        collector = Collector(limit=3, suppress=chosen)
        for number in range(10):
            collector.add("date-not-normal", f"/dialog/{number}/start")
        collector.add("date-not-normal", "/dialog/0/start")
        collector.add("uuid-version", "/uuid")
        collector.add("date-not-normal", "/created_at")
        collector.add("critical-unsupported", "/critical/0")
        assert collector.suppressed >= 11
        assert not collector.left_out
        assert [one.pointer for one in collector.in_order({})] == ["/created_at", "/critical/0"]
        collector.clear()
        assert collector.suppressed == 0

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

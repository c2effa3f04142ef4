"""The words of the importers: event types, providers, finding codes."""

import re
from pathlib import Path

import pytest

import onrecord.record.logs
from onrecord.base import findings
from onrecord.record.checks.catalogue import CATALOGUE as OF_VCONS
from onrecord.record.logs import catalogue, event_types
from onrecord.record.logs.catalogue import CATALOGUE
from onrecord.record.logs.inference import PROVIDERS, provider_of

ADDED = {"credential-replaced", "importer-failed", "file-twin", "vcon-not-replaced", "content-not-found"}
"""Codes that the specification's table does not have."""


def specification():
    path = Path(__file__).resolve().parents[4] / "shared/spec/native-logs.md"
    if not path.exists():
        pytest.skip("the specification is not beside the checkout")
    return path.read_text(encoding="utf-8")


class TestEventTypes:
    def test_those_of_the_specification(self):
        """The constants are the event types of section 1.4, no others."""
        section = specification().partition("### 1.4")[2].partition("### 1.5")[0]
        assert set(re.findall(r"`([a-z-]+)`", section)) == event_types.KNOWN

    def test_each_says_what_it_is(self):
        """Each constant has the name of its value, and a sentence."""
        source = Path(event_types.__file__).read_text(encoding="utf-8")
        rows = re.findall(r'^([A-Z_]+): Final = "([a-z-]+)".*\n"""([A-Z].*\.)"""$', source, re.MULTILINE)
        assert {value for _, value, _ in rows} == event_types.KNOWN
        assert all(name.lower().replace("_", "-") == value for name, value, _ in rows)


class TestProviders:
    @pytest.mark.parametrize(
        ("model", "provider"),
        [
            ("claude-opus-4-5", "anthropic"),
            ("GPT-5.2-codex", "openai"),
            ("o3-mini", "openai"),
            ("gemini-2.5-pro", "google"),
            ("codestral-latest", "mistral"),
            ("Qwen3-coder", "alibaba"),
            ("o2", None),
            ("<synthetic>", None),
            ("anthropic/claude", None),
            ("", None),
            ("x" * 1_000_000, None),
        ],
    )
    def test_prefixes(self, model, provider):
        """The provider is inferred from the prefixes of section 1.5 only."""
        assert provider_of(model) == provider

    def test_no_prefix_hides_another(self):
        """No prefix is the start of another with a different provider, so their order does not matter."""
        for prefix, provider in PROVIDERS.items():
            assert provider_of(prefix) == provider


class TestCatalogue:
    def test_those_of_the_specification(self):
        """Codes and severities are those of section 9; those of the importer itself are added."""
        rows = re.findall(r"^\| (error|warning|info) \| ([a-z0-9, -]+) \|$", specification(), re.MULTILINE)
        expected = {code: severity for severity, codes in rows for code in codes.split(", ")}
        assert len(expected) == 63
        assert {name: code.severity for name, code in CATALOGUE.items() if name not in ADDED} == expected
        assert {name for name, code in CATALOGUE.items() if code.fatal} == {"unreadable-file"}

    def test_registered_as_log(self):
        """Every code is in the one registry, in the group log; the shared ones are vCon codes of the same severity."""
        for name, code in CATALOGUE.items():
            assert "log" in findings.groups(name)
            registered = findings.known()[name]
            if name in catalogue.SHARED:
                assert registered == OF_VCONS[name]
                assert registered.severity == code.severity
                assert findings.groups(name) == ("log", "vcon")
            else:
                assert registered == code

    def test_rows(self):
        """Each row has a rule as its source, a meaning, and a sentence for the reader that is no other's."""
        for name, code in CATALOGUE.items():
            assert re.match(r"(R-|D-LOG-|A-|F-|section )\d", code.source), name
            assert code.meaning[0].islower() or code.meaning.startswith("NaN"), name
            assert code.change.endswith("."), name
            assert len(code.change) < 160, name
        assert len({code.meaning for code in CATALOGUE.values()}) == len(CATALOGUE)

    def test_codes_in_the_source_are_known(self):
        """No importer reports a code that is not in the catalogue."""
        pattern = re.compile(r'(?:findings|_findings)\.(?:add|count)\(\s*"([a-z0-9-]+)"')
        used = {
            code
            for path in Path(onrecord.record.logs.__file__).parent.rglob("*.py")
            for code in pattern.findall(path.read_text("utf-8"))
        }
        assert "attribution-hash-short" in used
        assert used <= set(CATALOGUE)

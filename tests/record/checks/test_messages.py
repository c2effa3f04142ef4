"""Messages of findings: names and types filled in, no template that cannot be, nothing of any length."""

import doctest
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import onrecord.record.checks.messages as module
from onrecord.record.checks.catalogue import CATALOGUE
from onrecord.record.checks.messages import MAX_QUOTED, TEMPLATES, message
from support.vcons import findings, invocation, text, vcon


def said(document):
    from onrecord.record.checks.checker import check

    return {finding.code: finding.message for finding in check(text(document)).findings}


class TestTemplates:
    def test_example(self):
        """The example in the module's docstring runs."""
        assert doctest.testmod(module).failed == 0

    def test_codes_exist(self):
        """Every template belongs to a code of the catalogue."""
        assert set(TEMPLATES) <= set(CATALOGUE)

    @pytest.mark.parametrize("code", sorted(CATALOGUE))
    def test_with_and_without_data(self, code):
        """Each code has a message whether its data are known or not, and none shows a placeholder."""
        names = {name for one in TEMPLATES.get(code, ()) for _, name, _, _ in Formatter().parse(one) if name}
        for data in (None, {}, dict.fromkeys(names - {"here"}, "WORD")):
            made = message(code, CATALOGUE[code].meaning, "/dialog/0/start", data)
            assert made
            assert "{here}" not in made
            assert "None" not in made
            assert ("WORD" in made) is bool(data)

    @given(
        st.sampled_from(sorted(CATALOGUE)),
        st.text(max_size=300).map(lambda name: "/" + name.replace("~", "~0").replace("/", "~1")),
        st.dictionaries(st.sampled_from(["expected", "found", "size", "name", "x"]), st.text(max_size=500)),
    )
    def test_any_names(self, code, pointer, data):
        """Names from a file are put in as they are, braces too, and cut; the message stays short."""
        made = message(code, CATALOGUE[code].meaning, pointer, data)
        assert len(made) < 200 + (MAX_QUOTED + 20) * (len(data) + 1)


class TestWhatIsSaid:
    def test_parameter(self):
        """What is missing is named in the sentence itself."""
        assert said(vcon(invocation(server=None)))["required-missing"].startswith("server is missing")

    def test_version(self):
        """An unknown version says by which one the file is read, or how that one is found."""
        assert said(vcon(vcon="0.0.3"))["version-unknown"].endswith("; read as 0.3.0")
        assert said(vcon(vcon=""))["version-unknown"].endswith("; read by the version that the names tell")

    def test_types(self):
        """A wrong type says what was expected and what was found."""
        assert said(vcon(subject=3))["type-mismatch"] == "subject: expected String, found Integer"

    def test_renamed(self):
        """An old name says the new one."""
        document = vcon(dialog=[{"type": "text", "mimetype": "text/plain", "encoding": "none", "body": "x"}])
        assert "mimetype is an older name; this version has mediatype" in said(document)["legacy-name"]

    def test_elements_are_called_alike(self):
        """Elements of one array with one fault have one message, so that they can be counted."""
        made = {
            finding.message
            for finding in check_findings(vcon(parties=[1, 2, 3]))
            if finding.code == "type-mismatch"
        }
        assert made == {"an element of parties: expected Object, found Integer"}

    def test_no_value_in_brackets(self):
        """What the catalogue says about a code in brackets is not repeated at each place."""
        for code, severity, _ in findings(vcon(invocation())):
            assert severity == "info"
            assert "(data:" not in message(code, CATALOGUE[code].meaning, "", None)


def check_findings(document):
    from onrecord.record.checks.checker import check

    return check(text(document)).findings

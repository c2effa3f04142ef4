"""Rule files and profiles: what is read, and that every mistake is named with its place."""

import os
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import UsageError
from onrecord.record.redaction import PROFILES, Rules
from onrecord.record.redaction.rule import ACTIONS
from onrecord.record.redaction.rules import MAX_RULES_BYTES, profile_text

GOOD = """
name = "mine"
type = "names masked"
extends = ["credentials"]
allow_extensions = ["lawful_basis"]

[[rule]]
path = "/parties/*/name"
action = "pseudonym"
everywhere = "words"

[[rule]]
event_type = "reasoning"
action = "placeholder"

[[rule]]
regex = 'Case [0-9]{1,8}'
words = ["Heron", "Kestrel"]
label = "project"
"""
WRONG = {
    "no TOML": ("name = ", "redaction-rules-invalid"),
    "no rule": ('name = "x"', "redaction-rules-invalid"),
    "unknown key": ('nmae = "x"\n[[rule]]\npath = "/a"', "redaction-rules-invalid"),
    "unknown key of a rule": ('[[rule]]\npth = "/a"', "redaction-rules-invalid"),
    "no path": ('[[rule]]\naction = "remove"', "redaction-rules-invalid"),
    "unknown action": ('[[rule]]\npath = "/a"\naction = "shred"', "redaction-rules-invalid"),
    "unknown pattern": ('[[rule]]\npattern = "mood"', "redaction-rules-invalid"),
    "pattern with another action": (
        '[[rule]]\npattern = "email"\naction = "hash"',
        "redaction-rules-invalid",
    ),
    "bad path": ('[[rule]]\npath = "a"\naction = "remove"', "redaction-path-invalid"),
    "slow expression": ("[[rule]]\nregex = '(a+)+b'", "redaction-pattern-slow"),
    "bad expression": ("[[rule]]\nregex = '('", "redaction-pattern-invalid"),
    "short word": ('[[rule]]\nwords = ["a"]', "redaction-rules-invalid"),
    "bad label": ('[[rule]]\npattern = "email"\nlabel = "A B"', "redaction-rules-invalid"),
    "placeholder inside": (
        '[[rule]]\npath = "/events/*/input"\naction = "placeholder"',
        "redaction-rules-invalid",
    ),
    "event type elsewhere": ('[[rule]]\nevent_type = "x"\npath = "/dialog/*"', "redaction-rules-invalid"),
    "everywhere with a pattern": (
        '[[rule]]\npattern = "email"\neverywhere = true',
        "redaction-rules-invalid",
    ),
    "everywhere is odd": ('[[rule]]\npath = "/a"\neverywhere = "yes"', "redaction-rules-invalid"),
    "condition": ('[[rule]]\npath = "/a"\nwhere = ["x"]', "redaction-rules-invalid"),
    "rule is no table": ("rule = 1", "redaction-rules-invalid"),
    "unknown profile": ('extends = ["piii"]', "redaction-profile-unknown"),
    "empty": ("", "redaction-rules-invalid"),
    "text of a flag": ('name_source = "no"\n[[rule]]\npattern = "email"', "redaction-rules-invalid"),
    "nested": ("a = " + "[" * 3000, "redaction-rules-invalid"),
}


def load(tmp_path, text, name="mine.toml"):
    (tmp_path / name).write_text(text)
    return Rules.load(tmp_path / name)


class TestFiles:
    def test_good(self, tmp_path):
        """A rule file is read with what it extends; its own rules come first."""
        rules = load(tmp_path, GOOD)
        assert (rules.name, rules.type) == ("mine", "names masked")
        assert [rule.action for rule in rules.rules] == ["pseudonym", "placeholder", "mask", "mask"]
        assert rules.rules[1].where == {"type": frozenset(["reasoning"])}
        assert rules.rules[-1].has_credentials
        assert rules.allowed_extensions == {"lawful_basis"}

    @pytest.mark.parametrize(("text", "code"), WRONG.values(), ids=WRONG)
    def test_wrong(self, tmp_path, text, code):
        """Each mistake is refused by its code, with the file and what to do."""
        with pytest.raises(UsageError) as refused:
            load(tmp_path, text)
        error = refused.value
        assert error.code == code
        assert error.hint
        if code != "redaction-profile-unknown":
            assert error.where.file.endswith("mine.toml")

    def test_line(self, tmp_path):
        """A mistake in a rule is named with the line of the rule."""
        with pytest.raises(UsageError) as refused:
            load(tmp_path, '[[rule]]\npattern = "email"\n\n[[rule]]\npath = "x"\naction = "remove"\n')
        assert (refused.value.where.line, refused.value.where.pointer) == (4, "/rule/1/path")

    def test_unreadable(self, tmp_path):
        """A missing file, a folder, a file that is no UTF-8 and a huge one are refused."""
        (tmp_path / "b.toml").write_bytes(b"\xff")
        (tmp_path / "c.toml").write_bytes(b"#" * (MAX_RULES_BYTES + 1))
        for name, code in (
            ("a.toml", "redaction-rules-unreadable"),
            ("", "redaction-rules-unreadable"),
            ("b.toml", "redaction-rules-invalid"),
            ("c.toml", "redaction-rules-invalid"),
        ):
            with pytest.raises(UsageError) as refused:
                Rules.load(tmp_path / name)
            assert refused.value.code == code

    def test_extends_files(self, tmp_path):
        """A rule file extends others beside it; a circle is refused."""
        load(tmp_path, '[[rule]]\npattern = "email"', "base.toml")
        assert len(load(tmp_path, 'extends = ["base.toml", "credentials"]').rules) == 2
        with pytest.raises(UsageError) as refused:
            load(tmp_path, 'extends = ["mine.toml"]')
        assert refused.value.code == "redaction-rules-invalid"
        with pytest.raises(UsageError) as refused:
            load(tmp_path, 'extends = ["gone.toml"]')
        assert refused.value.code == "redaction-rules-unreadable"

    def test_many_files(self, tmp_path):
        """A few files that extend each other many times over are refused, not read for ever."""
        for level in range(1, 8):
            load(tmp_path, '[[rule]]\npattern = "email"', f"e{level}.toml")
        for level in range(1, 7):
            (tmp_path / f"e{level}.toml").write_text(f"extends = {[f'e{level + 1}.toml'] * 6}")
        with pytest.raises(UsageError) as refused:
            Rules.load(tmp_path / "e1.toml")
        assert refused.value.code == "redaction-rules-invalid"

    @pytest.mark.parametrize("name", ["fifo.toml", "/dev/zero"])
    def test_no_regular_file(self, tmp_path, name):
        """A pipe or a device is refused, named by hand or by another file, and is not waited for."""
        os.mkfifo(tmp_path / "fifo.toml")
        with pytest.raises(UsageError) as refused:
            load(tmp_path, f'extends = ["{name}"]')
        assert refused.value.code == "redaction-rules-unreadable"
        with pytest.raises(UsageError) as refused:
            Rules.load(tmp_path / name)
        assert refused.value.code == "redaction-rules-unreadable"

    @given(st.text('[]rule="pathction\n/*.{}#1', max_size=60))
    def test_any_text(self, text):
        """Any text is rules, or refused by a code."""
        try:
            members = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError):
            return
        try:
            Rules.of(members)
        except UsageError as error:
            assert error.code.startswith("redaction-")


class TestProfiles:
    @pytest.mark.parametrize("name", PROFILES)
    @pytest.mark.req("AA-135")
    def test_named(self, name, tmp_path):
        """Each profile is read, says what it is for, and is the same when copied into a file to start from."""
        rules = Rules.named(name)
        assert tomllib.loads(profile_text(name))["about"]
        assert all(rule.action in ACTIONS for rule in rules.rules)
        (tmp_path / "copy.toml").write_text(profile_text(name))
        copied = Rules.load(tmp_path / "copy.toml")
        assert [(rule.name, rule.path, rule.action) for rule in copied.rules] == [
            (rule.name, rule.path, rule.action) for rule in rules.rules
        ]

    def test_unknown(self):
        """An unknown name is refused, with the nearest."""
        with pytest.raises(UsageError) as refused:
            Rules.named("contents")
        assert refused.value.code == "redaction-profile-unknown"
        assert "content" in refused.value.hint

    def test_combined(self):
        """Several sets apply one after the other; not naming the source wins; no set at all is refused."""
        one, other = Rules.named("pii"), Rules.named("unlinkable")
        both = Rules.combined([one, other])
        assert both.rules == one.rules + other.rules
        assert not both.names_source
        assert Rules.combined([one]) is one
        with pytest.raises(UsageError) as refused:
            Rules.combined([])
        assert refused.value.code == "redaction-rules-missing"

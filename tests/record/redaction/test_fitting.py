"""Paths that can never do anything: what is refused, what is meant instead, and what is let pass."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.errors import UsageError
from onrecord.record.redaction import PROFILES, Rules, redact
from onrecord.record.redaction.fitting import fault_of
from onrecord.record.redaction.paths import parse_path, written
from onrecord.record.vcon.model import Vcon
from support.redaction import full
from support.vcons import text

NEVER = {
    "/partys/*/name": "did you mean /parties/*/name?",
    "$.partys[*].name": "did you mean /parties/*/name?",
    "/parties/*/nmae": "did you mean /parties/*/name?",
    "/dialog/body": "did you mean /dialog/*/body?",
    "/parties/*/civicaddress/contry": "did you mean /parties/*/civicaddress/country?",
    "/vcs/0": "known here: branch, ",
    "/nope/*/type": "known here: ",
    "/dialog/bdy": "/dialog is an array; go on with * or an index",
    "/sessions/*/environment/sandboxes/x": "/sessions/*/environment/sandboxes is an array",
    "/subject/0": "/subject has no members; end the path there",
    "/parties/*/role": "known here: agent_meta, ",
    "/mood": "known here: ",
}
STRUCTURE = [
    "/parties/*/type",
    "/dialog/*/mimetype",
    "/dialog/0/parties/0",
    "/events/*/session/*",
    "/extensions",
    "/created_at",
    "/uuid",
    "/redacted/uuid",
]
FITS = [
    "$",
    "/**",
    "/*",
    "/parties",
    "/parties/*",
    "/parties/7/name",
    "/**/type",
    "/dialog/*/body/any/thing",
    "/events/*/input/**/type",
    "/sessions/*/session_id/0/local",
    "/sessions/*/environment/sandboxes/*",
    "/parties/*/civicaddress/country",
    "/dialog/*/alg",
    "/dialog/*/token_usage",
    "/onrecord/x",
]


def of(path, *others, action="remove", **members):
    return Rules.of({"rule": [{"path": path, "action": action, **members}, *others]})


class TestNever:
    @pytest.mark.parametrize(("path", "hint"), NEVER.items())
    def test_refused(self, path, hint):
        """A path to what nobody knows is refused by its code, with what was probably meant."""
        with pytest.raises(UsageError) as refused:
            of(path)
        assert refused.value.code == "redaction-path-unknown"
        assert refused.value.hint.startswith(hint)
        assert refused.value.where.pointer == "/rule/0/path"

    @pytest.mark.parametrize("path", STRUCTURE)
    def test_structure(self, path):
        """A path to nothing but structure is refused by its code, with what to do instead."""
        with pytest.raises(UsageError) as refused:
            of(path, action="mask")
        assert refused.value.code == "redaction-path-structure"
        assert refused.value.hint

    def test_file_and_line(self, tmp_path):
        """The file, the line and the rule are named, also of a file that another one extends."""
        base = '[[rule]]\npattern = "email"\n\n[[rule]]\npath = "/partys/*/name"\naction = "remove"\n'
        (tmp_path / "base.toml").write_text(base)
        (tmp_path / "mine.toml").write_text('extends = ["base.toml"]')
        with pytest.raises(UsageError) as refused:
            Rules.load(tmp_path / "mine.toml")
        where = refused.value.where
        assert (where.file, where.line) == (str(tmp_path / "base.toml"), 4)
        assert where.pointer == "/rule/1/path"

    def test_long_name(self):
        """An error shows no more than the beginning of a name."""
        assert len(fault_of(("a" * 900,), keeps=()).message) < 250


class TestFits:
    @pytest.mark.parametrize("path", FITS)
    def test_passes(self, path):
        """What may stand in some vCon is let pass."""
        assert of(path).rules

    def test_search_looks_at_structure(self):
        """A search for a pattern may look at structure, since a secret can hide in the shape of a word."""
        rules = Rules.of({"rule": [{"path": "/dialog/*/mimetype", "pattern": "email"}]})
        assert rules.rules

    @pytest.mark.parametrize("kept", ["/mood", "/*", "/**"])
    def test_kept(self, kept):
        """A member that nobody knows may be kept, and then other rules look into it; one with another name may not."""
        assert of("/mood/secret", {"path": kept, "action": "keep"}).rules
        with pytest.raises(UsageError):
            of("/mood/secret", {"path": "/other", "action": "keep"})

    def test_kept_is_redacted(self):
        """What such a rule takes out of a kept member is gone."""
        document, _ = full()
        document["mood"] = {"secret": "s", "open": "o"}
        rules = of("/mood/secret", {"path": "/mood", "action": "keep"})
        assert redact(Vcon.read(text(document)), rules=rules).vcon.members["mood"] == {"open": "o"}

    def test_kept_at_an_index(self):
        """An index and a wildcard may be the same place, in either of the two rules."""
        assert of("/parties/*/role/x", {"path": "/parties/1/role", "action": "keep"}).rules
        assert of("/parties/1/role/x", {"path": "/parties/*/*", "action": "keep"}).rules
        with pytest.raises(UsageError):
            of("/parties/*/role", {"path": "/dialog/*/role", "action": "keep"})

    @pytest.mark.parametrize("name", PROFILES)
    def test_profiles(self, name):
        """No profile has a rule that can never do anything."""
        for rule in Rules.named(name).rules:
            assert not rule.is_own
            assert fault_of(rule.path, keeps=(), is_search=rule.is_search) is None

    @settings(max_examples=60)
    @given(
        st.lists(
            st.sampled_from(
                ["parties", "dialog", "events", "sessions", "session_id", "type", "name", "x", "0", "*"]
            ),
            min_size=1,
            max_size=5,
        ),
        st.sampled_from(["remove", "mask", "hash"]),
    )
    def test_refused_ones_do_nothing(self, steps, action):
        """Whatever is refused would have taken nothing out: no useful rule is refused."""
        path = parse_path("/" + "/".join(steps))
        if fault_of(path, keeps=()) is None:
            return
        document, _ = full()
        document["sessions"][0]["session_id"] = {"local": "a", "remote": "b"}
        rule = of("/subject", action=action).rules[0]
        rules = Rules(name="x", type="x", rules=(replace(rule, path=path),))
        assert redact(Vcon.read(text(document)), rules=rules).report.total == 0


class TestWritten:
    @given(st.lists(st.text("ab/~*1", min_size=1, max_size=4), min_size=1, max_size=4))
    def test_round_trip(self, names):
        """A path is written so that it reads as the same."""
        pointer = "/".join(["", *(name.replace("~", "~0").replace("/", "~1") for name in names)])
        assert written(parse_path(pointer)) == pointer


class TestTold:
    def test_own_rules(self):
        """Rules of one's own that took nothing out are in the report, a rule that another one was before of, too."""
        document, _ = full()
        rules = of(
            "/subject",
            {"path": "/subject", "action": "mask"},
            {"path": "/subject", "action": "keep"},
            {"path": "/parties/*/name", "where": {"type": "nobody"}, "action": "remove"},
            {"regex": "no such text"},
        )
        report = redact(Vcon.read(text(document)), rules=rules).report
        assert report.idle == ["rules 2", "rules 4", "rules 5"]
        assert report.to_json()["tookOutNothing"] == report.idle
        assert report.total == sum(report.counts.values()) > 0

    def test_profiles_are_silent(self):
        """Rules of a profile say nothing: most vCons lack most of what a profile looks for."""
        document = {"uuid": "01a19b83-0f20-8b33-832a-bc92ac6830cd", "created_at": "2026-11-02T09:00:00Z",
                    "parties": []}  # fmt: skip
        assert redact(Vcon.read(text(document)), rules=Rules.named("audit")).report.idle == []

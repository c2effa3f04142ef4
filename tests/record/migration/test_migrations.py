"""Names, versions, identity, and what is refused."""

import json
import re

import pytest

from onrecord.base.dates import ManualClock
from onrecord.base.errors import MalformedError, UsageError
from onrecord.base.ids import domain_uuid_bits
from onrecord.record.migration import STEPS, migrate
from onrecord.record.migration.report import ACTIONS
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.versions import KNOWN
from support.data import REPOSITORY
from support.legacy import NOW, UUID, changes, migrated, old_vcon, result, turned_back
from support.vcons import read


class TestNames:
    @pytest.mark.parametrize(
        ("old", "new", "value"),
        [
            ("redacted", "redacted_from", {"uuid": "x", "type": "PII"}),
            ("amended", "amended_from", {"uuid": "x"}),
            ("appended", "amended_from", {"uuid": "x"}),
            ("must_support", "critical", ["ai_agent"]),
        ],
    )
    def test_renamed(self, old, new, value):
        """Each old name of the vCon Object gives way to the present one, in its place."""
        done = migrated({"uuid": UUID, old: value, "parties": [{}]})
        assert list(done.vcon.members) == ["uuid", new, "parties", "updated_at"]
        assert done.vcon.members[new] == value

    def test_both_names(self):
        """Old and new name with one value become one; with two values both stay."""
        reference = {"uuid": "x"}
        assert "amended" not in result(old_vcon(amended=reference, amended_from=reference))
        differing = old_vcon(amended=reference, amended_from={"uuid": "y"})
        assert result(differing)["amended"] == reference
        assert ("name-kept", "/amended") in changes(differing)

    def test_true_is_not_one(self):
        """1 and true are different values, so both names stay."""
        assert ("name-kept", "/amended") in changes(
            old_vcon(amended={"uuid": 1}, amended_from={"uuid": True})
        )

    def test_one_number(self):
        """1 and 1.0 are one value; they would be once written."""
        done = result(old_vcon(amended={"uuid": 1}, amended_from={"uuid": 1.0}))
        assert "amended" not in done

    @pytest.mark.parametrize("value", [{}, None])
    @pytest.mark.parametrize("name", ["redacted", "appended", "amended", "redacted_from", "amended_from"])
    def test_empty_references(self, name, value):
        """An empty reference says nothing and goes."""
        assert name not in result(old_vcon(**{name: value}) | {name: value})

    def test_group(self):
        """An empty group goes, one with content stays and is told."""
        assert "group" not in result(old_vcon(group=[]))
        assert result(old_vcon(group=[{"uuid": "x"}]))["group"] == [{"uuid": "x"}]
        assert ("group-kept", "/group") in changes(old_vcon(group=[{"uuid": "x"}]))

    def test_reference_hash(self):
        """A reference by url has its hash joined, too."""
        reference = {"url": "https://example.com/v", "alg": "SHA-512", "signature": "A" * 86}
        done = result(old_vcon(vcon="0.0.1", appended=reference))
        assert done["amended_from"]["content_hash"] == "sha512-" + "A" * 86

    def test_unknown_members(self):
        """What 0.5.0 does not know stays as it is, and is told."""
        document = old_vcon(meta={"a": 1}, parties=[{"role": "agent"}], analysis=[{"transcript": "x"}])
        assert result(document)["parties"] == [{"role": "agent"}]
        assert [entry for entry in changes(document) if entry[0] == "unknown-member"] == [
            ("unknown-member", "/meta"),
            ("unknown-member", "/parties/0/role"),
            ("unknown-member", "/analysis/0/transcript"),
        ]


class TestVersions:
    @pytest.mark.parametrize("version", KNOWN)
    def test_dropped(self, version):
        """The version member of every version goes, and the report remembers it."""
        done = migrated(old_vcon(vcon=version))
        assert "vcon" not in done.vcon.members
        assert turned_back(done)["vcon"] == version

    def test_content_is_no_version(self):
        """A version member with anything else in it is not repeated in the report."""
        done = migrated(old_vcon(vcon="hunter2"))
        assert "hunter2" not in json.dumps(done.report.to_json())
        assert not done.report.is_reversible

    @pytest.mark.parametrize("content", [{"uuid": UUID, "parties": []}, ["a"], "Hello. " * 9])
    def test_wrapped(self, content):
        """A version member that holds content, for instance a vCon, is kept and reported."""
        done = migrated(old_vcon(vcon=content))
        assert done.vcon.members["vcon"] == content
        assert ("version-kept", "/vcon") in changes(old_vcon(vcon=content))
        assert turned_back(done)["vcon"] == content

    @pytest.mark.parametrize("version", ["0.5.1", "0.10.0", "1.0.0"])
    def test_newer(self, version):
        """A vCon of a later version is refused: nothing is known about its rules."""
        with pytest.raises(MalformedError) as error:
            migrated(old_vcon(vcon=version))
        assert error.value.code == "version-newer"

    @pytest.mark.parametrize("member", ["critical", "must_support"])
    def test_critical(self, member):
        """A vCon that needs an extension nobody knows here is not processed (record.md 2.8)."""
        with pytest.raises(MalformedError) as error:
            migrated(old_vcon(**{member: ["x"]}))
        assert error.value.code == "critical-unsupported"

    def test_depth(self):
        """A vCon that was built deeper than any that is read is refused."""
        value = []
        for _ in range(5_000):
            value = [value]
        with pytest.raises(MalformedError) as error:
            migrate(Vcon({"uuid": UUID, "meta": value}))
        assert error.value.code == "json-depth"

    def test_other_target(self):
        """No other version is written."""
        with pytest.raises(UsageError) as error:
            migrate(read(old_vcon()), to="0.4.0")
        assert error.value.code == "migration-target"


class TestIdentity:
    def test_unsigned(self):
        """An unsigned vCon keeps uuid and created_at, and gets the time of the migration."""
        done = result(old_vcon(updated_at="2026-05-04T11:00:00Z"))
        assert (done["uuid"], done["created_at"], done["updated_at"]) == (UUID, "2026-05-04T10:00:00Z", NOW)

    def test_unchanged(self):
        """Nothing to do leaves the very bytes, also for what was signed."""
        text = b'{ "uuid" : "%s", "parties": [ {} ] , "created_at": "2026-05-04T10:00:00Z"}' % UUID.encode()
        for new_instance in (False, True):
            done = migrated(text, new_instance=new_instance)
            assert done.to_bytes() == text
            assert not done.report.changes

    def test_new_instance(self):
        """What was signed becomes a new instance that refers to its source."""
        done = result(old_vcon(), new_instance=True)
        assert done["amended_from"] == {"uuid": UUID}
        assert done["uuid"] != UUID
        assert done["uuid"][14] == "7"
        assert done["created_at"] == done["updated_at"] == NOW

    def test_domain(self):
        """With a domain the new uuid is of version 8 and ends in the domain's bits."""
        uuid = result(old_vcon(), new_instance=True, domain="example.com")["uuid"]
        assert int(uuid.replace("-", ""), 16) & (2**62 - 1) == domain_uuid_bits("example.com")

    def test_chain(self):
        """A source that was amended itself is what the result refers to; it holds the older reference."""
        done = migrated(old_vcon(amended={"uuid": "older"}), new_instance=True)
        assert done.vcon.members["amended_from"] == {"uuid": UUID}
        assert not done.report.is_reversible

    def test_redacted(self):
        """A redacted vCon keeps saying so; it cannot refer to its source besides (record.md 2.3)."""
        reference = {"uuid": "less", "type": "PII"}
        done = migrated(old_vcon(redacted=reference), new_instance=True)
        assert done.vcon.members["redacted_from"] == reference
        assert "amended_from" not in done.vcon.members
        assert "amended-from-left-out" in [change.code for change in done.report.changes]

    @pytest.mark.parametrize("wrong", [0, False, 7])
    def test_wrong_references(self, wrong):
        """A wrong value in the place of a reference is no empty one: it is not dropped as such, nor stood beside."""
        done = migrated(old_vcon(redacted=wrong), new_instance=True)
        assert done.vcon.members["redacted_from"] is wrong
        assert "amended_from" not in done.vcon.members
        done = migrated(old_vcon(amended=wrong), new_instance=True)
        assert done.vcon.members["amended_from"] == {"uuid": UUID}
        assert not done.report.is_reversible
        assert turned_back(done)["uuid"] == UUID

    def test_no_uuid(self):
        """Without a uuid there is nothing to refer to."""
        assert "amended_from" not in result(old_vcon(uuid=None), new_instance=True)

    @pytest.mark.parametrize("value", ["hunter2", 5, None, "x" * 100])
    def test_wrong_date(self, value):
        """Only a date is remembered; anything else might be a secret."""
        done = migrated({**old_vcon(), "updated_at": value})
        assert "previous" not in json.dumps(done.report.to_json())
        assert not done.report.is_reversible


class TestText:
    def test_large_integers(self):
        """An integer that canonical JSON cannot write is written exactly all the same."""
        done = migrated(b'{"vcon":"0.4.0","uuid":"x","parties":[],"meta":12345678901234567890}')
        assert b'"meta":12345678901234567890' in done.to_bytes()
        assert done.report.is_reversible

    def test_rounded(self):
        """A number that a double does not keep is told."""
        done = migrated(b'{"vcon":"0.4.0","uuid":"x","parties":[],"meta":0.10000000000000000001}')
        assert ("number-rounded", "/meta") in [
            (change.code, change.pointer) for change in done.report.changes
        ]

    @pytest.mark.parametrize("value", [rb'"\ud800"', b"1e999"])
    def test_not_written(self, value):
        """A lone surrogate and a number beyond a double are refused, not changed in silence."""
        with pytest.raises(MalformedError) as error:
            migrated(b'{"vcon":"0.4.0","uuid":"x","parties":[],"meta":%s}' % value).to_bytes()
        assert error.value.code == "not-canonical"

    def test_source_untouched(self):
        """The vCon that is given keeps its members and bytes, and shares none with the result."""
        source = read(old_vcon(dialog=[{"type": "text", "mimetype": "text/plain", "body": "x"}]))
        raw = source.raw
        done = migrate(source, clock=ManualClock(NOW))
        done.vcon.members["parties"].append({})
        assert source.to_bytes() == raw
        assert len(source.members["parties"]) == 2


def test_codes_on_the_page():
    """The page about upgrades has every code of a report, with what it means, and no other."""
    page = (REPOSITORY / "docs" / "upgrade-vcons.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| `([a-z-]+)` \| ({'|'.join(ACTIONS)}) \| (.+) \|$", page, re.MULTILINE)
    stated = {code: (action, meaning) for code, action, meaning in rows}
    assert stated == {code: (step.action, step.meaning) for code, step in STEPS.items()}

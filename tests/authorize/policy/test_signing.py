"""From a source directory to a signed bundle (running.md 4.2)."""

import json
import os
import shutil
from datetime import UTC, datetime

import pytest

from onrecord.authorize.policy import PolicyLintError, check_policy, load_bundle, sign_source, write_source
from onrecord.authorize.policy.source import read_source
from onrecord.base.errors import ConfigurationError, PolicyError, StorageError
from support.data import shared_data
from support.policies import POLICY_SOURCE

NOW = datetime(2026, 11, 30, 9, 0, 0, tzinfo=UTC)


@pytest.fixture
def source(tmp_path):
    """A writable copy of the example source."""
    shutil.copytree(POLICY_SOURCE, tmp_path / "policy")
    return tmp_path / "policy"


def edit(source, **members):
    path = source / "bundle.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | members))


def codes(source):
    return [item.code for item in check_policy(source).source.findings]


def test_bytes_are_those_of_the_examples():
    """Signing the shared source gives the shared bundle, byte for byte."""
    made = read_source(shared_data("running/policy"), now=NOW)
    assert made.data == shared_data("running/policy.bundle.json").read_bytes()


def test_sign_and_load(source, signer, trusted, tmp_path):
    """What is signed loads, and created is the time of signing."""
    path = tmp_path / "policy.bundle.json"
    made = sign_source(source, bundle=path, signer=signer, now=NOW)
    loaded = load_bundle(path, trusted)
    assert loaded == made
    assert (loaded.created, loaded.version) == ("2026-11-30T09:00:00Z", 3)
    assert os.stat(path).st_mode & 0o777 == 0o644
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "policy",
        "policy.bundle.json",
        "policy.bundle.json.sig",
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_version_must_rise(source, signer, tmp_path, version):
    """A version that is not above the present one is refused, and nothing is written."""
    path = tmp_path / "b.json"
    sign_source(source, bundle=path, signer=signer, now=NOW)
    before = path.read_bytes(), path.with_name("b.json.sig").read_bytes()
    edit(source, version=version)
    with pytest.raises(PolicyError) as e:
        sign_source(source, bundle=path, signer=signer)
    assert e.value.code == "policy-version"
    assert (path.read_bytes(), path.with_name("b.json.sig").read_bytes()) == before
    edit(source, version=4)
    assert sign_source(source, bundle=path, signer=signer).version == 4


def test_present_bundle_is_unreadable(source, signer, tmp_path):
    """A bundle whose version cannot be read is not replaced."""
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(PolicyError) as e:
        sign_source(source, bundle=tmp_path / "b.json", signer=signer)
    assert e.value.code == "policy-present"


def test_errors_are_not_signed(source, signer, tmp_path):
    """A source with an error, or with a row that comes out differently, is not signed."""
    rows = json.loads((source / "tests.json").read_text())
    rows[0]["expect"] = "deny"
    (source / "tests.json").write_text(json.dumps(rows))
    with pytest.raises(PolicyLintError) as e:
        sign_source(source, bundle=tmp_path / "b.json", signer=signer)
    assert [item.code for item in e.value.findings] == ["test-failed"]
    assert not (tmp_path / "b.json").exists()


def test_interrupted(source, signer, trusted, tmp_path, monkeypatch):
    """When only the signature was renamed, the old version is still the present one, and signing again works."""
    path = tmp_path / "b.json"
    sign_source(source, bundle=path, signer=signer, now=NOW)
    edit(source, version=4)
    rename, done = os.rename, []

    def crash(a, b):
        if done:
            raise OSError(28, "No space left on device")
        done.append(b)
        rename(a, b)

    monkeypatch.setattr(os, "rename", crash)
    with pytest.raises(StorageError) as e:
        sign_source(source, bundle=path, signer=signer)
    assert e.value.code == "policy-unwritable"
    monkeypatch.undo()
    with pytest.raises(PolicyError):
        load_bundle(path, trusted)
    assert sign_source(source, bundle=path, signer=signer).version == 4
    assert load_bundle(path, trusted).version == 4
    assert not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


class TestSource:
    """A source that is not whole is told with the file."""

    @pytest.mark.parametrize("name", ["schema.cedar", "bindings/git.json"])
    def test_missing_file(self, source, name):
        """A missing file is named."""
        (source / name).unlink()
        (found,) = check_policy(source).source.findings
        assert (found.code, found.data["file"]) == ("source-file", name)

    def test_missing_bundle(self, source):
        """Without bundle.json there is no source."""
        (source / "bundle.json").unlink()
        with pytest.raises(PolicyError) as e:
            check_policy(source)
        assert e.value.code == "policy-missing"

    def test_other_schema(self, source):
        """schema.cedar is a copy of the shipped one and nothing else."""
        (source / "schema.cedar").write_text("entity X;\n")
        assert codes(source) == ["source-schema"]

    @pytest.mark.parametrize("member", ["created", "policies", "schema"])
    def test_members_of_signing(self, source, member):
        """Members that signing makes are not written by hand."""
        edit(source, **{member: "x"})
        assert "bundle-malformed" in codes(source)

    @pytest.mark.parametrize(
        "name", ["../secret.json", "/etc/passwd", "a/../../b.json", "", 7, None, ".hidden"]
    )
    def test_bindings_name(self, source, name):
        """A bindings file lies below the source."""
        document = json.loads((source / "bundle.json").read_text())
        document["servers"][0]["bindings"] = name
        edit(source, servers=document["servers"])
        assert codes(source)[0] == "bundle-malformed"

    def test_duplicate_member(self, source):
        """Source files are read strictly too."""
        (source / "bindings" / "git.json").write_text('[{"tool":"a","tool":"b"}]')
        (found, *_) = check_policy(source).source.findings
        assert (found.code, found.data["file"]) == ("bundle-json", "bindings/git.json")

    def test_not_utf8(self, source):
        """A rule file that is not UTF-8 is named."""
        (source / "policies" / "50-review.cedar").write_bytes(b"\xff")
        (found,) = check_policy(source).source.findings
        assert (found.code, found.data["file"]) == ("source-file", "policies/50-review.cedar")

    def test_rules_are_joined_in_name_order(self, source):
        """Files are joined by name, and a missing line feed joins nothing by accident."""
        (source / "policies" / "60-a.cedar").write_text("// no line feed")
        (source / "policies" / "70-b.cedar").write_text('@id("last") permit(principal, action, resource);')
        made = read_source(source)
        assert made.findings == ()
        assert made.bundle.policies.endswith(
            '// no line feed\n@id("last") permit(principal, action, resource);\n'
        )

    def test_findings_name_the_file(self, source):
        """A finding about a rule or a binding names the file that it stands in."""
        (source / "policies" / "60-a.cedar").write_text(
            '@id("a") permit(principal in Group::"x", action, resource);'
        )
        bindings = json.loads((source / "bindings" / "git.json").read_text())
        bindings[0]["decide"] = ["op"]
        (source / "bindings" / "git.json").write_text(json.dumps(bindings))
        found = {item.code: item.data["file"] for item in check_policy(source).source.findings}
        assert found == {
            "binding-undecided": "bindings/git.json",
            "rule-group-unknown": "policies/60-a.cedar",
        }

    def test_without_tests(self, source):
        """tests.json may be absent; one that is malformed is an error."""
        (source / "tests.json").write_text("{}")
        assert codes(source) == ["bundle-malformed"]
        (source / "tests.json").unlink()
        assert codes(source) == []


class TestStarter:
    """What init writes."""

    @pytest.mark.parametrize("mode", ["user", "system"])
    @pytest.mark.parametrize("uid", [0, 1000, 60_001])
    def test_clean(self, tmp_path, signer, mode, uid):
        """It passes its own check in its mode and can be signed, whoever sets it up."""
        files = write_source(tmp_path / "policy", mode=mode, uid=uid, approver="ada")
        assert all(path.exists() for path in files)
        checked = check_policy(tmp_path / "policy", mode=mode)
        assert checked.source.findings == ()
        bundle = sign_source(tmp_path / "policy", bundle=tmp_path / "b.json", signer=signer, mode=mode)
        assert (bundle.user_mode is not None) == (mode == "user")
        assert bundle.servers == {}
        assert [rule for rule in checked.policy.rules if rule.startswith("onrecord")] == ["onrecord.unknown"]

    def test_never_overwrites(self, tmp_path):
        """A file that is there is kept, and named."""
        write_source(tmp_path / "policy", mode="user", uid=1000, approver="ada")
        (tmp_path / "policy" / "tests.json").write_text("mine")
        with pytest.raises(ConfigurationError) as e:
            write_source(tmp_path / "policy", mode="user", uid=1000, approver="ada")
        assert e.value.code == "exists"
        assert (tmp_path / "policy" / "tests.json").read_text() == "mine"

    def test_same_rules_as_the_examples(self, tmp_path):
        """The starter rules are those of the examples, so what was tested there holds here."""
        write_source(tmp_path / "policy", mode="user", uid=1000, approver="ada")
        name = "policies/10-starter.cedar"
        assert (tmp_path / "policy" / name).read_text() == (POLICY_SOURCE / name).read_text()

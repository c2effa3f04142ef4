"""`onrecord init`: what it makes, for whom, and that it never overwrites."""

from __future__ import annotations

import datetime
import os
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from onrecord.authorize.ownership import problems
from onrecord.authorize.policy import load_bundle
from onrecord.authorize.setup import (
    People,
    ca_certificate_path,
    ca_key_path,
    check_directory,
    directories,
    initialize,
    make_directories,
    plan,
    renew,
)
from onrecord.authorize.setup.files import Owner, give, replace, write_new
from onrecord.authorize.setup.initialize import Initialized
from onrecord.authorize.setup.places import Directory
from onrecord.authorize.setup.renewal import read_certificates
from onrecord.authorize.setup.template import configuration_text, text_of
from onrecord.base.configuration import Configuration
from onrecord.base.configuration_keys import KEYS
from onrecord.base.errors import ConfigurationError, KeyAccessError, UsageError
from onrecord.base.keys import read_trusted_keys, signer_from_uri
from onrecord.cli import init
from onrecord.cli.main import main
from support.runtime import child_environment, onrecord

NOW = datetime.datetime(2026, 11, 30, 10, 0, tzinfo=datetime.UTC)


@pytest.fixture
def made(short_dir):
    """A user-mode installation below a short directory."""
    return initialize(short_dir / "inst", mode="user", host="host.example.com", now=NOW)


class TestUserMode:
    def test_loads_and_signs(self, made):
        """What was written loads again, and its bundle has a good signature of the policy key."""
        loaded = Configuration.load(made.configuration.file)
        assert loaded == made.configuration
        assert made.signed
        bundle = load_bundle(loaded.policy.bundle, read_trusted_keys(loaded.trust.policy), mode="user")
        assert bundle.version == 1
        assert bundle.user_mode is not None
        assert bundle.servers == {}

    def test_every_key_is_written(self, made):
        """The file holds every key of user mode, each below a comment line."""
        text = made.configuration.file.read_text()
        document = tomllib.loads(text)
        lines = text.splitlines()
        for key in KEYS:
            if "user" in key.modes:
                table, _, name = key.name.rpartition(".")
                assert name in (document[table] if table else document)
                assert lines.index(f"# {key.comment}") >= 0

    def test_everything_lies_below(self, made, short_dir):
        """With DIR, the file is DIR/onrecord.toml, and config, state and runtime lie below DIR."""
        assert made.configuration.file == short_dir / "inst" / "onrecord.toml"
        for path in (*made.files, *(one.path for one in directories(made.configuration))):
            assert path.is_relative_to(short_dir / "inst")

    def test_modes(self, made):
        """Directories are 0700 and keys 0600, whatever the umask is."""
        for directory in directories(made.configuration):
            check_directory(directory)
            assert stat.S_IMODE(directory.path.stat().st_mode) == 0o700
        for path in made.files:
            assert not stat.S_IMODE(path.stat().st_mode) & 0o022
            if path.parent.name == "keys":
                assert stat.S_IMODE(path.stat().st_mode) == 0o600

    def test_keys_are_distinct_and_trusted(self, made):
        """Each purpose has its own key; both journal keys and the policy key stand in the trust files."""
        keys = made.configuration.keys
        uris = (keys.proof, keys.authority_journal, keys.recorder_journal, keys.record, keys.policy)
        kids = [signer_from_uri(uri, purpose="test").kid for uri in uris]
        assert len(set(kids)) == 5
        assert set(read_trusted_keys(made.configuration.trust.journal)) == {kids[1], kids[2]}
        assert set(read_trusted_keys(made.configuration.trust.policy)) == {kids[4]}

    def test_names_the_keys_that_belong_elsewhere(self, made):
        """CA key and policy key are named, because no daemon needs them."""
        policy = Path(made.configuration.keys.policy.removeprefix("file:"))
        assert set(made.offline_keys) == {ca_key_path(made.configuration), policy}

    def test_never_overwrites(self, made, short_dir):
        """A second run is refused and changes no byte."""
        before = {path: path.read_bytes() for path in made.files}
        with pytest.raises(ConfigurationError) as caught:
            initialize(short_dir / "inst", mode="user")
        assert caught.value.code == "exists"
        assert {path: path.read_bytes() for path in made.files} == before

    @pytest.mark.parametrize(
        "name", ["config/keys/record.pem", "config/trust/policy.keys", "config/policy.bundle.json"]
    )
    def test_one_file_is_enough(self, short_dir, name):
        """A single file that is in the way, a dangling link too, refuses the whole run before anything is made."""
        path = short_dir / "inst" / name
        path.parent.mkdir(parents=True)
        path.symlink_to("/nonexistent")
        with pytest.raises(ConfigurationError) as caught:
            initialize(short_dir / "inst", mode="user")
        assert caught.value.code == "exists"
        assert not (short_dir / "inst" / "onrecord.toml").exists()
        assert not (short_dir / "inst" / "config/keys/proof.pem").exists()

    def test_long_path(self, short_dir):
        """A directory whose sockets would be too long is refused, with the hint, and nothing is made."""
        deep = short_dir / ("x" * 100)
        with pytest.raises(ConfigurationError) as caught:
            initialize(deep, mode="user")
        assert caught.value.code == "socket-path-long"
        assert "paths.runtime" in caught.value.hint
        assert not deep.exists()

    def test_without_directory(self, home):
        """Without DIR the usual places of the user are planned."""
        planned = plan(None, mode="user")
        assert planned.file == home / ".config/onrecord/onrecord.toml"
        assert planned.paths.state == home / ".local/state/onrecord"

    def test_values_and_servers(self, short_dir):
        """Keys and servers can be given, and odd characters in them survive."""
        args = ("--base", 'a "b" \\ c', "tab\there")
        made = initialize(
            short_dir / "inst",
            mode="user",
            values={"recorder.domain": "records.example.com", "authority.durability": "relaxed"},
            servers={"files.v2": {"command": "example-server", "args": args, "tiServer": "example-files"}},
        )
        loaded = Configuration.load(made.configuration.file)
        assert loaded.recorder.domain == "records.example.com"
        assert loaded.authority.durability == "relaxed"
        assert loaded.servers["files.v2"].args == args
        assert loaded.servers["files.v2"].ti_server == "example-files"


class TestCertificates:
    def test_ca(self, made):
        """The CA is as running.md 9 says: pathlen 0, keyCertSign and cRLSign, ten years, five minutes back."""
        ca = read_certificates(ca_certificate_path(made.configuration))[0]
        assert ca.subject.rfc4514_string() == "CN=onrecord record CA host.example.com"
        constraints = ca.extensions.get_extension_for_class(x509.BasicConstraints)
        assert (constraints.value.ca, constraints.value.path_length, constraints.critical) == (True, 0, True)
        usage = ca.extensions.get_extension_for_class(x509.KeyUsage).value
        assert (usage.key_cert_sign, usage.crl_sign, usage.digital_signature) == (True, True, False)
        assert ca.not_valid_before_utc == NOW - datetime.timedelta(minutes=5)
        assert (ca.not_valid_after_utc - ca.not_valid_before_utc).days in {3652, 3653}
        assert isinstance(ca.public_key(), ec.EllipticCurvePublicKey)
        assert isinstance(ca.signature_hash_algorithm, hashes.SHA256)

    def test_leaf(self, made):
        """The chain holds the leaf without the root; it is for the record key, for signatures only, 825 days."""
        chain = read_certificates(made.configuration.keys.record_chain)
        assert len(chain) == 1
        leaf = chain[0]
        leaf.verify_directly_issued_by(read_certificates(ca_certificate_path(made.configuration))[0])
        assert leaf.subject.rfc4514_string() == "CN=onrecord recorder host.example.com"
        assert (
            leaf.public_key() == signer_from_uri(made.configuration.keys.record, purpose="record").public_key
        )
        usage = leaf.extensions.get_extension_for_class(x509.KeyUsage).value
        assert (usage.digital_signature, usage.key_cert_sign) == (True, False)
        assert (leaf.not_valid_after_utc - leaf.not_valid_before_utc).days == 825
        with pytest.raises(x509.ExtensionNotFound):
            leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName)

    def test_domain(self, short_dir):
        """recorder.domain becomes the DNS name of the leaf."""
        made = initialize(short_dir / "i", mode="user", values={"recorder.domain": "records.example.com"})
        leaf = read_certificates(made.configuration.keys.record_chain)[0]
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == ["records.example.com"]

    def test_long_host_name(self, short_dir):
        """A host name of 64 characters fits into the common name, cut."""
        made = initialize(short_dir / "i", mode="user", host="h" * 64)
        ca = read_certificates(ca_certificate_path(made.configuration))[0]
        assert len(ca.subject.rfc4514_string()) == len("CN=") + 64


class TestRenewal:
    def test_new_leaf(self, made):
        """--renew makes a new leaf for the same key by the same CA and keeps the old chain."""
        old = made.configuration.keys.record_chain.read_bytes()
        later = NOW + datetime.timedelta(days=800)
        renewed = renew(made.configuration, host="host.example.com", now=later)
        leaf = read_certificates(renewed.chain)[0]
        leaf.verify_directly_issued_by(read_certificates(ca_certificate_path(made.configuration))[0])
        assert (
            leaf.public_key() == signer_from_uri(made.configuration.keys.record, purpose="record").public_key
        )
        assert leaf.not_valid_after_utc == renewed.not_after > later
        assert renewed.previous.read_bytes() == old
        assert stat.S_IMODE(renewed.chain.stat().st_mode) == 0o600

    def test_ca_key_is_away(self, made):
        """Without the CA's key nothing is renewed, and the hint says what to do."""
        ca_key_path(made.configuration).unlink()
        before = made.configuration.keys.record_chain.read_bytes()
        with pytest.raises(KeyAccessError) as caught:
            renew(made.configuration)
        assert caught.value.code == "key-missing"
        assert made.configuration.keys.record_chain.read_bytes() == before

    def test_foreign_ca(self, made, short_dir):
        """A CA key that does not belong to the CA's certificate is refused."""
        other = initialize(short_dir / "other", mode="user")
        ca_key_path(made.configuration).write_bytes(ca_key_path(other.configuration).read_bytes())
        with pytest.raises(ConfigurationError) as caught:
            renew(made.configuration)
        assert caught.value.code == "ca-mismatch"

    def test_damaged_chain(self, made):
        """A chain file that is no PEM does not stop a renewal; a damaged CA certificate does."""
        made.configuration.keys.record_chain.write_bytes(b"damaged")
        renew(made.configuration)
        ca_certificate_path(made.configuration).write_bytes(b"damaged")
        with pytest.raises(ConfigurationError) as caught:
            renew(made.configuration, now=NOW + datetime.timedelta(days=1))
        assert caught.value.code == "certificate-unreadable"


class TestSystemMode:
    def test_needs_root(self, short_dir, monkeypatch):
        """System mode is made by root only."""
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        with pytest.raises(UsageError) as caught:
            initialize(short_dir / "inst", mode="system")
        assert caught.value.code == "needs-root"

    @pytest.mark.root
    def test_missing_accounts(self, short_dir):
        """Accounts that are missing are all named with the commands that make them; nothing is made."""
        with pytest.raises(ConfigurationError) as caught:
            initialize(
                short_dir / "inst", mode="system", values={"principals.authority": "nobody-has-this-name"}
            )
        assert caught.value.code == "accounts-missing"
        assert (
            "useradd --system --user-group --no-create-home --shell /usr/sbin/nologin nobody-has-this-name"
            in caught.value.hint
        )
        assert not (short_dir / "inst").exists()

    @pytest.mark.root
    def test_numeric_principals(self, short_dir, uid_block):
        """Without accounts each file belongs to the number of its principal, and the owners' table holds."""
        made = initialize(
            short_dir / "inst",
            mode="system",
            values=numeric_principals(uid_block),
            servers={"files": {"command": "example-server", "user": uid_block[2]}},
        )
        found = made.configuration
        for directory in directories(found):
            check_directory(directory)
        assert owner(found.keys.proof) == owner(found.keys.authority_journal) == uid_block[0]
        assert owner(found.keys.record) == owner(found.keys.recorder_journal) == uid_block[1]
        assert found.keys.record_chain.stat().st_uid == uid_block[1]
        assert found.paths.records.stat().st_gid == uid_block[12]
        assert stat.S_IMODE(found.paths.records.stat().st_mode) == 0o2750
        assert found.guard_state("files").stat().st_uid == uid_block[2]
        assert found.mcp_socket("files").parent.stat().st_uid == uid_block[2]
        assert ca_key_path(found).stat().st_uid == found.file.stat().st_uid == 0
        assert stat.S_IMODE(found.file.stat().st_mode) == 0o644
        assert not made.signed
        assert found.keys.policy is None


class TestPeople:
    @pytest.mark.root
    def test_named(self, short_dir, uid_block):
        """Agent and operator get their uids in the starter bundle, and with a policy key it is signed at once."""
        people = People(agent=uid_block[3], operator=uid_block[4], policy_key=short_dir / "policy.pem")
        made = initialize(
            short_dir / "inst", mode="system", values=numeric_principals(uid_block), people=people
        )
        found = made.configuration
        bundle = load_bundle(found.policy.bundle, read_trusted_keys(found.trust.policy), mode="system")
        assert [(one.id, one.uid) for one in bundle.callers] == [("agent", uid_block[3])]
        (approver,) = bundle.document.approvers
        assert (approver.id, approver.uid) == (f"uid-{uid_block[4]}", uid_block[4])
        assert [one.uid for one in bundle.document.control_roles] == [uid_block[4]]
        assert made.signed
        assert found.keys.policy is None
        assert short_dir / "policy.pem" in made.offline_keys
        assert stat.S_IMODE((short_dir / "policy.pem").stat().st_mode) == 0o600

    @pytest.mark.root
    @pytest.mark.parametrize(
        "people",
        [
            lambda b: People(agent=b[0]),
            lambda b: People(agent=b[3], operator=b[3]),
            lambda b: People(agent=b[2]),
        ],
        ids=["authority", "each other", "server"],
    )
    def test_shared(self, short_dir, uid_block, people):
        """An agent with the uid of a role or of the operator is refused, and nothing is made."""
        with pytest.raises(ConfigurationError) as caught:
            initialize(
                short_dir / "inst",
                mode="system",
                values=numeric_principals(uid_block),
                servers={"files": {"command": "x", "user": uid_block[2]}},
                people=people(uid_block),
            )
        assert caught.value.code == "uids-shared"
        assert not (short_dir / "inst").exists()

    @pytest.mark.root
    @pytest.mark.parametrize(("agent", "code"), [(0, "user-root"), ("nobody-has-this-name", "user-unknown")])
    def test_not_an_agent(self, short_dir, uid_block, agent, code):
        """Root is no agent, and neither is somebody who does not exist."""
        with pytest.raises(ConfigurationError) as caught:
            initialize(
                short_dir / "inst",
                mode="system",
                values=numeric_principals(uid_block),
                people=People(agent=agent),
            )
        assert caught.value.code == code

    @pytest.mark.root
    def test_existing_key(self, short_dir, uid_block):
        """A key that is there is never overwritten."""
        (short_dir / "policy.pem").write_text("kept")
        with pytest.raises(ConfigurationError) as caught:
            initialize(
                short_dir / "inst",
                mode="system",
                values=numeric_principals(uid_block),
                people=People(policy_key=short_dir / "policy.pem"),
            )
        assert caught.value.code == "exists"
        assert (short_dir / "policy.pem").read_text() == "kept"

    def test_user_mode(self, short_dir):
        """In user mode nobody is named."""
        with pytest.raises(UsageError) as caught:
            initialize(short_dir / "inst", mode="user", people=People(agent=1234))
        assert caught.value.code == "usage"


def numeric_principals(block):
    """Values for a system mode without accounts."""
    groups = ("call", "approval", "control", "record", "readers")
    return {
        "principals.authority": block[0],
        "principals.recorder": block[1],
        **{f"principals.{name}_group": block[8 + place] for place, name in enumerate(groups)},
    }


def owner(uri):
    return Path(uri.removeprefix("file:")).stat().st_uid


class TestDirectories:
    def test_existing_ones_are_left(self, made):
        """Making directories again makes nothing."""
        assert make_directories(directories(made.configuration)) == ()

    @pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
    def test_too_open(self, made, mode):
        """A directory that others can enter or write is refused."""
        path = made.configuration.authority_state
        path.chmod(mode)
        directory = next(one for one in directories(made.configuration) if one.path == path)
        with pytest.raises(ConfigurationError) as caught:
            check_directory(directory)
        assert caught.value.code == "path-mode"

    def test_link(self, made):
        """A symbolic link in the place of a directory is refused, also if it leads to a good one."""
        path = made.configuration.authority_state
        path.rename(path.with_name("elsewhere"))
        path.symlink_to(path.with_name("elsewhere"))
        directory = next(one for one in directories(made.configuration) if one.path == path)
        with pytest.raises(ConfigurationError) as caught:
            check_directory(directory)
        assert caught.value.code == "path-symlink"

    @pytest.mark.parametrize(("place", "mode"), [("anchor", 0o666), ("key", 0o644)])
    def test_files_of_the_ca(self, made, place, mode):
        """Who can write the anchor of records, or read the key of the CA, can forge records: no start."""
        assert not list(problems(made.configuration))
        path = {"anchor": ca_certificate_path, "key": ca_key_path}[place](made.configuration)
        path.chmod(mode)
        (problem,) = problems(made.configuration)
        assert (problem.code, problem.where.file) == ("path-mode", str(path))
        path.unlink()
        assert not list(problems(made.configuration))

    @pytest.mark.root
    @pytest.mark.parametrize("how", ["owner", "mode", "link"])
    def test_root_makes_nothing_there(self, short_dir, uid_block, how):
        """Root makes no directory where another uid could put a link in its place, nor behind a link."""
        short_dir.chmod(0o755)
        (short_dir / "target").mkdir(mode=0o755)
        there = short_dir / "there"
        if how == "link":
            there.symlink_to("target")
        else:
            there.mkdir()
            there.chmod(0o777 if how == "mode" else 0o755)
            os.chown(there, uid_block[1], 0) if how == "owner" else None
        wanted = Directory(path=there / "a/b", owner=uid_block[0], group=uid_block[0], mode=0o700)
        with pytest.raises(ConfigurationError) as caught:
            make_directories([wanted])
        assert caught.value.code == {"link": "path-symlink"}.get(how, f"path-{how}")
        assert not list(there.iterdir())
        assert not list((short_dir / "target").iterdir())

    @pytest.mark.root
    def test_swapped_while_made(self, short_dir, uid_block, monkeypatch):
        """The owner of a parent swaps it for a link meanwhile: root changes what it holds open, nothing else."""
        short_dir.chmod(0o755)
        victim = short_dir / "victim"
        (victim / "b").mkdir(parents=True)
        parent = short_dir / "a"
        parent.mkdir(mode=0o755)
        os.chown(parent, uid_block[0], uid_block[0])
        mkdir = os.mkdir

        def swap(*arguments, **more):
            mkdir(*arguments, **more)
            parent.rename(short_dir / "away")
            parent.symlink_to(victim)

        monkeypatch.setattr(os, "mkdir", swap)
        make_directories([Directory(path=parent / "b", owner=uid_block[0], group=uid_block[0], mode=0o700)])
        assert (victim / "b").stat().st_uid == 0
        assert (short_dir / "away/b").stat().st_uid == uid_block[0]

    @pytest.mark.root
    def test_wrong_group(self, short_dir, uid_block):
        """A directory that is open to its group belongs to the group that is meant."""
        short_dir.chmod(0o755)
        wanted = Directory(path=short_dir / "a", owner=uid_block[0], group=uid_block[1], mode=0o2750)
        make_directories([wanted])
        check_directory(wanted)
        os.chown(wanted.path, uid_block[0], uid_block[2])
        with pytest.raises(ConfigurationError) as caught:
            check_directory(wanted)
        assert caught.value.code == "path-owner"
        wanted.path.chmod(0o700)
        check_directory(wanted)

    @pytest.mark.root
    def test_keys_need_a_good_place(self, short_dir, uid_block):
        """Init writes no key into a directory that somebody else owns."""
        short_dir.chmod(0o755)
        keys = short_dir / "keys"
        keys.mkdir(mode=0o755)
        os.chown(keys, uid_block[9], uid_block[9])
        values = numeric_principals(uid_block) | {"keys.proof": f"file:{keys}/proof.pem"}
        with pytest.raises(ConfigurationError) as caught:
            initialize(short_dir / "inst", mode="system", values=values)
        assert caught.value.code == "path-owner"
        assert not list(short_dir.rglob("*.pem"))

    @pytest.mark.parametrize("name", ["state", "config", "run"])
    def test_loose_directory(self, short_dir, name):
        """A directory that is there with a mode that `up` would refuse is refused by init, before a key is written."""
        place = short_dir / "inst" / name
        place.mkdir(parents=True)
        place.chmod(0o755)
        with pytest.raises(ConfigurationError) as caught:
            initialize(short_dir / "inst", mode="user")
        assert (caught.value.code, caught.value.hint) == ("path-mode", f"chmod 700 {place}")
        assert not list(short_dir.rglob("*.pem"))
        place.chmod(0o700)
        assert not list(problems(initialize(short_dir / "inst", mode="user").configuration))

    def test_open_directory_of_the_file(self, short_dir):
        """The directory that is named may be open to read, such as a project's."""
        (short_dir / "inst").mkdir(mode=0o755)
        (short_dir / "inst").chmod(0o755)
        assert not list(problems(initialize(short_dir / "inst", mode="user").configuration))

    def test_file_in_the_way(self, short_dir):
        """A file in the place of a directory is an error of ours."""
        (short_dir / "inst").write_text("")
        with pytest.raises(ConfigurationError) as caught:
            initialize(short_dir / "inst", mode="user")
        assert caught.value.code in {"cannot-make-directory", "exists"}


class TestFiles:
    def test_write_new_refuses_links(self, tmp_path):
        """A link that waits in the place of a new file is not followed."""
        (tmp_path / "trap").symlink_to(tmp_path / "target")
        with pytest.raises(ConfigurationError) as caught:
            write_new(tmp_path / "trap", b"x", mode=0o600)
        assert caught.value.code == "exists"
        assert not (tmp_path / "target").exists()

    @pytest.mark.root
    def test_give_refuses_links(self, tmp_path, uid_block):
        """A hard link or a symbolic link that waits in the place of a key is not given away."""
        (tmp_path / "precious").write_text("")
        (tmp_path / "hard").hardlink_to(tmp_path / "precious")
        (tmp_path / "soft").symlink_to(tmp_path / "precious")
        for name in ("hard", "soft"):
            with pytest.raises(ConfigurationError):
                give(tmp_path / name, Owner(uid_block[0], uid_block[0]))
        assert (tmp_path / "precious").stat().st_uid == 0

    def test_replace_leaves_no_temporary_file(self, tmp_path):
        """A replaced file has the new bytes and mode, and nothing else lies beside it."""
        (tmp_path / "a").write_text("old")
        replace(tmp_path / "a", b"new", mode=0o640)
        assert (tmp_path / "a").read_bytes() == b"new"
        assert [path.name for path in tmp_path.iterdir()] == ["a"]

    def test_no_room(self, tmp_path, monkeypatch):
        """A full disk is an error of ours with the file's name."""

        def full(descriptor):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ConfigurationError) as caught:
            write_new(tmp_path / "a", b"x", mode=0o600)
        assert caught.value.code == "cannot-write"
        assert list(tmp_path.iterdir()) == []


class TestTemplate:
    @pytest.mark.parametrize(
        "value", ["", 'quote " back \\ tab \t del \x7f', "Zoë ☃", "\u2028", ("a", 'b"'), (), 5, True]
    )
    def test_round_trip(self, value):
        """Every value reads back as it was."""
        read = tomllib.loads(f"a = {text_of(value)}")["a"]
        assert (tuple(read) if isinstance(read, list) else read) == value

    @pytest.mark.parametrize("mode", ["user", "system"])
    def test_text_reads_back(self, mode, home):
        """The text of a planned configuration reads back as that configuration."""
        planned = plan(None, mode=mode)
        assert Configuration.parse(configuration_text(planned), file=planned.file) == planned


class TestCommand:
    def test_json(self, short_dir):
        """`init --json` prints one document with the files and the keys that belong elsewhere."""
        done = subprocess.run(
            onrecord("init", str(short_dir / "inst"), "--json"), env=child_environment(), capture_output=True
        )
        assert done.returncode == 0, done.stderr
        document = tomllib.loads((short_dir / "inst/onrecord.toml").read_text())
        assert document["mode"] == "user"
        assert b"move them off this machine" in done.stderr
        assert done.stdout.startswith(b"{")

    @pytest.mark.parametrize("mode", ["user", "system"])
    def test_next(self, short_dir, monkeypatch, capsys, mode):
        """What comes next begins with wrap in user mode; in system mode it names the user that wrap needs."""
        made = Initialized(configuration=plan(short_dir, mode=mode), files=(), offline_keys=(), signed=True)
        monkeypatch.setattr(init, "initialize", lambda *_, **__: made)
        with pytest.raises(SystemExit):
            main(["init", str(short_dir), "--mode", mode])
        after = capsys.readouterr().err.partition("next: ")[2]
        assert after.startswith("onrecord wrap FILE") == (mode == "user")
        assert ("--user USER" in after) == (mode == "system")

    def test_twice(self, short_dir):
        """A second init exits 2."""
        first = subprocess.run(
            onrecord("init", str(short_dir / "i")), env=child_environment(), capture_output=True
        )
        again = subprocess.run(
            onrecord("init", str(short_dir / "i")), env=child_environment(), capture_output=True
        )
        assert (first.returncode, again.returncode) == (0, 2)

    def test_no_key_material_in_output(self, short_dir):
        """Nothing of a private key is printed."""
        done = subprocess.run(
            onrecord("init", str(short_dir / "i")), env=child_environment(), capture_output=True
        )
        for key in (short_dir / "i/config/keys").glob("*.pem"):
            body = key.read_text().splitlines()[1]
            assert body.encode() not in done.stdout + done.stderr

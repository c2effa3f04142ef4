"""`onrecord doctor`: each check on a good installation, and broken singly."""

from __future__ import annotations

import datetime
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from onrecord.authorize.doctor import Check, Diagnosis, examine
from onrecord.authorize.doctor.installation import WARN_DAYS, check_relative_paths
from onrecord.authorize.doctor.machine import check_clocks, check_sqlite
from onrecord.authorize.doctor.results import listed
from onrecord.authorize.policy.source import read_source
from onrecord.authorize.setup import ca_certificate_path, ca_key_path, initialize
from onrecord.base.dates import utc_now
from onrecord.base.errors import ConfigurationError
from onrecord.cli import doctor
from onrecord.cli.main import main
from support.policies import POLICY_SOURCE
from support.runtime import child_environment, onrecord


@pytest.fixture
def made(short_dir):
    """A user-mode installation that is not running."""
    return initialize(
        short_dir / "inst", mode="user", servers={"files": {"command": "python3"}}
    ).configuration


def results(configuration, name, **more):
    return [check for check in examine(configuration, **more).checks if check.name == name]


def worst(configuration, name, **more):
    found = {check.result for check in results(configuration, name, **more)}
    return next((word for word in ("failed", "warning", "ok") if word in found), None)


class TestGood:
    def test_fresh_installation(self, made):
        """Right after init nothing has failed; warnings name what is missing; the verdict is degraded."""
        diagnosis = examine(made)
        failed = [check for check in diagnosis.checks if check.result == "failed"]
        assert failed == []
        assert diagnosis.exit_code == 0
        assert diagnosis.isolation == "degraded"
        for name in ("configuration", "ownership", "keys", "certificate", "policy", "sqlite"):
            assert worst(made, name) == "ok", name
        for name in ("isolation", "offline-keys", "server", "sockets", "no-sink"):
            assert worst(made, name) == "warning", name

    def test_new_server(self, made):
        """A server that was added since the last start has no directory yet; that is a warning, up makes it."""
        path = made.guard_state("files")
        path.rmdir()
        (said,) = (check for check in examine(made).checks if check.name == "ownership")
        assert (said.result, str(path) in said.detail, "onrecord up" in said.hint) == ("warning", True, True)

    def test_nothing_runs(self, made):
        """Sockets that are not there are one line, not one for each."""
        (said,) = (check for check in examine(made).checks if check.name == "sockets")
        assert "the authority, control, the recorder" in said.detail

    @pytest.mark.req("CP-075")
    def test_never_isolated(self, made):
        """User mode is degraded whatever is configured (running.md 2.2)."""
        assert examine(made, server="files").isolation == "degraded"

    def test_shape(self, made):
        """The JSON shape is that of DESIGN.md."""
        document = examine(made).to_json()
        assert set(document) == {"isolation", "checks"}
        for check in document["checks"]:
            assert list(check) == ["name", "result", "detail", "hint"]
            assert check["result"] in {"ok", "warning", "failed"}

    def test_changes_nothing(self, made):
        """Looking leaves every file as it was."""
        root = made.file.parent
        before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
        examine(made, server="files")
        assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == before


class TestBroken:
    def test_open_key(self, made):
        """A key that others can read fails ownership, and the detail shows nothing of it."""
        path = Path(made.keys.proof.removeprefix("file:"))
        path.chmod(0o644)
        check = results(made, "ownership")[0]
        assert (check.result, "0644" in check.detail) == ("failed", True)
        assert "chmod" in check.hint

    def test_open_directory(self, made):
        """A state directory that others can write fails ownership."""
        made.authority_state.chmod(0o777)
        assert worst(made, "ownership") == "failed"

    def test_missing_key(self, made):
        """A key that is gone fails."""
        Path(made.keys.record.removeprefix("file:")).unlink()
        assert worst(made, "keys") == "failed"
        assert examine(made).exit_code == 1

    def test_shared_key(self, made):
        """Two purposes with one key fail, and both are named."""
        proof, journal = (
            Path(uri.removeprefix("file:")) for uri in (made.keys.proof, made.keys.authority_journal)
        )
        journal.write_bytes(proof.read_bytes())
        check = results(made, "distinct-keys")[0]
        assert check.result == "failed"
        assert "proof" in check.detail
        assert "authority_journal" in check.detail

    def test_damaged_key(self, made):
        """A file that is no key fails, without its content."""
        Path(made.keys.proof.removeprefix("file:")).write_text("canary-content")
        check = next(one for one in results(made, "keys") if one.result == "failed")
        assert "canary" not in check.detail

    def test_keys_taken_away(self, made):
        """CA and policy key that are off the machine are what is wanted: no warning, no failure."""
        ca_key_path(made).unlink()
        Path(made.keys.policy.removeprefix("file:")).unlink()
        assert results(made, "offline-keys") == []
        assert worst(made, "keys") == "ok"
        assert worst(made, "ownership") == "ok"

    @pytest.mark.parametrize(
        ("days", "expected"), [(-1, "failed"), (WARN_DAYS - 1, "warning"), (WARN_DAYS + 1, "ok")]
    )
    def test_certificate_end(self, made, days, expected):
        """A certificate is announced 30 days before its end, and has failed after it."""
        end = utc_now() + datetime.timedelta(days=825)
        moment = end - datetime.timedelta(days=days, minutes=10)
        assert worst(made, "certificate", now=moment) == expected

    def test_certificate_of_another_key(self, made, short_dir):
        """A chain that belongs to another record key fails, and its anchor is not ours."""
        other = initialize(short_dir / "other", mode="user").configuration
        made.keys.record_chain.write_bytes(other.keys.record_chain.read_bytes())
        assert worst(made, "certificate") == "failed"
        assert worst(made, "anchor") == "warning"

    def test_certificate_is_gone(self, made):
        """Without a chain no record can be signed."""
        made.keys.record_chain.unlink()
        assert worst(made, "certificate") == "failed"

    def test_anchor_is_gone(self, made):
        """Without its own anchor, verify cannot do without --anchor."""
        ca_certificate_path(made).unlink()
        assert worst(made, "anchor") == "warning"

    def test_tampered_policy(self, made):
        """A bundle with one changed byte fails."""
        data = bytearray(made.policy.bundle.read_bytes())
        data[-3] ^= 1
        made.policy.bundle.write_bytes(data)
        assert worst(made, "policy") == "failed"

    def test_policy_is_gone(self, made):
        """Without a bundle every call is refused: failed."""
        made.policy.bundle.unlink()
        assert worst(made, "policy") == "failed"

    def test_foreign_policy_key(self, made, short_dir):
        """A bundle signed by a key that is not trusted here fails."""
        other = initialize(short_dir / "other", mode="user").configuration
        made.trust.policy.write_bytes(other.trust.policy.read_bytes())
        assert worst(made, "policy") == "failed"

    def test_server_program_is_missing(self, short_dir):
        """A server whose program is not there fails; one without policy is a warning."""
        made = initialize(
            short_dir / "inst",
            mode="user",
            servers={"a": {"command": "/nonexistent/server"}, "b": {"command": "python3"}},
        ).configuration
        found = {check.detail.split(":")[0].split()[0]: check.result for check in results(made, "server")}
        assert found == {"a": "failed", "b": "warning"}

    def test_file_in_place_of_a_socket(self, made):
        """A file where a socket should be fails; a stale socket is a warning."""
        made.agent_socket().write_text("")
        assert worst(made, "sockets") == "failed"
        made.agent_socket().unlink()
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(made.agent_socket()))
        assert worst(made, "sockets") == "warning"

    @pytest.mark.root
    def test_squatted_socket(self, made, uid_block):
        """A socket that another uid has put there fails."""
        with socket.socket(socket.AF_UNIX) as squatter:
            squatter.bind(str(made.agent_socket()))
            squatter.listen()
            os.chown(made.agent_socket(), uid_block[0], uid_block[0])
            assert worst(made, "sockets") == "failed"


class TestMachine:
    def test_clock_of_1970(self):
        """A wall clock before this program existed fails."""
        assert next(check_clocks(now=datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC))).result == "failed"

    @pytest.mark.parametrize(
        ("version", "is_safe"),
        [
            ((3, 40, 1), False),
            ((3, 44, 5), False),
            ((3, 44, 6), True),
            ((3, 46, 9), False),
            ((3, 50, 7), True),
            ((3, 51, 2), False),
            ((3, 51, 3), True),
            ((4, 0, 0), True),
        ],
    )
    def test_sqlite_race(self, version, is_safe):
        """The release is always named, and the race of older ones is said."""
        check = check_sqlite(version)
        assert ".".join(map(str, version)) in check.detail
        assert ("race" not in check.detail) == is_safe

    def test_full_disk(self, made, monkeypatch):
        """Little room is a warning, almost none fails."""
        sizes = iter([1 << 29, 1 << 20])
        for expected in ("warning", "failed"):
            size = next(sizes)
            monkeypatch.setattr("onrecord.authorize.doctor.machine._free_bytes", lambda path, size=size: size)
            assert worst(made, "disk") == expected


class TestRelativePaths:
    def test_base_is_not_the_working_directory(self, short_dir):
        """A base that is stale, or comes from an earlier `bind --root`, is a warning with what to change."""
        bundle = read_source(POLICY_SOURCE).bundle
        servers = {"filesystem": {"command": "python3", "cwd": str(short_dir)}}
        made = initialize(short_dir / "more", mode="user", servers=servers).configuration
        (check,) = check_relative_paths(made, bundle)
        assert (check.name, check.result) == ("base-not-cwd", "warning")
        assert "servers.filesystem.cwd" in check.hint
        servers["filesystem"] |= {"args": ["/srv/review"]}
        made = initialize(short_dir / "named", mode="user", servers=servers).configuration
        (check,) = check_relative_paths(made, bundle)
        assert (check.result, "cannot be told" in check.detail) == ("ok", True)
        assert not list(check_relative_paths(made, None))


class TestServer:
    def test_items(self, made):
        """With --server every item I1 to I8 has a line; while nothing runs, what needs a process was not tried."""
        names = [check.name for check in examine(made, server="files").checks if check.name[:1] == "I"]
        assert [name[:2] for name in dict.fromkeys(names)] == ["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8"]
        weight = {"I1 uids", "I2 trace", "I8 groups"} if os.geteuid() == 0 else {"I1 uids", "I2 trace"}
        for item in weight:
            assert worst(made, item, server="files") != "ok"
        assert "not" in results(made, "I2 trace", server="files")[0].detail

    def test_user_mode(self, user_mode):
        """Acceptance 21, the other half: a whole installation in user mode is degraded, by warnings that say why."""
        system = user_mode(servers={"files": {"command": "python3"}}).start_all()
        try:
            done = system.run("doctor", "--server", "files", "--json")
        finally:
            system.stop()
        document = json.loads(done.stdout)
        assert (done.returncode, document["isolation"]) == (0, "degraded"), done.stdout
        found = {check["name"][:2]: check for check in document["checks"] if check["name"][:1] == "I"}
        for item in ("I1", "I2", "I4", "I5", "I6", "I8"):
            assert found[item]["result"] == "warning", item
        assert "signal 0" in found["I2"]["detail"]

    def test_unknown(self, made):
        """An id that is not configured is an error, exit 2."""
        with pytest.raises(ConfigurationError) as caught:
            examine(made, server="other")
        assert caught.value.code == "server-unknown"

    def test_secret_in_the_environment(self, short_dir, monkeypatch):
        """A name of the server's env_file in the agent's environment is named; no value is shown."""
        env_file = short_dir / "secrets.env"
        env_file.write_text("EXAMPLE_TOKEN=canary-value\n")
        env_file.chmod(0o600)
        made = initialize(
            short_dir / "inst",
            mode="user",
            servers={"files": {"command": "python3", "env_file": str(env_file)}},
        ).configuration
        assert worst(made, "I7 secrets", server="files") == "ok"
        monkeypatch.setenv("EXAMPLE_TOKEN", "canary-value")
        check = results(made, "I7 secrets", server="files")[0]
        assert check.result == "warning"
        assert "EXAMPLE_TOKEN" in check.detail
        assert "canary-value" not in json.dumps(examine(made, server="files").to_json())


@pytest.mark.root
class TestSystemMode:
    @pytest.fixture
    def system(self, short_dir, uid_block):
        """A system-mode installation without accounts, with its search path open to other uids."""
        short_dir.chmod(0o755)
        groups = ("call", "approval", "control", "record", "readers")
        values = {"principals.authority": uid_block[0], "principals.recorder": uid_block[1]}
        values |= {f"principals.{name}_group": uid_block[8 + place] for place, name in enumerate(groups)}
        servers = {"files": {"command": "python3", "user": uid_block[2]}}
        return initialize(short_dir / "inst", mode="system", values=values, servers=servers).configuration

    def as_agent(self, configuration, uid, gid, *more):
        command = onrecord("doctor", "--json", "--config", str(configuration.file), *more)
        command.insert(1, "-I")
        done = subprocess.run(
            command,
            user=uid,
            group=uid,
            extra_groups=[gid],
            cwd="/",
            env=child_environment(),
            capture_output=True,
        )
        return done.returncode, json.loads(done.stdout)

    def test_as_root(self, system):
        """Root sees that owners and uids are right; only the policy, which nobody has signed yet, is missing."""
        diagnosis = examine(system)
        failed = [check.name for check in diagnosis.checks if check.result == "failed"]
        assert failed == ["policy"]
        assert worst(system, "uids") == "ok"
        assert diagnosis.isolation == "degraded"

    def test_as_root_with_server(self, system):
        """Root, which could do everything, is told to run it as the agent."""
        diagnosis = examine(system, server="files")
        (verdict,) = (check for check in diagnosis.checks if check.name == "isolation")
        assert verdict.hint == "run it as the agent: runuser -u AGENT -- onrecord doctor --server files"

    def test_shared_uid(self, short_dir, uid_block):
        """Two roles on one uid fail."""
        groups = ("call", "approval", "control", "record", "readers")
        values = {"principals.authority": uid_block[0], "principals.recorder": uid_block[0]}
        values |= {f"principals.{name}_group": uid_block[8 + place] for place, name in enumerate(groups)}
        made = initialize(short_dir / "two", mode="system", values=values).configuration
        assert worst(made, "uids") == "failed"

    def test_as_agent(self, system, uid_block):
        """While nothing runs, the agent gets at no file; what needs a process was not tried, so it is degraded."""
        _, document = self.as_agent(system, uid_block[4], uid_block[8], "--server", "files")
        found = {check["name"]: check["result"] for check in document["checks"]}
        assert document["isolation"] == "degraded"
        for name in ("I3 capabilities", "I4 sockets", "I5 files", "I7 secrets", "I8 groups", "ownership"):
            assert found[name] == "ok", name
        for name in ("I1 uids", "I2 trace", "I6 resource"):
            assert found[name] == "warning", name

    def test_without_server(self, system, uid_block):
        """Without --server nothing was tried, and nothing is called isolated."""
        _, document = self.as_agent(system, uid_block[4], uid_block[8])
        assert document["isolation"] == "degraded"
        (said,) = (check for check in document["checks"] if check["name"] == "isolation")
        assert "--server" in said["hint"]

    def test_agent_in_a_wrong_group(self, system, uid_block):
        """An agent in the record group fails I8."""
        _, document = self.as_agent(system, uid_block[4], uid_block[11], "--server", "files")
        found = {check["name"]: check["result"] for check in document["checks"]}
        assert found["I8 groups"] == "failed"

    def test_authority_as_agent(self, system, uid_block):
        """Who runs under the authority's uid can read its keys: I5 fails, exit status 1."""
        status, document = self.as_agent(system, uid_block[0], uid_block[8], "--server", "files")
        found = {check["name"]: check["result"] for check in document["checks"]}
        assert found["I5 files"] == "failed"
        assert status == 1


class TestCommand:
    def test_text_and_status(self, made):
        """The text has one line per check and ends with the verdict; warnings exit 0, a failure 1."""
        command = onrecord("doctor", "--config", str(made.file))
        done = subprocess.run(
            command, env=child_environment(PATH=os.environ["PATH"]), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout
        assert done.stdout.splitlines()[-2] == "isolation: degraded"
        assert "--mode system" in done.stdout.splitlines()[-1]
        made.policy.bundle.unlink()
        again = subprocess.run(
            command, env=child_environment(PATH=os.environ["PATH"]), capture_output=True, text=True
        )
        assert again.returncode == 1
        assert "FAILED" in again.stdout

    def test_long_lists(self, made, monkeypatch, capsys):
        """A long list is cut in the text, which says where all of it is: in the JSON."""
        items = tuple(f"/etc/{number}" for number in range(20))
        check = Check("I5 files", "warning", listed(items), items=items)
        monkeypatch.setattr(doctor, "examine", lambda *_, **__: Diagnosis("degraded", (check,)))
        for more in ([], ["--json"]):
            with pytest.raises(SystemExit):
                main(["doctor", "--config", str(made.file), *more])
        text, _, document = capsys.readouterr().out.partition("{")
        assert "/etc/0; /etc/1; /etc/2 and 17 more\n         all 20: --json\n" in text
        assert json.loads("{" + document)["checks"][0]["items"] == list(items)

    def test_exit_codes(self):
        """0 with warnings, 1 with a failure."""
        warning, failed = Check("a", "warning", ""), Check("b", "failed", "")
        assert Diagnosis("degraded", (warning,)).exit_code == 0
        assert Diagnosis("degraded", (warning, failed)).exit_code == 1

"""`onrecord up` with the real children: readiness, kill -9, a second supervisor, refusals."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord.authorize.policy import sign_source
from onrecord.authorize.setup import initialize
from onrecord.base.keys import signer_from_uri
from support.runtime import child_environment, onrecord, start_ready, stop, wait_for

KILLED_STARTER = """
import os, signal, subprocess, sys
_, writer = os.pipe()
command = [*sys.argv[1:], "--ready-fd", str(writer)]
child = subprocess.Popen(command, pass_fds=(writer,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def child_pids(pid):
    """Return the pids of the direct children of a process by their verb."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if parent == pid and b"onrecord" in arguments:
                found[arguments[arguments.index(b"onrecord") + 1].decode()] = int(entry.name)
    return found


def is_gone(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def real_uid(pid):
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(row for row in rows if row.startswith("Uid:")).split()[1])


@pytest.fixture
def up(user_mode):
    """`onrecord up` in user mode, ready."""
    system = user_mode()
    process = system.start("up")
    yield system, process
    stop(process)


class TestUserMode:
    def test_all_is_up(self, up):
        """When ready is said, both answer; the authority reports degraded."""
        system, _ = up
        done = system.run("control", "status", "--json")
        assert done.returncode == 0, done.stderr
        status = json.loads(done.stdout)
        assert (status["status"], status["mode"], status["isolation"]) == ("degraded", "user", "degraded")
        report = json.loads(system.run("doctor", "--json").stdout)
        assert not [check for check in report["checks"] if check["result"] == "failed"]
        assert {check["result"] for check in report["checks"] if check["name"] == "sockets"} == {"ok"}

    @pytest.mark.root  # the daemons are not dumpable, so their own uid cannot look at their descriptors
    @pytest.mark.req("CP-053", "CP-102")
    def test_unix_sockets_only(self, up):
        """Neither authority nor recorder has a network socket: what they listen on are Unix stream sockets."""
        _, process = up
        for pid in child_pids(process.pid).values():
            links = [os.readlink(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
            inodes = {
                link.removeprefix("socket:[").rstrip("]") for link in links if link.startswith("socket:")
            }
            tables = [
                Path(f"/proc/{pid}/net/{name}") for name in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6")
            ]
            rows = [
                row.split()
                for table in tables
                if table.exists()
                for row in table.read_text().splitlines()[1:]
            ]
            assert not inodes & {row[9] for row in rows}
            unix = [row.split() for row in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]]
            listening = [row for row in unix if row[6] in inodes and int(row[3], 16) & 0x10000]
            assert listening
            assert all(row[4] == "0001" and row[7].startswith("/") for row in listening)

    def test_stop(self, up):
        """SIGTERM ends everything with status 0, and the sockets answer no more."""
        system, process = up
        pids = child_pids(process.pid)
        assert set(pids) == {"record", "authority"}
        assert stop(process) == 0
        assert all(is_gone(pid) for pid in pids.values())
        assert system.run("control", "status").returncode == 3

    def test_second_supervisor(self, up):
        """A second supervisor exits 2 with already-running and the pid of the first."""
        system, process = up
        done = system.run("up")
        assert done.returncode == 2
        assert b"already-running" in done.stderr
        assert str(process.pid).encode() in done.stderr

    def test_second_daemon(self, up):
        """A second authority or recorder beside them exits 2 as well."""
        system, _ = up
        for arguments in (("authority", "serve"), ("record", "serve")):
            done = system.run(*arguments)
            assert done.returncode == 2, arguments
            assert b"already-running" in done.stderr

    @pytest.mark.parametrize("name", ["record", "authority"])
    def test_kill_9_of_a_child(self, up, name):
        """A killed child comes back under a new pid, and the other one stays."""
        system, process = up
        before = child_pids(process.pid)
        os.kill(before[name], signal.SIGKILL)
        wait_for(
            lambda: child_pids(process.pid).get(name) not in {None, before[name]}, what="it was started again"
        )
        after = child_pids(process.pid)
        other = ({"record", "authority"} - {name}).pop()
        assert after[other] == before[other]
        wait_for(lambda: system.run("control", "status").returncode == 0, what="the system answers again")

    def test_kill_9_of_the_supervisor(self, up):
        """Its children end too, and a new supervisor starts on what they have left."""
        system, process = up
        pids = child_pids(process.pid)
        stop(process, signal_number=signal.SIGKILL)
        wait_for(lambda: all(is_gone(pid) for pid in pids.values()), what="the children have ended")
        again = system.start("up")
        assert system.run("control", "status").returncode == 0
        assert stop(again) == 0

    @pytest.mark.parametrize("arguments", [("record", "serve"), ("authority", "serve")])
    def test_starter_that_is_gone(self, user_mode, arguments):
        """A part whose starter is killed before the part could ask for a death signal ends by itself."""
        system = user_mode()
        done = subprocess.run(
            [sys.executable, "-c", KILLED_STARTER, *system.command(*arguments)],
            env=child_environment(HOME=str(system.directory)),
            stdout=subprocess.PIPE,
            **(
                {}
                if system.principal is None
                else {"user": system.uid, "group": system.uid, "extra_groups": []}
            ),
        )
        assert done.returncode == -signal.SIGKILL
        wait_for(lambda: is_gone(int(done.stdout)), what="the part has ended")

    def test_open_key(self, user_mode):
        """A key file that others can read: no start, exit 2, nothing is running."""
        system = user_mode()
        Path(system.configuration.keys.proof.removeprefix("file:")).chmod(0o644)
        done = system.run("up")
        assert done.returncode == 2
        assert b"path-mode" in done.stderr

    def test_one_key_for_two_purposes(self, user_mode):
        """Two purposes with one public key: the part that uses them does not start, status 3."""
        system = user_mode()
        keys = system.configuration.keys
        proof, journal = (Path(uri.removeprefix("file:")) for uri in (keys.proof, keys.authority_journal))
        journal.write_bytes(proof.read_bytes())
        done = system.run("authority", "serve")
        assert done.returncode == 3
        assert b"key-shared" in done.stderr

    def test_says_degraded(self, user_mode):
        """A start in user mode says on standard error that it is degraded."""
        system = user_mode()
        process = subprocess.Popen(
            system.command("up"),
            env=child_environment(HOME=str(system.directory)),
            stderr=subprocess.PIPE,
            **(
                {}
                if system.principal is None
                else {"user": system.uid, "group": system.uid, "extra_groups": []}
            ),
        )
        first = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate()
        assert b"DEGRADED" in first


class TestRefusals:
    @pytest.mark.root
    def test_user_mode_as_root(self, short_dir):
        """User mode does not run as root: exit 2, runs-as-root."""
        made = initialize(short_dir / "i", mode="user")
        done = subprocess.run(
            onrecord("up", "--config", str(made.configuration.file)),
            env=child_environment(),
            capture_output=True,
        )
        assert done.returncode == 2
        assert b"runs-as-root" in done.stderr

    def test_system_mode_needs_root(self, user_mode):
        """System mode does not start without root: exit 2."""
        system = user_mode()
        system.file.write_text('mode = "system"')
        done = system.run("up")
        assert done.returncode == 2
        assert b"needs-root" in done.stderr

    def test_unknown_key(self, user_mode):
        """A misspelt key is exit 2 with file, line and the nearest key."""
        system = user_mode()
        text = system.file.read_text()
        system.file.write_text(text.replace("idle_seconds", "idle_second"))
        done = system.run("up")
        assert done.returncode == 2
        assert b"recorder.idle_seconds" in done.stderr


@pytest.mark.root
class TestSystemMode:
    @pytest.fixture
    def system(self, short_dir, uid_block):
        """A signed system-mode installation with one server, all on numbers without accounts."""
        short_dir.chmod(0o755)
        groups = ("call", "approval", "control", "record", "readers")
        values = {
            "principals.authority": uid_block[0],
            "principals.recorder": uid_block[1],
            "keys.policy": f"file:{short_dir}/inst/config/keys/policy.pem",
        }
        values |= {f"principals.{name}_group": uid_block[8 + place] for place, name in enumerate(groups)}
        servers = {"files": {"command": "cat", "user": uid_block[2], "cwd": "/"}}
        made = initialize(short_dir / "inst", mode="system", values=values, servers=servers)
        found = made.configuration
        path = found.policy.source / "bundle.json"
        document = json.loads(path.read_text())
        document["callers"][0]["uid"] = uid_block[4]
        document["approvers"][0]["uid"] = document["controlRoles"][0]["uid"] = uid_block[5]
        document["servers"] = [
            {
                "id": "files",
                "uid": uid_block[2],
                "enforce": "required",
                "refuse_methods": [],
                "discloseCaller": False,
                "roots": {},
                "bases": {},
                "bindings": "bindings/files.json",
            }
        ]
        path.write_text(json.dumps(document))
        (found.policy.source / "bindings/files.json").write_text("[]")
        signer = signer_from_uri(found.keys.policy, purpose="policy")
        sign_source(found.policy.source, bundle=found.policy.bundle, signer=signer)
        return found

    @pytest.mark.req("CP-100", "CP-105")
    def test_every_part_under_its_uid(self, system, uid_block):
        """Recorder, authority and guard run under their uids, their sockets are theirs, and a stop ends them."""
        process = start_ready(onrecord("up", "--config", str(system.file)))
        try:
            pids = child_pids(process.pid)
            uids = {name: real_uid(pid) for name, pid in pids.items()}
            assert uids == {"authority": uid_block[0], "record": uid_block[1], "guard": uid_block[2]}
            for socket, uid, gid in (
                (system.agent_socket(), uid_block[0], uid_block[8]),
                (system.control_socket(), uid_block[0], uid_block[10]),
                (system.record_socket(), uid_block[1], uid_block[11]),
                (system.mcp_socket("files"), uid_block[2], uid_block[8]),
            ):
                status = socket.stat()
                assert (status.st_uid, status.st_gid) == (uid, gid), socket
                assert stat.S_IMODE(status.st_mode) == 0o660
        finally:
            status = stop(process)
        assert status == 0
        assert all(is_gone(pid) for pid in pids.values())

    def test_runtime_directories_come_back(self, system):
        """After a start of the machine /run is empty: up makes the socket directories again, with their owners."""
        for path in (system.record_socket().parent, system.agent_socket().parent):
            path.rmdir()
        process = start_ready(onrecord("up", "--config", str(system.file)))
        assert stop(process) == 0

    def test_kill(self, system):
        """Kill -9 of the supervisor: the kernel ends the parts, although they have other uids."""
        process = start_ready(onrecord("up", "--config", str(system.file)))
        pids = child_pids(process.pid)
        assert len(pids) == 3
        stop(process, signal_number=signal.SIGKILL)
        wait_for(lambda: all(is_gone(pid) for pid in pids.values()), what="the children have ended")

    def test_foreign_state(self, system, uid_block):
        """A state directory that belongs to the agent: no start, exit 2."""
        os.chown(system.authority_state, uid_block[4], uid_block[4])
        done = subprocess.run(
            onrecord("up", "--config", str(system.file)), env=child_environment(), capture_output=True
        )
        assert done.returncode == 2
        assert b"path-owner" in done.stderr

"""The recorder as a process: configuration, commands, kill -9, full disk."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from onrecord.base.hashes import b64url_decode_strict
from onrecord.base.keys import write_private_key
from onrecord.base.processes import Principal, spawn
from support.runtime import child_environment, onrecord, start_ready, stop, wait_for

PUMP = Path(__file__).with_name("pump.py")
SOURCES = str(Path(__file__).resolve().parents[3] / "src")

CONFIGURATION = """
mode = "user"
[paths]
config = "{root}/etc"
state = "{root}/state"
runtime = "{root}/run"
records = "{root}/records"
[keys]
proof = "file:{root}/keys/proof.pem"
authority_journal = "file:{root}/keys/authority.pem"
recorder_journal = "file:{root}/keys/journal.pem"
record = "file:{root}/keys/record.pem"
record_chain = "{root}/keys/chain.pem"
"""


class Daemon:
    """One user-mode recorder below a directory, under the ordinary uid."""

    def __init__(self, root: Path, uid: int, certificates):
        self.root, self.uid = root, uid
        self.started = []
        for name in ("etc", "state", "run", "records", "keys"):
            (root / name).mkdir(mode=0o700)
        self.configuration = root / "etc" / "onrecord.toml"
        self.configuration.write_text(CONFIGURATION.format(root=root), encoding="utf-8")
        self.journal_key = ed25519.Ed25519PrivateKey.generate()
        record_key = ec.generate_private_key(ec.SECP256R1())
        write_private_key(root / "keys" / "journal.pem", self.journal_key)
        write_private_key(root / "keys" / "record.pem", record_key)
        leaf, self.anchor = certificates(record_key)
        (root / "keys" / "chain.pem").write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
        self.configuration.chmod(0o600)
        if os.getuid() == 0:
            for path in (root, *root.rglob("*")):
                os.chown(path, uid, uid)
        self.socket = root / "run" / "record.sock"

    @property
    def principal(self):
        return Principal(self.uid, self.uid) if os.getuid() == 0 else None

    def command(self, *args):
        return onrecord("record", *args, "--config", str(self.configuration))

    def start(self):
        process = start_ready(self.command("serve"), principal=self.principal)
        self.started.append(process)
        return process

    def run(self, *args):
        """Run a command of the operator and return its status and output."""
        process = spawn(
            self.command(*args),
            principal=self.principal,
            env=child_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        out, error = process.communicate(timeout=60)
        return process.returncode, out.decode(), error.decode()

    def pump(self, calls):
        return spawn(
            [sys.executable, str(PUMP), str(self.socket), str(self.uid), str(calls)],
            principal=self.principal,
            env=child_environment(PYTHONPATH=SOURCES),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def vcons(self):
        files = sorted((self.root / "records").glob("2*/*/*/*.vcon.json"))
        return [json.loads(b64url_decode_strict(json.loads(path.read_bytes())["payload"])) for path in files]


@contextlib.contextmanager
def connected_authority(daemon):
    """An authority that is connected and silent: then a session may end after the grace time."""
    pump = daemon.pump(0)
    try:
        assert pump.stdout.readline().startswith(b"DONE")
        yield
    finally:
        end_pump(pump)


def journal_types(daemon):
    """Return how many records of each type a stopped recorder's journal has."""
    (path,) = (daemon.root / "state" / "recorder").glob("journal-*.db")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT bytes FROM record").fetchall()
    return Counter(json.loads(row[0])["type"] for row in rows)


def end_pump(pump):
    stop(pump, signal_number=signal.SIGKILL)
    pump.stdin.close()
    pump.stdout.close()


@pytest.fixture
def daemon(short_dir, ordinary_uid, certificates_for):
    short_dir.chmod(0o755)
    root = short_dir / "d"
    root.mkdir(mode=0o700)
    made = Daemon(root, ordinary_uid, certificates_for)
    yield made
    for process in made.started:
        stop(process, signal_number=signal.SIGKILL)


def test_kill_nine_ten_times(daemon):
    """Ten times kill -9 in the middle: every acknowledged entry is there once, in one session and one vCon."""
    calls, rounds = 120, 10
    process = daemon.start()
    pump = daemon.pump(calls)
    try:
        acknowledged = 0
        total = 3 * calls + 2
        for line in iter(pump.stdout.readline, b""):
            word, *rest = line.split()
            assert word != b"LOST", rest
            if word == b"DONE":
                break
            acknowledged += 3
            if rounds and acknowledged >= total * (11 - rounds) / 12:
                rounds -= 1
                stop(process, signal_number=signal.SIGKILL)
                process = daemon.start()
        assert rounds == 0
        status, out, _ = daemon.run("sessions", "--json")
        assert status == 0
        opened = json.loads(out)["sessions"]
        assert [one["state"] for one in opened] == ["open"]
        pump.stdin.close()
        assert pump.wait(timeout=30) == 0
        with connected_authority(daemon):
            wait_for(lambda: len(daemon.vcons()) == 1, what="the vCon of the process that exited")
    finally:
        end_pump(pump)
        stop(process)
    (vcon,) = daemon.vcons()
    kinds = Counter(event["type"] for event in vcon["events"])
    assert kinds == {
        "policy-decision": calls,
        "tool-invocation": calls,
        "tool-result": calls,
        "system-event": 10,
    }
    attempts = Counter(
        (event["operation_id"], event["attempt"], event["type"])
        for event in vcon["events"]
        if "attempt" in event
    )
    assert set(attempts.values()) == {1}
    assert all(event["data"].get("filled") for event in vcon["events"] if event["type"] == "system-event")


def test_commands(daemon):
    """`record close` ends a session and its vCon is there; `record sessions` lists it; errors are told by name."""
    status, out, _ = daemon.run("sessions", "--json")
    assert (status, json.loads(out)["error"]["code"]) == (3, "recorder-unreachable")
    process = daemon.start()
    pump = daemon.pump(3)
    try:
        for line in iter(pump.stdout.readline, b""):
            if line.startswith(b"DONE"):
                break
        status, out, _ = daemon.run("sessions", "--json")
        (session,) = json.loads(out)["sessions"]
        assert (session["state"], session["connections"]) == ("open", 0)
        with connected_authority(daemon):
            status, out, error = daemon.run("close", session["label"], "--json")
        assert status == 0, error
        (closed,) = json.loads(out)["sessions"]
        assert (closed["state"], closed["check"]["errors"]) == ("signed", 0)
        status, out, _ = daemon.run("sessions")
        assert session["id"] in out
        status, out, _ = daemon.run("close", "nobody", "--json")
        error = json.loads(out)["error"]
        assert (status, error["code"]) == (2, "unknown-session")
        assert "record sessions" in error["hint"]
        status, out, _ = daemon.run("close", "--json")
        assert (status, json.loads(out)["error"]["code"]) == (2, "usage")
    finally:
        end_pump(pump)
        assert stop(process) == 0
    assert not daemon.socket.exists()


def test_second_recorder_is_refused(daemon):
    """A second recorder over the same journal ends with status 2 and names the holder."""
    process = daemon.start()
    try:
        status, _, error = daemon.run("serve")
        assert status == 2
        assert "already-running" in error
        assert str(process.pid) in error
    finally:
        stop(process)


def test_journal_that_was_changed(daemon):
    """A journal that is not what it was: the recorder names it and ends with status 1."""
    stop(daemon.start())
    (path,) = (daemon.root / "state" / "recorder").glob("journal-*.db")
    data = bytearray(path.read_bytes())
    at = data.index(b'"journal.open"')
    data[at + 1 : at + 3] = b"XX"
    path.write_bytes(bytes(data))
    status, _, error = daemon.run("serve")
    assert status == 1
    assert "journal" in error


@pytest.mark.parametrize("name", ["run", "records", "state/recorder"])
def test_directories_that_others_may_change(daemon, name):
    """A directory that others can write stops the start with status 2."""
    path = daemon.root / name
    path.mkdir(exist_ok=True)
    path.chmod(0o777)
    if os.getuid() == 0:
        os.chown(path, daemon.uid, daemon.uid)
    status, _, error = daemon.run("serve")
    assert status == 2
    assert "path-mode" in error


@pytest.mark.parametrize("name", ["run", "records", "state/recorder", "state/marks/recorder"])
def test_links_to_nowhere(daemon, name):
    """A broken link in the place of a directory is a fault with a name, not one of ours."""
    path = daemon.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(path.with_name("away"))
    path.symlink_to("/nonexistent/place")
    status, _, error = daemon.run("serve")
    assert (status, "directory-unusable" in error) == (3, True)


@pytest.mark.root
def test_root_is_refused(daemon):
    """The recorder does not run as uid 0."""
    os.chown(daemon.configuration, 0, 0)
    result = subprocess.run(
        daemon.command("serve"), env=child_environment(), capture_output=True, timeout=60, check=False
    )
    assert result.returncode == 2
    assert b"runs-as-root" in result.stderr


def test_missing_journal_key(daemon):
    """Without its journal key the recorder cannot start: status 3."""
    (daemon.root / "keys" / "journal.pem").unlink()
    status, _, error = daemon.run("serve")
    assert status == 3
    assert "key-missing" in error


def test_one_key_for_two_purposes(daemon, certificates_for):
    """The same key for journal and vCons is refused."""
    text = daemon.configuration.read_text(encoding="utf-8").replace("record.pem", "journal.pem")
    daemon.configuration.write_text(text, encoding="utf-8")
    leaf, _ = certificates_for(daemon.journal_key)
    (daemon.root / "keys" / "chain.pem").write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    status, _, error = daemon.run("serve")
    assert status != 0
    assert "key" in error


def fill(path):
    """Write until the disk is full."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    with contextlib.suppress(OSError):
        while os.write(descriptor, b"\0" * 4096):
            pass
    os.close(descriptor)


@pytest.fixture
def small_disk(daemon):
    """A file system of one megabyte for journal or vCons; skips when it cannot be made."""
    mounted = []

    def mount(name, size):
        path = daemon.root / name
        path.mkdir(mode=0o700, exist_ok=True)
        options = f"size={size},mode=0700,uid={daemon.uid},gid={daemon.uid}"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)]
        if os.getuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
            pytest.skip("a small file system cannot be mounted here (needs root)")
        mounted.append(path)
        return path

    yield mount
    for path in mounted:
        subprocess.run(["umount", "-l", str(path)], check=False)


def test_full_disk_of_the_journal(daemon, small_disk):
    """A full disk answers record_unavailable; when there is room again, everything is there once."""
    folder = small_disk("state/recorder", "1500k")
    process = daemon.start()
    fill(folder / "ballast")
    pump = daemon.pump(40)
    try:
        wait_for(
            lambda: daemon.run("sessions", "--json")[0] == 0,
            what="an answer from a recorder with a full disk",
        )
        (folder / "ballast").unlink()
        for line in iter(pump.stdout.readline, b""):
            assert not line.startswith(b"LOST")
            if line.startswith(b"DONE"):
                break
        pump.stdin.close()
        with connected_authority(daemon):
            wait_for(lambda: len(daemon.vcons()) == 1, what="the vCon")
    finally:
        end_pump(pump)
        stop(process)
    (vcon,) = daemon.vcons()
    assert Counter(event["type"] for event in vcon["events"] if event["type"] != "system-event") == {
        "policy-decision": 40,
        "tool-invocation": 40,
        "tool-result": 40,
    }


def test_full_disk_of_the_records(daemon, small_disk):
    """When the finished vCon cannot be stored it is tried again; nothing of it is lost, no half file stays."""
    folder = small_disk("records", "64k")
    (folder / "ballast").write_bytes(b"\0" * 48 * 1024)
    process = daemon.start()
    pump = daemon.pump(60)
    try:
        for line in iter(pump.stdout.readline, b""):
            if line.startswith(b"DONE"):
                break
        with connected_authority(daemon):
            status, out, _ = daemon.run("close", "--all", "--json")
        assert status == 1
        (session,) = json.loads(out)["sessions"]
        assert (session["state"], session["problem"]) == ("failed", "record-unwritable")
        assert daemon.vcons() == []
        (folder / "ballast").unlink()
        subprocess.run(["mount", "-o", "remount,size=4m", str(folder)], check=True)
    finally:
        end_pump(pump)
        stop(process)
    process = daemon.start()
    try:
        wait_for(lambda: len(daemon.vcons()) == 1, what="the vCon after the restart")
    finally:
        stop(process)
    assert [path.name for path in folder.rglob(".*")] == []
    assert journal_types(daemon)["statement"] == 1

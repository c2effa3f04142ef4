"""A listening guard in system mode, with agent, server, authority and recorder under uids of their own."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from authorize.guard.processes import Client, SystemHouse, as_principal
from support.runtime import child_environment, onrecord, stop, wait_for

pytestmark = pytest.mark.root
PROOF_META = "io.modelcontextprotocol/callProof"


@pytest.fixture
def house(short_dir, uid_block):
    it = SystemHouse(short_dir, uid_block)
    yield it
    it.close()


def test_two_clients_have_two_servers(house):
    """One guard, one real server per connection under the server's uid; each call is recorded with its caller's uid."""
    house.start()
    house.start_guard()
    one, two = house.client(), house.client()
    one.open()
    two.open()
    assert one.call(1, text="a")["result"]["content"][0]["text"] == "a"
    assert two.call(1, text="b")["result"]["content"][0]["text"] == "b"
    pids = house.real_servers()
    assert len(pids) == 2
    assert {os.stat(f"/proc/{pid}").st_uid for pid in pids} == {house.server}
    asked = house.fakes.requests("callProof/verify")
    assert {params["peerUid"] for params in asked} == {house.agent}
    one.end()
    wait_for(lambda: len(house.real_servers()) == 1, what="the first server ends")
    two.process.kill()
    wait_for(lambda: not house.real_servers(), what="the second server ends with a killed connector")
    wait_for(lambda: len(house.recorder_fakes.entries()) == 8, what="everything is recorded")
    assert {entry["session"]["uid"] for entry in house.recorder_fakes.entries() if "session" in entry} == {
        house.agent
    }


def test_a_stranger_is_not_served(house):
    """The peer uid must be a caller of the bundle; another one gets the end of the connection and no server."""
    house.start()
    house.start_guard()
    os.chmod(house.directory / "run-srv/files/mcp.sock", 0o666)
    stranger = house.client("--pipe", uid=house.stranger)
    stranger.process.stdin.close()
    assert stranger.read() is None
    assert house.real_servers() == []
    wait_for(lambda: "peer.refused" in house.log(), what="the refusal is logged")


def test_without_a_readable_policy_nobody_is_served(house):
    """A guard without a bundle knows no caller."""
    house.start(policy=False)
    house.start_guard()
    client = house.client("--pipe")
    client.process.stdin.close()
    assert client.read() is None
    assert "policy.unreadable" in house.log()


def test_rules_of_the_bundle_are_followed_and_read_again(house):
    """refuse_methods and audit mode come from the signed bundle, for the next connection after a change."""
    house.start(policy=False)
    house.sign_policy(refuse_methods=["resources/read"])
    house.start_guard()
    client = house.client("--pipe")
    client.open()
    assert client.ask(1, "resources/read")["error"]["data"] == {"reason": "method_refused"}
    assert client.call(2)["error"]["data"]["reason"] == "missing"
    house.sign_policy(version=2, enforce="audit")
    client = house.client("--pipe")
    advertised = client.open()["result"]["capabilities"]["extensions"]["io.modelcontextprotocol/call-proof"]
    assert advertised["required"] is False
    assert client.call(2, text="x")["result"]["content"][0]["text"] == "x"
    house.sign_policy(version=1)
    assert house.client("--pipe").open() is not None
    assert "policy.unreadable code=policy-rollback" in house.log()


def test_audit_mode_is_warned_of_at_the_start(house):
    """Acceptance 32: a guard that enforces nothing says so when it starts; one that enforces does not."""
    house.start(policy=False)
    for version, enforce in enumerate(("required", "audit"), 1):
        house.sign_policy(version=version, enforce=enforce)
        stop(house.start_guard())
        assert ("mode.audit" in house.log()) is (enforce == "audit")


@pytest.mark.req("CP-106")
def test_a_squatted_authority_is_refused_by_both_sides(house):
    """Acceptance 18: connector and guard check who serves before the first byte."""
    house.start()
    house.start_guard()
    path = house.directory / "run/authority.sock"
    house.fakes.stop()
    house.daemons.remove(house.fakes)
    path.unlink(missing_ok=True)
    squatter = socket.socket(socket.AF_UNIX)
    squatter.bind(str(path))
    squatter.listen()
    os.chmod(path, 0o666)
    client = house.client()
    status, error = client.end()
    assert status == 3
    assert "peer-uid" in error
    pipe = house.client("--pipe")
    pipe.open()
    answer = pipe.call(1, meta={PROOF_META: {"type": "t", "value": "v"}})
    assert answer["error"]["data"]["reason"] == "authority_unreachable"
    squatter.setblocking(False)
    while True:
        try:
            taken, _ = squatter.accept()
        except BlockingIOError:
            break
        assert taken.recv(1) == b""
        taken.close()
    squatter.close()


@pytest.mark.req("CP-106")
def test_a_squatted_server_socket_is_refused(house):
    """The connector checks the guard's uid too."""
    house.start()
    path = house.directory / "run-srv/files/mcp.sock"
    with socket.socket(socket.AF_UNIX) as squatter:
        squatter.bind(str(path))
        squatter.listen()
        os.chmod(path, 0o666)
        for arguments in ((), ("--pipe",)):
            status, error = house.client(*arguments).end()
            assert status == 3
            assert "peer-uid" in error


def test_a_second_guard_does_not_start(house):
    """The flock names its holder; exit 2."""
    house.start()
    guard = house.start_guard()
    second = Client(
        onrecord("guard", "files", "--listen", "--config", str(house.file)), principal=house.principal(house.server),
        env=child_environment(),
    )  # fmt: skip
    status, error = second.end()
    assert status == 2
    assert "already-running" in error
    assert str(guard.pid) in error


def test_the_wrong_uid_does_not_start(house):
    """A guard runs as its server's uid and as nobody else."""
    house.start()
    wrong = Client(
        onrecord("guard", "files", "--listen", "--config", str(house.file)), principal=house.principal(house.stranger),
        env=child_environment(),
    )  # fmt: skip
    status, error = wrong.end()
    assert status == 2
    assert "wrong-uid" in error


def test_it_stops_in_order(house):
    """SIGTERM: the socket goes, the servers end, the spool is handed over."""
    house.start()
    guard = house.start_guard()
    client = house.client()
    client.open()
    client.call(1)
    assert stop(guard, signal_number=signal.SIGTERM) == 0
    assert client.read() is None
    assert house.real_servers() == []
    assert not (house.directory / "run-srv/files/mcp.sock").exists()
    assert [entry["kind"] for entry in house.recorder_fakes.entries()] == [
        "connection",
        "invocation",
        "result",
        "connection",
    ]
    assert house.recorder_fakes.entries()[-1]["cause"] == "guard-stop"


def test_kill_9_of_the_guard_takes_all_servers_along(house):
    """PR_SET_PDEATHSIG: no real server is left without its guard."""
    house.start()
    guard = house.start_guard()
    clients = [house.client() for _ in range(3)]
    for client in clients:
        client.open()
    assert len(house.real_servers()) == 3
    guard.kill()
    guard.wait()
    wait_for(lambda: not house.real_servers(), what="the real servers end")
    assert all(client.read() is None for client in clients)


@pytest.mark.req("CP-100", "CP-101")
def test_the_agent_cannot_look_into_the_server(house):
    """Acceptance 22: environment, memory and state of the server are closed to the agent's uid."""
    house.start()
    house.start_guard()
    client = house.client()
    client.open()
    (pid,) = house.real_servers()
    code = (
        "import os, sys\n"
        "failed = 0\n"
        "for path in sys.argv[1:]:\n"
        "    try:\n        os.open(path, os.O_RDONLY)\n"
        "    except PermissionError:\n        failed += 1\n"
        "try:\n    os.kill(int(sys.argv[1].split('/')[2]), 0)\n"
        "except PermissionError:\n    failed += 1\n"
        "print(failed)\n"
    )
    paths = [f"/proc/{pid}/environ", f"/proc/{pid}/mem", str(house.directory / "state/srv/files/guard.log")]
    probe = Client([_python(), "-c", code, *paths], principal=house.principal(house.agent))
    assert json.loads(probe.process.stdout.readline()) == 4
    probe.end()
    assert Path(house.directory / "state/srv/files").stat().st_mode & 0o077 == 0


MANY_CLIENTS = """
import json, socket, sys, time

def connect():
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(30)
    sock.connect(sys.argv[1])
    return sock

def opens(sock):
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    try:
        sock.sendall(json.dumps(line).encode() + b"\\n")
        return sock.recv(65536) != b""
    except OSError:
        return False

clients = [connect() for _ in range(33)]
opened = [opens(sock) for sock in clients]
clients[opened.index(True)].close()
end = time.monotonic() + 30
while not (again := opens(connect())) and time.monotonic() < end:
    pass
print(json.dumps([sum(opened), again]), flush=True)
sys.stdin.read()
"""


def test_many_clients_are_bounded(house):
    """At most 32 connections; the next one is closed, and a place that is free again is given away."""
    house.start()
    house.start_guard()
    done = subprocess.run(
        [sys.executable, "-I", "-c", MANY_CLIENTS, str(house.directory / "run-srv/files/mcp.sock")],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd="/",
        **as_principal(house.principal(house.agent)),
    )
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads(done.stdout) == [32, True]
    assert "connection.refused reason=too many uid" in house.log()


def test_one_agent_does_not_lock_out_another(house):
    """Where the policy has two callers, one uid that connects without end gets 24 places, and the other is served."""
    house.start(policy=False)
    house.sign_policy(callers=[house.agent, house.stranger])
    house.start_guard()
    os.chmod(house.directory / "run-srv/files/mcp.sock", 0o666)
    greedy = subprocess.Popen(
        [sys.executable, "-I", "-c", MANY_CLIENTS, str(house.directory / "run-srv/files/mcp.sock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        **as_principal(house.principal(house.agent)),
    )
    try:
        assert json.loads(greedy.stdout.readline()) == [24, True]
        other = house.client("--pipe", uid=house.stranger)
        assert other.open()["result"]["serverInfo"]
        assert f"connection.refused reason=too many of one uid uid={house.agent}" in house.log()
    finally:
        greedy.communicate()


def _python():
    import sys

    return sys.executable

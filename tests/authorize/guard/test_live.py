"""Connector and guard with the real authority, the real policy and the real recorder."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from authorize.guard.processes import HERE, Client
from onrecord.authorize.policy import schema_hash
from support.runtime import child_environment, wait_for

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
GROWTH_KIB = 8192
"""What a process may grow by in 1,000 calls: remembered proofs, operations and journal caches are bounded, not free."""

GROWTH_DESCRIPTORS = 64
"""As GROWTH_KIB: a descriptor left in 16 calls is seen; one that is opened late or held for a moment is not."""

BINDING = [
    {
        "tool": "echo",
        "inputSchemaSha256": schema_hash(SCHEMA),
        "op": "read",
        "impact": 0,
        "arguments": {"text": {"json": "string"}},
    }
]


@pytest.fixture
def system(user_mode):
    made = user_mode(servers={"files": {"command": sys.executable, "args": [], "cwd": "/"}})
    directory = made.directory
    shutil.copy(HERE / "mcp_servers.py", directory / "mcp_servers.py")
    os.chmod(directory / "mcp_servers.py", 0o644)
    args = json.dumps([str(directory / "mcp_servers.py"), "plain", str(directory / "spy")])
    made.file.write_text(made.file.read_text().replace("args = []", f"args = {args}", 1))
    (made.configuration.policy.source / "bindings" / "files.json").write_text(json.dumps(BINDING))

    def bind(document):
        document["servers"].append(
            {
                "id": "files", "uid": made.uid, "tiServer": "test-files", "enforce": "required", "refuse_methods": [],
                "discloseCaller": False, "roots": {}, "bases": {}, "bindings": "bindings/files.json",
            }
        )  # fmt: skip
        document["limits"] |= {"issuePerSecond": 10**6, "issueBurst": 10**6}

    made.edit_policy(bind)
    made.start_all()
    yield made
    made.stop()


@pytest.fixture
def connect(system):
    """Start a client of the system with these arguments; what a failed test leaves is ended."""
    clients = []

    def start(*arguments):
        environment = child_environment(HOME=str(system.directory), ONRECORD_RECORD_SESSION="live-1")
        command = system.command("connect", "files", *arguments)
        clients.append(Client(command, principal=system.principal, env=environment))
        return clients[-1]

    yield start
    for client in clients:
        client.drop()


def test_the_whole_way(system, connect):
    """A permitted call runs, another is denied, an unproven one is missing; authority restarts are survived."""
    client = connect()
    client.open()
    assert client.call(1, text="hello")["result"]["content"][0]["text"] == "hello"
    assert client.call(2, text="hello")["result"]["content"][0]["text"] == "hello"
    denied = client.call(3, name="unbound", path="ARGUMENT-CANARY")["error"]
    assert denied["code"] == -33001
    assert denied["message"].startswith("Denied by policy (ref ")
    pipe = connect("--pipe")
    pipe.open()
    assert pipe.call(1, text="x")["error"]["data"] == {"reason": "missing"}
    assert pipe.end()[0] == 0
    system.kill()
    assert client.call(4, text="x")["error"]["data"]["reason"] == "authority_unreachable"
    system.start_all()
    answers = []

    def works():
        answers.append(client.call(100 + len(answers), text="again"))
        return "result" in answers[-1]

    wait_for(works, what="the restarted authority knows the tools and issues again")
    assert client.end()[0] == 0
    sessions = system.run("record", "sessions", "--json")
    assert sessions.returncode == 0, sessions.stderr.decode()
    assert "live-1" in sessions.stdout.decode()
    state = system.configuration.guard_state("files")
    assert list(state.glob("*.spool")) == []
    assert json.loads((state / "checkpoint.json").read_text())["size"] > 0
    assert "ARGUMENT-CANARY" not in (state / "guard.log").read_text()


def processes(system, client):
    """Return the pids of everything that takes part, by name."""

    def child(pid):
        (found,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(found)

    guard = child(client.process.pid)
    return {
        "recorder": system.recorder.pid,
        "authority": system.authority.pid,
        "connector": client.process.pid,
        "guard": guard,
        "server": child(guard),
    }


def status_of(pid, key):
    return int(re.search(rf"{key}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])


def descriptors(pids):
    """Count the open descriptors; of a process that shows them to root alone, the size of the kernel's table."""
    found = {}
    for name, pid in pids.items():
        try:
            found[name] = len(os.listdir(f"/proc/{pid}/fd"))
        except PermissionError:
            found[name] = status_of(pid, "FDSize")
    return found


def memory(pids):
    """Return the private memory in KiB of each process."""
    return {name: status_of(pid, "RssAnon") for name, pid in pids.items()}


def test_a_thousand_calls_leave_nothing_behind(system, connect):
    """Acceptance 77 in small (benchmarks/growth.py has 10,000): no process gathers descriptors or memory."""
    client = connect()
    client.open()

    def call(numbers):
        for number in numbers:
            assert "result" in client.call(number, text=f"text {number}")

    call(range(500))
    pids = processes(system, client)
    before = descriptors(pids), memory(pids)
    call(range(500, 1500))
    opened = {name: count - before[0][name] for name, count in descriptors(pids).items()}
    assert all(count <= GROWTH_DESCRIPTORS for count in opened.values()), opened
    grown = {name: size - before[1][name] for name, size in memory(pids).items()}
    assert all(size <= GROWTH_KIB for size in grown.values()), grown
    assert client.end()[0] == 0

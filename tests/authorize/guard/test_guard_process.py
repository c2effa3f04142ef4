"""Guards and connectors as real processes in user mode, with fake daemons: who ends whom, what is left behind."""

import json
import os
import signal
from pathlib import Path

import pytest

from authorize.guard.processes import Client, UserHouse
from support.runtime import child_environment, wait_for

PROOF_META = "io.modelcontextprotocol/callProof"


@pytest.fixture
def house(user_mode):
    made = []

    def make(kind="plain", *daemons, values=None):
        made.append(UserHouse(user_mode, kind, **(values or {})))
        made[-1].start_fakes(*daemons)
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize("kind", ["plain", "noisy", "pages"])
def test_a_client_that_knows_nothing_works(house, kind):
    """Acceptance 24, trap 11: initialize, list, call; the real server's noise does no harm."""
    it = house(kind)
    client = it.client()
    capabilities = client.open()["result"]["capabilities"]
    assert capabilities["extensions"]["io.modelcontextprotocol/call-proof"]["required"] is True
    assert client.ask(2, "tools/list")["result"]["tools"][0]["name"] == "echo"
    assert client.call(3, text="hello")["result"]["content"][0]["text"] == "hello"
    denied = client.call(4, name="deny_me")["error"]
    assert (
        denied["message"]
        == "Denied by policy (ref q7Zt0cXn4LmA). Nothing was executed. Do not retry; tell the user."
    )
    assert client.end()[0] == 0
    assert [one["params"] for one in it.ran()] == [{"name": "echo", "arguments": {"text": "hello"}}]
    assert [one["kind"] for one in it.fakes.entries()] == ["connection", "invocation", "result", "connection"]
    assert list(it.state.glob("*.spool")) == []
    assert "CANARY" not in it.log()
    assert "PROOF-CANARY" not in json.dumps(it.fakes.entries())


def test_a_call_as_the_very_first_line(house):
    """No handshake at all: a script that pipes one line gets its answer, and its end of input does not cut it off."""
    it = house()
    client = it.client()
    client.send(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "x"}},
        }
    )
    client.process.stdin.close()
    assert client.read()["result"]["content"][0]["text"] == "x"
    assert client.process.wait(30) == 0
    methods = [
        one[0] for one in map(json.loads, (it.system.directory / "requests.jsonl").read_text().splitlines())
    ]
    assert methods.index("callProof/tools") < methods.index("callProof/issue")


def test_an_input_file_works_like_a_pipe(house):
    """`onrecord connect ID < file` answers too, though no event loop can watch a file."""
    it = house()
    script = it.system.directory / "script"
    script.write_text('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}\n')
    os.chmod(script, 0o644)
    with script.open("rb") as stdin:
        done = it.system._run(it.system.command("connect", "files"), stdin=stdin, timeout=60)
    assert json.loads(done.stdout)["id"] == 1
    assert done.returncode == 0


def test_pipe_copies_and_asks_for_nothing(house):
    """Acceptance 24: with --pipe a naive client gets missing; its own proof passes, and works once."""
    it = house()
    client = it.client("--pipe")
    client.open()
    assert client.call(1, text="a")["error"]["data"] == {"reason": "missing"}
    assert it.fakes.requests("callProof/issue") == []
    proof = {PROOF_META: {"type": "dev.onrecord/handle", "value": "unknown"}}
    assert client.call(2, meta=proof, text="a")["error"]["data"] == {"reason": "invalid"}
    assert it.ran() == []
    assert client.end()[0] == 0


@pytest.mark.parametrize("arguments", [(), ("--pipe",)])
def test_no_call_hides_between_carriage_returns(house, arguments):
    """To a server that reads its input as text a CR ends a line; what stands between two of them must not run."""
    it = house()
    client = it.client(*arguments)
    client.open()
    inner = (
        b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"no"}}}'
    )
    client.send(b'{"jsonrpc":"2.0","id":2,"method":"unknown/method","params":\r' + inner + b"\r}")
    assert client.read()["id"] == 2
    assert it.ran() == []
    client.end()


def test_broken_lines_are_answered_through_both_processes(house):
    """Acceptance 9: whatever comes, an answer follows, and the connection lives on."""
    it = house()
    client = it.client()
    client.open()
    for line, code in (
        (b"nonsense", -32700),
        (b"\xff\xfe", -32700),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"a":1,"a":2}}}',
            -32600,
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":[]}}', -32602),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","x":"'
            + b"y" * (1 << 20)
            + b'"}}',
            -32600,
        ),
        (b"[]", -32600),
    ):
        client.send(line)
        assert client.read()["error"]["code"] == code
    assert client.call(9, text="still here")["result"]["content"][0]["text"] == "still here"
    assert len(it.ran()) == 1
    client.end()


@pytest.mark.req("CP-101")
def test_the_servers_environment_is_clean(house):
    """Acceptance 23: nothing of the client's environment gets in; its own secrets do."""
    it = house()
    secrets = it.system.directory / "files.env"
    secrets.write_text("# own\nTOKEN=server-secret\n")
    os.chown(secrets, it.system.uid, it.system.uid)
    os.chmod(secrets, 0o600)
    text = it.system.file.read_text()
    it.system.file.write_text(
        text.replace("env_pass = []", f'env_file = "{secrets}"\nenv_pass = ["PASSED"]', 1)
    )
    client = it.client(AGENT_SECRET="agent-secret", PASSED="yes", PYTHONPATH="/nowhere", LC_ALL="C.UTF-8")
    client.open()
    found = json.loads(client.call(1, text="environment")["result"]["content"][0]["text"])
    assert found["TOKEN"] == "server-secret"
    assert found["PASSED"] == "yes"
    assert set(found) <= {
        "PATH",
        "HOME",
        "USER",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "TOKEN",
        "PASSED",
    }
    client.end()
    assert "server-secret" not in it.log()


class TestKilling:
    """The rows of running.md 1.1 for guard, connector and real server."""

    def test_the_connector(self, house):
        """The real server ends with it; the record has no cancel, since none was sent."""
        it = house("hang")
        client = it.client()
        client.open()
        client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}})
        wait_for(it.ran, what="the call runs")
        client.process.kill()
        wait_for(lambda: not it.real_servers(), what="the real server ends")
        wait_for(
            lambda: any(one.get("state") == "close" for one in it.fakes.entries()),
            what="the connection is closed",
        )
        assert [one["kind"] for one in it.fakes.entries()] == ["connection", "invocation", "connection"]

    def test_the_guard(self, house):
        """The real server is killed with it, the client sees the end, and the next guard ships what it left."""
        it = house("hang", "agent", "server")
        client = it.client()
        client.open()
        client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}})
        wait_for(it.ran, what="the call runs")
        os.kill(it.guard_pid(client), signal.SIGKILL)
        assert client.read() is None
        assert client.process.wait(30) == 3
        wait_for(lambda: not it.real_servers(), what="the real server ends")
        (orphan,) = it.state.glob("*.spool")
        it.fakes.stop()
        it.start_fakes()
        other = it.client()
        other.open()
        wait_for(
            lambda: [one["kind"] for one in it.fakes.entries()] == ["connection", "invocation"],
            what="the orphan is shipped",
        )
        wait_for(lambda: not orphan.exists(), what="the orphan is removed")

    def test_the_real_server(self, house):
        """The open attempt ends with the transport, and the connection is closed."""
        it = house("hang")
        client = it.client()
        client.open()
        client.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}})
        wait_for(it.ran, what="the call runs")
        (pid,) = it.real_servers()
        os.kill(pid, signal.SIGKILL)
        assert client.read() is None
        client.process.wait(30)
        wait_for(lambda: len(it.fakes.entries()) == 4, what="everything is recorded")
        assert it.fakes.entries()[2]["content"] == {"transport": "eof"}
        assert it.fakes.entries()[3]["cause"] == "server-eof"

    def test_a_server_that_crashes_in_a_call(self, house):
        """The same when it ends by itself."""
        it = house("crash")
        client = it.client()
        client.open()
        assert client.call() is None
        wait_for(lambda: len(it.fakes.entries()) == 4, what="everything is recorded")
        assert "server.exited" in it.log()

    def test_children_of_the_real_server(self, house):
        """Its whole group ends."""
        it = house()
        text = it.system.file.read_text()
        it.system.file.write_text(
            text.replace(f'command = "{_python()}"', 'command = "/bin/sh"', 1).replace(
                'args = ["', f'args = ["-c", "sleep 1000 & exec {_python()} $0 $1 $2", "', 1
            )
        )
        client = it.client()
        client.open()
        (pid,) = it.real_servers()

        def group():
            found = []
            for entry in os.scandir("/proc"):
                if entry.name.isdigit():
                    try:
                        fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
                    except OSError:
                        continue
                    if int(fields[2]) == pid and fields[0] != "Z":
                        found.append(int(entry.name))
            return found

        assert len(group()) >= 2
        assert client.end()[0] == 0
        wait_for(lambda: not group(), what="the group ends")


class TestAuthorityDown:
    def test_it_stops(self, house):
        """Row of running.md 1.1: a local error of the connector, nothing runs; a new one serves the same connection."""
        it = house("plain")
        client = it.client()
        client.open()
        assert "result" in client.call(1)
        it.fakes.stop(signal.SIGKILL)
        error = client.call(2)["error"]
        assert (error["code"], error["data"]["reason"]) == (-33007, "authority_unreachable")
        it.start_fakes()
        answers = []

        def works():
            answers.append(client.call(100 + len(answers)))
            return "result" in answers[-1]

        wait_for(works, what="calls work again")
        assert len(it.ran()) == 2

    def test_at_the_guard(self, house):
        """With a proof of its own the client hears from the guard: -32021 authority_unreachable, no side effect."""
        it = house("plain", "agent")
        client = it.client("--pipe")
        client.open()
        answer = client.call(1, meta={PROOF_META: {"type": "t", "value": "v"}})
        assert answer["error"]["data"]["reason"] == "authority_unreachable"
        assert it.ran() == []

    def test_the_connector_does_not_start_without_it(self, user_mode):
        """Exit 3, and it says what to do; the authority is never started by it."""
        it = UserHouse(user_mode, "plain")
        client = it.client()
        status, error = client.end()
        assert status == 3
        assert "onrecord up is not running" in error


def test_a_recorder_that_is_away_costs_nothing(house):
    """Row of call-proof.md 11: calls go on, the spool keeps, and is handed over later."""
    it = house("plain", "agent", "server")
    client = it.client()
    client.open()
    assert "result" in client.call(1)
    client.end()
    (spool,) = it.state.glob("*.spool")
    lines = [json.loads(line) for line in spool.read_text().splitlines()]
    assert [one["kind"] for one in lines] == ["connection", "invocation", "result", "connection"]
    assert "PROOF-CANARY" not in spool.read_text()


def test_two_guards_of_one_server_have_a_spool_each(house):
    """Row of running.md 12: in user mode each client has its guard; both work, each with its own spool."""
    it = house("plain", "agent", "server")
    clients = [it.client(), it.client()]
    for client in clients:
        client.open()
    for client in clients:
        assert "result" in client.call(1)
    spools = sorted(it.state.glob("*.spool"))
    assert len(spools) == 2
    for client in clients:
        assert "result" in client.call(2)
        assert client.end()[0] == 0
    assert sorted(it.state.glob("*.spool")) == spools
    it.fakes.stop()
    it.start_fakes()
    last = it.client()
    last.open()
    wait_for(lambda: len(it.fakes.entries()) == 12, what="both spools are handed over")
    sources = [params["source"] for params in it.fakes.requests("record/hello")]
    assert {path.stem for path in spools} <= set(sources)


def test_a_full_spool_refuses_before_the_proof_is_spent(house):
    """Row of running.md 12."""
    it = house("plain", "agent", "server", values={"limits.spool_bytes": 1 << 20})
    client = it.client()
    client.open()
    number = 0
    answer = {"result": {}}
    while "result" in answer:
        number += 1
        answer = client.call(number, text="x" * 60_000)
    assert (answer["error"]["code"], answer["error"]["data"]["reason"]) == (-32603, "record_unavailable")
    verified = len(it.fakes.requests("callProof/verify"))
    assert "error" in client.call(1000)
    assert len(it.fakes.requests("callProof/verify")) == verified == number - 1
    assert sum(path.stat().st_size for path in it.state.glob("*.spool")) <= 1 << 20


def test_the_newest_note_of_the_journal_is_kept(house):
    """transparency.md 4.6: what the authority said last lies in the guard's state."""
    it = house()
    client = it.client()
    client.open()
    client.call(1)
    client.call(2)
    client.end()
    assert json.loads((it.state / "checkpoint.json").read_text())["size"] == 2


def test_root_is_refused(house):
    """R-02: uid 0 is nobody's."""
    if os.getuid() != 0:
        pytest.skip("needs root to be refused as root")
    it = house()
    os.chown(it.system.file, 0, 0)
    client = Client(it.system.command("guard", "files"), env=child_environment())
    status, error = client.end()
    assert status == 2
    assert "runs-as-root" in error


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("command = ", 'command = "/nonexistent/program" #'), "cannot-start"),
        (("cwd = ", 'cwd = "/nonexistent" #'), "cannot-start"),
        (("[servers.files]\n", '[servers.files]\nenv_file = "/nonexistent"\n'), "env-file-missing"),
    ],
)
def test_a_server_that_cannot_start(house, change, code):
    """Exit 2 with what is wrong."""
    it = house()
    text = it.system.file.read_text()
    head, mark, tail = text.partition("[servers.files]\n")
    it.system.file.write_text(head + (mark + tail).replace(*change, 1))
    status, error = it.client(command="guard").end()
    assert status == 2
    assert code in error


def test_an_unknown_server(house):
    """Exit 2, both commands."""
    it = house()
    for command in ("guard", "connect"):
        done = it.system.run(command, "other")
        assert done.returncode == 2
        assert b"server-unknown" in done.stderr


def test_a_session_can_be_named(house):
    """ONRECORD_RECORD_SESSION overrides the label; the default is that of the connector's parent."""
    it = house()
    client = it.client(ONRECORD_RECORD_SESSION="review-7")
    client.open()
    client.call()
    client.end()
    assert it.fakes.requests("callProof/issue")[0]["recordSession"] == "review-7"
    assert it.fakes.entries()[1]["session"]["label"] == "review-7"
    other = it.client()
    other.open()
    other.call()
    other.end()
    assert it.fakes.requests("callProof/issue")[1]["recordSession"].startswith(f"p{os.getpid()}-")
    bad = it.client(ONRECORD_RECORD_SESSION="no spaces")
    status, error = bad.end()
    assert (status, "record-session-label" in error) == (2, True)


def test_sigterm_lets_a_running_call_end(house):
    """A guard that is told to stop answers what runs, and refuses new calls."""
    it = house("elicit")
    client = it.client(command="guard")
    client.open()
    proof = _issue(it)
    client.send(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "echo", "_meta": {PROOF_META: proof}},
        }
    )
    question = client.read()
    assert question["method"] == "elicitation/create"
    client.process.terminate()
    wait_for(lambda: _is_stopping(client), what="the guard refuses new calls")
    client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}})
    answer = client.read()
    while answer is not None and answer.get("id") != 1:
        answer = client.read()
    assert answer["result"]["content"][0]["text"] == "hello accept"
    assert client.process.wait(30) == 0


def _is_stopping(client):
    answer = client.call(500, name="x")
    return answer["error"]["data"]["reason"] == "stopping"


def _issue(it):
    code = (
        "import asyncio, json, sys\nfrom pathlib import Path\nfrom onrecord.authorize.client import CallProofClient\n"
        "from onrecord.base.configuration import Configuration\n"
        "async def main():\n"
        "    client = await CallProofClient.connect(Configuration.load(Path(sys.argv[1])))\n"
        "    proof = await client.issue('files', 'echo')\n"
        "    print(json.dumps(dict(proof.evidence)))\n"
        "    await client.close()\n"
        "asyncio.run(main())\n"
    )
    done = it.system.python(code, str(it.system.file))
    return json.loads(done.stdout)


def _python():
    import sys

    return sys.executable


def test_a_command_can_be_given(house):
    """`onrecord guard ID -- CMD…` runs another program behind the same rules."""
    it = house()
    other = ["--", _python(), str(it.system.directory / "mcp_servers.py"), "noisy", str(it.spy)]
    argv = [*it.system.command("guard", "files"), *other]
    client = Client(argv, principal=it.principal, env=child_environment(HOME=str(it.system.directory)))
    it.clients.append(client)
    client.open()
    assert client.call(1)["error"]["data"] == {"reason": "missing"}
    assert client.end()[0] == 0
    assert "stdout.noise" in it.log()

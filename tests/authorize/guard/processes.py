"""Real guards and connectors as processes, with fake or real daemons behind them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from onrecord.base.processes import Principal
from support.runtime import child_environment, onrecord, stop, wait_for

HERE = Path(__file__).parent


def as_principal(principal):
    if principal is None:
        return {}
    return {"user": principal.uid, "group": principal.gid, "extra_groups": list(principal.groups)}


class Client:
    """An MCP client at the pipes of a process."""

    def __init__(self, argv, *, principal=None, env=None, cwd="/"):
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=env or child_environment(), cwd=cwd, umask=0o077, **as_principal(principal),
        )  # fmt: skip

    def send(self, message):
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def ask(self, request_id, method, params=None):
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})
        return self.read()

    def open(self):
        answer = self.ask(
            "open", "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
        )  # fmt: skip
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def call(self, request_id=1, name="echo", meta=None, **arguments):
        return self.ask(
            request_id,
            "tools/call",
            {"name": name, "arguments": arguments, **({"_meta": meta} if meta else {})},
        )

    def end(self):
        """Close the input; return status and standard error."""
        self.process.stdin.close()
        status = self.process.wait(30)
        error = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return status, error

    def drop(self):
        stop(self.process, signal_number=9)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:
                pass


class Fakes:
    """Fake daemons in a process of their own."""

    def __init__(self, log, sockets, *, principal=None):
        self.log = log
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", RUN_FAKES, str(HERE / "fakes.py"), str(log), *sockets],
            stdout=subprocess.PIPE, env=child_environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path))), cwd="/",
            **as_principal(principal),
        )  # fmt: skip
        assert self.process.stdout.readline() == b"ready\n"

    def requests(self, method=None):
        rows = [json.loads(line) for line in self.log.read_text().splitlines()]
        return [params for name, params in rows if method in (None, name)]

    def entries(self):
        return [entry for params in self.requests("record/append") for entry in params["entries"]]

    def stop(self, number=15):
        stop(self.process, signal_number=number)
        self.process.stdout.close()


RUN_FAKES = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"


class UserHouse:
    """User mode with fake daemons and one server of `mcp_servers.py`."""

    def __init__(self, user_mode, kind, **values):
        self.kind = kind
        programs = {"files": {"command": sys.executable, "args": [], "cwd": "/"}}
        self.system = user_mode(servers=programs, values=values)
        directory = self.system.directory
        for name in ("mcp_servers.py", "fakes.py"):
            shutil.copy(HERE / name, directory / name)
            os.chmod(directory / name, 0o644)
        self.spy = directory / "spy.jsonl"
        self.principal = self.system.principal
        self.configuration = self.system.configuration
        self.runtime = self.configuration.paths.runtime
        text = self.system.file.read_text()
        args = json.dumps([str(directory / "mcp_servers.py"), kind, str(self.spy)])
        self.system.file.write_text(text.replace("args = []", f"args = {args}", 1))
        assert args in self.system.file.read_text()
        self.state = self.configuration.guard_state("files")
        self.fakes = None
        self.clients = []

    def start_fakes(self, *kinds):
        sockets = {
            "agent": f"authority={self.configuration.agent_socket()}",
            "server": f"authority={self.configuration.server_socket('files')}",
            "record": f"recorder={self.configuration.record_socket()}",
        }
        if self.principal is not None:
            os.makedirs(self.runtime, exist_ok=True)
            os.chown(self.runtime, self.principal.uid, self.principal.gid)
            os.chmod(self.runtime, 0o700)
        else:
            os.makedirs(self.runtime, mode=0o700, exist_ok=True)
        self.fakes = Fakes(
            self.system.directory / "requests.jsonl",
            [sockets[kind] for kind in kinds or sockets],
            principal=self.principal,
        )
        return self.fakes

    def client(self, *arguments, command="connect", **env):
        argv = self.system.command(command, "files", *arguments)
        environment = child_environment(HOME=str(self.system.directory), **env)
        self.clients.append(Client(argv, principal=self.principal, env=environment))
        return self.clients[-1]

    def ran(self):
        """Return the tool calls that the real server saw."""
        return [json.loads(line) for line in self.spy.read_text().splitlines()] if self.spy.exists() else []

    def log(self):
        return (self.state / "guard.log").read_text()

    def real_servers(self):
        """Return the pids of the real servers."""
        found = []
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                try:
                    line = Path(entry.path, "cmdline").read_bytes()
                except OSError:
                    continue
                if str(self.spy).encode() in line and b"launcher" not in line:
                    found.append(int(entry.name))
        return found

    def guard_pid(self, client):
        """Return the pid of the guard that a connector has started."""
        children = Path(f"/proc/{client.process.pid}/task/{client.process.pid}/children").read_text().split()
        return int(children[0])

    def close(self):
        for client in self.clients:
            client.drop()
        if self.fakes is not None:
            self.fakes.stop()
        wait_for(lambda: not self.real_servers(), what="the real servers end")


class SystemHouse:
    """System mode without accounts: agent, server, authority and recorder under uids of their own."""

    def __init__(self, directory, block, kind="plain"):
        self.directory = directory
        os.chmod(directory, 0o755)
        self.agent, self.server, self.authority, self.recorder = block[0], block[1], block[2], block[3]
        self.stranger = block[4]
        for name in ("mcp_servers.py", "fakes.py"):
            shutil.copy(HERE / name, directory / name)
            os.chmod(directory / name, 0o644)
        for path, owner in (
            ("run", self.authority), ("run-record", self.recorder), ("run-srv", 0), ("run-srv/files", self.server),
            ("state", 0), ("state/srv", 0), ("state/srv/files", self.server), ("spy", self.server), ("log", self.authority),  # noqa: E501
            ("rlog", self.recorder),
        ):  # fmt: skip
            (directory / path).mkdir()
            os.chown(directory / path, owner, owner)
            os.chmod(directory / path, 0o700 if path == "state/srv/files" else 0o755)
        self.spy = directory / "spy" / "calls"
        self.file = directory / "onrecord.toml"
        self.file.write_text(
            CONFIGURATION.format(
                d=directory, python=sys.executable, kind=kind, spy=self.spy, server=self.server, authority=self.authority,  # noqa: E501
                recorder=self.recorder, agent=self.agent,
            )
        )  # fmt: skip
        os.chmod(self.file, 0o644)
        self.daemons = []
        self.clients = []

    def principal(self, uid):
        return Principal(uid, uid, (self.agent,) if uid == self.server else ())

    def start(self, *, policy=True):
        if policy:
            self.sign_policy()
        self.fakes = Fakes(
            self.directory / "log" / "requests", [f"authority={self.directory}/run/authority.sock"],
            principal=self.principal(self.authority),
        )  # fmt: skip
        self.recorder_fakes = Fakes(
            self.directory / "rlog" / "requests", [f"recorder={self.directory}/run-record/record.sock"],
            principal=self.principal(self.recorder),
        )  # fmt: skip
        self.daemons += [self.fakes, self.recorder_fakes]

    def sign_policy(self, *, version=1, callers=None, **changes):
        from onrecord.authorize.policy.signatures import sign
        from onrecord.base.keys import ed25519_public_bytes, format_trusted_key, generate_key_file
        from support.policies import example_document

        document = example_document()
        document["version"] = version
        document["callers"] = [
            {"id": f"agent-{n}", "uid": uid, "role": "agent", "groups": document["groups"]["callers"][:1]}
            for n, uid in enumerate(callers or [self.agent], 1)
        ]
        server = {
            "id": "files", "uid": self.server, "enforce": "required", "refuse_methods": [], "discloseCaller": False,
            "roots": {}, "bases": {}, "tools": [], **changes,
        }  # fmt: skip
        document["servers"] = [server]
        for other, approver in enumerate(document["approvers"]):
            approver["uid"] = self.stranger + 1 + other
        document["controlRoles"] = []
        document["policies"] = (
            '@id("any") permit(principal, action == Action::"tools/call", resource in Server::"files");'
        )
        document.pop("userMode", None)
        signer = (
            generate_key_file(self.directory / "policy.pem") if not hasattr(self, "signer") else self.signer
        )
        self.signer = signer
        data = json.dumps(document).encode()
        trust = self.directory / "trust"
        trust.mkdir(exist_ok=True)
        (trust / "policy.keys").write_text(format_trusted_key(ed25519_public_bytes(signer), "test"))
        (self.directory / "policy.bundle.json").write_bytes(data)
        (self.directory / "policy.bundle.json.sig").write_text(sign(data, signer=signer))
        for path in (
            trust,
            *trust.iterdir(),
            self.directory / "policy.bundle.json",
            self.directory / "policy.bundle.json.sig",
        ):
            os.chmod(path, 0o755 if path.is_dir() else 0o644)

    def start_guard(self):
        from support.runtime import start_ready

        self.guard = start_ready(
            onrecord("guard", "files", "--listen", "--config", str(self.file)), principal=self.principal(self.server),
            env=child_environment(), stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return self.guard

    def client(self, *arguments, uid=None):
        argv = onrecord("connect", "files", *arguments, "--config", str(self.file))
        self.clients.append(Client(argv, principal=self.principal(self.agent if uid is None else uid)))
        return self.clients[-1]

    def ran(self):
        return [json.loads(line) for line in self.spy.read_text().splitlines()] if self.spy.exists() else []

    def log(self):
        return (self.directory / "state/srv/files/guard.log").read_text()

    real_servers = UserHouse.real_servers

    def close(self):
        for client in self.clients:
            client.drop()
        if getattr(self, "guard", None) is not None:
            stop(self.guard, signal_number=9)
        for daemon in self.daemons:
            daemon.stop()


CONFIGURATION = """
mode = "system"
[paths]
config = "{d}"
state = "{d}/state"
runtime = "{d}/run"
records = "{d}/records"
[sockets]
authority = "{d}/run/authority.sock"
approval = "{d}/run/approval.sock"
control = "{d}/run/control.sock"
record = "{d}/run-record/record.sock"
[principals]
authority = {authority}
recorder = {recorder}
call_group = {agent}
approval_group = {agent}
control_group = {agent}
record_group = {agent}
readers_group = {agent}
[trust]
policy = "{d}/trust/policy.keys"
[policy]
bundle = "{d}/policy.bundle.json"
[servers.files]
command = "{python}"
args = ["{d}/mcp_servers.py", "{kind}", "{spy}"]
cwd = "/"
user = {server}
"""

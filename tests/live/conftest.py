"""A deployment in user mode in front of one real server, and the official client on both sides of it."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from live.bindings import bindings_for
from live.clients import connect
from support.checkout import installed_servers
from support.runtime import child_environment, make_short_dir
from support.uids import uid_block_or_skip

STOP_SECONDS = 30

OWN_UID_SECONDS = 110
"""A bit less than the time limit of a test, so that a run under another uid is ended by us."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Run each test as an ordinary user: daemons in user mode refuse to be root."""
    if os.geteuid() != 0:
        return None
    uid = uid_block_or_skip()[0]
    directory = make_short_dir()
    try:
        os.chown(directory, uid, uid)
        options = [
            "-q",
            "-rs",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            "--basetemp",
            str(directory / "t"),
        ]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, pyfuncitem.nodeid],
            capture_output=True,
            text=True,
            timeout=OWN_UID_SECONDS,
            cwd=pyfuncitem.config.rootpath,
            env=child_environment(HOME=str(directory), PYTHONDONTWRITEBYTECODE="1", **_own_settings()),
            user=uid,
            group=uid,
            extra_groups=[],
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if done.returncode != 0:
        pytest.fail(done.stdout + done.stderr, pytrace=False)
    if " skipped" in done.stdout:
        pytest.skip(
            next((line for line in done.stdout.splitlines() if line.startswith("SKIPPED")), "skipped")
        )
    return True


def _own_settings():
    settings = {"ONRECORD_TEST_SERVERS": str(installed_servers())}
    if "ONRECORD_SHARED_DATA" in os.environ:
        settings["ONRECORD_SHARED_DATA"] = os.environ["ONRECORD_SHARED_DATA"]
    return settings


@dataclass
class Live:
    """A running authority and recorder, and the real server they stand in front of."""

    configuration: object
    server: str
    command: list
    cwd: Path
    children: list
    environment: dict = field(default_factory=dict)

    def direct(self, *, mode="auto", **more):
        """Connect to the real server itself."""
        return self._client(self.command, mode=mode, cwd=self.cwd, env=self.environment, **more)

    def guarded(self, *, mode="auto", pipe=False, proof_aware=False, **more):
        """Connect through `onrecord connect`, with the guard behind it. `more` are options of the client."""
        return self._client(self.connector(pipe=pipe), mode=mode, proof_aware=proof_aware, **more)

    def behind(self, proxy, *, mode="auto", pipe=False):
        """Connect to a proxy that starts `onrecord connect`; `proxy` is its command, to which that is appended."""
        return self._client([*proxy, *self.connector(pipe=pipe)], mode=mode)

    def connector(self, *, pipe=False):
        """Return the command of `onrecord connect` for this server."""
        own = [sys.executable, "-m", "onrecord", "connect", self.server]
        return [*own, "--config", str(self.configuration.file), *(["--pipe"] if pipe else [])]

    def _client(self, command, **options):
        return connect(command, log=self.configuration.paths.state / "client.log", **options)

    def stop(self):
        """End the authority, then the recorder."""
        while self.children:
            child = self.children.pop()
            child.send_signal(signal.SIGTERM)
            child.wait(timeout=STOP_SECONDS)


@pytest.fixture
def live(short_dir):
    """Return a function that starts a deployment for one server."""
    pytest.importorskip("mcp")
    from onrecord.authorize.policy.starter import write_source
    from onrecord.authorize.setup import initialize

    started = []

    def start(server, command, *, cwd, roots, bases, caller="agent"):
        root = short_dir / "onrecord"
        root.mkdir(mode=0o700)
        configuration = initialize(
            root,
            mode="user",
            servers={server: {"command": command[0], "args": tuple(command[1:]), "cwd": str(cwd)}},
            starter=False,
        ).configuration
        source = configuration.policy.source
        write_source(source, mode="user", uid=os.getuid() or 1, approver="ada", caller=caller)
        bundle = json.loads((source / "bundle.json").read_text())
        bundle["servers"] = [
            {
                "id": server,
                "uid": os.getuid() or 1,
                "enforce": "required",
                "refuse_methods": [],
                "discloseCaller": False,
                "roots": {name: str(path) for name, path in roots.items()},
                "bases": {name: str(path) for name, path in bases.items()},
                "bindings": f"bindings/{server}.json",
            }
        ]
        (source / "bundle.json").write_text(json.dumps(bundle))
        (source / "tests.json").write_text("[]")
        onrecord(configuration, "policy", "bind", server, "--pin")
        onrecord(configuration, "policy", "sign", str(source))
        running = Live(configuration, server, command, cwd, [])
        started.append(running)
        start_daemons(configuration, running.children)
        return running

    yield start
    for running in started:
        running.stop()


@pytest.fixture
def live_servers(short_dir):
    """Return a function that starts one deployment for several servers, whose tools may all be called.

    It takes {id: (command, tools as the server advertises them, environment)} and returns a `Live` for each.
    """
    pytest.importorskip("mcp")
    from onrecord.authorize.policy.starter import write_source
    from onrecord.authorize.setup import initialize

    children = []

    def start(servers):
        root = short_dir / "onrecord"
        root.mkdir(mode=0o700)
        tables = {}
        for server, (command, _, environment) in servers.items():
            file = root / f"{server}.env"
            file.write_text("".join(f"{name}={value}\n" for name, value in environment.items()))
            file.chmod(0o600)
            tables[server] = {
                "command": command[0],
                "args": tuple(command[1:]),
                "cwd": str(short_dir),
                "env_file": str(file),
            }
        configuration = initialize(root, mode="user", servers=tables, starter=False).configuration
        source = configuration.policy.source
        write_source(source, mode="user", uid=os.getuid() or 1, approver="ada")
        bundle = json.loads((source / "bundle.json").read_text())
        for server, (_, tools, _) in servers.items():
            bundle["servers"].append(
                {
                    "id": server,
                    "uid": os.getuid() or 1,
                    "enforce": "required",
                    "refuse_methods": [],
                    "discloseCaller": False,
                    "roots": {},
                    "bases": {},
                    "bindings": f"bindings/{server}.json",
                }
            )
            (source / "bindings" / f"{server}.json").write_text(json.dumps(bindings_for(tools)))
        bundle["limits"] |= {"issuePerSecond": 1000, "issueBurst": 1000}
        (source / "bundle.json").write_text(json.dumps(bundle))
        (source / "tests.json").write_text("[]")
        onrecord(configuration, "policy", "sign", str(source))
        start_daemons(configuration, children)
        return {
            server: Live(configuration, server, command, short_dir, children, environment)
            for server, (command, _, environment) in servers.items()
        }

    yield start
    for child in reversed(children):
        child.send_signal(signal.SIGTERM)
        child.wait(timeout=STOP_SECONDS)


def start_daemons(configuration, children):
    """Start recorder and authority; if one does not start, the test fails with what it said."""
    from onrecord.authorize import supervisor
    from onrecord.base.errors import OnrecordError

    said = configuration.file.with_name("daemons.log")
    with open(said, "ab") as log:
        try:
            children.append(supervisor.start_recorder(configuration, stderr=log))
            children.append(supervisor.start_authority(configuration, stderr=log))
        except OnrecordError as error:
            pytest.fail(f"{error}\n{said.read_text()}")


def onrecord(configuration, *arguments):
    """Run a command on the configuration; the test fails with its output."""
    argv = [sys.executable, "-m", "onrecord", *arguments, "--config", str(configuration.file)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr

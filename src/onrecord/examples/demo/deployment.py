"""The daemons of the demonstration: configuration, policy, authority, recorder, guards.

The driver starts and stops them itself, without `onrecord up`, so that nothing restarts what a step has stopped.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import IO, Final

from onrecord.authorize import supervisor
from onrecord.authorize.setup import initialize
from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError
from onrecord.examples.demo.bundle import write_policy_source
from onrecord.examples.demo.principals import Cast
from onrecord.examples.demo.servers import SERVERS, ToolServer
from onrecord.examples.demo.tree import Tree

STOP_SECONDS: Final = 15
COMMAND_SECONDS: Final = 60


class Deployment:
    """One running set of daemons in one work tree."""

    def __init__(self, configuration: Configuration, cast: Cast, tree: Tree) -> None:
        self.configuration = configuration
        self._cast = cast
        self._tree = tree
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    @classmethod
    def prepare(cls, cast: Cast, tree: Tree) -> Deployment:
        """Make keys, certificates, configuration and a signed policy; starts the example servers to pin their tools.

        Raises `OnrecordError` as the setup room does, or with code "demo-command".
        """
        configuration = initialize(
            tree.root,
            mode="system" if cast.is_system else "user",
            values=_values(cast, tree),
            servers={
                server.id: _server(server, cast, tree)
                for server in SERVERS
                if server.id in dict(cast.servers)
            },
            starter=False,
        ).configuration
        write_policy_source(configuration, cast, tree)
        deployment = cls(configuration, cast, tree)
        deployment._onrecord(*(("policy", "bind", name, "--pin") for name, _ in cast.servers))
        deployment._onrecord(("policy", "sign", str(configuration.policy.source)))
        return deployment

    def start(self) -> None:
        """Start the recorder, the authority and, in system mode, the guards; each is ready when this returns."""
        self._start("recorder", supervisor.start_recorder)
        self.start_authority()
        if self._cast.is_system:
            for name, _ in self._cast.servers:
                self._start(name, partial(_start_guard, name))

    def start_authority(self) -> None:
        """Start the authority unless it runs; it is ready when this returns."""
        if "authority" not in self._running:
            self._start("authority", supervisor.start_authority)

    def stop_authority(self) -> None:
        """End the authority with SIGTERM and wait until it is gone."""
        if "authority" in self._running:
            _end(self._running.pop("authority"))

    def stop(self) -> None:
        """End what runs: the guards first, then the authority, the recorder last."""
        for name in (*dict(self._cast.servers), "authority", "recorder"):
            if name in self._running:
                _end(self._running.pop(name))

    def _start(self, name: str, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        with open(self._tree.logs / f"{name}.log", "ab") as log:
            self._running[name] = start(self.configuration, stderr=log)

    def _onrecord(self, *commands: tuple[str, ...]) -> None:
        """Run onrecord commands on this configuration, as an operator would; several run side by side."""
        with ExitStack() as stack:
            started = []
            for command in commands:
                name = "-".join(command[:3]).replace("/", "_")
                argv = [sys.executable, "-m", "onrecord", *command, "--config", str(self.configuration.file)]
                log = stack.enter_context(open(self._tree.logs / f"{name}.log", "wb"))
                process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd="/"
                )
                stack.callback(_end, process)
                started.append((command, process))
            for command, process in started:
                self._expect_success(command, process)

    def _expect_success(self, command: tuple[str, ...], process: subprocess.Popen[bytes]) -> None:
        try:
            status = process.wait(timeout=COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            outcome = f"did not end in {COMMAND_SECONDS} s"
        else:
            if status == 0:
                return
            outcome = f"ended with status {status}"
        raise OnrecordError(
            f"`onrecord {' '.join(command[:2])}` {outcome}",
            code="demo-command",
            hint=f"see {self._tree.logs}",
        )


def _start_guard(server: str, configuration: Configuration, *, stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    return supervisor.start_guard(configuration, server, stderr=stderr)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _values(cast: Cast, tree: Tree) -> dict[str, str | int]:
    """Settings that differ from the defaults."""
    etc = tree.root / "etc"
    values: dict[str, str | int] = {
        "paths.config": str(etc),
        "keys.policy": f"file:{etc}/keys/policy.pem",
    }
    if cast.is_system:
        values |= {
            "principals.authority": cast.authority,
            "principals.recorder": cast.recorder,
            "principals.call_group": cast.call_group,
            "principals.approval_group": cast.approval_group,
            "principals.control_group": cast.control_group,
            "principals.record_group": cast.record_group,
            "principals.readers_group": cast.readers_group,
        }
    return values


def _server(server: ToolServer, cast: Cast, tree: Tree) -> dict[str, str | int | bool | tuple[str, ...]]:
    command, *arguments = server.command(tree)
    entry: dict[str, str | int | bool | tuple[str, ...]] = {
        "command": command,
        "args": tuple(arguments),
        "cwd": str(tree.base(server.id)),
        "hook": server.is_hooked,
    }
    if "LD_LIBRARY_PATH" in os.environ:
        entry["env_pass"] = ("LD_LIBRARY_PATH",)  # a copied interpreter needs it (running.md R-03)
    return entry | {"user": cast.server(server.id)} if cast.is_system else entry

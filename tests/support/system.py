"""A real authority and a real recorder for a test, in user mode, under a uid that is not root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onrecord.base.configuration import Configuration
from onrecord.base.processes import Principal
from support.runtime import child_environment, onrecord, start_ready, stop

INITIALIZE = """
import json, sys
from pathlib import Path
from onrecord.authorize.setup import initialize
directory, values, servers = json.loads(sys.argv[1])
servers = {name: {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
           for name, entry in servers.items()}
initialize(Path(directory), mode="user", values=values, servers=servers)
"""


class UserModeSystem:
    """An installation below one short directory, with its processes.

    Everything runs under `uid`: the tester's own, or an unused one when the tester is root, because the daemons
    refuse root. Clients must run under that uid too: use `run` and `python`.
    """

    def __init__(
        self,
        directory: Path,
        *,
        uid: int,
        values: Mapping[str, Any] | None = None,
        servers: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.uid = uid
        self.directory = directory
        self.principal = None if uid == os.getuid() else Principal(uid, uid)
        if self.principal is not None:
            os.chown(directory, uid, uid)
        self.file = directory / "inst" / "onrecord.toml"
        self.recorder: subprocess.Popen[bytes] | None = None
        self.authority: subprocess.Popen[bytes] | None = None
        self.python(
            INITIALIZE, json.dumps([str(self.file.parent), values or {}, servers or {}])
        ).check_returncode()
        self.configuration = Configuration.parse(self.file.read_text(), file=self.file)

    def python(self, code: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Run Python code under the uid of this system."""
        return self._run([sys.executable, "-P", "-c", code, *arguments], **more)

    def run(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
        """Run an onrecord command under the uid of this system; `--config` is added."""
        return self._run([*self.command(*arguments)], **more)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line that `run` uses."""
        return onrecord(*arguments, "--config", str(self.file))

    def _run(self, argv: Sequence[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
        if self.principal is not None:
            more |= {"user": self.uid, "group": self.uid, "extra_groups": []}
        environment = child_environment(HOME=str(self.directory))
        return subprocess.run(argv, env=environment, cwd=self.directory, capture_output=True, **more)

    def edit_policy(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change the members of the source's bundle.json, count the version up and sign it."""
        path = self.configuration.policy.source / "bundle.json"
        document = json.loads(path.read_text())
        document["version"] += 1
        change(document)
        path.write_text(json.dumps(document))
        done = self.run("policy", "sign", str(path.parent))
        assert done.returncode == 0, done.stderr.decode()

    def start_recorder(self) -> subprocess.Popen[bytes]:
        self.recorder = self.start("record", "serve")
        return self.recorder

    def start_authority(self) -> subprocess.Popen[bytes]:
        self.authority = self.start("authority", "serve")
        return self.authority

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a daemon of this system and wait until it is ready."""
        environment = child_environment(HOME=str(self.directory))
        return start_ready(self.command(*arguments), principal=self.principal, env=environment)

    def start_all(self) -> UserModeSystem:
        self.start_recorder()
        self.start_authority()
        return self

    def stop(self) -> None:
        for process in (self.authority, self.recorder):
            if process is not None:
                stop(process)

    def kill(self) -> None:
        """Kill -9 of both, as in a crash."""
        for process in (self.authority, self.recorder):
            if process is not None:
                stop(process, signal_number=signal.SIGKILL)

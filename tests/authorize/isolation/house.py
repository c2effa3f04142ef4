"""A real deployment in system mode with a uid for each part, started by `onrecord up`, and its doctor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onrecord.authorize.setup import initialize
from support.runtime import child_environment, onrecord, start_ready, stop

SECRET_NAME = "EXAMPLE_TOKEN"
SECRET = "canary-secret-7d1c5e"
OPERATOR_SECRET = "canary-operator-90ab31"
SERVER = "files"
HERE = Path(__file__).parent


class House:
    """One deployment below `directory`, which others may enter. `close` ends it."""

    def __init__(self, directory: Path, block: range) -> None:
        directory.chmod(0o755)
        self.directory = directory
        self.authority, self.recorder, self.server, self.agent, self.person = block[:5]
        self.groups = dict(
            zip(("call", "approval", "control", "record", "readers"), block[8:13], strict=True)
        )
        self.vault = directory / "vault"
        self.vault.mkdir(mode=0o700)
        self.canary = self.vault / "canary.txt"
        self.canary.write_text("nobody but the server reads this\n")
        self.canary.chmod(0o600)
        self.wrapper = directory / "bin" / "server"
        self.wrapper.parent.mkdir(mode=0o755)
        self.wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -m onrecord.examples.files "$@"\n')
        self.wrapper.chmod(0o755)
        for path in (self.vault, self.canary):
            os.chown(path, self.server, self.server)
        self.env_file = directory / "inst/config/env/files.env"
        self.configuration = self._initialize()
        self.env_file.write_text(f"{SECRET_NAME}={SECRET}\n")
        self.env_file.chmod(0o600)
        os.chown(self.env_file, self.server, self.server)
        self._sign()
        self.up = start_ready(
            onrecord("up", "--config", str(self.configuration.file)),
            env=child_environment(OPERATOR_TOKEN=OPERATOR_SECRET),
        )
        self._doctors = subprocess.Popen(
            [sys.executable, "-I", str(HERE / "doctors.py"), str(self.configuration.file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            text=True,
        )

    def _initialize(self) -> Any:
        values: dict[str, Any] = {
            "principals.authority": self.authority,
            "principals.recorder": self.recorder,
            "keys.policy": f"file:{self.directory}/inst/config/keys/policy.pem",
        }
        values |= {f"principals.{name}_group": gid for name, gid in self.groups.items()}
        entry = {
            "command": str(self.wrapper),
            "args": ("--base", str(self.vault)),
            "cwd": str(self.vault),
            "env_file": str(self.env_file),
            "user": self.server,
            "canaries": (str(self.canary),),
            "secret_names": (SECRET_NAME,),
        }
        return initialize(
            self.directory / "inst", mode="system", values=values, servers={SERVER: entry}
        ).configuration

    def _sign(self) -> None:
        source = self.configuration.policy.source
        document = json.loads((source / "bundle.json").read_text())
        document["callers"][0]["uid"] = self.agent
        document["approvers"][0]["uid"] = document["controlRoles"][0]["uid"] = self.person
        (source / "bundle.json").write_text(json.dumps(document))
        for arguments in (("bind", SERVER, "--pin", "--root", str(self.vault)), ("sign",)):
            done = subprocess.run(
                onrecord("policy", *arguments, "--config", str(self.configuration.file)),
                env=child_environment(),
                cwd="/",
                capture_output=True,
            )
            assert done.returncode == 0, done.stderr.decode()

    def doctor(
        self,
        *,
        uids: tuple[int, int, int] | None = None,
        groups: Sequence[int] | None = None,
        capabilities: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        file: Path | None = None,
        server: str = SERVER,
        engines: Sequence[str] = (),
        left_open: Sequence[Path] = (),
        mounts: Path = Path("/proc/self/mountinfo"),
        subuid: Path = Path("/etc/subuid"),
    ) -> dict[str, Any]:
        """Examine a server as the agent, or as said, and return what `onrecord doctor --json` prints.

        `uids` are real, effective and saved uid; the primary group has the number of the first. `left_open` was opened
        before the uid was taken; `mounts` and `subuid` stand for the files of the machine.
        """
        case = {
            "uids": uids or (self.agent,) * 3,
            "groups": [self.groups["call"]] if groups is None else list(groups),
            "capabilities": list(capabilities),
            "environment": child_environment(**environment or {}),
            "file": str(file or self.configuration.file),
            "server": server,
            "engines": list(engines),
            "open": [str(one) for one in left_open],
            "mounts": str(mounts),
            "subuid": str(subuid),
        }
        assert self._doctors.stdin is not None
        assert self._doctors.stdout is not None
        self._doctors.stdin.write(json.dumps(case) + "\n")
        self._doctors.stdin.flush()
        document = json.loads(self._doctors.stdout.readline())
        assert document is not None, "the doctor failed, see standard error"
        return document

    def variant(self, name: str, *changes: tuple[str, str]) -> Path:
        """Write another configuration of the same deployment, in which texts are replaced."""
        text = self.configuration.file.read_text()
        for old, new in changes:
            assert text.count(old) >= 1, old
            text = text.replace(old, new)
        path = self.directory / f"{name}.toml"
        path.write_text(text)
        path.chmod(0o644)
        return path

    def close(self) -> None:
        self._doctors.communicate()
        assert stop(self.up) == 0


def items(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the worst result of each item I1 to I8."""
    found: dict[str, str] = {}
    rank = ("ok", "warning", "failed")
    for check in document["checks"]:
        name = check["name"].split()[0]
        if name[0] == "I" and name[1:].isdigit():
            found[name] = max(found.get(name, "ok"), check["result"], key=rank.index)
    return found


def detail(document: Mapping[str, Any], item: str) -> str:
    """Return all lines of one item."""
    return "\n".join(check["detail"] for check in document["checks"] if check["name"].split()[0] == item)

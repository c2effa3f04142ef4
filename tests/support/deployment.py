"""The whole way in user mode: a real authority, recorder, connector and guard, and a tool server that is watched.

The server is the echo server of `tests/authorize/guard/mcp_servers.py`, which writes down each call that reaches it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from authorize.guard.processes import HERE, Client
from onrecord.authorize.policy import schema_hash
from support.runtime import child_environment

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
SERVER = "files"

BINDING = [
    {
        "tool": "echo",
        "inputSchemaSha256": schema_hash(SCHEMA),
        "op": "read",
        "impact": 0,
        "arguments": {"text": {"json": "string"}},
    }
]

READ_RECORDS = """
import json, sys
from pathlib import Path
from onrecord.examples.demo.journals import read_records
print(json.dumps([[one.type, one.data] for one in read_records(Path(sys.argv[1]))]))
"""


class EchoDeployment:
    """An installation with one bound tool; nothing is started yet. `system` is the `UserModeSystem` under it.

    `kind` is the behaviour of the server, `rules` is Cedar text beside the starter policy.
    """

    def __init__(
        self,
        user_mode,
        *,
        enforce: str = "required",
        values: dict[str, Any] | None = None,
        kind: str = "plain",
        rules: str | None = None,
    ) -> None:
        servers = {SERVER: {"command": sys.executable, "args": [], "cwd": "/"}}
        self.system = user_mode(servers=servers, values=values)
        directory = self.system.directory
        shutil.copy(HERE / "mcp_servers.py", directory / "mcp_servers.py")
        os.chmod(directory / "mcp_servers.py", 0o644)
        self.spy = directory / "spy"
        args = json.dumps([str(directory / "mcp_servers.py"), kind, str(self.spy)])
        text = self.system.file.read_text()
        self.system.file.write_text(text.replace("args = []", f"args = {args}", 1))
        bindings = self.system.configuration.policy.source / "bindings"
        (bindings / f"{SERVER}.json").write_text(json.dumps(BINDING))
        if rules is not None:
            (self.system.configuration.policy.source / "policies" / "50-more.cedar").write_text(rules)

        def bind(document: dict[str, Any]) -> None:
            document["servers"].append(
                {
                    "id": SERVER,
                    "uid": self.system.uid,
                    "tiServer": "test-files",
                    "enforce": enforce,
                    "refuse_methods": [],
                    "discloseCaller": False,
                    "roots": {},
                    "bases": {},
                    "bindings": f"bindings/{SERVER}.json",
                }
            )
            document["limits"] |= {"issuePerSecond": 10**6, "issueBurst": 10**6}

        self.system.edit_policy(bind)
        self.clients: list[Client] = []

    @property
    def configuration(self):
        return self.system.configuration

    def client(self, *arguments: str) -> Client:
        """Start `onrecord connect` for the server, with a guard behind it."""
        environment = child_environment(
            HOME=str(self.system.directory), ONRECORD_RECORD_SESSION="deployment-1"
        )
        argv = self.system.command("connect", SERVER, *arguments)
        self.clients.append(Client(argv, principal=self.system.principal, env=environment))
        return self.clients[-1]

    def ran(self) -> list[dict[str, Any]]:
        """Return the tool calls that the real server saw, whole lines only."""
        if not self.spy.exists():
            return []
        return [
            json.loads(line) for line in self.spy.read_text().splitlines(keepends=True) if line.endswith("\n")
        ]

    def records(self, state: Path | None = None) -> list[tuple[str, dict[str, Any]]]:
        """Return type and data of all records of the decision journal, read under the system's uid."""
        done = self.system.python(READ_RECORDS, str(state or self.configuration.authority_state))
        assert done.returncode == 0, done.stderr.decode()
        return [(type_, data) for type_, data in json.loads(done.stdout)]

    def log(self) -> str:
        return (self.configuration.guard_state(SERVER) / "guard.log").read_text()

    def status(self) -> dict[str, Any]:
        """Return what `onrecord control status --json` says."""
        done = self.system.run("control", "status", "--json")
        assert done.returncode in (0, 1), done.stderr.decode()
        return json.loads(done.stdout)

    def close(self) -> None:
        for client in self.clients:
            client.drop()

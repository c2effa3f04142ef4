"""A configuration in user mode, and client files with invented secrets."""

import json
import sys
from pathlib import Path

import pytest

from onrecord.authorize.wrap import undo, wrap
from onrecord.base.configuration import Configuration

SECRET = "tok-3141592653589793"


class House:
    """One configuration, and what `wrap` does to client files with it."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.toml = directory / "onrecord.toml"
        (directory / "config").mkdir()
        text = f'# mine\nmode = "user"\n[paths]\nconfig = "{directory}/config"\nstate = "{directory}/state"\n'
        self.toml.write_text(f'{text}runtime = "{directory}/run" # short\n')
        self.toml.chmod(0o600)

    @property
    def configuration(self):
        return Configuration.load(self.toml)

    def client(self, content, name="mcp.json"):
        """Write a client's file."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content if isinstance(content, str | bytes) else json.dumps(content, indent=2)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        path.chmod(0o600)
        return path

    def wrap(self, file, **more):
        return wrap(self.configuration, file, connector=("/opt/onrecord", "connect"), **more)

    def undo(self, file):
        return undo(self.configuration, file)

    def env_files(self):
        return {path.name: path.read_text() for path in (self.directory / "config").glob("env/*")}

    def state_files(self):
        """Everything that must be as before after an undo or a failed run."""
        return {
            str(path): path.read_bytes()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and path.name != "lock"
        }


@pytest.fixture
def house(short_dir):
    return House(short_dir)


def server(command=sys.executable, **more):
    """An entry of a client's file."""
    return {"command": command, "args": ["-m", "server"], **more}

"""User mode with fake daemons, a guard in hook mode, and one server of `sdk_servers.py`."""

import json
import os
import shutil
import sys
from pathlib import Path

import onrecord
from authorize.guard.processes import UserHouse

HERE = Path(__file__).parent
SOURCE = Path(onrecord.__file__).parent.parent


class HookHouse(UserHouse):
    def __init__(self, user_mode, kind, *, hook=True, python=None, **values):
        super().__init__(user_mode, kind, **values)
        directory = self.system.directory
        shutil.copy(HERE / "sdk_servers.py", directory / "sdk_servers.py")
        os.chmod(directory / "sdk_servers.py", 0o644)
        text = self.system.file.read_text()
        old = json.dumps([str(directory / "mcp_servers.py"), kind, str(self.spy)])
        new = json.dumps(["-P", str(directory / "sdk_servers.py"), kind, str(self.spy)])
        assert old in text
        assert "\nhook = false" in text
        text = text.replace(old, new).replace("\nhook = false", f"\nhook = {str(hook).lower()}")
        if python is not None:
            # An environment of its own, with the dependencies of onrecord and without onrecord.
            assert "\nenv_pass = []" in text
            text = text.replace(json.dumps(sys.executable), json.dumps(str(python)))
            text = text.replace("\nenv_pass = []", '\nenv_pass = ["PYTHONPATH"]')
        self.system.file.write_text(text)

    def kinds(self):
        """Return the entries of the fake recorder by kind."""
        return [one["kind"] for one in self.fakes.entries()]

    def client(self, *arguments, command="connect", **env):
        return super().client(*arguments, command=command, PYTHONPATH=str(SOURCE), **env)

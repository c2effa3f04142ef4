"""Any sequence of wrapping, editing and undoing leads back to where it began."""

import json
import os
import shutil
import sys

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from onrecord.authorize.guard.environment import read_env_file
from onrecord.authorize.wrap import undo, wrap
from onrecord.base.configuration import Configuration
from support.runtime import make_short_dir

NAMES = st.sampled_from(["git", "Git", "GIT!", "a.b", "\n", "é", "x" * 70])
SERVERS = st.fixed_dictionaries(
    {"command": st.sampled_from(["/bin/a", "/bin/b", sys.executable])},
    optional={
        "args": st.lists(st.sampled_from(["-x", "a b", "#", '"', "\\"]), max_size=2),
        "cwd": st.sampled_from(["/srv", "/srv/x"]),
        "env": st.dictionaries(
            st.sampled_from(["A", "B"]), st.sampled_from(["1", "tok-2", " #"]), max_size=2
        ),
        "disabled": st.booleans(),
    },
)
FILES = st.sampled_from(["one.json", "two.json"])


def plain(servers):
    """The servers without members that say nothing, such as an empty env."""
    return {
        name: {key: value for key, value in entry.items() if value not in ([], {})}
        for name, entry in servers.items()
    }


class Wrapping(RuleBasedStateMachine):
    """`wanted` is what the clients' files hold without onrecord; the files are wrapped or not at any time."""

    def __init__(self):
        super().__init__()
        self.directory = make_short_dir()
        self.toml = self.directory / "onrecord.toml"
        (self.directory / "config").mkdir()
        text = (
            f'mode = "user"\n[paths]\nconfig = "{self.directory}/config"\nstate = "{self.directory}/state"\n'
        )
        self.toml.write_text(f'{text}runtime = "{self.directory}/run"\n# end, without a new line')
        self.toml.chmod(0o600)
        self.before = self.toml.read_bytes()
        self.wanted = {}
        self.wrapped = {}

    @initialize(
        one=st.dictionaries(NAMES, SERVERS, max_size=4), two=st.dictionaries(NAMES, SERVERS, max_size=4)
    )
    def files(self, one, two):
        self.wanted = {"one.json": one, "two.json": two}
        self.wrapped = {"one.json": set(), "two.json": set()}
        for name, servers in self.wanted.items():
            self._write(name, {"mcpServers": servers, "n": 0})

    def _write(self, name, document):
        path = self.directory / name
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False))
        path.chmod(0o600)

    def _read(self, name):
        return json.loads((self.directory / name).read_text())

    @property
    def configuration(self):
        return Configuration.load(self.toml)

    @rule(name=FILES)
    def wrap(self, name):
        wrap(self.configuration, self.directory / name, connector=("/opt/onrecord", "connect"))
        self.wrapped[name] = set(self.wanted[name])

    @precondition(lambda self: any(self.wrapped.values()))
    @rule(name=FILES)
    def undo(self, name):
        if self.wrapped[name]:
            undo(self.configuration, self.directory / name)
            self.wrapped[name] = set()

    @rule(name=FILES, server=NAMES, entry=SERVERS)
    def add(self, name, server, entry):
        """The user adds a server, and the client changes something of its own."""
        document = self._read(name)
        document["n"] += 1
        if server not in document["mcpServers"]:
            document["mcpServers"][server] = entry
            self.wanted[name] = {**self.wanted[name], server: entry}
        self._write(name, document)

    @invariant()
    def every_server_is_what_it_was(self):
        """A wrapped server is started by onrecord as the client would have started it; others are as they were."""
        if not self.wanted:
            return
        servers = self.configuration.servers
        for name, wanted in self.wanted.items():
            present = self._read(name)["mcpServers"]
            assert present.keys() == wanted.keys()
            for server, entry in wanted.items():
                if server not in self.wrapped[name]:
                    assert plain({"x": present[server]}) == plain({"x": entry})
                    continue
                assert present[server].get("disabled") == entry.get("disabled")
                assert "env" not in present[server]
                made = servers[present[server]["args"][1]]
                assert (made.command, list(made.args)) == (entry["command"], entry.get("args", []))
                assert entry.get("cwd") == (None if made.cwd is None else str(made.cwd))
                env = {} if made.env_file is None else read_env_file(made.env_file, owner=os.geteuid())
                assert env == entry.get("env", {})
        if not any(self.wrapped.values()):
            assert servers == {}
            assert self.toml.read_bytes().rstrip(b"\n") == self.before
            assert [path.name for path in self.directory.glob("config/env/*")] == []
            assert [path.name for path in self.directory.glob("state/wrap/*")] in ([], ["lock"])

    def teardown(self):
        shutil.rmtree(self.directory)


TestSequences = Wrapping.TestCase
TestSequences.settings = settings(max_examples=20, stateful_step_count=12, deadline=None)

"""`onrecord wrap` at the command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord.authorize.setup import initialize
from onrecord.cli.main import main
from support.runtime import child_environment

SECRET = "tok-3141592653589793"


@pytest.fixture
def run(capsys, home):
    """Return a function that runs `onrecord wrap` and returns status, output or document, and standard error."""

    def do(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["wrap", *map(str, arguments)])
        captured = capsys.readouterr()
        document = json.loads(captured.out) if "--json" in arguments else captured.out
        return stop.value.code, document, captured.err

    return do


@pytest.fixture
def configuration(home):
    """A minimal configuration at its usual place."""
    file = home / ".config/onrecord/onrecord.toml"
    file.parent.mkdir(parents=True, mode=0o700)
    file.write_text(f'mode = "user"\n[paths]\nruntime = "{home}/run"\n')
    file.chmod(0o600)
    return file


@pytest.fixture
def client(home):
    """A client's file with one server of each kind."""
    file = home / ".cursor/mcp.json"
    file.parent.mkdir()
    servers = {
        "My Git": {"command": "/usr/bin/git-server", "env": {"T": SECRET}},
        "far": {"url": "https://mcp.example.com/"},
    }
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


def test_way(run, configuration, client):
    """Wrap, wrap again, undo: what is told is what was done; values are never told."""
    before = client.read_text()
    status, text, err = run(client)
    assert (status, err) == (0, "")
    assert f"My Git: server my-git; to {configuration.parent}/env/my-git.env: T" in text
    assert "far: left alone: it has a url" in text
    assert text.rstrip().endswith("onrecord policy bind my-git --root DIR")
    assert SECRET not in text
    entry = json.loads(client.read_text())["mcpServers"]["My Git"]
    assert entry["args"] == ["connect", "my-git"]
    assert os.path.isabs(entry["command"])
    assert os.access(entry["command"], os.X_OK)
    status, text, _ = run(client)
    assert "My Git: wrapped already" in text
    assert "next" not in text
    status, text, _ = run("--undo", client)
    assert (status, "My Git: as it was" in text, "my-git is no longer in" in text) == (0, True, True)
    assert client.read_text() == before


def test_json(run, configuration, client):
    """The same as one document."""
    status, document, _ = run(client, "--json", "--dry-run")
    assert (status, document["dryRun"], document["backup"]) == (0, True, None)
    status, document, _ = run(client, "--json")
    (wrapped,) = document["wrapped"]
    assert (wrapped["id"], wrapped["env"], wrapped["place"]) == ("my-git", ["T"], ["mcpServers", "My Git"])
    assert [one["reason"] for one in document["leftAlone"]] == ["url"]
    assert document["next"] == ["onrecord policy bind my-git --root DIR"]
    assert SECRET not in json.dumps(document)
    status, document, _ = run(client, "--undo", "--json")
    assert (status, document["removed"]) == (0, ["my-git"])


def test_configuration_elsewhere(run, configuration, client, home):
    """A configuration that the connector would not find is named in the client's file; our environment is not its."""
    other = home / "other.toml"
    other.write_text(configuration.read_text())
    other.chmod(0o600)
    _, document, _ = run(client, "--config", other, "--json")
    assert json.loads(client.read_text())["mcpServers"]["My Git"]["args"] == [
        "connect",
        "my-git",
        "--config",
        str(other),
    ]
    assert document["next"] == [f"onrecord policy bind my-git --root DIR --config {other}"]


def test_line_works_without_our_environment(run, configuration, client, home):
    """What is written into the client's file can be started with HOME alone, and finds its configuration."""
    configuration = configuration.rename(configuration.with_name("other.toml"))
    run(client, "--config", configuration)
    entry = json.loads(client.read_text())["mcpServers"]["My Git"]
    done = subprocess.run(
        [entry["command"], *entry["args"]],
        env={"HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, "onrecord up is not running" in done.stderr) == (3, True)


def test_named_server_left_alone(run, configuration, client):
    """Exit 1 when a server that was asked for by name could not be wrapped."""
    assert run("--only", "far", client)[0] == 1
    assert run("--only", "My Git", client)[0] == 0


def test_list(run, client):
    """Without a file those at the usual places are listed, and nothing is read or written."""
    status, text, _ = run()
    assert (status, text.splitlines()[0].split()) == (0, ["Cursor", str(client)])
    status, document, _ = run("--json")
    assert document == {"files": [{"client": "Cursor", "path": str(client)}]}


@pytest.mark.parametrize(
    "arguments", [("--undo",), ("--only", "x"), ("--undo", "--only", "x", "f"), ("--undo", "--dry-run", "f")]
)
def test_usage(run, arguments):
    """Options that do not go together are refused."""
    assert run(*arguments)[0] == 2


def test_hostile_names(run, configuration, client):
    """A name that steers a terminal is shown escaped."""
    client.write_text(
        json.dumps({"mcpServers": {"a\x1b[2J\u202e": {"command": "/x"}, "b\x07": {"url": "x"}}})
    )
    status, text, _ = run(client)
    assert status == 0
    assert not set("\x1b\x07\u202e") & set(text)


def test_secret_argument(run, configuration, client):
    """An argument that looks like a credential is told, not shown."""
    servers = {"a": {"command": "/x", "args": ["--token", SECRET]}}
    client.write_text(json.dumps({"mcpServers": servers}))
    status, text, _ = run(client)
    assert (status, "looks like a credential" in text, SECRET in text) == (0, True, False)


@pytest.mark.root
class TestSystemMode:
    """As root, for the account of an agent."""

    @pytest.fixture
    def system(self, short_dir, uid_block):
        """An installation of system mode with numeric uids, and the agent's home with a client's file."""
        values = {
            "principals.authority": uid_block[0],
            "principals.recorder": uid_block[1],
            "paths.config": str(short_dir / "etc"),
            "paths.state": str(short_dir / "state"),
            "paths.runtime": str(short_dir / "run"),
        }
        values |= {
            f"principals.{name}_group": uid_block[4 + index]
            for index, name in enumerate(("call", "approval", "control", "record", "readers"))
        }
        short_dir.chmod(0o711)
        made = initialize(short_dir / "c", mode="system", values=values).configuration
        home = short_dir / "home"
        home.mkdir()
        file = home / ".claude.json"
        file.write_text(json.dumps({"mcpServers": {"a": {"command": "/bin/true", "env": {"T": SECRET}}}}))
        file.chmod(0o600)
        for path in (home, file):
            os.chown(path, uid_block[2], uid_block[2])
        return made, file

    def wrap(self, configuration, *arguments):
        argv = [sys.executable, "-m", "onrecord", "wrap", *map(str, arguments)]
        return subprocess.run(
            [*argv, "--config", str(configuration.file)],
            capture_output=True,
            text=True,
            env=child_environment(),
        )

    def test_way(self, system, uid_block):
        """The secret goes to a file of the server's uid, the backup to root; the client's file stays the agent's."""
        configuration, file = system
        before = file.read_bytes()
        refused = self.wrap(configuration, file)
        assert (refused.returncode, "[wrap-user]" in refused.stderr) == (2, True)
        done = self.wrap(configuration, "--user", uid_block[3], "--json", file)
        assert done.returncode == 0, done.stdout
        document = json.loads(done.stdout)
        env_file, backup = Path(document["wrapped"][0]["envFile"]), Path(document["backup"])
        assert (env_file.stat().st_uid, env_file.stat().st_mode & 0o777) == (uid_block[3], 0o600)
        assert (backup.stat().st_uid, backup.stat().st_mode & 0o777) == (0, 0o600)
        assert (file.stat().st_uid, file.stat().st_mode & 0o777) == (uid_block[2], 0o600)
        agent = {"user": uid_block[2], "group": uid_block[2], "extra_groups": []}
        for path in (env_file, backup):
            assert subprocess.run(["cat", path], capture_output=True, **agent).returncode != 0
        seen = subprocess.run(
            ["grep", "-rl", SECRET, file.parent.parent], capture_output=True, text=True, **agent
        )
        assert seen.stdout == ""
        server = type(configuration).load(configuration.file).servers["a"]
        assert (server.user, server.secret_names) == (uid_block[3], ("T",))
        assert self.wrap(configuration, "--undo", file).returncode == 0
        assert file.read_bytes() == before
        assert not env_file.exists()

    def test_secret_argument(self, system, uid_block):
        """A credential in the arguments is not put into a file that everybody can read."""
        configuration, file = system
        servers = {"a": {"command": "/bin/true", "args": ["--token=x7x7x7x7"]}}
        file.write_text(json.dumps({"mcpServers": servers}))
        done = self.wrap(configuration, "--only", "a", "--user", uid_block[3], file)
        assert (done.returncode, "left alone" in done.stdout) == (1, True)
        assert "x7x7x7x7" not in configuration.file.read_text()

    def test_two_servers(self, system, uid_block):
        """Two servers never get one uid: they are wrapped one by one."""
        configuration, file = system
        servers = {"a": {"command": "/bin/true"}, "b": {"command": "/bin/false"}}
        file.write_text(json.dumps({"mcpServers": servers}))
        done = self.wrap(configuration, "--user", uid_block[3], file)
        assert (done.returncode, "[wrap-user]" in done.stderr) == (2, True)


def test_not_root(configuration, client, ordinary_uid):
    """System mode needs root; the refusal says so."""
    file = configuration.parent / "system.toml"
    principals = "\n".join(
        f"{name} = {70000 + index}"
        for index, name in enumerate(
            (
                "authority",
                "recorder",
                "call_group",
                "approval_group",
                "control_group",
                "record_group",
                "readers_group",
            )
        )
    )
    file.write_text(f'mode = "system"\n[principals]\n{principals}\n')
    file.chmod(0o644)
    more = {}
    if os.geteuid() == 0:
        for path in (client.parents[2], client.parents[1], client.parent, client, *file.parents[:3]):
            os.chmod(path, 0o755) if path.is_dir() else None
        more = {"user": ordinary_uid, "group": ordinary_uid, "extra_groups": []}
    done = subprocess.run(
        [sys.executable, "-m", "onrecord", "wrap", str(client), "--json", "--config", str(file)],
        capture_output=True,
        text=True,
        env=child_environment(),
        **more,
    )
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "needs-root")


def test_program_is_found(run, configuration, client, monkeypatch):
    """Without the command beside the interpreter the one in PATH is written, and without any nothing is."""
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    monkeypatch.setattr(shutil, "which", lambda name: "/opt/bin/onrecord")
    run(client, "--dry-run")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    status, document, _ = run(client, "--json")
    assert (status, document["error"]["code"]) == (2, "cannot-start")

"""Which servers of a client's file can be wrapped."""

from pathlib import Path

import pytest

from onrecord.authorize.wrap.candidates import candidates, start_directory
from onrecord.authorize.wrap.entries import Already, Entry, LeftAlone, read_entries
from onrecord.authorize.wrap.server_tables import server_id, without_table

SERVER = {"command": "/usr/bin/x", "args": ["a"], "env": {"A": "b"}}


def read(value, *, directory=None):
    (entry,) = read_entries({"mcpServers": {"s": value}}, form="json", start_directory=directory)
    return entry


LEFT = {
    "malformed": [7, None, "x", []],
    "url": [SERVER | {"url": "https://mcp.example.com"}, {"url": ""}, SERVER | {"serverUrl": "x"}],
    "type": [SERVER | {"type": "http"}, SERVER | {"type": 1}],
    "command": [{}, {"command": 1}, {"command": ""}, {"command": ["x"]}],
    "args": [SERVER | {"args": "a"}, SERVER | {"args": [1]}, SERVER | {"args": {}}],
    "cwd": [SERVER | {"cwd": 1}],
    "env": [
        SERVER | {"env": []},
        SERVER | {"env": {"A": 1}},
        SERVER | {"env": {"A": None}},
        SERVER | {"env": {"A B": "x"}},
        SERVER | {"env": {"A=B": "x"}},
        SERVER | {"env": {"#A": "x"}},
        SERVER | {"env": {"": "x"}},
        SERVER | {"env": {"A": "one\ntwo"}},
        SERVER | {"env": {"A": "one\r"}},
    ],
    "placeholder": [
        SERVER | {"command": "${HOME}/x"},
        SERVER | {"args": ["${input:token}"]},
        SERVER | {"env": {"A": "x${env:B:-y}"}},
        SERVER | {"cwd": "${workspaceFolder}"},
    ],
    "text": [SERVER | {"args": ["\0"]}, SERVER | {"env": {"A": "\ud800"}}, SERVER | {"command": "\udc80"}],
    "envFile": [SERVER | {"envFile": "/x"}],
    "env_vars": [SERVER | {"env_vars": [1]}, SERVER | {"env_vars": ["A B"]}, SERVER | {"env_vars": "A"}],
    "relative": [SERVER | {"command": "./x"}, SERVER | {"command": "bin/x"}, SERVER | {"cwd": "x"}],
}


@pytest.mark.parametrize(("reason", "value"), [(r, v) for r, values in LEFT.items() for v in values])
def test_left_alone(reason, value):
    """What onrecord could not start in the same way stays as it is, with a reason that holds no value."""
    left = read(value)
    assert isinstance(left, LeftAlone)
    assert left.reason == reason
    assert "secret" not in left.message


@pytest.mark.parametrize(
    "value",
    [
        {"command": "/opt/x/bin/onrecord", "args": ["connect", "s"]},
        {"command": "onrecord", "args": ["connect", "s", "--config", "/x"], "env": {"ONRECORD_CONFIG": "x"}},
    ],
)
def test_already(value):
    """A server that onrecord connects already is not wrapped again."""
    assert isinstance(read(value), Already)


def test_not_already():
    """Another command of that name, or another verb, is a server like any other."""
    assert isinstance(read({"command": "/usr/bin/onrecorder", "args": ["connect"]}), Entry)
    assert isinstance(read({"command": "onrecord-example-files"}), Entry)


def test_values_are_not_shown():
    """The representation of an entry does not hold its environment."""
    entry = read(SERVER | {"env": {"A": "tok-27182818"}})
    assert entry.env == {"A": "tok-27182818"}
    assert "tok-27182818" not in repr(entry)


def test_places():
    """All places of the clients' files are read, those of projects too; each form has its own."""
    data = {
        "mcpServers": {"a": SERVER},
        "servers": {"b": SERVER | {"type": "stdio"}},
        "projects": {"/p": {"mcpServers": {"c": SERVER}}, "q": {"mcpServers": 1}, "r": None},
        "mcp_servers": {"d": SERVER},  # of the other form
        "other": {"mcpServers": {"e": SERVER}},
    }
    found = read_entries(data, form="json", start_directory=None)
    assert [entry.name for entry in found] == ["a", "b", "c"]
    assert found[-1].place == ("projects", "/p", "mcpServers", "c")
    assert [entry.cwd for entry in found] == [None, None, "/p"]
    assert [entry.name for entry in read_entries(data, form="toml", start_directory=None)] == ["d"]


def test_start_directory():
    """A project's servers start in the project, where their relative paths count from; others' place is not known."""
    for name in ("/p/.mcp.json", "/p/.cursor/mcp.json", "/p/.vscode/mcp.json"):
        assert start_directory(Path(name)) == Path("/p")
    for name in ("/p/mcp.json", "/p/.claude.json", "/p/.codex/config.toml"):
        assert start_directory(Path(name)) is None
    home = Path.home()
    assert start_directory(home / ".cursor/mcp.json") is None
    entry = read(SERVER | {"command": "./bin/x"}, directory=Path("/p"))
    assert (entry.command, entry.cwd) == ("/p/bin/x", "/p")
    entry = read(SERVER | {"command": "./x", "cwd": "sub/.."}, directory=Path("/p"))
    assert (entry.command, entry.cwd) == ("/p/x", "/p")


@pytest.mark.parametrize(
    ("args", "looks"),
    [
        (["--token", "x7"], True),
        (["--api-key=x7"], True),
        (["--github-token", "x7"], True),
        (["postgresql://ada:pw7@db.example.com/x"], True),
        (["AKIAABCDEFGHIJKLMNOP"], True),
        (["--token-file", "/x"], False),
        (["--token", "--other"], False),
        (["--path", "/srv/tokens"], False),
        ([], False),
    ],
)
def test_secret_arguments(args, looks):
    """An argument that looks like a credential is noticed: it will stand in onrecord.toml."""
    assert read(SERVER | {"args": args}).has_secret_argument is looks


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("git", "git"),
        ("My Files", "my-files"),
        ("a/b\\c\x1b[2J", "a-b-c--2j"),
        ("Ünï", "n-"),
        ("__x", "x"),
        ("--", "server"),
        ("", "server"),
        ("a" * 80, "a" * 64),
        ("x.y_z-1", "x.y_z-1"),
    ],
)
def test_server_id(name, expected):
    """The id is the name in lower case, with "-" for other characters (running.md 5.3)."""
    assert server_id(name) == expected


def test_without_table():
    """A table goes only if it stands there once and alone, as it was written."""
    table = '\n[servers.s]\ncommand = "x"\n'
    assert without_table("a = 1\n" + table, table) == "a = 1\n"
    assert without_table("a = 1\n" + table + "\n# more\n[z]\n", table) == "a = 1\n\n# more\n[z]\n"
    assert without_table("a = 1\n" + table + 'cwd = "/"\n', table) is None
    assert without_table("a = 1\n" + table.replace("x", "y"), table) is None
    assert without_table(table + table, table) is None


def test_candidates(tmp_path):
    """The usual places of the clients are looked at, those of the user and those of the project."""
    home, project = tmp_path / "home", tmp_path / "project"
    for path in (
        home / ".config/Claude/claude_desktop_config.json",
        home / ".claude.json",
        home / ".cursor/mcp.json",
        home / ".config/Code/User/mcp.json",
        home / ".codex/config.toml",
        project / ".mcp.json",
        project / ".vscode/mcp.json",
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    found = candidates(environ={"HOME": str(home)}, project=project)
    assert [one.client for one in found] == [
        "Claude Desktop",
        "Claude Code",
        "Cursor",
        "VS Code",
        "Codex",
        "Claude Code",
        "VS Code",
    ]
    assert candidates(environ={}, project=tmp_path) == ()

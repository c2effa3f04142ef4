"""Real, unmodified servers answer the same with and without onrecord in front of them (acceptance 35)."""

import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from live.clients import connect
from live.servers import node_server, python_server

pytestmark = pytest.mark.live


@dataclass
class Server:
    """A real server and what is asked of it. `modes` are the eras that it speaks."""

    command: list
    calls: list
    modes: tuple = ("auto",)
    environment: dict = field(default_factory=dict)
    holds: str = ""
    """A text that the answers must contain, so that two equal refusals do not pass."""


BOTH_ERAS = ("auto", "legacy")


def time_server(directory):
    conversion = {"source_timezone": "Europe/Berlin", "time": "12:30", "target_timezone": "Asia/Tokyo"}
    wrong = conversion | {"source_timezone": "Nowhere/Land"}
    calls = [("convert_time", conversion), ("convert_time", wrong)]
    return Server(python_server("mcp-server-time"), calls, BOTH_ERAS, holds="Asia/Tokyo")


def git(repository, *arguments):
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)


def git_server(directory):
    repository = directory / "git"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for name in ("first", "second"):
        (repository / name).write_text(name)
        git(repository, "add", name)
        git(repository, "commit", "-q", "-m", name)
    path = {"repo_path": str(repository)}
    calls = [
        ("git_log", path | {"max_count": 5}),
        ("git_status", path),
        ("git_show", path | {"revision": "HEAD"}),
    ]
    command = [*python_server("mcp-server-git"), "--repository", str(repository)]
    return Server(command, calls, BOTH_ERAS, holds="second")


def fetch_server(directory):
    """It would reach out, so only its tools are asked for."""
    return Server(python_server("mcp-server-fetch"), [], holds="fetch")


def filesystem_server(directory):
    base = directory / "files"
    base.mkdir()
    (base / "README.md").write_text("read me\n")
    paths = [str(base / name) for name in ("README.md", "missing.md")]
    calls = [
        ("read_file", {"path": paths[0]}),
        ("read_file", {"path": paths[1]}),
        ("read_multiple_files", {"paths": paths}),
        ("list_directory", {"path": str(base)}),
    ]
    command = [*node_server("@modelcontextprotocol/server-filesystem"), str(base)]
    return Server(command, calls, holds="read me")


def everything_server(directory):
    calls = [
        ("echo", {"message": "ünïcode \u2028 text"}),
        ("get-sum", {"a": 0.1, "b": 1e21}),
        ("get-annotated-message", {"messageType": "success", "includeImage": True}),
        ("get-structured-content", {"location": "Chicago"}),
        ("get-resource-links", {}),
    ]
    return Server(node_server("@modelcontextprotocol/server-everything"), calls, holds="ünïcode")


def memory_server(directory):
    entity = {"name": "parcel", "entityType": "thing", "observations": ["has no weight", "\U0001f4e6"]}
    calls = [
        ("create_entities", {"entities": [entity]}),
        ("read_graph", {}),
        ("search_nodes", {"query": "parcel"}),
    ]
    environment = {"MEMORY_FILE_PATH": str(directory / "memory.jsonl")}
    return Server(
        node_server("@modelcontextprotocol/server-memory"), calls, environment=environment, holds="parcel"
    )


def thinking_server(directory):
    thought = {"thought": "first", "nextThoughtNeeded": True, "thoughtNumber": 1, "totalThoughts": 2}
    command = node_server("@modelcontextprotocol/server-sequential-thinking")
    return Server(command, [("sequentialthinking", thought)], holds="thoughtHistoryLength")


def sqlite_server(directory):
    file = directory / "parcels.db"
    with closing(sqlite3.connect(file)) as database:
        database.executescript(
            "create table parcel (id integer, city text); insert into parcel values (7, 'Bonn');"
        )
    calls = [
        ("list_tables", {}),
        ("read_query", {"query": "select * from parcel"}),
        ("read_query", {"query": "select"}),
    ]
    return Server([*node_server("mcp-server-sqlite-npx"), str(file)], calls, holds="Bonn")


def commands_server(directory):
    calls = [("run_command", {"command": "echo from a shell"}), ("run_command", {"command": "exit 3"})]
    return Server(node_server("mcp-server-commands"), calls, holds="from a shell")


PYTHON = {"time": time_server, "git": git_server, "fetch": fetch_server}
NODE = {
    "filesystem": filesystem_server,
    "everything": everything_server,
    "memory": memory_server,
    "thinking": thinking_server,
    "sqlite": sqlite_server,
    "commands": commands_server,
}


async def answers(connection, calls):
    """Return everything that a client sees: the tools and the results, or the refusal, of some calls."""
    import mcp

    async with connection as client:
        listed = await client.list_tools()
        seen = [listed.model_dump(exclude={"meta"}), client.instructions]
        for name, arguments in calls:
            try:
                seen.append((await client.call_tool(name, arguments)).model_dump(exclude={"meta"}))
            except mcp.MCPError as error:
                seen.append((error.code, error.message))
    return listed.tools, seen


def compare(live_servers, directory, servers):
    """Ask each server in each of its eras, directly and through connector and guard; all at the same time."""
    import anyio

    wanted = {server: make(directory) for server, make in servers.items()}
    direct, guarded, tools = {}, {}, {}

    def forget(server):
        for file in wanted[server].environment.values():
            with open(file, "w", encoding="utf-8"):
                pass

    async def ask(seen, key, connection, server):
        tools[key[0]], seen[key] = await answers(connection, server.calls)

    async def ask_all(seen, connect):
        async with anyio.create_task_group() as group:
            for name, server in wanted.items():
                for mode in server.modes:
                    group.start_soon(ask, seen, (name, mode), connect(name, mode), server)

    def directly(name, mode):
        server = wanted[name]
        return connect(
            server.command, mode=mode, log=directory / "client.log", cwd=directory, env=server.environment
        )

    anyio.run(ask_all, direct, directly)
    for name in wanted:
        forget(name)
    running = live_servers(
        {name: (server.command, tools[name], server.environment) for name, server in wanted.items()}
    )
    anyio.run(ask_all, guarded, lambda name, mode: running[name].guarded(mode=mode))
    for key, seen in direct.items():
        assert guarded[key] == seen, key
        assert wanted[key[0]].holds in str(seen), key
    return running


def test_python_servers(live_servers, short_dir):
    """The servers time and git in both eras, and fetch; a host that no rule allows is denied."""
    import anyio
    import mcp

    running = compare(live_servers, short_dir, PYTHON)

    async def fetch():
        async with running["fetch"].guarded() as client:
            with pytest.raises(mcp.MCPError) as refused:
                await client.call_tool("fetch", {"url": "https://example.com/a"})
            return refused.value.error.data["reason"]

    assert anyio.run(fetch) == "denied"


def test_node_servers(live_servers, short_dir):
    """filesystem, everything, memory, sequential-thinking, sqlite and commands: unmodified legacy servers."""
    compare(live_servers, short_dir, NODE)

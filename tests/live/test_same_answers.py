"""Real, unmodified servers answer the same with and without onrecord in front of them."""

import subprocess

import pytest

from live.servers import node_server, python_server

pytestmark = pytest.mark.live


async def answers(connection, calls):
    """Return everything that a client sees: the tools and the results, or the refusal, of some calls."""
    import mcp

    async with connection as client:
        seen = [(await client.list_tools()).model_dump(exclude={"meta"})]
        for name, arguments in calls:
            try:
                seen.append((await client.call_tool(name, arguments)).model_dump(exclude={"meta"}))
            except mcp.MCPError as error:
                seen.append((error.code, error.message))
    return seen


def compare(live, calls, *, mode):
    import anyio

    direct = anyio.run(answers, live.direct(mode=mode), calls)
    guarded = anyio.run(answers, live.guarded(mode=mode), calls)
    assert guarded == direct
    return direct


MODES = pytest.mark.parametrize("mode", ["auto", "legacy"])


@MODES
def test_time(live, tmp_path, mode):
    """mcp-server-time: the tools, a result and a failure are the same."""
    running = live("time", python_server("mcp-server-time"), cwd=tmp_path, roots={}, bases={})
    conversion = {"source_timezone": "Europe/Berlin", "time": "12:30", "target_timezone": "Asia/Tokyo"}
    wrong = conversion | {"source_timezone": "Nowhere/Land"}
    seen = compare(running, [("convert_time", conversion), ("convert_time", wrong)], mode=mode)
    assert not seen[1]["is_error"]


def git(repository, *arguments):
    command = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments]
    subprocess.run(command, cwd=repository, check=True, capture_output=True)


@MODES
def test_git(live, short_dir, mode):
    """mcp-server-git: reading the log and the status of a repository is the same."""
    repository = short_dir / "repo"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    for name in ("first", "second"):
        (repository / name).write_text(name)
        git(repository, "add", name)
        git(repository, "commit", "-q", "-m", name)
    command = [*python_server("mcp-server-git"), "--repository", str(repository)]
    running = live("git", command, cwd=repository, roots={"repo": repository}, bases={"review": short_dir})
    path = {"repo_path": str(repository)}
    calls = [
        ("git_log", path | {"max_count": 5}),
        ("git_status", path),
        ("git_show", path | {"revision": "HEAD"}),
    ]
    seen = compare(running, calls, mode=mode)
    assert "second" in str(seen[1])


@MODES
def test_filesystem(live, short_dir, mode):
    """@modelcontextprotocol/server-filesystem, a legacy server: files, directories and failures are the same."""
    base = short_dir / "base"
    (base / "repo").mkdir(parents=True)
    (base / "repo" / "README.md").write_text("read me\n")
    command = [*node_server("@modelcontextprotocol/server-filesystem"), str(base)]
    running = live("filesystem", command, cwd=base, roots={"repo": base / "repo"}, bases={"review": base})
    calls = [
        ("read_file", {"path": str(base / "repo" / "README.md")}),
        ("list_directory", {"path": str(base / "repo")}),
        ("read_file", {"path": str(base / "repo" / "missing.md")}),
    ]
    seen = compare(running, calls, mode=mode)
    assert "read me" in str(seen[1])

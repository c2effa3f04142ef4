"""Asking a server for its tools (running.md 4.4), with servers of both eras and bad ones."""

import os
import select
import sys
from pathlib import Path

import pytest

from onrecord.authorize.policy import schema_hash
from onrecord.authorize.policy.advertised import MAX_PAGES, list_tools
from onrecord.authorize.tool_names import MAX_TOOLS
from onrecord.base.errors import ConfigurationError, NetworkError

PRELUDE = """
import json, sys
def send(message):
    sys.stdout.write(json.dumps(message) + "\\n"); sys.stdout.flush()
def answer(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})
def refuse(request):
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "Method not found"}})
def tool(name):
    return {"name": name, "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
def requests():
    for line in sys.stdin:
        yield json.loads(line)
INFO = {"name": "fake", "version": "7"}
LEGACY = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
"""

LEGACY = (
    PRELUDE
    + """
started = False
for r in requests():
    if r["method"] == "initialize":
        send({"jsonrpc": "2.0", "method": "notifications/message", "params": {}})
        answer(r, LEGACY)
    elif r["method"] == "notifications/initialized":
        started = True
    elif r["method"] == "tools/list":
        assert started
        number = int(r["params"].get("cursor", "0"))
        page = {"tools": [tool(f"t{number}")]}
        if number < 3:
            page["nextCursor"] = str(number + 1)
        answer(r, page)
"""
)

MODERN = (
    PRELUDE
    + """
for r in requests():
    meta = r.get("params", {}).get("_meta", {})
    if r["method"] == "server/discover" and "io.modelcontextprotocol/protocolVersion" in meta:
        answer(r, {"resultType": "complete", "_meta": {"io.modelcontextprotocol/serverInfo": INFO}})
    elif r["method"] == "tools/list" and "io.modelcontextprotocol/clientCapabilities" in meta:
        answer(r, {"resultType": "complete", "tools": [tool("t")]})
    else:
        refuse(r)
"""
)

ASKING = (
    PRELUDE
    + """
for r in requests():
    if r["method"] == "initialize":
        send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        pong = json.loads(sys.stdin.readline())
        send({"jsonrpc": "2.0", "id": "x", "method": "roots/list"})
        no = json.loads(sys.stdin.readline())
        answer(r, LEGACY)
    elif r["method"] == "tools/list":
        answer(r, {"tools": [tool("pong" if pong == {"jsonrpc": "2.0", "id": 1, "result": {}} else "no"),
                             tool("refused" if no["error"]["code"] == -32601 else "no")]})
"""
)


def ask(program, **more):
    return list_tools(
        [sys.executable, "-I", "-c", program], env={"PATH": os.environ["PATH"]}, cwd=Path("/"), **more
    )


def has_ended(pid):
    """Wait for the end of a process that is no child of ours; half a minute is a bound for failing tests only."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended, _, _ = select.select([descriptor], [], [], 30)
    os.close(descriptor)
    return bool(ended)


def code(program, **more):
    with pytest.raises(NetworkError) as e:
        ask(program, **more)
    return e.value.code


def listing(result):
    """Return a legacy server whose tools/list has this result, given as Python text."""
    return PRELUDE + (
        "for r in requests():\n"
        "    if r['method'] == 'initialize': answer(r, LEGACY)\n"
        f"    elif r['method'] == 'tools/list': answer(r, {result})\n"
    )


def test_legacy_with_pages():
    """A server of 2025-11-25 is initialized, and all pages are read."""
    server = ask(LEGACY)
    assert (server.name, server.version) == ("fake", "7")
    assert [tool.name for tool in server.tools] == ["t0", "t1", "t2", "t3"]
    assert server.tools[0].pin == schema_hash({"type": "object", "properties": {"a": {"type": "string"}}})


def test_modern():
    """A server that knows no initialize is asked in the manner of 2026-07-28."""
    server = ask(MODERN)
    assert (server.name, [tool.name for tool in server.tools]) == ("fake", ["t"])


def test_requests_of_the_server():
    """A ping is answered, any other request refused, and neither is mistaken for an answer."""
    assert [tool.name for tool in ask(ASKING).tools] == ["pong", "refused"]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("", "server-ended"),
        ("raise SystemExit(3)", "server-ended"),
        (PRELUDE + "for r in requests(): refuse(r)", "server-refused"),
        ("print('hello', flush=True)\nimport sys\nsys.stdin.read()", "server-unreadable"),
        ("print('[]', flush=True)\nimport sys\nsys.stdin.read()", "server-unreadable"),
        ('print(\'{"id":1,"id":2}\', flush=True)\nimport sys\nsys.stdin.read()', "server-unreadable"),
        (
            "import sys\nsys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()\nsys.stdin.read()",
            "server-unreadable",
        ),
        (PRELUDE + "for r in requests(): answer(r, [])", "server-unreadable"),
        (listing("{}"), "server-unreadable"),
        (listing("{'tools': [1]}"), "server-unreadable"),
        (listing("{'tools': [{'name': 'a'}]}"), "server-unreadable"),
        (listing("{'tools': [{'name': '', 'inputSchema': {}}]}"), "server-unreadable"),
        (listing("{'tools': [tool('a'), tool('a')]}"), "server-unreadable"),
        (listing("{'tools': [], 'nextCursor': 7}"), "server-unreadable"),
        (listing("{'tools': [tool('x' * 257)]}"), "server-unreadable"),
    ],
)
def test_bad_servers(program, expected):
    """Whatever a server sends, the answer is an error of ours that says which kind it is."""
    assert code(program) == expected


def test_endless_pages():
    """A list without end is stopped."""
    assert MAX_PAGES == 1000
    assert code(listing("{'tools': [], 'nextCursor': 'again'}")) == "server-unreadable"


def test_many_tools(monkeypatch):
    """More tools, or more bytes, than the authority would ever take are not collected."""
    many = "{'tools': [tool(f't{n}') for n in range(%d)]}"
    assert len(ask(listing(many % MAX_TOOLS)).tools) == MAX_TOOLS
    assert code(listing(many % (MAX_TOOLS + 1))) == "server-unreadable"
    monkeypatch.setattr("onrecord.authorize.policy.advertised.MAX_LISTING_BYTES", 1000)
    assert code(listing(many % 20)) == "server-unreadable"


@pytest.mark.parametrize("meta", ["'x'", "['x']", "7", "{'io.modelcontextprotocol/serverInfo': 7}"])
def test_info_that_is_none(meta):
    """A server that says nothing usable of itself has no name."""
    program = MODERN.replace('{"io.modelcontextprotocol/serverInfo": INFO}', meta)
    assert ask(program).name == ""


def test_long_name():
    """A name is shown and looked up, so it is cut; one that is no text is none."""
    assert (
        len(ask(LEGACY.replace("started = False", "INFO['name'] = 'n' * 9999; started = False")).name) == 200
    )
    assert ask(LEGACY.replace("started = False", "INFO['name'] = {}; started = False")).name == ""


def test_silent():
    """A server that never answers is given up and ended."""
    assert code("import sys\nsys.stdin.read()", seconds=0.2) == "server-silent"


def test_it_is_ended(tmp_path):
    """The server and its children are gone afterwards, also when they ignore the end of their input."""
    file = tmp_path / "pids"
    program = (
        f"import os, subprocess, sys\nchild = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(file)!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        + LEGACY
        + "\nimport time\ntime.sleep(600)"
    )
    ask(program)
    for pid in map(int, file.read_text().split()):
        assert has_ended(pid)


def test_no_program():
    """A command that is not there is a configuration error."""
    with pytest.raises(ConfigurationError) as e:
        list_tools(["/nonexistent/server"], env={}, cwd=Path("/"))
    assert e.value.code == "cannot-start"


def test_environment_is_clean():
    """The server gets the environment that it is given, and nothing of ours."""
    program = "import os\nassert set(os.environ) - {'LC_CTYPE'} == {'PATH'}, os.environ\n" + LEGACY
    assert ask(program).name == "fake"

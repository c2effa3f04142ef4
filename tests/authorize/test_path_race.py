"""The time between a check and its use: a link put in the way after the proof was accepted leads nowhere."""

import json
import os

import pytest

from authorize.guard.relays import VALID, Bench
from onrecord.authorize.beneath import open_beneath
from onrecord.examples.files import FileTools
from onrecord.examples.stdio import Tool, ToolServer

pytestmark = pytest.mark.req("CP-047")
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
DISCOVER = b'{"jsonrpc":"2.0","id":"0","method":"initialize","params":{"protocolVersion":"2025-11-25"}}'


@pytest.fixture
def tree(tmp_path):
    base = tmp_path / "base"
    (base / "repo" / "src").mkdir(parents=True)
    (base / "repo" / "src" / "main.ts").write_text("inside")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "main.ts").write_text("SECRET")
    return tmp_path


def swap(tree):
    """Put a link to outside in the place of a directory that policy has looked at as text."""
    (tree / "base" / "repo" / "src").rename(tree / "base" / "repo" / "moved")
    (tree / "base" / "repo" / "src").symlink_to(tree / "secrets")


def answer_of(tree, server, path="repo/src/main.ts"):
    """Send a call through a relay, swap while the authority looks at it, then let it run; return the result."""
    bench = Bench(tree, verdict=None)
    server.answer(DISCOVER)
    bench.call(name="read_file", arguments={"path": path})
    assert bench.server_bytes == []
    swap(tree)
    bench.verifier.waiting.pop()(VALID)
    (line,) = bench.server_bytes
    bench.relay.server_line(server.answer(line).rstrip(b"\n"))
    (answer,) = bench.client
    bench.close()
    return answer["result"]


def test_swapped_between_verify_and_open(tree):
    """Acceptance 58: the proof was valid for the text of the path, and the open fails all the same (EXDEV)."""
    tools = FileTools(tree / "base")
    result = answer_of(tree, ToolServer("files", "1", tools.tools()))
    tools.close()
    assert result == {
        "content": [{"type": "text", "text": "The path is outside of the base directory"}],
        "isError": True,
    }


def test_the_race_is_real(tree):
    """The same swap under a tool that joins and opens: it gives the secret away, so the test above tests something."""

    def read_file(arguments):
        return (tree / "base" / arguments["path"]).read_text()

    result = answer_of(tree, ToolServer("naive", "1", [Tool("read_file", "", SCHEMA, read_file)]))
    assert result["content"][0]["text"] == "SECRET"


def test_a_link_that_stays_inside_is_no_escape(tree):
    """What may be linked is not forbidden: a swap for a link inside of the base is followed."""
    root = os.open(tree / "base", os.O_RDONLY | os.O_DIRECTORY)
    (tree / "base" / "repo" / "src").rename(tree / "base" / "repo" / "moved")
    (tree / "base" / "repo" / "src").symlink_to("moved")
    with open(open_beneath(root, "repo/src/main.ts"), encoding="utf-8") as file:
        assert json.dumps(file.read()) == '"inside"'
    os.close(root)

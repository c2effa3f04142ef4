"""The example file server: its tools, its schemas, and both SDK eras over a real process."""

import json
import os
import subprocess
import sys

import pytest

from onrecord.examples.files import MAX_ENTRIES, MAX_FILE_BYTES, FileTools
from onrecord.examples.stdio import ToolError

SCHEMAS = {
    "read_file": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "list_directory": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    "get_pull_request": {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    },
    "post_comment": {
        "type": "object",
        "properties": {"number": {"type": "integer"}, "body": {"type": "string"}},
        "required": ["number", "body"],
    },
    "request_review": {
        "type": "object",
        "properties": {"number": {"type": "integer"}},
        "required": ["number"],
    },
}


@pytest.fixture
def base(tmp_path):
    base = tmp_path / "files"
    for directory in ("repo/src", "home/.aws", "pulls"):
        (base / directory).mkdir(parents=True)
    (base / "repo" / "README.md").write_text("read me")
    (base / "home" / ".aws" / "credentials").write_text("a canary")
    (base / "pulls" / "17.json").write_text('{"title":"A change"}')
    return base


@pytest.fixture
def tools(base):
    tools = FileTools(base, counter=base.parent / "counter")
    yield tools
    tools.close()


class TestTools:
    def test_schemas(self, tools):
        """The input schemas are those that the shipped bindings are pinned to."""
        assert {tool.name: tool.input_schema for tool in tools.tools()} == SCHEMAS

    def test_read(self, tools, base):
        """Relative, home and absolute paths are read."""
        assert tools.read_file({"path": "repo/README.md"}) == "read me"
        assert tools.read_file({"path": "~/.aws/credentials"}) == "a canary"
        assert tools.read_file({"path": str(base / "repo/README.md")}) == "read me"

    @pytest.mark.parametrize(
        "path",
        [
            "../counter",
            "repo/../../counter",
            "/etc/hostname",
            "~/../../counter",
            "out",
            "",
            "repo",
            "no",
            "\0",
            "\ud800",
        ],
    )
    def test_read_refused(self, tools, base, path):
        """What is outside, missing, no file or no name at all is a failure, never a fault."""
        (base / "out").symlink_to("/etc/hostname")
        with pytest.raises(ToolError):
            tools.read_file({"path": path})

    def test_read_not_text(self, tools, base):
        """Bytes that are no text, files that are too long and pipes are failures."""
        (base / "binary").write_bytes(b"\xff")
        (base / "long").write_bytes(b"a" * (MAX_FILE_BYTES + 1))
        (base / "most").write_bytes(b"a" * MAX_FILE_BYTES)
        os.mkfifo(base / "pipe")
        for path in ("binary", "long", "pipe"):
            with pytest.raises(ToolError):
                tools.read_file({"path": path})
        assert len(tools.read_file({"path": "most"})) == MAX_FILE_BYTES

    def test_list(self, tools, base):
        """Names are sorted, and none can forge a second line."""
        (base / "repo" / "a\nb").touch()
        assert tools.list_directory({"path": "repo"}) == "[FILE] README.md\n[FILE] a\\x0ab\n[DIR]  src"
        assert tools.list_directory({"path": "/" + str(base).lstrip("/")}).count("[DIR]") == 3

    def test_list_bound(self, tools, base):
        """A long listing is cut and says so."""
        (base / "many").mkdir()
        for number in range(MAX_ENTRIES + 2):
            (base / "many" / str(number)).touch()
        assert tools.list_directory({"path": "many"}).endswith("\nand 2 more")

    def test_comment(self, tools, base):
        """A comment is appended as one line of JSON."""
        tools.post_comment({"number": 17, "body": "Looks\ngood."})
        tools.post_comment({"number": 17, "body": "Yes."})
        lines = (base / "pulls" / "17.comments.jsonl").read_text().splitlines()
        assert [json.loads(line)["body"] for line in lines] == ["Looks\ngood.", "Yes."]

    @pytest.mark.parametrize("number", [0, -1, 18, 10**9, 10**30])
    def test_comment_refused(self, tools, base, number):
        """Without that pull request nothing is written."""
        with pytest.raises(ToolError):
            tools.post_comment({"number": number, "body": "Looks good."})
        assert [path.name for path in (base / "pulls").iterdir()] == ["17.json"]

    def test_comment_through_a_link(self, tools, base):
        """A link in place of the comments does not lead outside."""
        (base / "pulls" / "17.comments.jsonl").symlink_to(base.parent / "elsewhere")
        with pytest.raises(ToolError):
            tools.post_comment({"number": 17, "body": "Looks good."})
        assert not (base.parent / "elsewhere").exists()

    def test_counter(self, tools, base):
        """Each call that runs is counted, failed ones too."""
        tools.get_pull_request({"number": 17})
        with pytest.raises(ToolError):
            tools.read_file({"path": "no"})
        assert (base.parent / "counter").read_text() == "get_pull_request\nread_file\n"

    def test_counter_broken(self, tools, base):
        """A call that cannot be counted does not run."""
        (base.parent / "counter").mkdir()
        with pytest.raises(ToolError):
            tools.post_comment({"number": 17, "body": "Looks good."})
        assert not (base / "pulls" / "17.comments.jsonl").exists()


def command(base, *more):
    return [sys.executable, "-m", "onrecord.examples.files", "--base", str(base), *more]


class TestProcess:
    def test_end_of_input(self, base):
        """At the end of input the server ends with status 0."""
        line = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
        done = subprocess.run(command(base), input=line, capture_output=True, timeout=30, check=True)
        assert json.loads(done.stdout)["result"] == {}
        assert done.stderr == b""

    def test_no_base(self, base):
        """Without its directory it says so and exits 2."""
        done = subprocess.run(command(base / "none"), capture_output=True, timeout=30, check=False)
        assert done.returncode == 2
        assert b"cannot open the base directory" in done.stderr

    def test_nobody_reads(self, base):
        """A client that is gone is no fault."""
        process = subprocess.Popen(
            command(base), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.close()
        _, errors = process.communicate(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n' * 5, timeout=30)
        assert (process.returncode, errors) == (0, b"")

    @pytest.mark.parametrize(
        ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", None)]
    )
    def test_sdk_client(self, base, mode, version):
        """The official client lists and calls the tools in both eras."""
        mcp = pytest.importorskip("mcp")
        anyio = pytest.importorskip("anyio")

        async def run():
            argv = command(base)
            parameters = mcp.StdioServerParameters(command=argv[0], args=argv[1:])
            async with mcp.Client(parameters, mode=mode) as client:
                assert version is None or client.protocol_version == version
                listed = await client.list_tools()
                assert {tool.name: tool.input_schema for tool in listed.tools} == SCHEMAS
                result = await client.call_tool("read_file", {"path": "repo/README.md"})
                assert (result.is_error, result.content[0].text) == (False, "read me")
                result = await client.call_tool("read_file", {"path": "no"})
                assert result.is_error is True

        anyio.run(run)

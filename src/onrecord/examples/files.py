"""The example file server: an MCP server that trusts whoever talks to it, as most of them do.

It reads files and pull requests below one directory, posts comments and requests reviews. "~" is the directory
`home` below the base, and nothing keeps a caller from reading there: that is the business of the guard in front
of it. What it does by itself is never to leave its base, whatever links and ".." say.

`onrecord-example-files --base DIR [--counter FILE]` speaks MCP on standard input and output.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import importlib.util
import json
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from onrecord.authorize.beneath import open_beneath
from onrecord.base.errors import OnrecordError
from onrecord.examples.asking import Question, ToolError
from onrecord.examples.stdio import Tool, ToolServer

NAME: Final = "example-files"
VERSION: Final = "1.0.0"

MAX_FILE_BYTES: Final = 262_144
"""Text of one answer. A longer file is refused, so that an answer stays far below the line limits on its way."""

MAX_ENTRIES: Final = 1000
"""Names in one listing; the rest is counted."""

_PATH: Final = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
_NUMBER: Final = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
_COMMENT: Final = {
    "type": "object",
    "properties": {"number": {"type": "integer"}, "body": {"type": "string"}},
    "required": ["number", "body"],
}


class FileTools:
    """The five tools over one base directory."""

    def __init__(self, base: Path, *, counter: Path | None = None) -> None:
        """Open `base`; `counter` gets one line with the tool's name for each call that runs.

        Raises `OSError` when `base` is no directory that we can open.
        """
        self._base = Path(os.path.realpath(base))
        self._root = os.open(self._base, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._counter = counter

    def close(self) -> None:
        """Give the base directory back."""
        os.close(self._root)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools as they are advertised."""
        reading = {"readOnlyHint": True}
        writing = {"readOnlyHint": False, "destructiveHint": False}
        return (
            Tool("read_file", "Return the text of one file.", _PATH, self.read_file, reading),
            Tool("list_directory", "List the names in one directory.", _PATH, self.list_directory, reading),
            Tool("get_pull_request", "Return one pull request.", _NUMBER, self.get_pull_request, reading),
            Tool("post_comment", "Comment on one pull request.", _COMMENT, self.post_comment, writing),
            Tool(
                "request_review",
                "Ask the user for a reviewer of one pull request, and request the review.",
                _NUMBER,
                self.request_review,
                writing,
                question=self.ask_reviewer,
                is_task=True,
            ),
        )

    def read_file(self, arguments: Mapping[str, Any]) -> str:
        """Return the text of the file `path`."""
        self._count("read_file")
        return self._text(self._relative(arguments["path"]))

    def list_directory(self, arguments: Mapping[str, Any]) -> str:
        """Return one line for each name in the directory `path`, sorted."""
        self._count("list_directory")
        descriptor = self._open(self._relative(arguments["path"]), os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        finally:
            os.close(descriptor)
        lines = [
            f"{'[DIR] ' if is_dir else '[FILE]'} {_printable(name)}" for name, is_dir in found[:MAX_ENTRIES]
        ]
        if len(found) > MAX_ENTRIES:
            lines.append(f"and {len(found) - MAX_ENTRIES} more")
        return "\n".join(lines)

    def get_pull_request(self, arguments: Mapping[str, Any]) -> str:
        """Return the text of pull request `number`."""
        self._count("get_pull_request")
        return self._text(f"pulls/{_number(arguments)}.json")

    def post_comment(self, arguments: Mapping[str, Any]) -> str:
        """Append `body` to the comments of pull request `number`."""
        self._count("post_comment")
        number = _number(arguments)
        self._text(f"pulls/{number}.json")
        self._append(f"pulls/{number}.comments.jsonl", {"body": arguments["body"]})
        return f"Commented on pull request {number}."

    def ask_reviewer(self, arguments: Mapping[str, Any]) -> Question:
        """Return the question for the reviewer of pull request `number`, if there is such a pull request."""
        number = _number(arguments)
        self._text(f"pulls/{number}.json")
        return Question("reviewer", f"Who should review pull request {number}?")

    def request_review(self, arguments: Mapping[str, Any]) -> str:
        """Append `reviewer` to the review requests of pull request `number`."""
        self._count("request_review")
        number = _number(arguments)
        self._append(f"pulls/{number}.reviews.jsonl", {"reviewer": arguments["reviewer"]})
        return f"{_printable(arguments['reviewer'])} was asked to review pull request {number}."

    def _append(self, path: str, record: Mapping[str, Any]) -> None:
        line = json.dumps(record).encode() + b"\n"
        descriptor = self._open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            _write_all(descriptor, line)
        except OSError as error:
            raise ToolError(_reason(error)) from error
        finally:
            os.close(descriptor)

    def _relative(self, path: str) -> str:
        """Turn an argument into a path below the base, without looking at the file system."""
        if path == "~" or path.startswith("~/"):
            return f"home{path[1:]}"
        if path.startswith("/"):
            inside = path.removeprefix(f"{self._base}/")
            if inside == path and path != str(self._base):
                raise ToolError("The path is outside of the base directory")
            return inside.lstrip("/") if inside != path else "."
        return path or "."

    def _text(self, path: str) -> str:
        descriptor = self._open(path, os.O_RDONLY)
        try:
            state = os.fstat(descriptor)
            if not stat.S_ISREG(state.st_mode):
                raise ToolError("This is not a file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ToolError(_reason(error)) from error
        finally:
            os.close(descriptor)
        if len(data) > MAX_FILE_BYTES:
            raise ToolError(f"The file is longer than {MAX_FILE_BYTES} bytes")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ToolError("The file is not UTF-8 text") from error

    def _open(self, path: str, flags: int) -> int:
        try:
            return open_beneath(self._root, path, flags=flags)
        except OSError as error:
            raise ToolError(_reason(error)) from error
        except ValueError as error:
            raise ToolError("The path has characters that no file name has") from error

    def _count(self, tool: str) -> None:
        """Note a call that runs, before it does anything: the spy of tests and demonstration."""
        if self._counter is None:
            return
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(self._counter, flags, 0o600), "wb", buffering=0) as file:
                _write_all(file.fileno(), tool.encode() + b"\n")
        except OSError as error:
            raise ToolError("The call was not run, because it could not be counted") from error


def _number(arguments: Mapping[str, Any]) -> int:
    number = int(arguments["number"])
    if not 0 < number < 10**9:
        raise ToolError("There is no such pull request")
    return number


def _reason(error: OSError) -> str:
    """Say what went wrong in words that hold no path of ours."""
    if error.errno == errno.EXDEV:
        return "The path is outside of the base directory"
    return os.strerror(error.errno) if error.errno else "The file cannot be used"


def _printable(name: str) -> str:
    """Escape line feeds and other controls, and bytes that are no text."""
    text = os.fsencode(name).decode(errors="backslashreplace")
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def main(argv: Sequence[str] | None = None) -> None:
    """Run the server on standard input and output until the input ends. Exit 2 when the base cannot be opened."""
    parser = argparse.ArgumentParser(
        prog="onrecord-example-files", description=(__doc__ or "").split("\n", 1)[0]
    )
    parser.add_argument(
        "--base", type=Path, default=Path("."), help="directory to serve (default: the current one)"
    )
    parser.add_argument("--counter", type=Path, help="file that gets one line for each tool call that runs")
    parser.add_argument(
        "--hook",
        action="store_true",
        help="serve with the official SDK, and check each call (needs the extra mcp)",
    )
    options = parser.parse_args(argv)
    try:
        tools = FileTools(options.base, counter=options.counter)
    except OSError as error:
        parser.exit(2, f"onrecord-example-files: cannot open the base directory: {error.strerror}\n")
    if options.hook:
        _serve_hooked(parser, tools)
        return
    with contextlib.closing(tools), contextlib.suppress(KeyboardInterrupt):
        ToolServer(NAME, VERSION, tools.tools()).serve(sys.stdin.buffer, sys.stdout.buffer)
    try:
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # What nobody reads must not become a complaint of the interpreter at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _serve_hooked(parser: argparse.ArgumentParser, tools: FileTools) -> None:
    """Run the server of `hooked_files`; exit 2 with a word about what is missing."""
    if importlib.util.find_spec("mcp") is None:
        parser.exit(2, "onrecord-example-files: --hook needs the MCP SDK, which comes with onrecord[mcp]\n")
    from onrecord.examples.hooked_files import hooked_server

    with contextlib.closing(tools), contextlib.suppress(KeyboardInterrupt):
        try:
            hooked_server(tools).run("stdio")
        except OnrecordError as error:
            parser.exit(2, f"onrecord-example-files: {error}\n")


if __name__ == "__main__":
    main()

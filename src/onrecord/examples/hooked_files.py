"""The tools of the example file server once more, by the official SDK, and protected by the SDK hook.

`onrecord-example-files --hook` runs it. It differs from `files` in who checks: there the guard's relay in front of the
server, here the server itself, by the one line with `protect`. It answers `request_review` without a task.
"""

# No `from __future__ import annotations`: the SDK reads the annotations, and one of them names a local function.

from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Elicit, Resolve
from mcp.server.mcpserver.exceptions import ToolError as SdkToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from onrecord.authorize.hook import protect
from onrecord.examples.asking import MAX_ANSWER_CHARS, ToolError
from onrecord.examples.files import NAME, VERSION, FileTools

READING = ToolAnnotations(read_only_hint=True)
WRITING = ToolAnnotations(read_only_hint=False, destructive_hint=False)


class Reviewer(BaseModel):
    """What a person is asked for before a review is requested."""

    reviewer: str = Field(min_length=1, max_length=MAX_ANSWER_CHARS)


def hooked_server(files: FileTools) -> MCPServer[Any]:
    """Return the server over these tools, protected."""
    server = protect(MCPServer(NAME, version=VERSION))

    @server.tool(annotations=READING, structured_output=False)
    def read_file(path: str) -> str:
        """Return the text of one file."""
        return _told(files.read_file, path=path)

    @server.tool(annotations=READING, structured_output=False)
    def list_directory(path: str) -> str:
        """List the names in one directory."""
        return _told(files.list_directory, path=path)

    @server.tool(annotations=READING, structured_output=False)
    def get_pull_request(number: int) -> str:
        """Return one pull request."""
        return _told(files.get_pull_request, number=number)

    @server.tool(annotations=WRITING, structured_output=False)
    def post_comment(number: int, body: str) -> str:
        """Comment on one pull request."""
        return _told(files.post_comment, number=number, body=body)

    def ask_reviewer(number: int) -> Elicit[Reviewer]:
        return Elicit(_told(lambda arguments: files.ask_reviewer(arguments).message, number=number), Reviewer)

    @server.tool(annotations=WRITING, structured_output=False)
    def request_review(number: int, chosen: Annotated[Reviewer, Resolve(ask_reviewer)]) -> str:
        """Ask the user for a reviewer of one pull request, and request the review."""
        return _told(files.request_review, number=number, reviewer=chosen.reviewer.strip())

    return server


def _told(tool: Any, **arguments: Any) -> str:
    try:
        return str(tool(arguments))
    except ToolError as failure:
        raise SdkToolError(str(failure)) from failure

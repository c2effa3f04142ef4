"""A tool server of your own with the official SDK (mcp 2.x), protected by one line.

It serves the notes in its working directory. Needs the extra `mcp`; docs/protect-your-own-server.md puts it to work.
"""

import os

from mcp.server import MCPServer

from onrecord.authorize.beneath import open_beneath
from onrecord.authorize.hook import protect

server = protect(MCPServer("notes"))
root = os.open(".", os.O_RDONLY | os.O_DIRECTORY)


def below_root(path: str, flags: int) -> int:
    # The policy has looked at the text of the path. Links may have changed since, so the kernel looks again.
    return open_beneath(root, path, flags=flags)


@server.tool()
def read_note(path: str) -> str:
    """Return the text of one note."""
    with open(path, encoding="utf-8", opener=below_root) as note:
        return note.read()


@server.tool()
def add_note(path: str, text: str) -> str:
    """Append a line to a note."""
    with open(path, "a", encoding="utf-8", opener=below_root) as note:
        note.write(f"{text}\n")
    return "added"


if __name__ == "__main__":
    server.run()

"""The server of protected_mcp.py with FastMCP 4.x: the same line protects it.

Needs `fastmcp` in the environment of this server, beside onrecord.
"""

import os

from fastmcp import FastMCP

from onrecord.authorize.beneath import open_beneath
from onrecord.authorize.hook import protect

server = protect(FastMCP("notes"))
root = os.open(".", os.O_RDONLY | os.O_DIRECTORY)


def below_root(path: str, flags: int) -> int:
    return open_beneath(root, path, flags=flags)


@server.tool
def read_note(path: str) -> str:
    """Return the text of one note."""
    with open(path, encoding="utf-8", opener=below_root) as note:
        return note.read()


@server.tool
def add_note(path: str, text: str) -> str:
    """Append a line to a note."""
    with open(path, "a", encoding="utf-8", opener=below_root) as note:
        note.write(f"{text}\n")
    return "added"


if __name__ == "__main__":
    server.run(show_banner=False)

"""The `server` of events: the deployment's name for it, else the name that the server gives itself, else its id.

    >>> server_name("files", ti_server=None, own_name="example-files")
    ServerName(text='example-files', is_prefixed=False)
    >>> server_name("files", ti_server=None, own_name="!host")
    ServerName(text='name:!host', is_prefixed=True)

Source: record.md D-44.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

HOST_TOOLS: Final = "!host"
"""The server of tools that the agent's host offers itself."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


class ServerName(NamedTuple):
    """A server's name, and whether it had to be marked because it looked like something else."""

    text: str
    is_prefixed: bool


def server_name(server_id: str, *, ti_server: str | None, own_name: str | None) -> ServerName:
    """Return the name of a server in a vCon.

    `ti_server` is the deployment's and may be a URL or "!host"; `own_name` is what the server said of itself and may
    be neither, since it could pass for another server then.
    """
    if ti_server:
        if ti_server.startswith("!") and ti_server != HOST_TOOLS:
            return ServerName(f"name:{ti_server}", is_prefixed=True)
        return ServerName(bare_url(ti_server), is_prefixed=False)
    if own_name:
        if own_name.startswith("!") or _URL.match(own_name):
            return ServerName(f"name:{bare_url(own_name)}", is_prefixed=True)
        return ServerName(own_name, is_prefixed=False)
    return ServerName(server_id, is_prefixed=False)


def bare_url(text: str) -> str:
    """Return a URL without user information, query and fragment; another text unchanged."""
    if not _URL.match(text):
        return text
    try:
        parts = urlsplit(text)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return text.partition("?")[0].partition("#")[0].rpartition("@")[2]

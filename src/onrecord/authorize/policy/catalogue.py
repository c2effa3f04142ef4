"""Bindings of known servers, shipped with the package. They count only after `policy bind ID --pin`.

    >>> sorted(names())[:2]
    ['example-files', 'mcp-fetch']

Source: running.md 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Final

from onrecord.base import strict_json

DEFAULT_BASE: Final = "default"
"""Base of the path arguments of a catalogue entry; it stands for the base of the server that is bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server: its name for itself, what package it is, and bindings without pins."""

    server: str
    package: str
    tools: tuple[Mapping[str, Any], ...] = field(repr=False)


@cache
def _entries() -> Mapping[str, Entry]:
    folder = resources.files("onrecord.authorize.policy").joinpath("data/catalogue")
    entries: dict[str, Entry] = {}
    for file in folder.iterdir():
        if file.name.endswith(".json"):
            value, _ = strict_json.parse(file.read_bytes())
            entries[value["server"]] = Entry(
                server=value["server"], package=value["package"], tools=tuple(value["tools"])
            )
    return entries


def names() -> frozenset[str]:
    """Return the servers of the catalogue, by serverInfo.name."""
    return frozenset(_entries())


def entry(server_name: str) -> Entry | None:
    """Return the entry of a server, by the name that it gives itself."""
    return _entries().get(server_name)

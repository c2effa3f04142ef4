"""Writes the text of an `onrecord.toml`: every key with its value and one line of what it means.

Source: running.md 3.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from onrecord.base.configuration_keys import KEYS, SERVER_KEYS, Key, Kind, Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from onrecord.base.configuration import Configuration

Value = str | int | bool | tuple[str, ...]

_TITLES: Final = {
    "user": "onrecord, user mode: one uid, reported as degraded. Owner the user, mode 0600 or 0644.",
    "system": "onrecord, system mode: one uid per role. Owner root, mode 0644.",
}

_EXAMPLES: Final[dict[str, Value]] = {
    "command": "/usr/local/bin/my-tool-server",
    "cwd": "/srv/files",
    "env_file": "/etc/onrecord/env/ID.env",
    "user": "onrecord-srv-files",
    "canaries": ("/srv/files/canary.txt", "db.example.com:5432"),
    "secret_names": ("EXAMPLE_TOKEN",),
}


def text_of(value: Value) -> str:
    """Return a value as TOML (v1.0.0, strings in their basic form)."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            return "[" + ", ".join(text_of(one) for one in value) + "]"


def draft_text(mode: Mode, values: Mapping[str, Value], servers: Mapping[str, Mapping[str, Value]]) -> str:
    """Return the least TOML that says this; `values` has full names such as `paths.state`."""
    tables: dict[str, list[str]] = {"": [f"mode = {text_of(mode)}"]}
    for full, value in values.items():
        table, _, name = full.rpartition(".")
        tables.setdefault(table, []).append(f"{name} = {text_of(value)}")
    for server, entry in servers.items():
        rows = [f"{text_of(name)} = {text_of(value)}" for name, value in entry.items()]
        tables[f"servers.{text_of(server)}"] = rows
    return "\n".join(
        line for table, rows in tables.items() for line in ([f"[{table}]", *rows] if table else rows)
    )


def configuration_text(configuration: Configuration) -> str:
    """Return a whole file that reads back as `configuration`: every key, each below its comment."""
    mode = configuration.mode
    lines = [f"# {_TITLES[mode]}", "# Unknown keys are errors. No secret belongs in this file.", ""]
    section = ""
    for key in KEYS:
        if mode not in key.modes:
            continue
        table, _, name = key.name.rpartition(".")
        if table != section:
            section = table
            lines += ["", f"[{table}]"]
        value = _plain(mode if not table else getattr(getattr(configuration, table), name))
        lines.append(f"# {key.comment}")
        lines.append(
            f"{name} = {text_of(value)}" if value is not None else f'# {name} = "file:/path/key.pem"'
        )
    for server in configuration.servers.values():
        lines += ["", f"[servers.{text_of(server.id) if '.' in server.id else server.id}]"]
        for key in _server_keys(mode):
            value = _plain(getattr(server, "ti_server" if key.name == "tiServer" else key.name))
            if value is not None:
                lines += [f"# {key.comment}", f"{key.name} = {text_of(value)}"]
    lines += ["", "# A tool server: copy the table, take the # away, then `onrecord policy bind ID`."]
    lines += ["# [servers.ID]", *_example_lines(mode)]
    return "\n".join(lines) + "\n"


def _plain(value: object) -> Value | None:
    match value:
        case None | str() | int() | tuple():
            return value
        case _:
            return str(value)


def _example_lines(mode: Mode) -> Iterator[str]:
    for key in _server_keys(mode):
        value = _EXAMPLES.get(key.name, key.default(mode))
        yield f"# {key.name} = {text_of('' if value is None else value)}  # {key.comment}"


def _server_keys(mode: Mode) -> Iterator[Key]:
    for key in SERVER_KEYS:
        if mode in key.modes and key.kind is not Kind.TABLE:
            yield key

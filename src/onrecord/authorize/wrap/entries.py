"""The servers of a client's file: which can be wrapped, which are wrapped already, and which are left alone.

Source: running.md 5.3.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from onrecord.record import credentials

Form = Literal["json", "toml"]

PLACES: Final[Mapping[Form, tuple[str, ...]]] = {"json": ("mcpServers", "servers"), "toml": ("mcp_servers",)}
"""Where the servers stand in a file of each form. A TOML file with `servers` is our own, and no client's."""

MAX_ENTRIES: Final = 1000
"""Servers read of one file. People have a handful; more is no file of a person."""

EDITED: Final = ("command", "args", "cwd", "env")
"""The members of an entry that are touched; all others stay."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_REMOTE: Final = ("url", "serverUrl", "httpUrl")

Place = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server that can be wrapped. `place` leads to it in the file; `env` holds secrets and is never shown.

    Arguments may hold secrets too.
    """

    place: Place
    command: str
    args: tuple[str, ...] = field(repr=False)
    cwd: str | None
    env: Mapping[str, str] = field(repr=False)
    env_pass: tuple[str, ...] = ()
    has_secret_argument: bool = False

    @property
    def name(self) -> str:
        """The name that the client shows."""
        return self.place[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Already:
    """A server that is started by `onrecord connect`."""

    place: Place

    @property
    def name(self) -> str:
        """The name that the client shows."""
        return self.place[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftAlone:
    """A server that stays as it is, and why; `reason` is for programs, `message` for people. No value is in it."""

    place: Place
    reason: str
    message: str

    @property
    def name(self) -> str:
        """The name that the client shows."""
        return self.place[-1]


def places(data: Mapping[str, Any], *, form: Form) -> Iterator[Place]:
    """Yield the place of each server table or object that a file has."""
    for name in PLACES[form]:
        if isinstance(data.get(name), dict):
            yield (name,)
    projects = data.get("projects")
    if form == "json" and isinstance(projects, dict):
        for project, value in projects.items():
            if isinstance(value, dict) and isinstance(value.get("mcpServers"), dict):
                yield ("projects", project, "mcpServers")


def read_entries(
    data: Mapping[str, Any], *, form: Form, start_directory: Path | None
) -> tuple[Entry | Already | LeftAlone, ...]:
    """Return all servers of a file. `start_directory` is where its client starts them, if that is known."""
    found: list[Entry | Already | LeftAlone] = []
    for place in places(data, form=form):
        directory = start_directory
        servers: Any = data
        for name in place:
            servers = servers[name]
        if place[0] == "projects":
            directory = Path(place[1]) if os.path.isabs(place[1]) else None
        for name, value in servers.items():
            found.append(_read(value, (*place, name), directory))
            if len(found) == MAX_ENTRIES:
                return tuple(found)
    return tuple(found)


def _read(value: Any, place: Place, directory: Path | None) -> Entry | Already | LeftAlone:
    def leave(reason: str, message: str) -> LeftAlone:
        return LeftAlone(place=place, reason=reason, message=message)

    if not isinstance(value, dict):
        return leave("malformed", "it is no object")
    if not all(_is_unicode(name) for name in place):
        return leave("text", "its name, or that of its project, is no Unicode")
    if any(name in value for name in _REMOTE):
        return leave("url", "it has a url; only a server that the client starts can be wrapped")
    if value.get("type", "stdio") != "stdio":
        return leave("type", "its type is not stdio")
    command, args, cwd, env = (value.get(name) for name in EDITED)
    args, env = args if args is not None else [], env if env is not None else {}
    if not isinstance(command, str) or not command:
        return leave("command", "it has no command")
    if not isinstance(args, list) or not all(isinstance(one, str) for one in args):
        return leave("args", "args is not a list of texts")
    if os.path.basename(command) == "onrecord" and args[:1] == ["connect"]:
        return Already(place=place)
    if cwd is not None and not isinstance(cwd, str):
        return leave("cwd", "cwd is no text")
    if not isinstance(env, dict):
        return leave("env", "env is no object")
    if (problem := _environment_problem(env)) is not None:
        return leave("env", problem)
    texts = [command, *args, *env.values(), *env, *([cwd] if cwd else [])]
    if any("${" in one for one in texts):
        return leave("placeholder", "it has a placeholder ${…}, which only the client can fill in")
    if any(not _is_plain(one) for one in texts):
        return leave("text", "it holds a text that is no Unicode, or a NUL")
    if "envFile" in value:
        return leave("envFile", "it has an envFile: move those variables into env first")
    names = _passed_names(value.get("env_vars"))
    if names is None:
        return leave("env_vars", "env_vars is not a list of names")
    if not cwd:
        cwd = None if directory is None else str(directory)
    elif not cwd.startswith(("/", "~")):
        if directory is None:
            return leave("relative", "its cwd is a relative path: write the whole path")
        cwd = os.path.normpath(directory / cwd)
    if "/" in command and not command.startswith(("/", "~/")):
        if cwd is None or not os.path.isabs(cwd):
            return leave("relative", "its program is a relative path: write the whole path")
        command = os.path.normpath(os.path.join(cwd, command))
    if cwd is not None and not _is_unicode(cwd):
        return leave("text", "the name of its directory is no Unicode")
    return Entry(
        place=place,
        command=command,
        args=tuple(args),
        cwd=cwd,
        env=env,
        env_pass=names,
        has_secret_argument=any(_looks_secret(args)),
    )


def _environment_problem(env: Mapping[str, Any]) -> str | None:
    """Say why variables cannot stand in an env file of lines NAME=value; None if they can."""
    for name, value in env.items():
        if not _NAME.fullmatch(name):
            return "env has a name that is no name of a variable"
        if not isinstance(value, str):
            return f"the value of {name} in env is no text"
        if "\n" in value or value.endswith("\r"):
            return f"the value of {name} in env has several lines"
    return None


def _is_plain(text: str) -> bool:
    return "\0" not in text and _is_unicode(text)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _passed_names(value: Any) -> tuple[str, ...] | None:
    """Return the names that Codex hands on from its own environment; None if they cannot be read."""
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(one, str) and _NAME.fullmatch(one) for one in value):
        return tuple(value)
    return None


def _looks_secret(args: list[str]) -> Iterator[bool]:
    """Yield for each argument whether it looks like a credential, by its form or by the option it belongs to."""
    previous = ""
    for argument in args:
        option, equals, value = argument.partition("=")
        named = option if equals and option.startswith("-") else previous
        text = value if named == option and equals else argument
        is_option = named.startswith("-") and bool(text) and not text.startswith("-")
        yield bool(credentials.spans(argument)) or (is_option and _is_secret_option(named))
        previous = argument


def _is_secret_option(option: str) -> bool:
    name = option.lstrip("-").lower().replace("-", "_")
    return credentials.is_credential_name(name) or name.endswith(
        ("token", "secret", "password", "passphrase", "api_key", "apikey", "access_key", "private_key")
    )

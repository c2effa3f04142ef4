"""Tables `[servers.ID]` at the end of onrecord.toml: appended and taken out as text, so all the rest stays.

Source: running.md 3, 5.3.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from onrecord.authorize.guard.environment import ENV_FILE_BYTES, read_env_file
from onrecord.authorize.setup.template import text_of
from onrecord.authorize.wrap.backups import env_directory
from onrecord.authorize.wrap.entries import Entry, LeftAlone
from onrecord.base.configuration import MAX_FILE_BYTES, Configuration, Server, user_number
from onrecord.base.errors import ConfigurationError

MAX_ID: Final = 64
"""Longest server id (call-proof.md 5.2)."""

_OTHER = re.compile(r"[^a-z0-9._-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What becomes of one entry: the id of its server, and what must be written for it if that is new."""

    entry: Entry
    id: str
    table: str = field(repr=False)
    env_file: Path | None
    env_text: bytes = field(repr=False)
    is_new: bool


def server_id(name: str) -> str:
    """Return the id that a client's name for a server gives: lower case, with "-" for other characters.

        >>> server_id("My Files")
        'my-files'

    Source: running.md 5.3.
    """
    return _OTHER.sub("-", name.lower()).lstrip("-._")[:MAX_ID] or "server"


class Planner:
    """Finds an id for each entry; the same program with the same arguments and environment keeps one id."""

    def __init__(self, configuration: Configuration, *, text: str, user: str | int | None) -> None:
        """`text` is that of the configuration's file; `user` is the uid of new servers, in system mode only."""
        self._configuration = configuration
        self._user = user
        self._new: dict[str, Planned] = {}
        self.text = text

    def plan(self, entry: Entry) -> Planned | LeftAlone:
        """Return the plan for one entry, or why it must stay as it is."""
        if self._configuration.mode == "system":
            if entry.has_secret_argument:
                message = "an argument looks like a credential, and every user can read onrecord.toml"
                return self._leave(entry, "secret-argument", message)
            if entry.env_pass:
                return self._leave(entry, "env_vars", "env_vars cannot reach a server under its own uid")
        env_text = "".join(f"{name}={value}\n" for name, value in entry.env.items()).encode()
        if len(env_text) > ENV_FILE_BYTES:
            return self._leave(entry, "env", f"env is larger than {ENV_FILE_BYTES} bytes")
        base, number = server_id(entry.name), 1
        while True:
            suffix = "" if number == 1 else f"-{number}"
            id_ = base[: MAX_ID - len(suffix)] + suffix
            number += 1
            env_file = env_directory(self._configuration) / f"{id_}.env" if entry.env else None
            table = self._table(id_, entry, env_file)
            try:
                wanted = self._read_alone(id_, table)
            except ConfigurationError as error:
                return self._leave(entry, "unusable", f"{error}" + (f" ({error.hint})" if error.hint else ""))
            present = self._configuration.servers.get(id_)
            if present is not None:
                if self._is_same(present, wanted, entry):
                    return self._planned(entry, id_, table, present.env_file, env_text, is_new=False)
                continue
            if id_ in self._new:
                other = self._new[id_]
                if other.table == table and other.env_text == env_text:
                    return self._planned(entry, id_, table, env_file, env_text, is_new=False)
                continue
            if env_file is not None and os.path.lexists(env_file) and not self._holds(env_file, entry):
                continue  # somebody's file; nothing is overwritten
            return self._add(self._planned(entry, id_, table, env_file, env_text, is_new=True))

    def _add(self, planned: Planned) -> Planned | LeftAlone:
        text = self.text + ("" if not self.text or self.text.endswith("\n") else "\n") + planned.table
        if len(text.encode()) > MAX_FILE_BYTES:
            return self._leave(planned.entry, "unusable", "onrecord.toml would become too large")
        try:
            Configuration.parse(text, file=self._configuration.file)
        except ConfigurationError:  # a table cannot be added to `servers = {…}`
            message = "onrecord.toml has its servers in a form that no table can be added to"
            return self._leave(planned.entry, "unusable", message)
        self.text = text
        self._new[planned.id] = planned
        return planned

    def _planned(
        self, entry: Entry, id_: str, table: str, env_file: Path | None, env_text: bytes, *, is_new: bool
    ) -> Planned:
        return Planned(entry=entry, id=id_, table=table, env_file=env_file, env_text=env_text, is_new=is_new)

    def _leave(self, entry: Entry, reason: str, message: str) -> LeftAlone:
        return LeftAlone(place=entry.place, reason=reason, message=message)

    def _table(self, id_: str, entry: Entry, env_file: Path | None) -> str:
        values: dict[str, str | int | tuple[str, ...]] = {"command": entry.command, "args": entry.args}
        if entry.cwd is not None:
            values["cwd"] = entry.cwd
        if env_file is not None:
            values["env_file"] = str(env_file)
        if entry.env_pass:
            values["env_pass"] = entry.env_pass
        if self._user is not None:
            values["user"] = self._user
            values["secret_names"] = tuple(entry.env)  # `onrecord doctor` looks for them at the agent
        lines = [f"{name} = {text_of(value)}" for name, value in values.items()]
        return "\n".join(["", f"[servers.{text_of(id_) if '.' in id_ else id_}]", *lines, ""])

    def _read_alone(self, id_: str, table: str) -> Server:
        """Return the server of a table as the configuration's reader understands it."""
        present = self._configuration
        runtime = text_of(str(present.paths.runtime))
        draft = f'mode = "{present.mode}"\n[paths]\nruntime = {runtime}\n{table}'
        return Configuration.parse(draft, file=present.file).servers[id_]

    def _is_same(self, present: Server, wanted: Server, entry: Entry) -> bool:
        members = ("command", "args", "cwd", "env_pass", "user")
        if any(getattr(present, name) != getattr(wanted, name) for name in members) or present.hook:
            return False
        if present.env_file is None:
            return not entry.env
        return self._holds(present.env_file, entry)

    def _holds(self, env_file: Path, entry: Entry) -> bool:
        try:
            return read_env_file(env_file, owner=self.owner) == dict(entry.env)
        except ConfigurationError:
            return False

    @property
    def owner(self) -> int:
        """The uid that env files must belong to."""
        if self._user is None:
            return os.geteuid()
        return user_number(self._user, file=self._configuration.file)


def without_table(text: str, table: str) -> str | None:
    """Return the text without a table that was appended; None if it does not stand there as it was written."""
    if text.count(table) != 1:
        return None
    start = text.index(table)
    after = text[start + len(table) :].lstrip("\r\n")
    if after and not after.startswith(("[", "#")):  # keys were added to it
        return None
    return text[:start] + text[start + len(table) :]

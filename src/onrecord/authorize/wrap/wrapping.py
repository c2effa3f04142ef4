"""`onrecord wrap`: a client's servers move behind onrecord, and their secrets out of the client's file.

The client's file is written last, so that a run which ends early has changed nothing that a client sees.

Source: running.md 5.3.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from onrecord.authorize.setup import files
from onrecord.authorize.setup.files import Owner
from onrecord.authorize.wrap.backups import (
    Backups,
    Generation,
    MadeServer,
    Record,
    WrappedEntry,
    members,
    sha256,
    that_happened,
)
from onrecord.authorize.wrap.candidates import start_directory
from onrecord.authorize.wrap.client_file import form_of, read_text, written
from onrecord.authorize.wrap.entries import EDITED, Already, Entry, LeftAlone, places, read_entries
from onrecord.authorize.wrap.kept_file import KeptFile
from onrecord.authorize.wrap.server_tables import Planned, Planner
from onrecord.base.configuration import Configuration, user_gid
from onrecord.base.dates import format_date, utc_now
from onrecord.base.errors import ConfigurationError, MalformedError, UsageError, Where


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapReport:
    """What was done with each server of a client's file. Names of variables are in `to_json`, values never."""

    file: Path
    wrapped: tuple[Planned, ...]
    already: tuple[Already, ...]
    left_alone: tuple[LeftAlone, ...]
    backup: Path | None

    def to_json(self) -> dict[str, Any]:
        """Return all members."""
        return {
            "file": str(self.file),
            "wrapped": [
                {
                    "name": one.entry.name,
                    "place": list(one.entry.place),
                    "id": one.id,
                    "new": one.is_new,
                    "env": list(one.entry.env),
                    "envFile": None if one.env_file is None else str(one.env_file),
                    "secretArgument": one.entry.has_secret_argument,
                }
                for one in self.wrapped
            ],
            "already": [{"name": one.name, "place": list(one.place)} for one in self.already],
            "leftAlone": [
                {"name": one.name, "place": list(one.place), "reason": one.reason, "message": one.message}
                for one in self.left_alone
            ],
            "backup": None if self.backup is None else str(self.backup),
        }


def wrap(
    configuration: Configuration,
    file: Path,
    *,
    connector: tuple[str, ...],
    options: tuple[str, ...] = (),
    only: Collection[str] = (),
    user: str | int | None = None,
    is_dry: bool = False,
    now: datetime | None = None,
) -> WrapReport:
    """Put `onrecord connect` in the place of the servers of a client's file.

    `connector` is the command that the client starts, an absolute path, and its first arguments; `options` follow
    the id. `only` names the servers to wrap, none: all. `user` is the uid of new servers, in system mode only. With
    `is_dry` nothing is written.

    Raises `UsageError` with code "client-file-…", "client-file-unknown", "client-server-unknown", "wrap-user" or
    "needs-root"; `MalformedError`, `StorageError` and `ConfigurationError` for files that cannot be read or written.
    """
    _check_user(configuration, user)
    if is_dry:
        return _Run(configuration, file, connector, options, only, user).report(backup=None)
    backups = Backups.of(configuration)
    with backups.lock():
        run = _Run(configuration, file, connector, options, only, user)
        return run.write(backups, now=utc_now() if now is None else now)


def _check_user(configuration: Configuration, user: str | int | None) -> None:
    if configuration.mode == "user":
        if user is not None:
            raise UsageError(
                "in user mode every server has your uid", code="wrap-user", hint="leave --user out"
            )
        return
    if os.geteuid() != 0:
        raise UsageError(
            "system mode needs root: the configuration and the env files are not yours",
            code="needs-root",
            hint="run it as root, with the client's file of the agent's account",
        )


class _Run:
    """One reading of a client's file and of the configuration, and the plan that comes of it."""

    def __init__(
        self,
        configuration: Configuration,
        file: Path,
        connector: tuple[str, ...],
        options: tuple[str, ...],
        only: Collection[str],
        user: str | int | None,
    ) -> None:
        self._kept = KeptFile.read(file)
        self._own = KeptFile.read(Path(os.path.realpath(configuration.file)))
        configuration = Configuration.parse(
            self._own.data.decode("utf-8", "replace"), file=configuration.file
        )
        self._configuration = configuration
        self._connector, self._options = connector, options
        self._client = read_text(self._kept.data, path=self._kept.path)
        form = form_of(self._kept.path)
        if not any(places(self._client.data, form=form)):
            raise UsageError(
                "the file has no list of MCP servers",
                code="client-file-unknown",
                where=Where(file=str(self._kept.path)),
                hint="expected mcpServers, servers or projects (JSON), or mcp_servers (TOML)",
            )
        directory = start_directory(Path(os.path.abspath(file)))
        found = read_entries(self._client.data, form=form, start_directory=directory)
        unknown = sorted(set(only) - {one.name for one in found})
        if unknown:
            raise UsageError(
                f"not in the file: {', '.join(unknown)}",
                code="client-server-unknown",
                where=Where(file=str(self._kept.path)),
                hint="onrecord wrap --dry-run FILE lists them",
            )
        chosen = [one for one in found if not only or one.name in only]
        self._planner = Planner(configuration, text=self._own.data.decode("utf-8"), user=user)
        self._already = tuple(one for one in chosen if isinstance(one, Already))
        entries = [one for one in chosen if isinstance(one, Entry)]
        plans = [one if not isinstance(one, Entry) else self._plan(one) for one in chosen]
        self._planned = tuple(one for one in plans if isinstance(one, Planned))
        self._left_alone = tuple(one for one in plans if isinstance(one, LeftAlone))
        if configuration.mode == "system" and entries:
            self._check_system(user)

    def _plan(self, entry: Entry) -> Planned | LeftAlone:
        try:
            self._client.edited(entry.place, self._members("x"))
        except MalformedError:
            message = "it is written in a form that cannot be edited without touching more"
            return LeftAlone(place=entry.place, reason="form", message=message)
        return self._planner.plan(entry)

    def _members(self, id_: str) -> dict[str, Any]:
        """Return the edited members of a wrapped entry; None: not there."""
        args = [*self._connector[1:], id_, *self._options]
        return {"command": self._connector[0], "args": args, "cwd": None, "env": None}

    def _check_system(self, user: str | int | None) -> None:
        new = [one for one in self._planned if one.is_new]
        if user is None or len(new) > 1:
            raise UsageError(
                "each server needs a user of its own in system mode",
                code="wrap-user",
                hint="name one server and its user: onrecord wrap --only NAME --user USER FILE",
            )

    def report(self, *, backup: Path | None) -> WrapReport:
        return WrapReport(
            file=self._kept.path,
            wrapped=self._planned,
            already=self._already,
            left_alone=self._left_alone,
            backup=backup,
        )

    def write(self, backups: Backups, *, now: datetime) -> WrapReport:
        """Write everything, the record first and the client's file last; what fails on the way is undone.

        What a killed run has left is in the record, so that the next run or --undo finds it.
        """
        if not self._planned:
            return self.report(backup=None)
        entries, data = self._edit()
        record = backups.read(self._kept.path)
        generations, ended = that_happened(record, self._kept.data)
        with contextlib.ExitStack() as undoing:
            servers = (*(server for one in ended for server in one.servers), *self._made_servers())
            copy = backups.add_copy(self._kept.path, self._kept.data, number=len(generations) + 1)
            generation = Generation(
                time=format_date(now),
                before_sha256=sha256(self._kept.data),
                after_sha256=sha256(data),
                backup=copy,
                entries=entries,
                servers=servers,
            )
            undoing.callback(backups.write, self._kept.path, record)
            backups.write(self._kept.path, Record(file=record.file, generations=(*generations, generation)))
            self._write_servers(undoing)
            self._kept.replace(data)
            undoing.pop_all()
        return self.report(backup=backups.directory / copy)

    def _edit(self) -> tuple[tuple[WrappedEntry, ...], bytes]:
        client = self._client
        made = []
        for planned in self._planned:
            place = planned.entry.place
            before: Any = client.data
            for name in place:
                before = before[name]
            after = {
                "command": self._connector[0],
                "args": [*self._connector[1:], planned.id, *self._options],
            }
            client = client.edited(place, {**after, "cwd": None, "env": None})
            made.append(WrappedEntry(place=place, id=planned.id, before=members(before, EDITED), after=after))
        return tuple(made), written(client, before=self._kept.data)

    def _made_servers(self) -> Iterator[MadeServer]:
        for planned in self._planned:
            if planned.is_new:
                yield MadeServer(
                    id=planned.id,
                    table=planned.table,
                    env_file=None if planned.env_file is None else str(planned.env_file),
                    env_sha256=None if planned.env_file is None else sha256(planned.env_text),
                )

    def _write_servers(self, undoing: contextlib.ExitStack) -> None:
        """Write env files and tables of new servers; `undoing` learns how to take them back."""
        new = [one for one in self._planned if one.is_new]
        if not new:
            return
        owner = Owner(self._planner.owner, user_gid(self._planner.owner))
        for planned in new:
            # one that is there has this content: an earlier run has left it
            if planned.env_file is not None and not os.path.lexists(planned.env_file):
                _make_env_directory(planned.env_file.parent, self._configuration)
                files.replace(planned.env_file, planned.env_text, mode=0o600, owner=owner)
                undoing.callback(planned.env_file.unlink, missing_ok=True)
        changed = self._own.replace(self._planner.text.encode())
        undoing.callback(changed.replace, self._own.data)


def _make_env_directory(directory: Path, configuration: Configuration) -> None:
    try:
        directory.mkdir(mode=0o711 if configuration.mode == "system" else 0o700, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the directory ({error.strerror})",
            code="cannot-make-directory",
            where=Where(file=str(directory)),
        ) from error

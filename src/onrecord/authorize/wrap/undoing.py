"""`onrecord wrap --undo`: a client's file becomes what it was, as far as onrecord had changed it.

Source: running.md 5.3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onrecord.authorize.wrap.backups import (
    Backups,
    Generation,
    MadeServer,
    Record,
    WrappedEntry,
    members,
    recorded_name,
    sha256,
    that_happened,
)
from onrecord.authorize.wrap.client_file import ClientText, read_text, written
from onrecord.authorize.wrap.entries import EDITED
from onrecord.authorize.wrap.kept_file import KeptFile
from onrecord.authorize.wrap.server_tables import without_table
from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError, UsageError, VerificationError, Where
from onrecord.base.files import read_regular


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoReport:
    """What was put back, and what was taken out of the configuration. `kept` are ids whose table or file stays."""

    file: Path
    restored: tuple[tuple[str, ...], ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return all members."""
        return {
            "file": str(self.file),
            "restored": [{"name": place[-1], "place": list(place)} for place in self.restored],
            "removed": list(self.removed),
            "kept": list(self.kept),
        }


def undo(configuration: Configuration, file: Path) -> UndoReport:
    """Put back what `wrap` has changed in a client's file, and take its servers out of the configuration.

    Other changes of the file, made since, stay. A server that another client's file still uses, or whose table or
    env file was changed since, stays in the configuration. What a killed run has left half done is completed.

    Raises `UsageError` with code "not-wrapped", `VerificationError` with code "wrap-changed" if an entry is not as
    it was written (nothing is changed then), or as `wrap` does.
    """
    backups = Backups.of(configuration)
    with backups.lock():
        kept = KeptFile.read(file)
        record = backups.read(kept.path)
        generations, _ = that_happened(record, kept.data)
        if not record.generations:
            backups.write(kept.path, record)  # a run that was killed early has left a copy
            raise UsageError(
                "this file was not wrapped by this configuration",
                code="not-wrapped",
                where=Where(file=str(kept.path)),
                hint="name the file that was wrapped, and the same --config",
            )
        data = kept.data
        for generation in reversed(generations):
            data = _before(generation, data, backups, path=kept.path)
        servers = [server for one in record.generations for server in one.servers]
        others = _used_elsewhere(backups, kept.path)
        kept.remove_unfinished()
        changed = kept if data == kept.data else kept.replace(data)
        try:
            removed, left = _take_out(configuration, servers, others)
        except OnrecordError:
            if changed is not kept:
                changed.replace(kept.data)
            raise
        backups.write(kept.path, Record(file=record.file, generations=()))
    return UndoReport(
        file=kept.path,
        restored=tuple(entry.place for one in generations for entry in one.entries),
        removed=tuple(removed),
        kept=tuple(left),
    )


def _before(generation: Generation, data: bytes, backups: Backups, *, path: Path) -> bytes:
    if sha256(data) == generation.after_sha256:
        copy = backups.copy(generation.backup)
        if sha256(copy) == generation.before_sha256:
            return copy
    client = read_text(data, path=path)
    wrapped = [entry for entry in generation.entries if not _is_restored(client.data, entry)]
    differences = [text for entry in wrapped for text in _differences(client.data, entry)]
    if differences:
        raise VerificationError(
            f"the wrapped entries are not as they were written: {'; '.join(differences[:20])}",
            code="wrap-changed",
            where=Where(file=str(path)),
            hint=f"change them by hand; the file as it was is {backups.directory / generation.backup}",
        )
    for entry in wrapped:
        client = _restored(client, entry)
    return written(client, before=data)


def _value(data: Any, entry: WrappedEntry) -> dict[str, Any] | None:
    value = data
    for part in entry.place:
        value = value.get(part) if isinstance(value, dict) else None
    return members(value, EDITED) if isinstance(value, dict) else None


def _is_restored(data: Any, entry: WrappedEntry) -> bool:
    """Say whether an entry is as it was before already, put back by hand or by an undo that was killed."""
    return _value(data, entry) == entry.before


def _differences(data: Any, entry: WrappedEntry) -> Iterator[str]:
    """Yield what is not as it was written, by name; no value is in it."""
    name = "/".join(entry.place)
    present = _value(data, entry)
    if present is None:
        yield f"{name} is not there any more"
        return
    if present.get("env") == {}:
        present.pop("env")  # a table whose comments were kept
    for member in EDITED:
        if present.get(member) != entry.after.get(member):
            yield f"{member} of {name} differs"


def _restored(client: ClientText, entry: WrappedEntry) -> ClientText:
    return client.edited(entry.place, {name: entry.before.get(name) for name in EDITED})


def _used_elsewhere(backups: Backups, file: Path) -> frozenset[str]:
    return frozenset(
        entry.id
        for record in backups.all()
        if record.file != recorded_name(file)
        for generation in record.generations
        for entry in generation.entries
    )


def _take_out(
    configuration: Configuration, servers: list[MadeServer], others: frozenset[str]
) -> tuple[list[str], list[str]]:
    """Remove tables and env files that are as they were written; returns the ids gone, and those that stay."""
    own = KeptFile.read(Path(os.path.realpath(configuration.file)))
    own.remove_unfinished()
    text = own.data.decode("utf-8")
    removed: list[str] = []
    for server in servers:
        rest = without_table(text, server.table)
        if server.id not in others and rest is not None:
            text = rest
            removed.append(server.id)
    left = Configuration.parse(text, file=configuration.file).servers
    if removed:
        own.replace(text.encode())
    in_use = {one.env_file for one in left.values()}
    env_files = {
        Path(server.env_file): server.env_sha256
        for server in servers
        if server.env_file is not None and server.id not in others
    }
    for path, digest in env_files.items():
        if path in in_use:
            continue
        try:
            if sha256(read_regular(path, limit_bytes=1 << 20)) == digest:
                path.unlink()
        except (OSError, OnrecordError):
            continue  # it is gone, or somebody's by now
    kept = [one for one in dict.fromkeys(server.id for server in servers) if one in left]
    return removed, kept

"""vCons on their way into the folder of an import: whole or not at all, and kept where nothing has changed.

Source: native-logs.md R-22, D-LOG-22.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Literal, Self

from onrecord.base.errors import MalformedError, OnrecordError, StorageError, UsageError, Where
from onrecord.base.files import read_regular, replace_whole
from onrecord.record.logs.assembly import assemble, uuid_of
from onrecord.record.logs.own_files import TEMPORARY, UUID
from onrecord.record.logs.runs import Run
from onrecord.record.logs.sessions import NativeSession
from onrecord.record.vcon.reader import MAX_BYTES

Change = Literal["new", "changed", "same", "refused", "fuller"]
"""What became of a vCon: one that is refused was not written over what lies there."""

Sign = Callable[[bytes], bytes]
"""Makes the signed form of an unsigned vCon."""

_HEAD: Final = re.compile(
    rb'\{"uuid":"([0-9a-f-]{36})","created_at":"([^"\\]{1,64})"(,"updated_at":"[^"\\]{1,64}")?'
)
_HEAD_BYTES: Final = 512
_PIECE: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """A vCon in the folder: its uuid, its place, its size there, and what became of it."""

    uuid: str
    path: Path
    size: int
    change: Change


_OBJECT: Final = b'"onrecord":{"src":['
"""What each Dialog, Event and Attachment of an import holds once."""

LEFT: Final = ("refused", "fuller")
"""Changes that are none: what is there was left as it is."""


@dataclass(frozen=True, slots=True)
class _Existing:
    created_at: str | None
    is_ours: bool
    is_signed: bool = False


class Delivery:
    """A folder that vCons are put into, by one import at a time. Use it in a `with` statement.

    `now` is a Date: the time of this import. `sign` makes signed forms. A vCon that tells more than the one that would
    replace it stays, since a part of a log must not take the place of all of it; with `replaces` it goes.

    Raises `UsageError` with code "target-unusable" or "target-in-use".
    """

    def __init__(self, folder: Path, *, now: str, sign: Sign | None = None, replaces: bool = False) -> None:
        self.folder = folder
        self._now = now
        self._replaces = replaces
        self._sign = sign
        self._made: set[str] = set()
        where = Where(file=str(folder))
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Told at once, and not after all logs were looked at.
            tempfile.TemporaryFile(dir=folder).close()
            self._lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as fault:
            raise UsageError(
                f"the folder for the vCons cannot be used: {fault.strerror}",
                code="target-unusable",
                hint="name another one with --to",
                where=where,
            ) from fault
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as fault:
            os.close(self._lock)
            raise UsageError(
                "another import writes into this folder",
                code="target-in-use",
                hint="wait until it has ended, or name another folder with --to",
                where=where,
            ) from fault

    def __enter__(self) -> Self:
        self._clean()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock)

    def _clean(self) -> None:
        """Remove what an import that was killed has left."""
        with contextlib.suppress(OSError), os.scandir(self.folder) as entries:
            for entry in entries:
                if TEMPORARY.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                    os.unlink(self.folder / entry.name)

    def deliver(self, run: Run, family: Sequence[NativeSession]) -> Delivered:
        """Write the vCon of a family of sessions.

        Raises `StorageError` with code "vcon-unwritable".
        """
        identity = uuid_of(family[0])
        if UUID.fullmatch(identity) is None:
            raise OnrecordError("a session's uuid is none", code="uuid-invalid")
        path = self.folder / f"{identity}.vcon"
        try:
            return self._deliver(run, family, identity, path)
        except OSError as fault:
            raise StorageError(
                f"the vCon cannot be written: {fault.strerror}",
                code="vcon-unwritable",
                where=Where(file=str(path)),
            ) from fault

    def _deliver(self, run: Run, family: Sequence[NativeSession], identity: str, path: Path) -> Delivered:
        existing = self._existing(path, identity)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
        try:
            # Also what is refused is assembled: findings about the text are made on the way.
            assembled = assemble(
                run,
                family,
                temporary,
                created_at=(existing.created_at if existing else None) or self._now,
                updated_at=self._now if (existing and identity not in self._made) or self._sign else None,
            )
            if existing is None:
                self._made.add(identity)
            change: Change = "new" if identity in self._made else "changed"
            if existing is not None and (not existing.is_ours or (existing.is_signed and self._sign is None)):
                change = "refused"
            elif existing is not None and self._is_same(path, temporary, existing):
                change = "same"
            elif change == "changed" and not self._replaces and self._tells_more(path, temporary, existing):
                change = "fuller"
            elif self._sign is not None:
                signed = self._sign(read_regular(temporary, limit_bytes=MAX_BYTES))
                replace_whole(path, signed, mode=0o600, durable=False)
            else:
                os.rename(temporary, path)
            size = os.stat(path).st_size if self._sign or change in ("same", *LEFT) else assembled.size
            return Delivered(uuid=identity, path=path, size=size, change=change)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)

    def _existing(self, path: Path, identity: str) -> _Existing | None:
        """Return what lies under the name of a vCon; None when nothing is lost by writing over it."""
        try:
            with open(
                os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
            ) as file:
                head = file.read(_HEAD_BYTES)
        except FileNotFoundError:
            return None
        except OSError:
            return _Existing(None, is_ours=False)
        if not head:
            return None
        match = _HEAD.match(head)
        if match is not None and match[1].decode("ascii") == identity:
            return _Existing(match[2].decode("utf-8", "replace"), is_ours=True)
        from onrecord.record.forms import SIGNED, open_form

        try:
            form = open_form(read_regular(path, limit_bytes=MAX_BYTES))
        except (MalformedError, OSError):
            return _Existing(None, is_ours=False)
        if form.kind == SIGNED and form.payload is not None and form.payload.value.get("uuid") == identity:
            created_at = form.payload.value.get("created_at")
            if isinstance(created_at, str):
                return _Existing(created_at, is_ours=True, is_signed=True)
        return _Existing(None, is_ours=False)

    def _tells_more(self, path: Path, new: Path, existing: _Existing | None) -> bool:
        """Say whether the vCon that is there has more objects than the new one."""
        if existing is not None and existing.is_signed:
            from onrecord.record.forms import open_form

            payload = open_form(read_regular(path, limit_bytes=MAX_BYTES)).payload
            value = {} if payload is None else payload.value
            there = sum(len(value.get(name) or ()) for name in ("dialog", "events", "attachments"))
        else:
            there = _objects_in(path)
        return there > _objects_in(new)

    def _is_same(self, path: Path, new: Path, existing: _Existing) -> bool:
        """Say whether the vCon that is there differs from the new one in `updated_at` at most."""
        if existing.is_signed != (self._sign is not None):
            return False
        if existing.is_signed:
            from onrecord.record.forms import open_form

            payload = open_form(read_regular(path, limit_bytes=MAX_BYTES)).payload
            text = read_regular(new, limit_bytes=MAX_BYTES)
            return payload is not None and _without_update(payload.raw) == _without_update(text)
        with path.open("rb") as old_file, new.open("rb") as new_file:
            heads = [_HEAD.match(file.read(_HEAD_BYTES)) for file in (old_file, new_file)]
            if heads[0] is None or heads[1] is None or heads[0][2] != heads[1][2]:
                return False
            for file, head in zip((old_file, new_file), heads, strict=True):
                file.seek(head.end() if head is not None else 0)
            while (piece := old_file.read(_PIECE)) == new_file.read(_PIECE):
                if not piece:
                    return True
            return False


def _without_update(text: bytes) -> bytes:
    match = _HEAD.match(text)
    return text if match is None else text[: match.end(2)] + text[match.end() :]


def _objects_in(path: Path) -> int:
    """Count the objects in a vCon of an import: in a text their mark would have its quotes escaped."""
    number, before = 0, b""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            number += (before + piece).count(_OBJECT)
            before = piece[-len(_OBJECT) + 1 :]
    return number

"""Single records of OpenCode, whatever carries them: files, rows, objects of a text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.interface import importers
from onrecord.record.logs.opencode.items import Store
from onrecord.record.logs.opencode.recognition import Shape
from onrecord.record.logs.reading.records import Record, Unreadable, head_of

FORMAT: Final = "opencode-json"
"""Format id of all layouts."""

_MAX_NAME: Final = 64
_FOREIGN: Final = "reported, not interpreted"


class Units:
    """Enters records into a store, each with its fate."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.trace = store.trace

    def enter(
        self,
        record: Record,
        shape: Shape | None,
        *,
        session: Any = None,
        message: Any = None,
        time: Any = None,
    ) -> None:
        """Enter an object of which it is known what it is; `session` and `message` are where it lies."""
        value = record.value
        if shape == "share":
            self.trace.reported(record, "share-secret-dropped", action="left out")
        elif shape in ("session", "message", "part"):
            self.store.enter(shape, record, session=session, message=message, time=time)
        elif is_foreign(value):
            self.trace.reported(record, "foreign-record", action=_FOREIGN)
        else:
            kind = value.get("type")
            name = kind if type(kind) is str and kind else "unknown"
            self.trace.findings.add(
                "unknown-record-type",
                record=record.number,
                name=name[:_MAX_NAME],
                action="kept as a system-event",
            )
            self.other(record, name, session=session or value.get("sessionID"), time=time)

    def other(self, record: Record, event_type: str, *, session: Any = None, time: Any = None) -> None:
        """Enter a record that becomes a system-event, without the share secrets in it."""
        value = self.without_secrets(record)
        self.store.enter_other(value, event_type, session=session, time=time)

    def without_secrets(self, record: Record) -> Record:
        """Return a record without the share secrets in it (D-LOG-13)."""
        value, dropped = without_shares(record.value)
        if not dropped:
            return record
        self.trace.findings.add(
            "share-secret-dropped", record=record.number, count=dropped, action="left out; the host is kept"
        )
        return Record(record.number, value, 0, 0, 0, record.numbers)

    def not_an_object(self, value: Any, *, session: Any = None) -> None:
        """Enter a value that stands where an object is expected."""
        self.rejected(orjson.dumps(value), "not-an-object", None, session=session)

    def rejected(
        self,
        data: bytes,
        code: str,
        message: str | None,
        *,
        session: Any = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        """Enter and report a piece that is no record; `about` says where it was."""
        digest = hashlib.sha256(data).hexdigest()
        number = self.unreadable(Unreadable(0, 0, 0, len(data), code, digest, head_of(data)), session=session)
        self.trace.findings.add(
            code, record=number, message=message, action="kept as unreadable-record", data=about
        )

    def unreadable(self, found: Unreadable, *, session: Any = None) -> int:
        """Enter a piece that is no record, whose finding is the caller's, in its place; return its number."""
        number = self.trace.unreadable(
            code=found.code,
            sha256=found.sha256,
            head=found.head,
            size=found.size,
            offset=found.offset,
            place=False,
        )
        data = {
            "record": number,
            "offset": found.offset,
            "bytes": found.size,
            "sha256": found.sha256,
            "head": found.head,
        }
        record = Record(number, data, found.line, found.offset, found.size)
        self.store.enter_other(record, event_types.UNREADABLE_RECORD, session=session)
        return number


def host_of(url: Any) -> str | None:
    """Return the host of a URL, None where there is none."""
    if type(url) is not str:
        return None
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def without_shares(value: Any) -> tuple[Any, int]:
    """Return a value without share secrets, and how many there were. Values are not nested deeply (R-08)."""
    if type(value) is list:
        made, dropped = [], 0
        for element in value:
            kept, number = without_shares(element)
            made.append(kept)
            dropped += number
        return (made, dropped) if dropped else (value, 0)
    if type(value) is not dict:
        return value, 0
    if type(value.get("secret")) is str and type(value.get("url")) is str:
        host = host_of(value["url"])
        return ({} if host is None else {"host": host}), 1
    changed: dict[str, Any] = {}
    dropped = 0
    for name, member in value.items():
        if type(member) is dict or type(member) is list:
            kept, number = without_shares(member)
            if number:
                changed[name] = kept
                dropped += number
    return ({**value, **changed}, dropped) if dropped else (value, 0)


def is_foreign(value: Mapping[str, Any]) -> bool:
    """Say whether an object is a record of another format."""
    return any(importer.recognises(value) for importer in importers() if importer.format != FORMAT)

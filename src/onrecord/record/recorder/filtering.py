"""What stands between an entry and the journal: credentials become visible marks, oversized content becomes its hash.

Source: running.md 3 (recorder.max_content_bytes), 9; record.md D-74.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from onrecord.base.canonical import compact
from onrecord.base.hashes import ContentHash
from onrecord.record.credentials import MIN_KEY_CHARACTERS
from onrecord.record.recorder.entries import (
    MAX_NAME,
    MAX_TOOL,
    Connection,
    Decision,
    Entry,
    Invocation,
    Response,
)

Replace = Callable[[Any], tuple[Any, int]]
"""Takes a JSON value and returns it without credentials, and how many were replaced."""


class Filtered(NamedTuple):
    """An entry that may be written, and the number of credentials that were replaced in it."""

    entry: Entry
    replaced: int


_NAMES: Final[Mapping[type[Entry], Mapping[str, int]]] = {
    Decision: {"tool": MAX_TOOL},
    Invocation: {"tool": MAX_TOOL},
    Connection: dict.fromkeys(("server_name", "server_version", "client_name", "client_version"), MAX_NAME),
}
"""Texts that a model, a client or a tool server chooses, with the length that they may have."""


class ContentFilter:
    """Applies to what comes from a tool, a client or a model: arguments, content, and the names they give."""

    def __init__(self, replace_credentials: Replace, *, max_content_bytes: int) -> None:
        self._replace = replace_credentials
        self._max_bytes = max_content_bytes

    def apply(self, entry: Entry) -> Filtered:
        """Return the entry as it may be recorded."""
        entry, names = self._names(entry)
        filtered, count = self._content(entry)
        return Filtered(filtered, names + count)

    def _names(self, entry: Entry) -> Filtered:
        changed: dict[str, Any] = {}
        total = 0
        for name, limit in _NAMES.get(type(entry), {}).items():
            text = getattr(entry, name)
            if text is not None and len(text) >= MIN_KEY_CHARACTERS:
                clean, count = self._replace(text)
                if count:
                    changed[name] = clean[:limit]
                    total += count
        return Filtered(replace(entry, **changed) if changed else entry, total)

    def _content(self, entry: Entry) -> Filtered:
        if isinstance(entry, Invocation) and entry.arguments is not None:
            value, count = self.value(entry.arguments)
            return Filtered(entry if value is entry.arguments else replace(entry, arguments=value), count)
        if isinstance(entry, Response) and entry.content is not None:
            value, count = self.value(entry.content)
            return Filtered(entry if value is entry.content else replace(entry, content=value), count)
        return Filtered(entry, 0)

    def value(self, value: Any) -> tuple[Any, int]:
        """Return a JSON value as it may be recorded, and how many credentials were replaced in it."""
        raw = compact(value)
        if len(raw) > self._max_bytes:
            return {"omitted_bytes": len(raw), "content_hash": str(ContentHash.of(raw))}, 0
        return self._replace(value)

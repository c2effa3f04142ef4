"""Prompts that were typed while the agent was busy, and that several records tell.

Source: native-logs.md 4.1 (`queued_command`, `queue-operation`).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Any, Final

import orjson

from onrecord.record.logs.sessions import Entry

MAX_WAITING: Final = 1000
"""Prompts that wait for the next answer at the same time; further ones are written at once."""


def text_of(content: Any) -> str | None:
    """Return what a prompt is told by, given as text or as blocks: its text, and digests of its pictures.

    None stands for a prompt without either.
    """
    if type(content) is str:
        return content.strip() or None
    if type(content) is not list:
        return None
    texts: list[str] = []
    others = ""
    for block in content:
        text = block.get("text") if type(block) is dict and block.get("type") == "text" else block
        if type(text) is str:
            texts.append(text)
        else:
            others += f"\0{hashlib.sha256(orjson.dumps(block)).hexdigest()}"
    return "\n".join(texts).strip() + others or None


class Queue:
    """The queued prompts of one session since the agent's last answer."""

    def __init__(self) -> None:
        self._queued: dict[str, OrderedDict[str, None]] = {}
        self._removed: dict[str, list[tuple[Entry, str | list[Any]]]] = {}
        self._sources: dict[str, tuple[str, str | None]] = {}

    def queued(self, text: str | None, uuid: str, source: Any) -> None:
        """Note a prompt that is written as a Dialog of the entry `uuid`; `source` names its user record, if known."""
        if text is not None:
            self._queued.setdefault(text, OrderedDict())[uuid] = None
            self._removed.pop(text, None)
        if type(source) is str and source:
            self._sources[source] = uuid, text

    def repeated(self, uuid: Any, text: str | None) -> str | None:
        """Return the entry that a user record repeats, if any; each entry is repeated once."""
        if not self._sources and not self._queued:
            return None
        if type(uuid) is str and uuid in self._sources:
            entry, text = self._sources.pop(uuid)
            if text in self._queued:
                self._queued[text].pop(entry, None)
            return entry
        same = self._queued.get(text) if text is not None else None
        return same.popitem(last=False)[0] if same else None

    def removed(self, entry: Entry, content: str | list[Any]) -> list[tuple[Entry, str | list[Any]]]:
        """Note a prompt that left the queue. Returns what must be written at once."""
        text = text_of(content)
        if text is None or text in self._queued:
            return []
        same = self._removed.setdefault(text, [])
        same.append((entry, content))
        return self.answered() if len(self._removed) > MAX_WAITING or len(same) > MAX_WAITING else []

    def answered(self) -> list[tuple[Entry, str | list[Any]]]:
        """Note that the agent speaks. Returns the prompts that nothing else told, in their order."""
        if self._queued:
            self._queued.clear()
        if not self._removed:
            return []
        left = [item for same in self._removed.values() for item in same]
        self._removed.clear()
        return left

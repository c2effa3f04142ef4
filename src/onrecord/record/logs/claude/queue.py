"""Prompts that were typed while the agent was busy, and that several records tell.

Source: native-logs.md 4.1 (`queued_command`, `queue-operation`).
"""

from __future__ import annotations

from typing import Any, Final

from onrecord.record.logs.sessions import Entry

MAX_WAITING: Final = 1000
"""Prompts that wait for the next answer at the same time; further ones are written at once."""


def text_of(content: Any) -> str | None:
    """Return the text of a prompt, given as text or as blocks; None if it has none."""
    if type(content) is str:
        text = content
    elif type(content) is list:
        texts = [
            block.get("text") if type(block) is dict and block.get("type") == "text" else block
            for block in content
        ]
        text = "\n".join(part for part in texts if type(part) is str)
    else:
        return None
    return text.strip() or None


class Queue:
    """The queued prompts of one session since the agent's last answer."""

    def __init__(self) -> None:
        self._queued: dict[str, str] = {}
        self._removed: dict[str, list[tuple[Entry, str | list[Any]]]] = {}
        self._sources: dict[str, str] = {}

    def queued(self, text: str | None, uuid: str, source: Any) -> None:
        """Note a prompt that is written as a Dialog of the entry `uuid`; `source` names its user record, if known."""
        if text is not None:
            self._queued[text] = uuid
            self._removed.pop(text, None)
        if type(source) is str and source:
            self._sources[source] = uuid

    def repeated(self, uuid: Any, text: str | None) -> str | None:
        """Return the entry that a user record repeats, if any."""
        if not self._sources and not self._queued:
            return None
        if type(uuid) is str and uuid in self._sources:
            return self._sources.pop(uuid)
        return self._queued.pop(text, None) if text is not None else None

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

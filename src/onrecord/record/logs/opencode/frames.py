"""The message around the parts: who speaks, when, with which model, and what stands in it beside the parts."""

from __future__ import annotations

from typing import Any, Final

from onrecord.record.logs.opencode.items import Item
from onrecord.record.logs.reading.records import Record
from onrecord.record.logs.sessions import NO_TIME
from onrecord.record.logs.usage import Usage, opencode

_MAPPED: Final = frozenset({"sessionID", "role", "parentID", "error", "system", "tools"})
"""Members that have a home of their own, if they are of the usual kind."""


class Frame:
    """One message while its parts are written; or none, for parts whose message is missing."""

    __slots__ = (
        "created",
        "first_text",
        "has_entry",
        "has_written",
        "is_conversation",
        "is_removed",
        "is_summary",
        "model",
        "parent",
        "path",
        "provider",
        "record",
        "rest",
        "role",
        "usage",
    )

    def __init__(self, record: Record | None, *, created: Any, parent: str | None) -> None:
        self.record = record
        self.created = created
        """Time of the message, `NO_TIME` if there is none that can be read."""
        self.parent = parent
        """Entry id that the next entry hangs below."""
        value: dict[str, Any] = record.value if record is not None else {}
        self.role = value.get("role")
        model = value.get("model")
        named: dict[str, Any] = model if type(model) is dict else {}
        self.model = value.get("modelID") or named.get("modelID")
        self.provider = value.get("providerID") or named.get("providerID")
        self.is_summary = value.get("summary") is True and self.role == "assistant"
        path = value.get("path")
        self.path: dict[str, Any] = path if type(path) is dict else {}
        self.usage: Usage | None = None
        if self.role == "assistant" and value.get("tokens") is not None:
            self.usage = opencode(value["tokens"], cost=value.get("cost"))
        self.rest: dict[str, Any] | None = self._without_home(value) if record is not None else None
        """What is put beside the first object that is written, None when it is."""
        self.first_text: int | None = None
        self.has_written = False
        self.has_entry = False
        self.is_conversation = False
        self.is_removed = False

    def take_rest(self) -> dict[str, Any]:
        """Return, once, what belongs beside the first object."""
        rest, self.rest = self.rest, None
        return {} if rest is None else {"message": rest}

    def _without_home(self, value: dict[str, Any]) -> dict[str, Any]:
        kept = {
            name: member
            for name, member in value.items()
            if name not in _MAPPED or not _is_usual(name, member)
        }
        if self.usage is not None and not self.usage.is_empty:
            del kept["tokens"]
            if self.usage.cost is not None:
                kept.pop("cost", None)
        time = kept.get("time")
        if type(time) is dict and set(time) == {"created"} and self.created is not NO_TIME:
            del kept["time"]
        return kept


def parent_of(value: dict[str, Any], first_entries: dict[str, str]) -> str | None:
    """Return the entry id of a message's parent: the first entry of that message."""
    parent = value.get("parentID")
    if type(parent) is not str or not parent:
        return None
    return first_entries.get(parent, parent)


def first_entry(item: Item, parts: list[Item]) -> str:
    """Return the id that the first entry of a message gets."""
    for part in parts:
        if part.has_entry:
            return part.entry_id
    return item.entry_id


def _is_usual(name: str, member: Any) -> bool:
    """Say whether a member that has a home is of the kind that goes there."""
    if name == "error" or member is None:
        return True
    if name == "role":
        return member in ("user", "assistant")
    if name == "tools":
        return type(member) is dict
    if name == "system" and type(member) is list:
        return all(type(text) is str for text in member)
    return type(member) is str

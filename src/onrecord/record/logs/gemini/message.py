"""One message of a replayed log, and how two versions of it are compared."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from onrecord.record.logs.gemini.calls import Call
from onrecord.record.logs.gemini.parts import NOTHING, Likeness
from onrecord.record.logs.gemini.shelf import Place, overwrites


class Message:
    """One message: where its versions lie, without the calls that are kept apart."""

    __slots__ = (
        "calls",
        "digest",
        "id",
        "is_copy",
        "is_current",
        "is_restored",
        "is_superseded",
        "kind",
        "likeness",
        "names",
        "numbers",
        "record",
        "versions",
    )

    def __init__(self, id: str | None, kind: Any) -> None:
        self.id = id
        self.kind = kind
        self.record = 0
        self.numbers: Sequence[str] = ()
        self.versions: list[Place] = []
        self.names: AbstractSet[str] = frozenset()
        self.likeness = NOTHING
        self.digest = 0
        self.calls: dict[str, Call] = {}
        self.is_current = True
        self.is_copy = False
        self.is_superseded = False
        self.is_restored = False

    @property
    def key(self) -> int:
        """What other versions of the message have too."""
        return self.likeness.key


def next_of(queue: deque[Message] | None, taken: set[int]) -> Message | None:
    """Return the first of the messages that is not taken yet."""
    while queue:
        message = queue[0]
        if id(message) not in taken and not message.is_copy:
            return message
        queue.popleft()
    return None


def joined_of(
    pieces: Sequence[int], waiting: dict[int, deque[Message]], taken: set[int], but: Message | None
) -> list[Message]:
    """Return the messages that a checkpoint joined into one, none if one of them is not known."""
    found: list[Message] = []
    seen: set[int] = set()
    for key in pieces:
        message = next_of(waiting.get(key), taken)
        if message is None or message is but or id(message) in seen:
            return []
        seen.add(id(message))
        found.append(message)
    return found


def id_of(value: dict[str, Any]) -> str | None:
    """Return the native id, None where there is none."""
    native = value.get("id")
    return native if isinstance(native, str) and native else None


def names_of(value: dict[str, Any]) -> frozenset[str]:
    """Return the members of a version that overwrite those of the one before."""
    return frozenset(name for name, member in value.items() if overwrites(name, member))


def continued(older: Likeness, newer: Likeness, *, has_content: bool) -> Likeness:
    """Return what a message says after a newer version that may leave things out."""
    said = newer.said if has_content else older.said
    calls = newer.calls or older.calls
    results = newer.results or older.results
    pieces = newer.pieces if has_content else older.pieces
    return Likeness(newer.kind or older.kind, said, calls, results, (), pieces)

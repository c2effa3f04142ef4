"""Values that are needed again at the end of a log, kept out of memory when there are many (native-logs.md R-20)."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

import orjson

IN_MEMORY: Final = 8 << 20
"""Bytes that are kept in memory before a file is begun."""

_FIRST_HOLDS: Final = frozenset(["content", "thoughts", "toolCalls"])


def overwrites(name: str, member: Any) -> bool:
    """Say whether a member of a newer version takes the place of the older one's."""
    return member is not None and not (name in _FIRST_HOLDS and member in ("", []))


class Place(NamedTuple):
    """Where a value lies on the shelf."""

    offset: int
    size: int


class Shelf:
    """Puts values away and gives them back. Use it in a `with` statement."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by __exit__
        self._end = 0

    def put(self, value: Any) -> Place:
        """Put a JSON value away."""
        return self.put_text(orjson.dumps(value))

    def put_text(self, text: bytes) -> Place:
        """Put the text of a JSON value away."""
        self._file.seek(self._end)
        self._file.write(text)
        place = Place(self._end, len(text))
        self._end += len(text)
        return place

    def get(self, place: Place) -> Any:
        """Return a value."""
        self._file.seek(place.offset)
        return orjson.loads(self._file.read(place.size))

    def get_merged(self, places: Iterable[Place]) -> dict[str, Any]:
        """Return what several versions of an object say together: null and emptiness never overwrite."""
        merged: dict[str, Any] = {}
        for place in places:
            version = self.get(place)
            for name, member in version.items():
                if name not in merged or overwrites(name, member):
                    merged[name] = member
        return merged

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

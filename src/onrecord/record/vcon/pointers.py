"""JSON pointers (RFC 6901): writing them, and sorting them by document order."""

from __future__ import annotations

from typing import Any

_ABSENT = 1 << 60


def step(token: str | int) -> str:
    """Return one reference token with its slash, escaped."""
    if type(token) is int:
        return f"/{token}"
    return "/" + str(token).replace("~", "~0").replace("/", "~1")


def tokens(pointer: str) -> list[str]:
    """Return the unescaped reference tokens of a pointer."""
    if not pointer:
        return []
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


class DocumentOrder:
    """Sort keys for pointers into one parsed document. A member that is absent comes after those that are there."""

    def __init__(self, document: Any) -> None:
        self._document = document
        self._positions: dict[int, dict[str, int]] = {}

    def key(self, pointer: str) -> tuple[int, ...]:
        """Return the positions that lead to the pointer's place, outermost first."""
        place: list[int] = []
        value = self._document
        for token in tokens(pointer):
            if isinstance(value, dict):
                place.append(self._position(value, token))
                value = value.get(token)
            elif isinstance(value, list) and token.isascii() and token.isdigit() and len(token) < 18:
                index = int(token)
                place.append(index)
                value = value[index] if index < len(value) else None
            else:
                place.append(_ABSENT)
                value = None
        return tuple(place)

    def _position(self, members: dict[str, Any], name: str) -> int:
        positions = self._positions.get(id(members))
        if positions is None:
            positions = {key: position for position, key in enumerate(members)}
            self._positions[id(members)] = positions
        return positions.get(name, _ABSENT)

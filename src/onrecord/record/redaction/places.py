"""Places in a vCon that is being redacted: where a value stands, what it is, and which paths lead there."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from onrecord.record.redaction.paths import ANY, DEEP, Path, Step
from onrecord.record.redaction.rule import Condition
from onrecord.record.redaction.shapes import FREE, TOP, Shape
from onrecord.record.vcon.pointers import step


@dataclass(frozen=True, slots=True)
class Place:
    """A value by the object or array that owns it and its key there.

    `pointer` ends where the tables end, so that it holds no names out of content and its length has a bound.
    `element` is the element of an indexed array that the place belongs to.
    """

    owner: Any
    key: Any
    shape: Shape
    pointer: str
    element: dict[str, Any] | None = None

    @property
    def value(self) -> Any:
        """Return what stands there now."""
        return self.owner[self.key]

    @property
    def identity(self) -> tuple[int, Any]:
        """Return what tells this place from every other in the same tree."""
        return id(self.owner), self.key

    def is_there(self) -> bool:
        """Say whether the place still exists."""
        return type(self.owner) is list or self.key in self.owner

    def meets(self, where: Condition, unless: Condition) -> bool:
        """Say whether the conditions of a rule hold for the element."""
        if not where and not unless:
            return True
        members = self.element or {}
        return _fits(members, where) and not (unless and _fits(members, unless))

    def children(self) -> Iterator[Place]:
        """Yield the members or elements. A member that nobody knows counts as free content."""
        value, shape = self.value, self.shape
        if type(value) is dict:
            for name in list(value):
                yield self._member(value, name, shape)
        elif type(value) is list:
            for index in range(len(value)):
                yield self._element(value, index, shape)

    def searched_children(self) -> Iterator[Place]:
        """Yield the members or elements that are no structure, or may hide something in the shape of one."""
        value, shape = self.value, self.shape
        if type(value) is dict:
            for name in list(value):
                member = shape.member(name)
                if member is None or not member.is_structure or member.may_hide(value[name]):
                    yield self._member(value, name, shape)
        else:
            yield from self.children()

    def child(self, name: str) -> Place | None:
        """Return the member or element of a name or index, None if there is none."""
        value = self.value
        if type(value) is dict:
            return self._member(value, name, self.shape) if name in value else None
        if (
            type(value) is list
            and name.isascii()
            and name.isdigit()
            and len(name) < 18
            and int(name) < len(value)
        ):
            return self._element(value, int(name), self.shape)
        return None

    def _member(self, value: dict[str, Any], name: str, shape: Shape) -> Place:
        pointer = self.pointer + step(name) if shape.table is not None else self.pointer
        return Place(value, name, shape.member(name) or FREE, pointer, self.element)

    def _element(self, value: list[Any], index: int, shape: Shape) -> Place:
        pointer = f"{self.pointer}/{index}" if shape.table is not None else self.pointer
        element = self.element
        if shape.is_indexed:
            element = value[index] if type(value[index]) is dict else {}
        return Place(value, index, shape.element(), pointer, element)


def _fits(members: Mapping[str, Any], condition: Condition) -> bool:
    return all(
        type(value := members.get(name)) is str and value in allowed for name, allowed in condition.items()
    )


def root(members: Mapping[str, Any]) -> Place:
    """Return the place of a whole vCon."""
    return Place([members], 0, TOP, "")


def select(start: Place, path: Path) -> list[Place]:
    """Return the places that a path leads to, in document order, each once."""
    places = [start]
    for step_ in path:
        places = _advance(places, step_)
    return places


def _advance(places: list[Place], wanted: Step) -> list[Place]:
    if wanted is DEEP:
        return _descendants(places)
    if wanted is ANY:
        return [child for place in places for child in place.children()]
    return [child for place in places if (child := place.child(str(wanted))) is not None]


def _descendants(places: list[Place]) -> list[Place]:
    found: dict[tuple[int, Any], Place] = {}
    for start in places:
        work = [start]
        while work:
            place = work.pop()
            if place.identity not in found:
                found[place.identity] = place
                work.extend(reversed(list(place.children())))
    return list(found.values())


def holders(start: Place, kept: Collection[tuple[int, Any]]) -> set[tuple[int, Any]]:
    """Return the identities of the places that have one of `kept` below them."""
    found: set[tuple[int, Any]] = set()
    above: list[Place] = []
    work = [(start, 0)]
    while work:
        place, depth = work.pop()
        del above[depth:]
        if place.identity in kept:
            found.update(one.identity for one in above)
        else:
            above.append(place)
            work.extend((child, depth + 1) for child in place.children())
    return found

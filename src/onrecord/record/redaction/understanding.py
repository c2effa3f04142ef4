"""Copies of a vCon what is understood of it. What is not may hold anything, so it does not come along.

Source: record.md D-19, D-21; AA 8.4.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from onrecord.base.errors import MalformedError, Where
from onrecord.record.instances import REPLACED, copy_json
from onrecord.record.redaction.report import RedactionReport
from onrecord.record.redaction.shapes import TOP, Shape
from onrecord.record.vcon.bodies import has_body
from onrecord.record.vcon.event_types import kind_of
from onrecord.record.vcon.pointers import step

_ABSENT: Final = object()
_NULL_STAYS: Final = frozenset(["input", "output"])


class Understanding:
    """Copies one vCon. `kept` are the identities of places that a rule keeps although nobody knows them."""

    def __init__(
        self, extensions: Collection[str], kept: Collection[tuple[int, Any]], report: RedactionReport
    ) -> None:
        self._extensions = extensions
        self._kept = kept
        self._report = report
        self.keeps_unknown = False

    def copy(self, members: Mapping[str, Any]) -> dict[str, Any]:
        """Return the copy, without the members that a new instance gets anew.

        Raises `MalformedError` with code "json-depth" for values that are nested too deep to be walked.
        """
        rest = {name: value for name, value in members.items() if name not in REPLACED}
        try:
            return self._object(rest, TOP, "", id(members))
        except RecursionError:
            raise MalformedError(
                "the vCon is nested too deep", code="json-depth", where=Where(pointer="")
            ) from None

    def _object(self, value: Mapping[str, Any], shape: Shape, pointer: str, identity: int) -> dict[str, Any]:
        copied: dict[str, Any] = {}
        for name, item in value.items():
            member = shape.member(name)
            if member is None:
                if (identity, name) in self._kept:
                    copied[name] = copy_json(item)
                    self.keeps_unknown = True
                else:
                    self._report.dropped("unknown-member", pointer, name)
            elif item is None:
                if name in _NULL_STAYS or (name == "body" and has_body(value)):
                    copied[name] = None
            else:
                part = self._value(item, member, pointer + step(name))
                if part is not _ABSENT:
                    copied[name] = part
        return copied

    def _value(self, value: Any, shape: Shape, pointer: str) -> Any:
        if shape.is_free:
            return copy_json(value)
        if shape.is_list:
            return self._list(value, shape, pointer)
        if shape.table is not None:
            if type(value) is dict:
                return self._object(value, shape, pointer, id(value))
        elif shape.is_structure:
            if shape.admits(value):
                return copy_json(value)
            plain = _without_parameters(value) if shape.kind == "mediatype" else None
            if plain is not None and shape.admits(plain):
                self._report.dropped("mediatype-invalid", pointer)
                return plain
        elif shape.kind in ("strings", "civic-address") or shape.kind.startswith("session-id"):
            if _holds_texts(value, shape.kind):
                return self._texts(value, shape, pointer)
        elif type(value) is str:
            return value
        self._report.dropped("type-mismatch", pointer)
        return _ABSENT

    def _texts(self, value: Any, shape: Shape, pointer: str) -> Any:
        """Return texts, lists and objects of texts; members whose names are not those of the kind do not come along."""
        if type(value) is list:
            return [self._texts(item, shape, pointer) for item in value]
        if type(value) is not dict:
            return value
        copied: dict[str, Any] = {}
        for name, item in value.items():
            if shape.admits_name(name):
                copied[name] = item
            else:
                self._report.dropped("unknown-member", pointer)
        return copied

    def _list(self, value: Any, shape: Shape, pointer: str) -> Any:
        if type(value) is not list:
            self._report.dropped("type-mismatch", pointer)
            return _ABSENT
        copied: list[Any] = []
        element = shape.element()
        for index, item in enumerate(value):
            place = f"{pointer}/{index}"
            if type(item) is not dict:
                self._report.dropped("type-mismatch", place)
                if shape.is_indexed:
                    copied.append({})
            elif shape.name == "events" and item and kind_of(item, self._extensions) is None:
                self._report.dropped("event-type-unknown", place)
                copied.append({})
            else:
                copied.append(self._object(item, element, place, id(item)))
        return copied


def _without_parameters(value: Any) -> str | None:
    return value.split(";", 1)[0].strip() if type(value) is str else None


def _holds_texts(value: Any, kind: str) -> bool:
    """Say whether a value is made of texts as its kind asks: a list, an object, or for session ids both or one text."""
    if kind == "strings":
        return type(value) is list and all(type(item) is str for item in value)
    if kind == "civic-address":
        return type(value) is dict and all(type(item) is str for item in value.values())
    work = [value]
    while work:
        item = work.pop()
        if type(item) is dict:
            work += item.values()
        elif type(item) is list:
            work += item
        elif type(item) is not str and item is not None:
            return False
    return True

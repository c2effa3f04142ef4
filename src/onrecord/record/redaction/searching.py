"""Applies a text rule to everything below some places: fields, free content, bodies of every encoding.

Source: record.md 7.2.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

from onrecord.record.redaction.actions import JOIN_LABEL, forget_hash
from onrecord.record.redaction.places import Place
from onrecord.record.redaction.pseudonyms import Pseudonyms
from onrecord.record.redaction.report import RedactionReport
from onrecord.record.redaction.rule import NO_CONDITION, Condition
from onrecord.record.redaction.shapes import is_encoded
from onrecord.record.redaction.texts import (
    TextRewriter,
    body_of_text,
    is_binary,
    text_of_body,
    without_userinfo,
)

_URLS: Final = frozenset(["url", "uri"])
_WITH_SYNTAX: Final = frozenset(["url", "did"])
"""Kinds that a mark would break: the member goes. The content_hash of a url stays (record.md D-20)."""

NO_MEDIATYPE: Final = "application/octet-stream"
"""Media type of content whose own named something else."""

_URL_NAMES: Final = frozenset(["server", "repository"])


class TextSearch:
    """One rule over one tree. Places in `handled` are left alone; `where` and `unless` are those of the rule."""

    def __init__(
        self,
        rewriter: TextRewriter,
        rule: str,
        report: RedactionReport,
        handled: Collection[tuple[int, Any]],
        pseudonyms: Pseudonyms,
        *,
        where: Condition = NO_CONDITION,
        unless: Condition = NO_CONDITION,
    ) -> None:
        self._where = where
        self._unless = unless
        self._rewriter = rewriter
        self._rule = rule
        self._report = report
        self._handled = handled
        self._pseudonyms = pseudonyms

    def run(self, places: Iterable[Place]) -> None:
        """Search the places and what is below them, each place once."""
        seen: set[tuple[int, Any]] = set()
        for start in places:
            work = [start]
            while work:
                place = work.pop()
                if place.identity in seen or place.identity in self._handled or not place.is_there():
                    continue
                seen.add(place.identity)
                if not place.shape.is_structure:
                    self._visit(place, work)
                elif place.shape.may_hide(place.value) and place.meets(self._where, self._unless):
                    self._structure(place)

    def _visit(self, place: Place, work: list[Place]) -> None:
        if type(place.value) in (dict, list) and not place.shape.is_free:
            work.extend(reversed(list(place.searched_children())))
        elif place.meets(self._where, self._unless):
            if place.shape.is_free:
                self._free(place)
            elif type(place.value) is str:
                self._field(place)

    def _structure(self, place: Place) -> None:
        """Take out a word, media type or hash that is something else. What it belongs to is not understood then."""
        words = place.value if type(place.value) is list else [place.value]
        if not any(type(word) is str and self._rewriter.text(word)[1] for word in words):
            return
        if place.shape.kind == "mediatype":
            place.owner[place.key] = NO_MEDIATYPE
        elif place.key == "type" and place.element is not None and place.owner is place.element:
            place.element.clear()
        else:
            del place.owner[place.key]
        self._report.changed(self._rule, "mask", place.pointer)

    def _free(self, place: Place) -> None:
        owner, value = place.owner, place.value
        if place.key == "body" and place.shape.name and is_encoded(owner):
            self._encoded(place)
            return
        if any(inner in self._handled for inner in _identities(value)):
            for child in place.children():
                if child.identity not in self._handled:
                    self._free(child)
            return
        if type(place.key) is str and not place.shape.name:  # inside of content the member's name counts too
            new, count = self._rewriter.value({place.key: value})
            if count:
                del owner[place.key]
                owner.update(new)
        else:
            new, count = self._rewriter.value(value)
            if count:
                owner[place.key] = new
        if count:
            forget_hash(place)
            self._report.changed(self._rule, "mask", place.pointer, count)
        if _has_binary(value):
            self._report.unsearched(place.pointer)

    def _encoded(self, place: Place) -> None:
        text = text_of_body(place.owner)
        if text is None:
            self._report.unsearched(place.pointer)
            return
        new, count = self._rewriter.value(text)
        if count:
            place.owner["body"] = body_of_text(new, place.owner)
            forget_hash(place)
            if place.owner.get("encoding") is not None:
                place.owner["encoding"] = "base64url"
            self._report.changed(self._rule, "mask", place.pointer, count)

    def _field(self, place: Place) -> None:
        text, shape = place.value, place.shape
        new, count = text, 0
        if shape.kind in _URLS or shape.name in _URL_NAMES:
            new, count = without_userinfo(text)
        new, found = self._rewriter.text(new)
        count += found
        if not count:
            return
        if found and shape.joins:
            new = self._pseudonyms.numbered(JOIN_LABEL, text)
        elif found and shape.kind == "uri":
            new = new.replace(" ", "-")
        if found and shape.kind in _WITH_SYNTAX:
            del place.owner[place.key]
        else:
            place.owner[place.key] = new
        self._report.changed(self._rule, "mask", place.pointer, count)


def _identities(value: Any) -> Iterable[tuple[int, Any]]:
    """Yield the identities of everything inside of a value."""
    work = [value]
    while work:
        item = work.pop()
        if type(item) is dict:
            for name, member in item.items():
                yield id(item), name
                work.append(member)
        elif type(item) is list:
            for index, member in enumerate(item):
                yield id(item), index
                work.append(member)


def _has_binary(value: Any) -> bool:
    work = [value]
    while work:
        item = work.pop()
        if type(item) is dict:
            work += item.values()
        elif type(item) is list:
            work += item
        elif type(item) is str and is_binary(item):
            return True
    return False

"""What a rule does to a place: remove, null, mask, hash, pseudonym, random, commit, placeholder.

Structure (times, indices, types) only goes with its whole element. What an object cannot do without is replaced where
it may not be left out, so that the result is a vCon without errors.

Source: record.md D-09, D-20, PR-08, PR-10.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from onrecord.base.hashes import ContentHash
from onrecord.record.redaction.places import Place
from onrecord.record.redaction.pseudonyms import Pseudonyms
from onrecord.record.redaction.rule import Rule
from onrecord.record.redaction.shapes import Shape, is_encoded
from onrecord.record.redaction.texts import MARK, bytes_of
from onrecord.record.vcon.bodies import decode_base64url

MIN_COMMITTED_BYTES: Final = 32
"""Shortest content whose hash is kept: what is shorter can be guessed (record.md PR-10)."""

JOIN_LABEL: Final = "id"
"""Label of pseudonyms of identifiers: one for all, since a parent_id names an entry_id."""

SAYS_NOTHING: Final = frozenset(["", "anonymous", "!host"])
"""Values that name nobody, and that consumers know: no pseudonym makes them better."""

BODY_DEPTH: Final = 3
"""Steps of a pointer to a body, like /dialog/0/body."""

_WHOLE_BODIES: Final = frozenset(["remove", "null", "commit"])
"""Actions after which no part of a body is left, so that its hash may stay (record.md D-20)."""

_NULL_STANDS: Final = frozenset(["input", "output"])
_LEFT_OUT: Final = frozenset(["content"])
_NO_TEXT: Final = frozenset(["url", "did", "content-hash"])
"""Kinds of text that no mark can stand in for: they have a syntax."""


class Actions:
    """Applies rules to places of one tree. Each method returns how many values it changed."""

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self._pseudonyms = pseudonyms
        self._by_name: dict[str, Callable[[Place, Rule], int]] = {
            "remove": self._remove,
            "null": self._null,
            "mask": self._mask,
            "hash": self._hash,
            "pseudonym": self._pseudonym,
            "random": self._random,
            "commit": self._commit,
            "placeholder": self._placeholder,
        }

    def apply(self, place: Place, rule: Rule) -> int:
        """Do what the rule says. The hash of a body that was changed goes: what is missing could be guessed with it."""
        is_body = place.key == "body" and place.shape.name == "body" and place.owner is place.element
        size = len(_content(place.owner)) if is_body else 0
        count = self._by_name[rule.action](place, rule)
        if count and not (is_body and rule.action in _WHOLE_BODIES and size >= MIN_COMMITTED_BYTES):
            forget_hash(place)
        return count

    def _placeholder(self, place: Place, rule: Rule) -> int:
        if place.element is None or place.value is not place.element or not place.element:
            return 0
        place.owner[place.key] = {}
        return 1

    def _remove(self, place: Place, rule: Rule) -> int:
        owner, key, shape = place.owner, place.key, place.shape
        if place.pointer == "" or shape.is_indexed:
            return sum(self._remove(child, rule) for child in place.children() if child.is_there())
        if shape.is_structure:
            return 0
        if place.element is not None and place.value is place.element:
            return self._placeholder(place, rule)
        if type(owner) is list and shape.table is not None:
            return sum(self._remove(child, rule) for child in place.children() if child.is_there())
        if type(owner) is list:
            owner[key] = MARK if shape.kind in ("string", "identifier") else None
        elif shape.is_required and key in _NULL_STANDS:
            owner[key] = None
        elif shape.is_required and key not in _LEFT_OUT:
            self._stand_in(place)
        else:
            del owner[key]
            if key == "body":
                _forget_encoding(owner)
        return 1

    def _stand_in(self, place: Place) -> None:
        """Put something in place of a member that its object cannot do without."""
        shape = place.shape
        if shape.is_list:
            place.owner[place.key] = []
        elif shape.table is not None:
            for child in place.children():
                self._remove(child, _WHOLE)
        elif shape.joins:
            place.owner[place.key] = self._numbered(shape, place.value, None)
        else:
            place.owner[place.key] = MARK

    def _null(self, place: Place, rule: Rule) -> int:
        if (place.shape.is_required and place.key in _NULL_STANDS) or (
            place.shape.is_free and not place.shape.name
        ):
            if place.value is None:
                return 0
            place.owner[place.key] = None
            return 1
        return self._remove(place, rule)

    def _mask(self, place: Place, rule: Rule) -> int:
        def make(shape: Shape, value: Any) -> str:
            return self._numbered(shape, value, None) if shape.joins else MARK

        return self._replace(place, make, rule)

    def _hash(self, place: Place, rule: Rule) -> int:
        if place.shape.kind == "any" and type(place.value) in (dict, list):
            return self._put_text(place, self._pseudonyms.salted(bytes_of(place.value)))
        return self._replace(place, lambda _, value: self._pseudonyms.salted(bytes_of(value)), rule)

    def _pseudonym(self, place: Place, rule: Rule) -> int:
        return self._replace(
            place, lambda shape, value: self._numbered(shape, value, rule.label), rule, keeps_nothing=True
        )

    def _random(self, place: Place, rule: Rule) -> int:
        return self._replace(
            place, lambda _, value: self._pseudonyms.random(as_text(value)), rule, keeps_nothing=True
        )

    def _numbered(self, shape: Shape, value: Any, label: str | None) -> str:
        own = JOIN_LABEL if shape.joins else label or label_of(shape)
        return self._pseudonyms.numbered(own, as_text(value))

    def _replace(
        self, place: Place, make: Callable[[Shape, Any], str], rule: Rule, *, keeps_nothing: bool = False
    ) -> int:
        """Replace each text and number at and below a place. `keeps_nothing` leaves texts that say nothing alone."""
        value, shape = place.value, place.shape
        if shape.is_structure or value is None or type(value) is bool:
            return 0
        if type(value) in (dict, list):
            return sum(
                self._replace(child, make, rule, keeps_nothing=keeps_nothing)
                for child in place.children()
                if child.is_there()
            )
        if keeps_nothing and value in SAYS_NOTHING:
            return 0
        if shape.kind in _NO_TEXT:
            if shape.kind == "did" and keeps_nothing:
                place.owner[place.key] = f"did:example:{make(shape, value)}"
                return 1
            return self._remove(place, rule)
        return self._put_text(place, make(shape, value))

    def _put_text(self, place: Place, text: str) -> int:
        place.owner[place.key] = text
        if place.key == "body" and not (place.shape.is_free and not place.shape.name):
            _forget_encoding(place.owner)
            place.owner["encoding"] = "none"
            place.owner["mediatype"] = "text/plain"
        return 1

    def _commit(self, place: Place, rule: Rule) -> int:
        owner = place.owner
        if place.key != "body" or type(owner) is not dict or not place.shape.name:
            return self._null(place, rule)
        data = _content(owner)
        self._remove(place, rule)
        if len(data) >= MIN_COMMITTED_BYTES:
            _forget_hashes(owner)
            owner["content_hash"] = str(ContentHash.of(data))
        return 1


_WHOLE: Final = Rule(name="", action="remove", path=(), where={}, unless={})


def forget_hash(place: Place) -> None:
    """Take out the hash of the body that a place is, or is a part of: it is no longer the hash of what stands there."""
    if (
        place.element is not None
        and place.pointer.endswith("/body")
        and place.pointer.count("/") == BODY_DEPTH
    ):
        _forget_hashes(place.element)


def _forget_hashes(owner: dict[str, Any]) -> None:
    for name in ("content_hash", "alg", "signature"):
        owner.pop(name, None)


def _forget_encoding(owner: dict[str, Any]) -> None:
    for name in ("encoding", "mediatype", "mimetype"):
        owner.pop(name, None)


def _content(owner: dict[str, Any]) -> bytes:
    body = owner.get("body")
    if is_encoded(owner):
        return decode_base64url(str(body)) or b""
    return bytes_of(body)


def label_of(shape: Shape) -> str:
    """Return what a value is called in its pseudonym where the rule gives no label."""
    return "".join(char if char.isalnum() else "-" for char in (shape.name or "value").lower())


def as_text(value: Any) -> str:
    """Return a text as it is, and a number by its JSON spelling."""
    return value if type(value) is str else bytes_of(value).decode("utf-8", "surrogatepass")

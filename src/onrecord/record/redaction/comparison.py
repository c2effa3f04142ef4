"""Compares a vCon with its redacted copy: positions hold, and nothing that was taken out is still there elsewhere.

Source: record.md PR-12, 6.11.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from onrecord.base.findings import Finding
from onrecord.record.checks.collector import Collector
from onrecord.record.instances import REPLACED
from onrecord.record.redaction.actions import SAYS_NOTHING
from onrecord.record.redaction.decoding import readings
from onrecord.record.redaction.folding import fold
from onrecord.record.redaction.needles import Needles
from onrecord.record.redaction.places import Place, root
from onrecord.record.redaction.shapes import FREE, INDEXED, Shape
from onrecord.record.redaction.texts import MAX_NUMBER, text_of_body
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.pointers import step

MIN_REMOVED_CHARACTERS: Final = 8
"""Length from which on a removed text must not occur elsewhere (record.md PR-12). Shorter ones occur by chance."""

MIN_LONG_NUMBER: Final = 10 ** (MIN_REMOVED_CHARACTERS - 1)
"""Numbers from here on have as many digits as a removed text has characters."""

LABELS: Final = frozenset(
    [
        "tool",
        "tool_name",
        "server",
        "operation",
        "event_type",
        "status",
        "format",
        "model_id",
        "models",
        "model_provider",
        "cli_name",
        "cli_version",
        "vendor",
        "product",
        "purpose",
        "branch",
        "revision",
        "repository",
        "operation_id",
        "call_id",
        "entry_id",
        "parent_id",
    ]
)
"""Members whose values many objects share. The same label at another object is no leak, inside of a text it is."""

_MARK: Final = re.compile(r"\[[^\[\]\n]{1,80}\]")
_OWN_MARK: Final = re.compile(
    r"\[(?:redacted|[a-z0-9-]{1,40} removed|credential (?:removed|replaced: [a-z0-9_-]{1,40}))\]", re.ASCII
)
"""What redaction leaves, so that it is nothing that was taken out: other texts in brackets are."""

_TYPE_NAMES: Final = frozenset(["type", "role", "kind", "mimeType", "mime_type", "media_type"])
"""Members of free content that say what an object is; their words recur."""

_TYPE_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9._+/-]{0,39}", re.ASCII)
_MEMBER_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,39}", re.ASCII)
"""Names of members as programs write them. Such a name recurs in other objects, which is no leak."""


def compare(original: Vcon, redacted: Vcon) -> tuple[Finding, ...]:
    """Return what is wrong with a redaction: `redaction-index-shift` and `redaction-leak`, in document order.

    Every text of 8 or more characters that is in the original and not at the same place of the redacted vCon counts
    as removed, also the parts between what is left of a text. None may occur elsewhere in the redacted one, in either
    case, with accents or without, as a number, behind escapes, in base64, hexadecimal or gzip, nor in what the
    reference to the original says. A pointer of a leak is the place where the text still stands; `data` names the
    place it was removed from.
    """
    collector = Collector()
    with paused_collection(len(original.raw or b"") + len(redacted.raw or b"")):
        _check_positions(original.members, redacted.members, collector)
        removed = _Removed()
        removed.collect(original.members, redacted.members)
        if removed.places:
            _check_leaks(redacted.members, removed, collector)
        return collector.in_order(redacted.members)


def _check_positions(original: Mapping[str, Any], redacted: Mapping[str, Any], collector: Collector) -> None:
    for name in INDEXED:
        before, after = original.get(name), redacted.get(name)
        sizes = [len(items) if type(items) is list else 0 for items in (before, after)]
        if sizes[0] != sizes[1]:
            collector.add("redaction-index-shift", step(name), data={"before": sizes[0], "after": sizes[1]})
        elif sizes[0]:
            assert isinstance(before, list)
            assert isinstance(after, list)
            shape = root({name: before}).child(name)
            assert shape is not None
            for index, (old, new) in enumerate(zip(before, after, strict=True)):
                if new != {} and not _may_be_of(old, new, shape.shape.element()):
                    collector.add("redaction-index-shift", f"/{name}/{index}")


def _may_be_of(old: Any, new: Any, shape: Shape) -> bool:
    """Say whether an element can be what redaction left of another: its structure is the same as far as it is there."""
    if type(old) is not dict or type(new) is not dict:
        return False
    for name, value in new.items():
        member = shape.member(name)
        if member is not None and member.is_structure and name not in _CHANGED_WITH_CONTENT:
            before = old.get(name)
            if before is not None and before != value:
                return False
    return True


_CHANGED_WITH_CONTENT: Final = frozenset(
    ["encoding", "mediatype", "mimetype", "content_hash", "alg", "signature"]
)


class _Removed:
    """The texts that are in the original and not at their place in the redacted vCon, folded, with where they were.

    Labels are no leak at another object if they went with their whole object, nor are names of members as such.
    """

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.not_labels: set[str] = set()
        self.not_names: set[str] = set()
        self.names: Counter[str] = Counter()

    def collect(self, original: Mapping[str, Any], redacted: Mapping[str, Any]) -> None:
        """Go through both at once."""
        rest = {name: value for name, value in original.items() if name not in REPLACED}
        work: list[tuple[Place, Any]] = [(root(rest), redacted)]
        while work:
            place, new = work.pop()
            old = place.value
            if old == new and type(old) is type(new):
                continue
            if type(old) is dict:
                self._members(place, old, new, work)
            elif type(old) is list:
                items = new if type(new) is list else ()
                for index, child in enumerate(place.children()):
                    work.append((child, items[index] if index < len(items) else None))
            elif type(old) is str and (not place.shape.is_structure or place.shape.may_hide(old)):
                self._text(old, new, place)
            elif type(old) is int and place.shape.is_free:
                self._add(str(old) if abs(old) < MAX_NUMBER else "", place)

    def _members(self, place: Place, old: dict[str, Any], new: Any, work: list[tuple[Place, Any]]) -> None:
        members = new if type(new) is dict else {}
        renamed: list[Place] = []
        for child in place.children():
            name = child.key
            if name not in members and not place.shape.is_free and place.shape.member(name) is None:
                continue  # left out because nobody knows it, so it says nothing about what was to be taken out
            if name == "body" and place.shape.has_encoded_body(old):
                text = text_of_body(old)
                after = (
                    text_of_body(members) if place.shape.has_encoded_body(members) else members.get("body")
                )
                if text is not None and text != after:
                    self._text(text, after, child)
            if place.shape.is_free and name not in members:
                renamed.append(child)
                self._add(name, child, is_name=True)
            elif child.shape.name in LABELS and not members:
                for label in child.value if type(child.value) is list else (child.value,):
                    self._add(label, child, is_label=True)
            else:
                work.append((child, members.get(name)))
        if renamed:
            self._add_renamed(renamed, [value for name, value in members.items() if name not in old])

    def _add_renamed(self, places: list[Place], values: list[Any]) -> None:
        """Add the texts below members that are gone, but not those below one that came instead, with a masked name."""
        still = {text for _, text, _ in _texts(Place([values], 0, FREE, ""))}
        for place in places:
            for inner, text, is_name in _texts(place):
                if text not in still and (is_name or not _says_type(inner, text)):
                    self._add(text, place, is_name=is_name)

    def _text(self, old: str, new: Any, place: Place) -> None:
        """Add what is missing of a text. Where all that is missing is short, the text as it was is what is searched."""
        if _says_type(place, old):
            return
        parts = list(removed_parts(old, new))
        if all(len(fold(part)) < MIN_REMOVED_CHARACTERS for part in parts):
            parts.append(old)
        for part in parts:
            self._add(part, place)

    def _add(self, text: Any, place: Place, *, is_label: bool = False, is_name: bool = False) -> None:
        if type(text) is not str or text in SAYS_NOTHING or _OWN_MARK.fullmatch(text):
            return
        folded = fold(text)
        if len(folded) < MIN_REMOVED_CHARACTERS:
            return
        self.places.setdefault(folded, place.pointer)
        if not is_label:
            self.not_labels.add(folded)
        if is_name and _MEMBER_NAME.fullmatch(text) is not None:
            self.names[folded] += 1
        else:
            self.not_names.add(folded)


def _says_type(place: Place, text: str) -> bool:
    """Say whether a text of free content is a word that says what an object is."""
    return (
        place.shape.is_free
        and not place.shape.name
        and place.key in _TYPE_NAMES
        and _TYPE_WORD.fullmatch(text) is not None
    )


def removed_parts(old: str, new: Any) -> Iterator[str]:
    """Yield what is missing of a text: all of it, or what stood where now are marks in brackets."""
    if type(new) is not str:
        yield old
        return
    kept = _MARK.split(new)
    if len(kept) == 1:
        if new not in old or not new:
            yield old
        else:
            yield from filter(None, old.split(new, 1))
        return
    if not old.startswith(kept[0]) or not old.endswith(kept[-1]):
        yield old
        return
    parts: list[str] = []
    position = len(kept[0])
    for text in kept[1:-1]:
        found = old.find(text, position)
        if found < 0:
            yield old
            return
        parts.append(old[position:found])
        position = found + len(text)
    parts.append(old[position : max(position, len(old) - len(kept[-1]))])
    marks = set(_MARK.findall(new))
    yield from (part.strip() for part in parts if part and part not in marks)


def _check_leaks(redacted: Mapping[str, Any], removed: _Removed, collector: Collector) -> None:
    needles = Needles(removed.places, shortest=MIN_REMOVED_CHARACTERS)
    if not needles:
        return
    searched = list(_texts(root(_without_identity(redacted))))
    common = {name for name, count in removed.names.items() if count > 1}
    common.update(fold(text) for _, text, is_name in searched if is_name)
    for place, text, is_name in searched:
        is_label = place.shape.name in LABELS
        for form, reading in readings(text):
            told: set[str] = set()
            size = len(fold(reading)) if is_label or is_name else 0
            for hit in needles.find(reading):
                if hit.text in told:
                    continue
                told.add(hit.text)
                if is_label and len(hit.text) == size and hit.text not in removed.not_labels:
                    continue
                if hit.text not in removed.not_names and (is_name or hit.text in common):
                    continue
                data: dict[str, Any] = {
                    "removed_from": removed.places[hit.text],
                    "length": len(hit.text),
                    "form": form,
                }
                collector.add("redaction-leak", place.pointer, data=data)


def _texts(start: Place) -> Iterator[tuple[Place, str, bool]]:
    """Yield every text that is no plain structure, also numbers and member names of free content; true marks names."""
    work = [start]
    while work:
        place = work.pop()
        value, shape = place.value, place.shape
        if type(value) is str:
            if not shape.is_structure or shape.may_hide(value):
                yield place, value, False
        elif type(value) is int and shape.is_free:
            if MIN_LONG_NUMBER <= abs(value) < MAX_NUMBER:
                yield place, str(value), False
        elif type(value) in (dict, list):
            if type(value) is dict:
                if shape.is_free or not shape.table:
                    for name in value:
                        yield place, name, True
                if shape.has_encoded_body(value):
                    text = text_of_body(value)
                    if text is not None:
                        decoded = place.child("body")
                        assert decoded is not None
                        yield decoded, text, False
                        work.extend(child for child in place.children() if child.key != "body")
                        continue
            work.extend(place.children())


def _without_identity(redacted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members without uuid and dates; of the reference to the original, what says more than its uuid."""
    rest: dict[str, Any] = {}
    for name, value in redacted.items():
        if name not in REPLACED:
            rest[name] = value
        elif type(value) is dict:
            rest[name] = {key: item for key, item in value.items() if key != "uuid"}
    return rest

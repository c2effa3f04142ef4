"""Which events of a rollout repeat what its items say (native-logs.md 4.3).

An event is a twin only when an item of its role has the same text; blanks and line breaks do not count, because events
join the parts of a message. What no item says is told: nothing that stands only in an event is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from onrecord.record.logs.codex.media import PICTURES
from onrecord.record.logs.codex.names import TALK_EVENTS, TALK_ITEMS, injected_as, kinds_of

_IMAGE_TAG: Final = re.compile(r"\s*</?image\b[^>]*>\s*", re.ASCII)
_REQUEST: Final = "## My request for Codex:"
_HIDDEN: Final = ("oai-mem-citation", "proposed_plan")


class Talk:
    """Texts of items and events by who speaks: "user", "assistant", "reasoning". Kept are hashes."""

    def __init__(self) -> None:
        self.apart: dict[int, bool] = {}
        """Records of events that are no twins. True: nothing else of the turn tells what this role said."""
        self.pictures: set[int] = set()
        """Hashes of the addresses of pictures in the user's items."""
        self._items: dict[str, set[int]] = {}
        self._events: dict[str, set[int]] = {}
        self._said: set[tuple[str, int]] = set()
        self._told: set[tuple[str, int]] = set()
        self._turn = 0
        self._is_answered = False
        self._open: list[tuple[int, str, tuple[int, ...], bool, int]] = []

    def item(self, who: str, payload: Mapping[str, Any]) -> None:
        """Note what an item says."""
        marks = self._items.setdefault(who, set())
        if who == "reasoning":
            self._speaks(who, self._said)
            texts = [*_texts(payload.get("summary")), *_texts(payload.get("content"))]
            marks.update(map(mark_of, texts))
            marks.add(mark_of("".join(texts)))
            return
        content = payload.get("content")
        texts = list(_texts(content))
        marks.update(map(mark_of, texts))
        marks.add(mark_of("".join(texts)))
        if who == "assistant":
            self._speaks(who, self._said)
            shown = _without_hidden("".join(texts))
            if shown is not None:
                marks.add(mark_of(shown))
            return
        kinds = kinds_of(payload)
        human = [
            text
            for number, text in enumerate(texts)
            if text.strip() and injected_as(text, kinds[number] if number < len(kinds) else None) is None
        ]
        if human:
            self._speaks(who, self._said)
            typed = "".join(text for text in human if not _IMAGE_TAG.fullmatch(text))
            marks.add(mark_of(typed))
            _, header, request = typed.rpartition(_REQUEST)
            if header:
                marks.add(mark_of(request))
        for part in content if type(content) is list else ():
            if type(part) is dict and type(part.get("type")) is str and part["type"] in PICTURES:
                address = address_of(part)
                if address is not None:
                    self.pictures.add(hash(address))

    def event(self, number: int, payload: Mapping[str, Any]) -> None:
        """Note what an event, or the completed item in it, says."""
        native = payload.get("item") if payload["type"] == "item_completed" else None
        is_item = type(native) is dict
        texts = texts_of_item(native) if type(native) is dict else texts_of_event(payload)
        if texts is None:
            return
        who = TALK_ITEMS[native["type"]] if type(native) is dict else TALK_EVENTS[payload["type"]]
        marks = tuple(mark_of(text) for text in texts if text.strip())
        self._speaks(who, self._told if not is_item else None)
        if not is_item:
            self._events.setdefault(who, set()).update(marks)
        said = self._items.get(who)
        if said is None or not said.issuperset(marks):
            self._open.append((number, who, marks, is_item, self._turn))

    def finish(self) -> None:
        """Say which events are no twins."""
        for number, who, marks, is_item, turn in self._open:
            said = self._items.get(who)
            told = self._events.get(who) if is_item else None
            is_told = said is not None or told is not None
            if is_told and all(mark in (said or ()) or mark in (told or ()) for mark in marks):
                continue
            place = (who, turn)
            self.apart[number] = place not in self._said and not (is_item and place in self._told)
        self._open.clear()

    def _speaks(self, who: str, places: set[tuple[str, int]] | None) -> None:
        """Note who spoke in this turn; a turn begins with what the user says after an answer."""
        if who != "user":
            self._is_answered = True
        elif self._is_answered:
            self._turn += 1
            self._is_answered = False
        if places is not None:
            places.add((who, self._turn))


def mark_of(text: str) -> int:
    """Return the hash of a text without blanks and line breaks."""
    return hash("".join(text.split()))


def address_of(part: Mapping[str, Any]) -> str | None:
    """Return the address of a picture, which may be a data: URL."""
    for name in ("image_url", "imageUrl", "url"):
        address = part.get(name)
        address = address.get("url") if type(address) is dict else address
        if type(address) is str:
            return address
    return None


def texts_of_event(payload: Mapping[str, Any]) -> list[str] | None:
    """Return what an event says, None where its text is none."""
    text = payload.get("message" if payload["type"] in ("user_message", "agent_message") else "text")
    return [text] if type(text) is str else None


def texts_of_item(native: Mapping[str, Any]) -> list[str] | None:
    """Return what a completed item says, None where its members are of another kind."""
    if native["type"] == "Reasoning":
        return [*_texts(native.get("summary_text")), *_texts(native.get("raw_content"))]
    content = native.get("content")
    return list(_texts(content)) if content is None or type(content) is list else None


def _texts(parts: Any) -> Iterator[str]:
    if type(parts) is str:
        yield parts
    for part in parts if type(parts) is list else ():
        text = part.get("text") if type(part) is dict else part
        if type(text) is str:
            yield text


def _without_hidden(text: str) -> str | None:
    """Return an answer without the blocks that the program takes out for its events, None if it has none."""
    shown = text
    for name in _HIDDEN:
        start, end = f"<{name}>", f"</{name}>"
        if start in shown:
            pieces = shown.split(start)
            shown = pieces[0] + "".join(piece.partition(end)[2] for piece in pieces[1:])
    return None if shown is text else shown

"""Finds credentials in the objects of a vCon while they are written, at the speed of writing.

Many objects are looked at together for the texts without which no credential occurs; only an object that holds one is
looked at again, and only one that may hold a credential is read and searched.

Source: native-logs.md D-LOG-13; record.md 7.2.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final

import orjson
from ahocorasick_rs import BytesAhoCorasick

from onrecord.record.credentials import MEMBER_NAMES, PATTERNS, Hit, Pattern, find

_BATCH_BYTES: Final = 1 << 19
"""Bytes that are looked at together."""

_BARE_NAMES: Final = sorted({name.translate(str.maketrans("", "", "_-")) for name in MEMBER_NAMES})
_MEMBER: Final = re.compile(
    '"(?:{})":\\Z'.format("|".join("[_-]?".join(name) for name in _BARE_NAMES)).encode("ascii")
)
"""The end of a text is a member whose name is that of a credential, its words joined in any way."""

_MEMBER_BYTES: Final = max(map(len, _BARE_NAMES)) * 2 + 3
"""Bytes that such a name takes at most, with its quotes and colon."""

_BY_TRIGGER: Final[dict[bytes, tuple[Pattern, ...]]] = {}
for _pattern in PATTERNS:
    _text = _pattern.trigger.lower().encode("ascii")
    _BY_TRIGGER[_text] = (*_BY_TRIGGER.get(_text, ()), _pattern)
for _name in MEMBER_NAMES:
    _word = re.split("[_-]", _name)[-1]
    _BY_TRIGGER.setdefault(f'{_word[-7 if _word.endswith("tion") else -4 :]}":'.encode("ascii"), ())
_TRIGGERS: Final = sorted(_BY_TRIGGER)
"""Texts without which no credential occurs, in lower case: those of the patterns, and how the members' names end."""

_PATTERNS: Final = [_BY_TRIGGER[trigger] for trigger in _TRIGGERS]
"""The patterns of each trigger; none where it is the end of a member's name."""

_FINDER: Final = BytesAhoCorasick(_TRIGGERS)

Report = Callable[[int, Hit], None]
"""Takes the number of an object and a credential in it."""


class CredentialSearch:
    """Looks through JSON texts of objects, as orjson writes them. `finish` must be called at the end."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._texts: list[bytes] = []
        self._numbers: list[tuple[int, str]] = []
        self._ends: list[int] = []
        self._size = 0

    def look_at(self, number: int, pointer: str, text: bytes) -> None:
        """Look at the text of an object that stands at this JSON pointer."""
        self._texts.append(text)
        self._numbers.append((number, pointer))
        self._size += len(text)
        self._ends.append(self._size)
        if self._size >= _BATCH_BYTES:
            self.finish()

    def finish(self) -> None:
        """Look at what is waiting."""
        batch = b"".join(self._texts).lower()
        found: dict[int, set[int]] = {}
        for trigger, start, end in _FINDER.find_matches_as_indexes(batch, overlapping=True):
            if _PATTERNS[trigger] or _MEMBER.search(batch, max(end - _MEMBER_BYTES, 0), end):
                found.setdefault(bisect_right(self._ends, start), set()).add(trigger)
        for place in sorted(found):
            if place < len(self._texts):
                self._search(place, found[place])
        self._texts.clear()
        self._numbers.clear()
        self._ends.clear()
        self._size = 0

    def _search(self, place: int, triggers: Iterable[int]) -> None:
        text = self._texts[place]
        has_member = False
        patterns: list[Pattern] = []
        for trigger in triggers:
            has_member = has_member or not _PATTERNS[trigger]
            patterns += [pattern for pattern in _PATTERNS[trigger] if pattern.in_json.search(text)]
        if has_member or patterns:
            number, pointer = self._numbers[place]
            for hit in find(orjson.loads(text), pointer=pointer, patterns=tuple(patterns)):
                self._report(number, hit)

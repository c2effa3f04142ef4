"""The value rules of one file: by the names that the tables use, and made for the sizes of its arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.checks.values import (
    ENUMS,
    SHOULD_ENUMS,
    Problem,
    Problems,
    Rule,
    an_object,
    anything,
    attempt,
    boolean,
    civic_address,
    content_hash,
    did,
    duration,
    identifier,
    is_uint,
    mismatch,
    number,
    party_event,
    session_id,
    session_ids,
    session_ids_or_texts,
    string,
    strings,
    uint,
    uri_reference,
    url,
)
from onrecord.record.vcon.instants import Instants
from onrecord.record.vcon.pointers import step

_MEDIATYPE: Final = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+\s*(?:;.*)?", re.ASCII | re.DOTALL)

MAX_MEDIATYPES: Final = 1_000
"""Media types remembered: real files have a few, a hostile one may have as many as elements."""

NOT_KNOWN: Final = -1
"""Index of a call that is not known, in transfer dialogs of core-01 and -02 (record.md 1.3)."""


class Values:
    """The rules of one file, by the name that the tables use: those above, and those that know its array sizes."""

    def __init__(self, sizes: Mapping[str, int], instants: Instants) -> None:
        self._sizes = sizes
        self._instants = instants
        self._mediatypes: dict[str, bool] = {}
        self._rules: dict[str, Rule] = {
            "any": anything,
            "string": string,
            "identifier": identifier,
            "strings": strings,
            "boolean": boolean,
            "number": number,
            "object": an_object,
            "uint": uint,
            "duration": duration,
            "did": did,
            "content-hash": content_hash,
            "url": url,
            "uri": uri_reference,
            "attempt": attempt,
            "session-id": session_id,
            "session-ids": session_ids,
            "session-ids-or-texts": session_ids_or_texts,
            "party-event": party_event,
            "civic-address": civic_address,
            "date": self.date,
            "mediatype": self.mediatype,
        }

    def rule(self, kind: str) -> Rule:
        """Return the rule of a kind: a plain name, "enum NAME", or "SHAPE ARRAY" for indices into an array."""
        rule = self._rules.get(kind)
        if rule is None:
            shape, _, name = kind.partition(" ")
            rule = self._enum(name) if shape == "enum" else index_rule(shape, name, self._sizes[name])
            self._rules[kind] = rule
        return rule

    def date(self, value: Any) -> Problems | None:
        """Date (record.md D-08)."""
        if type(value) is not str:
            return mismatch("Date", value)
        instant = self._instants.read(value)
        if instant is None:
            return [Problem("date-invalid")]
        return None if instant[1] else [Problem("date-not-normal")]

    def mediatype(self, value: Any) -> Problems | None:
        """Media type; parameters are accepted, folded ones too."""
        if type(value) is not str:
            return mismatch("String", value)
        known = self._mediatypes.get(value)
        if known is None:
            known = _MEDIATYPE.fullmatch(value) is not None
            if len(self._mediatypes) < MAX_MEDIATYPES:
                self._mediatypes[value] = known
        return None if known else [Problem("mediatype-invalid")]

    @staticmethod
    def _enum(name: str) -> Rule:
        values = frozenset(ENUMS[name])
        code = "enum-unknown" if name in SHOULD_ENUMS else "enum-invalid"
        allowed = {"allowed": list(ENUMS[name])}

        def rule(value: Any) -> Problems | None:
            if type(value) is not str:
                return mismatch("String", value)
            return None if value in values else [Problem(code, "", allowed)]

        return rule


def index_rule(shape: str, array: str, size: int) -> Rule:
    """Return the rule for indices into an array of a size: `shape` says how they may stand there.

    "index" is one, "indices" an array, "filled" an array that is not empty, "one-or-more" either of them, "channels"
    the parties of a dialog, "known-or-not" what stood in transfer dialogs before core-04.
    """
    outside = {"array": array, "size": size}

    def index(value: Any) -> Problems | None:
        if type(value) is int and 0 <= value < size:
            return None
        if not is_uint(value):
            return mismatch("UnsignedInt", value)
        problems = [] if type(value) is int else [Problem("integer-as-float")]
        if value >= size:
            problems.append(Problem("index-range", "", outside))
        return problems

    def listed(value: list[Any], one: Rule) -> Problems | None:
        problems: Problems = []
        seen: set[Any] = set()
        for position, item in enumerate(value):
            found = one(item)
            if found:
                problems += [problem._replace(place=step(position)) for problem in found]
            elif item in seen:
                problems.append(Problem("index-duplicate", step(position)))
            else:
                seen.add(item)
        return problems or None

    def indices(value: Any) -> Problems | None:
        return listed(value, index) if type(value) is list else mismatch("UnsignedInt[]", value)

    def one_or_more(value: Any) -> Problems | None:
        if type(value) is not list:
            return index(value)
        return indices(value) if value else [Problem("empty-value")]

    def filled(value: Any) -> Problems | None:
        return indices(value) if value != [] else [Problem("empty-value")]

    def channels(value: Any) -> Problems | None:
        """Parties of a dialog: one index, an array, null for an unused channel, an array for a shared one."""
        if type(value) is not list:
            return index(value)
        problems: Problems = []
        for position, item in enumerate(value):
            if item is not None:
                found = indices(item) if type(item) is list else index(item)
                if found:
                    head = step(position)
                    problems += [problem._replace(place=head + problem.place) for problem in found]
        return problems or None

    def maybe_known(value: Any) -> Problems | None:
        return (
            [Problem("index-unknown-legacy")] if type(value) is int and value == NOT_KNOWN else index(value)
        )

    def known_or_not(value: Any) -> Problems | None:
        """Calls and parties of a transfer before core-04: one index or an array; one that is not known may be -1."""
        if type(value) is not list:
            return maybe_known(value)
        return listed(value, maybe_known) if value else [Problem("empty-value")]

    shapes: dict[str, Rule] = {
        "index": index,
        "indices": indices,
        "filled": filled,
        "one-or-more": one_or_more,
        "channels": channels,
        "known-or-not": known_or_not,
    }
    return shapes[shape]

"""JSON with comments, edited member by member: every byte that is not of an edited member stays.

    >>> text = JsonText.read('{"a": {"b": 1, "c": 2}} // end')
    >>> text.edited(("a",), {"b": 3, "c": None}).text
    '{"a": {"b": 3}} // end'

Comments of both kinds and trailing commas are understood, as VS Code writes them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Final

from onrecord.base.errors import MalformedError

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?|//[^\r\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)
_TRAILING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|,(?=[ \t\r\n]*+[}\]])', re.DOTALL)
_NOT_NEWLINE = re.compile(r"[^\r\n]")
_SPACE = re.compile(r"[ \t\r\n]*+")
_DECODER: Final = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its name, and where name and value stand in the text."""

    name: str
    name_start: int
    start: int
    end: int
    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class JsonText:
    """A text and its value. `_uncommented` and `_strict` have the same length: what is no JSON is blank there."""

    text: str = field(repr=False)
    data: Any = field(repr=False)
    _uncommented: str = field(repr=False)
    _strict: str = field(repr=False)

    @classmethod
    def read(cls, text: str) -> JsonText:
        """Parse a text whose top is an object.

        Raises `MalformedError` with code "client-file-malformed".
        """
        uncommented = _TOKEN.sub(_blank_comment, text)
        strict = _TRAILING.sub(lambda match: " " if match[0] == "," else match[0], uncommented)
        try:
            data = json.loads(strict, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise _malformed(f"line {error.lineno} is not JSON") from None
        except (ValueError, RecursionError):
            raise _malformed("it is not JSON that can be read") from None
        if not isinstance(data, dict):
            raise _malformed("expected an object")
        return cls(text, data, uncommented, strict)

    def members(self, path: Sequence[str]) -> tuple[Member, ...]:
        """Return the members of the object at `path`.

        Raises `MalformedError` with code "client-file-malformed" if a name of it, or on the way to it, occurs twice.
        """
        return self._object(self._start(path))

    def edited(self, path: Sequence[str], values: Mapping[str, Any]) -> JsonText:
        """Return the text with other values of these members of the object at `path`; None takes a member out.

        A member that is not there is put behind "command", or behind the last one.

        Raises `MalformedError` as `members` does, or if the text cannot be edited safely.
        """
        try:
            members = self.members(path)
            end = _DECODER.raw_decode(self._strict, self._start(path))[1] - 1
            result = JsonText.read(self._edited(members, end, values))
            is_exact = result.data == _with_members(self.data, path, values)
        except RecursionError:  # it could just be read, from a place with more room on the stack
            is_exact = False
        if not is_exact:
            raise _malformed("it cannot be edited safely; edit it by hand")
        return result

    def _start(self, path: Sequence[str]) -> int:
        start = _space_end(self._strict, 0)
        for name in path:
            found = [member.start for member in self._object(start) if member.name == name]
            if not found:
                raise _malformed("an object is not where it was")
            start = found[0]
        return start

    def _object(self, start: int) -> tuple[Member, ...]:
        """Return the members of the object that begins at `start`."""
        strict = self._strict
        if strict[start] != "{":
            raise _malformed("an object is not where it was")
        found: dict[str, Member] = {}
        pos = _space_end(strict, start + 1)
        while strict[pos] != "}":
            name_start = pos
            name, pos = scanstring(strict, pos + 1, True)
            value_start = _space_end(strict, _space_end(strict, pos) + 1)
            value, end = _DECODER.raw_decode(strict, value_start)
            if name in found:
                raise _malformed("a member name occurs twice in one object")
            found[name] = Member(name, name_start, value_start, end, value)
            pos = _space_end(strict, end)
            if strict[pos] == ",":
                pos = _space_end(strict, pos + 1)
        return tuple(found.values())

    def _edited(self, members: Sequence[Member], end: int, values: Mapping[str, Any]) -> str:
        if all(values.get(member.name, ...) is None for member in members):
            raise _malformed("nothing would be left of an object")
        edits: list[tuple[int, int, str]] = []
        bounds = [*(member.name_start for member in members[1:]), end]
        commas = [
            self._uncommented.find(",", member.end, bound)
            for member, bound in zip(members, bounds, strict=True)
        ]
        gone = {member.name for member in members if values.get(member.name, ...) is None}
        kept = [index for index, member in enumerate(members) if member.name not in gone]
        for index, member in enumerate(members):
            if member.name in gone:
                edits += self._removal(member, commas[index], has_next=bool(kept) and index < kept[-1])
            elif member.name in values and values[member.name] != member.value:
                edits.append((member.start, member.end, _json(values[member.name])))
        if kept and kept[-1] < len(members) - 1 and commas[-1] < 0:  # the last one has no comma, as before
            edits.append((commas[kept[-1]], commas[kept[-1]] + 1, ""))
        names = {member.name for member in members}
        new = {name: value for name, value in values.items() if name not in names and value is not None}
        if new:
            edits.append(self._insertion(members, kept, new))
        return _applied(self.text, edits)

    def _removal(self, member: Member, comma: int, *, has_next: bool) -> list[tuple[int, int, str]]:
        """Return the deletions that take a member out: its whole line when nothing else stands there."""
        text = self.text
        start, stop = member.name_start, member.end
        edits = []
        if comma >= 0:
            if text[stop:comma].strip():
                edits.append((comma, comma + 1, ""))  # a comment stands before the comma, and stays
            else:
                stop = comma + 1
        line = text.rfind("\n", 0, start) + 1
        newline = text.find("\n", stop)
        if not text[line:start].strip() and newline >= 0 and not text[stop:newline].strip():
            start, stop = line, newline + 1
        elif has_next or not text[line:start].strip():
            while text[stop : stop + 1] and text[stop] in " \t":
                stop += 1
        else:
            while text[start - 1] in " \t":
                start -= 1
        return [*edits, (start, stop, "")]

    def _insertion(
        self, members: Sequence[Member], kept: Sequence[int], new: Mapping[str, Any]
    ) -> tuple[int, int, str]:
        anchor = next(
            (members[index] for index in kept if members[index].name == "command"), members[kept[-1]]
        )
        line = self.text.rfind("\n", 0, anchor.name_start) + 1
        indent = self.text[line : anchor.name_start]
        newline = "\r\n" if self.text[:line].endswith("\r\n") else "\n"
        between = f",{newline}{indent}" if line and not indent.strip() else ", "
        text = "".join(f"{between}{_json(name)}: {_json(value)}" for name, value in new.items())
        return anchor.end, anchor.end, text


def _applied(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """Return the text after all edits. Deletions may overlap; what replaces or inserts stands alone."""
    parts, pos = [], 0
    for start, end, new in sorted(edits):
        parts += [text[pos : max(start, pos)], new]
        pos = max(pos, end)
    return "".join(parts) + text[pos:]


def _blank_comment(match: re.Match[str]) -> str:
    token = match[0]
    if token.startswith('"'):
        return token
    if token.startswith("/*") and (len(token) < 4 or not token.endswith("*/")):
        raise _malformed("a comment has no end")
    return _NOT_NEWLINE.sub(" ", token)


def _space_end(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refuse_constant(_name: str) -> Any:
    """Refuse NaN and Infinity, which are no JSON and equal nothing."""
    raise ValueError


def _with_members(data: Any, path: Sequence[str], values: Mapping[str, Any]) -> Any:
    """Return the value with other members of the object at `path`; what is not on the way is shared."""
    if path:
        return {**data, path[0]: _with_members(data[path[0]], path[1:], values)}
    kept = {name: value for name, value in data.items() if values.get(name, ...) is not None}
    return {**kept, **{name: value for name, value in values.items() if value is not None}}


def _malformed(message: str) -> MalformedError:
    return MalformedError(
        f"the client's file: {message}",
        code="client-file-malformed",
        hint="correct it, or change this client's servers by hand",
    )

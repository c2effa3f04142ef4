"""TOML of a client, edited key by key: comments, order and spelling of everything else stay."""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Comment, Table, Whitespace

from onrecord.base.errors import MalformedError

_LONE_NEWLINE = re.compile(r"(?<!\r)\n")


@dataclass(frozen=True, slots=True)
class TomlText:
    """A text and its value."""

    text: str = field(repr=False)
    data: Any = field(repr=False)

    @classmethod
    def read(cls, text: str) -> TomlText:
        """Parse a text.

        Raises `MalformedError` with code "client-file-malformed".
        """
        try:
            return cls(text, tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            raise _malformed("it is not TOML") from None
        except (RecursionError, ValueError):
            raise _malformed("it is not TOML that can be read") from None

    def edited(self, path: Sequence[str], values: Mapping[str, Any]) -> TomlText:
        """Return the text with other values of these keys of the table at `path`; None takes a key out.

        The header of a table that holds comments stays, without keys, so that the comments keep their place.

        Raises `MalformedError` with code "client-file-malformed" if the text cannot be edited safely.
        """
        emptied: list[str] = []
        try:
            document = tomlkit.parse(self.text)
            if tomlkit.dumps(document) != self.text:
                raise _malformed("it cannot be edited safely; edit it by hand")
            table: Any = document
            for name in path:
                table = table[name]
            for name, value in values.items():
                if value is None:
                    if name in table and not _taken_out(table, name):
                        emptied.append(name)
                elif name not in table or table[name] != value:
                    table[name] = value
            result = TomlText.read(_with_newlines_of(self.text, tomlkit.dumps(document)))
        except (TOMLKitError, RecursionError, ValueError, TypeError, AttributeError, KeyError, IndexError):
            raise _malformed("it cannot be edited safely; edit it by hand") from None
        if repr(result.data) != repr(_ordered_as(result.data, self._expected(path, values, emptied))):
            raise _malformed("it cannot be edited safely; edit it by hand")
        return result

    def _expected(self, path: Sequence[str], values: Mapping[str, Any], emptied: Sequence[str]) -> Any:
        expected = copy.deepcopy(self.data)
        target = expected
        for name in path:
            target = target[name]
        for name, value in values.items():
            if name in emptied:
                target[name] = {}
            elif value is None:
                target.pop(name, None)
            else:
                target[name] = value
        return expected


def _with_newlines_of(before: str, text: str) -> str:
    """Return a text whose new lines end as all lines did before."""
    if "\r\n" not in before or _LONE_NEWLINE.search(before):
        return text
    return _LONE_NEWLINE.sub("\r\n", text)


def _taken_out(table: Any, name: str) -> bool:
    """Take a key out; returns False if it was a table with comments, which is left without keys."""
    item = table[name]
    if isinstance(item, Table) and any(isinstance(part, Comment) for _, part in item.value.body):
        for key in list(item):
            item.remove(key)
        return False
    if isinstance(table, Table) and isinstance(item, Table):
        body = table.value.body
        place = next(index for index, (key, _) in enumerate(body) if key is not None and key.key == name)
        table.remove(name)
        body[place] = (None, Whitespace(_blank_end(item)))
    else:
        table.remove(name)
    return True


def _blank_end(table: Table) -> str:
    """Return the blank lines behind the last key of a table. They part it from the next one and belong to neither."""
    blank = ""
    for _, part in reversed(table.value.body):
        if isinstance(part, Table):
            return _blank_end(part) + blank
        if not isinstance(part, Whitespace):
            break
        blank = part.s + blank
    return blank


def _ordered_as(model: Any, value: Any) -> Any:
    """Return `value` with its members in the order of `model`, wherever they are the same ones."""
    if isinstance(model, dict) and isinstance(value, dict) and model.keys() == value.keys():
        return {name: _ordered_as(model[name], value[name]) for name in model}
    return value


def _malformed(message: str) -> MalformedError:
    return MalformedError(
        f"the client's file: {message}",
        code="client-file-malformed",
        hint="correct it, or change this client's servers by hand",
    )

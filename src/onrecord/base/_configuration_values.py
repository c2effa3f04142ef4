"""Turns the values of `onrecord.toml` into what the program uses: each kind of value has its check here."""

from __future__ import annotations

import os
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from onrecord.base._toml_lines import line_of
from onrecord.base.configuration_keys import LATER_KEY_SCHEMES, Key, Kind, Mode
from onrecord.base.configuration_sections import SuppressedFinding
from onrecord.base.errors import ConfigurationError, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_USER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,62}\$?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SYNTAX_LINE: Final = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)$")
_NOBODY: Final = 65534

NOT_BUILT: Final = "not-built-yet"
"""Code of what is specified and refused by name for now (running.md 13)."""


@dataclass(frozen=True, slots=True)
class ConfigurationText:
    """The text, its file and the parsed document."""

    text: str
    file: Path
    document: Mapping[str, Any]

    @classmethod
    def read(cls, text: str, *, file: Path) -> ConfigurationText:
        """Parse TOML; raises `ConfigurationError` with code "configuration-syntax" and the line."""
        try:
            return cls(text, file, tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            message = str(error)
            place = _SYNTAX_LINE.search(message)
            line = int(place[1]) if place and place[1] else len(text.splitlines())
            raise ConfigurationError(
                "not TOML: " + _SYNTAX_LINE.sub("", message),
                code="configuration-syntax",
                hint="correct that line; docs/reference/configuration.md explains every key",
                where=Where(file=str(file), line=max(line, 1)),
            ) from error


def reject(
    source: ConfigurationText,
    path: Sequence[str],
    message: str,
    *,
    code: str = "configuration-value",
    hint: str | None = None,
) -> NoReturn:
    """Raise `ConfigurationError` for the key at `path`, with file, line and pointer."""
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path)
    where = Where(file=str(source.file), line=line_of(source.text, path), pointer=pointer)
    raise ConfigurationError(
        f"{'.'.join(path)}: {message}" if path else message, code=code, hint=hint, where=where
    )


class Values:
    """Checks and converts single values of one document. `names` grows: later defaults name earlier paths."""

    def __init__(self, source: ConfigurationText, *, mode: Mode, environ: Mapping[str, str]) -> None:
        self._source = source
        self._mode: Mode = mode
        self._environ = environ
        self.names: dict[str, str] = {}

    def value(self, key: Key, path: Sequence[str], written: object) -> Any:
        value = key.default(self._mode) if written is None else written
        if value is None:
            return None
        match key.kind:
            case Kind.PATH | Kind.COMMAND | Kind.KEY:
                text = self._filled(value) if written is None and isinstance(value, str) else value
                return self._place(key, path, text)
            case Kind.TEXT:
                return self._text(key, path, value)
            case Kind.TEXTS | Kind.NAMES:
                return self._texts(key, path, value)
            case Kind.WHOLE:
                return self._whole(key, path, value)
            case Kind.FLAG:
                if not isinstance(value, bool):
                    self._wrong(key, path, value)
                return value
            case Kind.PRINCIPAL | Kind.GROUP:
                return self._principal(key, path, value)
            case Kind.FINDINGS:
                return self._findings(key, path, value)
            case Kind.TABLE:
                return self.table(value, path)

    def _wrong(self, key: Key, path: Sequence[str], value: object) -> NoReturn:
        reject(self._source, path, f"expected {key.kind.value}, found {_describe(value)}")

    def _text(self, key: Key, path: Sequence[str], value: object) -> str:
        if not isinstance(value, str):
            self._wrong(key, path, value)
        if key.choices and value not in key.choices:
            reject(self._source, path, "expected " + " or ".join(f'"{one}"' for one in key.choices))
        if "\0" in value:
            reject(self._source, path, "the text holds a NUL")
        return value

    def _texts(self, key: Key, path: Sequence[str], value: object) -> tuple[str, ...]:
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            self._wrong(key, path, value)
        for one in value:
            if "\0" in one or (key.kind is Kind.NAMES and not _NAME.fullmatch(one)):
                reject(self._source, path, f"expected {key.kind.value}")
        return tuple(value)

    def _findings(self, key: Key, path: Sequence[str], value: object) -> tuple[SuppressedFinding, ...]:
        if not isinstance(value, list | tuple):
            self._wrong(key, path, value)
        found = []
        for number, entry in enumerate(value):
            place = (*path, str(number))
            table = self.table(entry, place)
            if "code" not in table:
                reject(self._source, place, "the key `code` is missing", code="configuration-key")
            for name, one in table.items():
                if name not in ("code", "pointer"):
                    reject(
                        self._source,
                        (*place, name),
                        "unknown key",
                        code="configuration-key",
                        hint="known here: code, pointer",
                    )
                if not isinstance(one, str):
                    reject(self._source, (*place, name), f"expected text, found {_describe(one)}")
            found.append(SuppressedFinding(**table))
        return tuple(found)

    def _whole(self, key: Key, path: Sequence[str], value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            self._wrong(key, path, value)
        if not key.minimum <= value <= key.maximum:
            reject(self._source, path, f"expected {key.minimum} to {key.maximum}, found {value}")
        return value

    def _principal(self, key: Key, path: Sequence[str], value: object) -> str | int:
        if isinstance(value, str):
            if not _USER.fullmatch(value):
                reject(self._source, path, "not a user or group name", hint="write a number without quotes")
            return value
        if not isinstance(value, int) or isinstance(value, bool):
            self._wrong(key, path, value)
        if not 1 <= value < 2**32 - 1 or value == _NOBODY:
            reject(
                self._source,
                path,
                f"{value} cannot be a role: 0 is root, {_NOBODY} is nobody",
                hint="use a number of its own",
            )
        return value

    def _filled(self, template: str) -> str:
        return template.format(
            xdg_config=self._environ.get("XDG_CONFIG_HOME") or "~/.config",
            xdg_state=self._environ.get("XDG_STATE_HOME") or "~/.local/state",
            xdg_runtime="$XDG_RUNTIME_DIR/onrecord",
            **self.names,
        )

    def _place(self, key: Key, path: Sequence[str], value: object) -> Path | str:
        if not isinstance(value, str):
            self._wrong(key, path, value)
        if key.kind is Kind.KEY:
            scheme, colon, rest = value.partition(":")
            if scheme in LATER_KEY_SCHEMES and colon:
                reject(
                    self._source,
                    path,
                    f"{scheme}: keys are not built yet",
                    code=NOT_BUILT,
                    hint="use file:/path/key.pem",
                )
            if scheme != "file" or not rest:
                self._wrong(key, path, value)
            rest = "/" + rest.lstrip("/") if rest.startswith("/") else rest
            return "file:" + self._expanded(path, rest)
        if key.kind is Kind.COMMAND:
            if value and "/" not in value and not value.startswith(("~", "$", ".")):
                return self._checked(path, value)
            return self._expanded(path, value)
        return Path(self._expanded(path, value))

    def _checked(self, path: Sequence[str], value: str) -> str:
        if not value or any(ord(one) < 32 or ord(one) == 127 for one in value):
            reject(self._source, path, "the path is empty or holds control characters")
        return value

    def _expanded(self, path: Sequence[str], value: str) -> str:
        """Expand a leading `~` or `$XDG_RUNTIME_DIR`; the result is absolute and without `..`."""
        self._checked(path, value)
        head, slash, rest = value.partition("/")
        if head in ("~", "$XDG_RUNTIME_DIR"):
            if self._mode == "system":
                reject(
                    self._source,
                    path,
                    f"{head} is another directory for each principal",
                    hint="write an absolute path",
                )
            base = self._environ.get("HOME" if head == "~" else head[1:]) or ""
            if not base and head != "~" and tuple(path) == ("paths", "runtime"):
                # Without a runtime directory the sockets are below the state (running.md 2.2).
                return self.names["state"] + "/run"
            if not os.path.isabs(base):
                reject(self._source, path, f"{head} is not set here", hint="write an absolute path")
            value = base + slash + rest
        if not os.path.isabs(value):
            reject(
                self._source,
                path,
                "expected an absolute path",
                hint="~ and $XDG_RUNTIME_DIR are expanded at the start",
            )
        if ".." in value.split("/"):
            reject(self._source, path, "a path may not hold ..", hint="write the path without it")
        return "/" + "/".join(part for part in value.split("/") if part not in ("", "."))

    def table(self, value: object, path: Sequence[str]) -> Mapping[str, Any]:
        """Return `value` if it is a table."""
        if not isinstance(value, dict):
            reject(self._source, path, f"expected a table, found {_describe(value)}")
        return value


def _describe(value: object) -> str:
    """Say what a TOML value is, without showing it."""
    match value:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a fraction"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case dict():
            return "a table"
        case _:
            return "a date or time"

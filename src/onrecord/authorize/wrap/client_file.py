"""A client's file as text that can be edited: JSON with comments, or TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from onrecord.authorize.wrap.entries import Form
from onrecord.authorize.wrap.json_text import JsonText
from onrecord.authorize.wrap.toml_text import TomlText
from onrecord.base.errors import MalformedError, Where

_MARK = b"\xef\xbb\xbf"


class ClientText(Protocol):
    """A text with its value; `edited` gives another one."""

    @property
    def text(self) -> str: ...

    @property
    def data(self) -> Any: ...

    def edited(self, path: Sequence[str], values: Mapping[str, Any]) -> ClientText: ...


def form_of(path: Path) -> Form:
    """Return the form of a client's file, which its name says."""
    return "toml" if path.suffix == ".toml" else "json"


def read_text(data: bytes, *, path: Path) -> ClientText:
    """Parse a client's file; its name says which form it has. A byte order mark is not part of the text.

    Raises `MalformedError` with code "client-file-malformed".
    """
    try:
        text = data.removeprefix(_MARK).decode("utf-8")
        return TomlText.read(text) if form_of(path) == "toml" else JsonText.read(text)
    except UnicodeDecodeError:
        raise MalformedError(
            "the client's file is not UTF-8", code="client-file-malformed", where=Where(file=str(path))
        ) from None
    except MalformedError as error:
        raise MalformedError(
            str(error), code=error.code, hint=error.hint, where=Where(file=str(path))
        ) from None


def written(text: ClientText, *, before: bytes) -> bytes:
    """Return the bytes of an edited file; a byte order mark stays."""
    return (_MARK if before.startswith(_MARK) else b"") + text.text.encode("utf-8")

"""Paths of arguments, as facts for policy. Purely lexical: the file system is not asked.

    >>> roots = Roots({"repo": "/srv/review/repo"})
    >>> normalize("repo/../repo/src/main.ts", base="/srv/review", roots=roots)
    PathFact(root='repo', rel='src/main.ts', dotdot=True, hidden=False, absolute='/srv/review/repo/src/main.ts')
    >>> normalize("~/.aws/credentials", base="/srv/review", roots=roots) is None
    True

Source: call-proof.md 8.3. Beyond its table these are unknown too, because servers read them in their own way: the
empty string, a backslash, a scheme or drive letter in front, white space or quotes at an end, line separators.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Final, NamedTuple

MAX_PATH_BYTES: Final = 4096
"""Longest path judged, in UTF-8: PATH_MAX of Linux."""

OUTSIDE: Final = "outside"
"""Root of a path that lies in no configured root."""

_REFUSED = re.compile(
    "[\x00-\x1f\x7f-\x9f\\\\\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
    r"|\A[~\s'\"]|[\s'\"]\Z|\A[A-Za-z][A-Za-z0-9+.-]*:[/\\]|\A[A-Za-z]:\Z|\Afile:"
)


class PathFact(NamedTuple):
    """A judged path: root name, rest below the root, and what it was made of. `absolute` never reaches Cedar."""

    root: str
    rel: str
    dotdot: bool
    hidden: bool
    absolute: str


class Roots:
    """The configured roots of one server, longest first."""

    __slots__ = ("_ordered",)

    def __init__(self, roots: Mapping[str, str]) -> None:
        """`roots` maps a name to a plain absolute path."""
        self._ordered = tuple(
            sorted(
                ((path.rstrip("/"), path.rstrip("/") + "/", name) for name, path in roots.items()),
                key=lambda item: -len(item[0]),
            )
        )

    def locate(self, absolute: str) -> tuple[str, str]:
        """Return root name and the rest below it; `absolute` is normalized."""
        for path, prefix, name in self._ordered:
            if absolute.startswith(prefix):
                return name, absolute[len(prefix) :]
            if absolute == path:
                return name, ""
        return OUTSIDE, absolute[1:]


def is_plain(path: str) -> bool:
    """Say whether a configured path is absolute and has no empty, "." or ".." segment and nothing unknown."""
    return path == "/" or (
        path.startswith("/")
        and not _REFUSED.search(path)
        and all(part not in ("", ".", "..") for part in path[1:].split("/"))
        and unicodedata.is_normalized("NFC", path)
    )


def normalize(text: str, *, base: str | None, roots: Roots) -> PathFact | None:
    """Return the fact of one path, or None when it cannot be judged.

    `base` is the plain absolute path that relative paths join; without one they cannot be judged. Empty and "."
    segments go, ".." is taken lexically and never leads above "/". The longest root by whole segments counts.
    """
    if not text or _REFUSED.search(text) is not None:
        return None
    if text.isascii():
        if len(text) > MAX_PATH_BYTES:
            return None
    elif len(text.encode()) > MAX_PATH_BYTES or not unicodedata.is_normalized("NFC", text):
        return None
    if text[0] == "/":
        parts: list[str] = []
    elif base is None:
        return None
    else:
        parts = [part for part in base.split("/") if part]
    dotdot = False
    for part in text.split("/"):
        if part == "..":
            dotdot = True
            if parts:
                parts.pop()
        elif part and part != ".":
            parts.append(part)
    absolute = "/" + "/".join(parts)
    root, rel = roots.locate(absolute)
    return PathFact(root, rel, dotdot, rel.startswith(".") or "/." in rel, absolute)

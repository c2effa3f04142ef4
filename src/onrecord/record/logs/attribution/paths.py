"""Paths of changed files, relative to the root of the session. Paths are data: no file system is asked.

    >>> Root("C:\\\\Users\\\\dev\\\\project").relative("/c:/Users/dev/project/src/a.py")
    'src/a.py'

Source: native-logs.md F-06.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

MAX_PATH: Final = 4096
"""Characters of a path, as Linux has them."""

_DRIVE: Final = re.compile(r"[A-Za-z]:(?=/|$)")
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")


class Root:
    """The root of a session's files, or that none is known."""

    def __init__(self, root: str | None) -> None:
        self._is_windows = root is not None and is_windows(root)
        self._parts = None if root is None else _parts(root, is_windows=self._is_windows)

    @property
    def is_known(self) -> bool:
        """Whether there is a root that paths can be relative to."""
        return self._parts is not None

    def join(self, path: str) -> str:
        """Return a path that a tool gave, made absolute if it counts from here."""
        is_foreign = is_windows(path)
        if self._parts is None or is_foreign or path[:1] == "/" or path[:5].lower() == "file:":
            return path
        if self._is_windows:
            path = path.replace("\\", "/")
        return "/".join([*self._parts, path])

    def relative(self, path: str) -> str | None:
        """Return an absolute path relative to this root, or None if it lies outside or leaves no safe path."""
        if self._parts is None:
            return None
        parts = _parts(path, is_windows=self._is_windows or is_windows(path))
        root = self._parts
        if parts is None or len(parts) <= len(root):
            return None
        head = parts[: len(root)]
        same = [part.lower() for part in head] == [part.lower() for part in root]
        if head != root and not (self._is_windows and same):
            return None
        return safe("/".join(parts[len(root) :]))


def is_windows(path: str) -> bool:
    """Return whether a path is one of Windows: with a drive, or from a server."""
    if path[:5].lower() == "file:":
        path = unquote(path[5 : MAX_PATH + 16]).lstrip("/")
    return _DRIVE.match(path.replace("\\", "/").lstrip("/")) is not None or path[:2] == "\\\\"


def safe(path: str) -> str | None:
    """Return a relative path with what says nothing left out, or None where a vCon would call it unsafe."""
    if (
        not path
        or len(path) > MAX_PATH
        or path[0] == "/"
        or "\\" in path
        or _CONTROLS.search(path)
        or is_windows(path)
    ):
        return None
    parts = [part for part in path.split("/") if part not in ("", ".")]
    return None if not parts or ".." in parts else "/".join(parts)


def _parts(path: str, *, is_windows: bool) -> list[str] | None:
    """Return the parts of an absolute path; the first is "" or the drive."""
    if len(path) > MAX_PATH:
        return None
    if path[:5].lower() == "file:":
        path = unquote(path[5:])
        if path[:2] == "//":
            path = path[2:] if path[2:3] == "/" else path[2:].partition("/")[1] + path[2:].partition("/")[2]
    if is_windows:
        path = path.replace("\\", "/").removeprefix("//?/")
        if _DRIVE.match(path[1:]) and path[0] == "/":
            path = path[1:]
    elif "\\" in path:
        return None
    drive = _DRIVE.match(path)
    if _CONTROLS.search(path) or (drive is None and path[:1] != "/"):
        return None
    head = "" if drive is None else drive[0].lower()
    parts = [part for part in path[len(head) :].split("/") if part not in ("", ".")]
    return None if ".." in parts else [head, *parts]

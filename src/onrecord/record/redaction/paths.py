"""Paths of redaction rules: JSON pointers with wildcards, or a subset of JSONPath.

    >>> parse_path("/dialog/*/body") == parse_path("$.dialog[*].body")
    True

`*` stands for every member or element, `**` for any number of levels. A number is an index in an array and a name in
an object. Filters, slices and unions of JSONPath are refused: a rule says what it looks at with `where`.

Source: record.md PR-08.
"""

from __future__ import annotations

import re
from typing import Final, NoReturn

from onrecord.base.errors import UsageError


class _Wildcard:
    """A step that is no name."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


ANY: Final = _Wildcard("*")
"""Every member or element of one level."""

DEEP: Final = _Wildcard("**")
"""Any number of levels, also none."""

Step = str | _Wildcard
Path = tuple[Step, ...]

MAX_STEPS: Final = 64
"""Steps of one path. Half the depth of the deepest vCon that is read; each step costs one look at what it matches."""

MAX_PATH_CHARACTERS: Final = 1_000
"""Length of one path: nobody writes a longer one, and it is shown in reports."""

_JSONPATH: Final = re.compile(
    r"""(?P<deep>\.\.)(?P<after>\*|[\w-]+)?   # ..name, ..*, and .. before a bracket
    |\.(?P<name>\*|[\w-]+)
    |\[(?:(?P<all>\*)|(?P<index>\d+)|'(?P<single>[^'\\]*)'|"(?P<double>[^"\\]*)")\]""",
    re.VERBOSE,
)


def parse_path(text: str) -> Path:
    """Return the steps of a path.

    Raises `UsageError` with code "redaction-path-invalid".
    """
    if len(text) > MAX_PATH_CHARACTERS:
        _refuse(f"the path has more than {MAX_PATH_CHARACTERS} characters")
    if text.startswith("/"):
        path = _pointer(text)
    elif text.startswith("$"):
        path = _jsonpath(text)
    else:
        _refuse("a path begins with / (pointer with wildcards) or $ (JSONPath)")
    if len(path) > MAX_STEPS:
        _refuse(f"the path has more than {MAX_STEPS} steps")
    return path


def written(path: Path) -> str:
    """Return a path as a pointer with wildcards.

    >>> written(parse_path("$.dialog[*]['a/b']"))
    '/dialog/*/a~1b'
    """
    names = [
        step.replace("~", "~0").replace("/", "~1") if isinstance(step, str) else str(step) for step in path
    ]
    return "".join(f"/{name}" for name in names)


def _pointer(text: str) -> Path:
    steps: list[Step] = []
    for part in text[1:].split("/"):
        if part == "*":
            steps.append(ANY)
        elif part == "**":
            steps.append(DEEP)
        elif part == "":
            _refuse("the path has an empty step")
        else:
            steps.append(part.replace("~1", "/").replace("~0", "~"))
    return tuple(steps)


def _jsonpath(text: str) -> Path:
    steps: list[Step] = []
    position = 1
    while position < len(text):
        match = _JSONPATH.match(text, position)
        if match is None:
            _refuse("the path uses something else than names, indices, *, .. and brackets")
        position = match.end()
        if match["deep"]:
            steps.append(DEEP)
            name = match["after"]
            if name is None and text[position : position + 1] != "[":
                _refuse("nothing follows ..")
        else:
            name = match["name"] or match["all"]
        if name == "*":
            steps.append(ANY)
        elif name is not None:
            steps.append(name)
        else:
            quoted = next(
                (match[group] for group in ("index", "single", "double") if match[group] is not None), None
            )
            if quoted is not None:
                steps.append(quoted)
    return tuple(steps)


def _refuse(message: str) -> NoReturn:
    raise UsageError(
        message,
        code="redaction-path-invalid",
        hint='write it like "/dialog/*/body" or "$.events[*].input.path"',
    )

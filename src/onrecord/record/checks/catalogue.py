"""The catalogue of findings about vCons: every code, its severity, the draft section it rests on, what it means.

    >>> CATALOGUE["uuid-missing"].severity
    'error'

The rows stand in `catalogue.txt` beside this module, each with a line that says what to change.
"""

from __future__ import annotations

import difflib
from importlib.resources import files
from typing import Final

from onrecord.base.errors import UsageError
from onrecord.base.findings import Code, read_table, register

STRICT: Final = frozenset(
    [
        "extension-not-listed",
        "date-not-normal",
        "base64url-lenient",
        "json-body-string",
        "legacy-name",
        "content-hash-no-sha512",
        "event-dialog-member",
        "jws-header-duplicate",
        "jws-alg-unprotected",
    ]
)
"""Warnings that `--strict` raises to errors, and no others (record.md D-73)."""

CATALOGUE: Final = read_table((files(__package__) / "catalogue.txt").read_text(encoding="utf-8"))
"""Every finding code of vCons and their forms (record.md 6)."""

register(CATALOGUE, group="vcon")


def known_code(name: str) -> Code:
    """Return the entry of a code that a person named.

    Raises `UsageError` with code "finding-code-unknown", whose hint names the nearest one.
    """
    try:
        return CATALOGUE[name]
    except KeyError:
        near = difflib.get_close_matches(name[:80], CATALOGUE, n=3, cutoff=0.5)
        raise UsageError(
            f"there is no finding code {name[:80]!r}",
            code="finding-code-unknown",
            hint=f"did you mean {' or '.join(near)}?" if near else "docs/reference/findings.md lists them",
        ) from None

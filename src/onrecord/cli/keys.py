"""Private keys as people name them on the command line."""

from __future__ import annotations

import os
from collections.abc import Container

from onrecord.base.errors import UsageError


def key_uri(text: str, schemes: Container[str]) -> str:
    """Return the URI of a key that a person named by URI or by path.

    Raises `UsageError` with code "key-not-named" for a key itself, which must not get into messages about a path.
    """
    if "-----BEGIN" in text:
        raise UsageError(
            "--key was given a key, and not where it is",
            code="key-not-named",
            hint="put it into a file of mode 0600 and name that; this key may be in the shell's history now",
        )
    scheme, colon, _ = text.partition(":")
    return text if colon and scheme in schemes else f"file:{os.path.abspath(text)}"

"""Edits of a policy source that `policy bind` makes for a person: a server that is new, a version that is due.

Source: running.md 4.2, 4.4.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from onrecord.authorize.policy.bundle import read_policy_file
from onrecord.authorize.policy.source import BUNDLE_FILE
from onrecord.base import strict_json
from onrecord.base.errors import MalformedError, PolicyError, StorageError, UsageError, Where
from onrecord.base.files import replace_whole

ROOT_NAME = "work"
"""Name of the root, and of the base, of a server that was added by `policy bind --root`."""


def add_server(source: Path, server: str, *, uid: int, root: Path, base: Path) -> bool:
    """Add a server to bundle.json whose relative paths count from `base`, and whose only root is `root`.

    A server that is there stays as it is; returns whether one was added. `uid` is that of server and guard.
    `base` is where the server opens relative paths, its working directory: counted from the root instead,
    a path beside the root would be taken for one below it.

    Raises `UsageError` with code "root-not-a-directory", `PolicyError` with code "policy-missing" or
    "policy-malformed", `StorageError` with code "policy-unwritable".
    """
    document = _read(source)
    if any(isinstance(entry, dict) and entry.get("id") == server for entry in document["servers"]):
        return False
    directory = root.expanduser().resolve()
    if not directory.is_dir():
        raise UsageError(
            "the root is no directory", code="root-not-a-directory", where=Where(file=str(directory))
        )
    document["servers"].append(
        {
            "id": server,
            "uid": uid,
            "enforce": "required",
            "refuse_methods": [],
            "discloseCaller": False,
            "roots": {ROOT_NAME: str(directory)},
            "bases": {ROOT_NAME: str(base.resolve())},
            "bindings": f"bindings/{server}.json",
        }
    )
    _write(source / "bindings" / f"{server}.json", [])
    _write(source / BUNDLE_FILE, document)
    return True


def raise_version(source: Path, *, bundle: Path) -> int | None:
    """Raise the version of a source above that of the signed bundle; returns the new one, or None if it is above.

    Raises as `add_server` does.
    """
    document = _read(source)
    try:
        signed, _ = strict_json.parse(read_policy_file(bundle))
        present = signed["version"]
        if document["version"] > present:
            return None
        document["version"] = present + 1
    except (PolicyError, MalformedError, KeyError, TypeError):
        return None  # nothing signed yet, or nothing to compare: `policy sign` says what is wrong
    _write(source / BUNDLE_FILE, document)
    return int(document["version"])


def _read(source: Path) -> dict[str, Any]:
    path = source / BUNDLE_FILE
    try:
        document, _ = strict_json.parse(read_policy_file(path, follow=True))
    except MalformedError as error:
        raise PolicyError(str(error), code="policy-malformed", where=Where(file=str(path))) from None
    if not isinstance(document, dict) or not isinstance(document.get("servers"), list):
        raise PolicyError(
            "expected an object with a list of servers", code="policy-malformed", where=Where(file=str(path))
        )
    return document


def _write(path: Path, document: Any) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_whole(path, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode(), mode=0o644)
    except OSError as error:
        raise StorageError(
            f"cannot write the policy source ({error.strerror})",
            code="policy-unwritable",
            where=Where(file=str(path)),
        ) from error

"""The first policy source, which `onrecord init` writes: nothing is allowed but reading, and no server is there yet.

Source: running.md 4.5.
"""

from __future__ import annotations

import json
import os
from importlib import resources
from pathlib import Path
from typing import Any, Final

from onrecord.authorize.policy import rules
from onrecord.authorize.policy.lint import Mode
from onrecord.authorize.policy.model import FORMAT, NOBODY
from onrecord.base.errors import ConfigurationError, Where

PLACEHOLDER_UID: Final = 60_001
"""Uid of the caller until the operator enters the real one; no account has it by default."""

STARTER_FILE: Final = "10-starter.cedar"
"""File of the starter rules below policies/."""

CONTROL_ROLES: Final = ("auditor", "operator", "supervisor", "policy-admin")


def starter_rules() -> str:
    """Return the Cedar text of the starter policy."""
    file = resources.files("onrecord.authorize.policy").joinpath(f"data/policies/{STARTER_FILE}")
    return file.read_text(encoding="utf-8")


def starter_document(
    *, mode: Mode, uid: int, approver: str, caller: str = "agent", agent_uid: int | None = None
) -> dict[str, Any]:
    """Return the members of bundle.json. `uid` is that of the person who sets this up.

    In user mode uids say nothing, and caller and person have the same one. In system mode the caller has `agent_uid`,
    or a placeholder.
    """
    person = uid if uid not in NOBODY else PLACEHOLDER_UID + 1
    agent = person if mode == "user" else PLACEHOLDER_UID + (2 if person == PLACEHOLDER_UID else 0)
    agent = agent if agent_uid is None else agent_uid
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": 1,
        "entities": [],
        "callers": [{"id": caller, "uid": agent, "role": "agent", "groups": ["agents"]}],
        "servers": [],
        "groups": {"callers": ["agents"], "approvers": ["operators"]},
        "approvers": [
            {
                "id": approver,
                "uid": person,
                "groups": ["operators"],
                "channels": ["terminal"],
                "credentials": [],
            }
        ],
        "controlRoles": [{"uid": person, "roles": list(CONTROL_ROLES)}],
        "proofSeconds": 15,
        "descriptions": "off",
        "unknown": {"effect": "forbid"},
        "userMode": {"caller": caller, "approver": approver, "controlRoles": list(CONTROL_ROLES)},
        "limits": {},
        "retention": {"journalDays": 400, "bodyDays": 30},
    }
    if mode == "system":
        del document["userMode"]
    return document


def write_source(
    directory: Path,
    *,
    mode: Mode,
    uid: int,
    approver: str,
    caller: str = "agent",
    agent_uid: int | None = None,
) -> tuple[Path, ...]:
    """Write a source directory with the starter policy and return the files; nothing is overwritten.

    Raises `ConfigurationError` with code "exists" or "unwritable".
    """
    document = starter_document(mode=mode, uid=uid, approver=approver, caller=caller, agent_uid=agent_uid)
    texts = {
        directory / "bundle.json": json.dumps(document, indent=1) + "\n",
        directory / "schema.cedar": rules.shipped_schema(),
        directory / "policies" / STARTER_FILE: starter_rules(),
        directory / "tests.json": "[]\n",
    }
    directory_mode, file_mode = (0o755, 0o644) if mode == "system" else (0o700, 0o644)
    path = directory
    try:
        for path in (directory, directory / "policies", directory / "bindings"):
            if not path.is_dir():
                path.mkdir(parents=True)
                path.chmod(directory_mode)
        for path, text in texts.items():
            descriptor = os.open(
                path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, file_mode
            )
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                os.fchmod(descriptor, file_mode)
                file.write(text)
    except FileExistsError:
        raise ConfigurationError(
            "the file exists already", code="exists", where=Where(file=str(path))
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the file ({error.strerror})", code="unwritable", where=Where(file=str(path))
        ) from error
    return tuple(texts)

"""The accounts of system mode: users and groups that must exist, and the people who use the installation.

`init` makes no accounts: it names the commands that do.

Source: running.md 2.1, 4.5.
"""

from __future__ import annotations

import dataclasses
import grp
import os
import pwd
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onrecord.authorize.role_uids import role_uids
from onrecord.base.configuration import user_number
from onrecord.base.errors import ConfigurationError, UsageError, Where

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from onrecord.base.configuration import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Who uses a system-mode installation: user names or numbers, and where the policy key is put.

    `agent` is the account that agents run under, `operator` the person who approves calls and has the control roles
    (None: whoever stands behind sudo). With `policy_key` the policy is signed at once; the key belongs elsewhere.
    """

    agent: str | int | None = None
    operator: str | int | None = None
    policy_key: Path | None = None


def initializing_user() -> str:
    """Return the name of the person at the keyboard, also below sudo, in the form of a bundle's id; never empty."""
    name = os.environ.get("SUDO_USER") if os.geteuid() == 0 else None
    if not name:
        try:
            name = pwd.getpwuid(os.getuid()).pw_name
        except KeyError:
            name = f"uid-{os.getuid()}"
    return identifier_of(name, uid=os.getuid())


def identifier_of(name: str, *, uid: int) -> str:
    """Return a user name in the form of a bundle's id; `uid-N` for a number or a name without a usable character."""
    if name.isdecimal():
        return f"uid-{uid}"
    return re.sub(r"[^a-z0-9._-]", "-", name.lower()).lstrip("._-")[:64] or f"uid-{uid}"


def initializing_uid() -> int:
    """Return the uid of the person at the keyboard, also below sudo; 0 for root alone."""
    text = os.environ.get("SUDO_UID", "") if os.geteuid() == 0 else ""
    return int(text) if text.isdecimal() else os.getuid()


def require_accounts(configuration: Configuration) -> None:
    """Make sure that the users and groups of system mode exist.

    Raises `ConfigurationError` with code "accounts-missing" and the commands that make them.
    """
    principals = configuration.principals
    if principals is None:
        return
    users = [principals.authority, principals.recorder]
    users += [one.user for one in configuration.servers.values() if one.user is not None]
    groups = [
        getattr(principals, one.name) for one in dataclasses.fields(principals) if one.name.endswith("_group")
    ]
    commands = [
        f"groupadd --system {one}" for one in groups if isinstance(one, str) and not _known(grp.getgrnam, one)
    ]
    commands += [
        f"useradd --system --user-group --no-create-home --shell /usr/sbin/nologin {one}"
        for one in dict.fromkeys(users)
        if isinstance(one, str) and not _known(pwd.getpwnam, one)
    ]
    if commands:
        raise ConfigurationError(
            f"{len(commands)} users and groups of system mode do not exist",
            code="accounts-missing",
            hint="; ".join(commands),
            where=Where(file=str(configuration.file)),
        )


def require_apart(configuration: Configuration, people: People) -> None:
    """Make sure that the agent and the operator share no uid with each other or with a role.

    Raises `ConfigurationError` with code "uids-shared", "user-unknown", "user-root" or "user-nobody", and in user mode
    `UsageError` with code "usage" if anybody is named.
    """
    if configuration.mode == "user":
        if people != People():
            raise UsageError(
                "in user mode everybody has the same uid, so nobody is named",
                code="usage",
                hint="--mode system gives each role a uid of its own",
            )
        return
    seen = {uid: name for name, uid in role_uids(configuration).items()}
    for name, user in (("agent", people.agent), ("operator", people.operator)):
        if user is None:
            continue
        uid = user_number(user, file=configuration.file)
        other = seen.setdefault(uid, name)
        if other != name:
            raise ConfigurationError(
                f"{other} and {name} share uid {uid}",
                code="uids-shared",
                hint="give each its own user; isolation stands on that",
                where=Where(file=str(configuration.file)),
            )


def _known(look_up: Callable[[str], object], name: str) -> bool:
    try:
        look_up(name)
    except KeyError:
        return False
    return True

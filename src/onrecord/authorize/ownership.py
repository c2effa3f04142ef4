"""Is everything owned by whom it should be? Checked by `onrecord up` before it starts anything, and by `doctor`.

Source: running.md 2.1 and 2.2; call-proof.md 4.1.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onrecord.authorize.setup.initialize import ca_key_path
from onrecord.authorize.setup.places import check_directory, directories
from onrecord.base.errors import ConfigurationError, OnrecordError, Where
from onrecord.base.sockets import check_private_path

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration

_WRITABLE = 0o022
_PRIVATE = 0o077
_CERTIFICATES = (".pem", ".crt", ".cer", ".der")


@dataclass(frozen=True, slots=True)
class Owned:
    """One object: what it is, and a check that raises `ConfigurationError`; `needed` is False if it may be missing."""

    what: str
    path: Path
    check: Callable[[], object]
    needed: bool = True


def owned_objects(configuration: Configuration) -> Iterator[Owned]:
    """Yield everything that the table of the mode names, directories first.

    Raises `ConfigurationError` with code "user-unknown" or "group-unknown" where an account is missing.
    """
    for directory in directories(configuration):
        yield Owned("directory", directory.path, _call(check_directory, directory))
    system = configuration.mode == "system"
    own = os.getuid()
    public = 0 if system else own
    bundle = configuration.policy.bundle
    yield _file("configuration", configuration.file, public, _WRITABLE)
    yield _file("trust file", configuration.trust.policy, public, _WRITABLE)
    yield _file("trust file", configuration.trust.journal, public, _WRITABLE)
    yield _file("policy bundle", bundle, public, _WRITABLE, needed=False)
    yield _file("policy signature", bundle.with_name(bundle.name + ".sig"), public, _WRITABLE, needed=False)
    keys = configuration.keys
    authority, recorder = configuration.authority_uid, configuration.recorder_uid
    for what, uri, uid in (
        ("proof key", keys.proof, authority),
        ("authority journal key", keys.authority_journal, authority),
        ("recorder journal key", keys.recorder_journal, recorder),
        ("record key", keys.record, recorder),
    ):
        yield _file(what, Path(uri.removeprefix("file:")), uid, _PRIVATE)
    yield _file("record chain", keys.record_chain, recorder, _WRITABLE)
    if keys.policy is not None:
        yield _file("policy key", Path(keys.policy.removeprefix("file:")), public, _PRIVATE, needed=False)
    yield _file("CA key", ca_key_path(configuration), public, _PRIVATE, needed=False)
    for anchor in _anchors(configuration.trust.vcon):
        yield _file("record anchor", anchor, public, _WRITABLE)
    for server in configuration.servers.values():
        if server.env_file is not None:
            yield _file("environment file", server.env_file, configuration.server_uid(server.id), _PRIVATE)


def _anchors(directory: Path) -> tuple[Path, ...]:
    try:
        return tuple(sorted(one for one in directory.iterdir() if one.suffix in _CERTIFICATES))
    except OSError:
        return ()


def check_ownership(configuration: Configuration) -> None:
    """Raise the first error of `problems`."""
    for problem in problems(configuration):
        raise problem


def problems(configuration: Configuration) -> Iterator[OnrecordError]:
    """Yield what is wrong. What this uid may not look at is not wrong."""
    for owned in owned_objects(configuration):
        problem = problem_of(owned)
        if problem is not None:
            yield problem


def problem_of(owned: Owned) -> OnrecordError | None:
    """Return what is wrong with one object, or None."""
    try:
        owned.check()
    except ConfigurationError as error:
        if error.code == "path-missing":
            cause = error.__cause__
            if isinstance(cause, PermissionError) or (
                not owned.needed and isinstance(cause, FileNotFoundError)
            ):
                return None
        return error
    return None


def is_hidden(owned: Owned) -> bool:
    """Say whether this uid cannot even look at the object."""
    try:
        os.lstat(owned.path)
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _call(function: Callable[..., object], *arguments: object) -> Callable[[], object]:
    return lambda: function(*arguments)


def _file(what: str, path: Path, owner: int, forbidden: int, *, needed: bool = True) -> Owned:
    def check() -> None:
        status = check_private_path(path, owners={owner}, mode_forbidden=forbidden)
        where = Where(file=str(path))
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"the {what} is not a regular file", code="path-kind", where=where)
        if status.st_uid != owner:
            raise ConfigurationError(
                f"the {what} belongs to uid {status.st_uid}, expected {owner}",
                code="path-owner",
                hint=f"chown {owner} {path}",
                where=where,
            )

    return Owned(what, path, check, needed)

"""The policy in force: a signed bundle, read strictly and checked before anything uses it.

    >>> from pathlib import Path
    >>> load_bundle(Path("/nowhere/policy.bundle.json"), {})
    Traceback (most recent call last):
        ...
    onrecord.base.errors.PolicyError: there is no policy bundle

Source: call-proof.md 8.1, 8.2; running.md 4.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from onrecord.authorize.policy.codes import finding
from onrecord.authorize.policy.model import (
    NOBODY,
    Approver,
    Caller,
    ControlRole,
    Document,
    GroupEntity,
    Groups,
    Limits,
    Retention,
    ServerPolicy,
    UnknownApproval,
    UnknownForbid,
    UserMode,
    decode,
)
from onrecord.base import strict_json
from onrecord.base.errors import MalformedError, PolicyError, Where
from onrecord.base.files import read_regular
from onrecord.base.findings import Finding

MAX_BUNDLE_BYTES: Final = 16 * 1024 * 1024
"""Largest bundle read: 2000 policies and some thousand bindings fit many times."""

BUNDLE_DEPTH: Final = 32
"""Deepest nesting of a bundle; the format needs 9."""


@dataclass(frozen=True, slots=True)
class LoadedVersion:
    """A version that was in force: number and SHA-256 of the file in hex."""

    version: int
    sha256: str


@dataclass(frozen=True)
class Bundle:
    """One policy bundle. `sha256` is that of the file's bytes, in hex."""

    document: Document = field(repr=False)
    sha256: str

    @property
    def version(self) -> int:
        """Return the version, a number from 1 on."""
        return self.document.version

    @property
    def created(self) -> str:
        """Return when the bundle was signed."""
        return self.document.created

    @property
    def policies(self) -> str:
        """Return the Cedar text of all rules, without the built-in one."""
        return self.document.policies

    @property
    def entities(self) -> tuple[GroupEntity, ...]:
        """Return the nesting of groups."""
        return self.document.entities

    @property
    def groups(self) -> Groups:
        """Return every group name."""
        return self.document.groups

    @property
    def callers(self) -> tuple[Caller, ...]:
        """Return all callers; several uids for one id are several entries."""
        return self.document.callers

    @cached_property
    def servers(self) -> Mapping[str, ServerPolicy]:
        """Return the servers by id."""
        return {server.id: server for server in self.document.servers}

    @property
    def approvers(self) -> tuple[Approver, ...]:
        """Return all approvers."""
        return self.document.approvers

    @cached_property
    def control_roles(self) -> Mapping[int, frozenset[ControlRole]]:
        """Return the control roles by uid, for system mode."""
        return {entry.uid: frozenset(entry.roles) for entry in self.document.control_roles}

    @property
    def proof_seconds(self) -> int:
        """Return the window of a proof, 1 to 30 seconds."""
        return self.document.proof_seconds

    @property
    def unknown(self) -> UnknownForbid | UnknownApproval:
        """Return what the built-in rule does with unknown facts."""
        return self.document.unknown

    @property
    def user_mode(self) -> UserMode | None:
        """Return who is who in user mode; None: the bundle is for system mode only."""
        return self.document.user_mode

    @property
    def limits(self) -> Limits:
        """Return the limits of the authority."""
        return self.document.limits

    @property
    def retention(self) -> Retention:
        """Return how long records are kept."""
        return self.document.retention

    @property
    def loaded_version(self) -> LoadedVersion:
        """Return what rollback protection remembers of this bundle."""
        return LoadedVersion(self.version, self.sha256)

    @cached_property
    def _shared_uids(self) -> frozenset[int]:
        """Uids with two roles or ids: in system mode they are nobody's (in user mode uids say nothing)."""
        exclusive = [
            *(caller.uid for caller in self.callers),
            *(server.uid for server in self.document.servers),
        ]
        people = {*(person.uid for person in self.approvers), *self.control_roles}
        counted = Counter((*exclusive, *people))
        approvers = Counter(person.uid for person in self.approvers)
        return frozenset(
            {uid for uid, count in counted.items() if count > 1}
            | {uid for uid, count in approvers.items() if count > 1}
            | NOBODY
        )

    @cached_property
    def _caller_uids(self) -> Mapping[int, Caller]:
        return {caller.uid: caller for caller in self.callers if caller.uid not in self._shared_uids}

    @cached_property
    def _caller_ids(self) -> Mapping[str, Caller]:
        return {caller.id: caller for caller in self.callers}

    @cached_property
    def _server_uids(self) -> Mapping[int, ServerPolicy]:
        return {server.uid: server for server in self.document.servers if server.uid not in self._shared_uids}

    def caller_by_uid(self, uid: int) -> Caller | None:
        """Return the caller that this uid is, in system mode."""
        return self._caller_uids.get(uid)

    def caller(self, caller_id: str) -> Caller | None:
        """Return an entry of this caller id; all entries of one id are alike but for uid and hints."""
        return self._caller_ids.get(caller_id)

    def server_by_uid(self, uid: int) -> ServerPolicy | None:
        """Return the server that this uid runs, in system mode."""
        return self._server_uids.get(uid)

    def control_roles_of(self, uid: int) -> frozenset[ControlRole]:
        """Return the control roles of a uid, in system mode; none for most."""
        return frozenset() if uid in self._shared_uids else self.control_roles.get(uid, frozenset())

    def approver_by_uid(self, uid: int) -> Approver | None:
        """Return the approver that this uid is, in system mode."""
        if uid in self._shared_uids:
            return None
        return next((person for person in self.approvers if person.uid == uid), None)

    def groups_above(self, names: tuple[str, ...]) -> frozenset[str]:
        """Return these groups and all groups that they lie in."""
        parents = {entity.uid.id: tuple(parent.id for parent in entity.parents) for entity in self.entities}
        found: set[str] = set()
        pending = list(names)
        while pending:
            name = pending.pop()
            if name not in found:
                found.add(name)
                pending.extend(parents.get(name, ()))
        return frozenset(found)

    def approvers_of(self, group: str) -> tuple[Approver, ...]:
        """Return the approvers in a group, also by way of nested groups."""
        return tuple(person for person in self.approvers if group in self.groups_above(person.groups))


def read_bundle(data: bytes) -> tuple[Bundle | None, tuple[Finding, ...]]:
    """Read the bytes of a bundle strictly; without one, the findings say why.

    Nothing is said of its consistency: that is the lint's.
    """
    try:
        value, _ = strict_json.parse(data, max_depth=BUNDLE_DEPTH, max_bytes=MAX_BUNDLE_BYTES)
    except MalformedError as error:
        return None, (finding("bundle-json", "", str(error)),)
    try:
        return Bundle(decode(value), hashlib.sha256(data).hexdigest()), ()
    except msgspec.ValidationError as error:
        return None, (malformed(error),)


_PLACE = re.compile(r"(.*?)(?: - at `(\$?.*)`)?", re.DOTALL)


def malformed(error: msgspec.ValidationError, *, prefix: str = "") -> Finding:
    """Return the finding of a validation error; its pointer ends where the text names no member."""
    match = _PLACE.fullmatch(str(error))
    message, place = (match[1], match[2] or "") if match else (str(error), "")
    place = place.removeprefix("$").split("[...]", 1)[0]
    pointer = prefix + "".join(
        f"/{part}"
        for part in re.split(r"[.\[\]]+", place.removeprefix("key in ").strip(". "))
        if part and part != "$"
    )
    return finding("bundle-malformed", pointer, message)


def read_policy_file(path: Path, *, follow: bool = False, limit: int = MAX_BUNDLE_BYTES) -> bytes:
    """Return the bytes of a regular file of at most `limit` bytes; without `follow` no symbolic link is followed.

    Raises `PolicyError` with code "policy-missing" or "policy-unreadable".
    """
    where = Where(file=str(path))
    try:
        return read_regular(path, limit_bytes=limit, follow=follow)
    except FileNotFoundError:
        raise PolicyError(
            "there is no policy bundle",
            code="policy-missing",
            where=where,
            hint="onrecord policy sign DIR makes it from its source directory",
        ) from None
    except OSError as error:
        raise PolicyError(
            f"cannot read the file ({error.strerror})", code="policy-unreadable", where=where
        ) from error

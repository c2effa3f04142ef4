"""What remembers the newest policy that was in force, so that an older one does not come back.

Source: call-proof.md 8.2. The counter `nv` is that of a TPM, which is for later; it stays 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from onrecord.authorize.policy.bundle import Bundle, LoadedVersion
from onrecord.authorize.policy.loading import check_succession
from onrecord.base import strict_json
from onrecord.base.canonical import compact
from onrecord.base.errors import MalformedError, PolicyError, StorageError, Where
from onrecord.base.files import read_regular, replace_whole

MAX_STATE_BYTES: Final = 4096
"""Largest state file read; ours has about 110 bytes."""


@dataclass(frozen=True, slots=True)
class RollbackState:
    """The state file. `previous` is None before the first bundle was accepted."""

    path: Path
    previous: LoadedVersion | None

    @classmethod
    def load(cls, path: Path) -> RollbackState:
        """Read the state; no file means that no bundle was accepted yet.

        Raises `PolicyError` with code "policy-state" for a file that is damaged or unreadable: guessing would open the
        door that it guards.
        """
        where = Where(file=str(path))
        try:
            data = read_regular(path, limit_bytes=MAX_STATE_BYTES)
        except FileNotFoundError:
            return cls(path, None)
        except OSError as error:
            raise _damaged(f"cannot read the file ({error.strerror})", where) from error
        try:
            value, _ = strict_json.parse(data, max_bytes=MAX_STATE_BYTES)
        except MalformedError:
            raise _damaged("the file is not JSON", where) from None
        if (
            not isinstance(value, dict)
            or set(value) != {"version", "sha256", "nv"}
            or type(value["version"]) is not int
            or value["version"] < 1
            or not isinstance(value["sha256"], str)
            or len(value["sha256"]) != 64
            or type(value["nv"]) is not int
            or value["nv"] != 0
        ):
            raise _damaged("the file does not hold version, sha256 and nv", where)
        return cls(path, LoadedVersion(value["version"], value["sha256"]))

    def check(self, bundle: Bundle) -> None:
        """Make sure that this bundle may come into force.

        Raises `PolicyError` with code "policy-rollback".
        """
        if self.previous is not None:
            check_succession(bundle.loaded_version, self.previous)

    def accept(self, bundle: Bundle) -> RollbackState:
        """Check and remember a bundle that comes into force, on disk before this returns.

        Raises `PolicyError` with code "policy-rollback" or `StorageError` with code "policy-state-unwritable"; the
        state on disk is then the old one.
        """
        self.check(bundle)
        version = bundle.loaded_version
        if version != self.previous:
            data = compact({"version": version.version, "sha256": version.sha256, "nv": 0}) + b"\n"
            try:
                replace_whole(self.path, data, mode=0o600)
            except OSError as error:
                raise StorageError(
                    f"cannot write the policy state ({error.strerror})",
                    code="policy-state-unwritable",
                    where=Where(file=str(self.path)),
                ) from error
        return RollbackState(self.path, version)


def _damaged(message: str, where: Where) -> PolicyError:
    return PolicyError(
        f"the policy state cannot be used: {message}",
        code="policy-state",
        where=where,
        hint="find out who changed it; then remove it, and check that the bundle is the newest one",
    )

"""Loading policy: files that only their owner can change, a good signature, no step back.

Source: call-proof.md 4.1 (ownership), 8.1, 8.2; running.md 2, 4.2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from onrecord.authorize.authority.state import PolicyInForce
from onrecord.authorize.policy import Policy, RollbackState, load_bundle
from onrecord.base.errors import OnrecordError, PolicyError
from onrecord.base.keys import read_trusted_keys
from onrecord.base.sockets import check_private_path

if TYPE_CHECKING:
    from pathlib import Path

    from onrecord.authorize.policy import Bundle

ROLLBACK_FILE: Final = "policy.state"
"""Name of the rollback state in the authority's state directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What a load gave: a policy that may be put in force, or why not (an error code and what to do)."""

    in_force: PolicyInForce | None
    fault: str | None = None
    message: str | None = None
    hint: str | None = None


class PolicyKeeper:
    """Loads bundles from the configured place and remembers the newest version that was in force. Blocking."""

    def __init__(
        self, *, bundle: Path, trust: Path, rollback: Path, is_user_mode: bool, own_uid: int
    ) -> None:
        self._bundle = bundle
        self._trust = trust
        self._rollback = rollback
        self._is_user_mode = is_user_mode
        self._owners = {own_uid} if is_user_mode else set()

    def load(self) -> Candidate:
        """Load the bundle and compile its rules; nothing is in force by that."""
        try:
            return Candidate(in_force=self._load())
        except OnrecordError as error:
            return Candidate(in_force=None, fault=error.code, message=str(error), hint=error.hint)

    def _load(self) -> PolicyInForce:
        signature = self._bundle.with_name(self._bundle.name + ".sig")
        for path in (self._bundle, signature, self._trust):
            if path == self._trust or path.exists():
                check_private_path(path, owners=self._owners, mode_forbidden=0o022)
        state = RollbackState.load(self._rollback)
        bundle = load_bundle(
            self._bundle,
            read_trusted_keys(self._trust),
            previous=state.previous,
            mode="user" if self._is_user_mode else "system",
        )
        if self._is_user_mode and bundle.user_mode is None:
            raise PolicyError(
                "the bundle has no member userMode",
                code="policy-user-mode",
                hint="add userMode to bundle.json: it says which caller and approver this user is",
            )
        return PolicyInForce(bundle=bundle, policy=Policy(bundle))

    def accept(self, bundle: Bundle) -> None:
        """Remember that this bundle comes into force; on disk before this returns.

        Raises `PolicyError` with code "policy-rollback" or `StorageError`.
        """
        RollbackState.load(self._rollback).accept(bundle)

    def control_roles(self, bundle: Bundle, uid: int) -> frozenset[str]:
        """Return the control roles that a bundle gives to a uid in this mode."""
        if self._is_user_mode:
            return frozenset() if bundle.user_mode is None else frozenset(bundle.user_mode.control_roles)
        return frozenset(bundle.control_roles_of(uid))

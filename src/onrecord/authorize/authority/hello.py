"""callProof/hello: version, features and state of the authority. Also the health probe.

Source: call-proof.md 5.1, 5.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onrecord.authorize.authority.params import COVERED_METHODS, read_hello
from onrecord.base.namespaces import PROTOCOL_VERSION
from onrecord.base.wire import LINE_BYTES

if TYPE_CHECKING:
    from onrecord.authorize.authority.state import AuthorityState

FEATURES: Final = ("inputDigest", "peerUid")
"""Additions of version "1" that this authority has (call-proof.md 5.5)."""

DEFAULT_PROOF_SECONDS: Final = 15
"""The window that is announced while no policy says another one."""


def hello(state: AuthorityState, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a hello.

    Raises `RefusedRequest` with unsupported_version or invalid_params.
    """
    read_hello(params)
    seconds = DEFAULT_PROOF_SECONDS if state.in_force is None else state.in_force.bundle.proof_seconds
    return {
        "version": PROTOCOL_VERSION,
        "evidenceTypes": [profile.type for profile in state.profiles],
        "methods": list(COVERED_METHODS),
        "features": list(FEATURES),
        "maxMessageBytes": LINE_BYTES,
        "maxProofSeconds": seconds,
        "status": state.status,
    }

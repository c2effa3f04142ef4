"""The Action Digest: which call a proof is for.

>>> from onrecord.authorize.digest import action_digest
>>> str(action_digest("tools/call", "read_file", {"path": "repo/README.md"}))
'kYDQcUpVz7E57-sIPwtHHXdp-lOn9_jaIxYRTVnR4CM'

Authority, relay, connector and client helper all use the functions of this module and no other.

Source: call-proof.md 3.1, 5.5 (CP section 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onrecord.base import canonical, strict_json
from onrecord.base.hashes import ActionDigest, InputDigest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onrecord.base.strict_json import Facts

INPUT_MEMBERS: Final = ("inputResponses", "requestState")
"""Members of a later round that the Action Digest leaves out and the input digest covers."""

__all__ = ["INPUT_MEMBERS", "action_digest", "digest_of_text", "input_digest"]


def action_digest(
    method: str, name: str, arguments: Mapping[str, Any], facts: Facts | None = None
) -> ActionDigest:
    """Return the digest of a parsed call.

    `arguments` is the object that the strict reader returned, `{}` for a call without the member. `facts` are those
    of the same parse; they allow the fast canonical form, whose bytes are the same. Nothing is normalized.

    Raises `MalformedError` with code "not-canonical" for a value that strict reading never returns.

    Source: call-proof.md 3.1, 3.3.
    """
    return ActionDigest.of(
        canonical.canonicalize({"arguments": arguments, "method": method, "name": name}, facts)
    )


def input_digest(params: Mapping[str, Any], facts: Facts | None = None) -> InputDigest | None:
    """Return the digest of the inputs of a later round, or None for a call without them.

    `params` are those of a tools/call or of callProof/issue; the members `inputResponses` and `requestState` count as
    far as they are there.

    Source: call-proof.md 5.5.
    """
    inputs = {member: params[member] for member in INPUT_MEMBERS if member in params}
    return InputDigest.of(canonical.canonicalize(inputs, facts)) if inputs else None


def digest_of_text(name: str, arguments: bytes | None = None, *, method: str = "tools/call") -> ActionDigest:
    """Return the digest of a call whose arguments are still a JSON text, or absent (None).

    Raises `strict_json.Refused` with the class of call-proof.md 3.2 that the text falls under.
    """
    if arguments is None:
        return action_digest(method, name, {}, facts=strict_json.PLAIN)
    value, facts = strict_json.parse_arguments(arguments)
    return action_digest(method, name, value, facts=facts)

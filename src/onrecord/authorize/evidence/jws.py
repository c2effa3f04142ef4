"""Signed proofs: a compact JWS whose claims name the call. An auditor can check one later with the public key.

The authority keeps a record for each of them as for a handle, so freshness and single use do not hang on the claims.

Source: call-proof.md 7.1 (second column), 7.2; RFC 7515 section 7.1, RFC 9864.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from onrecord.authorize.evidence.handle import HandleProfile
from onrecord.authorize.evidence.interface import (
    EvidenceProfile,
    ForeignEvidence,
    ProfileFacts,
    ProfileSupplies,
    ProofClaims,
    ProofKey,
)
from onrecord.base.canonical import compact
from onrecord.base.errors import MalformedError, OnrecordError, SignatureError
from onrecord.base.hashes import b64url, b64url_decode_strict
from onrecord.base.jose import verify_signature
from onrecord.base.keys import ed25519_public_bytes
from onrecord.base.namespaces import JWS_TYPE
from onrecord.base.strict_json import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onrecord.base.keys import Signer

ALG: Final = "Ed25519"
"""The fully specified name of RFC 9864; "EdDSA" says less, and "none" says nothing."""

TYP: Final = "callproof+jws"
"""Type of these tokens, so that nobody takes another JWS of this key for a proof (RFC 8725 section 3.11)."""

MAX_CHARACTERS: Final = 1200
"""Longest value: a server id of 64 and a caller id of 256 characters, all of which need an escape, and inputs."""

RECENT_VALUES: Final = 4096
"""Values made here and not read back yet. One of them needs no signature check, since it is the very text.

Making and checking a signature take 0.2 ms together, and the budget of this profile is 0.15 (call-proof.md 13, B4).
"""

_FORM: Final = re.compile(r"([A-Za-z0-9_-]{1,256})\.([A-Za-z0-9_-]{1,2048})\.([A-Za-z0-9_-]{86})", re.ASCII)


class JwsProfile(EvidenceProfile):
    """Values that are signed with the authority's proof key.

    `kid` names the key in the header; by default it is the key id of trust files. The header is one constant text:
    a value with any other header was not made here, whatever it says, and is never interpreted.

    Raises `KeyAccessError` with code "key-alg" if the key is no Ed25519 key.
    """

    type: ClassVar[str] = JWS_TYPE
    short_name: ClassVar[str] = "jws"
    min_characters: ClassVar[int] = 300
    max_characters: ClassVar[int] = MAX_CHARACTERS
    facts: ClassVar[ProfileFacts] = ProfileFacts(
        identifier=JWS_TYPE,
        format=(
            'compact JWS, header {"alg":"Ed25519","kid":K,"typ":"callproof+jws"}, claims ad, exp, iat, ind, jti, srv '
            "and sub in canonical JSON; about 380 characters, at most 512 for ids of up to 30 characters"
        ),
        commitment=(
            "claim ad is the Action Digest, srv the server, sub the caller, ind the input digest where there is one, "
            "all under the signature; and by the record that the authority holds under jti"
        ),
        validity=(
            "exp is iat plus proofSeconds of the policy bundle, 15 by default, 30 at most; the authority's record "
            "decides by the clock since boot, exp is for auditors"
        ),
        keys=(
            "an Ed25519 key that onrecord init makes for this purpose alone (keys.proof), mode 0600, readable by the "
            "authority only; another key is another kid; the start record in the decision journal publishes the "
            "public key"
        ),
        single_use="the record under jti is marked used in the step that answers valid",
    )

    def __init__(
        self,
        signer: Signer,
        *,
        kid: str | None = None,
        randomness: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._public = b64url(ed25519_public_bytes(signer))
        self._signer = signer
        self._kid = signer.kid if kid is None else kid
        self._header = b64url(compact({"alg": ALG, "kid": self._kid, "typ": TYP}))
        self._ids = HandleProfile(randomness=randomness)
        self._recent: dict[str, ProofKey] = {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._kid}>"

    @classmethod
    def make(cls, supplies: ProfileSupplies) -> Self:
        return cls(supplies.proof_key(), randomness=supplies.randomness)

    def published(self) -> Mapping[str, str]:
        """Return `kid` and `publicKey`, base64url of the 32 bytes."""
        return {"kid": self._kid, "publicKey": self._public}

    def mint(self, claims: ProofClaims, *, start_id: bytes) -> tuple[str, ProofKey]:
        jti, key = self._ids.mint(claims, start_id=start_id)
        payload: dict[str, Any] = {
            "ad": claims.action_digest,
            "exp": claims.issued_seconds + claims.window_seconds,
            "iat": claims.issued_seconds,
            "jti": jti,
            "srv": claims.server,
            "sub": claims.caller,
        }
        if claims.input_digest is not None:
            payload["ind"] = claims.input_digest
        signed = f"{self._header}.{b64url(compact(payload))}"
        value = f"{signed}.{b64url(self._signer.sign(signed.encode('ascii'), alg=ALG))}"
        if len(self._recent) >= RECENT_VALUES:
            del self._recent[next(iter(self._recent))]
        self._recent[value] = key
        return value, key

    def read(self, value: str) -> ProofKey:
        made_here = self._recent.pop(value, None)
        if made_here is not None:
            return made_here
        parts = _FORM.fullmatch(value)
        if parts is None:
            raise MalformedError("a signed proof is a compact JWS", code="jws-malformed")
        header, payload, signature = parts.groups()
        # All three must be canonical, also in a value of somebody else's: a spelling is no second proof.
        _, claims, signature_bytes = (b64url_decode_strict(part) for part in (header, payload, signature))
        if header != self._header:
            raise ForeignEvidence
        try:
            signed = f"{header}.{payload}".encode("ascii")
            verify_signature(ALG, self._signer.public_key, signed, signature_bytes)
            return self._ids.read(_jti(claims))
        except (SignatureError, MalformedError):
            raise ForeignEvidence from None


def _jti(claims: bytes) -> str:
    """Return the claim jti of a payload whose signature is good, which only this key's holder can have made."""
    try:
        document, _ = parse(claims)
    except OnrecordError:
        document = None
    jti = document.get("jti") if isinstance(document, dict) else None
    if not isinstance(jti, str):
        raise MalformedError("the claims have no jti", code="jws-malformed")
    return jti


__all__ = ["JwsProfile"]

"""Compact JWS and JWE made into the general JSON form that vCons have.

Source: record.md D-28, 2.14; RFC 7515 section 7.1; RFC 7516 section 7.1.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from onrecord.base.canonical import compact
from onrecord.base.errors import MalformedError
from onrecord.record.forms._rfc7515 import MAX_HEADER_BYTES, decode
from onrecord.record.forms.compression import decompress
from onrecord.record.forms.opening import COMPACT
from onrecord.record.vcon.reader import MAX_BYTES, read_json


def convert_compact(
    data: bytes, *, chain: Sequence[x509.Certificate] = (), max_bytes: int = MAX_BYTES
) -> bytes:
    """Return a compact JWS or JWE, bare or as a JSON string, as General JSON. What was signed stays as it is.

    A compact JWS has no room for an unprotected header. `chain`, leaf first, is put there if its header names no
    certificate, and the uuid of the vCon if the header has none. Nothing is verified.

    Raises `MalformedError` with code "form-not-compact", or one of record.md 6.2 for a payload that cannot be read.

    Source: record.md D-28.
    """
    match = COMPACT.fullmatch(decompress(data, max_bytes=max_bytes))
    if match is None:
        raise MalformedError("the input is no compact JWS or JWE", code="form-not-compact")
    parts = match[1].decode("ascii").split(".")
    protected = _protected(parts[0])
    if len(parts) == 5:
        names = ("protected", "encrypted_key", "iv", "ciphertext", "tag")
        members: dict[str, Any] = dict(zip(names, parts, strict=True))
        members["recipients"] = [{"encrypted_key": members.pop("encrypted_key")}]
        return compact(members)
    header = _unprotected(protected, parts[1], chain, max_bytes)
    entry: dict[str, Any] = {"protected": parts[0], "signature": parts[2]}
    return compact({"payload": parts[1], "signatures": [{**entry, "header": header} if header else entry]})


def _protected(text: str) -> dict[str, Any]:
    header, _ = decode(text)
    value = read_json(header, max_bytes=MAX_HEADER_BYTES).value if header is not None else None
    if not isinstance(value, dict):
        raise MalformedError("the header of the compact form is no JSON object", code="form-not-compact")
    return value


def _unprotected(
    protected: dict[str, Any], payload_text: str, chain: Sequence[x509.Certificate], max_bytes: int
) -> dict[str, Any]:
    header: dict[str, Any] = {}
    if chain and "x5c" not in protected:
        header["x5c"] = [
            base64.b64encode(certificate.public_bytes(Encoding.DER)).decode("ascii") for certificate in chain
        ]
    if "uuid" not in protected:
        payload, _ = decode(payload_text)
        if not payload:
            raise MalformedError("the compact form has no readable payload", code="form-not-compact")
        vcon = read_json(decompress(payload, max_bytes=max_bytes), max_bytes=max_bytes).value
        if isinstance(vcon, dict) and isinstance(vcon.get("uuid"), str):
            header["uuid"] = vcon["uuid"]
    return header

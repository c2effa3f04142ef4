"""JSON Web Signature, JSON serializations: reading the structure, whatever the style of its headers.

Keys, certificates and verdicts belong to the callers. The bytes that were signed are the received ASCII strings.

Source: RFC 7515 sections 4, 5.2 and 7.2.
"""

from __future__ import annotations

from binascii import Error as BinasciiError
from binascii import a2b_base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from onrecord.base.errors import MalformedError
from onrecord.base.findings import Severity
from onrecord.record.vcon.reader import read_json

MAX_SIGNATURES: Final = 64
"""Signatures read per envelope: each costs a chain of certificates, and no archive signs more often at one level."""

MAX_HEADER_BYTES: Final = 1_048_576
"""Longest protected header: an x5c of sixteen large certificates fits, a header as long as a file is another thing."""

_TO_STANDARD: Final = bytes(
    {0x2D: 0x2B, 0x5F: 0x2F, 0x2B: 0x21, 0x2F: 0x21}.get(byte, byte) for byte in range(256)
)


class Report(Protocol):
    """Where findings go: code, pointer, and the names of the catalogue."""

    def __call__(
        self,
        code: str,
        pointer: str,
        *,
        severity: Severity | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of an envelope.

    `header` is the JOSE header, both parts together; where they disagree, which is an error, the unprotected part
    counts, because that is where core wants x5c. `is_usable` is false when its structure is refused, so that
    there is nothing to verify.
    """

    index: int
    protected_text: str = field(repr=False)
    protected: Mapping[str, Any] = field(repr=False)
    header: Mapping[str, Any] = field(repr=False)
    value: bytes = field(repr=False)
    is_usable: bool = True


@dataclass(frozen=True, slots=True)
class Envelope:
    """A JWS: its payload text as received, its payload bytes (None if not base64url), its signatures."""

    payload_text: str = field(repr=False)
    payload: bytes | None = field(repr=False)
    signatures: tuple[Signature, ...]

    def signing_input(self, signature: Signature) -> bytes:
        """Return the bytes that a signature is over."""
        return f"{signature.protected_text}.{self.payload_text}".encode("ascii", "replace")


def decode(text: str) -> tuple[bytes | None, bool]:
    """Decode base64url; return the bytes (None if it is none) and whether it was padded."""
    padded = text.endswith("=")
    bare = text.rstrip("=") if padded else text
    if len(bare) % 4 == 1:  # no bytes have this length; what is one too many the decoder would pass over
        return None, padded
    try:
        standard = bare.encode("ascii").translate(_TO_STANDARD) + b"=" * (-len(bare) % 4)
        data = a2b_base64(standard)
    except (BinasciiError, ValueError):
        return None, padded
    # The decoder passes over characters that are none of its own; then the result is shorter than it must be.
    return (data if len(data) == len(bare) * 3 // 4 else None), padded


def read_envelope(members: Mapping[str, Any], report: Report) -> Envelope:
    """Read a General (or flattened) JWS object, reporting what is wrong with its structure.

    Source: record.md 2.11 and 6.12.
    """
    payload_text = members.get("payload")
    payload: bytes | None = None
    if isinstance(payload_text, str):
        payload, padded = decode(payload_text)
        if padded:
            report("jws-padding", "/payload")
    if payload is None:
        report("jws-payload-invalid", "/payload")
    entries = members.get("signatures")
    if "signatures" not in members and "signature" in members:
        entries = [{name: members[name] for name in ("protected", "header", "signature") if name in members}]
    signatures: list[Signature] = []
    if not isinstance(entries, list) or not entries:
        report("jws-no-signature", "/signatures")
        entries = []
    elif len(entries) > MAX_SIGNATURES:
        report("jws-no-signature", "/signatures", data={"signatures": len(entries), "limit": MAX_SIGNATURES})
        entries = []
    for index, entry in enumerate(entries):
        signatures.append(_read_signature(entry, index, report))
    return Envelope(payload_text if isinstance(payload_text, str) else "", payload, tuple(signatures))


def _read_signature(entry: Any, index: int, report: Report) -> Signature:
    pointer = f"/signatures/{index}"
    if not isinstance(entry, dict):
        report("jws-member-missing", pointer, data={"member": "signature"})
        return Signature(index, "", {}, {}, b"", is_usable=False)
    usable = True

    def fault(code: str, place: str = pointer, **data: Any) -> None:
        nonlocal usable
        usable = False
        report(code, place, data=data or None)

    protected_text, protected = _read_protected(entry, pointer, report, fault)
    unprotected = entry.get("header")
    if unprotected is None:
        complete = "alg" in protected and ("x5c" in protected or "x5u" in protected)
        if complete:
            report("jws-member-missing", pointer, severity="warning", data={"member": "header"})
        else:
            fault("jws-member-missing", member="header")
        unprotected = {}
    elif not isinstance(unprotected, dict):
        fault("jws-member-missing", member="header")
        unprotected = {}
    for name in protected:
        if name in unprotected:
            place = f"{pointer}/header"
            if equal_values(protected[name], unprotected[name]):
                report("jws-header-duplicate", place, data={"name": name})
            else:
                fault("jws-header-conflict", place, name=name)
    value = _read_value(entry.get("signature"), pointer, report, fault)
    return Signature(index, protected_text, protected, {**protected, **unprotected}, value, is_usable=usable)


def _read_protected(
    entry: Mapping[str, Any], pointer: str, report: Report, fault: Callable[..., None]
) -> tuple[str, dict[str, Any]]:
    text = entry.get("protected")
    if not isinstance(text, str):
        fault("jws-member-missing", member="protected")
        return "", {}
    if text == "":
        return "", {}
    data, padded = decode(text)
    if padded:
        report("jws-padding", f"{pointer}/protected")
    header: Any = None
    if data is not None:
        try:
            header = read_json(data, max_bytes=MAX_HEADER_BYTES).value
        except MalformedError:
            header = None
    if not isinstance(header, dict):
        fault("jws-member-missing", member="protected")
        return text, {}
    return text, header


def _read_value(text: Any, pointer: str, report: Report, fault: Callable[..., None]) -> bytes:
    if not isinstance(text, str):
        fault("jws-member-missing", member="signature")
        return b""
    value, padded = decode(text)
    if padded:
        report("jws-padding", f"{pointer}/signature")
    if value is None:
        fault("jws-signature-invalid")
        return b""
    return value


def equal_values(one: Any, other: Any) -> bool:
    """Say whether two JSON values are equal: 1 and true are different."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal_values(one[name], other[name]) for name in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(equal_values, one, other))
    return bool(one == other)

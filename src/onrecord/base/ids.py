"""Identifiers: UUID versions 7 and 8, opaque references, source ids."""

from __future__ import annotations

import hashlib
import secrets
import uuid

from onrecord.base.dates import SYSTEM_CLOCK, Clock

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


def uuid7(*, clock: Clock = SYSTEM_CLOCK) -> str:
    """Return a version 7 UUID: 48 bits of Unix milliseconds, then random (RFC 9562 section 5.7)."""
    millis = clock.now_ns() // 1_000_000 & (2**48 - 1)
    tail = secrets.randbits(74)
    value = millis << 80 | 0x7 << 76 | (tail >> 62) << 64 | 0b10 << 62 | tail & (2**62 - 1)
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def domain_uuid_bits(domain: str) -> int:
    """Return the high 62 bits of SHA-1 of a domain name, the tail of its version 8 UUIDs (record.md D-10)."""
    digest = hashlib.sha1(domain.encode("utf-8"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") >> 2


def uuid8(domain: str, *, clock: Clock = SYSTEM_CLOCK) -> str:
    """Return a version 8 UUID of a domain: Unix milliseconds, 12 random bits, 62 bits of the domain.

    Source: record.md D-10 (the core draft's rule).
    """
    millis = clock.now_ns() // 1_000_000 & (2**48 - 1)
    value = millis << 80 | 0x8 << 76 | secrets.randbits(12) << 64 | 0b10 << 62 | domain_uuid_bits(domain)
    return str(uuid.UUID(int=value))


def opaque_ref(length: int = 12) -> str:
    """Return random letters and digits that say nothing, for a person to quote."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def random_id(prefix: str, *, size_bytes: int = 8) -> str:
    """Return `prefix` and random hex characters, two for each of `size_bytes`."""
    return prefix + secrets.token_hex(size_bytes)

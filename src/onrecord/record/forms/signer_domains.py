"""The domain in a version 8 uuid beside the names of the certificate that signed the vCon.

Source: record.md 2.2 (D-10), 6.12 (`signer-domain`).
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

from cryptography import x509

from onrecord.base.ids import domain_uuid_bits
from onrecord.record.forms.certificates import dns_names

MAX_NAME_CHARACTERS: Final = 253
"""Longest DNS name (RFC 1035 section 2.3.4). Longer ones name nobody, and each label of them would cost its rest."""


def is_of_other_domain(uuid: Any, leaf: x509.Certificate) -> bool:
    """Say whether a version 8 uuid belongs to none of the leaf's names, nor to the domains above them.

    A leaf without names, and a uuid of another version, say nothing either way.
    """
    names = [name for name in dns_names(leaf) if len(name) <= MAX_NAME_CHARACTERS]
    if not names or not isinstance(uuid, str) or len(uuid) != 36 or uuid[14] != "8":
        return False
    tail = uuid[19:].replace("-", "").lower()
    for name in names:
        labels = name.split(".")
        for start in range(max(1, len(labels) - 1)):
            if tail in _domain_tails(".".join(labels[start:])):
                return False
    return True


def _domain_tails(domain: str) -> tuple[str, str]:
    """Return the ends of version 8 uuids of a domain: the draft's rule, and the one that two peers use instead."""
    high = domain_uuid_bits(domain)
    return f"{0b10 << 62 | high:016x}", f"{0b10 << 62 | _low_bits(domain):016x}"


def _low_bits(domain: str) -> int:
    digest = hashlib.sha1(domain.encode("utf-8"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") & (2**62 - 1)

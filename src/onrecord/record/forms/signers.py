"""Who signed a vCon: the names in the certificates of signatures that fit, and who vouches for them.

Source: record.md 2.11, D-24.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from cryptography import x509

from onrecord.base.reports import Report
from onrecord.record.forms.certificates import UNREADABLE, dns_names, fingerprint


@dataclass(frozen=True, slots=True)
class Anchor:
    """A trusted certificate: its subject as in RFC 4514, and its SHA-256 as hex."""

    subject: str
    sha256: str

    @classmethod
    def of(cls, certificate: x509.Certificate) -> Self:
        """Return the names of a trusted certificate."""
        return cls(_subject(certificate), fingerprint(certificate))

    def to_json(self) -> dict[str, Any]:
        """Return the members."""
        return {"subject": self.subject, "sha256": self.sha256}


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSigner:
    """The names in the certificate of a signature that fits it.

    Without `anchor` nobody vouches for them, and anyone can have written them: no anchor was given, none was reached,
    or something is wrong with the signature's certificates. `envelope` counts from the outside, from 1.
    """

    subject: str
    names: tuple[str, ...]
    sha256: str
    alg: str
    envelope: int
    anchor: Anchor | None

    @classmethod
    def of(cls, leaf: x509.Certificate, *, alg: str, anchor: x509.Certificate | None, envelope: int) -> Self:
        """Return the names in the certificate `leaf`, for which `anchor` vouches."""
        return cls(
            subject=_subject(leaf),
            names=dns_names(leaf),
            sha256=fingerprint(leaf),
            alg=alg,
            envelope=envelope,
            anchor=Anchor.of(anchor) if anchor is not None else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Return the members; `anchor` is null where nobody vouches."""
        return {
            "subject": self.subject,
            "names": list(self.names),
            "sha256": self.sha256,
            "alg": self.alg,
            "envelope": self.envelope,
            "anchor": self.anchor.to_json() if self.anchor is not None else None,
        }


@dataclass(frozen=True)
class SignedReport(Report):
    """The outcome of a verification of a vCon.

    `signers` are those whose signature fits, trusted or not. `uuid` and `updated_at`, the time of signing by the
    signer's word, are those of the vCon inside, as written; None unless a signature fits.
    """

    signers: tuple[NamedSigner, ...] = ()
    uuid: str | None = None
    updated_at: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON shape of DESIGN.md, with who signed what and when."""
        return {
            **super().to_json(),
            "uuid": self.uuid,
            "updated_at": self.updated_at,
            "signers": [signer.to_json() for signer in self.signers],
        }


def _subject(certificate: x509.Certificate) -> str:
    try:
        return certificate.subject.rfc4514_string()
    except UNREADABLE:
        return ""

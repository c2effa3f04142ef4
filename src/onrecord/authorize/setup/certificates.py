"""The certificates that sign finished vCons: a CA of this machine and a leaf below it.

Source: running.md 9.
"""

from __future__ import annotations

import datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

CA_DAYS: Final = 3653
"""Ten years: the CA is made once, and its key is taken off the machine."""

LEAF_DAYS: Final = 825
"""Life of a leaf; `doctor` warns 30 days before the end."""

BACKDATE: Final = datetime.timedelta(minutes=5)
"""notBefore lies this far back, for a checker whose clock is a little behind."""

_NAME_BYTES: Final = 64
"""Longest common name (RFC 5280, ub-common-name)."""

_NO_USAGE: Final = {
    "digital_signature": False,
    "content_commitment": False,
    "key_encipherment": False,
    "data_encipherment": False,
    "key_agreement": False,
    "key_cert_sign": False,
    "crl_sign": False,
    "encipher_only": False,
    "decipher_only": False,
}


def _name(prefix: str, host: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{prefix} {host}"[:_NAME_BYTES].rstrip())])


def _started(
    subject: x509.Name, issuer: x509.Name, *, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    start = now.replace(microsecond=0) - BACKDATE
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=days))
    )


def make_ca(key: ec.EllipticCurvePrivateKey, *, host: str, now: datetime.datetime) -> x509.Certificate:
    """Return the self-signed certificate of the CA of this machine, for ten years.

    Source: running.md 9; RFC 5280, sections 4.2.1.2, 4.2.1.3 and 4.2.1.9.
    """
    name = _name("onrecord record CA", host)
    return (
        _started(name, name, now=now, days=CA_DAYS)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"key_cert_sign": True, "crl_sign": True}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def make_leaf(
    public_key: ec.EllipticCurvePublicKey,
    *,
    ca_key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    host: str,
    domain: str,
    now: datetime.datetime,
) -> x509.Certificate:
    """Return a certificate for the record key, for 825 days; `domain` (may be empty) becomes its DNS name.

    Source: running.md 9; RFC 5280, section 4.2.1.
    """
    builder = (
        _started(_name("onrecord recorder", host), ca.subject, now=now, days=LEAF_DAYS)
        .public_key(public_key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**_NO_USAGE | {"digital_signature": True}), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
            critical=False,
        )
    )
    if domain:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(domain)]), critical=False)
    return builder.sign(ca_key, hashes.SHA256())


def to_pem(certificate: x509.Certificate) -> bytes:
    """Return a certificate as PEM."""
    return certificate.public_bytes(serialization.Encoding.PEM)

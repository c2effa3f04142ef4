"""Certificates of signers: reading them, and the path from a leaf to a configured anchor.

The system's trust store is never consulted, and nothing is fetched.

Source: RFC 5280 section 6; record.md D-24.
"""

from __future__ import annotations

import errno
from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, rsa
from cryptography.x509.oid import ExtensionOID

from onrecord.base.errors import CertificateError, ConfigurationError, Where
from onrecord.base.files import read_regular
from onrecord.base.jose import MIN_RSA_BITS
from onrecord.base.key_uris import PRIVATE_KEY_MARK
from onrecord.base.keys import PublicKey

STRICT: Final = "strict"
COMPAT: Final = "compat"
CHAIN_PROFILES: Final = (STRICT, COMPAT)
"""`strict` holds issuers to RFC 5280; `compat` reports one that is no CA as a warning (record.md D-24)."""

MAX_CERTIFICATES: Final = 16
"""Certificates read from one x5c: chains have three or four, and each one more multiplies the paths to try."""

MAX_PATH_STEPS: Final = 256
"""Issuer checks tried per leaf: CAs of one name that certify each other must not keep a verifier busy."""

MAX_FILE_BYTES: Final = 1_048_576
"""Largest certificate file read."""

_PROCESSED: Final = frozenset(
    [
        ExtensionOID.BASIC_CONSTRAINTS,
        ExtensionOID.KEY_USAGE,
        ExtensionOID.EXTENDED_KEY_USAGE,
        ExtensionOID.SUBJECT_ALTERNATIVE_NAME,
        ExtensionOID.CERTIFICATE_POLICIES,
    ]
)
"""Critical extensions that do not stand in the way. A path under name constraints, for one, is refused."""

UNREADABLE: Final = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)
"""What reading a certificate or a list, or a part of them, raises for damage and for what is not supported."""

WEAK_HASHES: Final = (hashes.MD5, hashes.SHA1)
"""Hashes under which another certificate or list with the same signature can be made."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong with a chain: a finding code, and whether the profile makes it a warning.

    `is_early` says of "chain-expired" that a certificate is not valid yet.
    """

    code: str
    is_warning: bool = False
    is_early: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """A path from a leaf to an anchor, leaf first; empty if there is none. Faults are findings about it."""

    path: tuple[x509.Certificate, ...]
    faults: tuple[Fault, ...]

    @property
    def anchor(self) -> x509.Certificate | None:
        """Return the anchor that the path ends in."""
        return self.path[-1] if self.path else None


def fingerprint(certificate: x509.Certificate) -> str:
    """Return SHA-256 of a certificate, as hex."""
    return certificate.fingerprint(hashes.SHA256()).hex()


def read_x5c(value: object) -> tuple[x509.Certificate, ...]:
    """Read an x5c header member: an array of standard base64 DER certificates, leaf first.

    Raises `CertificateError` with code "x5c-malformed".

    Source: RFC 7515 section 4.1.6.
    """
    if not isinstance(value, list) or not 0 < len(value) <= MAX_CERTIFICATES:
        raise CertificateError(
            f"x5c is no array of 1 to {MAX_CERTIFICATES} certificates", code="x5c-malformed"
        )
    found: list[x509.Certificate] = []
    for item in value:
        if not isinstance(item, str):
            raise CertificateError("x5c holds something else than a String", code="x5c-malformed")
        try:
            certificate = x509.load_der_x509_certificate(b64decode("".join(item.split()), validate=True))
            _touch(certificate)
            found.append(certificate)
        except (BinasciiError, *UNREADABLE):
            raise CertificateError(
                "x5c holds something else than a certificate", code="x5c-malformed"
            ) from None
    return tuple(found)


def _touch(certificate: x509.Certificate) -> None:
    """Read the lazy parts that every path needs, so that damage shows here."""
    _ = (
        certificate.subject,
        certificate.issuer,
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
    )


def load_certificates(path: Path) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a PEM or DER file, or of every .pem, .crt, .cer and .der file of a directory.

    Raises `ConfigurationError` with code "certificate-missing" or "certificate-malformed".
    """
    try:
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix in (".pem", ".crt", ".cer", ".der"))
            return tuple(
                certificate for file in files if not file.is_dir() for certificate in load_certificates(file)
            )
        data = read_regular(path, limit_bytes=MAX_FILE_BYTES, follow=True)
        if b"-----BEGIN" in data:
            found = tuple(x509.load_pem_x509_certificates(data))
        else:
            found = (x509.load_der_x509_certificate(data),)
        for certificate in found:
            _touch(certificate)
        return found
    except OSError as error:
        odd = error.errno in (errno.EINVAL, errno.EFBIG)
        raise ConfigurationError(
            f"a certificate cannot be read: {error.strerror}",
            code="certificate-malformed" if odd else "certificate-missing",
            hint="name a PEM or DER file, or a directory of them",
            where=Where(file=str(path)),
        ) from error
    except UNREADABLE as error:
        is_key = PRIVATE_KEY_MARK in data
        raise ConfigurationError(
            "the file holds a private key and no certificate"
            if is_key
            else "the file holds no certificate in PEM or DER",
            code="certificate-malformed",
            hint="name the file of the certificate of this key" if is_key else None,
            where=Where(file=str(path)),
        ) from error


def public_key_of(certificate: x509.Certificate) -> PublicKey | None:
    """Return the key of a certificate, or None if it is of a kind that signs no JWS."""
    try:
        key = certificate.public_key()
    except UNREADABLE:
        return None
    if isinstance(key, (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey)):
        return key
    return None


def dns_names(certificate: x509.Certificate) -> tuple[str, ...]:
    """Return the DNS names of a certificate's subjectAltName."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, *UNREADABLE):
        return ()
    return tuple(names.get_values_for_type(x509.DNSName))


def find_chain(
    certificates: Sequence[x509.Certificate],
    anchors: Sequence[x509.Certificate],
    *,
    at: datetime,
    profile: str = STRICT,
    issuances: Issuances | None = None,
) -> Chain:
    """Find a path from the leaf, `certificates[0]`, through the others to one of `anchors`, and judge it.

    The order after the leaf is not trusted, and a root among the certificates is no anchor. Of several paths the one
    with the fewest faults is returned. `at` is the check time. `issuances`, kept over several calls, remembers which
    certificate was issued by which.
    """
    best: Chain | None = None
    for path in _paths(certificates, anchors, issuances or Issuances()):
        chain = Chain(path, _judge(path, at, profile))
        if best is None or _badness(chain) < _badness(best):
            best = chain
        if not best.faults:
            break
    return best or Chain((), (Fault("chain-untrusted"),))


def _badness(chain: Chain) -> tuple[int, int]:
    return sum(not fault.is_warning for fault in chain.faults), len(chain.faults)


class Issuances:
    """Which certificate was issued by which, each pair checked once: the same few stand beside many signatures."""

    def __init__(self) -> None:
        self._known: dict[tuple[x509.Certificate, x509.Certificate], bool] = {}

    def holds(self, certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
        """Say whether the issuer's key signed the certificate."""
        pair = (certificate, issuer)
        if pair not in self._known:
            self._known[pair] = _is_issued_by(certificate, issuer)
        return self._known[pair]


def _paths(
    certificates: Sequence[x509.Certificate], anchors: Sequence[x509.Certificate], issuances: Issuances
) -> list[tuple[x509.Certificate, ...]]:
    """Return the paths from the leaf to an anchor.

    They are looked for from the anchors down: certificates that no anchor vouches for, however many of them sign each
    other, then cost one check each and lead nowhere.
    """
    leaf, trusted = certificates[0], set(anchors)
    if leaf in trusted:
        return [(leaf,)]
    by_issuer: dict[x509.Name, list[x509.Certificate]] = {}
    for one in dict.fromkeys(certificates):
        if one not in trusted:
            by_issuer.setdefault(one.issuer, []).append(one)
    found: list[tuple[x509.Certificate, ...]] = []
    work: list[tuple[x509.Certificate, ...]] = [(anchor,) for anchor in dict.fromkeys(anchors)]
    steps = 0
    while work and steps < MAX_PATH_STEPS:
        path = work.pop()
        for candidate in by_issuer.get(path[0].subject, ()):
            steps += 1
            if candidate not in path and issuances.holds(candidate, path[0]):
                (found if candidate == leaf else work).append((candidate, *path))
    return found


def _is_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, *UNREADABLE):
        return False
    return True


def _judge(path: tuple[x509.Certificate, ...], at: datetime, profile: str) -> tuple[Fault, ...]:
    faults: dict[str, Fault] = {}
    for depth, certificate in enumerate(path):
        is_anchor = depth == len(path) - 1
        if at < certificate.not_valid_before_utc:
            faults["chain-expired"] = Fault("chain-expired", is_early=True)
        elif at > certificate.not_valid_after_utc:
            faults.setdefault("chain-expired", Fault("chain-expired"))
        if _is_weak(certificate, is_anchor=is_anchor and len(path) > 1):
            faults["chain-weak"] = Fault("chain-weak")
        if _has_unprocessed(certificate):
            faults["chain-untrusted"] = Fault("chain-untrusted")
        if depth and not _is_ca(certificate, intermediates=depth - 1):
            faults["chain-not-ca"] = Fault("chain-not-ca", is_warning=profile == COMPAT)
    if not _may_sign(path[0]):
        faults["jws-alg-refused"] = Fault("jws-alg-refused", is_warning=profile == COMPAT)
    return tuple(faults.values())


def _is_weak(certificate: x509.Certificate, *, is_anchor: bool) -> bool:
    try:
        key = certificate.public_key()
        algorithm = certificate.signature_hash_algorithm
    except UNREADABLE:
        return True
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        return True
    if isinstance(key, dsa.DSAPublicKey):
        return True
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.key_size < 224:
        return True
    if not isinstance(
        key,
        (rsa.RSAPublicKey, ec.EllipticCurvePublicKey, ed25519.Ed25519PublicKey, ed448.Ed448PublicKey),
    ):
        return True
    return not is_anchor and isinstance(algorithm, WEAK_HASHES)


def _extensions(certificate: x509.Certificate) -> x509.Extensions | None:
    try:
        return certificate.extensions
    except UNREADABLE:
        return None


def _has_unprocessed(certificate: x509.Certificate) -> bool:
    """Say whether there is an extension that must be processed and is not.

    Name constraints are refused in any case: RFC 5280 has them critical, and a CA that leaves that out means them.
    """
    extensions = _extensions(certificate)
    if extensions is None:
        return True
    return any(
        extension.oid == ExtensionOID.NAME_CONSTRAINTS
        or (extension.critical and extension.oid not in _PROCESSED)
        for extension in extensions
    )


def _is_ca(certificate: x509.Certificate, *, intermediates: int) -> bool:
    """Say whether a certificate may issue others, with so many intermediates below it."""
    extensions = _extensions(certificate)
    if extensions is None:
        return False
    try:
        constraints = extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    if not constraints.ca or (
        constraints.path_length is not None and intermediates > constraints.path_length
    ):
        return False
    try:
        return extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
    except x509.ExtensionNotFound:
        return True


def _may_sign(certificate: x509.Certificate) -> bool:
    """Say whether the key usage of a leaf, if it has one, admits signatures."""
    extensions = _extensions(certificate)
    if extensions is None:
        return False
    try:
        usage = extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return usage.digital_signature or usage.content_commitment

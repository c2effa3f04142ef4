"""Lists of revoked certificates (CRLs) that a caller gives: none is ever fetched.

Source: RFC 5280 sections 5 and 6.3; record.md D-24.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import ExtensionOID

from onrecord.base.errors import ConfigurationError, Where
from onrecord.base.files import read_regular
from onrecord.record.forms.certificates import UNREADABLE, WEAK_HASHES, public_key_of

MAX_CRL_BYTES: Final = 64 * 1024 * 1024
"""Largest CRL read: those of the largest public authorities have some ten megabytes."""

_PEM: Final = b"-----BEGIN X509 CRL-----"


class Standing(Enum):
    """What the given lists say about a certificate."""

    GOOD = "good"
    REVOKED = "revoked"
    UNKNOWN = "unknown"


def load_crls(path: Path) -> tuple[x509.CertificateRevocationList, ...]:
    """Return the CRLs of a PEM or DER file.

    Raises `ConfigurationError` with code "crl-missing" or "crl-malformed".
    """
    try:
        data = read_regular(path, limit_bytes=MAX_CRL_BYTES, follow=True)
        if _PEM not in data:
            return (x509.load_der_x509_crl(data),)
        return tuple(x509.load_pem_x509_crl(_PEM + part) for part in data.split(_PEM)[1:])
    except OSError as error:
        raise ConfigurationError(
            f"a list of revoked certificates cannot be read: {error.strerror}",
            code="crl-missing",
            hint="name a CRL in PEM or DER",
            where=Where(file=str(path)),
        ) from error
    except UNREADABLE as error:
        raise ConfigurationError(
            "the file holds no CRL in PEM or DER", code="crl-malformed", where=Where(file=str(path))
        ) from error


@dataclass(slots=True)
class Revocations:
    """The CRLs of one verification, and what was looked up in them.

    A list counts for a certificate if its issuer signed it. A revoked entry counts whatever the age of the list; that a
    certificate is good is believed only to a list which is current at the check time and covers it.
    """

    crls: Sequence[x509.CertificateRevocationList]
    _known: dict[tuple[bytes, bytes, datetime], Standing] = field(default_factory=dict)

    def standing(self, path: Sequence[x509.Certificate], *, at: datetime) -> Standing:
        """Return what the lists say about the certificates of a path, leaf first, its anchor left out.

        A path that is its anchor alone is on no list that could be looked up.
        """
        found = {self._of(one, issuer, at) for one, issuer in pairwise(path)}
        if Standing.REVOKED in found:
            return Standing.REVOKED
        return Standing.GOOD if found == {Standing.GOOD} else Standing.UNKNOWN

    def _of(self, certificate: x509.Certificate, issuer: x509.Certificate, at: datetime) -> Standing:
        if not self.crls:
            return Standing.UNKNOWN
        identity = (certificate.tbs_certificate_bytes, issuer.tbs_certificate_bytes, at)
        if identity not in self._known:
            self._known[identity] = self._look_up(certificate, issuer, at)
        return self._known[identity]

    def _look_up(self, certificate: x509.Certificate, issuer: x509.Certificate, at: datetime) -> Standing:
        standing = Standing.UNKNOWN
        for crl in self.crls:
            try:
                scope = _Scope.of(crl)
                if scope is None or crl.issuer != certificate.issuer or not _is_signed_by(crl, issuer):
                    continue
                entry = crl.get_revoked_certificate_by_serial_number(certificate.serial_number)
                if entry is not None and _is_revoked(entry, at):
                    return Standing.REVOKED
                if scope.covers(certificate) and _is_current(crl, at):
                    standing = Standing.GOOD
            except UNREADABLE:
                continue  # a list that cannot be read says nothing
        return standing


def _is_signed_by(crl: x509.CertificateRevocationList, issuer: x509.Certificate) -> bool:
    key = public_key_of(issuer)
    if key is None or isinstance(crl.signature_hash_algorithm, WEAK_HASHES):
        return False
    try:
        usage = issuer.extensions.get_extension_for_class(x509.KeyUsage).value
    except x509.ExtensionNotFound:
        pass
    else:
        if not usage.crl_sign:
            return False
    try:
        return crl.is_signature_valid(key)
    except InvalidSignature:
        return False


def _is_current(crl: x509.CertificateRevocationList, at: datetime) -> bool:
    end = crl.next_update_utc
    return crl.last_update_utc <= at and (end is None or at <= end)


def _is_revoked(entry: x509.RevokedCertificate, at: datetime) -> bool:
    """Say whether an entry holds at a time. A key that was lost may have been so before anyone knew."""
    since = entry.revocation_date_utc
    try:
        extensions = tuple(entry.extensions)
    except UNREADABLE:
        return True  # when and why cannot be read, that it was revoked can
    for extension in extensions:
        if isinstance(extension.value, x509.CRLReason):
            if extension.value.reason is x509.ReasonFlags.remove_from_crl:
                return False
        elif isinstance(extension.value, x509.InvalidityDate):
            since = min(since, extension.value.invalidity_date_utc)
    return since <= at


@dataclass(frozen=True, slots=True)
class _Scope:
    """Which certificates of its issuer a list is about (RFC 5280 section 5.2.5)."""

    points: frozenset[x509.GeneralName] = frozenset()
    leaves: bool = True
    authorities: bool = True

    @classmethod
    def of(cls, crl: x509.CertificateRevocationList) -> _Scope | None:
        """Return the scope, or None for a list that must not be used: a delta, or one with parts not processed here."""
        scope = cls()
        for extension in crl.extensions:
            value = extension.value
            if isinstance(value, x509.IssuingDistributionPoint):
                if value.indirect_crl or value.only_some_reasons or value.relative_name is not None:
                    return None
                scope = cls(
                    frozenset(value.full_name or ()),
                    leaves=not (value.only_contains_ca_certs or value.only_contains_attribute_certs),
                    authorities=not (value.only_contains_user_certs or value.only_contains_attribute_certs),
                )
            elif extension.critical or extension.oid == ExtensionOID.DELTA_CRL_INDICATOR:
                return None
        return scope

    def covers(self, certificate: x509.Certificate) -> bool:
        """Say whether a certificate would be on the list if it were revoked."""
        try:
            is_ca = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except x509.ExtensionNotFound:
            is_ca = False
        if not (self.authorities if is_ca else self.leaves):
            return False
        return not self.points or bool(self.points & _points_of(certificate))


def _points_of(certificate: x509.Certificate) -> frozenset[x509.GeneralName]:
    try:
        points: Iterable[x509.DistributionPoint] = certificate.extensions.get_extension_for_class(
            x509.CRLDistributionPoints
        ).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(name for point in points for name in point.full_name or ())

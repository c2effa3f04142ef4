"""`onrecord init --renew`: a new certificate for the record key, by the CA that `init` made.

Source: running.md 9.
"""

from __future__ import annotations

import datetime
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from onrecord.authorize.setup.certificates import make_leaf, to_pem
from onrecord.authorize.setup.files import Owner, replace, write_new
from onrecord.authorize.setup.initialize import ca_certificate_path, ca_key_path, key_path
from onrecord.base.configuration import user_gid
from onrecord.base.dates import utc_now
from onrecord.base.errors import ConfigurationError, KeyAccessError, Where
from onrecord.base.files import read_regular
from onrecord.base.key_uris import MAX_KEY_FILE_BYTES

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The new certificate and where the old chain went."""

    chain: Path
    previous: Path
    not_after: datetime.datetime


def renew(
    configuration: Configuration, *, host: str | None = None, now: datetime.datetime | None = None
) -> Renewed:
    """Make a new leaf for the record key, which stays the same, and keep the old chain beside it.

    Needs the key of the CA in its place; bring it back for this and take it away again.

    Raises `KeyAccessError` with code "key-missing" or "key-malformed", `ConfigurationError` with code
    "certificate-unreadable" or "ca-mismatch".
    """
    moment = utc_now() if now is None else now
    ca_key = _private_key(ca_key_path(configuration), "CA")
    record_key = _private_key(key_path(configuration.keys.record), "record")
    anchor = ca_certificate_path(configuration)
    ca = read_certificates(anchor)[0]
    if ca.public_key() != ca_key.public_key():
        raise ConfigurationError(
            "the certificate of the CA belongs to another key",
            code="ca-mismatch",
            where=Where(file=str(anchor)),
        )
    leaf = make_leaf(
        record_key.public_key(),
        ca_key=ca_key,
        ca=ca,
        host=host or socket.gethostname(),
        domain=configuration.recorder.domain,
        now=moment,
    )
    chain = configuration.keys.record_chain
    uid = configuration.recorder_uid
    owner = Owner(uid, user_gid(uid)) if configuration.mode == "system" else Owner.own()
    previous = chain.with_name(f"{chain.stem}-until-{moment:%Y%m%dT%H%M%SZ}{chain.suffix}")
    write_new(previous, _read(chain), mode=0o600, owner=owner)
    replace(chain, to_pem(leaf), mode=0o600, owner=owner)
    return Renewed(chain=chain, previous=previous, not_after=leaf.not_valid_after_utc)


def read_certificates(path: Path) -> tuple[x509.Certificate, ...]:
    """Return the certificates of a PEM file, at least one.

    Raises `ConfigurationError` with code "certificate-unreadable".
    """
    try:
        return tuple(x509.load_pem_x509_certificates(_read(path)))
    except ValueError as error:
        raise ConfigurationError(
            "no PEM certificates", code="certificate-unreadable", where=Where(file=str(path))
        ) from error


def _read(path: Path) -> bytes:
    try:
        return read_regular(path, limit_bytes=MAX_KEY_FILE_BYTES)
    except OSError as error:
        raise ConfigurationError(
            f"cannot read ({error.strerror})", code="certificate-unreadable", where=Where(file=str(path))
        ) from error


def _private_key(path: Path, name: str) -> ec.EllipticCurvePrivateKey:
    """Return a P-256 key; root reads the record key of the recorder here, so the owner is not compared."""
    where = Where(file=str(path))
    if not os.path.lexists(path):
        raise KeyAccessError(
            f"the {name} key is not here",
            code="key-missing",
            hint="bring it back to this place, renew, and take it away again",
            where=where,
        )
    try:
        key = serialization.load_pem_private_key(_read(path), password=None)
    except (ValueError, TypeError):
        raise KeyAccessError(f"the {name} key cannot be read", code="key-malformed", where=where) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise KeyAccessError(f"the {name} key is of another kind", code="key-malformed", where=where)
    return key

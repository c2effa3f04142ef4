"""Private keys by URI, and the PEM files of those whose scheme is "file"."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509 import InvalidVersion, load_der_x509_certificate

from onrecord.base.errors import KeyAccessError, Where
from onrecord.base.files import read_bounded, regular_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

MAX_KEY_FILE_BYTES: Final = 65_536
"""Largest key file read: a PEM key has a few kilobytes, anything larger is another file."""

PRIVATE_KEY_MARK: Final = b"PRIVATE KEY-----"
"""What every PEM private key has in its first line, whatever its kind."""

K = TypeVar("K")


def open_key(uri: str, *, schemes: Mapping[str, Callable[[str], K]], purpose: str) -> K:
    """Open the key that a URI "scheme:rest" names: `schemes` has a function of the rest for each scheme.

    `purpose` names what the key is for, in errors.

    Raises `KeyAccessError` with code "key-scheme-unknown", or with that of the scheme.
    """
    scheme, colon, rest = uri.partition(":")
    opener = schemes.get(scheme) if colon else None
    if opener is None:
        raise KeyAccessError(
            f"the {purpose} key has a scheme that is not known; known are {', '.join(sorted(schemes))}",
            code="key-scheme-unknown",
            hint="write it as file:/absolute/path/to/key.pem",
        )
    try:
        return opener(rest)
    except KeyAccessError as error:
        raise KeyAccessError(
            f"the {purpose} key: {error}", code=error.code, hint=error.hint, where=error.where
        ) from error


def load_key_file(path: str) -> PrivateKeyTypes:
    """Return the private key of a PEM file, of whatever kind it is.

    Owner and mode are judged if it is no certificate and no public key, which others may well read.

    Raises `KeyAccessError` as `read_private_file` does, also with code "key-malformed" for what is no PEM key without
    passphrase.
    """
    where = Where(file=path)
    status, data = _read(Path(path), where)
    other = _other_than_private(data)
    if other is not None:
        raise KeyAccessError(
            f"the file holds {other} and no private key",
            code="key-malformed",
            hint="name the file of the private key that belongs to it",
            where=where,
        )
    _check_private(status, where)
    try:
        return load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyAccessError(
            "not a PEM private key without passphrase", code="key-malformed", where=where
        ) from None


def read_private_file(path: Path) -> bytes:
    """Read a file that only its owner may read: regular, no link, owner this uid, mode 0600 or stricter.

    Raises `KeyAccessError` with code "key-missing", "key-owner", "key-mode" or "key-malformed" (too large).
    """
    where = Where(file=str(path))
    status, data = _read(path, where)
    _check_private(status, where)
    return data


def _read(path: Path, where: Where) -> tuple[os.stat_result, bytes]:
    """Return the status of a key file and its content, which is only to be used if the status is in order."""
    try:
        with regular_file(path) as (descriptor, status):
            return status, read_bounded(descriptor, limit_bytes=MAX_KEY_FILE_BYTES)
    except OSError as error:
        code = "key-malformed" if error.errno in (errno.EINVAL, errno.EFBIG) else "key-missing"
        raise KeyAccessError(f"cannot read the file ({error.strerror})", code=code, where=where) from error


def _other_than_private(data: bytes) -> str | None:
    """Name what a file holds that people take for a private key, or return None if it is nothing of the kind."""
    if PRIVATE_KEY_MARK in data:
        return None
    if b"-----BEGIN CERTIFICATE" in data or _is_der_certificate(data):
        return "a certificate"
    return "a public key" if b"PUBLIC KEY-----" in data else None


def _is_der_certificate(data: bytes) -> bool:
    if data[:1] != b"\x30":
        return False
    try:
        load_der_x509_certificate(data)
    except (ValueError, TypeError, UnsupportedAlgorithm, InvalidVersion):
        return False
    return True


def _check_private(status: os.stat_result, where: Where) -> None:
    if status.st_uid != os.geteuid():
        raise KeyAccessError(
            f"the file belongs to uid {status.st_uid}, this process has uid {os.geteuid()}",
            code="key-owner",
            where=where,
            hint="give the file to the uid of the process that uses it",
        )
    if status.st_mode & 0o077:
        raise KeyAccessError(
            f"the file has mode {stat.S_IMODE(status.st_mode):04o}, others can reach it",
            code="key-mode",
            where=where,
            hint=f"chmod 600 {where.file}",
        )

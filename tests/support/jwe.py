"""A second construction of JWE messages, written down from RFC 7516 and 7518 without the code under test."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

OAEP = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)


def b64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def seal(plaintext, cek, protected_text, *, enc="A256CBC-HS512", aad=None):
    """Encrypt the content; returns the members iv, ciphertext and tag."""
    authenticated = (protected_text if aad is None else f"{protected_text}.{aad}").encode()
    if enc == "A256GCM":
        iv = os.urandom(12)
        sealed = AESGCM(cek).encrypt(iv, plaintext, authenticated)
        return {"iv": b64(iv), "ciphertext": b64(sealed[:-16]), "tag": b64(sealed[-16:])}
    iv = os.urandom(16)
    left = 16 - len(plaintext) % 16
    encryptor = Cipher(algorithms.AES(cek[32:]), modes.CBC(iv)).encryptor()
    ciphertext = encryptor.update(plaintext + bytes([left]) * left) + encryptor.finalize()
    length = struct.pack(">Q", 8 * len(authenticated))
    tag = hmac.new(cek[:32], authenticated + iv + ciphertext + length, hashlib.sha512).digest()[:32]
    return {"iv": b64(iv), "ciphertext": b64(ciphertext), "tag": b64(tag)}


def jwe(
    plaintext, *keys, protected=None, unprotected=None, headers=None, cek=None, enc="A256CBC-HS512", aad=None
):
    """A JWE for RSA keys with RSA-OAEP, with headers as given; style P by default.

    `headers` are those of the recipients, `protected` the protected one; {} leaves it out.
    """
    protected = {"alg": "RSA-OAEP", "enc": enc} if protected is None else protected
    cek = cek or os.urandom(32 if enc == "A256GCM" else 64)
    text = b64(json.dumps(protected).encode()) if protected else ""
    recipients = []
    for index, key in enumerate(keys):
        recipient = {"encrypted_key": b64(key.public_key().encrypt(cek, OAEP))}
        if headers is not None:
            recipient["header"] = headers[index]
        recipients.append(recipient)
    message = {"recipients": recipients, **seal(plaintext, cek, text, enc=enc, aad=aad)}
    if text:
        message["protected"] = text
    if unprotected is not None:
        message["unprotected"] = unprotected
    if aad is not None:
        message["aad"] = aad
    return message

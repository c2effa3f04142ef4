"""The forms of a vCon: opening, signing, verifying, encrypting, decrypting. One door to the modules that do it."""

from onrecord.record.compact import convert_compact
from onrecord.record.compression import compress, decompress
from onrecord.record.decryption import Decrypted, UndecryptedError, decrypt, decrypt_and_verify
from onrecord.record.encryption import encrypt
from onrecord.record.opening import ENCRYPTED, SIGNED, UNSIGNED, Form, open_form
from onrecord.record.signatures import verify
from onrecord.record.signing import resign, sign

__all__ = [
    "ENCRYPTED",
    "SIGNED",
    "UNSIGNED",
    "Decrypted",
    "Form",
    "UndecryptedError",
    "compress",
    "convert_compact",
    "decompress",
    "decrypt",
    "decrypt_and_verify",
    "encrypt",
    "open_form",
    "resign",
    "sign",
    "verify",
]

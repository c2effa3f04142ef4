"""The forms of a vCon: opening, signing, verifying, encrypting, decrypting.

The names below are the door to the modules that do it; each is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onrecord.base.lazy_names import lazy_name

if TYPE_CHECKING:
    from onrecord.record.forms.compact import convert_compact
    from onrecord.record.forms.compression import compress, decompress
    from onrecord.record.forms.decryption import Decrypted, UndecryptedError, decrypt, decrypt_and_verify
    from onrecord.record.forms.encryption import encrypt
    from onrecord.record.forms.opening import ENCRYPTED, SIGNED, UNSIGNED, Form, open_form
    from onrecord.record.forms.signatures import verify
    from onrecord.record.forms.signing import resign, sign

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

_MODULES: Final = {
    "ENCRYPTED": "opening",
    "SIGNED": "opening",
    "UNSIGNED": "opening",
    "Decrypted": "decryption",
    "Form": "opening",
    "UndecryptedError": "decryption",
    "compress": "compression",
    "convert_compact": "compact",
    "decompress": "compression",
    "decrypt": "decryption",
    "decrypt_and_verify": "decryption",
    "encrypt": "encryption",
    "open_form": "opening",
    "resign": "signing",
    "sign": "signing",
    "verify": "signatures",
}
"""Where each name is defined."""


def __getattr__(name: str) -> Any:
    value = globals()[name] = lazy_name(__name__, _MODULES, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

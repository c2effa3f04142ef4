"""The forms of a vCon: opening, signing, verifying. One door to the modules that do it."""

from onrecord.record.opening import ENCRYPTED, SIGNED, UNSIGNED, Form, decompress, open_form
from onrecord.record.signatures import verify
from onrecord.record.signing import sign

__all__ = [
    "ENCRYPTED",
    "SIGNED",
    "UNSIGNED",
    "Form",
    "decompress",
    "open_form",
    "sign",
    "verify",
]

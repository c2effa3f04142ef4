"""What JOSE headers may say in a vCon: what is refused before any key is used, and what is odd.

Source: record.md 2.11 to 2.13, 6.12; D-22, D-23, D-29, D-30.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from onrecord.base.jose import ALLOWED_ALGS
from onrecord.base.jose_encryption import ENCS, KEY_ALGS
from onrecord.record.forms._rfc7515 import Report, Signature, equal_values
from onrecord.record.forms._rfc7516 import Message, Recipient

VCON: Final = "application/vcon"
VCON_GZIP: Final = "application/vcon+gzip"
"""Content types that are written (record.md 2.13): of a vCon in any form, plain and compressed."""

_PLAIN: Final = frozenset([VCON, VCON_GZIP, "vcon", "vcon+gzip"])
_UNREGISTERED: Final = frozenset(["application/vcon+json", "vcon+json"])
_NESTED: Final = frozenset(["application/jose+json", "jose+json"])
_TYPS: Final = _PLAIN | _NESTED | {"jose", "application/jose"}


def judge_signature(signature: Signature, members: Mapping[str, Any], report: Report) -> Signature:
    """Report what a header says that no key is needed for; refuse what must not be verified at all.

    `members` are those of the envelope.
    """
    pointer = f"/signatures/{signature.index}"
    header, usable = signature.header, signature.is_usable
    if "alg" in header and "alg" not in signature.protected:
        report("jws-alg-unprotected", pointer)
    if not isinstance(header.get("alg"), str) or header["alg"] not in ALLOWED_ALGS:
        usable = False
        report("jws-alg-refused", pointer)
    if "crit" in header or header.get("b64", True) is not True:
        usable = False
        report("jws-crit-unsupported", pointer)
    named = [name for name in ("x5c", "x5u") if name in header]
    if not named:
        usable = False
        report("jws-certificate-missing", pointer)
    elif "x5c" not in header:
        report("jws-x5u-unfetched", pointer)
    if named and not any(name in _unprotected(signature, members) for name in named):
        report("jws-x5c-protected", pointer)
    if header.get("uuid") is None:
        report("jws-uuid-missing", pointer)
    _report_types(header, pointer, report)
    return replace(signature, is_usable=usable)


def _unprotected(signature: Signature, members: Mapping[str, Any]) -> Mapping[str, Any]:
    entries = members.get("signatures")
    entry = entries[signature.index] if isinstance(entries, list) else members
    header = entry.get("header") if isinstance(entry, dict) else None
    return header if isinstance(header, dict) else {}


def _report_types(header: Mapping[str, Any], pointer: str, report: Report) -> None:
    typ, cty = header.get("typ"), header.get("cty")
    typ_fits = typ is None or (isinstance(typ, str) and typ.lower() in _TYPS)
    cty_fits = cty is None or (isinstance(cty, str) and cty.lower() in _PLAIN | _NESTED | _UNREGISTERED)
    if not typ_fits or not cty_fits:
        report("jws-typ-foreign", pointer)
    if isinstance(cty, str) and cty.lower() in _UNREGISTERED:
        report("media-type-unregistered", pointer)


def judge_message(message: Message, report: Report) -> Message:
    """Report what the headers of an encrypted vCon say; refuse what must not be decrypted at all.

    A recipient whose algorithm is refused is passed over, for the others cannot help it.
    """
    usable = message.is_usable
    enc = message.shared("enc")
    if any(not equal_values(header.get("enc"), enc) for header in message.headers):
        usable = False
        report("jwe-header-conflict", "", data={"name": "enc", "header": "recipients"})
    if not isinstance(enc, str) or enc not in ENCS:
        usable = False
        report("jwe-enc-refused", "")
    if any("zip" in header for header in message.headers):
        usable = False
        report("jwe-zip-refused", "")
    if any("crit" in header for header in message.headers):
        usable = False
        report("jws-crit-unsupported", "")
    cty = message.shared("cty")
    if cty is not None and not (isinstance(cty, str) and cty.lower() in _PLAIN):
        place = "unprotected" if "cty" in message.unprotected else "protected"
        report("jwe-cty-unknown", f"/{place}/cty")
    recipients = tuple(_judge_recipient(recipient, report) for recipient in message.recipients)
    usable = usable and any(recipient.is_usable for recipient in recipients)
    return replace(message, recipients=recipients, is_usable=usable)


def _judge_recipient(recipient: Recipient, report: Report) -> Recipient:
    alg = recipient.header.get("alg")
    if isinstance(alg, str) and alg in KEY_ALGS:
        return recipient
    report("jwe-alg-refused", f"/recipients/{recipient.index}")
    return replace(recipient, is_usable=False)

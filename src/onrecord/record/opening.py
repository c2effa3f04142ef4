"""The forms of a vCon: unsigned, signed, encrypted; plain or gzip. Telling them apart and getting at the vCon inside.

    >>> open_form(b'{"uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd"}').kind
    'unsigned'

Source: record.md 2.11, 2.14, 2.15.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from onrecord.base.errors import MalformedError, Where
from onrecord.base.findings import Severity
from onrecord.base.jose import ALLOWED_ALGS
from onrecord.record._rfc7515 import Envelope, Report, Signature, read_envelope
from onrecord.record.checks.collector import Collector
from onrecord.record.vcon.reader import MAX_BYTES, Document, read_json

UNSIGNED: Final = "unsigned"
SIGNED: Final = "signed"
ENCRYPTED: Final = "encrypted"

UNSIGNED_MEMBERS: Final = (
    "parties",
    "dialog",
    "analysis",
    "attachments",
    "sessions",
    "events",
    "uuid",
    "created_at",
)
"""Members that tell the unsigned form (record.md 2.14)."""

MAX_NESTING: Final = 8
"""Envelopes within envelopes (record.md D-27): each renewal of an archive adds one, so eight last for decades."""

MAX_RATIO: Final = 1_000
"""Largest growth by decompression (record.md D-31): text reaches about 100, a bomb starts at 1,000."""

_GZIP: Final = b"\x1f\x8b"
_COMPACT: Final = re.compile(rb'\s*"?[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){2,4}"?\s*')
_CTYS: Final = frozenset(["application/vcon", "application/vcon+gzip", "vcon", "vcon+gzip"])
_UNREGISTERED: Final = frozenset(["application/vcon+json", "vcon+json"])
_NESTED: Final = frozenset(["application/jose+json", "jose+json"])


@dataclass(frozen=True, slots=True)
class Form:
    """A file that was opened: its form, its envelopes from the outside in, and the vCon inside.

    `envelope` collects the findings about the envelopes. `payload` is None if there is no readable vCon;
    `payload_error` then says why, unless a finding does. Nothing here is verified.
    """

    kind: str
    envelopes: tuple[Envelope, ...] = ()
    envelope: Collector | None = None
    envelope_document: Any = field(default=None, repr=False)
    payload: Document | None = None
    payload_error: MalformedError | None = None


def open_form(data: bytes, *, max_bytes: int = MAX_BYTES, strict: bool = False) -> Form:
    """Open a file in any form.

    Raises `MalformedError` with a code of record.md 6.2 for what cannot be read at all: "size-limit", "gzip-invalid",
    "gzip-limit", "json-invalid", "json-duplicate-member", "json-depth", "form-unknown".
    """
    if len(data) > max_bytes:
        _refuse("size-limit", f"the input has {len(data)} bytes, the limit is {max_bytes}")
    data = decompress(data, max_bytes=max_bytes)
    if data[:1] != b"{" and len(data) < MAX_BYTES and _COMPACT.fullmatch(data):
        return _compact(strict=strict)
    document = read_json(data, max_bytes=max_bytes)
    value = document.value
    if not isinstance(value, dict):
        _refuse("form-unknown", "the input is no JSON object")
    if "payload" in value and ("signatures" in value or "signature" in value):
        return _open_signed(document, max_bytes=max_bytes, strict=strict)
    if "ciphertext" in value and ("recipients" in value or "encrypted_key" in value):
        return Form(ENCRYPTED, envelope_document=value)
    if not any(name in value for name in UNSIGNED_MEMBERS):
        _refuse("form-unknown", "the input has no member of any form of a vCon")
    return Form(UNSIGNED, payload=document)


def decompress(data: bytes, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a gzip file of one member, or the data itself if it is not gzip.

    Raises `MalformedError` with code "gzip-limit" or "gzip-invalid".

    Source: record.md D-31.
    """
    if not data.startswith(_GZIP):
        return data
    limit = min(max_bytes, max(len(data), 1) * MAX_RATIO)
    inflate = zlib.decompressobj(wbits=31)
    try:
        text = inflate.decompress(data, limit + 1)
    except zlib.error:
        _refuse("gzip-invalid", "the gzip data are damaged")
    if len(text) > limit:
        _refuse("gzip-limit", f"the gzip data grow beyond {limit} bytes")
    if not inflate.eof:
        _refuse("gzip-invalid", "the gzip data are cut off")
    if inflate.unused_data:
        _refuse("gzip-invalid", "data follow after the gzip member")
    return text


def _refuse(code: str, message: str) -> NoReturn:
    raise MalformedError(message, code=code, where=Where(pointer="")) from None


def _compact(*, strict: bool) -> Form:
    collector = Collector(strict=strict, layer="envelope")
    collector.add("form-compact", "")
    return Form(SIGNED, envelope=collector)


def _open_signed(document: Document, *, max_bytes: int, strict: bool) -> Form:
    collector = Collector(strict=strict, layer="envelope")
    envelopes: list[Envelope] = []
    payload: Document | None = None
    error: MalformedError | None = None
    current: Document | None = document
    while current is not None:
        level = len(envelopes)
        envelope = _read_level(current, collector, level)
        envelopes.append(envelope)
        current = None
        if envelope.payload is None:
            break
        try:
            inner = _read_payload(envelope.payload, max_bytes)
        except MalformedError as refused:
            error = refused
            break
        value = inner.value
        if isinstance(value, dict) and "payload" in value and ("signatures" in value or "signature" in value):
            _add(collector, "signed-nested", "/payload", level)
            if level + 1 >= MAX_NESTING:
                _add(collector, "jws-payload-invalid", "/payload", level)
                break
            current = inner
        elif isinstance(value, dict) and any(name in value for name in UNSIGNED_MEMBERS):
            payload = inner
        else:
            error = MalformedError("the payload is no vCon", code="form-unknown", where=Where(pointer=""))
    if payload is not None:
        for level, envelope in enumerate(envelopes):
            for signature in envelope.signatures:
                if signature.header.get("uuid") not in (None, payload.value.get("uuid")):
                    _add(collector, "jws-uuid-mismatch", f"/signatures/{signature.index}", level)
    if error is not None and error.code == "json-invalid":
        _add(collector, "jws-payload-invalid", "/payload", len(envelopes) - 1)
        error = None
    return Form(SIGNED, tuple(envelopes), collector, document.value, payload, error)


def _add(collector: Collector, code: str, pointer: str, level: int, **data: Any) -> None:
    if level:
        data["envelope"] = level + 1
    collector.add(code, pointer, data=data or None)


def _read_level(document: Document, collector: Collector, level: int) -> Envelope:
    """Read one envelope. Findings about an inner one carry its number, counted from the outside."""
    members: dict[str, Any] = document.value

    def report(
        code: str,
        pointer: str,
        *,
        severity: Severity | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> None:
        if level:
            data = {**(data or {}), "envelope": level + 1}
        collector.add(code, pointer, severity=severity, data=data)

    for code, pointer in document.notes:
        report(code, pointer)
    if "signatures" not in members:
        report("form-flattened", "")
    for name in UNSIGNED_MEMBERS:
        if name in members:
            report("form-hybrid", f"/{name}")
    envelope = read_envelope(members, report)
    signatures = tuple(_judge_header(signature, members, report) for signature in envelope.signatures)
    return replace(envelope, signatures=signatures)


def _judge_header(signature: Signature, members: Mapping[str, Any], report: Report) -> Signature:
    """Report what a JOSE header says that no key is needed for; refuse what must not be verified at all."""
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
    typ_fits = typ is None or (
        isinstance(typ, str) and typ.lower() in _CTYS | _NESTED | {"jose", "application/jose"}
    )
    cty_fits = cty is None or (isinstance(cty, str) and cty.lower() in _CTYS | _NESTED | _UNREGISTERED)
    if not typ_fits or not cty_fits:
        report("jws-typ-foreign", pointer)
    if isinstance(cty, str) and cty.lower() in _UNREGISTERED:
        report("media-type-unregistered", pointer)


def _read_payload(payload: bytes, max_bytes: int) -> Document:
    return read_json(decompress(payload, max_bytes=max_bytes), max_bytes=max_bytes)

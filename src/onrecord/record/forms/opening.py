"""The forms of a vCon: unsigned, signed, encrypted; plain or gzip. Telling them apart and getting at the vCon inside.

    >>> open_form(b'{"uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd"}').kind
    'unsigned'

Source: record.md 2.11, 2.14, 2.15.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.base.findings import Severity
from onrecord.record.checks.collector import Collector
from onrecord.record.checks.suppression import NO_SUPPRESSIONS, Suppressions
from onrecord.record.forms._rfc7515 import Envelope, read_envelope
from onrecord.record.forms._rfc7516 import Message, read_message
from onrecord.record.forms.compression import decompress
from onrecord.record.forms.jose_headers import judge_message, judge_signature
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

COMPACT: Final = re.compile(rb'\s*"?([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*){2}(?:(?:\.[A-Za-z0-9_-]*){2})?)"?\s*')
"""A compact JWS of three parts, or a compact JWE of five, bare or as a JSON string."""


@dataclass(frozen=True, slots=True)
class Form:
    """A file that was opened: its form, its envelopes from the outside in, and the vCon inside.

    `envelope` collects the findings about the envelopes. `payload` is None if there is no readable vCon;
    `payload_error` then says why, unless a finding does. Of an encrypted file `encrypted` is what was read, None if
    it is compact. Nothing here is verified or decrypted.
    """

    kind: str
    envelopes: tuple[Envelope, ...] = ()
    envelope: Collector | None = None
    envelope_document: Any = field(default=None, repr=False)
    payload: Document | None = None
    payload_error: MalformedError | None = None
    encrypted: Message | None = None


def require_bytes(data: object) -> None:
    """Refuse what a program gave in place of the bytes of a file.

    Raises `UsageError` with code "bytes-expected".
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return
    hint = (
        'encode a text: text.encode("utf-8")'
        if isinstance(data, str)
        else "Path(name).read_bytes() reads a file"
    )
    raise UsageError(
        f"expected the bytes of a file, found {type(data).__name__}", code="bytes-expected", hint=hint
    )


@dataclass(frozen=True, slots=True)
class _How:
    """How a file is opened."""

    max_bytes: int
    strict: bool
    suppress: Suppressions

    def collector(self) -> Collector:
        return Collector(strict=self.strict, layer="envelope", suppress=self.suppress)


def open_form(
    data: bytes,
    *,
    max_bytes: int = MAX_BYTES,
    strict: bool = False,
    suppress: Suppressions = NO_SUPPRESSIONS,
) -> Form:
    """Open a file in any form.

    `strict` raises the warnings of record.md D-73 to errors; `suppress` names findings that are only counted.

    Raises `MalformedError` with a code of record.md 6.2 for what cannot be read at all: "size-limit", "gzip-invalid",
    "gzip-limit", "json-invalid", "json-duplicate-member", "json-depth", "form-unknown"; `UsageError` with code
    "bytes-expected" for a text or a path.
    """
    require_bytes(data)
    if len(data) > max_bytes:
        _refuse("size-limit", f"the input has {len(data)} bytes, the limit is {max_bytes}")
    how = _How(max_bytes, strict, suppress)
    data = decompress(data, max_bytes=max_bytes)
    if data[:1] != b"{" and (compact := COMPACT.fullmatch(data)) is not None:
        return _open_compact(compact[1], how)
    document = read_json(data, max_bytes=max_bytes)
    value = document.value
    if not isinstance(value, dict):
        _refuse("form-unknown", "the input is no JSON object")
    if _is_signed(value):
        return _open_signed(document, how)
    if _is_encrypted(value):
        return _open_encrypted(document, how)
    if not any(name in value for name in UNSIGNED_MEMBERS):
        _refuse("form-unknown", "the input has no member of any form of a vCon")
    return Form(UNSIGNED, payload=document)


def _is_signed(value: Any) -> bool:
    return isinstance(value, dict) and "payload" in value and ("signatures" in value or "signature" in value)


def _is_encrypted(value: Mapping[str, Any]) -> bool:
    """Tell the general form by its recipients, the flattened one by what else belongs to it."""
    if "ciphertext" not in value:
        return False
    return "recipients" in value or "encrypted_key" in value or ("iv" in value and "tag" in value)


def _refuse(code: str, message: str) -> NoReturn:
    raise MalformedError(message, code=code, where=Where(pointer="")) from None


def _open_compact(text: bytes, how: _How) -> Form:
    collector = how.collector()
    collector.add("form-compact", "")
    return Form(ENCRYPTED if text.count(b".") > 2 else SIGNED, envelope=collector)


def _open_encrypted(document: Document, how: _How) -> Form:
    members: dict[str, Any] = document.value
    collector = how.collector()
    for code, pointer in document.notes:
        collector.add(code, pointer)
    if "recipients" not in members:
        collector.add("form-flattened", "")
    for name in UNSIGNED_MEMBERS:
        if name in members:
            collector.add("form-hybrid", f"/{name}")
    message = judge_message(read_message(members, collector.add), collector.add)
    return Form(ENCRYPTED, envelope=collector, envelope_document=members, encrypted=message)


def _open_signed(document: Document, how: _How) -> Form:
    collector = how.collector()
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
            inner = _read_payload(envelope.payload, how.max_bytes)
        except MalformedError as refused:
            error = refused
            break
        value = inner.value
        if _is_signed(value):
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
    signatures = tuple(judge_signature(signature, members, report) for signature in envelope.signatures)
    return replace(envelope, signatures=signatures)


def _read_payload(payload: bytes, max_bytes: int) -> Document:
    return read_json(decompress(payload, max_bytes=max_bytes), max_bytes=max_bytes)

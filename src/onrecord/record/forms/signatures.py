"""Verifying signed vCons: what was checked, on what grounds, and what was not.

>>> verify(b'{"uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd"}').verdict
'not-evaluated'

Source: record.md 2.11; running.md 9.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cryptography import x509

from onrecord.base.dates import utc_now
from onrecord.base.errors import UsageError
from onrecord.base.reports import Axis
from onrecord.record.forms.certificates import CHAIN_PROFILES, STRICT
from onrecord.record.forms.opening import ENCRYPTED, UNSIGNED, Form, open_form, require_bytes
from onrecord.record.forms.revocation import Revocations
from onrecord.record.forms.signers import SignedReport
from onrecord.record.forms.verification import REQUIRED, Demand, Require, Verification
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.reader import MAX_BYTES


def verify(
    data: bytes,
    *,
    anchors: Sequence[x509.Certificate] | None = None,
    at: datetime | None = None,
    chain: str = STRICT,
    require: Require = "all",
    required_anchors: Sequence[x509.Certificate] = (),
    crls: Sequence[x509.CertificateRevocationList] = (),
    reject_after: datetime | None = None,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
) -> SignedReport:
    """Verify a signed vCon and report what was checked.

    `anchors` are the certificates trusted; none leaves chain and verdict not evaluated. `at` is the check time, now
    by default; `chain` is "strict" or "compat". All signatures must hold, or with `require="any"` one of each
    envelope, and then errors of the others are warnings. Each of `required_anchors`, which are trusted too, must vouch
    for a good signature. `crls` are looked up for every certificate below an anchor. `reject_after` refuses vCons that
    say they were signed later, for keys known to be lost then. The vCon to go on with is `payload` of the report, set
    only when the verdict is verified; `signers` names who signed it.

    Raises `MalformedError` for input that cannot be read at all, and `UsageError` with code "chain-profile-unknown",
    "require-unknown" or "bytes-expected".

    Source: record.md D-23 to D-28; running.md 9.
    """
    require_bytes(data)
    if chain not in CHAIN_PROFILES:
        raise UsageError(
            "there is no such chain profile", code="chain-profile-unknown", hint="use strict or compat"
        )
    if require not in ("all", "any"):
        raise UsageError(
            "so many signatures cannot be required", code="require-unknown", hint="use all or any"
        )
    with paused_collection(len(data)):
        form = open_form(data, max_bytes=max_bytes, strict=strict)
    if form.kind in (UNSIGNED, ENCRYPTED):
        return _not_signed(form)
    demand = Demand(
        anchors=(*(anchors or ()), *required_anchors),
        at=at or utc_now(),
        chain=chain,
        require=require,
        required=tuple(required_anchors),
        revocations=Revocations(tuple(crls)),
        reject_after=reject_after,
    )
    return Verification(form, demand, strict=strict).report()


def _not_signed(form: Form) -> SignedReport:
    if form.kind == UNSIGNED:
        form_axis = Axis("verified", "unsigned form")
        grounds = "the vCon is not signed"
    else:
        form_axis = Axis("not-evaluated", "encrypted form: decrypt it first")
        grounds = "the vCon is encrypted"
    rest = {name: Axis("not-evaluated", grounds) for name in ("signature", "chain", "key-validity")}
    more = {name: Axis("not-checked", grounds) for name in ("uuid", "digest", "extensions")}
    findings = form.envelope.in_order(form.envelope_document) if form.envelope is not None else ()
    return SignedReport(
        {"form": form_axis, **rest, **more},
        REQUIRED,
        not_checked=("signature",),
        findings=findings,
        outcome_word=form.kind,
    )

"""Verifying signed vCons: what was checked, on what grounds, and what was not.

Source: record.md 2.11; running.md 9; RFC 7515; RFC 5280.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from onrecord.base.dates import parse_date, utc_now
from onrecord.base.errors import CertificateError, MalformedError, SignatureError, UsageError
from onrecord.base.findings import Finding
from onrecord.base.hashes import ContentHash
from onrecord.base.ids import domain_uuid_bits
from onrecord.base.jose import MIN_RSA_BITS, verify_signature
from onrecord.base.reports import Axis, Report, Result
from onrecord.record._rfc7515 import Envelope, Signature
from onrecord.record.certificates import (
    CHAIN_PROFILES,
    STRICT,
    Chain,
    dns_names,
    find_chain,
    fingerprint,
    public_key_of,
    read_x5c,
)
from onrecord.record.checks.collector import Collector
from onrecord.record.opening import ENCRYPTED, UNSIGNED, Form, open_form
from onrecord.record.vcon.bodies import body_bytes
from onrecord.record.vcon.canonical_text import is_canonical
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.reader import MAX_BYTES
from onrecord.record.vcon.versions import unsupported_critical

REQUIRED: Final = frozenset(["form", "signature", "chain", "key-validity"])
"""Axes without which there is no verdict (running.md 9)."""

_AXIS_OF: Final[Mapping[str, str]] = {
    "jws-alg-refused": "signature",
    "jws-crit-unsupported": "signature",
    "jws-certificate-missing": "signature",
    "jws-signature-invalid": "signature",
    "chain-untrusted": "chain",
    "chain-not-ca": "chain",
    "chain-weak": "chain",
    "chain-expired": "key-validity",
    "chain-revoked": "key-validity",
    "jws-uuid-mismatch": "uuid",
    "content-hash-mismatch": "digest",
    "critical-unsupported": "extensions",
}
"""The axis that an error makes fail; every other error is one of form."""

_HINT_NO_ANCHOR: Final = (
    "no anchor is configured: name one with --anchor, or set trust.vcon in the configuration"
)


@dataclass(frozen=True, slots=True)
class _Check:
    """How to verify: anchors, check time, chain profile."""

    anchors: tuple[x509.Certificate, ...]
    at: datetime
    chain: str


@dataclass(slots=True)
class _Tally:
    """What the signatures of a file amounted to."""

    signatures: int = 0
    verified: int = 0
    anchors: set[str] = field(default_factory=set)
    chains: int = 0
    algs: set[str] = field(default_factory=set)
    uuids: int = 0


def verify(
    data: bytes,
    *,
    anchors: Sequence[x509.Certificate] | None = None,
    at: datetime | None = None,
    chain: str = STRICT,
    reject_after: datetime | None = None,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
) -> Report:
    """Verify a signed vCon and report what was checked.

    `anchors` are the certificates trusted; none leaves chain and verdict not evaluated. `at` is the check time, now
    by default; `chain` is "strict" or "compat". `reject_after` refuses vCons that say they were signed later, for
    keys known to be lost then. The vCon to go on with is `Report.payload`, set only when the verdict is verified.

    Raises `MalformedError` for input that cannot be read at all, and `UsageError` with code "chain-profile-unknown".

    Source: record.md D-23 to D-28; running.md 9.
    """
    if chain not in CHAIN_PROFILES:
        raise UsageError(
            "there is no such chain profile", code="chain-profile-unknown", hint="use strict or compat"
        )
    with paused_collection(len(data)):
        form = open_form(data, max_bytes=max_bytes, strict=strict)
    if form.kind in (UNSIGNED, ENCRYPTED):
        return _not_signed(form)
    check = _Check(tuple(anchors or ()), at or utc_now(), chain)
    return _Verification(form, check, reject_after=reject_after, strict=strict).report()


def _not_signed(form: Form) -> Report:
    if form.kind == UNSIGNED:
        form_axis = Axis("verified", "unsigned form")
        grounds = "the vCon is not signed"
    else:
        form_axis = Axis("not-evaluated", "encrypted form: decrypt it first")
        grounds = "the vCon is encrypted"
    rest = {name: Axis("not-evaluated", grounds) for name in ("signature", "chain", "key-validity")}
    more = {name: Axis("not-checked", grounds) for name in ("uuid", "digest", "extensions")}
    return Report(
        {"form": form_axis, **rest, **more}, REQUIRED, not_checked=("signature",), outcome_word=form.kind
    )


class _Verification:
    """One run over one signed file."""

    def __init__(self, form: Form, check: _Check, *, reject_after: datetime | None, strict: bool) -> None:
        self._form = form
        self._check = check
        self._reject_after = reject_after
        self._envelope = form.envelope or Collector(strict=strict, layer="envelope")
        self._vcon = Collector(strict=strict, layer="vcon")
        self._document = form.payload
        self._tally = _Tally()
        self._failed: set[str] = set()
        self._rejected = False

    def report(self) -> Report:
        """Verify everything, from the outside in, and sum up."""
        self._read_vcon()
        for level, envelope in enumerate(self._form.envelopes):
            for signature in envelope.signatures:
                self._tally.signatures += 1
                self._verify(envelope, signature, level)
        digest = self._check_digests()
        document = self._document.value if self._document is not None else None
        findings = (
            *self._envelope.in_order(self._form.envelope_document),
            *self._vcon.in_order(document),
        )
        for finding in findings:
            if finding.severity == "error":
                self._failed.add(_AXIS_OF.get(finding.code, "form"))
        if self._envelope.left_out["error"] or self._vcon.left_out["error"]:
            self._failed.add("form")
        axes = self._axes(digest)
        report = Report(axes, REQUIRED, not_checked=self._not_checked(axes), findings=findings)
        payload = self._document.raw if self._document and report.verdict == "verified" else None
        return Report(axes, REQUIRED, report.not_checked, findings, self._outcome(findings), payload)

    def _outcome(self, findings: tuple[Finding, ...]) -> str | None:
        """Return the code of the first error, which says best why a verification failed."""
        errors = [finding.code for finding in findings if finding.severity == "error"]
        return errors[0] if errors else None

    def _read_vcon(self) -> None:
        error = self._form.payload_error
        if error is not None:
            self._vcon.add(error.code, (error.where.pointer if error.where else None) or "")
        if self._document is None:
            return
        for code, pointer in self._document.notes:
            self._vcon.add(code, pointer)
        vcon = self._document.value
        for pointer in unsupported_critical(vcon):
            self._vcon.add("critical-unsupported", pointer)
        if vcon.get("updated_at") is None:
            self._vcon.add("updated-at-missing", "/updated_at")
        if self._reject_after is not None:
            self._rejected = not _is_before(vcon.get("updated_at"), self._reject_after)
        if not is_canonical(self._document.value, self._document.raw):
            self._envelope.add("payload-not-canonical", "/payload")

    def _verify(self, envelope: Envelope, signature: Signature, level: int) -> None:
        pointer = f"/signatures/{signature.index}"
        header = signature.header

        def add(code: str, *, warning: bool = False, **data: Any) -> None:
            if level:
                data["envelope"] = level + 1
            self._envelope.add(code, pointer, severity="warning" if warning else None, data=data or None)

        if self._document is not None and header.get("uuid") is not None:
            self._tally.uuids += header["uuid"] == self._document.value.get("uuid")
        if "x5c" not in header:
            return
        try:
            certificates = read_x5c(header["x5c"])
        except CertificateError:
            add("jws-certificate-missing", cause="x5c-malformed")
            return
        self._check_chain(certificates, level, add)
        if signature.is_usable:
            self._check_signature(envelope, signature, certificates[0], add)
        if level == 0:
            self._check_domain(certificates[0], add)

    def _check_signature(
        self, envelope: Envelope, signature: Signature, leaf: x509.Certificate, add: Any
    ) -> None:
        key = public_key_of(leaf)
        alg = signature.header["alg"]
        if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
            add("chain-weak")
            self._failed.add("signature")
            return
        if key is None:
            add("jws-alg-refused")
            return
        try:
            verify_signature(alg, key, envelope.signing_input(signature), signature.value)
        except SignatureError as error:
            add(error.code)
        else:
            self._tally.verified += 1
            self._tally.algs.add(alg)

    def _check_chain(self, certificates: tuple[x509.Certificate, ...], level: int, add: Any) -> None:
        if not self._check.anchors:
            return
        chain: Chain = find_chain(
            certificates, self._check.anchors, at=self._check.at, profile=self._check.chain
        )
        for fault in chain.faults:
            if fault.code == "chain-expired" and level:
                self._envelope.add("nested-inner-expired", "/payload", data={"envelope": level + 1})
            else:
                add(fault.code, warning=fault.is_warning)
        if chain.anchor is not None:
            self._tally.chains += 1
            self._tally.anchors.add(fingerprint(chain.anchor))
            add("revocation-unchecked")

    def _check_domain(self, leaf: x509.Certificate, add: Any) -> None:
        """Compare the domain part of a version 8 uuid with the leaf's names and the domains above them."""
        own = self._document.value.get("uuid") if self._document is not None else None
        names = dns_names(leaf)
        if not names or not isinstance(own, str) or len(own) != 36 or own[14] != "8":
            return
        tail = own[19:].replace("-", "").lower()
        for name in names:
            labels = name.split(".")
            for start in range(max(1, len(labels) - 1)):
                if tail in _domain_tails(".".join(labels[start:])):
                    return
        add("signer-domain")

    def _check_digests(self) -> tuple[int, int]:
        """Check each content_hash whose bytes stand beside it. Returns how many were and how many fit."""
        checked = fitting = 0
        if self._document is None or not (
            b"content_hash" in self._document.raw or b"\\u" in self._document.raw
        ):
            return 0, 0
        vcon = self._document.value
        for name in ("dialog", "attachments", "analysis", "events"):
            items = vcon.get(name)
            for index, item in enumerate(items if isinstance(items, list) else ()):
                if not isinstance(item, dict) or item.get("content_hash") is None:
                    continue
                content = body_bytes(item)
                tokens = (
                    item["content_hash"] if isinstance(item["content_hash"], list) else [item["content_hash"]]
                )
                known = [token for token in tokens if isinstance(token, str) and token.startswith("sha512-")]
                if content is None or not known:
                    continue
                checked += 1
                if any(token != str(ContentHash.of(content)) for token in known):
                    self._vcon.add("content-hash-mismatch", f"/{name}/{index}/content_hash")
                else:
                    fitting += 1
        return checked, fitting

    def _axes(self, digest: tuple[int, int]) -> dict[str, Axis]:
        tally = self._tally
        return {
            "form": self._axis(
                "form", "JWS in JSON serialization, payload a vCon", verified=self._document is not None
            ),
            "signature": self._axis(
                "signature",
                f"each signature fits its leaf certificate ({', '.join(sorted(tally.algs)) or 'none verified'})",
                verified=0 < tally.verified == tally.signatures,
                count=tally.verified,
            ),
            "chain": self._chain_axis(),
            "key-validity": self._validity_axis(),
            "uuid": self._axis(
                "uuid",
                "the uuid of the header is the payload's" if tally.uuids else "no uuid in a header",
                verified=tally.uuids > 0,
                otherwise="not-checked",
            ),
            "digest": self._axis(
                "digest",
                "content hashes whose bytes are in the vCon",
                verified=digest[0] > 0,
                otherwise="not-checked",
                count=digest[1],
            ),
            "extensions": self._axis(
                "extensions",
                "everything in critical is supported",
                verified=self._document is not None,
                otherwise="not-checked",
            ),
        }

    def _axis(
        self,
        name: str,
        grounds: str,
        *,
        verified: bool,
        otherwise: Result = "not-evaluated",
        count: int | None = None,
    ) -> Axis:
        if name in self._failed:
            return Axis("failed", grounds, count)
        return Axis("verified" if verified else otherwise, grounds, count)

    def _chain_axis(self) -> Axis:
        if not self._check.anchors:
            return Axis("not-evaluated", _HINT_NO_ANCHOR)
        grounds = "path to the anchor with SHA-256 " + ", ".join(sorted(self._tally.anchors))
        if not self._tally.anchors:
            grounds = f"no path to one of {len(self._check.anchors)} anchors"
        return self._axis("chain", grounds, verified=0 < self._tally.chains == self._tally.signatures)

    def _validity_axis(self) -> Axis:
        moment = self._check.at.isoformat(timespec="seconds")
        if self._rejected:
            return Axis("failed", "signed after the time from which the key is not trusted")
        if not self._check.anchors:
            return Axis("not-evaluated", _HINT_NO_ANCHOR)
        return self._axis(
            "key-validity",
            f"certificates of the path are valid at {moment}",
            verified=0 < self._tally.chains == self._tally.signatures,
        )

    def _not_checked(self, axes: Mapping[str, Axis]) -> tuple[str, ...]:
        names = [name for name, axis in axes.items() if axis.result in ("not-checked", "not-evaluated")]
        return (*names, "revocation")


def _is_before(updated_at: Any, limit: datetime) -> bool:
    """Say whether a vCon says that it was signed by then. One that says nothing readable does not."""
    try:
        return isinstance(updated_at, str) and parse_date(updated_at) <= limit
    except MalformedError:
        return False


def _domain_tails(domain: str) -> tuple[str, str]:
    """Return the ends of version 8 uuids of a domain: the draft's rule, and the one that two peers use instead."""
    high = domain_uuid_bits(domain)
    return f"{0b10 << 62 | high:016x}", f"{0b10 << 62 | _low_bits(domain):016x}"


def _low_bits(domain: str) -> int:
    digest = hashlib.sha1(domain.encode("utf-8"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8], "big") & (2**62 - 1)

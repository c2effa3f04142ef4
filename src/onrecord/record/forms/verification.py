"""One verification of one signed file: its signatures from the outside in, and what they amount to.

Source: record.md 2.11, D-23 to D-28; running.md 9; RFC 7515; RFC 5280.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from onrecord.base.dates import parse_date
from onrecord.base.errors import CertificateError, MalformedError, SignatureError
from onrecord.base.findings import Finding
from onrecord.base.jose import MIN_RSA_BITS, verify_signature
from onrecord.base.reports import Axis, Result
from onrecord.record.checks.collector import Collector
from onrecord.record.forms._rfc7515 import Envelope, Signature
from onrecord.record.forms.certificates import (
    Fault,
    Issuances,
    find_chain,
    fingerprint,
    public_key_of,
    read_x5c,
)
from onrecord.record.forms.content_digests import check_digests
from onrecord.record.forms.opening import Form
from onrecord.record.forms.revocation import Revocations, Standing
from onrecord.record.forms.signer_domains import is_of_other_domain
from onrecord.record.forms.signers import NamedSigner, SignedReport
from onrecord.record.vcon.canonical_text import is_canonical
from onrecord.record.vcon.versions import unsupported_critical

Require = Literal["all", "any"]

REQUIRED: Final = frozenset(["form", "signature", "chain", "key-validity"])
"""Axes without which there is no verdict (running.md 9)."""

AXIS_OF: Final[Mapping[str, str]] = {
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
    "jwe-uuid-mismatch": "uuid",
    "content-hash-mismatch": "digest",
    "critical-unsupported": "extensions",
}
"""The axis that an error makes fail; every other error is one of form."""

_OF_THE_VCON: Final = frozenset(["jws-uuid-mismatch"])
"""Errors at a signature that another, good signature does not outweigh: they say that something was swapped."""

_HINT_NO_ANCHOR: Final = (
    "no anchor is configured: name one with --anchor, or set trust.vcon in the configuration"
)

_Place = tuple[int, int]
"""A signature: the number of its envelope counted from the outside, and its index there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What is asked of a file: whom to trust, at which time, by which profile, and how many signatures must hold.

    `required` are anchors of which each must vouch for a signature; they are among `anchors`.
    """

    anchors: tuple[x509.Certificate, ...]
    at: datetime
    chain: str
    require: Require
    required: tuple[x509.Certificate, ...]
    revocations: Revocations
    reject_after: datetime | None


@dataclass(slots=True)
class _Tally:
    """What the signatures of a file amounted to."""

    signatures: set[_Place] = field(default_factory=set)
    verified: set[_Place] = field(default_factory=set)
    chained: set[_Place] = field(default_factory=set)
    unrevoked: set[_Place] = field(default_factory=set)
    good: set[_Place] = field(default_factory=set)
    required: dict[str, set[_Place]] = field(default_factory=dict)
    leaves: dict[_Place, tuple[x509.Certificate, str]] = field(default_factory=dict)
    ends: dict[_Place, x509.Certificate] = field(default_factory=dict)
    uuids: int = 0


class Verification:
    """One run over one signed file."""

    def __init__(self, form: Form, demand: Demand, *, strict: bool) -> None:
        self._form = form
        self._demand = demand
        self._envelope = form.envelope or Collector(strict=strict, layer="envelope")
        self._vcon = Collector(strict=strict, layer="vcon")
        self._document = form.payload
        self._issuances = Issuances()
        self._tally = _Tally(required={fingerprint(anchor): set() for anchor in demand.required})
        self._failed: set[str] = set()
        self._rejected = False

    def report(self) -> SignedReport:
        """Verify everything, from the outside in, and sum up."""
        self._read_vcon()
        for level, envelope in enumerate(self._form.envelopes):
            for signature in envelope.signatures:
                self._verify(envelope, signature, level)
        digest = check_digests(self._document, self._vcon) if self._document is not None else (0, 0)
        findings = self._findings()
        for finding in findings:
            if finding.severity == "error":
                self._failed.add(AXIS_OF.get(finding.code, "form"))
        if self._envelope.left_out["error"] or self._vcon.left_out["error"]:
            self._failed.add("form")
        axes = self._axes(digest)
        report = SignedReport(
            axes,
            REQUIRED,
            self._not_checked(axes),
            findings,
            _outcome(findings),
            signers=self._signers(),
            uuid=self._text_of("uuid"),
            updated_at=self._text_of("updated_at"),
        )
        if self._document is None or report.verdict != "verified":
            return report
        return replace(report, payload=self._document.raw)

    def _text_of(self, name: str) -> str | None:
        """Return a text of the vCon that a signature fits, or None."""
        value = self._document.value.get(name) if self._document is not None and self._tally.leaves else None
        return value if isinstance(value, str) else None

    def _findings(self) -> tuple[Finding, ...]:
        envelope = self._envelope.in_order(self._form.envelope_document)
        bad = {place for finding in envelope if finding.severity == "error" and (place := _place(finding))}
        self._tally.good = self._tally.verified - bad
        if self._demand.anchors:
            self._tally.good &= self._tally.chained
        if self._demand.require == "any":
            held = {level for level, _ in self._tally.good}
            envelope = tuple(_outweighed(finding, held, self._tally.good) for finding in envelope)
        envelope += self._missing_anchors()
        document = self._document.value if self._document is not None else None
        return (*envelope, *self._vcon.in_order(document))

    def _missing_anchors(self) -> tuple[Finding, ...]:
        collector = Collector(layer="envelope")
        for name, places in self._tally.required.items():
            if not places & self._tally.good:
                collector.add("chain-untrusted", "/signatures", data={"anchor": name})
        return collector.in_order(self._form.envelope_document)

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
        if self._demand.reject_after is not None:
            self._rejected = not _is_before(vcon.get("updated_at"), self._demand.reject_after)
        if not is_canonical(self._document.value, self._document.raw):
            self._envelope.add("payload-not-canonical", "/payload")

    def _verify(self, envelope: Envelope, signature: Signature, level: int) -> None:
        place = (level, signature.index)
        pointer = f"/signatures/{signature.index}"
        header = signature.header
        self._tally.signatures.add(place)

        def add(code: str, *, warning: bool = False, **data: Any) -> None:
            if level:
                data["envelope"] = level + 1
            self._envelope.add(code, pointer, severity="warning" if warning else None, data=data or None)

        own_uuid = self._document.value.get("uuid") if self._document is not None else None
        self._tally.uuids += header.get("uuid") is not None and header["uuid"] == own_uuid
        if "x5c" not in header:
            return
        try:
            certificates = read_x5c(header["x5c"])
        except CertificateError:
            add("jws-certificate-missing", cause="x5c-malformed")
            return
        self._check_chain(certificates, place, add)
        if signature.is_usable:
            self._check_signature(envelope, signature, certificates[0], place, add)
        if level == 0 and is_of_other_domain(own_uuid, certificates[0]):
            add("signer-domain")

    def _check_signature(
        self, envelope: Envelope, signature: Signature, leaf: x509.Certificate, place: _Place, add: Any
    ) -> None:
        key = public_key_of(leaf)
        alg = signature.header["alg"]
        if isinstance(key, rsa.RSAPublicKey) and key.key_size < MIN_RSA_BITS:
            add("chain-weak")
            if self._demand.require == "all":
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
            self._tally.verified.add(place)
            self._tally.leaves[place] = (leaf, alg)

    def _check_chain(self, certificates: tuple[x509.Certificate, ...], place: _Place, add: Any) -> None:
        demand, level = self._demand, place[0]
        if not demand.anchors:
            return
        how: dict[str, Any] = {"at": demand.at, "profile": demand.chain, "issuances": self._issuances}
        chain = find_chain(certificates, demand.anchors, **how)
        for fault in chain.faults:
            if _is_outlived(fault, level):
                self._envelope.add("nested-inner-expired", "/payload", data={"envelope": level + 1})
            else:
                add(fault.code, warning=fault.is_warning)
        if chain.anchor is None:
            return
        self._tally.chained.add(place)
        self._tally.ends[place] = chain.anchor
        standing = demand.revocations.standing(chain.path, at=demand.at)
        if standing is Standing.REVOKED:
            add("chain-revoked")
        elif standing is Standing.GOOD:
            self._tally.unrevoked.add(place)
        else:
            # Who gave a list asked for this check, so that it did not happen is more than a note.
            add("revocation-unchecked", warning=bool(demand.revocations.crls))
        for anchor in demand.required:
            own = find_chain(certificates, (anchor,), **how)
            revoked = demand.revocations.standing(own.path, at=demand.at) is Standing.REVOKED
            if own.anchor is not None and not revoked and not _disqualifies(own.faults, level):
                self._tally.required[fingerprint(anchor)].add(place)

    def _signers(self) -> tuple[NamedSigner, ...]:
        """Name who made the signatures that fit, from the outside in; the anchor only of those that are good."""
        tally = self._tally
        trusted = tally.good if not (self._rejected or self._envelope.left_out["error"]) else set()
        ends = {place: anchor for place, anchor in tally.ends.items() if place in trusted}
        return tuple(
            NamedSigner.of(leaf, alg=alg, anchor=ends.get(place), envelope=place[0] + 1)
            for place, (leaf, alg) in sorted(tally.leaves.items(), key=lambda entry: entry[0])
        )

    def _axes(self, digest: tuple[int, int]) -> dict[str, Axis]:
        tally = self._tally
        algs = ", ".join(sorted({alg for _, alg in tally.leaves.values()}))
        has_vcon = self._document is not None
        return {
            "form": self._axis("form", "JWS in JSON serialization, payload a vCon", verified=has_vcon),
            "signature": self._axis(
                "signature",
                f"each signature fits its leaf certificate ({algs or 'none verified'})"
                if self._demand.require == "all"
                else f"a signature of each envelope fits its leaf certificate ({algs})",
                verified=self._suffices(tally.verified),
                count=len(tally.verified),
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
                verified=has_vcon,
                otherwise="not-checked",
            ),
        }

    def _suffices(self, places: set[_Place]) -> bool:
        """Say whether these signatures are all that there are, or with "any" one of each envelope that is good."""
        if self._demand.require == "all":
            return bool(places) and places == self._tally.signatures
        return bool(places) and {level for level, _ in places & self._tally.good} == set(
            range(len(self._form.envelopes))
        )

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
        if not self._demand.anchors:
            return Axis("not-evaluated", _HINT_NO_ANCHOR)
        ends = sorted({fingerprint(anchor) for anchor in self._tally.ends.values()})
        grounds = f"path to the anchor with SHA-256 {', '.join(ends)}"
        if not ends:
            grounds = f"no path to one of {len(self._demand.anchors)} anchors"
        return self._axis("chain", grounds, verified=self._suffices(self._tally.chained))

    def _validity_axis(self) -> Axis:
        moment = self._demand.at.isoformat(timespec="seconds")
        if self._rejected:
            return Axis("failed", "signed after the time from which the key is not trusted")
        if not self._demand.anchors:
            return Axis("not-evaluated", _HINT_NO_ANCHOR)
        unrevoked = ", and on no list of revoked ones" if self._is_unrevoked() else ""
        return self._axis(
            "key-validity",
            f"certificates of the path are valid at {moment}{unrevoked}",
            verified=self._suffices(self._tally.chained),
        )

    def _is_unrevoked(self) -> bool:
        return bool(self._tally.good) and self._tally.good <= self._tally.unrevoked

    def _not_checked(self, axes: Mapping[str, Axis]) -> tuple[str, ...]:
        names = [name for name, axis in axes.items() if axis.result in ("not-checked", "not-evaluated")]
        return (*names,) if self._is_unrevoked() else (*names, "revocation")


def _outcome(findings: tuple[Finding, ...]) -> str | None:
    """Return the code of the first error, which says best why a verification failed."""
    return next((finding.code for finding in findings if finding.severity == "error"), None)


def _place(finding: Finding) -> _Place | None:
    """Return the signature that a finding about an envelope is about, if it is about one."""
    parts = finding.pointer.split("/")
    if len(parts) < 3 or parts[1] != "signatures" or not parts[2].isdecimal():
        return None
    return int((finding.data or {}).get("envelope", 1)) - 1, int(parts[2])


def _outweighed(finding: Finding, held: set[int], good: set[_Place]) -> Finding:
    """Return an error at a signature as a warning, if another one of its envelope holds and one is enough."""
    place = _place(finding)
    if finding.severity != "error" or place is None or finding.code in _OF_THE_VCON:
        return finding
    return replace(finding, severity="warning") if place[0] in held and place not in good else finding


def _disqualifies(faults: tuple[Fault, ...], level: int) -> bool:
    return any(not fault.is_warning and not _is_outlived(fault, level) for fault in faults)


def _is_outlived(fault: Fault, level: int) -> bool:
    """Say whether an inner certificate has expired, for which the signature around it stands in."""
    return fault.code == "chain-expired" and not fault.is_early and level > 0


def _is_before(updated_at: Any, limit: datetime) -> bool:
    """Say whether a vCon says that it was signed by then. One that says nothing readable does not."""
    try:
        return isinstance(updated_at, str) and parse_date(updated_at) <= limit
    except MalformedError:
        return False

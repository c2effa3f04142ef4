"""The conformance check: everything the catalogue has to say about one file.

>>> result = check(b'{"uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd","parties":[{}]}')
>>> [finding.code for finding in result.findings]
['created-at-missing']
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onrecord.base.errors import MalformedError
from onrecord.base.findings import SEVERITIES, Finding, Severity
from onrecord.record.checks.ai_agent import check_ai_agent
from onrecord.record.checks.collector import Collector
from onrecord.record.checks.context import Context
from onrecord.record.checks.engine import Engine
from onrecord.record.checks.events import EventChecks
from onrecord.record.checks.indexes import check_indexes
from onrecord.record.checks.privacy import check_privacy
from onrecord.record.checks.structure import (
    check_analyses,
    check_attachments,
    check_dialogs,
    check_parties,
    check_sessions,
    check_vcon,
    report_unlisted_extensions,
)
from onrecord.record.checks.tool_invocation import check_tool_invocation
from onrecord.record.opening import ENCRYPTED, UNSIGNED, Form, open_form
from onrecord.record.operations import History
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.reader import MAX_BYTES, Document
from onrecord.record.vcon.versions import ProfileError, profile_of, require_checked


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found. `form` is None when reading stopped at a fatal finding.

    `left_out` counts findings beyond the cap, by severity. `history` holds the operations of tool-invocation.
    """

    form: str | None
    version: str | None
    extensions: tuple[str, ...]
    findings: tuple[Finding, ...]
    left_out: Mapping[Severity, int] = field(default_factory=dict)
    history: History | None = None

    @property
    def is_fatal(self) -> bool:
        """Say whether reading stopped, so that the file is an input error."""
        return any(finding.fatal for finding in self.findings)

    @property
    def is_valid(self) -> bool:
        """Say whether there is no error."""
        return not self.reaches("error")

    def reaches(self, threshold: Severity) -> bool:
        """Say whether any finding, kept or counted, is at least as severe as `threshold`."""
        floor = SEVERITIES.index(threshold)
        return any(SEVERITIES.index(finding.severity) >= floor for finding in self.findings) or any(
            SEVERITIES.index(severity) >= floor and count for severity, count in self.left_out.items()
        )

    def to_json(self) -> dict[str, Any]:
        """Return the members of DESIGN.md, without the file's name."""
        document: dict[str, Any] = {
            "form": self.form,
            "version": self.version,
            "extensions": list(self.extensions),
            "findings": [finding.to_json() for finding in self.findings],
        }
        if self.left_out:
            document["findingsLeftOut"] = dict(self.left_out)
        return document


def check(
    data: bytes, *, profile: str | None = None, strict: bool = False, max_bytes: int = MAX_BYTES
) -> CheckResult:
    """Check a file in unsigned or signed form.

    `profile` names the version of vCon core whose rules hold, instead of the file's own. `strict` raises the
    warnings of record.md D-73 to errors. Signatures are not verified here: their structure is checked, and the
    vCon inside like any other.

    Raises `ProfileError` with code "profile-unsupported" for a version, or "form-unsupported" for a form, that this
    release does not check, and `UsageError` with code "profile-unknown".
    """
    if profile is not None:
        require_checked(profile_of({}, profile=profile))
    with paused_collection(len(data)):
        return _check(data, profile=profile, strict=strict, max_bytes=max_bytes)


def _check(data: bytes, *, profile: str | None, strict: bool, max_bytes: int) -> CheckResult:
    try:
        form = open_form(data, max_bytes=max_bytes, strict=strict)
    except MalformedError as error:
        return _refused(error, strict=strict)
    if form.kind == ENCRYPTED:
        raise ProfileError(
            "the file is an encrypted vCon; this release checks unsigned and signed ones",
            code="form-unsupported",
            hint="decrypt it with the recipient's key and check the result",
        )
    envelope = form.envelope.in_order(form.envelope_document) if form.envelope is not None else ()
    if form.payload is None:
        if form.payload_error is None:
            return CheckResult(form.kind, None, (), envelope, _counts(form))
        inner = _refused(form.payload_error, strict=strict, layer="vcon")
        return CheckResult(None, None, (), envelope + inner.findings, _counts(form))
    return _check_payload(form, form.payload, envelope, profile=profile, strict=strict)


def _counts(form: Form, *collectors: Collector) -> dict[Severity, int]:
    total: Counter[Severity] = Counter()
    for collector in (form.envelope, *collectors):
        if collector is not None:
            total.update(collector.left_out)
    return dict(total)


def _refused(error: MalformedError, *, strict: bool, layer: str | None = None) -> CheckResult:
    collector = Collector(strict=strict, layer=layer)
    pointer = error.where.pointer if error.where is not None else None
    collector.add(error.code, pointer or "")
    return CheckResult(None, None, (), collector.in_order(None))


def _check_payload(
    form: Form, document: Document, envelope: tuple[Finding, ...], *, profile: str | None, strict: bool
) -> CheckResult:
    collector = Collector(strict=strict, layer=None if form.kind == UNSIGNED else "vcon")
    for code, pointer in document.notes:
        collector.add(code, pointer)
    vcon: dict[str, Any] = document.value
    version = profile_of(vcon, profile=profile)
    require_checked(version)
    history = check_model(vcon, collector, document.raw)
    context_extensions = vcon.get("extensions")
    extensions = (
        tuple(name for name in context_extensions if isinstance(name, str))
        if isinstance(context_extensions, list)
        else ()
    )
    findings = envelope + collector.in_order(vcon)
    fatal = any(finding.fatal for finding in findings)
    return CheckResult(
        form=None if fatal else form.kind,
        version=version,
        extensions=extensions,
        findings=findings,
        left_out=_counts(form, collector),
        history=history,
    )


def check_model(vcon: Mapping[str, Any], collector: Collector, raw: bytes) -> History | None:
    """Check a parsed vCon of the present version. `raw` is its text; findings go to `collector`.

    An extension in `critical` that is not supported ends the check there, for nothing in such a vCon may be relied
    on (record.md 2.8).
    """
    context = Context(vcon, collector)
    engine = Engine(context)
    check_vcon(context, engine)
    if collector.has("critical-unsupported"):
        return None
    check_parties(context, engine)
    check_sessions(context, engine)
    check_dialogs(context, engine)
    check_attachments(context, engine)
    check_analyses(context, engine)
    EventChecks(context, engine).run()
    check_indexes(context)
    history = check_tool_invocation(context)
    check_ai_agent(context)
    check_privacy(context, raw)
    report_unlisted_extensions(context)
    return history

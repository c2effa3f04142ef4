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
from onrecord.record.checks.profiles import rules_of
from onrecord.record.checks.structure import (
    check_analyses,
    check_attachments,
    check_dialogs,
    check_parties,
    check_sessions,
    check_vcon,
    report_unlisted_extensions,
)
from onrecord.record.checks.suppression import NO_SUPPRESSIONS, Suppressions
from onrecord.record.checks.tool_invocation import check_tool_invocation
from onrecord.record.forms.opening import UNSIGNED, Form, open_form, require_bytes
from onrecord.record.operations import History
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.reader import MAX_BYTES, Document
from onrecord.record.vcon.versions import profile_of


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found. `form` is None when reading stopped at a fatal finding, `version` when no vCon was read.

    `left_out` counts findings beyond the cap, by severity, and `suppressed` those that the caller did not want.
    `history` holds the operations of tool-invocation.
    """

    form: str | None
    version: str | None
    extensions: tuple[str, ...]
    findings: tuple[Finding, ...]
    left_out: Mapping[Severity, int] = field(default_factory=dict)
    history: History | None = None
    suppressed: int = 0

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


@dataclass(frozen=True, slots=True)
class _Asked:
    """How a file is to be checked."""

    profile: str | None
    strict: bool
    max_bytes: int
    suppress: Suppressions

    def collector(self, layer: str | None) -> Collector:
        return Collector(strict=self.strict, layer=layer, suppress=self.suppress)


def check(
    data: bytes,
    *,
    profile: str | None = None,
    strict: bool = False,
    max_bytes: int = MAX_BYTES,
    suppress: Suppressions = NO_SUPPRESSIONS,
) -> CheckResult:
    """Check a file in any form, against the rules of its own version of vCon core.

    `profile` names the version whose rules hold instead. `strict` raises the warnings of record.md D-73 to errors.
    `suppress` names findings that are only counted. Signatures are not verified here: their structure is checked,
    and the vCon inside like any other. Of an encrypted file the envelope is checked; what is inside needs a key.

    Raises `UsageError` with code "profile-unknown" if `profile` is no version of vCon core, and "bytes-expected" for a
    text or a path.
    """
    require_bytes(data)
    if profile is not None:
        profile_of({}, profile=profile)
    with paused_collection(len(data)):
        return _check(data, _Asked(profile, strict, max_bytes, suppress))


def _check(data: bytes, asked: _Asked) -> CheckResult:
    try:
        form = open_form(data, max_bytes=asked.max_bytes, strict=asked.strict, suppress=asked.suppress)
    except MalformedError as error:
        return _refused(error, asked)
    envelope = form.envelope.in_order(form.envelope_document) if form.envelope is not None else ()
    left_out, suppressed = _counts(form.envelope)
    if form.payload is not None:
        return _check_payload(form, form.payload, envelope, asked)
    if form.payload_error is None:
        return CheckResult(form.kind, None, (), envelope, left_out, suppressed=suppressed)
    inner = _refused(form.payload_error, asked, layer="vcon")
    return CheckResult(None, None, (), envelope + inner.findings, left_out, suppressed=suppressed)


def _counts(*collectors: Collector | None) -> tuple[dict[Severity, int], int]:
    """Return what was left out, by severity, and how many findings were suppressed."""
    left_out: Counter[Severity] = Counter()
    suppressed = 0
    for collector in collectors:
        if collector is not None:
            left_out.update(collector.left_out)
            suppressed += collector.suppressed
    return dict(left_out), suppressed


def _refused(error: MalformedError, asked: _Asked, *, layer: str | None = None) -> CheckResult:
    collector = asked.collector(layer)
    pointer = error.where.pointer if error.where is not None else None
    # Where JSON ends to be JSON is said with the line and the column, and nothing of the text.
    reason = {"reason": str(error)} if error.code == "json-invalid" else None
    collector.add(error.code, pointer or "", data=reason)
    return CheckResult(None, None, (), collector.in_order(None))


def _check_payload(
    form: Form, document: Document, envelope: tuple[Finding, ...], asked: _Asked
) -> CheckResult:
    collector = asked.collector(None if form.kind == UNSIGNED else "vcon")
    for code, pointer in document.notes:
        collector.add(code, pointer)
    if document.notes_left_out:
        collector.left_out["warning"] += document.notes_left_out
    vcon: dict[str, Any] = document.value
    version = profile_of(vcon, profile=asked.profile)
    context = Context(vcon, collector, profile=rules_of(version), forced=asked.profile is not None)
    history = check_model(context, document.raw)
    findings = envelope + collector.in_order(vcon)
    left_out, suppressed = _counts(form.envelope, collector)
    return CheckResult(
        form=None if any(finding.fatal for finding in findings) else form.kind,
        version=version,
        extensions=context.listed,
        findings=findings,
        left_out=left_out,
        history=history,
        suppressed=suppressed,
    )


def check_model(context: Context, raw: bytes) -> History | None:
    """Check a parsed vCon. `raw` is its text; findings go to the collector of the context.

    An extension in `critical` that is not supported ends the check there, for nothing in such a vCon may be relied
    on (record.md 2.8).
    """
    engine = Engine(context)
    check_vcon(context, engine)
    if context.collector.has("critical-unsupported"):
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

"""`policy check` and `policy sign`: from a source directory to a signed bundle.

Source: running.md 4.2; call-proof.md 8.1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from msgspec.structs import replace as replace_member

from onrecord.authorize.policy import signatures
from onrecord.authorize.policy.bundle import Bundle, read_bundle, read_policy_file
from onrecord.authorize.policy.cedar import Policy
from onrecord.authorize.policy.codes import finding
from onrecord.authorize.policy.lint import Mode
from onrecord.authorize.policy.loading import PolicyLintError
from onrecord.authorize.policy.source import Source, read_checked, read_source
from onrecord.authorize.policy.tables import Outcome, failures, run_rows
from onrecord.base.errors import PolicyError, StorageError, Where
from onrecord.base.files import replace_whole
from onrecord.base.findings import Finding
from onrecord.base.keys import Signer


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A source with its table tests run. `policy` is None when a finding of severity error forbids compiling it."""

    source: Source
    policy: Policy | None
    outcomes: tuple[Outcome, ...]

    @property
    def is_clean(self) -> bool:
        """Say whether it may be signed."""
        return not self.source.has_errors


def check_policy(path: Path, *, mode: Mode | None = None, now: datetime | None = None) -> Checked:
    """Read, lint and test a source directory, or read and lint a bundle file.

    Raises `PolicyError` with code "policy-missing" or "policy-unreadable".
    """
    return _tested(read_checked(path, mode=mode, now=now))


def _tested(source: Source) -> Checked:
    if source.bundle is None or source.has_errors:
        return Checked(source=source, policy=None, outcomes=())
    policy = Policy(source.bundle)
    outcomes = run_rows(policy, source.rows)
    source = replace(source, findings=(*source.findings, *failures(outcomes)))
    return Checked(source=source, policy=policy, outcomes=outcomes)


def sign_source(
    source: Path,
    *,
    bundle: Path,
    signer: Signer,
    mode: Mode | None = None,
    now: datetime | None = None,
) -> Bundle:
    """Check a source directory, then write the bundle and its signature beside it, each by rename.

    The version must be above that of the bundle that is there.

    Raises `PolicyLintError`, `PolicyError` with code "policy-missing", "policy-unreadable", "policy-version" or
    "policy-present", `KeyAccessError` with code "key-alg", or `StorageError` with code "policy-unwritable".
    """
    checked = _tested(read_source(source, now=now, mode=mode))
    made = checked.source.bundle
    if made is None or not checked.is_clean:
        raise PolicyLintError(checked.source.findings, where=Where(file=str(source)))
    line = signatures.sign(checked.source.data, signer=signer)
    signature_path = bundle.with_name(bundle.name + ".sig")
    _check_version(made, bundle)
    try:
        # First the signature: between the two renames the old bundle is unsigned, never the other way round, so that
        # an interrupted run leaves a bundle whose version is still the old one.
        replace_whole(signature_path, line.encode(), mode=0o644)
        replace_whole(bundle, checked.source.data, mode=0o644)
    except OSError as error:
        raise StorageError(
            f"cannot write the bundle ({error.strerror})",
            code="policy-unwritable",
            where=Where(file=str(bundle)),
        ) from error
    return made


def check_successor(new: Bundle, path: Path) -> Finding | None:
    """Return a finding if `sign_source` would refuse to replace the bundle at `path`; None also for the same policy.

    A bundle that this uid may not read is not judged.
    """
    try:
        present = _present(path)
        if present is None or present.document == replace_member(new.document, created=present.created):
            return None
        _check_version(new, path)
    except PolicyError as error:
        if error.code not in ("policy-version", "policy-present"):
            return None
        return finding(
            "version-not-new", "/version", f"{error}: policy sign would refuse it", hint=error.hint
        )
    return None


def _present(path: Path) -> Bundle | None:
    """Return the bundle that is there, or None. Raises `PolicyError`."""
    try:
        data = read_policy_file(path, follow=True)
    except PolicyError as error:
        if error.code == "policy-missing":
            return None
        raise
    present, _ = read_bundle(data)
    if present is None:
        raise PolicyError(
            "the bundle that is there cannot be read, so its version is not known",
            code="policy-present",
            where=Where(file=str(path)),
            hint="look at it with onrecord policy check; remove it if it is not needed",
        )
    return present


def _check_version(new: Bundle, path: Path) -> None:
    present = _present(path)
    if present is None or new.version > present.version:
        return
    raise PolicyError(
        f"version {new.version} is not above version {present.version} of the bundle that is there",
        code="policy-version",
        where=Where(file=str(path)),
        hint=f'set "version": {present.version + 1} in bundle.json',
    )

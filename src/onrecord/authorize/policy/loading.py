"""From the bundle file in its place to a bundle that may be used: signature, strict reading, succession, lint.

Source: call-proof.md 8.1, 8.2, 8.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from onrecord.authorize.policy import signatures
from onrecord.authorize.policy.bundle import Bundle, LoadedVersion, read_bundle, read_policy_file
from onrecord.authorize.policy.lint import check_bundle
from onrecord.base.errors import PolicyError, Where
from onrecord.base.findings import Finding


class PolicyLintError(PolicyError):
    """A bundle or source with errors; `findings` holds them all, warnings included."""

    def __init__(self, findings: tuple[Finding, ...], *, where: Where | None = None) -> None:
        errors = [item for item in findings if item.severity == "error"]
        first = errors[0]
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        super().__init__(
            f"the policy has errors: {first.code} at {first.pointer or '/'}: {first.message}{more}",
            code="policy-lint",
            where=where,
            hint="onrecord policy check lists all of them",
        )
        self.findings = findings

    def to_json(self) -> dict[str, object]:
        """Return the error with its findings."""
        document = super().to_json()
        document["error"]["findings"] = [item.to_json() for item in self.findings]
        return document


def load_bundle(
    bundle_path: Path,
    trusted: Mapping[str, Ed25519PublicKey],
    *,
    previous: LoadedVersion | None = None,
    mode: Literal["user", "system"] | None = None,
) -> Bundle:
    """Return the bundle of a file, after signature, strict reading, rollback check and lint, in this order.

    The signature stands beside it in `<name>.sig`. `trusted` maps key ids to the keys that may sign policy. `previous`
    is the version that was in force: only a higher one is accepted, or the same bytes again. `mode` is that of the
    configuration. Who may own the files is the caller's to check; symbolic links are not followed.

    Raises `PolicyError` with code "policy-missing", "policy-unreadable", "policy-unsigned", "policy-signature",
    "policy-key-unknown" or "policy-rollback", or `PolicyLintError` with code "policy-lint".
    """
    where = Where(file=str(bundle_path))
    data = read_policy_file(bundle_path)
    signature_path = bundle_path.with_name(bundle_path.name + ".sig")
    signatures.verify(
        data, read_signature_file(signature_path), trusted, where=Where(file=str(signature_path))
    )
    bundle, findings = read_bundle(data)
    if bundle is None:
        raise PolicyLintError(findings, where=where)
    if previous is not None:
        check_succession(bundle.loaded_version, previous, where=where)
    findings = check_bundle(bundle, mode=mode)
    if any(item.severity == "error" for item in findings):
        raise PolicyLintError(findings, where=where)
    return bundle


def check_succession(new: LoadedVersion, previous: LoadedVersion, *, where: Where | None = None) -> None:
    """Make sure that `new` may follow `previous`: a higher version, or the same one with the same bytes.

    Raises `PolicyError` with code "policy-rollback". Source: call-proof.md 8.2.
    """
    if new.version > previous.version or new == previous:
        return
    what = "older than" if new.version < previous.version else "different from, but numbered as,"
    raise PolicyError(
        f"policy version {new.version} is {what} version {previous.version}, which was in force",
        code="policy-rollback",
        where=where,
        hint="raise the version in bundle.json and sign again",
    )


def read_signature_file(path: Path) -> bytes:
    """Return the bytes of a `.sig` file.

    Raises `PolicyError` with code "policy-unsigned" or "policy-unreadable".
    """
    try:
        return read_policy_file(path, limit=signatures.MAX_SIGNATURE_BYTES)
    except PolicyError as error:
        if error.code != "policy-missing":
            raise
        raise PolicyError(
            "the policy bundle has no signature",
            code="policy-unsigned",
            where=error.where,
            hint="onrecord policy sign writes bundle and signature together",
        ) from None

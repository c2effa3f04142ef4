"""`onrecord sign`: a signed vCon out of an unsigned one, or a new signature around a signed one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onrecord.base.configuration import Configuration
from onrecord.base.dates import utc_now
from onrecord.base.errors import CertificateError, ConfigurationError, MalformedError, UsageError, Where
from onrecord.base.findings import Finding
from onrecord.base.keys import SCHEMES, Signer, signer_from_uri
from onrecord.cli.files import OutOption, read_file, require_out, write_file
from onrecord.cli.findings import print_findings
from onrecord.cli.keys import key_uri
from onrecord.cli.output import ConfigOption, JsonOption, emit, error_console, exit_with, note
from onrecord.cli.sources import placed
from onrecord.cli.trust import (
    AnchorOption,
    AtOption,
    ChainOption,
    ChainProfile,
    CrlOption,
    anchors_of,
    crls_of,
    time_of,
)
from onrecord.record.checks.checker import check
from onrecord.record.forms import SIGNED, UNSIGNED, open_form, resign, sign
from onrecord.record.forms.certificates import load_certificates
from onrecord.record.forms.updating import with_updated_at

if TYPE_CHECKING:
    from cryptography import x509


class Alg(Enum):
    """Algorithms that are written."""

    RS256 = "RS256"
    PS256 = "PS256"
    ES256 = "ES256"
    ES384 = "ES384"
    EDDSA = "EdDSA"
    ED25519 = "Ed25519"


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An unsigned vCon; - is standard input.", readable=False)
    ],
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Private key: a PEM file, or a URI; default: keys.record of the configuration.",
            show_default=False,
        ),
    ] = None,
    certificate: Annotated[
        list[Path] | None,
        typer.Option(
            "--certificate",
            metavar="CERT",
            help="Certificates of the key, its own first; may be given several times; "
            "default: keys.record_chain of the configuration.",
            show_default=False,
        ),
    ] = None,
    alg: Annotated[
        Alg | None,
        typer.Option("--alg", help="Algorithm; default: the usual one of the key.", show_default=False),
    ] = None,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the vCon that is signed.")] = False,
    keep_updated_at: Annotated[
        bool, typer.Option("--keep-updated-at", help="Sign the text as it is, byte for byte.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Sign a vCon that has errors.")] = False,
    wrap: Annotated[
        bool,
        typer.Option("--wrap", help="Verify a signed vCon and sign it anew around what is there."),
    ] = False,
    anchor: AnchorOption = None,
    at: AtOption = None,
    chain: ChainOption = ChainProfile.STRICT,
    crl: CrlOption = None,
    out: OutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign a vCon: sets updated_at to the present time, checks it, and writes the signed form.

    Sign when the conversation has ended, or at checkpoints that you declare; what is added later needs a new instance.
    --anchor, --at, --chain and --crl are for --wrap, which verifies first.

    Exit 0 signed, 1 not signed because of what is wrong with the file, 2 not readable, 3 the key cannot be used.
    """
    require_out(out, as_json=as_json)
    _require_wrap(wrap, anchor, at, crl)
    data = read_file(file)
    signer, own_chain = key_of(key, certificate, config)
    how: dict[str, Any] = {
        "signer": signer,
        "chain": own_chain,
        "alg": alg.value if alg is not None else None,
        "gzip": gzip,
    }
    findings: tuple[Finding, ...] = ()
    try:
        form = open_form(data)
        if form.kind == UNSIGNED and form.payload is not None:
            text = form.payload.raw if keep_updated_at else with_updated_at(form.payload.raw)
            findings = _checked(text, file, force=force, as_json=as_json)
            signed = sign(text, **how)
        elif form.kind == SIGNED and wrap:
            signed = resign(
                data,
                **how,
                anchors=anchors_of(anchor, config),
                at=time_of(at, "--at"),
                chain_profile=chain.value,
                crls=crls_of(crl),
            )
        else:
            raise _other_form(form.kind, file)
        result = open_form(signed)
    except MalformedError as error:
        raise placed(error, file) from error
    write_file(out, signed)
    header = result.envelopes[0].signatures[0].header
    if as_json:
        emit(
            {
                "file": str(file),
                "out": str(out),
                "form": SIGNED,
                "uuid": header["uuid"],
                "alg": header["alg"],
                "updated_at": result.payload.value.get("updated_at") if result.payload else None,
                "envelopes": len(result.envelopes),
                "findings": [finding.to_json() for finding in findings],
            }
        )
        return
    print_findings(error_console(), findings)
    note(f"signed with {header['alg']}, certificates: {len(own_chain)}, envelopes: {len(result.envelopes)}")


def _require_wrap(wrap: bool, anchor: list[Path] | None, at: str | None, crl: list[Path] | None) -> None:
    if not wrap and (anchor or at or crl):
        raise UsageError(
            "--anchor, --at and --crl are for --wrap, and nothing is verified without it",
            code="usage",
            hint="leave them out, or name a signed vCon and --wrap",
        )


def key_of(
    key: str | None, certificate: Sequence[Path] | None, config: Path | None
) -> tuple[Signer, tuple[x509.Certificate, ...]]:
    """Return the signing key with its certificates, without a root.

    Raises `UsageError` with code "key-missing-option", `CertificateError` with code "certificate-expired".
    """
    if (key is None) != (not certificate):
        raise UsageError(
            "a key and its certificates belong together",
            code="key-certificates",
            hint="give both --key KEY and --certificate CERT, or neither to use those of the configuration",
        )
    if key is None or not certificate:
        keys = _configured(config).keys
        key, certificate = keys.record, (keys.record_chain,)
    certificates = [one for path in certificate for one in load_certificates(path)]
    if not certificates:
        raise ConfigurationError(
            "there is no certificate", code="certificate-missing", where=Where(file=str(certificate[0]))
        )
    leaf = certificates[0]
    if not leaf.not_valid_before_utc <= utc_now() <= leaf.not_valid_after_utc:
        raise CertificateError(
            "the certificate of the key is not valid now",
            code="certificate-expired",
            hint="get a new one for the key, and name it with --certificate",
            where=Where(file=str(certificate[0])),
        )
    own = (leaf, *(one for one in certificates[1:] if one.issuer != one.subject))
    return signer_from_uri(key_uri(key, SCHEMES), purpose="signing"), own


def _configured(config: Path | None) -> Configuration:
    try:
        return Configuration.load(config)
    except ConfigurationError as error:
        if error.code == "configuration-missing":
            error.hint = (
                "name a key with --key KEY and --certificate CERT, or make a configuration: onrecord init"
            )
        raise


def _checked(text: bytes, file: Path, *, force: bool, as_json: bool) -> tuple[Finding, ...]:
    """Check what is about to be signed, and end here if it has errors that nobody accepted."""
    result = check(text)
    if result.is_valid or (force and not result.is_fatal):
        return result.findings
    if as_json:
        document = {"file": str(file), "out": None, "form": None if result.is_fatal else UNSIGNED}
        emit({**document, "findings": [finding.to_json() for finding in result.findings]})
    else:
        print_findings(error_console(), result.findings)
        note("onrecord: the vCon has errors, so it is not signed")
        note(
            "  next: correct them; --force signs it all the same"
            if not result.is_fatal
            else "  next: correct it"
        )
    exit_with(1)


def _other_form(kind: str, file: Path) -> UsageError:
    if kind == SIGNED:
        return UsageError(
            "the vCon is signed already",
            code="form-not-unsigned",
            hint="--wrap verifies it and signs it anew around what is there",
            where=Where(file=str(file)),
        )
    return UsageError(
        "the vCon is encrypted",
        code="form-encrypted",
        hint="onrecord decrypt FILE --key KEY --out SIGNED gives the signed vCon inside",
        where=Where(file=str(file)),
    )

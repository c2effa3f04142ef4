"""`onrecord decrypt`: the signed vCon inside of an encrypted one, verified where it is known whom to trust."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from onrecord.base.decryption_keys import SCHEMES, decrypter_from_uri
from onrecord.base.errors import MalformedError, UsageError
from onrecord.base.reports import Report
from onrecord.cli.files import OutOption, read_file, require_out, write_file
from onrecord.cli.findings import print_findings
from onrecord.cli.keys import key_uri
from onrecord.cli.output import ConfigOption, JsonOption, emit, error_console, exit_with, note, visible
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
from onrecord.cli.verify import print_report
from onrecord.record.forms import ENCRYPTED, SIGNED, decrypt, verify
from onrecord.record.forms.decryption import Decrypted, UndecryptedError, with_envelope

if TYPE_CHECKING:
    from cryptography import x509


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="An encrypted vCon; - is standard input.", readable=False)
    ],
    key: Annotated[
        str,
        typer.Option(
            "--key",
            metavar="KEY",
            help="Private key of a recipient: a PEM file, or a URI.",
            show_default=False,
        ),
    ],
    anchor: AnchorOption = None,
    at: AtOption = None,
    chain: ChainOption = ChainProfile.STRICT,
    crl: CrlOption = None,
    unverified: Annotated[
        bool, typer.Option("--unverified", help="Write what is inside without verifying it.")
    ] = False,
    out: OutOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decrypt a vCon and write the signed form inside.

    Where an anchor is known it is verified first, and nothing is written that is not. Without one nobody vouches for
    what is written, but its signatures must fit the certificates beside them.

    Exit 0 done, 1 not decrypted or not verified, 2 not readable, or no encrypted vCon, 3 the key cannot be used.
    """
    require_out(out, as_json=as_json)
    if unverified and anchor:
        raise UsageError(
            "--anchor verifies and --unverified does not", code="usage", hint="leave one of them out"
        )
    data = read_file(file)
    decrypter = decrypter_from_uri(key_uri(key, SCHEMES), purpose="decryption")
    anchors = () if unverified else anchors_of(anchor, config, whole=True)
    if not anchors and not unverified and (at or crl):
        raise UsageError(
            "--at and --crl are for verifying, and there is no anchor to verify with",
            code="usage",
            hint="name one with --anchor, or leave them out",
        )
    try:
        decrypted = decrypt(data, key=decrypter)
    except UndecryptedError as error:
        _end_undecrypted(error, file, as_json=as_json)
    except MalformedError as error:
        raise placed(error, file) from error
    report = None
    if not unverified:
        report = with_envelope(
            verify(
                decrypted.signed,
                anchors=anchors,
                at=time_of(at, "--at"),
                chain=chain.value,
                crls=crls_of(crl),
            ),
            decrypted,
        )
    if report is not None and not anchors and report.verdict != "failed":
        report = None  # nobody was named who vouches for the signer: signatures that fit prove nothing
    good = report.verdict == "verified" if report is not None else not decrypted.has_errors
    written = good or unverified
    if written:
        write_file(out, decrypted.signed)
    if as_json:
        emit(_document(file, out if written else None, decrypted, report))
    else:
        _print(decrypted, report, anchors, unverified=unverified, written=written)
    exit_with(0 if good else 1)


def _end_undecrypted(error: UndecryptedError, file: Path, *, as_json: bool) -> NoReturn:
    if as_json:
        findings = [finding.to_json() for finding in error.findings]
        emit({"file": str(file), "out": None, "form": ENCRYPTED, "outcome": error.code, "findings": findings})
    else:
        print_findings(error_console(), error.findings)
        note(f"onrecord: {visible(str(error))} [{error.code}]")
        note(f"  next: {error.hint or error.usual_hint}")
    exit_with(error.exit_code)


def _document(file: Path, out: Path | None, decrypted: Decrypted, report: Report | None) -> dict[str, Any]:
    findings = report.findings if report is not None else decrypted.findings
    return {
        "file": str(file),
        "out": str(out) if out is not None else None,
        "form": SIGNED,
        "uuid": decrypted.uuid,
        "alg": decrypted.alg,
        "enc": decrypted.enc,
        "verification": report.to_json() if report is not None else None,
        "findings": [finding.to_json() for finding in findings],
    }


def _print(
    decrypted: Decrypted,
    report: Report | None,
    anchors: tuple[x509.Certificate, ...],
    *,
    unverified: bool,
    written: bool,
) -> None:
    out = error_console()
    if report is not None:
        print_report(out, report)
    else:
        print_findings(out, decrypted.findings)
        note(f"decrypted with {decrypted.alg} and {decrypted.enc}; the signature was not verified")
    if not written:
        note("onrecord: nothing was written; --unverified writes what is inside all the same")
    elif not anchors and not unverified:
        note("  next: onrecord verify SIGNED --anchor CERT")

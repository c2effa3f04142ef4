"""`onrecord show`: the story of a vCon for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from onrecord.base.errors import MalformedError, Where
from onrecord.cli.files import read_file
from onrecord.cli.output import JsonOption, console, emit
from onrecord.record.forms import ENCRYPTED, SIGNED, Form, open_form
from onrecord.record.story import render, tell
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.versions import ProfileError, require_checked, unsupported_critical


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A vCon, signed or not; - is standard input.")],
    as_json: JsonOption = False,
) -> None:
    """Tell the story of a vCon: sessions, operations, attempts, decisions, states.

    Signatures are not verified here; `onrecord verify` does that. Content is shown as it was recorded, in excerpts,
    and never acted upon.
    """
    form, vcon = _open(file)
    require_checked(vcon.version, file=str(file))
    for pointer in unsupported_critical(vcon.members):
        raise MalformedError(
            "the vCon needs an extension that this release does not know, so nothing of it is shown",
            code="critical-unsupported",
            hint="onrecord check FILE names the extension",
            where=Where(file=str(file), pointer=pointer),
        )
    if as_json:
        emit({"file": str(file), "form": form.kind, "signature": "not-checked", **tell(vcon).to_json()})
        return
    out = console()
    if form.kind == SIGNED:
        out.print(Text("Signed; the signature was not verified here (onrecord verify does).", style="yellow"))
    out.print(render(vcon))


def _open(file: Path) -> tuple[Form, Vcon]:
    try:
        form = open_form(read_file(file))
        if form.kind == ENCRYPTED:
            raise ProfileError(
                "the file is an encrypted vCon; this release shows unsigned and signed ones",
                code="form-unsupported",
                hint="decrypt it with the recipient's key first",
                where=Where(file=str(file)),
            )
        if form.payload_error is not None:
            raise form.payload_error
        if form.payload is None:
            raise MalformedError("there is no vCon in the envelope", code="jws-payload-invalid")
        return form, Vcon.of_document(form.payload)
    except MalformedError as error:
        raise MalformedError(
            str(error),
            code=error.code,
            hint=error.hint or "onrecord check FILE shows what is wrong with it",
            where=Where(file=str(file), pointer=error.where.pointer if error.where else None),
        ) from error

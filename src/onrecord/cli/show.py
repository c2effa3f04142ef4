"""`onrecord show`: the story of a vCon for people."""

from __future__ import annotations

from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group

from onrecord.base.errors import KeyAccessError, MalformedError, Where
from onrecord.cli.files import read_file
from onrecord.cli.output import JsonOption, console, emit_parts, write_out
from onrecord.cli.sources import placed, vcon_in
from onrecord.record.forms import ENCRYPTED, SIGNED, open_form
from onrecord.record.story.rendering import Rendering
from onrecord.record.story.rows import Row
from onrecord.record.story.telling import tell
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.versions import unsupported_critical

_ROWS_AT_ONCE: Final = 500
"""Lines handed to the terminal at once: the first ones come soon, and a long story is never held as a whole."""

_SIGNED_NOTE: Final = "Signed; the signature was not verified here (onrecord verify does)."


def command(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A vCon, signed or not; - is standard input.", readable=False),
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Show every entry and event, also of a long record.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell the story of a vCon: sessions, messages, operations with attempts, decisions and states.

    vCons of every version of core are shown. Of a long record the beginning, the end and what went wrong are
    shown; --all and --json have everything. Signatures are not verified here; `onrecord verify` does that. Content
    is shown as it was recorded, in excerpts, and never acted upon.
    """
    kind, vcon, size = _open(file)
    for pointer in unsupported_critical(vcon.members):
        raise MalformedError(
            "the vCon needs an extension that this release does not know, so nothing of it is shown",
            code="critical-unsupported",
            hint="onrecord check FILE names the extension",
            where=Where(file=str(file), pointer=pointer),
        )
    with paused_collection(size):
        story = tell(vcon)
    if as_json:
        emit_parts({"file": str(file), "form": kind, "signature": "not-checked", **story.json_members()})
        return
    out = console()
    rows = Rendering(story, everything=everything).rows()
    if kind == SIGNED:
        rows = chain([Row([(_SIGNED_NOTE, "yellow")])], rows)
    while batch := list(islice(rows, _ROWS_AT_ONCE)):
        if out.is_terminal:
            out.print(Group(*batch))
        else:
            write_out("".join(f"{row.plain()}\n" for row in batch))


def _open(file: Path) -> tuple[str, Vcon, int]:
    """Return the form of a file, the vCon in it, and how long its text was, which is let go: nobody writes it."""
    try:
        form = open_form(read_file(file))
        if form.kind == ENCRYPTED:
            raise KeyAccessError(
                "the file is an encrypted vCon, and what is in it cannot be seen without a recipient's key",
                code="form-encrypted",
                hint="onrecord decrypt FILE --key KEY --out SIGNED, then onrecord show SIGNED",
                where=Where(file=str(file)),
            )
        document = vcon_in(form)
        Vcon.of_document(document)  # refuses what is no vCon
        return form.kind, Vcon(document.value), len(document.raw)
    except MalformedError as error:
        raise placed(error, file) from error

"""`onrecord approvals`: see what waits for a person, and decide it."""

from __future__ import annotations

import contextlib
import shutil
import sys
import termios
import time
import unicodedata
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from onrecord.base.errors import OnrecordError
from onrecord.cli.output import ConfigOption, JsonOption, emit, exit_with, report_error

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from onrecord.authorize.approver import ApproverClient, Outcome, PendingApproval

WATCH_SECONDS: Final = 1.0
"""Pause between two looks with --watch."""

CONTINUED: Final = "  | "
"""Begins each further row of a line that is wider than the terminal, so that no value can draw a line of its own."""

MIN_COLUMNS: Final = 8
"""Narrowest terminal that rows are made for: the mark and one wide character must fit."""

_RIGHT_TO_LEFT: Final = frozenset({"R", "AL", "AN"})
"""Bidirectional classes of characters that turn the order of what stands beside them."""

_LEFT_TO_RIGHT_MARK: Final = "\u200e"

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    help="Show calls that wait for a person, and approve or reject them. Without a command: ask about each one.",
)

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The approval's id, or a beginning of it that is unique.")
]


@app.callback(invoke_without_command=True)
def ask(
    context: typer.Context,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on and wait for further calls, until Ctrl-C.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show calls that wait for a person, and ask about each one.

    Without a terminal, or with --json, they are listed and nothing is asked.
    """
    context.obj = (config, as_json)
    if context.invoked_subcommand is not None:
        return
    with _connect(context, config) as client:
        if as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
            _print_list(client.pending(), as_json=as_json)
            return
        _ask_all(client, watch=watch)


@app.command("list", short_help="List the calls that wait for you.")
def list_(context: typer.Context, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """List the calls that wait and that you may decide, oldest first. Exit 0 also when there are none."""
    with _connect(context, config) as client:
        _print_list(client.pending(), as_json=_is_json(context, as_json))


@app.command(short_help="Show one call in full.")
def show(
    context: typer.Context, approval: IdArgument, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Show one waiting call with all its arguments, nothing cut. What could hide or move text is escaped."""
    with _connect(context, config) as client:
        found = client.find(approval)
        lines = client.full_call(found.id)
    if _is_json(context, as_json):
        emit({**found.to_json(), "call": list(lines)})
        return
    _print_approval(found)
    print()
    print("In full:")
    for line in lines:
        _print_line(line)


@app.command(short_help="Approve one call.")
def approve(
    context: typer.Context, approval: IdArgument, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Approve exactly this call, once. Exit 0 when your approval counts, also if others have to approve too."""
    with _connect(context, config) as client:
        found = client.find(approval)
        outcome = client.approve(found.id)
    _print_outcome(found.id, outcome, as_json=_is_json(context, as_json), found=found)


@app.command(short_help="Reject one call.")
def reject(
    context: typer.Context, approval: IdArgument, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Reject one call: for some minutes the same call is refused.

    With its whole id an approval that was granted already is taken back, as long as the call has not run.
    """
    with _connect(context, config) as client:
        try:
            approval_id = client.find(approval).id
        except OnrecordError as error:
            if error.code != "approval-unknown" or not is_whole_id(approval):
                raise
            approval_id = approval
        outcome = client.reject(approval_id)
    _print_outcome(approval_id, outcome, as_json=_is_json(context, as_json))


def is_whole_id(text: str) -> bool:
    """Say whether a text has the length of an approval id: 16 bytes in base64url."""
    return len(text) == 22


def _is_json(context: typer.Context, as_json: bool) -> bool:
    """Options may stand before the command's name as well."""
    return as_json or bool(context.obj and context.obj[1])


def _connect(context: typer.Context, config: Path | None) -> ApproverClient:
    from onrecord.authorize.approver import ApproverClient
    from onrecord.base.configuration import Configuration

    return ApproverClient.connect(Configuration.load(config or (context.obj and context.obj[0])))


def _ask_all(client: ApproverClient, *, watch: bool) -> None:
    """Ask about each call that waits, once."""
    seen: set[str] = set()
    if not client.pending():
        print("waiting for calls; Ctrl-C ends" if watch else "nothing waits for you")
    while True:
        for approval in client.pending():
            if approval.id not in seen:
                seen.add(approval.id)
                if not approval.is_approved_by_me and not _ask_one(client, approval):
                    return
        if not watch:
            return
        time.sleep(WATCH_SECONDS)


def _ask_one(client: ApproverClient, approval: PendingApproval) -> bool:
    """Ask about one call until there is an answer. Returns False when the person wants to stop."""
    print()
    _print_approval(approval)
    try:
        is_cut = not set(client.full_call(approval.id)) <= set(approval.summary)
    except OnrecordError as error:
        return _report(error)
    while True:
        # Long arguments may have moved the first lines out of sight.
        _print_line(f"{approval.caller} asks for {approval.tool} of {approval.server}")
        if is_cut:
            print("Not all of this call is shown above: f shows it in full.")
        _drop_typed_ahead()
        try:
            answer = input("Run this call once? [y]es, [n]o, [f]ull, [l]ater, [q]uit: ").strip().lower()
        except EOFError:
            print()
            return False
        except UnicodeDecodeError:
            continue
        if answer in ("q", "quit"):
            return False
        if answer in ("l", "later"):
            return True
        try:
            if answer in ("f", "full"):
                for line in client.full_call(approval.id):
                    _print_line(line)
                is_cut = False
            elif answer in ("y", "yes"):
                _print_outcome(approval.id, client.approve(approval.id), as_json=False)
                return True
            elif answer in ("n", "no"):
                _print_outcome(approval.id, client.reject(approval.id), as_json=False)
                return True
        except OnrecordError as error:
            return _report(error)


def _report(error: OnrecordError) -> bool:
    """Say why a call cannot be decided and go on with the next one, unless the authority is gone."""
    if error.code in ("authority-unreachable", "answer-unreadable", "peer-uid"):
        raise error
    report_error(error, as_json=False)
    return True


def _drop_typed_ahead() -> None:
    """Forget what was typed before the question stood there: it was meant for another call, or for none."""
    with contextlib.suppress(termios.error, ValueError, OSError):
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)


def _print_list(approvals: tuple[PendingApproval, ...], *, as_json: bool) -> None:
    if as_json:
        emit({"approvals": [one.to_json() for one in approvals]})
        return
    if not approvals:
        print("nothing waits for you")
    for number, approval in enumerate(approvals):
        if number:
            print()
        _print_approval(approval)
    if approvals:
        print()
        print("onrecord approvals approve ID, reject ID, or show ID for the call in full")


def _print_approval(approval: PendingApproval) -> None:
    given = f", {approval.granted} of {approval.needed} given" if approval.needed > 1 else ""
    mine = ", one of them by you" if approval.is_approved_by_me else ""
    age = approval.age_ms // 1000
    asked, until = f"{approval.id}  asked {age} s ago,", f"until {approval.expires_at}{given}{mine}"
    columns = _columns()
    if columns is None or len(asked) + 1 + len(until) <= columns:
        _print_line(f"{asked} {until}")
    else:
        _print_line(asked)
        _print_line(CONTINUED + until)
    for line in approval.summary:
        _print_line(f"  {line}")


def _print_outcome(
    approval_id: str, outcome: Outcome, *, as_json: bool, found: PendingApproval | None = None
) -> None:
    if as_json:
        document: dict[str, Any] = {"approvalId": approval_id, **outcome.to_json()}
        emit(document)
        return
    if found is not None:
        _print_approval(found)
    texts = {
        "granted": "approved: the call may run once",
        "pending": f"approved by you; {outcome.granted} of {outcome.needed} approvals are given",
        "rejected": "rejected: nothing was executed",
    }
    print(texts.get(outcome.state, "decided"))
    if outcome.state not in texts:
        exit_with(1)


def _print_line(text: str) -> None:
    encoding = sys.stdout.encoding or "ascii"
    shown = text.encode(encoding, "backslashreplace").decode(encoding)
    for row in wrap(shown, _columns()):
        print(in_order(row))


def _columns() -> int | None:
    """Return the width of the terminal; None is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def wrap(text: str, columns: int | None) -> Iterator[str]:
    """Yield the rows of one line for a terminal of `columns`; each but the first begins with `CONTINUED`.

    None is no terminal: the line stays whole. A terminal that wraps by itself would let a value with enough blanks
    draw what looks like a line of ours. Terminals differ in how wide they draw what is not ASCII, so each such
    character counts as wide.
    """
    if columns is None:
        yield text
        return
    row, width = "", 0
    for char in text:
        size = 1 if char.isascii() else 2
        if width + size > max(columns, MIN_COLUMNS):
            yield row
            row, width = CONTINUED, len(CONTINUED)
        row += char
        width += size
    yield row


def in_order(row: str) -> str:
    """Return a row that a terminal draws in the order of its text, but for the letters within a word.

    A word that is written from right to left also turns what follows it: numbers and signs up to the next such word
    change places. A mark behind each word ends that; it is drawn as nothing.
    """
    if row.isascii():
        return row
    shown, is_turned = "", False
    for char in row:
        class_ = unicodedata.bidirectional(char)
        if is_turned and class_ not in _RIGHT_TO_LEFT and class_ != "NSM":
            shown += _LEFT_TO_RIGHT_MARK
            is_turned = False
        shown += char
        is_turned = is_turned or class_ in _RIGHT_TO_LEFT
    return shown + _LEFT_TO_RIGHT_MARK if is_turned else shown

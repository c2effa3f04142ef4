"""Printing for all verbs: one JSON document on standard output, everything else on standard error."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO, NoReturn

import orjson
import typer
from rich.console import Console

from onrecord.base.errors import OnrecordError, UsageError

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Use this onrecord.toml.", show_default=False)
]

_SURROGATE = re.compile("[\ud800-\udfff]")
_STEERING = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""DEL, the C1 controls, and the characters that reorder or hide text: JSON alone escapes only those below U+0020."""


def json_text(document: Any) -> str:
    """Return a JSON document as text that is safe for a terminal, indented by two.

    A file's name may be no UTF-8, and a vCon may hold what UTF-8 cannot say: such characters become U+FFFD. What
    steers a terminal or hides text is written as a JSON escape.
    """
    try:
        text = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode("utf-8")
    except TypeError:  # a lone surrogate, or a number beyond 64 bits
        text = _SURROGATE.sub("\ufffd", json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False))
    if not text.isascii() or "\x7f" in text:
        text = _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text


def emit(document: Any) -> None:
    """Print one JSON document on standard output."""
    write_out(json_text(document) + "\n")


class OutputError(UsageError):
    """Standard output cannot be written."""


@contextmanager
def standard_output(hint: str = "name a file, or make room where the output goes") -> Iterator[BinaryIO]:
    """Give standard output and flush it; a full disk behind it, or none at all, is an error that says so.

    Raises `OutputError` with code "file-unwritable".
    """
    if sys.stdout is None:  # the process was started without one
        raise OutputError("there is no standard output", code="file-unwritable", hint=hint)
    out = sys.stdout.buffer
    try:
        yield out
        out.flush()
    except BrokenPipeError:
        raise
    except OSError as fault:
        # What is still in the buffer must go somewhere at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise OutputError("standard output cannot be written", code="file-unwritable", hint=hint) from fault


def emit_parts(members: Mapping[str, Any]) -> None:
    """Print one JSON object like `emit`. A member that is an iterator is an array, written element by element."""
    with standard_output() as out:
        _write_parts(out, members)


def _write_parts(out: BinaryIO, members: Mapping[str, Any]) -> None:
    separator = "{"
    for name, value in members.items():
        out.write(f"{separator}\n  {json_text(name)}: ".encode())
        if isinstance(value, Iterator):
            opening = "["
            for element in value:
                text = json_text(element).replace("\n", "\n    ")
                out.write(f"{opening}\n    {text}".encode())
                opening = ","
            out.write(b"[]" if opening == "[" else b"\n  ]")
        else:
            out.write(json_text(value).replace("\n", "\n  ").encode())
        separator = ","
    out.write(b"{}\n" if separator == "{" else b"\n}\n")


def write_out(text: str) -> None:
    """Write text that is safe for a terminal to standard output, at once and as UTF-8."""
    with standard_output() as out:
        out.write(text.encode("utf-8"))


def console() -> Console:
    """Return the console for people, on standard output; markup in values is the caller's to escape."""
    return Console(highlight=False, soft_wrap=not sys.stdout.isatty())


def error_console() -> Console:
    """Return the console for people on standard error, for a report beside a result on standard output."""
    return Console(stderr=True, highlight=False, soft_wrap=not sys.stderr.isatty())


def note(message: str) -> None:
    """Print a line on standard error."""
    print(message, file=sys.stderr)


def exit_with(code: int) -> NoReturn:
    """End the command with this status."""
    raise typer.Exit(code)


def visible(text: str) -> str:
    """Return text safe for a terminal: control, bidirectional and zero-width characters are escaped."""
    return "".join(
        char if char.isprintable() and not _is_invisible(char) else f"\\u{{{ord(char):x}}}" for char in text
    )


def _is_invisible(char: str) -> bool:
    return (
        char in "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
        or "\u202a" <= char <= "\u202e"
        or "\u2066" <= char <= "\u2069"
    )


def report_error(error: OnrecordError, *, as_json: bool) -> None:
    """Print an error: its JSON shape on standard output, or what, where and what next on standard error."""
    if as_json and not isinstance(error, OutputError):
        try:
            emit(error.to_json())
        except OutputError:
            pass
        else:
            return
    message, place = str(error), str(error.where or "")
    place = f" ({visible(place)})" if place and place not in message else ""
    note(f"onrecord: {visible(message)}{place} [{error.code}]")
    note(f"  next: {visible(error.hint or error.usual_hint)}")

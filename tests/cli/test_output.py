"""What every verb prints: JSON that any reader takes and no terminal obeys."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from onrecord.cli.main import main
from onrecord.cli.output import emit, emit_parts
from support.vcons import answer, decision, invocation, text, vcon

NAME = "a\udcff\x1b[31m\x9b2J\u202e.vcon"
"""A file name with a byte that is no UTF-8, two terminal commands and a reversal of direction."""


def run(capfdbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    captured = capfdbinary.readouterr()
    return ended.value.code, captured.out, captured.err


@pytest.mark.parametrize("option", [[], ["--json"]])
@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("verb", [["check"], ["show"], ["verify"], ["journal", "verify"]])
def test_any_file_name(capfdbinary, tmp_path, verb, is_there, option):
    """A file may have any name that the file system allows: it is reported, and no byte of it reaches the terminal."""
    if is_there:
        (tmp_path / NAME).write_bytes(text(vcon(decision(), invocation(), answer("tool-result"))))
    code, out, err = run(capfdbinary, *verb, tmp_path / NAME, *option)
    assert code in ((0, 3) if is_there else (2,))
    if option:
        json.loads(out)
    for raw in (b"\xff", b"\x1b[31m", "\x9b".encode(), "\u202e".encode()):
        assert raw not in out + err


def test_json_is_one_document_for_any_value(capfdbinary):
    """Lone surrogates and large numbers are printed; what steers a terminal is escaped, and nothing else changes."""
    emit({"a\ud800": ["\x9b31m\u202e\x7f\u2028", 10**30, "é\u00a0€😀"]})
    out = capfdbinary.readouterr().out.decode("utf-8")
    assert json.loads(out) == {"a\ufffd": ["\x9b31m\u202e\x7f\u2028", 10**30, "é\u00a0€😀"]}
    assert not set("\x9b\u202e\x7f\u2028") & set(out)
    assert "é\u00a0€😀" in out


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"a": 1},
        {"a": [], "b": "x\u202e\ud800", "c": {}},
        {"\x1b": [1, [2, []], {"d": ["\n", {}]}], "e": {"f": [1]}, "g": 2**70},
    ],
)
def test_in_parts(capfdbinary, document):
    """An object written part by part is the one written at once, byte for byte."""
    emit(document)
    whole = capfdbinary.readouterr().out
    emit_parts({name: iter(value) if isinstance(value, list) else value for name, value in document.items()})
    assert capfdbinary.readouterr().out == whole


@pytest.mark.parametrize(
    "arguments", [["check", "--json", "/nonexistent"], ["import", "--json", "/nonexistent"]]
)
@pytest.mark.parametrize("output", [">/dev/full", ">&-"])
def test_output_that_cannot_be_written(arguments, output, tmp_path):
    """A full disk behind standard output, or none at all, is told on standard error, without a traceback."""
    command = " ".join([sys.executable, "-m", "onrecord", *arguments, output])
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "standard output" in done.stderr or "no such" in done.stderr.lower()

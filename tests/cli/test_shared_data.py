"""The shared data through the commands that people use: every row of a manifest that this release covers."""

import json
import re
from collections import Counter

import pytest

from onrecord.cli.main import main
from onrecord.record.vcon.versions import KNOWN
from support.data import shared_data

VCONS = shared_data("vcon")
VECTORS = json.loads(shared_data("call-proof", "digest-vectors.json").read_text(encoding="utf-8"))
ROWS = [line.split("\t") for line in (VCONS / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines()[1:]]
EXPECTED = re.compile(r"([a-z0-9-]+)\[(error|warning|info)\]\s*([^;(]*)")
VERIFIED = re.compile(r"anchor own-pki/root\.crt, strict, 2026-11-30: verified (true|false); (.*)")
CHECKED = {
    row[0]: (row[7], row[8])
    for row in ROWS
    if row[7] in KNOWN and (EXPECTED.match(row[8]) or row[8] == "no finding")
}
SIGNED = {row[0]: match for row in ROWS if (match := VERIFIED.fullmatch(row[8]))}


def run(capsysbinary, *arguments):
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments), "--json"])
    return ended.value.code, json.loads(capsysbinary.readouterr().out)


def pointers(text):
    """Return the pointers of a row, and how many there are in all: `/a,/b…x4` names two of four."""
    text, _, total = text.strip().partition("…x")
    named = [one.strip('"') for one in text.split(",")]
    return named, int(total) if total else len(named)


def test_rows_are_there():
    """The manifest is read, and not passed over because its form has changed."""
    assert len(CHECKED) >= 40
    assert {version for version, _ in CHECKED.values()} == set(KNOWN)
    assert len(SIGNED) >= 25
    assert len(VECTORS) >= 160


@pytest.mark.parametrize("name", CHECKED)
def test_check(capsysbinary, name):
    """A vCon of any version has the findings of its row and no other, and the exit status that follows."""
    version, row = CHECKED[name]
    status, document = run(capsysbinary, "check", VCONS / name)
    (file,) = document["files"]
    found = [(one["code"], one["severity"], one["pointer"]) for one in file["findings"]]
    expected = EXPECTED.findall(row)
    assert {one[:2] for one in found} == {one[:2] for one in expected}
    for code, severity, text in expected:
        named, total = pointers(text)
        there = [pointer for *kind, pointer in found if kind == [code, severity]]
        assert len(there) == total
        assert set(named) <= set(there)
    assert file["version"] == version
    assert status == int("[error]" in row)


@pytest.mark.parametrize("name", SIGNED)
def test_verify(capsysbinary, name):
    """A signed vCon has the verdict, the errors and the warnings of its row."""
    anchor = VCONS / "own-pki" / "root.crt"
    status, document = run(
        capsysbinary, "verify", VCONS / name, "--anchor", anchor, "--at", "2026-11-30T00:00:00Z"
    )
    verified, text = SIGNED[name].groups()
    expected = Counter((code, severity) for code, severity, _ in EXPECTED.findall(text))
    found = Counter((one["code"], one["severity"]) for one in document["findings"])
    assert {kind: n for kind, n in found.items() if kind[1] != "info"} == {
        kind: n for kind, n in expected.items() if kind[1] != "info"
    }
    assert expected.keys() <= found.keys()
    assert document["verdict"] == ("verified" if verified == "true" else "failed")
    assert status == (0 if verified == "true" else 1)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["id"])
def test_digest(capsysbinary, tmp_path, vector):
    """A vector of the digest gives its digest, or is refused with its class and exit 2."""
    arguments = ["digest", "--name", vector["tool"], "--method", vector["method"]]
    if not vector.get("arguments_absent"):
        file = tmp_path / "arguments"
        text = vector.get("arguments_text")
        file.write_bytes(bytes.fromhex(vector["arguments_hex"]) if text is None else text.encode())
        arguments += ["--arguments", f"@{file}"]
    status, document = run(capsysbinary, *arguments)
    if vector["expect"] == "digest":
        assert (status, document) == (0, {"digest": vector["digest"]})
    else:
        assert (status, document["error"]["code"]) == (2, "refused")
        assert document["error"]["reason"] == vector["reason"]

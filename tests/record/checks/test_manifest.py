"""Every file of the shared data has exactly the findings that its MANIFEST lists."""

import re
from collections import Counter

import pytest

from onrecord.record.checks.checker import check
from support.data import shared_data

DATA = shared_data("vcon")
ROWS = [
    line.split("\t") for line in (DATA / "MANIFEST.tsv").read_text(encoding="utf-8").splitlines()[1:] if line
]
VERSIONS = ("0.0.1", "0.0.2", "0.3.0", "0.4.0", "0.5.0")
UNSIGNED = {
    row[0]: (row[7], row[8]) for row in ROWS if row[7] in VERSIONS and not row[0].startswith("schema/")
}
PAYLOADS = {
    row[0]: row[8].rpartition("payload: ")[2].partition(" ")[::2] for row in ROWS if "payload: " in row[8]
}
ENVELOPES = {row[0]: row[8] for row in ROWS if row[0].startswith("jose/") and "jwe-" not in row[0]}
ENCRYPTED = [row[0] for row in ROWS if row[7] == "encrypted"]
FINDING = re.compile(r"([a-z0-9-]+)\[(error|warning|info)\] (\"\"|[^;…]*)(?:…x(\d+))?(?:; |$)")
NO_PLACE = '""'


def is_as_listed(listed, found):
    """Compare findings with a list of the form `code[severity] /a,/b…x4; …`, where the number counts all places."""
    places = {}
    for code, severity, pointer in found:
        places.setdefault((code, severity), []).append(pointer)
    expected = {}
    for code, severity, pointers, count in FINDING.findall(listed):
        named = ["" if pointer == NO_PLACE else pointer for pointer in pointers.split(",")]
        expected[code, severity] = named, int(count) if count else len(named)
    assert places.keys() == expected.keys()
    for key, (named, count) in expected.items():
        assert len(places[key]) == count, key
        assert not Counter(named) - Counter(places[key]), key


def of_layer(result, layer):
    return [
        (one.code, one.severity, one.pointer)
        for one in result.findings
        if one.layer == layer or one.code == "form-unknown"
    ]


@pytest.mark.parametrize("name", UNSIGNED)
def test_unsigned(name):
    """The version and the findings of an unsigned file are those listed, no more and no fewer."""
    version, listed = UNSIGNED[name]
    result = check((DATA / name).read_bytes())
    assert (result.form, result.version) == ("unsigned", version)
    is_as_listed("" if listed == "no finding" else listed, of_layer(result, None))


@pytest.mark.parametrize("name", PAYLOADS)
def test_payload(name):
    """The vCon inside a signed example is judged by its own version."""
    version, listed = PAYLOADS[name]
    result = check((DATA / name).read_bytes())
    assert (result.form, result.version) == ("signed", version)
    is_as_listed(listed, of_layer(result, "vcon"))


@pytest.mark.parametrize("name", ENCRYPTED)
def test_encrypted(name):
    """An encrypted file is recognised without a key, and nothing is said about what is inside."""
    result = check((DATA / name).read_bytes())
    assert (result.form, result.version, result.extensions) == ("encrypted", None, ())
    assert {one.layer for one in result.findings} <= {"envelope"}


@pytest.mark.parametrize("name", ENVELOPES)
def test_payload_of_the_test_keys(name):
    """What our own signed files hold is a vCon of the newest version without error."""
    result = check((DATA / name).read_bytes())
    assert (result.form, result.version) == ("signed", "0.5.0")
    assert [entry for entry in of_layer(result, "vcon") if entry[1] == "error"] == []


def test_no_marker():
    """A file that is no vCon is fatal."""
    result = check((DATA / "wg-core/simple-vcon.vcon").read_bytes())
    assert (result.form, of_layer(result, None)) == (None, [("form-unknown", "error", "")])


def test_all_rows_are_used():
    """The tables above hold every vCon of the shared data."""
    named = {row[0] for row in ROWS if row[7] != "-"}
    tested = {*UNSIGNED, *PAYLOADS, *ENVELOPES, *ENCRYPTED}
    assert {name for name in named - tested if not name.startswith("schema/")} == set()
    assert len(UNSIGNED) > 50

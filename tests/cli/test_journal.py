"""`onrecord journal`: exit codes, JSON, and the commands that come later."""

from __future__ import annotations

import json

import pytest

from onrecord.base.keys import (
    PrivateKeySigner,
    ed25519_public_bytes,
    format_trusted_key,
    generate_private_key,
)
from onrecord.cli.main import main
from support.journals import Place


@pytest.fixture
def place(tmp_path):
    base = tmp_path / "place"
    base.mkdir()
    place = Place(base, PrivateKeySigner(generate_private_key("ed25519")))
    (base / "journal.keys").write_text(format_trusted_key(ed25519_public_bytes(place.signer), "authority"))
    place.note = base / "kept.note"
    place.note.write_text(place.fill(4))
    return place


@pytest.fixture
def run(place, capsys, home):
    def run(*arguments):
        with pytest.raises(SystemExit) as caught:
            main(["journal", *map(str, arguments)])
        captured = capsys.readouterr()
        return caught.value.code, captured.out, captured.err

    run.trust = ("--trust", place.base / "journal.keys")
    return run


def test_verified(place, run):
    """With trust file and kept checkpoint: exit 0, and the JSON has the shape of every verification."""
    status, out, _ = run("verify", place.file, "--checkpoint", place.note, *run.trust, "--json")
    document = json.loads(out)
    assert status == 0
    assert set(document) == {"verdict", "outcome", "axes", "notChecked", "findings"}
    assert (document["verdict"], document["outcome"]) == ("verified", "verified")


def test_text(place, run):
    """The text shows every axis, what was not checked, and the verdict."""
    status, out, _ = run("verify", place.file, "--checkpoint", place.note, *run.trust)
    assert status == 0
    assert "checkpoint-signatures" in out
    assert "not checked: completeness" in out
    assert out.rstrip().endswith("verified: verified")


def test_no_checkpoint(place, run):
    """Without a checkpoint exit 3, and the next step is named."""
    status, out, err = run("verify", place.file, *run.trust)
    assert status == 3
    assert "end-not-provable" in out
    assert "--checkpoint" in err


def test_high_water_as_checkpoint(place, run):
    """The high-water file is a checkpoint like any other."""
    status, _, _ = run("verify", place.file, "--checkpoint", place.high_water, *run.trust)
    assert status == 0


def test_failed(place, run):
    """A cut journal exits 1, with the report as JSON all the same."""
    older = place.rows("SELECT max(size) FROM checkpoint")[0][0]
    place.note.write_text(place.fill(4))
    place.tamper(
        f"DELETE FROM record WHERE seq >= {older}",
        f"DELETE FROM checkpoint WHERE size > {older}",
        f"DELETE FROM node WHERE (idx + 1) * (1 << level) > {older}",
    )
    status, out, _ = run("verify", place.file, "--checkpoint", place.note, *run.trust, "--json")
    assert status == 1
    assert json.loads(out)["outcome"] == "log-truncated"


def test_no_trust(place, run):
    """Without trust file and configuration: exit 3, and both ways are named."""
    status, out, err = run("verify", place.file, "--checkpoint", place.note, "--json")
    assert status == 3
    assert json.loads(out)["axes"]["checkpoint-signatures"]["result"] == "not-evaluated"
    assert "--trust" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("verify",),
        ("verify", "missing.db"),
        ("verify", "FILE", "--checkpoint", "missing.note"),
        ("verify", "FILE", "--trust", "missing.keys"),
        ("verify", "FILE", "--config", "missing.toml"),
        ("verify", "FILE", "--unknown"),
        ("fly",),
    ],
)
def test_usage(place, run, arguments):
    """Missing files, unknown options and commands: exit 2, and one JSON error on standard output."""
    status, out, _ = run(*[place.file if part == "FILE" else part for part in arguments], "--json")
    assert status == 2
    assert set(json.loads(out)) == {"error"}


@pytest.mark.parametrize("name", ["fsck", "checkpoint", "prove", "export"])
def test_later_commands(place, run, name):
    """Commands that are not built yet are refused by name, with or without arguments."""
    for arguments in ((name, "--json"), (name, place.file, "--size", "3", "--json")):
        status, out, _ = run(*arguments)
        error = json.loads(out)["error"]
        assert (status, error["code"]) == (2, "not-built-yet")
        assert name in error["message"]


def test_hostile_names(place, run):
    """A file name with control characters is escaped in the text."""
    odd = place.base / "a\x1b[31m.db"
    odd.write_bytes(b"no journal")
    status, out, err = run("verify", odd, *run.trust)
    assert status == 3
    assert "\x1b" not in out + err

"""The entry of the command line."""

from __future__ import annotations

import json
import re

import pytest

from onrecord import __version__
from onrecord.base.errors import StorageError, Where
from onrecord.cli import main as cli
from onrecord.cli.output import visible


def run(capsys, *args):
    with pytest.raises(SystemExit) as stop:
        cli.main(list(args))
    out, err = capsys.readouterr()
    return stop.value.code, out, err


class TestEntry:
    def test_overview(self, capsys):
        """Help lists every verb that is not hidden, and no verb at all is a usage error that shows it."""
        status, out, _ = run(capsys, "--help")
        assert status == 0
        for verb in set(cli.VERBS) - cli.HIDDEN:
            assert re.search(rf"^  {verb} ", out, re.MULTILINE)
        assert run(capsys)[0] == 2

    def test_version(self, capsys):
        """--version prints the version."""
        assert run(capsys, "--version") == (0, f"onrecord {__version__}\n", "")

    def test_unknown_verb(self, capsys):
        """An unknown verb names the nearest one and exits 2."""
        status, out, err = run(capsys, "verfiy")
        assert (status, out) == (2, "")
        assert "did you mean verify?" in err

    def test_json_error(self, capsys):
        """With --json an error is one JSON document on standard output and nothing on standard error."""
        status, out, err = run(capsys, "nothing-like-it", "--json")
        assert (status, err) == (2, "")
        assert json.loads(out)["error"]["code"] == "usage"

    def test_json_of_another_program(self, capsys):
        """What stands behind -- is not ours: the standard output of a guard belongs to its client."""
        status, out, err = run(capsys, "guard", "x", "--config", "/nonexistent", "--", "server", "--json")
        assert (status, out) == (2, "")
        assert "next:" in err

    @pytest.mark.parametrize("verb", sorted(cli.VERBS))
    def test_every_verb_has_help(self, capsys, verb):
        """Each verb can be imported and explains itself."""
        status, out, _ = run(capsys, verb, "--help")
        assert status == 0
        assert f"onrecord {verb}" in out

    @pytest.mark.parametrize("verb", sorted(cli.VERBS))
    def test_bad_option(self, capsys, verb):
        """An unknown option is a usage error of ours for each verb."""
        status, out, _ = run(capsys, verb, "--no-such-option", "--json")
        assert status == 2
        assert json.loads(out)["error"]["code"] == "usage"

    @pytest.mark.parametrize("verb", ["policy", "control", "record"])
    def test_group_without_command(self, capsys, verb):
        """A group alone prints its help as lines, exit 2; as JSON it is a usage error."""
        status, out, err = run(capsys, verb)
        assert (status, out) == (2, "")
        assert err.startswith(f"Usage: onrecord {verb} ")
        assert "\\u{" not in err
        status, out, _ = run(capsys, verb, "--json")
        assert (status, json.loads(out)["error"]["code"]) == (2, "usage")

    def test_refused_value(self, capsys):
        """A value that is none of those allowed is named with them, and no name of Python's is."""
        status, _, err = run(capsys, "check", "a.vcon", "--fail-on", "warn")
        assert status == 2
        assert "'--fail-on': 'warn' is not one of 'never', 'info', 'warning', 'error'" in err

    @pytest.mark.parametrize("command", [["check"], ["journal", "verify"]])
    def test_types_of_arguments(self, capsys, command):
        """Help names the type of an argument that may be several in plain words."""
        status, out, _ = run(capsys, *command, "--help")
        assert status == 0
        assert re.search(r"^  FILE…? <path> ", out, re.MULTILINE)
        assert "list[" not in out

    def test_one_word_for_certificates(self, capsys):
        """Every option for certificates takes CERT, and what may be several says so in the same words."""
        for verb in ("sign", "verify", "encrypt", "decrypt", "redact", "upgrade"):
            _, out, _ = run(capsys, verb, "--help")
            options = re.split(r"^  (?=--)", out, flags=re.MULTILINE)[1:]
            named = {option.split()[0]: " ".join(option.split()) for option in options}
            for name in ("--anchor", "--require-anchor", "--certificate", "--recipient"):
                assert name not in named or f"{name} CERT " in named[name]
            for name in (
                "--anchor", "--require-anchor", "--certificate", "--recipient", "--crl", "--rules",
                "--allow-extension",
            ):  # fmt: skip
                assert name not in named or "may be given several times" in named[name], (verb, name)
            assert ("--crl" in named) is ("--anchor" in named)

    def test_usage_of_a_sub_command(self, capsys):
        """The hint names the help of the command that was used wrongly, not that of its group."""
        status, _, err = run(capsys, "policy", "explain")
        assert status == 2
        assert "next: onrecord policy explain --help" in err

    def test_place_is_said_once(self, capsys, monkeypatch):
        """A path that stands in the message is not repeated behind it."""

        def failing(verb):
            raise StorageError("/f is full", code="disk", where=Where("/f"))

        monkeypatch.setattr(cli, "verb_command", failing)
        assert run(capsys, "check")[2].splitlines()[0] == "onrecord: /f is full [disk]"

    def test_foreign_exception(self, capsys, monkeypatch):
        """A bug is an internal error with its type only, exit 3, and no traceback."""

        def broken(verb):
            raise ZeroDivisionError("canary-content")

        monkeypatch.setattr(cli, "verb_command", broken)
        status, out, err = run(capsys, "check")
        assert (status, out) == (3, "")
        assert "ZeroDivisionError" in err
        assert "canary" not in err
        assert "Traceback" not in err

    def test_our_error(self, capsys, monkeypatch):
        """An error of ours prints what, where and what next, with control characters escaped."""

        def failing(verb):
            raise StorageError("disk\x1b[31m full", code="disk", hint="make room", where=Where("/f", line=2))

        monkeypatch.setattr(cli, "verb_command", failing)
        status, _, err = run(capsys, "check")
        assert status == 3
        assert err == "onrecord: disk\\u{1b}[31m full (/f:2) [disk]\n  next: make room\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 漢", "plain é 漢"),
        ("a\nb", "a\\u{a}b"),
        ("\x1b[0m", "\\u{1b}[0m"),
        ("\u202ex\u200b", "\\u{202e}x\\u{200b}"),
    ],
)
def test_visible(text, shown):
    """Control, bidirectional and zero-width characters are escaped, letters of any script stay."""
    assert visible(text) == shown

"""Files that the vCon commands write: new ones whole or not at all, and standard output that takes nothing."""

import os
import subprocess
import sys

import pytest

from onrecord.base.errors import UsageError
from onrecord.cli.files import write_file

WRITE = """
import sys
from onrecord.base.errors import UsageError
from onrecord.cli.files import write_file
try:
    write_file(None, b"x" * 10)
except UsageError as error:
    sys.exit(40 if error.code == "file-unwritable" else 41)
"""


class TestWrite:
    def test_new(self, tmp_path):
        """A new file is there, for its owner only, and nothing beside it."""
        write_file(tmp_path / "a.vcon", b"x")
        assert (tmp_path / "a.vcon").read_bytes() == b"x"
        assert (tmp_path / "a.vcon").stat().st_mode & 0o777 == 0o600
        assert os.listdir(tmp_path) == ["a.vcon"]

    @pytest.mark.parametrize("name", ["", ".", "..", "/", "/dev/null", "/dev/full", "a.vcon"])
    def test_exists(self, tmp_path, monkeypatch, name):
        """Folders, devices and files that are there are told as such, whatever their name looks like."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a.vcon").write_bytes(b"old")
        with pytest.raises(UsageError) as caught:
            write_file(tmp_path.__class__(name), b"x")
        assert caught.value.code == "file-exists"
        assert os.listdir(tmp_path) == ["a.vcon"]

    @pytest.mark.parametrize("name", ["none/a.vcon", "n" * 256, "file/a.vcon"])
    def test_unwritable(self, tmp_path, name):
        """A place where no file can be is told as such."""
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(UsageError) as caught:
            write_file(tmp_path / name, b"x")
        assert caught.value.code == "file-unwritable"

    @pytest.mark.parametrize("command", ["> /dev/full", ">&-"])
    def test_standard_output(self, command):
        """A full disk behind standard output, and none at all, are errors of usage and not ours."""
        ended = subprocess.run(
            ["/bin/sh", "-c", f'"$0" -c "$1" {command}', sys.executable, WRITE],
            capture_output=True,
            check=False,
        )
        assert (ended.returncode, ended.stderr) == (40, b"")

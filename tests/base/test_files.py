"""Reading and replacing files."""

from __future__ import annotations

import errno
import os

import pytest

from onrecord.base.files import read_regular, replace_whole


class TestRead:
    def test_limit(self, tmp_path):
        """A file of exactly the limit is read, one byte more is EFBIG."""
        (tmp_path / "f").write_bytes(b"x" * 10)
        assert read_regular(tmp_path / "f", limit_bytes=10) == b"x" * 10
        with pytest.raises(OSError, match="larger") as caught:
            read_regular(tmp_path / "f", limit_bytes=9)
        assert caught.value.errno == errno.EFBIG

    def test_odd_files(self, tmp_path):
        """A link is followed only on request; a pipe, a directory and a device are never read."""
        (tmp_path / "f").write_bytes(b"x")
        (tmp_path / "link").symlink_to("f")
        os.mkfifo(tmp_path / "fifo")
        assert read_regular(tmp_path / "link", limit_bytes=9, follow=True) == b"x"
        for name in ("link", "fifo", ".", "none"):
            with pytest.raises(OSError):
                read_regular(tmp_path / name, limit_bytes=9)
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(tmp_path.__class__("/dev/zero"), limit_bytes=9)


class TestReplace:
    def test_mode_and_content(self, tmp_path):
        """The new content stands there with exactly the mode asked for, whatever the umask says."""
        before = os.umask(0o077)
        try:
            replace_whole(tmp_path / "f", b"one", mode=0o644)
            replace_whole(tmp_path / "f", b"two", mode=0o640)
        finally:
            os.umask(before)
        assert (tmp_path / "f").read_bytes() == b"two"
        assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640

    def test_failure_leaves_the_old_file(self, tmp_path):
        """When it cannot be done the old file stays and nothing else is left behind."""
        (tmp_path / "d").mkdir()
        (tmp_path / "d/inner").write_text("")
        with pytest.raises(OSError):
            replace_whole(tmp_path / "d", b"x", mode=0o600)
        assert os.listdir(tmp_path) == ["d"]

    def test_link_is_replaced_not_followed(self, tmp_path):
        """A link in the place of the file is replaced; what it points at stays."""
        (tmp_path / "target").write_text("old")
        (tmp_path / "f").symlink_to("target")
        replace_whole(tmp_path / "f", b"new", mode=0o600)
        assert (tmp_path / "target").read_text() == "old"
        assert not (tmp_path / "f").is_symlink()

"""Reading, making and replacing files."""

from __future__ import annotations

import errno
import os

import pytest

from onrecord.base.files import read_regular, replace_whole, write_new


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


class TestNew:
    @pytest.fixture(params=["unnamed", "named"])
    def way(self, request, monkeypatch):
        """With files that have no name at first, and on a system without such files."""
        if request.param == "named":
            monkeypatch.setattr(os, "O_TMPFILE", os.O_DIRECTORY)
        return request.param

    def test_mode_and_content(self, tmp_path, way):
        """A new file has the content and the mode; nothing else is left beside it, and long names are no trouble."""
        name = "n" * 255
        write_new(tmp_path / name, b"x" * 100_000, mode=0o600)
        assert (tmp_path / name).read_bytes() == b"x" * 100_000
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
        assert os.listdir(tmp_path) == [name]

    @pytest.mark.parametrize("name", ["file", "link", "dangling", "folder", "fifo", ".", ".."])
    def test_nothing_is_overwritten(self, tmp_path, way, name):
        """Whatever has the name already stays as it was, and nothing is left beside it."""
        (tmp_path / "file").write_text("old")
        (tmp_path / "link").symlink_to("file")
        (tmp_path / "dangling").symlink_to("none")
        (tmp_path / "folder").mkdir()
        os.mkfifo(tmp_path / "fifo")
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, b"new", mode=0o600)
        assert sorted(os.listdir(tmp_path)) == before
        assert (tmp_path / "file").read_text() == "old"

    def test_failure(self, tmp_path, way, monkeypatch):
        """When the disk is full nothing is there afterwards."""

        def full(descriptor):
            raise OSError(errno.ENOSPC, "no space")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            write_new(tmp_path / "f", b"x", mode=0o600)
        assert os.listdir(tmp_path) == []

    def test_no_name_before_the_end(self, tmp_path, monkeypatch):
        """While the content is written it has no name, so that not even a kill leaves a piece of it behind."""
        seen, real = [], os.fsync

        def look(descriptor):
            seen.append(os.listdir(tmp_path))
            real(descriptor)

        monkeypatch.setattr(os, "fsync", look)
        try:
            os.close(os.open(tmp_path, os.O_TMPFILE | os.O_WRONLY))
        except OSError:
            pytest.skip("this file system knows no files without names")
        write_new(tmp_path / "f", b"x", mode=0o600)
        assert seen[0] == []


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

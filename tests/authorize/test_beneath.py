"""No link, no ".." and no magic path leads out of a directory."""

import errno
import os

import pytest

from onrecord.authorize.beneath import open_beneath, walk_beneath


@pytest.fixture
def root(tmp_path):
    base = tmp_path / "base"
    (base / "inner").mkdir(parents=True)
    (base / "inner" / "note.txt").write_text("inside")
    (tmp_path / "secret.txt").write_text("outside")
    descriptor = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    yield base, descriptor
    os.close(descriptor)


def read(descriptor):
    with open(descriptor) as file:
        return file.read()


class TestOpenBeneath:
    def test_plain_path(self, root):
        """A path inside opens."""
        assert read(open_beneath(root[1], "inner/note.txt")) == "inside"

    def test_inner_link_is_followed(self, root):
        """A link that stays inside is an ordinary part of a tree."""
        (root[0] / "link").symlink_to("inner/note.txt")
        assert read(open_beneath(root[1], "link")) == "inside"

    @pytest.mark.parametrize(
        "path", ["../secret.txt", "inner/../../secret.txt", "/etc/hostname", "relative", "absolute", "magic"]
    )
    def test_escapes(self, root, path):
        """Relative and absolute links, "..", absolute paths and /proc links to outside are refused with EXDEV."""
        (root[0] / "relative").symlink_to("../secret.txt")
        (root[0] / "absolute").symlink_to(root[0].parent / "secret.txt")
        (root[0] / "magic").symlink_to(f"/proc/self/fd/{root[1]}/../secret.txt")
        with pytest.raises(OSError) as e:
            open_beneath(root[1], path)
        assert e.value.errno == errno.EXDEV

    def test_swapped_for_a_link(self, root):
        """A file that becomes a link after somebody looked at it does not open."""
        note = root[0] / "inner" / "note.txt"
        assert note.read_text() == "inside"
        note.unlink()
        note.symlink_to("../../secret.txt")
        with pytest.raises(OSError) as e:
            open_beneath(root[1], "inner/note.txt")
        assert e.value.errno == errno.EXDEV

    def test_pipe_does_not_hold(self, root):
        """A named pipe without a writer opens at once instead of blocking the server."""
        os.mkfifo(root[0] / "pipe")
        os.close(open_beneath(root[1], "pipe"))

    @pytest.mark.parametrize("path", ["a\0b", "\ud800"])
    def test_no_file_name(self, root, path):
        """A NUL or a lone surrogate is a ValueError, not a shortened path."""
        with pytest.raises(ValueError):
            open_beneath(root[1], path)

    def test_descriptor_is_not_inherited(self, root):
        """What is opened stays in this process."""
        descriptor = open_beneath(root[1], "inner")
        assert not os.get_inheritable(descriptor)
        os.close(descriptor)


class TestWalkBeneath:
    """The way without openat2."""

    def test_plain_path(self, root):
        """A path inside opens, the base itself too."""
        assert read(walk_beneath(root[1], "./inner//note.txt", flags=os.O_RDONLY)) == "inside"
        os.close(walk_beneath(root[1], "", flags=os.O_RDONLY | os.O_DIRECTORY))

    @pytest.mark.parametrize(
        "path", ["../secret.txt", "inner/../note.txt", "/etc/hostname", "out/secret.txt", "link"]
    )
    def test_escapes(self, root, path):
        """Absolute paths, ".." and every link are refused."""
        (root[0] / "out").symlink_to("..")
        (root[0] / "link").symlink_to("inner/note.txt")
        with pytest.raises(OSError) as e:
            walk_beneath(root[1], path, flags=os.O_RDONLY)
        assert e.value.errno in (errno.EXDEV, errno.ELOOP, errno.ENOTDIR)

    def test_no_descriptor_is_left(self, root):
        """Good or bad, the steps on the way are closed again."""
        before = len(os.listdir("/proc/self/fd"))
        os.close(walk_beneath(root[1], "inner/note.txt", flags=os.O_RDONLY))
        with pytest.raises(OSError):
            walk_beneath(root[1], "inner/none/none", flags=os.O_RDONLY)
        assert len(os.listdir("/proc/self/fd")) == before

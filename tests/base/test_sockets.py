"""Paths, locks and process labels."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import socket
import subprocess
import sys

import pytest

from onrecord.base.errors import ConfigurationError, UsageError
from onrecord.base.sockets import (
    check_private_path,
    has_exited,
    lock_file,
    open_peer_pidfd,
    process_label,
    process_start_time,
)


def code_of(path, **kwargs) -> str:
    with pytest.raises(ConfigurationError) as caught:
        check_private_path(path, owners={os.getuid()}, **kwargs)
    return caught.value.code


class TestPrivatePath:
    @pytest.mark.req("CP-105")
    def test_rules(self, short_dir):
        """Own directories pass; a link on the way, a parent others can write, and a mode too open do not."""
        inner = short_dir / "a/b"
        inner.mkdir(parents=True)
        (inner / "f").write_text("")
        (inner / "f").chmod(0o644)
        assert check_private_path(inner / "f", owners={os.getuid()})
        assert code_of(inner / "f", mode_forbidden=0o077) == "path-mode"
        (short_dir / "link").symlink_to(short_dir / "a")
        assert code_of(short_dir / "link/b/f") == "path-symlink"
        assert code_of(inner / "none") == "path-missing"
        (short_dir / "a").chmod(0o777)
        assert code_of(inner / "f") == "path-mode"

    def test_sticky_counts_once(self, short_dir):
        """One level of a sticky directory of root is accepted, a second one of ours is not."""
        second = short_dir / "tmp"
        second.mkdir()
        second.chmod(0o1777)
        (second / "f").write_text("")
        assert code_of(second / "f") == "path-mode"

    @pytest.mark.root
    def test_foreign_owner(self, short_dir):
        """A parent that belongs to somebody else is refused, since he can replace what is in it."""
        (short_dir / "theirs").mkdir()
        (short_dir / "theirs/f").write_text("")
        os.chown(short_dir / "theirs", 59_999, 59_999)
        assert code_of(short_dir / "theirs/f") == "path-owner"
        assert check_private_path(short_dir / "theirs/f", owners={59_999})


class TestLockFile:
    def test_second_holder(self, tmp_path):
        """The second process is told that one is running, and its pid; after release the lock is free."""
        lock = lock_file(tmp_path / "l")
        script = (
            "import sys; from pathlib import Path; from onrecord.base.sockets import lock_file\n"
            "from onrecord.base.errors import UsageError\n"
            "try: lock_file(Path(sys.argv[1]))\n"
            "except UsageError as e: print(e.code, e)\n"
        )
        out = subprocess.run(
            [sys.executable, "-c", script, tmp_path / "l"], capture_output=True, text=True
        ).stdout
        assert out.startswith("already-running")
        assert f"pid {os.getpid()}" in out
        lock.release()
        lock_file(tmp_path / "l").release()

    def test_link_and_directory(self, tmp_path):
        """A lock file that is a link or a directory is an error of ours."""
        (tmp_path / "link").symlink_to(tmp_path / "x")
        for name in ("link", "."):
            with pytest.raises((ConfigurationError, UsageError)) as caught:
                lock_file(tmp_path / name)
            assert caught.value.code == "lock-unusable"


class TestProcesses:
    def test_label(self):
        """A label has the form of running.md R-06 and is the same each time."""
        label = process_label(os.getpid())
        assert re.fullmatch(r"p\d+-\d+-[0-9a-f]{8}", label)
        assert label == process_label(os.getpid())

    def test_exit_is_seen(self):
        """A pidfd tells of the exit, and a process that is gone has no start time."""
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        assert process_start_time(child.pid) is not None
        pidfd = os.pidfd_open(child.pid)
        assert not has_exited(pidfd)
        child.communicate(b"\n")
        assert has_exited(pidfd)
        assert process_start_time(child.pid) is None
        os.close(pidfd)


def test_a_peer_that_was_reaped_before_accept_is_no_living_one(short_dir):
    """Its socket may have been handed on; without a pidfd nobody would notice, so asking for one raises."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(short_dir / "s"))
        listener.listen()
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:  # connects, hands its socket on, exits before anybody accepts
            with contextlib.suppress(BaseException):
                sock = socket.socket(socket.AF_UNIX)
                sock.connect(str(short_dir / "s"))
                socket.send_fds(theirs, [b"x"], [sock.fileno()])
            os._exit(0)
        _, (descriptor,), _, _ = socket.recv_fds(ours, 1, 1)
        os.waitpid(pid, 0)
        accepted, _ = listener.accept()
        with accepted, ours, theirs:
            try:
                pidfd = open_peer_pidfd(accepted)
            except OSError:
                return
            finally:
                os.close(descriptor)
            if pidfd is None:
                pytest.skip("this kernel has no SO_PEERPIDFD")
            assert has_exited(pidfd)
            os.close(pidfd)


def test_no_pidfd_without_a_descriptor():
    """A kernel that has pidfds and cannot give one is another thing than a kernel without them."""

    class Exhausted:
        def __init__(self, number):
            self.number = number

        def getsockopt(self, *_):
            raise OSError(self.number, os.strerror(self.number))

    assert open_peer_pidfd(Exhausted(errno.ENOPROTOOPT)) is None
    for number in (errno.EMFILE, errno.ESRCH, errno.ENODATA):
        with pytest.raises(OSError):
            open_peer_pidfd(Exhausted(number))

"""Paths of changed files: below the root, or no File Object (F-06)."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.attribution.paths import MAX_PATH, Root, safe

POSIX = "/home/user/project"
WINDOWS = "C:\\Users\\user\\project"


class TestInside:
    @pytest.mark.parametrize(
        ("root", "path", "relative"),
        [
            (POSIX, "/home/user/project/src/a.py", "src/a.py"),
            (POSIX + "/", "/home/user/./project//src/a.py", "src/a.py"),
            (POSIX, "file:///home/user/project/a%20b.py", "a b.py"),
            (POSIX, "file://localhost/home/user/project/a.py", "a.py"),
            ("/", "/etc/hosts", "etc/hosts"),
            (WINDOWS, "C:\\Users\\user\\project\\src\\a.py", "src/a.py"),
            (WINDOWS, "c:/users/USER/project/Src/A.py", "Src/A.py"),
            (WINDOWS, "/c:/Users/user/project/a.py", "a.py"),
            (WINDOWS, "file:///c%3A/Users/user/project/a.py", "a.py"),
            (WINDOWS, "\\\\?\\C:\\Users\\user\\project\\a.py", "a.py"),
            ("/c:/Users/user/project", "C:\\Users\\user\\project\\a.py", "a.py"),
            ("file:///c%3A/Users/user/project", "C:\\Users\\user\\project\\a.py", "a.py"),
        ],
    )
    def test_relative(self, root, path, relative):
        """A path below the root, in whatever form, becomes relative to it."""
        assert Root(root).relative(path) == relative

    @pytest.mark.parametrize(
        ("base", "path", "absolute"),
        [
            (POSIX, "src/a.py", "/home/user/project/src/a.py"),
            (POSIX, "/etc/hosts", "/etc/hosts"),
            (WINDOWS, "src\\a.py", "c:/Users/user/project/src/a.py"),
            (WINDOWS, "D:\\a.py", "D:\\a.py"),
            (None, "a.py", "a.py"),
        ],
    )
    def test_join(self, base, path, absolute):
        """A relative path counts from the base, an absolute one from nowhere."""
        assert Root(base).join(path) == absolute


class TestOutside:
    @pytest.mark.parametrize(
        ("root", "path"),
        [
            (POSIX, "/home/user/project"),
            (POSIX, "/home/user/projects/a.py"),
            (POSIX, "/home/user/PROJECT/a.py"),
            (POSIX, "/etc/hosts"),
            (POSIX, "/home/user/project/../secret"),
            (POSIX, "/home/user/project/src/../a.py"),
            (POSIX, "file:///home/user/project/%2e%2e/secret"),
            (POSIX, "/home/user/project/a\\b"),
            (POSIX, "/home/user/project/a\x00b"),
            (POSIX, "/home/user/project/a%5cb%0a\n"),
            (POSIX, "C:\\home\\user\\project\\a.py"),
            (POSIX, "a.py"),
            (POSIX, ""),
            (POSIX, "/home/user/project/" + "a" * MAX_PATH),
            (WINDOWS, "D:\\Users\\user\\project\\a.py"),
            (WINDOWS, "C:\\Users\\user\\project\\..\\a.py"),
            (WINDOWS, "\\\\server\\share\\a.py"),
            (WINDOWS, "/home/user/a.py"),
            (None, "/home/user/project/a.py"),
            ("relative/root", "relative/root/a.py"),
            ("/root/..", "/root/../a.py"),
        ],
    )
    def test_none(self, root, path):
        """Outside, with "..", unsafe, or without a known root: no relative path."""
        assert Root(root).relative(path) is None

    @settings(max_examples=50)
    @given(
        st.text(alphabet="/\\.:aCc%2e5\x00\n ", max_size=30),
        st.sampled_from([POSIX, WINDOWS, "/", "C:\\", None]),
    )
    def test_never_unsafe(self, tail, root):
        """Whatever a log names: what comes out is a path that a vCon takes as safe."""
        head = root or ""
        for path in (tail, head + "/" + tail, "file://" + tail, safe(tail) or ""):
            for found in (Root(root).relative(Root(root).join(path)), safe(path)):
                assert found is None or (
                    found
                    and not found.startswith("/")
                    and ".." not in found.split("/")
                    and not re.search(r"[\x00-\x1f\\]", found)
                    and not re.match(r"[A-Za-z]:(/|$)", found)
                )

"""Paths as facts (call-proof.md 8.3, acceptance item 51)."""

import posixpath
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.policy.paths import MAX_PATH_BYTES, Roots, is_plain, normalize

ROOTS = Roots({"repo": "/srv/review/repo", "docs": "/srv/review/repo/docs", "all": "/srv/all"})
BASE = "/srv/review"


def fact(text, base=BASE):
    return normalize(text, base=base, roots=ROOTS)


@pytest.mark.parametrize(
    ("text", "root", "rel", "dotdot", "hidden"),
    [
        ("repo/README.md", "repo", "README.md", False, False),
        ("./repo//src/./main.ts", "repo", "src/main.ts", False, False),
        ("repo/docs/a", "docs", "a", False, False),
        ("repo/docs", "docs", "", False, False),
        ("repo/docs2", "repo", "docs2", False, False),
        ("repo", "repo", "", False, False),
        ("repo/", "repo", "", False, False),
        ("/srv/review/repo/x", "repo", "x", False, False),
        ("//srv//review/repo/x", "repo", "x", False, False),
        ("repo/../secret.txt", "outside", "srv/review/secret.txt", True, False),
        ("repo/../repo/x", "repo", "x", True, False),
        ("repo/a/../b", "repo", "b", True, False),
        ("/etc/passwd", "outside", "etc/passwd", False, False),
        ("../../../../../etc/passwd", "outside", "etc/passwd", True, False),
        ("/..", "outside", "", True, False),
        ("repo/.git/config", "repo", ".git/config", False, True),
        ("repo/src/.env", "repo", "src/.env", False, True),
        (".aws/credentials", "outside", "srv/review/.aws/credentials", False, True),
        ("Repo/README.md", "outside", "srv/review/Repo/README.md", False, False),
        ("repo/~user", "repo", "~user", False, False),
        ("repo/caf\u00e9", "repo", "caf\u00e9", False, False),
        ("repo/a b", "repo", "a b", False, False),
        ("repo2/x", "outside", "srv/review/repo2/x", False, False),
    ],
)
def test_judged(text, root, rel, dotdot, hidden):
    """A path has the root that holds it by whole segments, the longest one, and says what it was made of."""
    found = fact(text)
    assert (found.root, found.rel, found.dotdot, found.hidden) == (root, rel, dotdot, hidden)


@pytest.mark.parametrize(
    "text",
    [
        "~/.aws/credentials",
        "~root/x",
        "~",
        "",
        "repo/\x00x",
        "repo/\n",
        "repo/\x1b[2J",
        "repo/\x7f",
        "repo/\x85",
        "repo/cafe\u0301",
        "repo/\u202egpj.exe",
        "repo/\u2066x",
        "repo/\u200fx",
        "repo/\u2028x",
        "repo\\..\\..\\etc",
        "C:\\Windows",
        "C:/Windows",
        "file:///etc/passwd",
        "file:/etc/passwd",
        " /etc/passwd",
        "/etc/passwd ",
        "\u00a0/etc/passwd",
        '"/etc/passwd"',
        "'/etc/passwd",
        "\udc80",
        "x" * (MAX_PATH_BYTES + 1),
        "\u00e9" * (MAX_PATH_BYTES // 2 + 1),
    ],
)
def test_unknown(text):
    """What servers read in their own way cannot be judged."""
    assert fact(text) is None


def test_limit():
    """4096 bytes are judged, one more is not."""
    assert fact("x" * MAX_PATH_BYTES) is not None
    assert fact("\u00e9" * (MAX_PATH_BYTES // 2)) is not None


def test_no_base():
    """A relative path without a base cannot be judged, an absolute one can."""
    assert fact("repo/x", base=None) is None
    assert fact("/srv/review/repo/x", base=None).root == "repo"


def test_root_of_everything():
    """The root / holds every path, after all longer roots."""
    roots = Roots({"all": "/", "etc": "/etc"})
    assert normalize("/etc/passwd", base=None, roots=roots)[:2] == ("etc", "passwd")
    assert normalize("/x/y", base=None, roots=roots)[:2] == ("all", "x/y")
    assert normalize("/", base=None, roots=roots)[:2] == ("all", "")


@pytest.mark.parametrize(
    "path", ["srv", "", "/srv/", "/srv//x", "/srv/../x", "/srv/./x", "/a\\b", "~/x", "/srv\n"]
)
def test_not_plain(path):
    """A configured path that needs interpretation is refused."""
    assert not is_plain(path)


segments = st.sampled_from(["..", ".", "", "repo", "docs", "a", ".git", "srv", "review", "caf\u00e9", "all"])
texts = st.one_of(
    st.builds(
        lambda absolute, parts: ("/" if absolute else "") + "/".join(parts), st.booleans(), st.lists(segments)
    ),
    st.text(max_size=40),
    st.text(alphabet="./~ar\u0301\\:e\x00", max_size=20),
)


@given(texts)
def test_agrees_with_posix(text):
    """A judged path names what POSIX rules name, lexically, and lies where it says that it lies."""
    found = fact(text)
    if found is None:
        return
    expected = posixpath.normpath(posixpath.join(BASE, text))
    assert found.absolute == ("/" + expected.lstrip("/") if expected.startswith("//") else expected)
    assert unicodedata.is_normalized("NFC", text)
    prefix = {"repo": "/srv/review/repo", "docs": "/srv/review/repo/docs", "all": "/srv/all", "outside": ""}[
        found.root
    ]
    assert found.absolute == (prefix + "/" + found.rel if found.rel else prefix or "/")
    inside = [p for p in ("/srv/review/repo", "/srv/all") if (found.absolute + "/").startswith(p + "/")]
    assert (found.root == "outside") == (not inside)
    assert ".." not in found.rel.split("/")


@given(texts)
def test_idempotent(text):
    """The absolute form of a judged path is judged alike, without dotdot."""
    found = fact(text)
    if found is not None and is_plain(found.absolute):
        assert fact(found.absolute) == found._replace(dotdot=False)

"""The Python page: its blocks run one after the other, as for a reader who types them in, and print what it shows."""

from __future__ import annotations

import contextlib
import io
import re

import pytest

from support.data import REPOSITORY

PAGE = REPOSITORY / "docs/python.md"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(page, scope):
    """Run the blocks of a page. A text block after a Python block is what that one prints, to the letter."""
    blocks = BLOCK.findall(page)
    for number, (kind, code) in enumerate(blocks):
        if kind == "python":
            line = page[: page.index(code)].count("\n")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("\n" * line + code, str(PAGE), "exec", dont_inherit=True), scope)
            shown = blocks[number + 1] if number + 1 < len(blocks) else ("python", "")
            if shown[0] == "text":
                assert printed.getvalue() == shown[1]
    return scope


@pytest.fixture(scope="module")
def scope():
    return run(PAGE.read_text(encoding="utf-8"), {"__name__": "page"})


def test_page(scope):
    """Every block runs, every assertion holds, and what is printed is what the page shows."""
    from onrecord.record import __all__ as door

    assert set(door) <= scope.keys()


def test_what_the_page_built(scope):
    """What a reader has built by the page has no error and no warning, strictly."""
    from onrecord.record import check

    for made in (scope["call"], scope["more"], scope["migration"].vcon):
        assert [
            finding for finding in check(made.to_bytes(), strict=True).findings if finding.severity != "info"
        ] == []


@pytest.mark.parametrize("page", [
    "```python\nassert False\n```\n",
    "```python\nprint(1)\n```\ntext\n```text\n2\n```\n",
    "```python\n1 +\n```\n",
])  # fmt: skip
def test_runner(page):
    """A block that fails, prints something else or is no Python is noticed."""
    with pytest.raises((AssertionError, SyntaxError)):
        run(page, {})


@pytest.mark.parametrize(
    "name", ["Vcon", "check", "sign", "verify", "encrypt", "decrypt", "redact", "amend", "migrate"]
)
def test_door(name):
    """Each name of the door is the one of its module, and is shown by dir()."""
    import onrecord.record
    from onrecord.record import amendment, forms, migration, redaction
    from onrecord.record.checks import checker
    from onrecord.record.vcon import model

    places = [
        place for place in (model, checker, forms, redaction, amendment, migration) if name in vars(place)
    ]
    assert getattr(onrecord.record, name) is getattr(places[0], name)
    assert name in dir(onrecord.record)


def test_door_is_lazy(tmp_path):
    """Importing the room loads nothing of it, so that the command line starts fast."""
    import subprocess
    import sys

    code = "import sys, onrecord.record as room; print([n for n in sys.modules if n.startswith(room.__name__ + '.')])"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert ran.stdout.strip() == "[]"


def test_unknown_name():
    """A name that is not there is an AttributeError as of any module."""
    import onrecord.record

    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = onrecord.record.nothing

"""The documentation says what the code does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.console_pages import Page, run_page
from support.data import REPOSITORY
from support.uids import uid_block_or_skip

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]


def test_generated_pages():
    """The pages of docs/reference are what docs/build.py makes of the code now."""
    run = subprocess.run([sys.executable, DOCS / "build.py"], capture_output=True, text=True, cwd=REPOSITORY)
    assert run.returncode == 0, run.stderr


def test_limits_of_the_documents_stand_once():
    """A number that one of the documents sets is defined in one module, and the others take it from there."""
    rows = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|", (DOCS / "reference/limits.md").read_text(), re.MULTILINE
    )
    stated = [(name, value) for name, value, reason in rows if re.search(r"\b[a-z-]+\.md\b", reason)]
    assert len(stated) > 20
    assert sorted(stated) == sorted(set(stated))


def test_requirement_marks():
    """Every requirement id on a test exists in the table, so that no mark is a misprint."""
    sys.path.insert(0, str(DOCS))
    try:
        import build
    finally:
        sys.path.remove(str(DOCS))
    known = {
        line.split("\t")[0] for line in (DOCS / "reference/requirements.tsv").read_text().splitlines()[1:]
    }
    unknown = {
        name for name in build.marked_requirements() if name not in known and name[:2] in ("AA", "CP", "TI")
    }
    assert not unknown


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda path: path.name
)
def test_links(page):
    """Every relative link leads to a file that exists."""
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_commands_exist(page):
    """Every `onrecord VERB` in the text is a command."""
    from onrecord.cli.main import VERBS

    for verb in re.findall(r"`onrecord ([a-z]+)", page.read_text(encoding="utf-8")):
        assert verb in VERBS, verb


OWN_TEST = {"run-isolated.md": "authorize/isolation/test_page.py"}
"""Pages that need more than a home directory, and the test that runs their commands."""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_commands_run(path):
    """Each command of a page ends well for a new user, and prints the lines that the page shows."""
    page = Page.read(path)
    if path.name in OWN_TEST:
        own = Path(__file__).parent / OWN_TEST[path.name]
        assert path.name in own.read_text(encoding="utf-8")
        pytest.skip(f"run by {OWN_TEST[path.name]}")
    if page.reason_not_run is not None:
        pytest.skip(page.reason_not_run)
    if page.steps:
        run_page(page, uid=uid_block_or_skip()[0] if os.geteuid() == 0 else None)


class TestRunner:
    """A runner that finds nothing would pass every page."""

    def page(self, tmp_path, text):
        (tmp_path / "page.md").write_text(text)
        return Page.read(tmp_path / "page.md")

    @pytest.fixture
    def uid(self):
        return uid_block_or_skip()[0] if os.geteuid() == 0 else None

    @pytest.mark.parametrize(
        "block",
        [
            "$ false",
            "$ echo one\ntwo",
            "$ echo one; echo two\ntwo\none",
            "$ echo one two\none",
            "$ cat <<END\n$ x\n$ END\ny",
            "$ exit 0",
            "$ echo a\na\n$ exit 3",
            "$ false | cat",
            "$ true\n...status...",
            "$ sh -c 'echo @@ status 0; exit 1'",
            "$ printf '@@ status 0'; false",
            "$ echo \\\n$ false",
        ],
    )
    def test_differences(self, tmp_path, uid, block):
        """A command that fails, other output, another order, and an early end are all noticed."""
        with pytest.raises(AssertionError):
            run_page(self.page(tmp_path, f"```console\n{block}\n```\n"), uid=uid)

    def test_before(self, tmp_path, uid):
        """What a page takes for granted must have worked too."""
        with pytest.raises(AssertionError):
            run_page(self.page(tmp_path, "<!-- before: false -->\n```console\n$ true\n```\n"), uid=uid)

    def test_end_too_late(self, tmp_path, uid, monkeypatch):
        """A page whose processes do not end is noticed, although all of its commands ended well."""
        monkeypatch.setattr("support.console_pages.PAGE_SECONDS", 1)
        # Ignored before the process starts, so that there is no moment in which the signal ends it.
        block = "$ trap '' TERM; (while read -t 60 <> <(:) || true; do :; done) &\n"
        with pytest.raises(AssertionError):
            run_page(self.page(tmp_path, f"```console\n{block}```\n"), uid=uid)

    def test_good(self, tmp_path, uid):
        """Here-documents, variables over several blocks, `...` and lines in between are understood."""
        text = (
            "<!-- before: A=1 -->\n"
            "```console\n$ cat <<END\n$ a $A\n$ b\n$ END\na 1\n$ echo one two; echo x; echo three\n...two\nthree\n```\n"
            'text\n```console\n$ test -n "$HOME" && echo $A\n1\n```\n'
            "<!-- not run: it would fail -->\n```console\n$ false\n```\n"
        )
        page = self.page(tmp_path, text)
        assert [step.command for step in page.steps][-1].endswith("echo $A")
        run_page(page, uid=uid)

    def test_remarks(self, tmp_path):
        """What a page needs, and that it is not run, is read from its comments."""
        page = self.page(tmp_path, "<!-- page not run: a reason -->\n<!-- needs: a-b c -->\n")
        assert (page.reason_not_run, page.needs, page.steps) == ("a reason", ("a-b", "c"), ())

    def test_missing_program(self, tmp_path, uid):
        """A page that needs a program which is not installed is skipped."""
        page = self.page(tmp_path, "<!-- needs: no-such-program -->\n```console\n$ true\n```\n")
        with pytest.raises(pytest.skip.Exception):
            run_page(page, uid=uid)

"""Runs the console blocks of a page as a new user would, and compares what is printed with what the page shows.

A line that begins with "$ " is a command, the lines below it are output, in which `...` stands for anything, and
alone for any lines or none; other output may stand between them. A command fails as its last part does, and as any
part of a pipe does. A here-document that ends with END is one command, each line with the same prompt.
All commands of a page run in one shell, one after the other, below a home directory of their own.

Remarks in comments, which a reader does not see:

- `<!-- not run: REASON -->` directly above a block: the block is left out.
- `<!-- page not run: REASON -->`: so are all of the page.
- `<!-- before: COMMANDS -->`: what the page takes for granted; it runs first.
- `<!-- needs: PROGRAM ... -->`: real tool servers that must be in PATH; without them the page is skipped.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.checkout import installed_servers
from support.data import REPOSITORY
from support.runtime import make_short_dir

PAGE_SECONDS = 100
"""How long a page may take. A bound for failing tests, never an assertion."""

_BLOCK = re.compile(r"(<!-- not run: [^\n]+ -->\n)?```console\n(.*?)```", re.DOTALL)
_STATUS = re.compile(r"^@@ status (\d+)\n", re.MULTILINE)
_READY = "until onrecord control status >/dev/null 2>&1; do read -t 0.2 <> <(:) || true; done"
_BECOME = (
    "import os, sys; u = int(sys.argv[1]); os.setgroups([]); os.setgid(u); os.setuid(u);"
    "os.execvp(sys.argv[2], sys.argv[2:])"
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command and the output lines that the page shows for it."""

    command: str
    shown: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Page:
    """The commands of a page, and what its remarks say."""

    path: Path
    steps: tuple[Step, ...]
    before: str
    needs: tuple[str, ...]
    reason_not_run: str | None

    @classmethod
    def read(cls, path: Path) -> Page:
        text = path.read_text(encoding="utf-8")
        needs = _remark(text, "needs")
        return cls(
            path=path,
            steps=tuple(console_steps(text)),
            before=_remark(text, "before") or "",
            needs=tuple(needs.split()) if needs else (),
            reason_not_run=_remark(text, "page not run"),
        )


def _remark(text: str, name: str) -> str | None:
    match = re.search(rf"<!-- {name}:\s(.*?)\s-->", text, re.DOTALL)
    return match[1] if match else None


def console_steps(text: str) -> Iterator[Step]:
    """Yield the commands of the console blocks of a page that are run."""
    for remark, block in _BLOCK.findall(text):
        if remark:
            continue
        command: str | None = None
        shown: list[str] = []
        for line in block.splitlines():
            if not line.startswith("$ ") and line != "$":
                assert command is not None, f"output without a command: {line}"
                shown.append(line)
            elif command is not None and "<<END" in command and not command.endswith("\nEND"):
                command += "\n" + line[2:]
            else:
                if command is not None:
                    yield Step(command=command, shown=tuple(shown))
                command, shown = line[2:], []
        if command is not None:
            yield Step(command=command, shown=tuple(shown))


def matches(shown: str, line: str) -> bool:
    """Say whether an output line fits what the page shows, where `...` stands for anything."""
    return (
        re.fullmatch(".*".join(re.escape(part) for part in shown.rstrip().split("...")), line.rstrip())
        is not None
    )


def first_difference(step: Step, printed: Sequence[str]) -> str | None:
    """Return the first line of a page that is not printed, in the page's order, or None."""
    lines = iter(printed)
    expected = [shown for shown in step.shown if shown.strip() != "..."]
    return next((shown for shown in expected if not any(matches(shown, line) for line in lines)), None)


def run_page(page: Page, *, uid: int | None) -> None:
    """Run a page, under another uid if one is given. Fails with the command that did not do what the page says."""
    home = make_short_dir()
    try:
        programs = _programs(page.needs, home)
        if uid is not None:
            for place in (home, programs):
                os.chown(place, uid, uid)
        environment = {
            "HOME": str(home),
            "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "TMPDIR": str(home),
        }
        output = _run(_script(page), environment, uid=uid)
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)
    before = judge(page, output)
    assert _STATUS.findall(before) == ["0"], f"{page.path.name}: what it takes for granted\n{before}"


def judge(page: Page, output: str) -> str:
    """Check the output of a page's commands, each after `begun` and before `ended`; return what stood before them."""
    parts = re.split(r"^@@ (\d+)\n", output, flags=re.MULTILINE)
    assert len(parts) == 2 * len(page.steps) + 1, output
    for number, step in enumerate(page.steps):
        part = parts[2 * number + 2]
        assert _STATUS.findall(part)[-1:] == ["0"], f"{page.path.name}: {step.command}\n{part}"
        printed = _STATUS.sub("", part)
        missing = first_difference(step, printed.splitlines())
        assert missing is None, f"{page.path.name}: {step.command}: no line {missing!r} in\n{printed}"
    return parts[0]


def begun(number: int) -> str:
    """Return the command that tells which command begins."""
    return f"echo '@@ {number}'"


def ended(status: str = "$?") -> str:
    """Return the command that tells a status, on a line of its own whatever stands before it."""
    return f'printf "\\n@@ status %s\\n" "{status}"'


def _programs(names: Sequence[str], home: Path) -> Path:
    """Make a directory with links to the named programs; skips the test if one is not installed."""
    directory = home / ".programs"
    directory.mkdir(mode=0o755)
    for name in names:
        program = installed_servers() / "venv" / "bin" / name
        if not program.exists():
            pytest.skip(f"{name} is not installed; `make setup` makes .test-servers")
        (directory / name).symlink_to(program)
    return directory


def _script(page: Page) -> str:
    lines = [
        "set -m -o pipefail",
        "trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT",
        f"set -e\n{page.before}\nset +e\n{ended('0')}",
    ]
    for number, step in enumerate(page.steps):
        lines.append(f"{begun(number)}\n{step.command}\n{ended()}")
        if re.match(r"onrecord up\b.*&\s*$", step.command):
            lines.append(_READY)
    return "\n".join(lines)


def _run(script: str, environment: dict[str, str], *, uid: int | None) -> str:
    identity = [] if uid is None else [sys.executable, "-c", _BECOME, str(uid)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*identity, "bash", "-c", script],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            cwd=REPOSITORY,
            env=environment,
            start_new_session=True,
        )
        late = ""
        try:
            process.wait(timeout=PAGE_SECONDS)
        except subprocess.TimeoutExpired:
            late = f"\n@@ 0\nended after {PAGE_SECONDS} seconds\n"  # one part more than there are commands
        finally:
            _end_session(process.pid)
            process.wait()
        output.seek(0)
        return output.read().decode("utf-8", "replace") + late


def _end_session(session: int) -> None:
    """Kill what a page has left behind in its session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if os.getsid(int(entry.name)) == session:
                    os.kill(int(entry.name), signal.SIGKILL)

"""The tool servers of the demonstration: the example file server twice, and mcp-server-git where it is installed.

"filesystem" is protected by the SDK hook, the two others are unmodified and stand behind the relay.

Source: running.md 10.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from onrecord.examples.demo.tree import Tree

TOOLS: Final = Path(__file__).with_name("tools.txt")
"""What the environment of the real server is made of; `make setup` installs it."""

LOOK_SECONDS: Final = 30
"""Bound for two programs that only say that they are there."""


@dataclass(frozen=True)
class ToolServer:
    """One server: its id, how the record names it, and the command of its owner.

    With `is_hooked` the server checks the proofs itself, by the SDK hook; otherwise the guard in front of it does.
    `about` says in a few words what it is.
    """

    id: str
    ti_server: str
    command: Callable[[Tree], tuple[str, ...]]
    about: str
    is_hooked: bool = False


def _example(server: str, *options: str) -> Callable[[Tree], tuple[str, ...]]:
    def command(tree: Tree) -> tuple[str, ...]:
        base, counter = str(tree.base(server)), str(tree.counter(server))
        module = (sys.executable, "-P", "-m", "onrecord.examples.files")
        return (*module, "--base", base, "--counter", counter, *options)

    return command


def _git(tree: Tree) -> tuple[str, ...]:
    return (
        str(tools_directory() / "bin" / "python"),
        "-I",
        "-m",
        "mcp_server_git",
        "--repository",
        str(tree.git_work),
    )


FILESYSTEM: Final = ToolServer(
    "filesystem",
    "example-files",
    _example("filesystem", "--hook"),
    "the example file server, which checks each proof itself by the SDK hook",
    is_hooked=True,
)
ARCHIVE: Final = ToolServer(
    "archive",
    "example-files-archive",
    _example("archive"),
    "the same tools in a server that knows nothing of onrecord; its guard checks",
)
GIT: Final = ToolServer(
    "git", "mcp-git", _git, "mcp-server-git from the package index, unmodified; its guard checks"
)

SERVERS: Final = (FILESYSTEM, ARCHIVE, GIT)


def tools_directory() -> Path:
    """Return where the environment of mcp-server-git is looked for: beside our own, or with the user's data.

    The SDK that it needs is its own business, so it never shares our environment.
    """
    if sys.prefix == sys.base_prefix:
        return Path.home() / ".local" / "share" / "onrecord" / "demo-tools"
    return Path(sys.prefix).resolve().parent / "demo-tools"


def refusal_of_git(uid: int | None, *, directory: Path | None = None) -> str | None:
    """Return why mcp-server-git cannot be run, as `uid` if one is given, or None when it can.

    The reason ends with what to do about it.
    """
    if shutil.which("git") is None:
        return "git is not installed"
    place = directory or tools_directory()
    python = place / "bin" / "python"
    if not python.exists():
        return (
            f"mcp-server-git is not installed; to have this step: python3 -m venv {place} && "
            f"{place}/bin/pip install -r {TOOLS}"
        )
    look = "import importlib.util, sys; sys.exit(importlib.util.find_spec('mcp_server_git') is None)"
    try:
        done = subprocess.run(
            [python, "-I", "-c", look],
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=LOOK_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        others = "" if uid is None else " by other users; `make setup` puts it where they can"
        return f"{place} cannot be run{others}"
    if done.returncode != 0:
        return f"mcp-server-git is not installed in {place}; to have this step: {place}/bin/pip install -r {TOOLS}"
    return None

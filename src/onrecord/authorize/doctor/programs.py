"""What programs load: the files on a command line, the trees that its code comes from, the libraries.

Who can change one of them becomes the principal that runs the program.

Source: call-proof.md 1.3, 1.5 (I5).
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import onrecord
from onrecord.authorize.doctor.reaching import way_to
from onrecord.base.files import regular_file

DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"

MODULE_PATH_SECONDS: Final = 10.0
"""How long an interpreter may take to say where its modules are: it starts, and does nothing else."""

_PYTHON: Final = re.compile(r"python[0-9.]*")
_NODE: Final = frozenset({"node", "nodejs", "bun", "deno"})
_PROJECT_FILES: Final = ("__main__.py", "pyproject.toml", "package.json")

_ASK: Final = "import json, sys; print(json.dumps(sys.path))"


def program_trees() -> tuple[Path, ...]:
    """Return the directories that the code of this installation is loaded from, those that a .pth file adds too.

    Raises `LookupError` if the interpreter does not say them.
    """
    found = [Path(onrecord.__file__).parent]
    found += [
        Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    ]
    return _outermost([*found, *module_path(sys.executable)])


def program_files() -> tuple[Path, ...]:
    """Return single files that this installation stands on: the settings of its environment, and the libraries."""
    found = [Path(sys.prefix) / "pyvenv.cfg", Path("/etc/ld.so.preload"), Path("/etc/ld.so.cache")]
    try:
        rows = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        rows = []
    mapped = (row.split(maxsplit=5)[5] for row in rows if " /" in row)
    found += [Path(one) for one in dict.fromkeys(mapped) if os.path.isfile(one)]
    return tuple(found)


def module_path(interpreter: str | Path) -> tuple[Path, ...]:
    """Ask a Python for the directories of its modules, environment and user packages left aside.

    Raises `LookupError` if it does not say.
    """
    try:
        done = subprocess.run(
            [interpreter, "-I", "-c", _ASK],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=MODULE_PATH_SECONDS,
            check=True,
        )
        places = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise LookupError(f"{interpreter} does not say where its modules are") from error
    return tuple(Path(one) for one in places if os.path.isdir(one))


def _outermost(found: Sequence[Path]) -> tuple[Path, ...]:
    trees = dict.fromkeys(path for path in found if os.path.isdir(path))
    return tuple(tree for tree in trees if not any(other in tree.parents for other in trees))


def find_program(word: str) -> Path | None:
    """Return the program that a first word names, looked up in the usual places and then in PATH."""
    if os.path.isabs(word):
        return Path(word)
    found = shutil.which(word, path=DEFAULT_PATH) or shutil.which(word)
    return None if found is None else Path(found)


def command_files(command: Sequence[str], *, cwd: Path | None = None) -> Iterator[Path]:
    """Yield the program and every file or project directory that a command line names.

    A word may be a path or an option with one (`--config=/path`); relative ones, and what `-m` names, count from
    `cwd` if it is given. A directory counts if there is code to run in it.
    """
    if not command:
        return
    program = find_program(command[0])
    if program is not None:
        yield program
    for before, word in itertools.pairwise(command):
        for text in dict.fromkeys((word, word.partition("=")[2])):
            for path in _places(text, cwd, is_module=before == "-m" and text == word):
                is_project = os.path.isdir(path) and any(
                    os.path.exists(path / name) for name in _PROJECT_FILES
                )
                if os.path.isfile(path) or is_project:
                    yield path


def _places(text: str, cwd: Path | None, *, is_module: bool) -> Iterator[Path]:
    if not text or "\0" in text:
        return
    if os.path.isabs(text):
        yield Path(text)
    elif cwd is not None:
        yield cwd / text
        if is_module:
            top = text.split(".", maxsplit=1)[0]
            yield from (cwd / f"{top}.py", cwd / top / "__init__.py", cwd / top / "__main__.py")


def command_trees(command: Sequence[str], *, cwd: Path | None = None) -> tuple[Path, ...]:
    """Return the directories that the code of a command line is loaded from, as far as its first words tell.

    For Python these are its modules and the place of the script, for Node the packages around the script. This
    installation has `program_trees`.

    Raises `LookupError` if a Python does not say where its modules are.
    """
    program = find_program(command[0]) if command else None
    if program is None:
        return ()
    script = next((one for one in _scripts(command, cwd)), None)
    name = program.name
    shebang = _shebang(program)
    if shebang is not None and find_program(shebang) is not None:
        name, script = Path(shebang).name, program
        program = find_program(shebang) or program
    found: list[Path] = []
    if _PYTHON.fullmatch(name):
        if os.path.abspath(program) != os.path.abspath(sys.executable):
            found += _python_trees(program)
        if script is not None:
            found.append(script if os.path.isdir(script) else Path(os.path.realpath(script)).parent)
    elif name in _NODE and script is not None:
        found.append(_packages_around(Path(os.path.realpath(script))))
    return _outermost(found)


def _python_trees(program: Path) -> tuple[Path, ...]:
    """Return the environment of a Python and its modules; one that a third party could have made is not executed."""
    home = program.parent.parent
    found = (home,) if os.path.exists(home / "pyvenv.cfg") else ()
    for interpreter in (program, Path(os.path.realpath(program))):
        if _is_of_root_or_ours(interpreter):
            return (*found, *module_path(interpreter))
    raise LookupError(f"{program} does not belong to root, so it was not asked where its modules are")


def _is_of_root_or_ours(program: Path) -> bool:
    owners = {0, os.geteuid()}
    return os.path.isfile(program) and all(
        status.st_uid in owners
        and (stat.S_ISLNK(status.st_mode) or status.st_mode & stat.S_ISVTX or not status.st_mode & 0o002)
        for _, status in way_to(program)
    )


def _scripts(command: Sequence[str], cwd: Path | None) -> Iterator[Path]:
    for word in command[1:]:
        if word.startswith("-"):
            if word in ("-m", "-c", "-e"):
                return
            continue
        path = Path(word) if os.path.isabs(word) else None if cwd is None else cwd / word
        if path is not None and os.path.exists(path):
            yield path
        return


def _packages_around(script: Path) -> Path:
    outer = [one for one in script.parents if one.name == "node_modules"]
    if outer:
        return outer[-1]
    return next((one for one in script.parents if os.path.exists(one / "package.json")), script.parent)


def _shebang(program: Path) -> str | None:
    """Return the interpreter that the first line of a script names (execve(2)), behind env(1) too."""
    try:
        with regular_file(program, follow=True) as (descriptor, _):
            row = os.read(descriptor, 256).split(b"\n", maxsplit=1)[0]
    except OSError:
        return None
    if not row.startswith(b"#!"):
        return None
    words = [one for one in os.fsdecode(row[2:]).split() if not one.startswith("-") and "=" not in one]
    if words and Path(words[0]).name == "env":
        words = words[1:]
    return words[0] if words else None

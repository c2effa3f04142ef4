"""I5: what the agent can read of the other side's secrets, and change of what the other side runs and believes.

Source: call-proof.md 1.3, 1.5 (I5).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.authorize.doctor import programs
from onrecord.authorize.doctor.belongings import fixed, fixed_trees, secrets
from onrecord.authorize.doctor.mounts import other_names, read_mounts
from onrecord.authorize.doctor.reaching import (
    names_beside,
    open_descriptors,
    replaceable,
    try_path,
    writable,
    writable_below,
)
from onrecord.authorize.doctor.results import Check, listed, weight

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration

OWN_UID: Final = "the agent needs a uid of its own, and the modes that onrecord init sets"

_NAME: Final = "I5 files"


def all_names(path: Path) -> tuple[Path, ...]:
    """Return a path with the other paths at which mounts show the same thing."""
    return (path, *other_names(Path(os.path.abspath(path)), read_mounts()))


def check_files(
    configuration: Configuration, server: str, *, running: Collection[Sequence[str]]
) -> Iterator[Check]:
    """Yield what can be read or changed; `running` are the command lines of the processes of the other side."""
    readable, untried = _read(configuration)
    changeable, unseen = _change(configuration, server, running)
    untried += unseen
    result = weight(configuration)
    if readable:
        detail = f"uid {os.geteuid()} gets at {listed(readable)}"
        yield Check(_NAME, result, detail, OWN_UID, tuple(readable))
    if changeable:
        hint = "only root may write these, and the directories on the way"
        yield Check(_NAME, result, listed(changeable), hint, tuple(changeable))
    if untried:
        yield Check(_NAME, "warning", f"not tried: {listed(untried)}", items=tuple(untried))
    if not readable and not changeable and not untried:
        detail = "no key, counter, journal, spool or environment file can be read"
        yield Check(_NAME, "ok", f"{detail}; no policy, anchor, configuration or program can be changed")


def _read(configuration: Configuration) -> tuple[list[str], list[str]]:
    readable, untried = [], []
    held = open_descriptors()
    for what, path in secrets(configuration):
        for name in all_names(path):
            reach, how = try_path(name)
            if reach == "reached":
                readable.append(f"{what} {name} {how}")
            elif reach == "untried":
                untried.append(f"{what} {name} ({how})")
        readable += [
            f"a copy of {what}: {copy}" for copy in names_beside(path) if try_path(copy)[0] == "reached"
        ]
        readable += [
            f"{what} {target} is open as descriptor {number}"
            for number, target in held
            if target == path or path in target.parents
        ]
    return readable, untried


def _change(
    configuration: Configuration, server: str, running: Collection[Sequence[str]]
) -> tuple[dict[str, None], list[str]]:
    entry = configuration.server(server)
    cwd = configuration.server_cwd(server)
    commands = [((entry.command, *entry.args), cwd), *((one, None) for one in running)]
    files = [path for _, path in fixed(configuration, server)]
    files += programs.program_files()
    untried: list[str] = []
    trees = [*fixed_trees(configuration)]
    for find in (
        programs.program_trees,
        *(lambda one=one, at=at: programs.command_trees(one, cwd=at) for one, at in commands),
    ):
        try:
            trees += find()
        except LookupError as error:
            untried.append(str(error))
    for command, at in commands:
        files += programs.command_files(command, cwd=at)
    changeable = {reason: None for path in dict.fromkeys(files) if (reason := writable(path))}
    # Keys and journals cannot be written if they cannot be reached, but a directory on the way can give them away.
    changeable |= {
        reason: None
        for _, path in secrets(configuration)
        if (reason := replaceable(path, links_allowed=True))
    }
    for tree in dict.fromkeys(trees):
        try:
            reason = writable(tree) or writable_below(tree)
        except OverflowError:
            untried.append(f"all of {tree} (too many files)")
        except PermissionError as error:
            untried.append(f"all of {tree} ({error.filename} cannot be listed)")
        else:
            if reason is not None:
                changeable[reason] = None
    return changeable, untried

"""What belongs to the other side: secrets that the agent may not read, and what it may not change.

Source: call-proof.md 1.5, I5; running.md 2.1.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import onrecord
from onrecord.authorize.setup import ca_key_path

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration

_DEFAULT_PATH: Final = "/usr/local/bin:/usr/bin:/bin"


def secrets(configuration: Configuration) -> Iterator[tuple[str, Path]]:
    """Yield what the agent may not even read: keys, counters, journals, spools, records, environment files."""
    keys = configuration.keys
    for what, uri in (
        ("proof key", keys.proof),
        ("authority journal key", keys.authority_journal),
        ("recorder journal key", keys.recorder_journal),
        ("record key", keys.record),
        ("policy key", keys.policy),
    ):
        if uri is not None:
            yield what, Path(uri.removeprefix("file:"))
    yield "CA key", ca_key_path(configuration)
    yield "authority journal and replay state", configuration.authority_state
    yield "recorder journal", configuration.recorder_state
    yield "high-water of the authority", configuration.marks("authority")
    yield "high-water of the recorder", configuration.marks("recorder")
    yield "records", configuration.paths.records
    yield "backups of wrap", configuration.paths.state / "wrap"
    for server in configuration.servers.values():
        yield f"spool of {server.id}", configuration.guard_state(server.id)
        if server.env_file is not None:
            yield f"environment file of {server.id}", server.env_file


def fixed(configuration: Configuration, server: str) -> Iterator[tuple[str, Path]]:
    """Yield what the agent may not change: configuration, policy, anchors, and the programs of `server`."""
    bundle = configuration.policy.bundle
    yield "configuration", configuration.file
    yield "policy", bundle
    yield "policy signature", bundle.with_name(bundle.name + ".sig")
    yield "policy source", configuration.policy.source
    yield "policy anchor", configuration.trust.policy
    yield "journal anchor", configuration.trust.journal
    yield "record anchors", configuration.trust.vcon
    yield "record certificate", configuration.keys.record_chain
    yield "interpreter", Path(sys.executable)
    entry = configuration.server(server)
    program = entry.command
    if not os.path.isabs(program):
        program = shutil.which(program, path=_DEFAULT_PATH) or shutil.which(program) or ""
    if program:
        yield "program of the server", Path(program)
    for argument in entry.args:
        if os.path.isabs(argument) and os.path.isfile(argument):
            yield "file of the server's command line", Path(argument)
    yield "working directory of the server", configuration.server_cwd(server)


def program_trees() -> tuple[Path, ...]:
    """Return the directories that the code of this installation is loaded from."""
    found = [Path(onrecord.__file__).parent]
    found += [
        Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")
    ]
    trees = dict.fromkeys(path for path in found if path.is_dir())
    return tuple(tree for tree in trees if not any(other in tree.parents for other in trees))

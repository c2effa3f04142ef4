"""What belongs to the other side: secrets that the agent may not read, and what it may not change.

Source: call-proof.md 1.5, I5; running.md 2.1.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.authorize.setup import ca_key_path

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration

RAW_MEMORY: Final = ("/dev/mem", "/dev/kmem", "/dev/port", "/proc/kcore")


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
    yield from (("memory of the machine", Path(device)) for device in RAW_MEMORY)
    for place in dict.fromkeys((configuration.paths.state, configuration.paths.config)):
        with contextlib.suppress(OSError):
            number = os.stat(place).st_dev
            yield "disk", Path(f"/dev/block/{os.major(number)}:{os.minor(number)}")


def fixed(configuration: Configuration, server: str) -> Iterator[tuple[str, Path]]:
    """Yield what the agent may not change: configuration, policy, anchors, interpreter, homes of the other side."""
    bundle = configuration.policy.bundle
    yield "configuration", configuration.file
    yield "policy", bundle
    yield "policy signature", bundle.with_name(bundle.name + ".sig")
    yield "policy anchor", configuration.trust.policy
    yield "journal anchor", configuration.trust.journal
    yield "record certificate", configuration.keys.record_chain
    yield "interpreter", Path(sys.executable)
    yield "working directory of the server", configuration.server_cwd(server)
    for uid in (configuration.authority_uid, configuration.recorder_uid, configuration.server_uid(server)):
        with contextlib.suppress(KeyError):
            yield "home", Path(pwd.getpwuid(uid).pw_dir)


def fixed_trees(configuration: Configuration) -> tuple[Path, ...]:
    """Return the directories in which the agent may change nothing: who signs the policy reads its source."""
    return (configuration.policy.source, configuration.trust.vcon)

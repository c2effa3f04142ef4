"""What a demonstration leaves behind: the vCon and all that is needed to verify it, and no private key.

Source: running.md 10.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from onrecord.base.configuration import Configuration
from onrecord.base.dates import utc_now
from onrecord.base.errors import StorageError, UsageError, Where

VCON: Final = "record.vcon.json"
TRANSCRIPT: Final = "demo.json"


def choose_directory(keep: Path | None) -> Path:
    """Make and return the directory: `keep`, else one named by the time below the user's state directory.

    Raises `UsageError` with code "not-empty", `StorageError` with code "keep-directory".
    """
    own = None
    if keep is None:
        home = os.environ.get("XDG_STATE_HOME", "")
        base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state"
        own = base / "onrecord"
        keep = own / "demo" / utc_now().strftime("%Y-%m-%dT%H-%M-%SZ")
    try:
        if own is not None:
            # A later installation shares it, and refuses a state directory that others may read.
            own.mkdir(parents=True, exist_ok=True, mode=0o700)
        keep.mkdir(parents=True, exist_ok=True, mode=0o700)
        if any(keep.iterdir()):
            raise UsageError(
                "the directory is not empty, nothing was touched",
                code="not-empty",
                hint="name one that does not exist yet",
                where=Where(file=str(keep)),
            )
    except OSError as error:
        raise StorageError(
            f"the directory cannot be made ({error.strerror})",
            code="keep-directory",
            hint="name a directory that you may write to with --keep DIR",
            where=Where(file=str(keep)),
        ) from error
    return keep.absolute()


def keep_results(directory: Path, configuration: Configuration, vcon: Path | None) -> Path | None:
    """Copy the results of a demonstration whose daemons are stopped; returns where the vCon is now.

    Raises `StorageError` with code "keep-directory".
    """
    bundle, trust = configuration.policy.bundle, configuration.trust
    copies = {
        bundle: bundle.name,
        bundle.with_name(bundle.name + ".sig"): bundle.name + ".sig",
        trust.policy: "trust/policy.keys",
        trust.journal: "trust/journal.keys",
    }
    copies |= {path: f"trust/vcon/{path.name}" for path in trust.vcon.glob("*.pem")}
    for name, state in (
        ("authority", configuration.authority_state),
        ("recorder", configuration.recorder_state),
    ):
        copies |= {path: f"journals/{name}/{path.name}" for path in state.glob("journal-*.db*")}
    if vcon is not None:
        copies[vcon] = VCON
    try:
        for source, name in copies.items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            shutil.copyfile(source, target)
    except OSError as error:
        raise StorageError(
            f"the results cannot be kept ({error.strerror})",
            code="keep-directory",
            where=Where(file=str(directory)),
        ) from error
    return None if vcon is None else directory / VCON


def keep_transcript(directory: Path, document: Mapping[str, Any]) -> None:
    """Write the JSON document of the demonstration beside its results."""
    (directory / TRANSCRIPT).write_text(json.dumps(document, indent=1) + "\n")

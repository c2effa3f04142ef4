"""What `onrecord up` does before and around the supervisor.

Source: running.md 1.1, 2.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from onrecord.authorize.ownership import check_ownership
from onrecord.authorize.setup.places import directories, make_directories
from onrecord.authorize.supervisor.children import all_children
from onrecord.authorize.supervisor.supervisor import GUARD_STOP_EXTRA_S, Supervisor, Timing
from onrecord.base.errors import UsageError
from onrecord.base.processes import harden
from onrecord.base.sockets import lock_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from onrecord.base.configuration import Configuration

DEGRADED = (
    "DEGRADED: user mode, agent, servers and authority share one uid. Calls are checked and recorded, but code that "
    "runs as this user can go around the guard. `onrecord init --mode system` separates them."
)


def run_up(
    configuration: Configuration, *, ready_fd: int | None = None, say: Callable[[str], None] | None = None
) -> int:
    """Run everything in the foreground until a signal comes; returns the exit status.

    Raises `UsageError` with code "runs-as-root" (user mode), "needs-root" (system mode) or "already-running",
    and `ConfigurationError` for anything that is not owned as it must be.

    Source: running.md 1.1.
    """
    system = configuration.mode == "system"
    if system and os.geteuid() != 0:
        raise UsageError(
            "system mode starts each part under its own uid, and only root can do that",
            code="needs-root",
            hint="run it as root, or run the parts as separate services, each under its own user",
        )
    harden(refuse_root=not system, death_signal=None)
    make_directories(directories(configuration))
    check_ownership(configuration)
    lock = lock_file(configuration.paths.state / "up.lock")
    try:
        timing = Timing(guard_stop_s=configuration.limits.stop_grace_seconds + GUARD_STOP_EXTRA_S)
        supervisor = (
            Supervisor(all_children(configuration), timing=timing)
            if say is None
            else Supervisor(all_children(configuration), timing=timing, say=say)
        )
        if not system:
            supervisor.say(DEGRADED)
        return asyncio.run(supervisor.run(ready_fd=ready_fd))
    finally:
        lock.release()

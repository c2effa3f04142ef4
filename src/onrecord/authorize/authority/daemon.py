"""The authority as a process: hardened, with signals, until it is told to stop.

Source: running.md 1.1, 2.3.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from typing import TYPE_CHECKING, Final

from onrecord.authorize.authority.server import Authority
from onrecord.base.errors import UsageError
from onrecord.base.processes import announce_ready, harden

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration

GC_THRESHOLD: Final = 50_000
"""Allocations between two young collections. Proof records live for minutes; looking at them often is waste."""


async def serve(config: Configuration, *, ready_fd: int | None) -> None:
    """Run an authority until SIGTERM or SIGINT."""
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    authority = Authority(config)
    await authority.start()
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 20, 50)
    if announce_ready(ready_fd):
        await stopped.wait()
    await authority.stop()


def run_authority(config: Configuration, ready_fd: int | None = None) -> None:
    """Run the authority in this process until it is told to stop.

    Raises `UsageError` with code "runs-as-root", "wrong-uid" or "already-running", and what `Authority.start` raises.
    """
    parent = os.getppid()
    harden(
        refuse_root=True,
        death_signal=signal.SIGTERM if ready_fd is not None else None,
        parent_pid=parent if ready_fd is not None else None,
    )
    if os.geteuid() != config.authority_uid:
        raise UsageError(
            f"the configuration gives the authority to uid {config.authority_uid}, this is uid {os.geteuid()}",
            code="wrong-uid",
            hint="agents and servers would refuse this authority; start it as its own user",
        )
    logging.basicConfig(format="%(asctime)s %(name)s %(levelname)s %(message)s", level=logging.INFO)
    try:
        import uvloop
    except ImportError:
        asyncio.run(serve(config, ready_fd=ready_fd))
    else:
        uvloop.run(serve(config, ready_fd=ready_fd))

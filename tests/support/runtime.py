"""Short directories for sockets, and child processes that end with the test."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from onrecord.base.processes import Principal, spawn

READY_SECONDS = 30
"""How long a child may take to say that it is ready. A bound for failing tests, never an assertion."""


def make_short_dir() -> Path:
    """Return a new private directory with a short path: a socket path has at most 107 bytes."""
    return Path(tempfile.mkdtemp(prefix="or-", dir="/tmp"))


def child_environment(**more: str) -> dict[str, str]:
    """Return a small environment for onrecord children; nothing of the tester's configuration leaks in."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
    return {"HOME": "/nonexistent", **kept, **more}


def onrecord(*args: str) -> list[str]:
    """Return the command line of an onrecord child."""
    return [sys.executable, "-m", "onrecord", *args]


def start_ready(
    argv: Sequence[str],
    *,
    principal: Principal | None = None,
    env: Mapping[str, str] | None = None,
    stderr: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a daemon with `--ready-fd N` added and wait until it says ready.

    Raises `AssertionError` with its exit status if it ends or stays silent.
    """
    reader, writer = os.pipe()
    try:
        process = spawn(
            [*argv, "--ready-fd", str(writer)],
            principal=principal,
            env=child_environment() if env is None else env,
            stderr=stderr,
            pass_fds=(writer,),
        )
        os.close(writer)
        writer = -1
        said = b""
        while not said.endswith(b"ready\n"):  # a recorder tells of its progress before
            part = os.read(reader, 64) if select.select([reader], [], [], READY_SECONDS)[0] else b""
            if not part:
                stop(process, signal_number=signal.SIGKILL)
                raise AssertionError(f"{' '.join(argv[2:5])} did not get ready, status {process.returncode}")
            said += part
        return process
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)


def stop(process: subprocess.Popen[bytes], *, signal_number: int = signal.SIGTERM) -> int:
    """End one process that a test has started; returns its status."""
    if process.poll() is None:
        process.send_signal(signal_number)
    try:
        return process.wait(timeout=READY_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def wait_for(condition, *, what: str, seconds: float = READY_SECONDS) -> None:
    """Wait for something that another process does; fails with `what` if it never comes true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never happened: {what}")
        select.select([], [], [], 0.02)

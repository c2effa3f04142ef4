"""Processes of several principals: dropping privileges, dying with the parent, telling that one is ready."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from onrecord.base.errors import ConfigurationError, UsageError, Where

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_DUMPABLE: Final = 4
_PR_SET_NO_NEW_PRIVS: Final = 38

_GC_ALLOCATIONS: Final = 50_000
"""Allocations between two young collections of a long-lived process."""

_File = int | IO[Any] | None


@dataclass(frozen=True, slots=True)
class Principal:
    """An OS principal: numeric uid, gid and supplementary groups. It needs no account."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


def harden(
    *, refuse_root: bool = True, death_signal: int | None = signal.SIGTERM, parent_pid: int | None = None
) -> None:
    """Make this process a good daemon: no new privileges, no core dump, private files, ends with its parent.

    `death_signal` is sent by the kernel when the parent ends (None: live on). `parent_pid` is who started us; when
    it is gone already, this process exits. With `refuse_root`, uid 0 is refused: it is nobody's (running.md R-02).

    Raises `UsageError` with code "runs-as-root" or "root-again" (root can be had back).
    """
    if refuse_root and 0 in (os.getuid(), os.geteuid()):
        raise UsageError(
            "this process must not run as root",
            code="runs-as-root",
            hint="start it as its own user, or let onrecord up start it in system mode",
        )
    os.umask(0o077)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if death_signal is not None:
        libc.prctl(_PR_SET_PDEATHSIG, death_signal, 0, 0, 0)
        if parent_pid is not None and os.getppid() != parent_pid:
            raise SystemExit(0)
    if refuse_root:
        try:
            os.setuid(0)
        except PermissionError:
            return
        raise UsageError("root privileges can be had back", code="root-again")


def spawn(
    argv: Sequence[str],
    *,
    principal: Principal | None = None,
    env: Mapping[str, str],
    stdin: _File = subprocess.DEVNULL,
    stdout: _File = None,
    stderr: _File = None,
    pass_fds: Sequence[int] = (),
    cwd: Path | None = None,
    new_group: bool = False,
) -> subprocess.Popen[bytes]:
    """Start a program, under another principal if one is given (supplementary groups, then gid, then uid).

    With `new_group` it leads a process group of its own, which can be ended as a whole. Under another principal it
    leads a session too: the terminal of who starts it, often root, cannot be typed into (TIOCSTI).

    Raises `ConfigurationError` with code "cannot-start".
    """
    identity: dict[str, Any] = {}
    if principal is not None:
        identity = {"user": principal.uid, "group": principal.gid, "extra_groups": list(principal.groups)}
    try:
        return subprocess.Popen(
            list(argv),
            env=dict(env),
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=tuple(pass_fds),
            cwd=cwd,
            close_fds=True,
            umask=0o077,
            process_group=0 if new_group and principal is None else None,
            start_new_session=new_group and principal is not None,
            **identity,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigurationError(
            f"cannot start {argv[0]} ({getattr(error, 'strerror', None) or error})",
            code="cannot-start",
            hint="name a program that this uid may run, with its whole path",
            where=Where(file=argv[0]),
        ) from error


def settle_memory() -> None:
    """Tell the collector that what was made at start stays, and that what comes rarely forms cycles.

    A full collection walks all modules and takes milliseconds, which a call in progress would have to wait for.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GC_ALLOCATIONS, 20, 50)


PROGRESS: Final = b"."
"""A sign of life on the descriptor that says "ready" in the end."""


def announce_ready(descriptor: int | None) -> bool:
    """Write "ready" to the descriptor that the starter waits on, and close it; says whether it is still read.

    A starter that was killed before our `harden` sends no death signal: who hears False here has to end by itself.
    """
    if descriptor is None:
        return True
    try:
        os.write(descriptor, b"ready\n")
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def announce_progress(descriptor: int | None) -> None:
    """Tell the starter, which waits for "ready" there, that the start goes on: it waits anew from here."""
    if descriptor is not None:
        with contextlib.suppress(OSError):
            os.write(descriptor, PROGRESS)

"""What is tried on another process and on capabilities, and how each attempt ended.

Every attempt is the real system call, made as the uid that asks. None stops, changes or ends anything: tracing begins
with PTRACE_SEIZE, which does not stop the process, and ends with the thread that did it; memory and environment are
opened and not read; the signal is number 0; a stolen descriptor is closed at once.

Source: call-proof.md 1.5, I2 and I3; ptrace(2), proc(5), pidfd_getfd(2), kill(2), capabilities(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Outcome = Literal["refused", "succeeded", "untried"]

_PTRACE_SEIZE: Final = 0x4206
_SYS_PIDFD_GETFD: Final = 438

SUDO_SECONDS: Final = 5.0
"""How long `sudo -n true` may take: it asks nobody, but may look for accounts in a network."""

CAPABILITIES: Final = {
    0: "CAP_CHOWN",
    1: "CAP_DAC_OVERRIDE",
    2: "CAP_DAC_READ_SEARCH",
    3: "CAP_FOWNER",
    5: "CAP_KILL",
    6: "CAP_SETGID",
    7: "CAP_SETUID",
    12: "CAP_NET_ADMIN",
    13: "CAP_NET_RAW",
    16: "CAP_SYS_MODULE",
    17: "CAP_SYS_RAWIO",
    18: "CAP_SYS_CHROOT",
    19: "CAP_SYS_PTRACE",
    21: "CAP_SYS_ADMIN",
    22: "CAP_SYS_BOOT",
    27: "CAP_MKNOD",
    31: "CAP_SETFCAP",
    38: "CAP_PERFMON",
    39: "CAP_BPF",
    40: "CAP_CHECKPOINT_RESTORE",
}
"""Each one by itself goes around the separation of uids, or around a firewall. The specification names four of them."""

_SUDO_PATHS: Final = ("/usr/bin/sudo", "/usr/local/bin/sudo", "/bin/sudo")

_TRACER_SECONDS: Final = 2.0
"""How long a thread that has ended may stay in /proc: the kernel detaches just before it leaves."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: what was tried, how it ended, and the kernel's word for it."""

    what: str
    outcome: Outcome
    reason: str

    @classmethod
    def ended(cls, what: str, number: int) -> Attempt:
        """Return the attempt that ended with an errno; 0 is a success. Only a refusal counts as one."""
        if number == 0:
            return cls(what, "succeeded", "done")
        refused = number in (errno.EPERM, errno.EACCES, errno.ENOSYS)
        return cls(what, "refused" if refused else "untried", errno.errorcode.get(number, str(number)))


def try_process(pid: int, pidfd: int) -> tuple[Attempt, ...]:
    """Try everything of I2 on one process; `pid` 0 is one that this pid namespace does not show.

    What needs the number is refused by the kernel then, since nothing has it.
    """
    attempts = [
        Attempt.ended("pidfd_getfd", _getfd(pidfd)),
        Attempt.ended("signal 0", _errno_of(lambda: signal.pidfd_send_signal(pidfd, 0))),
    ]
    if pid:
        attempts += [
            Attempt.ended("ptrace", _seize(pid)),
            _open(f"/proc/{pid}/mem", "memory"),
            _open(f"/proc/{pid}/environ", "environment"),
        ]
    return tuple(attempts)


def _errno_of(call: Callable[[], object]) -> int:
    try:
        call()
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _open(path: str, what: str) -> Attempt:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return Attempt(what, "refused", "hidden")  # hidepid: the process lives, its pidfd says so
    except OSError as error:
        return Attempt.ended(what, error.errno or errno.EIO)
    return Attempt(what, "succeeded", "done")


def _getfd(pidfd: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    stolen = libc.syscall(_SYS_PIDFD_GETFD, pidfd, 0, 0)
    if stolen >= 0:
        os.close(stolen)
        return 0
    number = ctypes.get_errno()
    # The permission is looked at before the descriptor: a missing one means that stealing was allowed.
    return 0 if number == errno.EBADF else number


def _seize(pid: int) -> int:
    """Begin to trace in a thread of its own: the kernel detaches when the tracer ends (ptrace(2)).

    Returns when that thread is really gone, which is a moment after it can be joined.
    """
    ended: list[int] = []
    tracer: list[int] = []

    def trace() -> None:
        tracer.append(threading.get_native_id())
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
        libc.ptrace.restype = ctypes.c_long
        ended.append(0 if libc.ptrace(_PTRACE_SEIZE, pid, None, None) == 0 else ctypes.get_errno())

    thread = threading.Thread(target=trace)
    thread.start()
    thread.join()
    end = time.monotonic() + _TRACER_SECONDS
    while os.path.exists(f"/proc/self/task/{tracer[0]}") and time.monotonic() < end:
        time.sleep(0.0005)
    return ended[0]


def held_capabilities(status: str) -> tuple[str, ...]:
    """Return the dangerous capabilities that a process holds or can raise; `status` is /proc/PID/status.

    Raises `ValueError` if the rows are not there.
    """
    sets = {"CapPrm": -1, "CapEff": -1}
    for row in status.splitlines():
        name, _, value = row.partition(":")
        if name in sets:
            sets[name] = int(value, 16)
    if min(sets.values()) < 0:
        raise ValueError("no capability sets")
    held = sets["CapPrm"] | sets["CapEff"]
    return tuple(name for bit, name in CAPABILITIES.items() if held >> bit & 1)


def try_sudo() -> Attempt:
    """Try `sudo -n true`, and look for commands that need no password: one for the server's account is enough.

    Asks for no password and leaves entries in the log of sudo.
    """
    program = shutil.which("sudo") or next((path for path in _SUDO_PATHS if os.access(path, os.X_OK)), None)
    if program is None:
        return Attempt("sudo", "refused", "there is no sudo")
    attempt, _ = _run_sudo(program, "true")
    if attempt.outcome != "refused":
        return attempt
    listed, text = _run_sudo(program, "-l")
    if listed.outcome == "untried":
        return listed
    if listed.outcome == "succeeded" and b"NOPASSWD" in text:
        return Attempt("sudo", "succeeded", "it lists commands without a password")
    return attempt


def _run_sudo(program: str, what: str) -> tuple[Attempt, bytes]:
    try:
        done = subprocess.run(
            [program, "-n", what],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=SUDO_SECONDS,
            check=False,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return Attempt("sudo", "untried", f"no answer within {SUDO_SECONDS:g} s"), b""
    except OSError as error:
        return Attempt.ended("sudo", error.errno or errno.EIO), b""
    outcome: Outcome = "refused" if done.returncode else "succeeded"
    return Attempt("sudo", outcome, f"status {done.returncode}"), done.stdout

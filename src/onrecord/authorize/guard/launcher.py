"""Becomes the real tool server: asks the kernel for SIGKILL when the guard ends, then executes the program.

Run as a script of its own (`python -I -S launcher.py PARENT_PID COMMAND ARG…`), so that nothing runs between fork
and exec of the guard itself. It needs nothing of onrecord.

Source: running.md 1.1 (kill -9 of a guard).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38


def launch(parent_pid: int, command: list[str]) -> None:
    """Replace this process by `command`, which ends with `parent_pid`. Exits with 127 if it cannot be executed."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if os.getppid() != parent_pid:
        os._exit(1)
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        os.execvpe(command[0], command, os.environ)  # noqa: S606 - becoming the configured program is the purpose
    except OSError as error:
        os.write(2, f"cannot execute the server: {error.strerror}\n".encode())
        os._exit(127)


if __name__ == "__main__":
    launch(int(sys.argv[1]), sys.argv[2:])

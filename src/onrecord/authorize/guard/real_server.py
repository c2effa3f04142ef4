"""The real tool server as a child: own process group, pipes, an end that takes the whole group along.

Source: call-proof.md 1.4; running.md 1.1, 5.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from onrecord.authorize.guard import launcher
from onrecord.base.errors import ConfigurationError
from onrecord.base.processes import spawn

END_GRACE_SECONDS: Final = 2.0
"""After end of input, and again after SIGTERM, a server has this long before its group is killed."""

_LAUNCHER: Final = Path(launcher.__file__)


class RealServer:
    """A running server. Use `start`; `on_exit` is called once when its first process has ended."""

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[int | None], None]) -> None:
        self._process = process
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._timers: list[asyncio.TimerHandle] = []
        self._ending = False
        self.ended = asyncio.Event()
        self._pidfd = os.pidfd_open(process.pid)
        self._loop.add_reader(self._pidfd, self._exited)

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        on_exit: Callable[[int | None], None],
    ) -> RealServer:
        """Start the program through the launcher, which makes it die with this process.

        Raises `ConfigurationError` with code "cannot-start".
        """
        if not cwd.is_dir():
            raise ConfigurationError(
                f"the working directory {cwd} of the server is missing", code="cannot-start"
            )
        argv = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), *command]
        process = spawn(
            argv,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=cwd,
            new_group=True,
        )
        return cls(process, on_exit)

    @property
    def pid(self) -> int:
        """Process id, which is the process group too."""
        return self._process.pid

    @property
    def stdin(self) -> IO[bytes]:
        """The write end of its input; the caller takes it over."""
        return _pipe(self._process.stdin)

    @property
    def stdout(self) -> IO[bytes]:
        """The read end of its output; the caller takes it over."""
        return _pipe(self._process.stdout)

    @property
    def stderr(self) -> IO[bytes]:
        """The read end of its errors; the caller takes it over."""
        return _pipe(self._process.stderr)

    def end(self, *, at_once: bool = False, grace_seconds: float = END_GRACE_SECONDS) -> None:
        """End the whole group: SIGTERM after the grace, SIGKILL after one more. Its input must be closed already."""
        if self.ended.is_set():
            return
        if at_once:
            self._signal(signal.SIGKILL)
        elif not self._ending:
            self._timers.append(self._loop.call_later(grace_seconds, self._signal, signal.SIGTERM))
            self._timers.append(self._loop.call_later(2 * grace_seconds, self._signal, signal.SIGKILL))
        self._ending = True

    def _signal(self, number: signal.Signals) -> None:
        # The first process is not reaped before its group has been killed, so the group id cannot name another one.
        if not self.ended.is_set():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._signal(signal.SIGKILL)
        for timer in self._timers:
            timer.cancel()
        status = self._process.wait()
        self.ended.set()
        self._on_exit(status)


def _pipe(stream: IO[Any] | None) -> IO[bytes]:
    assert stream is not None
    return stream

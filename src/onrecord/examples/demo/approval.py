"""The driver's end of the approver: a process under a uid of its own that looks for a waiting call and decides.

On a terminal a person is asked; otherwise the process says yes by itself. Either way the decision goes through the
approval socket, which knows the approver by the uid of that process.

Source: running.md 10.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import IO, Any, Final

from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError
from onrecord.base.processes import Principal, spawn
from onrecord.examples.demo.outcomes import Outcome

START_SECONDS: Final = 20
VERDICT_SECONDS: Final = 5
"""Once the call has ended, the approver has nothing left to wait for."""

ASKED_SECONDS: Final = 285
UNASKED_SECONDS: Final = 40
"""How long the call may wait. The connector ends a wait for a person after 280 seconds (running.md 6)."""


class Approving(Enum):
    """Who answers when a call needs an approval."""

    YES = "yes"
    TERMINAL = "terminal"

    @property
    def call_seconds(self) -> int:
        """Return how long the agent host may wait for its call."""
        return ASKED_SECONDS if self is Approving.TERMINAL else UNASKED_SECONDS


class Approver:
    """A running approver."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    def start(
        cls,
        configuration: Configuration,
        *,
        principal: Principal | None,
        approving: Approving,
        log: IO[bytes],
    ) -> Approver:
        """Start the approver as `principal`; it has reached the approval socket when this returns.

        With `Approving.TERMINAL` it asks on our standard error and reads the answer from our standard input.

        Raises `OnrecordError` with code "approver".
        """
        asks = approving is Approving.TERMINAL
        argv = [sys.executable, "-m", "onrecord.examples.demo.approver", "--config", str(configuration.file)]
        argv += ["--seconds", str(approving.call_seconds), *(["--ask"] if asks else [])]
        names = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH")
        process = spawn(
            argv,
            principal=principal,
            env={"HOME": "/nonexistent"} | {name: os.environ[name] for name in names if name in os.environ},
            stdin=None if asks else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=None if asks else log,
            cwd=Path("/"),
        )
        approver = cls(process)
        try:
            approver._line(START_SECONDS)
        except BaseException:
            approver.end()
            raise
        return approver

    def verdict(self) -> Outcome:
        """Return what was decided, after the call has ended.

        Raises `OnrecordError` with code "approver" when nothing was.
        """
        return Outcome.from_json(self._line(VERDICT_SECONDS))

    def end(self) -> None:
        """End the process if it still runs."""
        assert self._process.stdout is not None
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def _line(self, seconds: int) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            raise OnrecordError("the approver has decided nothing", code="approver")
        answer: dict[str, Any] = json.loads(line)
        if "fault" in answer:
            raise OnrecordError(f"the approver could not decide ({answer['fault']})", code="approver")
        return answer

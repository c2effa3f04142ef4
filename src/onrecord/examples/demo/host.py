"""The driver's end of the agent host: starts the process, hands it steps, ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import IO, Any, Final

from onrecord.base.errors import OnrecordError
from onrecord.base.processes import Principal, spawn
from onrecord.examples.demo.outcomes import Outcome

STEP_SECONDS: Final = 60
"""Far beyond what a step takes; a host that hangs must not hold the demonstration for ever."""

END_SECONDS: Final = 20
"""The SDK gives each of its connections two seconds to end by itself."""


class AgentHost:
    """A running agent host. Nothing but step names goes in, nothing but outcomes comes out."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @classmethod
    def start(
        cls, configuration_file: Path, *, principal: Principal | None, home: Path, log: IO[bytes]
    ) -> AgentHost:
        """Start the host as `principal`; it logs to `log`."""
        argv = [sys.executable, "-m", "onrecord.examples.demo.agent", "--config", str(configuration_file)]
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ}
        process = spawn(
            argv,
            principal=principal,
            env={"HOME": str(home), **kept},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=Path("/"),
        )
        return cls(process)

    @property
    def pid(self) -> int:
        """Process id of the host, which stands in the label of its record session."""
        return self._process.pid

    def step(self, name: str, *, seconds: float | None = None) -> tuple[Outcome, ...]:
        """Have one step done; `seconds` is how long its call may wait for a person.

        Raises `OnrecordError` with code "agent-host" when the host is gone or could not do it.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"name": name, "seconds": seconds}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise OnrecordError("the agent host has ended", code="agent-host") from None
        bound = STEP_SECONDS + (seconds or 0)
        ready, _, _ = select.select([self._process.stdout], [], [], bound)
        if not ready:
            raise OnrecordError(f"the agent host said nothing for {bound:g} s", code="agent-host")
        line = self._process.stdout.readline()
        if not line:
            raise OnrecordError("the agent host has ended", code="agent-host")
        answer: dict[str, Any] = json.loads(line)
        if "fault" in answer:
            raise OnrecordError(f"the agent host could not do it ({answer['fault']})", code="agent-host")
        return tuple(Outcome.from_json(outcome) for outcome in answer["outcomes"])

    def end(self) -> None:
        """Close the host's input and wait until it is gone; kill it if it does not go."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

"""The approver of the demonstration: a process of its own that waits for a call that needs a person, and decides.

With --ask it shows what the authority says about the call and asks on the terminal; without it, it says yes. It
writes one JSON line when it has reached the approval socket and one with its decision.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from onrecord.authorize.approver import ApproverClient, PendingApproval
from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError
from onrecord.examples.demo.outcomes import Outcome

PAUSE_SECONDS: Final = 0.1
INDENT: Final = " " * 11


class _NobodyError(Exception):
    """No call came, or no answer."""


def _wait_for_call(client: ApproverClient, *, end: float) -> PendingApproval:
    while time.monotonic() < end:
        if waiting := client.pending():
            return waiting[0]
        time.sleep(PAUSE_SECONDS)
    raise _NobodyError("no call came")


def _ask(approval: PendingApproval, *, end: float) -> bool:
    """Show the call and return the answer; what was typed before the question does not count."""
    head = f"{approval.caller} wants to do this. You are the approver (uid {os.getuid()})."
    lines = ["", head, "", *(f"  {line}" for line in approval.summary), ""]
    _print("".join(f"{INDENT}{line}".rstrip() + "\n" for line in lines))
    descriptor = sys.stdin.fileno()
    if os.isatty(descriptor):
        termios.tcflush(descriptor, termios.TCIFLUSH)
    while True:
        _print(f"{INDENT}Approve? [y/n] ")
        ready, _, _ = select.select([descriptor], [], [], max(end - time.monotonic(), 0))
        if not ready:
            _print(f"\n{INDENT}No answer in time.\n\n")
            raise _NobodyError("nobody answered")
        answer = sys.stdin.readline()
        word = answer.strip().lower()
        if not answer or word in ("y", "yes", "n", "no"):
            _print("\n")
            return word in ("y", "yes")


def _decide(client: ApproverClient, *, seconds: int, asks: bool) -> Outcome:
    end = time.monotonic() + seconds
    approval = _wait_for_call(client, end=end)
    approves = _ask(approval, end=end) if asks else True
    state = (client.approve(approval.id) if approves else client.reject(approval.id)).state
    if state != ("granted" if approves else "rejected"):
        raise _NobodyError(f"the approval is {state}")
    return Outcome("approved" if approves else "rejected", reason=f"uid {os.getuid()}")


def _print(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _say(line: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Wait for one call and decide on it."""
    parser = argparse.ArgumentParser(prog="onrecord.examples.demo.approver")
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--ask", action="store_true")
    options = parser.parse_args()
    configuration = Configuration.load(options.config)
    try:
        with ApproverClient.connect(configuration) as client:
            _say({"ready": True})
            _say(_decide(client, seconds=options.seconds, asks=options.ask).to_json())
    except KeyboardInterrupt:
        sys.exit(130)  # the demonstration gets the same signal and says the rest
    except (OnrecordError, _NobodyError) as error:
        _say({"fault": str(error)})


if __name__ == "__main__":
    main()

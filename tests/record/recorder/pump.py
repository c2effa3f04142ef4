# ruff: noqa: T201
"""Stands for authority and guard in crash tests: sends until everything is acknowledged, whatever happens between.

    python pump.py SOCKET RECORDER_UID CALLS

Prints a line for each acknowledgement. With 0 calls it is an authority that stays connected and has nothing to say.
Run as a program of its own, under the recorder's uid.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from onrecord.base.dates import SYSTEM_CLOCK, format_ms
from onrecord.base.errors import NetworkError
from onrecord.base.hashes import b64url
from onrecord.base.rpc_client import BlockingRpcClient
from onrecord.base.sockets import process_label
from onrecord.base.wire import RpcError

LIMIT_SECONDS = 90


def stamped(n, kind, **more):
    return {
        "n": n,
        "kind": kind,
        "time": format_ms(SYSTEM_CLOCK.now_ns()),
        "mono_ns": SYSTEM_CLOCK.boottime_ns(),
        **more,
    }


def digest(number):
    return b64url(number.to_bytes(32, "big"))


def entries(calls, label):
    authority, guard = [], [stamped(1, "connection", connection="1", state="open")]
    session = {"uid": os.getuid(), "label": label}
    for call in range(1, calls + 1):
        operation = f"0193a1d0-4c00-7a10-8000-{call:012d}"
        common = {
            "server": "filesystem",
            "tool": "read_file",
            "actionDigest": digest(call),
            "proofRef": digest(call),
        }
        authority.append(
            stamped(
                call,
                "decision",
                session=session | {"caller": "agent"},
                decision="allowed",
                operationId=operation,
                **common,
            )
        )
        guard.append(
            stamped(
                2 * call,
                "invocation",
                connection="1",
                call=f"1.{call}",
                session=session,
                operationId=f"guard-{call}",
                admitted=True,
                arguments={"path": f"file-{call}"},
                **common,
            )
        )
        content = {"content": [{"type": "text", "text": f"text-{call}"}], "isError": False}
        guard.append(stamped(2 * call + 1, "result", connection="1", call=f"1.{call}", content=content))
    guard.append(stamped(2 * calls + 2, "connection", connection="1", state="close"))
    return {"a-1": authority, "g-1": guard}


def main():
    path, uid, calls = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    if calls == 0:
        with BlockingRpcClient(path, expected_uid=uid) as client:
            client.call("record/hello", {"versions": ["1"], "source": "a-1"}, timeout_ms=5000)
            print("DONE", flush=True)
            sys.stdin.readline()
        return
    todo = entries(calls, process_label(os.getpid()))
    end = time.monotonic() + LIMIT_SECONDS
    acknowledged = dict.fromkeys(todo, 0)
    while time.monotonic() < end:
        try:
            for source, batch in todo.items():
                with BlockingRpcClient(path, expected_uid=uid) as client:
                    params = {"versions": ["1"], "source": source}
                    params |= {"server": "filesystem"} if source == "g-1" else {}
                    through = client.call("record/hello", params, timeout_ms=5000)["through"]
                    if through < acknowledged[source]:
                        print("LOST", source, acknowledged[source], through, flush=True)
                        raise SystemExit(1)
                    while through < len(batch):
                        part = batch[through : through + 3]
                        answer = client.call("record/append", {"entries": part}, timeout_ms=5000)
                        through = acknowledged[source] = answer["through"]
                        print("ACK", source, through, flush=True)
            print("DONE", flush=True)
            sys.stdin.readline()
            return
        except (NetworkError, RpcError):
            time.sleep(0.02)


if __name__ == "__main__":
    main()

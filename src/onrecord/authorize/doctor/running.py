"""Checks of what is running now: sockets, who serves them, what the authority says of itself.

Source: call-proof.md 4.1, 5.1; running.md 2.
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from onrecord.authorize.doctor.results import Check
from onrecord.base.errors import NetworkError, OnrecordError
from onrecord.base.rpc_client import BlockingRpcClient
from onrecord.base.sockets import connect_unix

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration


def check_sockets(configuration: Configuration) -> Iterator[Check]:
    """Say of every socket whether the right uid serves it."""
    start = f"onrecord up --config {shlex.quote(str(configuration.file))}"
    silent = []
    for name, path, owner in _sockets(configuration):
        try:
            uid = owner()
            status = os.lstat(path)
        except FileNotFoundError:
            silent.append(name)
            continue
        except PermissionError:
            yield Check("sockets", "ok", f"uid {os.geteuid()} cannot see the socket of {name}")
            continue
        except OSError as error:
            yield Check("sockets", "failed", f"{path} cannot be looked at ({error.strerror})")
            continue
        except OnrecordError as error:
            yield Check.failed("sockets", error)
            continue
        if not stat.S_ISSOCK(status.st_mode):
            yield Check("sockets", "failed", f"{path} is not a socket", "remove what stands there")
            continue
        if status.st_uid != uid:
            yield Check(
                "sockets", "failed", f"{path} belongs to uid {status.st_uid}, expected {uid}", "remove it"
            )
            continue
        yield _served(name, path, uid, start)
    if silent:
        yield Check("sockets", "warning", f"not running: {', '.join(silent)}", start)


def _sockets(configuration: Configuration) -> Iterator[tuple[str, Path, Callable[[], int]]]:
    yield "the authority", configuration.agent_socket(), lambda: configuration.authority_uid
    yield "control", configuration.control_socket(), lambda: configuration.authority_uid
    yield "the recorder", configuration.record_socket(), lambda: configuration.recorder_uid
    for server in configuration.servers:
        if configuration.mode == "system":
            uid = partial(configuration.server_uid, server)
            yield f"the guard of {server}", configuration.mcp_socket(server), uid
        else:
            path = configuration.server_socket(server)
            yield f"the authority for {server}", path, lambda: configuration.authority_uid


def _served(name: str, path: Path, uid: int, start: str) -> Check:
    try:
        connect_unix(path, expected_uid=uid, timeout_seconds=1).close()
    except NetworkError as error:
        if isinstance(error.__cause__, PermissionError):
            return Check("sockets", "ok", f"uid {os.geteuid()} may not connect to {name}")
        if error.code == "peer-uid":
            return Check.failed("sockets", error)
        return Check("sockets", "warning", f"{name} is not running: nothing answers at {path}", start)
    return Check("sockets", "ok", f"{name} is served by uid {uid}")


def check_authority(configuration: Configuration) -> Iterator[Check]:
    """Ask the authority for its status, where this uid may; a silent one was reported by `check_sockets`."""
    try:
        client = BlockingRpcClient(configuration.agent_socket(), expected_uid=configuration.authority_uid)
    except OnrecordError:
        return
    try:
        status = client.call("callProof/hello", {"versions": ["1"]}, timeout_ms=1000).get("status")
    except OnrecordError as error:
        if os.geteuid() == 0:
            yield Check("authority", "ok", "root has no role, so its status was not asked")
        else:
            yield Check(
                "authority", "warning", f"it does not say its status ({error.code})", error.hint or ""
            )
        return
    finally:
        client.close()
    if status == "ok":
        yield Check("authority", "ok", "it says ok")
    elif status == "degraded":
        yield Check("authority", "warning", "it says degraded", "see isolation above and the recorder")
    else:
        yield Check(
            "authority", "failed", "it is not ready: no policy, key or journal", "see policy and keys above"
        )

"""Connections of commands to authority and recorder, with errors that say what to do next.

Source: running.md 1.2, 2.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from onrecord.base.configuration import Configuration
from onrecord.base.errors import NetworkError, Where
from onrecord.base.rpc_client import BlockingRpcClient
from onrecord.base.wire import LINE_BYTES

Group = Literal["approval_group", "control_group", "record_group"]
"""The member of `principals` that opens a socket in system mode."""


def connect_to_authority(configuration: Configuration, path: Path, *, group: Group) -> BlockingRpcClient:
    """Return a connection to a socket of the authority that members of `group` may use.

    Raises `NetworkError` with code "peer-uid" or "authority-unreachable".
    """
    return _connect(
        configuration,
        path,
        daemon="authority",
        uid=configuration.authority_uid,
        group=group,
        timeout_ms=configuration.limits.hello_timeout_ms,
    )


def connect_to_recorder(
    configuration: Configuration, *, timeout_ms: int, max_line_bytes: int
) -> BlockingRpcClient:
    """Return a connection to the recorder.

    Raises `NetworkError` with code "peer-uid" or "recorder-unreachable".
    """
    return _connect(
        configuration,
        configuration.record_socket(),
        daemon="recorder",
        uid=configuration.recorder_uid,
        group="record_group",
        timeout_ms=timeout_ms,
        max_line_bytes=max_line_bytes,
    )


def _connect(
    configuration: Configuration,
    path: Path,
    *,
    daemon: Literal["authority", "recorder"],
    uid: int,
    group: Group,
    timeout_ms: int,
    max_line_bytes: int = LINE_BYTES,
) -> BlockingRpcClient:
    try:
        return BlockingRpcClient(path, expected_uid=uid, timeout_ms=timeout_ms, max_line_bytes=max_line_bytes)
    except NetworkError as error:
        if error.code == "peer-uid":
            raise
        message, hint = _why_unreachable(configuration, error, daemon=daemon, group=group)
        where = Where(str(path))
        if daemon == "authority":
            raise NetworkError(message, code="authority-unreachable", hint=hint, where=where) from error
        raise NetworkError(message, code="recorder-unreachable", hint=hint, where=where) from error


def _why_unreachable(
    configuration: Configuration, error: NetworkError, *, daemon: str, group: Group
) -> tuple[str, str]:
    """Return what is wrong with a socket, and what to do."""
    cause, principals = error.__cause__, configuration.principals
    if isinstance(cause, PermissionError):
        message = f"this uid may not use the {group.removesuffix('_group')} socket"
        if principals is None:
            return message, "run it as the user who runs `onrecord up`"
        hint = f"only members of the group {getattr(principals, group)} (principals.{group}) may connect; "
        return message, f"{hint}log in again after you have joined it"
    if isinstance(cause, FileNotFoundError | ConnectionRefusedError):
        return "`onrecord up` is not running", "start it with onrecord up"
    return f"the {daemon} does not answer: {error}", "look at `onrecord up` and its log"

"""Connections of commands to authority and recorder: each failure says what is wrong and what to do next."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from onrecord.base import daemon_clients
from onrecord.base.daemon_clients import connect_to_authority, connect_to_recorder
from onrecord.base.errors import NetworkError

GROUPS = {
    "approval_group": "approvers-here",
    "control_group": "operators-here",
    "record_group": "readers-here",
}


def configuration(*, is_system):
    return SimpleNamespace(
        principals=SimpleNamespace(**GROUPS) if is_system else None,
        authority_uid=1,
        recorder_uid=2,
        limits=SimpleNamespace(hello_timeout_ms=100),
        record_socket=lambda: Path("/nowhere/record.sock"),
    )


def failure(monkeypatch, cause, *, group, is_system, code="unreachable"):
    def refuse(*_args, **_options):
        raise NetworkError("nothing answers", code=code) from cause

    monkeypatch.setattr(daemon_clients, "BlockingRpcClient", refuse)
    config = configuration(is_system=is_system)
    if group == "record_group":
        connect = partial(connect_to_recorder, config, timeout_ms=100, max_line_bytes=1000)
    else:
        connect = partial(connect_to_authority, config, Path("/nowhere/it.sock"), group=group)
    with pytest.raises(NetworkError) as e:
        connect()
    return e.value


@pytest.mark.parametrize("group", GROUPS)
class TestFailures:
    def test_not_allowed(self, monkeypatch, group):
        """In system mode the configured group is named, and the key that names it."""
        error = failure(monkeypatch, PermissionError(13, "no"), group=group, is_system=True)
        assert GROUPS[group] in error.hint
        assert f"principals.{group}" in error.hint

    def test_another_user(self, monkeypatch, group):
        """In user mode there are no groups: the socket belongs to the user who runs it."""
        error = failure(monkeypatch, PermissionError(13, "no"), group=group, is_system=False)
        assert error.hint == "run it as the user who runs `onrecord up`"

    @pytest.mark.parametrize("cause", [FileNotFoundError(2, "no"), ConnectionRefusedError(111, "no")])
    def test_not_running(self, monkeypatch, group, cause):
        """Where nobody listens, nothing runs; the code tells which of the two daemons it is."""
        error = failure(monkeypatch, cause, group=group, is_system=True)
        daemon = "recorder" if group == "record_group" else "authority"
        assert (error.code, error.exit_code) == (f"{daemon}-unreachable", 3)
        assert "`onrecord up` is not running" in str(error)

    def test_somebody_else_listens(self, monkeypatch, group):
        """A socket that another uid serves is told as that, never as a daemon that is away."""
        error = failure(monkeypatch, None, group=group, is_system=True, code="peer-uid")
        assert error.code == "peer-uid"

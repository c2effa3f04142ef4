"""The processes of the other side: who serves the sockets, and what else runs under those uids or the recorder's.

The tool server's guard starts a real server for each connection, so the connection is held until its processes have
been looked at: it is the real server that has the secrets in its environment.

Source: call-proof.md 1.4, 1.5, 4.3.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import socket
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.authorize.guard import launcher
from onrecord.base.errors import NetworkError
from onrecord.base.sockets import connect_unix, has_exited, open_peer_pidfd, peer_credentials

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration

MAX_PROCESSES: Final = 256
"""Processes tried; with more under the uids of two roles the answer is that not all was tried."""

REAL_SERVER_SECONDS: Final = 10.0
"""How long the guard may take to start a real server for us."""

_STEP_SECONDS: Final = 0.02

_LAUNCHER: Final = launcher.__file__
"""What the guard starts becomes the real server a moment later."""

_IDENTITY: Final = re.compile(rb"^(PPid|Uid|Gid|Groups):([\t 0-9]*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Peer:
    """Who serves a socket, by the kernel's word. `pid` is 0 where this pid namespace does not show the process."""

    name: str
    path: Path
    uid: int
    expected_uid: int
    pid: int
    pidfd: int


@dataclass(frozen=True, slots=True)
class Process:
    """One process with its descriptor, which keeps the number from naming another one, and its rows of identity."""

    pid: int
    pidfd: int
    parent_pid: int
    uids: frozenset[int]
    gids: frozenset[int]
    command: tuple[str, ...] = ()
    """What it was started with: the kernel shows this to everybody, unlike /proc/PID/exe."""


@dataclass(frozen=True, slots=True)
class Peers:
    """All that was found. `served` has the authority and, in system mode, the server."""

    served: tuple[Peer, ...]
    processes: tuple[Process, ...]
    silent: tuple[tuple[str, str], ...]
    real_server: bool | None
    """Whether the real server is among the processes; None where it cannot be seen (user mode, hidden processes)."""
    recorder_uid: int = -1
    are_all: bool = True
    """Whether no process was left out because there are too many."""

    @property
    def groups(self) -> frozenset[int]:
        """Every group that one of the processes has."""
        return frozenset(gid for process in self.processes for gid in process.gids)

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The command lines of who serves the sockets, of what these have started, and of the recorder."""
        parts = {peer.pid for peer in self.served}
        ours = (
            one
            for one in self.processes
            if {one.pid, one.parent_pid} & parts or self.recorder_uid in one.uids
        )
        return tuple(dict.fromkeys(one.command for one in ours if one.command))


@contextlib.contextmanager
def visit(configuration: Configuration, server: str) -> Iterator[Peers]:
    """Connect to authority and server, and give what runs there for as long as the block lasts; nothing is sent."""
    earlier = frozenset(_pids())
    with contextlib.ExitStack() as stack:
        served, silent, connections = [], [], {}
        for name, path, uid in _sockets(configuration, server):
            try:
                sock = stack.enter_context(connect_unix(path, expected_uid=None, timeout_seconds=1))
                pidfd = open_peer_pidfd(sock)
                credentials = peer_credentials(sock)
                if pidfd is None:  # Linux before 6.5: the socket was connected just now, so its server lives
                    pidfd = os.pidfd_open(credentials.pid)
            except NetworkError as error:
                silent.append((name, error.code))
                continue
            except OSError as error:
                silent.append((name, error.strerror or "no process"))
                continue
            stack.callback(os.close, pidfd)
            connections[name] = sock
            served.append(Peer(name, path, credentials.uid, uid, credentials.pid, pidfd))
        uids = {configuration.recorder_uid, *(peer.uid for peer in served)}
        shared = bool(uids & own_uids())
        seen: dict[int, Process] = {}
        stack.callback(_close, seen)
        _look(seen, uids=() if shared else uids, pids=[peer.pid for peer in served])
        real_server = None
        guard = next((peer for peer in served if peer.name == "server"), None)
        if guard is not None and not shared and guard.pid in seen:
            real_server = _await_real_server(seen, guard, connections["server"], uids=uids, earlier=earlier)
        yield Peers(
            tuple(served),
            tuple(replace(one, command=_command(one.pid)) for one in seen.values()),
            tuple(silent),
            real_server,
            recorder_uid=configuration.recorder_uid,
            are_all=len(seen) < MAX_PROCESSES,
        )


def own_uids() -> frozenset[int]:
    """Return the real, effective and saved uid of this process."""
    return frozenset(os.getresuid())


def _sockets(configuration: Configuration, server: str) -> Iterator[tuple[str, Path, int]]:
    yield "authority", configuration.agent_socket(), configuration.authority_uid
    if configuration.mode == "system":
        yield "server", configuration.mcp_socket(server), configuration.server_uid(server)


def _await_real_server(
    seen: dict[int, Process],
    guard: Peer,
    sock: socket.socket,
    *,
    uids: Collection[int],
    earlier: Collection[int],
) -> bool:
    """Wait until the guard has started a process for us; False if it hangs up before.

    One of the `earlier` numbers was started for somebody else, and may be ending.
    """
    end = time.monotonic() + REAL_SERVER_SECONDS
    while not any(
        one.parent_pid == guard.pid and one.pid not in earlier and _LAUNCHER not in _command(one.pid)
        for one in seen.values()
    ):
        if time.monotonic() > end or _is_closed(sock):
            return False  # closed: this uid is no caller, or the server cannot be started
        select.select([], [], [], _STEP_SECONDS)
        _look(seen, uids=uids, pids=())
    return True


def _is_closed(sock: socket.socket) -> bool:
    """Say whether the other side has hung up; what it may have sent is left alone."""
    sock.setblocking(False)
    try:
        return not sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _look(seen: dict[int, Process], *, uids: Collection[int], pids: Collection[int]) -> None:
    """Add every process that has one of the uids, or one of the numbers."""
    for pid in _pids():
        if len(seen) >= MAX_PROCESSES:
            return
        if pid in seen or pid == os.getpid() or (not uids and pid not in pids):
            continue
        with contextlib.suppress(OSError, ValueError):
            pidfd = os.pidfd_open(pid)
            try:
                parent_pid, users, groups = identity(Path(f"/proc/{pid}/status").read_bytes())
                if (users & set(uids) or pid in pids) and not has_exited(pidfd):
                    seen[pid] = Process(pid, pidfd, parent_pid, users, groups)
            finally:
                if pid not in seen:
                    os.close(pidfd)


def _pids() -> Iterator[int]:
    """Yield the number of every process that can be seen."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _command(pid: int) -> tuple[str, ...]:
    """Return the words that a process was started with, or none where they cannot be seen."""
    try:
        return tuple(
            os.fsdecode(one) for one in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0") if one
        )
    except OSError:
        return ()


def identity(status: bytes) -> tuple[int, frozenset[int], frozenset[int]]:
    """Return the parent, all uids and all groups in the text of /proc/PID/status (proc_pid_status(5)).

    Raises `ValueError` if the rows are not there.
    """
    rows = {name: [int(one) for one in value.split()] for name, value in _IDENTITY.findall(status)}
    if not {b"PPid", b"Uid", b"Gid"} <= rows.keys() or not rows[b"PPid"]:
        raise ValueError("no parent, uid or gid")
    return rows[b"PPid"][0], frozenset(rows[b"Uid"]), frozenset(rows[b"Gid"] + rows.get(b"Groups", []))


def _close(seen: dict[int, Process]) -> None:
    for process in seen.values():
        os.close(process.pidfd)

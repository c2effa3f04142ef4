"""Who is at the other end of a connection, and what role that gives.

The answer comes from the kernel's word on the peer and, in system mode, the signed bundle; in user mode from the
socket that was used. No member of a request takes part.

Source: call-proof.md 4.3, 4.4; running.md 2.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onrecord.base.sockets import has_exited, process_label

if TYPE_CHECKING:
    from onrecord.authorize.policy import Bundle
    from onrecord.base.rpc_server import RpcConnection
    from onrecord.base.sockets import Peer

NOBODY_UIDS: Final = frozenset({0, 65534})
"""uid 0 is nobody's; 65534 is how a user of an unmapped namespace appears (call-proof.md 4.3)."""

MAX_HINT_CHARACTERS: Final = 256
"""Characters kept of the exe path and the cgroup of a peer: they are hints for the log."""


class Role(Enum):
    """What a connection may be used for."""

    NOBODY = "nobody"
    AGENT = "agent"
    TOOL_SERVER = "toolServer"
    APPROVER = "approver"
    OPERATOR = "operator"


class DoorKind(Enum):
    """Which socket a connection came in by."""

    CALL = "call"
    """authority.sock of system mode: agents and tool servers, told apart by uid."""
    AGENT = "agent"
    """agent.sock of user mode."""
    SERVER = "server"
    """server-ID.sock of user mode."""
    APPROVAL = "approval"
    CONTROL = "control"


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One listening socket. `server` is set for server-ID.sock alone."""

    kind: DoorKind
    server: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The role of a peer.

    `caller` for agents, `servers` for tool servers, `approver` for approvers, `roles` for operators.
    """

    role: Role
    uid: int
    caller: str | None = None
    servers: frozenset[str] = frozenset()
    approver: str | None = None
    roles: frozenset[str] = frozenset()
    is_known: bool = True
    """Whether the peer has any role anywhere; False gives `unknown_caller` to every request."""


def identify(
    uid: int, *, door: Door, bundle: Bundle | None, is_user_mode: bool, own_uid: int
) -> Identity | None:
    """Return who a peer is, or None while no policy says so.

    In user mode the peer was already compared with the own uid, and the socket gives the role; in system mode the
    bundle maps the uid. uid 0 and 65534 are nobody in both.
    """
    nobody = Identity(role=Role.NOBODY, uid=uid, is_known=False)
    if uid in NOBODY_UIDS:
        return nobody
    if is_user_mode:
        return _by_socket(uid, door=door, bundle=bundle) if uid == own_uid else nobody
    if bundle is None:
        return None
    roles, approver = bundle.control_roles_of(uid), bundle.approver_by_uid(uid)
    if door.kind is DoorKind.CONTROL and roles:
        return Identity(role=Role.OPERATOR, uid=uid, roles=frozenset(roles))
    if door.kind is DoorKind.APPROVAL and approver is not None:
        return Identity(role=Role.APPROVER, uid=uid, approver=approver.id)
    if door.kind in (DoorKind.CONTROL, DoorKind.APPROVAL):
        known = bool(roles) or any(
            one is not None for one in (approver, bundle.caller_by_uid(uid), bundle.server_by_uid(uid))
        )
        return Identity(role=Role.NOBODY, uid=uid, is_known=known)
    caller = bundle.caller_by_uid(uid)
    if caller is not None:
        return Identity(role=Role.AGENT, uid=uid, caller=caller.id)
    servers = frozenset(server.id for server in bundle.servers.values() if server.uid == uid)
    if servers:
        return Identity(role=Role.TOOL_SERVER, uid=uid, servers=servers)
    return Identity(role=Role.NOBODY, uid=uid, is_known=bool(roles) or approver is not None)


def _by_socket(uid: int, *, door: Door, bundle: Bundle | None) -> Identity | None:
    if door.kind is DoorKind.SERVER:
        return Identity(role=Role.TOOL_SERVER, uid=uid, servers=frozenset({str(door.server)}))
    if bundle is None or bundle.user_mode is None:
        return None
    if door.kind is DoorKind.AGENT:
        return Identity(role=Role.AGENT, uid=uid, caller=bundle.user_mode.caller)
    if door.kind is DoorKind.APPROVAL:
        return Identity(role=Role.APPROVER, uid=uid, approver=bundle.user_mode.approver)
    return Identity(role=Role.OPERATOR, uid=uid, roles=frozenset(bundle.user_mode.control_roles))


class Visitor:
    """One open connection: its peer, its door, and who that is under the policy in force."""

    __slots__ = ("door", "identity", "identity_version", "label", "peer", "platform")

    def __init__(self, *, peer: Peer, door: Door, label: str, platform: dict[str, Any]) -> None:
        self.peer = peer
        self.door = door
        self.label = label
        """Default record-session label: the peer process (running.md R-06)."""
        self.platform = platform
        """Member `platform` of journal records (call-proof.md 10.1)."""
        self.identity: Identity | None = None
        self.identity_version: int | None = None

    @classmethod
    def of(cls, connection: RpcConnection, *, door: Door) -> Visitor:
        """Look at the peer of a new connection. exe and cgroup are hints and count only while its pidfd is alive."""
        peer = connection.peer
        platform: dict[str, Any] = {"uid": peer.uid, "pid": peer.pid}
        hints = {"exe": _exe(peer.pid), "cgroup": _cgroup(peer.pid)}
        label = process_label(peer.pid)
        if connection.pidfd is None or not has_exited(connection.pidfd):
            platform |= {name: text[:MAX_HINT_CHARACTERS] for name, text in hints.items() if text}
        return cls(peer=peer, door=door, label=label, platform=platform)


def _exe(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/exe").encode("utf-8", "replace").decode("utf-8")
    except OSError:
        return None


def _cgroup(pid: int) -> str | None:
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return next((line[3:] for line in text.splitlines() if line.startswith("0::")), None)

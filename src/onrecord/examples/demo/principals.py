"""Who is who in the demonstration: five principals without accounts, or one user.

Started as root, each part gets a uid of its own from a free block of numbers, so that the kernel keeps them apart.
Started by anybody else, all parts share one uid, and the demonstration says so.

Source: running.md 2.3.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from onrecord.base.errors import OnrecordError
from onrecord.base.processes import Principal
from onrecord.base.uid_blocks import FIRST, LAST, reserve_uid_block


@dataclass(frozen=True)
class Cast:
    """Uids and gids of one demonstration. In user mode everything is the own uid, and `is_system` is false."""

    is_system: bool
    authority: int
    recorder: int
    agent: int
    servers: tuple[tuple[str, int], ...]
    approver: int
    call_group: int
    approval_group: int
    control_group: int
    record_group: int
    readers_group: int

    @classmethod
    def choose(cls, servers: Collection[str]) -> Cast:
        """Choose by who we are: several principals as root, else one.

        Raises `OnrecordError` with code "no-free-uids".
        """
        if os.geteuid() != 0:
            return cls.of_user(servers)
        block = reserve_uid_block()
        if block is None:
            raise OnrecordError(
                f"no block of free uids from {FIRST} to {LAST}",
                code="no-free-uids",
                hint="run the demonstration as an ordinary user; it then runs in user mode, under one uid",
            )
        return cls.of_block(block, servers)

    @classmethod
    def of_block(cls, block: Sequence[int], servers: Collection[str]) -> Cast:
        """Give out the 16 numbers of a free block."""
        first = block[0]
        return cls(
            is_system=True,
            authority=first,
            recorder=first + 1,
            agent=first + 2,
            approver=first + 3,
            servers=tuple((server, first + 4 + index) for index, server in enumerate(servers)),
            call_group=first + 10,
            approval_group=first + 11,
            control_group=first + 12,
            record_group=first + 13,
            readers_group=first + 14,
        )

    @classmethod
    def of_user(cls, servers: Collection[str]) -> Cast:
        """One uid for all."""
        uid, gid = os.getuid(), os.getgid()
        return cls(
            False, uid, uid, uid, tuple((server, uid) for server in servers), uid, gid, gid, gid, gid, gid
        )

    def without(self, server: str) -> Self:
        """Return the same principals without one server."""
        return replace(self, servers=tuple(entry for entry in self.servers if entry[0] != server))

    def server(self, name: str) -> int:
        """Return the uid of the server `name`."""
        return dict(self.servers)[name]

    def principal(self, uid: int, *groups: int) -> Principal | None:
        """Return what a child with `uid` is started as; None in user mode, where nothing is dropped."""
        return Principal(uid, uid, groups) if self.is_system else None

    @property
    def agent_principal(self) -> Principal | None:
        """The agent host, which may reach the sockets for calls and nothing else."""
        return self.principal(self.agent, self.call_group)

    @property
    def operator_principal(self) -> Principal | None:
        """The approver, who reads the decision journal too."""
        return self.principal(self.approver, self.approval_group, self.control_group, self.record_group)

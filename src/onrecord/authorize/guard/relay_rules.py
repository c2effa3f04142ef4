"""What a relay is told about its server, its client and its authority."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from onrecord.authorize.guard.authority_link import Verdict
from onrecord.authorize.guard.extension import Advertisement


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayRules:
    """What holds for one server. `enforces` false is audit mode; limits are bytes of a line with LF."""

    server: str
    enforces: bool
    refuse_methods: frozenset[str]
    advertisement: Advertisement
    call_line_bytes: int
    other_line_bytes: int
    report_timeout_ms: int = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPeer:
    """Who is at the other end. `verified_uid` is None in user mode, where it says nothing."""

    uid: int
    pid: int
    label: str
    verified_uid: int | None


class Verifier(Protocol):
    """What a relay needs of the authority."""

    def verify(self, params: dict[str, Any], done: Callable[[Verdict], None]) -> None:
        """Ask for one proof; `done` gets the verdict once."""

    def report(self, tools: Any, done: Callable[[], None]) -> None:
        """Report the tools; `done` when acknowledged."""

"""One record session while it is open, and what names it.

Source: running.md 7.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from onrecord.record.recorder.hosts import Host
from onrecord.record.recorder.recorded import Origin


class SessionKey(NamedTuple):
    """What a record session is about: the agent's uid and a label inside it."""

    uid: int
    label: str


class ConnectionKey(NamedTuple):
    """A client's connection to one guard process."""

    origin: Origin
    connection: str


@dataclass(frozen=True, slots=True)
class RecordedGap:
    """A restart during which a session was not recorded: dates, and whether all that was missed has come since."""

    start: str
    end: str
    cause: str
    is_filled: bool = False


@dataclass(slots=True, eq=False)
class Session:
    """An open record session. Times with `_ns` are CLOCK_BOOTTIME of this recorder."""

    id: str
    key: SessionKey
    caller: str | None
    opened_us: int
    opened_ns: int
    boot: str
    open_seq: int = 0
    previous: str | None = None
    seqs: list[int] = field(default_factory=list)
    size_bytes: int = 0
    last_ns: int = 0
    last_wall_ms: int = 0
    connections: set[ConnectionKey] = field(default_factory=set)
    origins: set[Origin] = field(default_factory=set)
    host: Host | None = None
    cause: str | None = None
    closing_ns: int = 0
    gaps: list[RecordedGap] = field(default_factory=list)
    awaited: set[Origin] = field(default_factory=set)
    refused: set[tuple[str, str | None]] = field(default_factory=set)

    @property
    def is_closing(self) -> bool:
        """Say whether the session is about to end."""
        return self.cause is not None

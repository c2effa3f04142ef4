"""Settings and limits of the recorder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

APPEND_BATCH: Final = 64
"""Entries of one record/append: one group commit of the journal (running.md 12)."""

RECORD_LINE_BYTES: Final = 17 * 1024 * 1024
"""Largest line on record.sock: the guard's largest line (16 MiB) inside an entry."""

MESSAGE_DEPTH: Final = 256
"""Deepest nesting of a line on record.sock. Arguments of depth 64 stand at level 5, and results may be deeper."""

OPEN_SESSIONS: Final = 1000
"""Open record sessions; beyond that the longest idle one is closed. Bounds memory."""

SESSION_EVENTS: Final = 100_000
"""Entries of one session, then a following session: one vCon stays readable."""

SESSION_BYTES: Final = 128 * 1024 * 1024
"""Content of one session, then a following session: a vCon is read with a limit of 256 MiB (record.md D-07)."""

LABELS_PER_UID: Final = 100
"""Open labels of one uid, then its default label: an agent may invent labels."""

DEFAULT_LABEL: Final = "default"
"""The label that takes the calls of a uid with too many labels."""

CLOSE_GRACE_MS: Final = 2000
"""A session that ends waits this long without new entries, so that late ones are still in it (running.md 7.3)."""

AUTHORITY_WAIT_MS: Final = 30_000
"""A session that ends waits this long for an authority that is away; its decisions may still be on their way."""

SOURCE_LOST_MS: Final = 30_000
"""Connections of a guard that has been away this long count as closed."""

RETRY_MS: Final = 30_000
"""Pause between attempts to seal what could not be sealed, and between looks for orphan spools."""

CARRIED_CALLS: Final = 1000
"""Operations and calls that a following session remembers of the one before it. Bounds memory and the close record."""

REMEMBERED: Final = 20_000
"""Proofs and operations whose session is remembered for what comes later. A proof lives 30 s at most."""

OPEN_CALLS: Final = 100_000
"""Calls whose end is awaited; the oldest are forgotten, and their late ends go by their connection."""

BUSY_CLOSE_MS: Final = 15_000
"""A session that must end although entries keep coming ends this long after it was asked to."""

CARRY_MS: Final = 3_600_000
"""What a session left to a following one is erased this long after its end: later nothing is on its way any more."""

STATE_RECORDS: Final = 10_000
"""Records between two notes of the recorder's state: a start reads back to the last one, not the whole journal."""

KEPT_SUMMARIES: Final = 1000
"""Closed sessions that record/sessions still lists."""

CONNECTIONS: Final = 256
"""Connections to record.sock: guards, the authority, operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    """What a recorder needs to know; `Configuration.recorder` and `.paths` give the values in a daemon.

    `own_uid` is None in system mode; in user mode it is the only uid that may connect. `readers_gid` is the group of
    finished vCons, None for none. `spools` is the directory whose orphan spools are picked up (user mode only).
    """

    socket: Path
    records: Path
    own_uid: int | None
    record_gid: int | None = None
    readers_gid: int | None = None
    spools: Path | None = None
    domain: str = ""
    idle_seconds: float = 1800
    max_age_seconds: float = 86400
    keep_bodies: Literal["until-closed", "always"] = "until-closed"
    max_content_bytes: int = 16 * 1024 * 1024
    close_grace_ms: int = CLOSE_GRACE_MS
    authority_wait_ms: int = AUTHORITY_WAIT_MS
    source_lost_ms: int = SOURCE_LOST_MS
    retry_ms: int = RETRY_MS
    open_sessions: int = OPEN_SESSIONS
    session_events: int = SESSION_EVENTS
    session_bytes: int = SESSION_BYTES
    labels_per_uid: int = LABELS_PER_UID
    state_records: int = STATE_RECORDS

    @property
    def is_system_mode(self) -> bool:
        """Say whether roles come from the peer's uid."""
        return self.own_uid is None

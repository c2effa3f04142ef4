"""One import run: the spool, the sessions of all sources by native id, and what was seen before."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self

from onrecord.record.logs.sessions import NativeSession
from onrecord.record.logs.spool import Spool

if TYPE_CHECKING:
    from onrecord.record.logs.trace import Trace

Media = Literal["default", "inline", "attach", "hash"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What an import may be told.

    `redact` replaces credentials visibly; `with_rest` keeps native members that have no home; `media` says where
    pictures and documents go (D-LOG-14).
    """

    redact: bool = False
    with_rest: bool = True
    media: Media = "default"


class Run:
    """What the sources of one import share. Use it in a `with` statement: it holds a file on disk.

    `folder` is where the spool lies; it takes as much room as the decompressed logs. None is the system's place for
    temporary files.
    """

    def __init__(self, options: Options | None = None, *, folder: Path | None = None) -> None:
        self.options = options or Options()
        self.spool = Spool(folder)
        self.sessions: list[NativeSession] = []
        self._by_id: dict[tuple[str, str], NativeSession] = {}
        self._seen: dict[str, dict[int, int]] = {}
        self._memories: dict[str, dict[str, Any]] = {}
        self._objects: dict[int, array[int]] = {}
        self._sorted = 0
        self.changed: dict[int, None] = {}
        """Sessions, by index, that have new objects since they were last written."""

    def session(self, trace: Trace, agent_session_id: str) -> NativeSession:
        """Return the session of a native id in a format, a new one if no source told of it so far."""
        key = (trace.importer.format, agent_session_id)
        session = self._by_id.get(key)
        if session is None:
            session = NativeSession(
                trace,
                index=len(self.sessions),
                format=trace.importer.format,
                agent_session_id=agent_session_id,
            )
            self.sessions.append(session)
            self._by_id[key] = session
        session.trace = trace
        self.changed[session.index] = None
        return session

    def known_session(self, format: str, agent_session_id: str) -> NativeSession | None:
        """Return the session of a native id that some source of the run has told, or None."""
        return self._by_id.get((format, agent_session_id))

    def seen(self, format: str) -> dict[int, int]:
        """Return what an importer remembers over the whole run (R-17): hashes of native ids to hashes of contents."""
        return self._seen.setdefault(format, {})

    def memory(self, format: str) -> dict[str, Any]:
        """Return a place where the importers of a format keep what they share over the run."""
        return self._memories.setdefault(format, {})

    def objects_of(self, family: Sequence[NativeSession]) -> array[int]:
        """Return the numbers of all objects of these sessions, in the order in which they were written."""
        spool, objects = self.spool, self._objects
        sessions = spool.sessions
        for number in range(self._sorted, len(spool)):
            if spool.is_object(number):
                objects.setdefault(sessions[number], array("I")).append(number)
        self._sorted = len(spool)
        parts = [objects[session.index] for session in family if session.index in objects]
        found = parts[0] if len(parts) == 1 else array("I", sorted(chain.from_iterable(parts)))
        return (
            array("I", (number for number in found if spool.is_object(number)))
            if spool.has_dropped
            else found
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.spool.close()

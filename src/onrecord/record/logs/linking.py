"""Which sessions share a vCon: each root session and the sub-agents below it (native-logs.md D-LOG-10, D-LOG-11)."""

from __future__ import annotations

from collections.abc import Iterable

from onrecord.record.logs.runs import Run
from onrecord.record.logs.sessions import NativeSession


class Families:
    """The families of a run's sessions. Each look costs what has changed, not what there is.

    A sub-agent whose parent is nowhere in the run is a root of its own, with the finding `child-unlinked`; so is one
    of sessions that name each other as parents. Sessions without any object are left out.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._root_of: dict[int, int] = {}
        self._members: dict[int, list[NativeSession]] = {}
        self._waiting: dict[tuple[str, str], list[NativeSession]] = {}

    def changed(self, indices: Iterable[int]) -> list[list[NativeSession]]:
        """Return the families of these sessions, by index: the root first, the others in order of appearance."""
        told = [
            session for index in indices if (session := self._run.sessions[index]).first_object is not None
        ]
        for session in list(told):
            told += self._waiting.pop((session.format_id, session.agent_session_id), ())
        for session in told:
            self._find_parent(session)
        settled: set[int] = set()
        touched = dict.fromkeys(self._enter(session, settled) for session in told)
        families = []
        for root in touched:
            family = self._members.get(self._root_of[root], ())
            if family:
                families.append(sorted(family, key=lambda session: (session.index != root, session.index)))
        return families

    def _find_parent(self, session: NativeSession) -> None:
        if not session.is_child or session.parent is not None or session.parent_id is None:
            return
        parent = self._run.known_session(session.format_id, session.parent_id)
        if parent is not None and parent.first_object is not None:
            session.parent = parent
        else:
            self._waiting.setdefault((session.format_id, session.parent_id), []).append(session)

    def _enter(self, session: NativeSession, settled: set[int]) -> int:
        """Put a session, and all that hangs below it, into the family of its root; return the root's index."""
        way: dict[int, NativeSession] = {}
        here = session
        while here.index not in settled:
            way[here.index] = here
            above = here.parent
            if above is None or above.first_object is None or above.index in way:
                # Nothing above, or a circle, which is cut where it closes.
                here.parent = None
                root = here.index
                break
            here = above
        else:
            root = self._root_of[here.index]
        for member in reversed(way.values()):
            self._move(member, root)
        settled.update(way)
        return root

    def _move(self, session: NativeSession, root: int) -> None:
        known = self._root_of.get(session.index)
        if known == root:
            return
        moved = [session] if known is None else self._members.pop(known, [session])
        for member in moved:
            self._root_of[member.index] = root
        self._members.setdefault(root, []).extend(moved)


def families(run: Run) -> list[list[NativeSession]]:
    """Return the families of all sessions of a run."""
    return Families(run).changed(range(len(run.sessions)))


def report_unlinked(sessions: Iterable[NativeSession]) -> None:
    """Report the sub-agents whose parent was not found, each once."""
    for session in sessions:
        if session.is_child and session.parent is None and not session.is_reported_unlinked:
            session.is_reported_unlinked = True
            session.trace.findings.add("child-unlinked", action="made a vCon of its own")

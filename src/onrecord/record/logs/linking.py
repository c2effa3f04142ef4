"""Which sessions share a vCon: each root session and the sub-agents below it (native-logs.md D-LOG-10, D-LOG-11)."""

from __future__ import annotations

from collections.abc import Iterable

from onrecord.record.logs.runs import Run
from onrecord.record.logs.sessions import NativeSession


def families(run: Run) -> list[list[NativeSession]]:
    """Return the sessions of each vCon, the root first and the others in order of appearance.

    A sub-agent whose parent is nowhere in the run is a root of its own, with the finding `child-unlinked`; so is the
    first of sessions that name each other as parents. Sessions without any object are left out.
    """
    told = [session for session in run.sessions if session.first_object is not None]
    for session in told:
        if session.is_child and session.parent is None and session.parent_id is not None:
            session.parent = run.known_session(session.format_id, session.parent_id)
    roots: dict[int, int] = {}
    for session in told:
        _find_root(session, roots)
    members: dict[int, list[NativeSession]] = {}
    for session in told:
        members.setdefault(roots[session.index], []).append(session)
    for root, family in members.items():
        family.sort(key=lambda session: (session.index != root, session.index))
    return list(members.values())


def _find_root(session: NativeSession, roots: dict[int, int]) -> None:
    way: dict[int, NativeSession] = {}
    here = session
    while here.index not in roots:
        way[here.index] = here
        above = _parent(here)
        if above is None or above.index in way:
            # Nothing above, or a circle, which is cut where it was entered.
            here.parent = None
            roots[here.index] = here.index
            break
        here = above
    root = roots[here.index]
    for index in way:
        roots[index] = root


def _parent(session: NativeSession) -> NativeSession | None:
    above = session.parent
    return above if above is not None and above is not session and above.first_object is not None else None


def report_unlinked(sessions: Iterable[NativeSession]) -> None:
    """Report the sub-agents whose parent was not found, each once."""
    for session in sessions:
        if session.is_child and session.parent is None and not session.is_reported_unlinked:
            session.is_reported_unlinked = True
            session.trace.findings.add("child-unlinked", action="made a vCon of its own")

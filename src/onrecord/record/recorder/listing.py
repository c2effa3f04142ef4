"""Record sessions as record/sessions lists them."""

from __future__ import annotations

from typing import Any

from onrecord.record.recorder.assembly import date_of
from onrecord.record.recorder.sealing import ClosedSession
from onrecord.record.recorder.session import Session


def open_summary(session: Session) -> dict[str, Any]:
    """Return what is shown of an open session."""
    return {
        "id": session.id,
        "uid": session.key.uid,
        "caller": session.caller,
        "label": session.key.label,
        "state": "closing" if session.is_closing else "open",
        "opened": date_of(session.opened_us // 1000),
        "last": date_of(session.last_wall_ms or session.opened_us // 1000),
        "entries": len(session.seqs),
        "connections": len(session.connections),
        "cause": session.cause,
    }


def closed_summary(session: ClosedSession) -> dict[str, Any]:
    """Return what is shown of a closed session: `vcon` is null when it holds no event."""
    summary: dict[str, Any] = {
        "id": session.id,
        "uid": session.key.uid,
        "caller": session.caller,
        "label": session.key.label,
        "state": session.state,
        "opened": date_of(session.opened_us // 1000),
        "closed": session.closed,
        "entries": session.entries,
        "cause": session.cause,
        "vcon": None,
    }
    if session.file is not None:
        summary["vcon"] = {"uuid": session.vcon, "file": session.file, "sha256": session.sha256}
    if session.check is not None:
        summary["check"] = session.check
    if session.problem is not None:
        summary["problem"] = session.problem
    return summary

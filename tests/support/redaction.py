"""vCons for the tests of redaction: one that holds a marker in every place that can be redacted."""

from __future__ import annotations

import json

from onrecord.record.checks.checker import check
from onrecord.record.redaction import Rules
from support.vcons import HASH, UUID, answer, decision, invocation

START = "2026-11-02T12:00:00Z"


def marker(place):
    """A text that stands nowhere else."""
    return f"marker-{place}-zqx"


def path(place):
    """A home path with a marker."""
    return f"/home/{marker(place)}/work"


def full():
    """A vCon without errors in which every target of PR-09 holds a marker; returned with the names of the markers."""
    agent = {"model_id": "example-model", "model_provider": "example"}
    message = {"type": "text", "start": START, "mediatype": "text/plain", "encoding": "none"}
    own = {"time": "2026-11-02T12:00:02Z", "session": 0, "party": 1}
    document = {
        "uuid": UUID,
        "created_at": START,
        "subject": marker("subject"),
        "extensions": ["tool-invocation", "ai_agent"],
        "parties": [
            {
                "type": "person",
                "name": marker("name"),
                "tel": marker("tel"),
                "mailto": marker("mailto"),
                "sip": marker("sip"),
                "stir": marker("stir"),
                "did": f"did:example:{marker('did')}",
                "validation": marker("validation"),
                "gmlpos": marker("gmlpos"),
                "civicaddress": {"country": marker("country")},
                "uuid": marker("party-uuid"),
            },
            {"type": "bot", "name": marker("agent-name"), "agent_meta": agent},
        ],
        "sessions": [
            {
                "start": START,
                "parties": [0, 1],
                "dialog": [0, 1, 2],
                "agent_session_id": "session-native-1",
                "environment": {"working_dir": path("working-dir"), "sandboxes": [path("sandbox")]},
            }
        ],
        "dialog": [
            {**message, "parties": 0, "body": marker("dialog-body"), "message_id": marker("message-id"),
             "entry_id": "e1"},
            {
                "type": "recording",
                "start": START,
                "parties": [0],
                "mediatype": "audio/x-wav",
                "url": f"https://files.example.com/{marker('dialog-url')}.wav",
                "content_hash": HASH,
                "filename": marker("dialog-file"),
            },
            {**message, "parties": [1, 0], "mediatype": "application/json", "encoding": "json",
             "body": {"x": [marker("json-body")]}},
        ],
        "attachments": [
            {
                "start": START,
                "party": 0,
                "dialog": 0,
                "purpose": marker("purpose"),
                "mediatype": "text/plain",
                "encoding": "base64url",
                "body": "bWFya2VyLWF0dGFjaG1lbnQtenF4",  # marker-attachment-zqx
                "filename": marker("attachment-file"),
            }
        ],
        "analysis": [
            {
                "type": "summary",
                "vendor": "Example",
                "dialog": 0,
                "mediatype": "text/plain",
                "encoding": "none",
                "body": marker("analysis"),
                "filename": marker("analysis-file"),
            }
        ],
        "events": [
            decision(party=1, reason=marker("reason")),
            invocation(
                party=1, mediatype="application/json", encoding="json", body={"argument": marker("ti-arguments")}
            ),
            answer("tool-result", party=1, body=marker("ti-output")),
            {"type": "tool-call", **own, "tool_name": "look", "input": {"a": marker("input")},
             "call_id": "c1", "entry_id": "e2", "parent_id": "e1"},
            {"type": "tool-result", **own, "output": [marker("output")],
             "call_id": "c1", "entry_id": "e3", "parent_id": "e2"},
            {
                "type": "reasoning",
                **own,
                "content": marker("reasoning"),
                "encrypted": marker("encrypted"),
                "subject": marker("topic"),
            },
            {"type": "system-event", **own, "event_type": "session-end", "data": {"note": marker("data")}},
        ],
        "file_attribution": {
            "files": [
                {
                    "path": f"src/{marker('path')}.py",
                    "conversations": [
                        {
                            "url": f"https://example.com/{marker('conversation')}",
                            "ranges": [],
                            "related": [{"type": "issue", "url": f"https://example.com/{marker('related')}"}],
                        }
                    ],
                }
            ]
        },
    }  # fmt: skip
    text = json.dumps(document)
    names = sorted({part.split("-zqx")[0] for part in text.split("marker-")[1:]} | {"attachment"})
    return document, names


def rules(*tables, **more):
    """Rules from the tables of a rule file."""
    return Rules.of({"rule": list(tables), **more})


def errors(data, *, profile=None):
    """The errors of a file as (code, pointer)."""
    return {
        (finding.code, finding.pointer)
        for finding in check(data, profile=profile).findings
        if finding.severity == "error"
    }

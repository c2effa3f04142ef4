"""A vCon of 0.5.0 in which every object has every member that it may have, and nothing is wrong."""

from __future__ import annotations

import copy

from support.vcons import HASH, UUID

START = "2026-11-02T12:00:00Z"
INLINE = {"mediatype": "text/plain", "encoding": "none", "body": "hello"}
_VCS = {"type": "git", "revision": "abc", "branch": "main", "repository": "https://git.example.com/a"}

COMPLETE = {
    "uuid": UUID,
    "created_at": START,
    "updated_at": START,
    "extensions": ["ai_agent"],
    "critical": ["ai_agent"],
    "subject": "A question",
    "redacted_from": {
        "type": "PII masked",
        "uuid": UUID,
        "url": "https://example.com/v",
        "content_hash": HASH,
    },
    "parties": [
        {
            "tel": "+12025550101",
            "sip": "sip:agent@example.com",
            "stir": "a.b.c",
            "mailto": "agent@example.com",
            "name": "Agent",
            "did": "did:example:123",
            "validation": "none",
            "gmlpos": "42.0 -71.0",
            "civicaddress": {"country": "US", "a1": "MA"},
            "uuid": "agent-1",
            "type": "bot",
            "org": "Example",
            "dept": "Help",
            "agent_meta": {
                "model_id": "model-1",
                "model_provider": "example",
                "models": ["model-1"],
                "cli_name": "cli",
                "cli_version": "1",
            },
        }
    ],
    "sessions": [
        {
            "start": START,
            "duration": 60,
            "parties": [0],
            "sessions": [{"session": 1, "type": "child", "description": "a sub-agent"}],
            "dialog": [0, 1],
            "session_id": {"local": UUID, "remote": UUID},
            "agent_session_id": "s-1",
            "format": "interactive",
            "environment": {"working_dir": "/srv/a", "vcs": _VCS, "sandboxes": ["/srv/b"]},
        },
        {"start": START, "parties": [0]},
    ],
    "dialog": [
        {
            "type": "text",
            "start": START,
            "duration": 1,
            "parties": [0],
            "originator": 1,
            "filename": "a.txt",
            **INLINE,
            "session_id": [{"local": UUID, "remote": UUID}],
            "party_history": [{"party": 0, "time": START, "event": "keydown", "button": "1"}],
            "application": "chat",
            "message_id": "<1@example.com>",
            "model_id": "model-1",
            "token_usage": {"input": 1, "output": 1, "cached": 1, "reasoning": 1, "total": 4, "cost": 0.5},
            "entry_id": "e1",
        },
        {
            "type": "recording",
            "start": START,
            "parties": [0],
            "mediatype": "audio/x-wav",
            "url": "https://example.com/a.wav",
            "content_hash": HASH,
        },
    ],
    "attachments": [
        {"start": START, "party": 0, "dialog": 0, "purpose": "notes", "filename": "a.txt", **INLINE}
    ],
    "analysis": [
        {
            "type": "summary",
            "vendor": "example",
            "product": "p",
            "schema": "s",
            "dialog": [0],
            "attachment": [0],
            "filename": "a.txt",
            **INLINE,
        }
    ],
    "recording_agent": {"name": "onrecord", "version": "1"},
    "vcs": _VCS,
    "file_attribution": {
        "files": [
            {
                "path": "a.py",
                "conversations": [
                    {
                        "url": "https://example.com/c",
                        "contributor": {"type": "ai", "model_id": "model-1"},
                        "ranges": [
                            {
                                "start_line": 1,
                                "end_line": 2,
                                "content_hash": "a" * 64,
                                "content_hash_alg": "sha-256",
                                "contributor": {"type": "human"},
                            }
                        ],
                        "related": [{"type": "issue", "url": "https://example.com/i"}],
                    }
                ],
            }
        ]
    },
}
COMPLETE["parties"].append({"name": "Ann Example", "type": "person"})
COMPLETE["sessions"][0]["parties"].append(1)

_FILE = "/file_attribution/files/0"
PLACES = {
    "vCon": "",
    "Party": "/parties/0",
    "Session": "/sessions/0",
    "Session_Reference": "/sessions/0/sessions/0",
    "Dialog": "/dialog/0",
    "Party_History": "/dialog/0/party_history/0",
    "Attachment": "/attachments/0",
    "Analysis": "/analysis/0",
    "Redacted": "/redacted_from",
    "Amended": "/amended_from",
    "Recording_Agent": "/recording_agent",
    "VCS_Context": "/vcs",
    "Agent_Meta": "/parties/0/agent_meta",
    "Environment": "/sessions/0/environment",
    "Token_Usage": "/dialog/0/token_usage",
    "File_Attribution": "/file_attribution",
    "File": _FILE,
    "File_Conversation": f"{_FILE}/conversations/0",
    "Range": f"{_FILE}/conversations/0/ranges/0",
    "Contributor": f"{_FILE}/conversations/0/contributor",
    "Resource": f"{_FILE}/conversations/0/related/0",
}
"""Where an object of each table stands in it."""


def complete(*, amended=False):
    """A copy; with `amended` it refers to the vCon that it amends, in place of the one that it redacts."""
    made = copy.deepcopy(COMPLETE)
    if amended:
        del made["redacted_from"]
        made["amended_from"] = {"uuid": UUID, "url": "https://example.com/v", "content_hash": HASH}
    return made


def at(document, pointer):
    """The value at a pointer."""
    for token in pointer.split("/")[1:]:
        document = document[int(token)] if isinstance(document, list) else document[token]
    return document

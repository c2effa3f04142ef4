"""A small conversation with an invented agent run of OpenCode, in each layout that the program has written."""

from __future__ import annotations

import copy
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

from onrecord.record.logs.importing import import_paths
from onrecord.record.logs.runs import Options
from support.native_logs import Imported, import_files

FORMAT = "opencode-json"
START = 1_782_900_000_000
SESSION = "ses_7000000000000000000000a1"

TABLES = """
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, slug text, directory text, title text,
    version text, share_url text, revert text, time_created integer, time_updated integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer,
    time_updated integer, data text);
CREATE TABLE account (id text, email text, access_token text);
CREATE TABLE event (id text, data text);
INSERT INTO account VALUES ('a', 'alice@example.com', 'token-of-alice');
INSERT INTO event VALUES ('e', '{"type":"message.updated"}');
"""

Message = tuple[dict[str, Any], list[dict[str, Any]]]


def session(**members: Any) -> dict[str, Any]:
    """A session's record."""
    return {
        "id": SESSION,
        "slug": "calm-river",
        "projectID": "project-of-alice",
        "directory": "/home/alice/shop",
        "title": "A bug in the shop",
        "version": "1.18.33",
        "time": {"created": START, "updated": START + 60_000},
        **members,
    }


def user(number: int, **members: Any) -> dict[str, Any]:
    """A message of the user."""
    return {
        "id": f"msg_{number:04d}user",
        "sessionID": SESSION,
        "role": "user",
        "time": {"created": START + number * 1_000},
        "agent": "build",
        "model": {"providerID": "example", "modelID": "example-large"},
        **members,
    }


def assistant(number: int, **members: Any) -> dict[str, Any]:
    """A message of the assistant: 900 prompt tokens, 300 of them cached, 80 of output, 32 of them reasoning."""
    return {
        "id": f"msg_{number:04d}assistant",
        "sessionID": SESSION,
        "role": "assistant",
        "parentID": "msg_0001user",
        "time": {"created": START + number * 1_000, "completed": START + number * 1_000 + 900},
        "modelID": "example-large",
        "providerID": "example",
        "mode": "build",
        "path": {"cwd": "/home/alice/shop", "root": "/home/alice/shop"},
        "cost": 0.002,
        "tokens": {
            "total": 980,
            "input": 600,
            "output": 48,
            "reasoning": 32,
            "cache": {"read": 300, "write": 0},
        },
        "finish": "stop",
        **members,
    }


def part(message: dict[str, Any], number: int, kind: str, **members: Any) -> dict[str, Any]:
    """A part of a message."""
    return {
        "id": f"prt_{message['id'][4:]}{number:02d}",
        "sessionID": message["sessionID"],
        "messageID": message["id"],
        "type": kind,
        **members,
    }


def times(start: int, end: int | None = None) -> dict[str, int]:
    """The time of a part, in milliseconds since the session began."""
    return {"start": START + start} if end is None else {"start": START + start, "end": START + end}


def tool(message: dict[str, Any], number: int, name: str = "bash", **state: Any) -> dict[str, Any]:
    """A tool part that is completed, if its state does not say otherwise."""
    told = {
        "status": "completed",
        "input": {"command": "pytest -q"},
        "output": "2 passed\n",
        "title": "Runs the tests",
        "metadata": {"output": "2 passed\n", "exit": 0},
        "time": times(2_100, 2_400),
    }
    return part(
        message, number, "tool", callID=f"call_{message['id']}_{number}", tool=name, state=told | state
    )


def conversation() -> list[Message]:
    """A question, an answer with thoughts and a call, and a second question with an answer."""
    first, answer, second, last = user(1), assistant(2), user(5), assistant(6, parentID="msg_0005user")
    tokens = answer["tokens"]
    return [
        (first, [part(first, 1, "text", text="Why does the shop fail?")]),
        (
            answer,
            [
                part(answer, 1, "step-start", snapshot="5ca1ab1e"),
                part(answer, 2, "reasoning", text="The tests will tell.", time=times(2_010, 2_090)),
                tool(answer, 3),
                part(answer, 4, "text", text="It does not fail any more.", time=times(2_500, 2_600)),
                part(answer, 5, "step-finish", reason="stop", tokens=tokens, cost=0.002),
            ],
        ),
        (second, [part(second, 1, "text", text="Thank you.")]),
        (last, [tool(last, 1, time=times(6_100, 6_200))]),
    ]


def answers(messages: list[Message]) -> list[dict[str, Any]]:
    """Messages as the server gives them."""
    return [{"info": info, "parts": parts} for info, parts in messages]


def export(messages: list[Message], **members: Any) -> bytes:
    """Layout 2."""
    return json.dumps({"info": session(**members), "messages": answers(messages)}, indent=2).encode()


def glued(messages: list[Message]) -> bytes:
    """Layout 3: parts before their message, nothing between the objects."""
    values = [value for info, parts in messages for value in (*parts, info)]
    return "".join(json.dumps(value, indent=2) for value in [*values, session()]).encode()


def write_folder(root: Path, messages: list[Message], **members: Any) -> Path:
    """Layout 1."""
    told = session(**members)
    _write(root / "session" / "project-of-alice" / f"{told['id']}.json", told)
    for info, parts in messages:
        _write(root / "message" / told["id"] / f"{info['id']}.json", info)
        for value in parts:
            _write(root / "part" / info["id"] / f"{value['id']}.json", value)
    return root


def write_database(path: Path, messages: list[Message], **members: Any) -> Path:
    """Layout 4: ids in columns only."""
    told = session(**members)
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES)
        time = told["time"]
        connection.execute(
            "INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?)",
            (
                told["id"],
                told["projectID"],
                told.get("parentID"),
                told["slug"],
                told["directory"],
                told["title"],
                told["version"],
                told.get("share", {}).get("url"),
                json.dumps(told["revert"]) if "revert" in told else None,
                time["created"],
                time["updated"],
            ),
        )
        for info, parts in reversed(messages):
            data = {name: value for name, value in info.items() if name not in ("id", "sessionID")}
            created = info["time"]["created"]
            row = (info["id"], told["id"], created, created, json.dumps(data))
            connection.execute("INSERT INTO message VALUES (?,?,?,?,?)", row)
            for value in reversed(parts):
                kept = {k: v for k, v in value.items() if k not in ("id", "sessionID", "messageID")}
                row = (value["id"], info["id"], told["id"], created, created, json.dumps(kept))
                connection.execute("INSERT INTO part VALUES (?,?,?,?,?,?)", row)
    connection.close()
    return path


def events(messages: list[Message]) -> list[dict[str, Any]]:
    """Layout 6: each message and part is told twice, first without its end."""
    told: list[dict[str, Any]] = [event("session.updated", info=session())]
    for info, parts in messages:
        early = copy.deepcopy(info)
        early.pop("tokens", None)
        told.append(event("message.updated", sessionID=SESSION, info=early))
        for value in parts:
            before = {**value, "text": ""} if "text" in value else value
            told.append(
                event("message.part.updated", sessionID=SESSION, part=before, time=info["time"]["created"])
            )
            told.append(
                event("message.part.updated", sessionID=SESSION, part=value, time=info["time"]["created"])
            )
        told.append(event("message.updated", sessionID=SESSION, info=info))
    return told


def event(kind: str, **properties: Any) -> dict[str, Any]:
    """A line of the server's stream."""
    return {"id": "evt_1", "type": kind, "properties": properties}


def import_text(data: bytes, *, name: str = "export.json", options: Options | None = None) -> Imported:
    """Import one file's text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        return import_files([path], FORMAT, options=options)


def import_messages(messages: list[Message], **members: Any) -> Imported:
    """Import messages as an export, and check what holds for every import."""
    imported = import_text(export(messages, **members))
    imported.assert_sound()
    return imported


def import_places(*paths: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Import files and stores by the rules for folders; return the report and the vCons."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "vcons"
        report = import_paths(list(paths), to=target, format=FORMAT).to_json()
        vcons = [json.loads(path.read_bytes()) for path in sorted(target.glob("*.vcon"))]
    return report, vcons


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")

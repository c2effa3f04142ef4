"""What is recognised as OpenCode's, and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onrecord.record.logs.detection import detect
from onrecord.record.logs.interface import importer_for
from onrecord.record.logs.reading.opening import NativeFile
from support.opencode_logs import (
    FORMAT,
    answers,
    conversation,
    events,
    export,
    glued,
    session,
    user,
    write_database,
    write_folder,
)


@pytest.mark.parametrize(
    "data",
    [
        export(conversation()),
        json.dumps(answers(conversation())).encode(),
        glued(conversation()),
        b"\n".join(json.dumps(line).encode() for line in events(conversation())),
        b"\n".join(json.dumps(line).encode() for line in answers(conversation())),
        json.dumps(session()).encode(),
        json.dumps(user(1)).encode(),
        json.dumps({"directory": "/w", "payload": events(conversation())[0]}).encode(),
    ],
)
def test_texts_of_every_layout_are_recognised(data: bytes, tmp_path: Path) -> None:
    """Exports, lists, glued objects, single files and streams are of the format."""
    path = tmp_path / "log"
    path.write_bytes(data)
    assert detect(NativeFile(path), [importer_for(FORMAT)]).format == FORMAT


def test_stores_are_recognised(tmp_path: Path) -> None:
    """SQLite files by their tables, folders by their folders."""
    importer: Any = importer_for(FORMAT)
    database = write_database(tmp_path / "opencode.db", conversation())
    assert detect(NativeFile(database), [importer]).format == FORMAT
    folder = write_folder(tmp_path / "storage", conversation())
    assert importer.recognises_folder(folder, frozenset(entry.name for entry in folder.iterdir()))
    assert not importer.recognises_folder(tmp_path, frozenset({"message", "part"}))
    assert importer.recognises_tables(frozenset({"session_v2", "session_message", "project"}))
    assert not importer.recognises_tables(frozenset({"session", "messages"}))


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"info": [], "messages": []},
        {"info": {"id": 5}, "messages": []},
        {"id": "ses_1", "type": "text"},
        {"type": "session.updated", "properties": []},
        {"type": [], "messageID": "m", "id": "p"},
        {"role": "user", "message": {"content": []}},
        {"role": "user", "id": "msg_1", "content": "hello"},
        {"type": "user", "sessionId": "s", "uuid": "u", "message": {"role": "user", "content": "hello"}},
        {"type": "user", "session_id": "s", "message": {"role": "user", "content": "hello"}},
        {"projectID": "p", "time": 5, "id": "ses_1", "directory": "/w"},
    ],
)
def test_neighbours_are_not_recognised(value: dict[str, Any]) -> None:
    """Objects of other formats, and such that only look alike, are not decisive."""
    importer = importer_for(FORMAT)
    assert not importer.recognises(value)
    assert not importer.recognises_document([value])

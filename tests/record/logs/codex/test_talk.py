"""What events repeat of the items is told once, and what only they say is told."""

from __future__ import annotations

from typing import Any

import pytest

from support.codex_logs import event, item, meta, says, turn
from support.native_logs import Imported, import_lines

PICTURE, OTHER = "data:image/png;base64,iVBORw0KGgo=", "data:image/png;base64,iVBORw0KGgoA"


def _import(*values: dict[str, Any]) -> Imported:
    imported = import_lines([meta(), turn(), *values], "codex-jsonl")
    imported.assert_sound()
    return imported


def _done(kind: str, *parts: Any) -> dict[str, Any]:
    return event("item_completed", item={"type": kind, "id": "i", "content": list(parts)})


def test_talk_is_told_once() -> None:
    """Events that repeat what the items of that role say are twins."""
    imported = _import(
        says("user", "hello"),
        event("user_message", message="hello"),
        item({"type": "reasoning", "summary": [{"type": "summary_text", "text": "thinking"}]}),
        event("agent_reasoning", text="thinking"),
        event("item_completed", item={"type": "Reasoning", "id": "r", "summary_text": ["thinking"]}),
        event("agent_message", message="hi"),
        says("assistant", "hi"),
    )
    assert imported.bodies == ["hello", "hi"]
    assert [reasoning["content"] for reasoning in imported.events("reasoning")] == ["thinking"]
    assert imported.accounting[0]["of_duplicates"] == {"twin": 4}


def test_talk_that_only_events_tell_is_used() -> None:
    """A file without items of a role has them from the events, plain ones before completed items."""
    imported = _import(
        says("user", "<environment_context>x</environment_context>"),
        event(
            "user_message",
            message="hello",
            images=["data:image/png;base64,iVBORw0KGgo=", "https://example.com/a"],
        ),
        event(
            "item_completed",
            item={"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "hello"}]},
        ),
        event("agent_reasoning", text="**Think**"),
        event(
            "item_completed",
            item={"type": "AgentMessage", "id": "a", "content": [{"type": "Text", "text": "hi"}]},
        ),
    )
    assert imported.bodies == ["hello", "hi"]
    assert imported.events("reasoning")[0]["subject"] == "Think"
    assert len(imported.vcon["attachments"]) == 1
    assert imported.events("block/image")[0]["data"] == {"image_url": "https://example.com/a"}


@pytest.mark.parametrize("by", ["event", "item"])
def test_what_an_older_program_told_by_events_only_is_said(by: str) -> None:
    """A log that one version began and another one went on with: texts without an item are Dialogs."""
    if by == "event":
        older = [event("user_message", message="first"), event("agent_message", message="one")]
    else:
        older = [
            _done("UserMessage", {"type": "text", "text": "first"}),
            _done("AgentMessage", {"type": "Text", "text": "one"}),
        ]
    imported = _import(
        *older, says("user", "second"), event("user_message", message="second"), says("assistant", "two")
    )
    assert imported.bodies == ["first", "one", "second", "two"]
    assert imported.accounting[0]["of_duplicates"] == {"twin": 1}


@pytest.mark.parametrize(
    "told",
    [
        event("agent_message", message="quite another"),
        _done("AgentMessage", {"type": "Text", "text": "quite another"}),
    ],
)
def test_another_text_beside_an_item_is_an_event(told: dict[str, Any]) -> None:
    """Where the turn has an item of the role, an event with another text is no second turn, and is not lost."""
    imported = _import(says("user", "hello"), says("assistant", "hi"), told)
    assert imported.bodies == ["hello", "hi"]
    assert imported.accounting[0]["of_duplicates"] == {}
    data = [
        event_["data"] for event_ in imported.events("system-event") if "quite another" in str(event_["data"])
    ]
    assert data == [told["payload"]]


def test_reasoning_that_no_item_has_is_reasoning() -> None:
    """Items may hold protected reasoning only; the text of the events is kept."""
    imported = _import(
        item({"type": "reasoning", "summary": [], "encrypted_content": "gAAAAexample"}),
        event("agent_reasoning", text="thinking"),
        event("item_completed", item={"type": "Reasoning", "id": "r", "summary_text": [], "raw_content": []}),
    )
    assert [reasoning["content"] for reasoning in imported.events("reasoning")] == ["", "thinking"]
    assert imported.accounting[0]["of_duplicates"] == {"twin": 1}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (says("user", "one\n", "two"), "one\ntwo"),
        (says("user", "<image name=[Image #1]>", "</image>", "look"), "look"),
        (says("user", "# Context from my IDE setup:\n\n## My request for Codex:\nlook\n"), "look"),
        (says("user", "<environment_context>x</environment_context>", "look"), "look"),
        (says("assistant", "Done.\n<oai-mem-citation>a.md</oai-mem-citation>"), "Done."),
    ],
)
def test_forms_of_one_text_are_twins(said: dict[str, Any], told: str) -> None:
    """Events join the parts of a message and leave out what the program put there; they are twins all the same."""
    role = said["payload"]["role"]
    twin = event("user_message" if role == "user" else "agent_message", message=told)
    for values in ([said, twin], [twin, said]):
        imported = _import(*values)
        assert imported.accounting[0]["of_duplicates"] == {"twin": 1}


@pytest.mark.parametrize("by", ["event", "item"])
def test_pictures_that_the_item_lacks_are_kept(by: str) -> None:
    """The twin of a user's text may name pictures that no item has; those that one has are there once."""
    said = item(
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": PICTURE},
            ],
        }
    )
    if by == "event":
        twin = event(
            "user_message", message="look", images=[PICTURE, OTHER], local_images=["/home/dev/a.png"]
        )
        same = event("user_message", message="look", images=[PICTURE], local_images=[])
    else:
        text, picture = {"type": "text", "text": "look"}, {"type": "image", "image_url": PICTURE}
        twin = _done(
            "UserMessage",
            text,
            picture,
            {**picture, "image_url": OTHER},
            {"type": "local_image", "path": "/home/dev/a.png"},
        )
        same = _done("UserMessage", text, picture)
    imported = _import(said, same, twin)
    assert imported.bodies == ["look"]
    assert len(imported.vcon["attachments"]) == 2
    assert imported.accounting[0]["of_duplicates"] == {"twin": 1}
    kept = [event_["data"] for event_ in imported.events("system-event") if "a.png" in str(event_["data"])]
    assert len(kept) == 1
    assert "base64" not in str(kept)

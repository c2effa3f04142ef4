"""Each kind of part becomes the objects that the map names (native-logs.md 4.5)."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest

from onrecord.record.logs.runs import Options
from support.opencode_logs import (
    START,
    assistant,
    export,
    import_messages,
    import_text,
    part,
    session,
    times,
    tool,
    user,
)

PICTURE = b"\x89PNG\r\n\x1a\n-not-a-picture"
PICTURE_URL = "data:image/png;base64," + base64.b64encode(PICTURE).decode()


def _one(kind: str, by_user: bool = False, **members: Any) -> Any:
    message = user(1) if by_user else assistant(1, parentID=None)
    return import_messages([(message, [part(message, 1, kind, **members)])])


def _call(name: str = "bash", **state: Any) -> Any:
    message = assistant(1, parentID=None)
    return import_messages([(message, [tool(message, 1, name, **state)])])


def test_texts_are_said_by_the_role() -> None:
    """A text is a Dialog of its message's role, at its own time or its message's."""
    first, answer = user(1), assistant(2)
    imported = import_messages(
        [
            (first, [part(first, 1, "text", text=" Two\nlines ")]),
            (answer, [part(answer, 1, "text", text="Yes", time=times(2_300, 2_400))]),
        ]
    )
    question, reply = imported.dialogs
    assert (question["body"], question["parties"], question["start"]) == (
        " Two\nlines ",
        [0, 1],
        "2026-07-01T10:00:01Z",
    )
    assert question["onrecord"]["time"] == "message"
    assert (reply["model_id"], reply["parties"], reply["start"]) == (
        "example-large",
        [1, 0],
        "2026-07-01T10:00:02.3Z",
    )
    assert reply["parent_id"] == question["entry_id"] == "prt_0001user01"
    assert reply["onrecord"]["rest"]["time"] == {"end": START + 2_400}
    assert reply["onrecord"]["rest"]["message"]["finish"] == "stop"
    assert reply["token_usage"] == {
        "input": 900,
        "output": 80,
        "cached": 300,
        "reasoning": 32,
        "total": 980,
        "cost": 0.002,
        "native": assistant(2)["tokens"],
    }


@pytest.mark.parametrize("mark", ["synthetic", "ignored"])
def test_texts_that_nobody_typed_are_injected_context(mark: str) -> None:
    """A synthetic or ignored text is no Dialog."""
    imported = _one("text", True, text="Called the Read tool", **{mark: True})
    assert not imported.dialogs
    assert imported.events("injected-context")[0]["data"] == {"text": "Called the Read tool"}


def test_a_summary_is_no_answer() -> None:
    """The text of a message that is a summary is a compaction-summary."""
    answer = assistant(1, parentID=None, summary=True)
    imported = import_messages([(answer, [part(answer, 1, "text", text="So far: nothing.")])])
    assert not imported.dialogs
    assert imported.events("compaction-summary")[0]["data"] == {"text": "So far: nothing."}
    assert imported.counts()["responses"] == 1


@pytest.mark.parametrize(
    ("metadata", "encrypted", "kept"),
    [
        (
            {"openai": {"reasoningEncryptedContent": "opaque-text", "itemId": "rs_1"}},
            "opaque-text",
            {"openai": {"itemId": "rs_1"}},
        ),
        ({"anthropic": {"signature": "signed-text"}}, "signed-text", None),
        ({"anthropic": {"signature": 5}}, None, {"anthropic": {"signature": 5}}),
    ],
)
def test_protected_thoughts_are_kept(metadata: Any, encrypted: str | None, kept: Any) -> None:
    """Reasoning without text has content "" and what the provider protected."""
    event = _one("reasoning", text="", metadata=metadata, time=times(1_000)).events("reasoning")[0]
    assert (event["content"], event.get("encrypted")) == ("", encrypted)
    assert event["onrecord"]["rest"].get("metadata") == kept


@pytest.mark.parametrize(
    ("name", "state", "status", "output"),
    [
        ("bash", {}, "completed", "2 passed\n"),
        ("bash", {"status": "success"}, "success", "2 passed\n"),
        ("bash", {"metadata": {"exit": 1}}, "error", "2 passed\n"),
        ("bash", {"metadata": {"exit": True}}, "completed", "2 passed\n"),
        ("read", {"status": "error", "error": "no such file", "output": None}, "error", "no such file"),
        ("invalid", {"output": "arguments refused"}, "error", "arguments refused"),
        ("read", {"status": "brand-new"}, None, "2 passed\n"),
    ],
)
def test_calls_that_ended_have_a_result(name: str, state: Any, status: str | None, output: str) -> None:
    """Status and output are those of the log; an exit code other than 0 is an error."""
    imported = _call(name, **state)
    (call,), (result,) = imported.events("tool-call"), imported.events("tool-result")
    assert (call["tool_name"], call["input"]) == (name, {"command": "pytest -q"})
    assert (call["time"], result["time"]) == ("2026-07-01T10:00:02.1Z", "2026-07-01T10:00:02.4Z")
    assert call["call_id"] == result["call_id"]
    assert (result.get("status"), result["output"]) == (status, output)
    assert result.get("is_error") is (True if status == "error" else None)


@pytest.mark.parametrize("status", ["pending", "running"])
def test_open_calls_stay_open(status: str) -> None:
    """A call that has not ended has no result; what came so far is kept."""
    imported = _call(
        status=status, raw='{"comm', output=None, time=times(2_100), metadata={"output": "1 pas"}
    )
    (call,) = imported.events("tool-call")
    assert not imported.events("tool-result")
    assert call["onrecord"]["rest"]["state"] == {
        "status": status,
        "raw": '{"comm',
        "output": None,
        "title": "Runs the tests",
        "metadata": {"output": "1 pas"},
    }
    assert imported.codes["call-without-result"] == 1


def test_an_output_that_stands_twice_is_kept_once() -> None:
    """`metadata.output` equal to `output` is dropped; a different one stays."""
    (equal,) = _call().events("tool-result")
    (other,) = _call(metadata={"output": "2 pas", "exit": 0}).events("tool-result")
    assert equal["onrecord"]["rest"]["state"] == {"title": "Runs the tests", "metadata": {"exit": 0}}
    assert other["onrecord"]["rest"]["state"]["metadata"] == {"output": "2 pas", "exit": 0}


def test_arguments_that_are_text_are_parsed() -> None:
    """D-LOG-18: a string of JSON is parsed, and kept where it does not parse."""
    (call,) = _call(input='{"a": 1}').events("tool-call")
    assert call["input"] == {"a": 1}
    imported = _call(input="{nonsense")
    (call,) = imported.events("tool-call")
    assert (call["input"], call["onrecord"]["rest"]["arguments"]) == ("{nonsense", "{nonsense")
    assert imported.codes["arguments-unparsed"] == 1


def test_pictures_of_a_user_are_attachments() -> None:
    """D-LOG-14: a data: URL of the user is an Attachment, with the message's first text."""
    message = user(1)
    parts = [
        part(message, 1, "text", text="Look"),
        part(message, 2, "file", mime="image/png", url=PICTURE_URL),
    ]
    (attachment,) = import_messages([(message, parts)]).vcon["attachments"]
    assert (attachment["mediatype"], attachment["dialog"]) == ("image/png", 0)
    assert base64.urlsafe_b64decode(attachment["body"] + "==") == PICTURE


def test_a_message_of_a_picture_alone_has_an_entry() -> None:
    """Attachments have no entry id, so the message itself is one, and answers hang below it."""
    message, answer = user(1), assistant(2)
    imported = import_messages(
        [
            (message, [part(message, 1, "file", mime="image/png", url=PICTURE_URL)]),
            (answer, [part(answer, 1, "text", text="A picture")]),
        ]
    )
    assert imported.events("message")[0]["entry_id"] == message["id"]
    assert imported.dialogs[0]["parent_id"] == message["id"]
    assert not imported.codes["dangling-parent"]


@pytest.mark.parametrize("choice", ["default", "hash"])
def test_pictures_in_a_result_stay_or_are_told_by_hash(choice: Any) -> None:
    """Attachments of a tool stand in its output, and `onrecord.media` says what they are."""
    message = assistant(1, parentID=None)
    files = [{"type": "file", "mime": "image/png", "url": PICTURE_URL, "filename": "shop.png"}]
    data = export([(message, [tool(message, 1, "read", attachments=files)])])
    (result,) = import_text(data, options=Options(media=choice)).events("tool-result")
    assert result["output"]["output"] == "2 passed\n"
    assert result["onrecord"]["media"] == [
        {
            "pointer": "/output/attachments/0/url",
            "mediatype": "image/png",
            "bytes": len(PICTURE),
            "sha256": hashlib.sha256(PICTURE).hexdigest(),
        }
    ]
    assert (PICTURE_URL in json.dumps(result)) is (choice == "default")


@pytest.mark.parametrize(
    ("kind", "members", "event_type"),
    [
        ("patch", {"hash": "5ca1ab1e", "files": ["/home/alice/shop/a.py"]}, "patch"),
        ("snapshot", {"snapshot": "5ca1ab1e"}, "snapshot"),
        ("step-start", {"snapshot": "5ca1ab1e"}, "step-start"),
        ("agent", {"name": "explore"}, "block/agent"),
        ("subtask", {"prompt": "Look", "description": "d", "agent": "explore"}, "subtask"),
        ("retry", {"attempt": 2, "error": {"name": "APIError"}, "time": {"created": START}}, "retry"),
        ("compaction", {"auto": True, "overflow": False, "tail_start_id": "msg_1"}, "compaction"),
        (
            "file",
            {"mime": "text/plain", "url": "file:///home/alice/a.txt", "filename": "a.txt"},
            "block/file",
        ),
        ("brand-new", {"news": ["x"]}, "block/brand-new"),
    ],
)
def test_other_parts_are_system_events(kind: str, members: dict[str, Any], event_type: str) -> None:
    """Everything else is told whole; an unknown kind is kept and named once."""
    imported = _one(kind, **members)
    (event,) = imported.events(event_type)
    assert event["data"] == members
    assert imported.codes["unknown-block-type"] == (1 if kind == "brand-new" else 0)


def test_usage_counts_once_per_message() -> None:
    """D-LOG-02: a message without text has a token-count; steps repeat it, with the scope turn."""
    message = assistant(1, parentID=None)
    tokens = message["tokens"]
    parts = [tool(message, 1), part(message, 2, "step-finish", reason="stop", tokens=tokens, cost=0.002)]
    imported = import_messages([(message, parts)])
    (count,) = imported.events("token-count")
    assert (count["data"]["scope"], count["data"]["response_id"]) == ("response", message["id"])
    assert count["data"]["usage"]["input"] == 900
    assert imported.events("step-finish")[0]["data"]["scope"] == "turn"
    assert imported.counts()["input"] == 900


def test_totals_stand_in_where_messages_have_no_usage() -> None:
    """D-LOG-03: without usage per message the steps count, else the session's sum; never a mix."""
    message = assistant(1, parentID=None, tokens=None)
    step = part(message, 1, "step-finish", tokens={"input": 7, "output": 3})
    sums = {"tokens": {"input": 20, "output": 5}, "cost": 0.1}
    of_steps = import_messages([(message, [step])], **sums)
    assert of_steps.sessions[0].usage_totals()[1] == "turns"
    assert of_steps.counts()["total"] == 10
    of_session = import_messages([(message, [part(message, 1, "text", text="Hi")])], **sums)
    assert of_session.sessions[0].usage_totals()[1] == "session-total"
    assert of_session.counts()["total"] == 25


def test_changed_files_have_their_lines() -> None:
    """F-01, F-02, F-10: only what succeeded gives ranges; a patch names files without ranges."""
    message = assistant(1, parentID=None)
    edit = {"file": "/home/alice/shop/a.py", "before": "one\n", "after": "one\ntwo\n"}
    parts = [
        tool(message, 1, "edit", metadata={"filediff": edit}),
        tool(message, 2, "write", input={"filePath": "/home/alice/shop/b.py", "content": "b\n"}, metadata={}),
        tool(
            message,
            3,
            "write",
            status="error",
            error="refused",
            input={"filePath": "c.py", "content": "c\n"},
            metadata={},
        ),
        part(message, 4, "patch", hash="5ca1ab1e", files=["/home/alice/shop/a.py", "/home/alice/shop/d.py"]),
    ]
    files = import_messages([(message, parts)]).vcon["file_attribution"]["files"]
    told = {file["path"]: file["conversations"] for file in files}
    assert sorted(told) == ["a.py", "b.py", "d.py"]
    (first,) = told["a.py"]
    assert [(one["start_line"], one["end_line"]) for one in first["ranges"]] == [(2, 2)]
    assert first["contributor"] == {"type": "ai", "model_id": "example-large"}
    assert told["d.py"][0]["ranges"] == []


def test_system_prompts_and_tools_are_events() -> None:
    """D-LOG-06, D-LOG-30: the same prompt again is told by its hash."""
    first, second = user(1, system="Be kind.", tools={"bash": True, "web": False}), user(2, system="Be kind.")
    imported = import_messages(
        [(message, [part(message, 1, "text", text="Hi")]) for message in (first, second)]
    )
    whole, again = (event["data"] for event in imported.events("system-prompt"))
    assert (whole["role"], whole["text"]) == ("system", "Be kind.")
    assert (again["sha256"], again["bytes"]) == (hashlib.sha256(b"Be kind.").hexdigest(), 8)
    assert imported.events("tool-definitions")[0]["data"]["names"] == ["bash"]


def test_errors_of_a_message_are_events() -> None:
    """An aborted answer keeps its error, and makes no usage of zeros."""
    zeros = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    message = assistant(1, parentID=None, error={"name": "MessageAbortedError"}, tokens=zeros, cost=0)
    imported = import_messages([(message, [])])
    assert imported.events("error")[0]["data"] == {"name": "MessageAbortedError"}
    assert imported.events("message")[0]["data"]["tokens"] == zeros
    assert imported.counts()["responses"] == 0


def test_every_text_of_the_log_is_in_the_vcon() -> None:
    """A-05: each string of eight or more characters in the log is found again."""
    message, question = (
        assistant(2, variant="variant-of-alice", news={"deep": "unknown-member-value"}),
        user(1),
    )
    parts = [
        tool(message, 1, title="title-of-the-call", news="news-of-the-state"),
        part(message, 2, "text", text="text-of-the-answer", metadata={"provider": "metadata-of-the-text"}),
        part(message, 3, "step-finish", reason="reason-of-the-end", snapshot="snapshot-of-the-step"),
    ]
    messages = [(question, [part(question, 1, "text", text="text-of-the-question")]), (message, parts)]
    imported = import_messages(
        messages, slug="slug-of-the-session", metadata={"origin": "origin-of-the-session"}
    )
    text = json.dumps(imported.vcon)

    def strings(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set().union(*map(strings, value.values())) if value else set()
        if isinstance(value, list):
            return set().union(*map(strings, value)) if value else set()
        return {value} if isinstance(value, str) and len(value) >= 8 else set()

    logged = strings(
        [session(slug="slug-of-the-session", metadata={"origin": "origin-of-the-session"}), messages]
    )
    ids = {info["id"] for info, _ in messages}
    assert {found for found in logged if json.dumps(found)[1:-1] not in text} - ids == set()
    assert imported.codes["unknown-member"] == 2


@pytest.mark.parametrize("name", ["id", "sessionID", "messageID", "callID"])
@pytest.mark.parametrize("odd", [["odd-identifier"], {"odd": "odd-identifier"}])
def test_ids_of_another_kind_are_kept(name: str, odd: Any) -> None:
    """An id that is no text stays among the members without a home, as its finding says (R-10)."""
    message = assistant(1, parentID=None)
    told = tool(message, 1, "bash", status="completed", output="done")
    imported = import_messages([(message, [{**told, name: odd}])])
    imported.assert_sound()
    (call,) = imported.events("tool-call")
    assert call["onrecord"]["rest"][name] == odd


def test_times_that_are_none_are_kept() -> None:
    """A time that cannot be read is reported, and stays (D-LOG-26)."""
    imported = _call(status="completed", output="done", time={"start": "no start", "end": "no end"})
    imported.assert_sound()
    (result,) = imported.events("tool-result")
    assert result["onrecord"]["rest"]["state"]["time"] == {"start": "no start", "end": "no end"}
    assert imported.codes["time-missing"] == 2


def test_unknown_role_is_kept() -> None:
    """A role that nobody knows stays beside its texts."""
    message = {**user(1), "role": "narrator"}
    imported = import_messages([(message, [part(message, 1, "text", text="Once upon a time")])])
    (event,) = imported.events("orphan-text")
    assert event["onrecord"]["rest"]["message"]["role"] == "narrator"


def test_orphan_part_names_its_message() -> None:
    """The message that is missing is still named: it may be in another log."""
    message = user(1)
    lost = {**part(message, 1, "text", text="Who said this?"), "messageID": "msg_lost"}
    imported = import_text((json.dumps(session()) + json.dumps(lost)).encode())
    (event,) = imported.events("orphan-text")
    assert event["onrecord"]["rest"]["messageID"] == "msg_lost"

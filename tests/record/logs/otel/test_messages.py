"""Every convention for messages is read alike; what is unknown is kept (native-logs.md 4.9)."""

import base64
import json

import pytest

from onrecord.record.logs.runs import Options
from support.native_logs import import_lines
from support.spans import ANSWER, FOUND, HELLO, chat, said, span

CALLS = '[{"toolCallType":"function","toolCallId":"c1","toolName":"look","input":"{\\"place\\":\\"here\\"}"}]'
OPENINFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "example-1",
    "llm.token_count.prompt": 10,
    "llm.token_count.completion": 2,
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": "hello",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.type": "text",
    "llm.output_messages.0.message.contents.0.message_content.text": "let me see",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "look",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"place":"here"}',
}
CONVENTIONS = {
    "current": chat("a2", 1, [HELLO], [ANSWER])["attributes"],
    "openinference": OPENINFERENCE,
    "openinference in objects": {
        "openinference": {"span": {"kind": "LLM"}},
        "llm": {
            "model_name": "example-1",
            "token_count": {"prompt": 10, "completion": 2},
            "input_messages": [{"message": {"role": "user", "content": "hello"}}],
            "output_messages": [
                {
                    "message": {
                        "role": "assistant",
                        "content": "let me see",
                        "tool_calls": [
                            {
                                "tool_call": {
                                    "id": "c1",
                                    "function": {"name": "look", "arguments": '{"place":"here"}'},
                                }
                            }
                        ],
                    }
                }
            ],
        },
    },
    "vercel": {
        "ai.operationId": "ai.streamText.doStream",
        "ai.response.model": "example-1",
        "ai.usage.inputTokens": 10,
        "ai.usage.outputTokens": 2,
        "ai.prompt.messages": '[{"role":"user","content":[{"type":"text","text":"hello"}]}]',
        "ai.response.text": "let me see",
        "ai.response.toolCalls": CALLS,
    },
    "deprecated": {
        "gen_ai.system": "example",
        "gen_ai.operation.name": "text_completion",
        "gen_ai.request.model": "example-1",
        "gen_ai.usage.prompt_tokens": 10,
        "gen_ai.usage.completion_tokens": 2,
        "gen_ai.prompt": '{"messages":[{"role":"user","content":"hello"}]}',
        "gen_ai.completion": json.dumps([{"content": "let me see", **ANSWER["parts"][1], "type": None}]),
    },
    "numbered": {
        "gen_ai.request.model": "example-1",
        "gen_ai.usage.prompt_tokens": 10,
        "gen_ai.usage.completion_tokens": 2,
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "hello",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "let me see",
        "gen_ai.completion.0.tool_calls.0.id": "c1",
        "gen_ai.completion.0.tool_calls.0.name": "look",
        "gen_ai.completion.0.tool_calls.0.arguments": '{"place":"here"}',
    },
}
CONVENTIONS["deprecated"]["gen_ai.completion"] = json.dumps(
    [{"role": "assistant", "content": "let me see", "tool_calls": [{"id": "c1", **dict(ANSWER["parts"][1])}]}]
)


def told(attributes, events=(), **options):
    imported = import_lines(
        [span("a2", "answer", 1, 2, attributes=attributes, events=list(events))], "otel", **options
    )
    imported.assert_sound()
    return imported


def talk(inputs, outputs, **options):
    imported = import_lines([chat("a2", 1, inputs, outputs)], "otel", **options)
    imported.assert_sound()
    return imported


@pytest.mark.parametrize("name", CONVENTIONS)
def test_conventions_say_the_same(name):
    """One answer told by each convention gives the same texts, call, model and usage."""
    imported = told(CONVENTIONS[name])
    assert imported.bodies == ["hello", "let me see"]
    (made,) = imported.events("tool-call")
    assert (made["tool_name"], made["input"], made["call_id"]) == ("look", {"place": "here"}, "c1")
    assert imported.dialogs[1]["model_id"] == "example-1"
    assert imported.dialogs[1]["token_usage"]["total"] == 12


EVENTS = {
    "details": [
        {
            "name": "gen_ai.client.inference.operation.details",
            "attributes": {
                "gen_ai.input.messages": [HELLO],
                "gen_ai.output.messages": [said("assistant", "hi")],
            },
        }
    ],
    "one each": [
        {"name": "gen_ai.user.message", "attributes": {"content": "hello"}},
        {
            "name": "gen_ai.choice",
            "attributes": {"index": 0, "message": '{"role":"assistant","content":"hi"}'},
        },
    ],
    "content": [
        {"name": "gen_ai.content.prompt", "attributes": {"gen_ai.prompt": "hello"}},
        {"name": "gen_ai.content.completion", "attributes": {"gen_ai.completion": "hi"}},
    ],
}


@pytest.mark.parametrize("name", EVENTS)
def test_events_of_a_span_tell_messages_too(name):
    """Messages on span events are read where the attributes hold none."""
    assert told({"gen_ai.operation.name": "chat"}, EVENTS[name]).bodies == ["hello", "hi"]


def test_log_records_beside_a_span_tell_its_messages():
    """An OTLP log record of a conversation is a record of its own, in the session of its span."""
    record = {
        "timeUnixNano": "1782900001000000000",
        "eventName": "gen_ai.user.message",
        "traceId": "0123456789abcdef0123456789abcdef",
        "spanId": "a2",
        "body": {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "hello"}}]}},
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, {**record, "eventName": "rained"}]}]}]}
    imported = import_lines([chat("a2", 1, [], [said("assistant", "hi")]), logs], "otel")
    imported.assert_sound()
    assert sorted(imported.bodies) == ["hello", "hi"]
    assert [len(imported.events(name)) for name in ("log/rained", "session-start")] == [1, 1]
    assert imported.accounting[0]["records"] == 3


def test_wrappers_give_no_messages():
    """`ai.generateText` repeats what its do-child tells: it is kept whole as an event."""
    outer = {"ai.operationId": "ai.generateText", "ai.prompt": '{"prompt":"hello"}', "ai.response.text": "hi"}
    imported = told(outer)
    assert imported.bodies == []
    (event,) = imported.events("span/ai.generateText")
    assert event["data"]["attributes"] == outer


def test_plain_values_are_messages_and_structured_ones_are_not():
    """`input.value` of an answer is a message when it is a text; a request in JSON stays an attribute."""
    base = {"openinference.span.kind": "LLM"}
    assert told({**base, "input.value": "hello", "output.value": "hi"}).bodies == ["hello", "hi"]
    imported = told({**base, "input.value": '{"q":"hello"}', "input.mime_type": "application/json"})
    assert imported.bodies == []
    (event,) = imported.events("span/llm")
    assert event["data"]["attributes"]["input.value"] == '{"q":"hello"}'


def test_system_texts_and_definitions_are_told_once():
    """D-LOG-06, D-LOG-30: prompts and tools that every answer repeats are one event each."""
    more = {
        "gen_ai.system_instructions": '[{"type":"text","content":"be brief"}]',
        "gen_ai.tool.definitions": '[{"type":"function","name":"look"}]',
    }
    spans = [chat(f"a{number}", number, [HELLO], [], attributes=more) for number in (1, 2)]
    imported = import_lines(spans, "otel")
    (prompt,), (tools,) = imported.events("system-prompt"), imported.events("tool-definitions")
    assert (prompt["data"]["text"], tools["data"]["names"]) == ("be brief", ["look"])


def test_reasoning_keeps_what_is_protected():
    """A reasoning part without text has content "" and the protected text in `encrypted`."""
    parts = [{"type": "reasoning", "content": "hm"}, {"type": "redacted_thinking", "data": "c2VjcmV0"}]
    first, second = talk([HELLO], [said("assistant", *parts)]).events("reasoning")
    assert first["content"] == "hm"
    assert (second["content"], second["encrypted"]) == ("", "c2VjcmV0")


PICTURE = base64.b64encode(b"\x89PNG invented " * 8).decode()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "blob", "mime_type": "image/png", "content": PICTURE},
        {"type": "uri", "uri": f"data:image/png;base64,{PICTURE}"},
        {"type": "image", "image": PICTURE, "mediaType": "image/png"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
    ],
    ids=lambda part: part["type"],
)
def test_pictures_become_attachments(part):
    """D-LOG-14: binary content of a user's message is an Attachment of that message; repeated, it is one."""
    caption = "a picture of a stone that lay beside the path, seen from above, in the rain of July"
    message = said("user", "what is this?", {**part, "caption": caption})
    imported = import_lines([chat("a2", 1, [message], []), chat("a3", 2, [message], [])], "otel")
    imported.assert_sound()
    (attachment,) = imported.vcon["attachments"]
    assert (attachment["mediatype"], attachment["dialog"]) == ("image/png", 0)
    assert attachment["onrecord"]["rest"]["caption"] == caption
    hashed = talk([message], [], options=Options(media="hash"))
    assert hashed.codes["media-omitted"] == 1
    assert PICTURE not in json.dumps(hashed.vcon)


def test_a_link_to_a_file_is_not_followed():
    """R-21: a uri part is kept as an event."""
    (event,) = talk([said("user", {"type": "uri", "uri": "https://example.com/a.png"})], []).events(
        "block/uri"
    )
    assert event["data"]["block"]["uri"] == "https://example.com/a.png"


def test_what_is_unknown_is_kept():
    """D-LOG-26: unknown parts and roles are events with a finding each."""
    parts = [{"type": "hologram", "content": "shape"}]
    imported = talk([said("critic", "too long"), said("user", *parts)], [FOUND])
    assert imported.codes["unknown-block-type"] == 2
    assert imported.events("block/hologram")[0]["data"]["block"] == parts[0]
    assert imported.events("block/text")[0]["data"] == {"role": "critic", "text": "too long"}


@pytest.mark.parametrize("value", ['[{"role":"user","par', "not JSON"])
def test_messages_that_were_cut_stay_attributes(value):
    """A limit on the length of attributes cuts JSON: the rest is kept and reported."""
    imported = import_lines([chat("a2", 1, [], [], attributes={"gen_ai.input.messages": value})], "otel")
    imported.assert_sound()
    assert imported.codes["odd-shape"] == 1
    assert value in json.dumps([event["onrecord"].get("rest", {}) for event in imported.events()]).replace(
        '\\"', '"'
    )


def test_members_of_messages_without_a_home_are_kept():
    """`finish_reason` and unknown members of a message and its parts stand in rest."""
    output = said("assistant", {"type": "text", "content": "hi", "mood": "sunny"}, finish_reason="stop")
    rest = talk([HELLO], [output]).dialogs[1]["onrecord"]["rest"]
    assert (rest["finish_reason"], rest["mood"]) == ("stop", "sunny")


def _with_events(*events):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "example-1"}
    return {**span("a1", "chat", 1, 2, attributes=attributes), "events": list(events)}


def test_messages_in_events_have_the_time_of_the_event():
    """A message that an event tells is said when the event was; its name stays with the span (D-LOG-04, A-05)."""
    event = {
        "name": "gen_ai.user.message",
        "timeUnixNano": "1782900030000000000",
        "attributes": {"content": "hello", "gen_ai.system": "example-provider"},
    }
    imported = import_lines([_with_events(event)], "otel")
    imported.assert_sound()
    (dialog,) = imported.dialogs
    assert (dialog["body"], dialog["start"]) == ("hello", "2026-07-01T10:00:30Z")
    del event["attributes"]["content"]
    assert dialog["onrecord"]["rest"]["events"] == [event]


def test_what_an_event_says_beside_its_messages_stays():
    """An event with all messages also tells of the answer: its other attributes are kept (D-LOG-01)."""
    event = {
        "name": "gen_ai.client.inference.operation.details",
        "timeUnixNano": "1782900030000000000",
        "attributes": {
            "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "hi"}]}],
            "gen_ai.response.id": "response-1",
        },
    }
    (dialog,) = import_lines([_with_events(event)], "otel").dialogs
    del event["attributes"]["gen_ai.output.messages"]
    assert dialog["onrecord"]["rest"]["events"] == [event]


@pytest.mark.parametrize("role", ["developer", ["user"], "Human"])
def test_role_that_is_read_as_another_is_kept(role):
    """What the log calls a speaker stays beside what we make of it."""
    message = {"role": role, "parts": [{"type": "text", "content": "hello"}]}
    imported = import_lines([chat("a2", 1, [message], [ANSWER])], "otel")
    rests = [
        told["onrecord"].get("rest", {}) for told in [*imported.dialogs, *imported.events("system-prompt")]
    ]
    assert role in [rest.get("role") for rest in rests]


def test_call_id_wins_over_the_id_of_the_block():
    """A call and its result pair by the call id, whatever the blocks themselves are called."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "id": "fo_1", "call_id": "c1", "output": "nothing"}
    messages = [{"role": "assistant", "parts": [call]}, {"role": "tool", "parts": [result]}]
    imported = import_lines([chat("a2", 1, messages, [{"role": "assistant", "parts": []}])], "otel")
    (made,), (answered,) = imported.events("tool-call"), imported.events("tool-result")
    assert made["call_id"] == answered["call_id"] == "c1"
    assert made["onrecord"]["rest"]["id"] == "fc_1"


def test_call_id_of_another_kind_is_kept():
    """A call id that is none stays as it is, and the call has none."""
    call = {"type": "tool_call", "id": ["c1"], "name": "look", "arguments": {}}
    imported = import_lines([chat("a2", 1, [{"role": "assistant", "parts": [call]}], [ANSWER])], "otel")
    assert ["c1"] in [told["onrecord"].get("rest", {}).get("id") for told in imported.events("tool-call")]

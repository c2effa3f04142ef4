"""Broken spans: whatever stands in them gives findings, never an exception or a vCon with an error."""

import json

import pytest
from hypothesis import given, settings

from support.native_logs import import_lines, mutations, odd_shapes
from support.spans import ANSWER, FOUND, HELLO, RUN, agent, chat, otlp, said, tool

EVENTS = [
    {
        "name": "gen_ai.choice",
        "time": [1_782_900_001, 5],
        "attributes": {"index": 0, "message": said("assistant", "x")},
    },
    {"name": "gen_ai.client.inference.operation.details", "attributes": {"gen_ai.input.messages": [HELLO]}},
]
PARTS = [
    HELLO,
    ANSWER,
    FOUND,
    said("assistant", {"type": "reasoning", "content": "hm"}, {"type": "blob", "content": "AAAA"}),
]
ONES = {
    "sdk": {**RUN[1], "events": EVENTS, "resource": {"attributes": {"service.name": "finder"}}},
    "otlp": otlp(RUN[2]),
    "run": agent("a1", 0, 5),
    "tool": tool("a3", 2, name="look", call_arguments="{}", call_result=[{"type": "image", "data": "AAAA"}]),
}


@pytest.mark.parametrize("name", ONES)
def test_members_of_any_kind_are_kept_in_spans(name):
    """Each member of a span replaced by each other kind leaves a sound import with all records in it."""
    variants = []
    for number, (_, value) in enumerate(odd_shapes(ONES[name])):
        text = json.dumps(value)
        for known in ("a1", "a3", "a4"):
            text = text.replace(f'Id": "{known}"', f'Id": "{known}{number:05d}"')
        variants.append(json.loads(text))
    imported = import_lines([*variants, chat("z1", 90, [said("user", "still here")], [])], "otel")
    imported.assert_sound()
    assert imported.accounting[0]["records"] >= len(variants) + 1
    assert "still here" in imported.bodies


def test_members_of_any_kind_are_kept_in_messages():
    """Each member of messages and parts replaced by each other kind leaves a sound import."""
    variants = [messages for _, messages in odd_shapes({"messages": PARTS})]
    spans = [
        chat(f"a{number}", number % 50, [], messages.get("messages"))
        for number, messages in enumerate(variants)
    ]
    imported = import_lines(spans, "otel")
    imported.assert_sound()
    assert imported.accounting[0]["mapped"] == len(variants)


LOG = [*RUN[:2], otlp(RUN[2]), RUN[3], {**tool("a5", 4, "a4", name="look"), "events": EVENTS}]


@given(mutations(LOG))
@settings(max_examples=40, deadline=None)
def test_mutated_traces_import(data):
    """A trace with deleted, repeated, swapped and damaged records and bytes imports soundly."""
    import_lines(data, "otel").assert_sound()


def test_deep_and_long_chains_end():
    """400 spans below each other, agents among them, are told in linear time."""
    spans = [
        agent(f"{number:04x}", number % 50, 60, f"{number - 1:04x}" if number else "")
        for number in range(400)
    ]
    imported = import_lines(spans, "otel")
    assert imported.accounting[0]["mapped"] == 400

"""A chat in one object that is cut or damaged loses the damaged part only (native-logs.md section 8, R-07, R-08)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.gemini_logs import HEADER, SESSION, user
from support.native_logs import Imported, import_lines

FORMAT = "gemini-json"
TEXTS = [f"text number {number}" for number in range(6)]
WHOLE = {**HEADER, "messages": [user(f"m{n}", n, text) for n, text in enumerate(TEXTS)], "summary": "A title"}


def run(text: str | bytes, *, name: str = "session.json") -> Imported:
    imported = import_lines(text, FORMAT, name=name)
    imported.assert_sound()
    return imported


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["session.json", "session.jsonl"])
def test_messages_in_front_of_a_cut_survive(indent: int | None, name: str) -> None:
    """What was whole before the cut is imported, the rest is one unreadable record with its place."""
    text = json.dumps(WHOLE, indent=indent)
    cut = text.index(TEXTS[3]) + 4
    imported = run(text[:cut], name=name)
    assert imported.bodies == TEXTS[:3]
    assert [session.agent_session_id for session in imported.sessions] == [SESSION]
    assert imported.accounting[0]["reported"] == imported.codes["truncated-tail"] == 1
    (kept,) = imported.events("unreadable-record")
    assert kept["data"]["offset"] + kept["data"]["bytes"] == cut
    assert kept["data"]["head"].startswith("{")
    assert "m3" in kept["data"]["head"]


@pytest.mark.parametrize(
    ("broken", "code"),
    [("[" * 3000 + "]" * 3000, "too-deep"), ('"a" b', "malformed-line"), ("x", "malformed-line")],
)
def test_one_bad_message_costs_no_other(broken: str, code: str) -> None:
    """Messages behind a damaged one are read too, and so are the members of the object behind the messages."""
    text = json.dumps(WHOLE, indent=2).replace(json.dumps(TEXTS[2]), broken)
    imported = run(text)
    assert imported.bodies == TEXTS[:2] + TEXTS[3:]
    assert imported.codes[code] == 1
    assert imported.accounting[0]["reported"] == 1
    assert imported.vcon["subject"] == "A title"


def test_each_bad_message_is_reported() -> None:
    """Two damaged messages are two unreadable records with a finding each."""
    text = json.dumps(WHOLE, indent=2)
    for number in (1, 4):
        text = text.replace(json.dumps(TEXTS[number]), "x")
    imported = run(text)
    assert imported.bodies == [TEXTS[0], *TEXTS[2:4], TEXTS[5]]
    assert imported.codes["malformed-line"] == imported.accounting[0]["reported"] == 2


def test_cut_header_still_names_the_session() -> None:
    """A session that ends before its first message keeps its id."""
    imported = run(json.dumps(WHOLE, indent=2).partition('"messages"')[0])
    assert [session.agent_session_id for session in imported.sessions] == [SESSION]


def test_several_objects_over_many_lines() -> None:
    """A damaged object costs nothing of what stands behind it, and rubbish behind an object nothing of that (R-06)."""
    second = {**WHOLE, "sessionId": "another", "messages": [user("z", 9, "another text")]}
    whole = json.dumps(WHOLE, indent=2)
    imported = run(
        whole.replace(json.dumps(TEXTS[2]), "x") + "\n" + json.dumps(second, indent=2) + "\nrubbish"
    )
    assert sorted(imported.bodies) == ["another text", *TEXTS[:2], *TEXTS[3:]]
    assert imported.accounting[0]["reported"] == 2


@given(st.integers(0, 900), st.binary(max_size=3), st.integers(0, 40))
@settings(max_examples=25, deadline=None)
def test_any_damage(at: int, inserted: bytes, left_out: int) -> None:
    """Whatever is damaged, the import goes on and the account adds up."""
    text = json.dumps(WHOLE, indent=2).encode()
    run(text[:at] + inserted + text[at + left_out :])

"""Spans become sessions: order, sessions and children, the delta rule, calls and results (native-logs.md 4.9)."""

import json
import random

import pytest

from support.native_logs import import_files, import_lines
from support.spans import ANSWER, FOUND, HELLO, RUN, agent, call, chat, otlp, response, said, span, tool


def told(*spans):
    imported = import_lines(list(spans), "otel")
    imported.assert_sound()
    return imported


class TestOrder:
    def test_spans_that_come_as_they_end_are_told_as_they_began(self):
        """The order of the file does not matter: the vCon's entries are those of the shuffled file."""
        shuffled = RUN.copy()
        random.Random(1).shuffle(shuffled)
        bodies = [told(*spans).bodies for spans in (RUN, shuffled)]
        assert bodies[0] == bodies[1] == ["hello", "let me see", "a stone"]

    def test_the_run_begins_and_ends_the_session(self):
        """The outermost run of an agent gives session-start, session-end and what is known of the agent."""
        imported = told(*RUN)
        events = [event.get("event_type", event["type"]) for event in imported.events()]
        assert events == ["session-start", "tool-call", "tool-result", "session-end"]
        assert imported.vcon["parties"][1]["name"] == "Agent a1"
        assert imported.vcon["sessions"][0]["agent_session_id"] == "talk"
        assert imported.vcon["sessions"][0]["duration"] == 5

    def test_the_parent_tree_is_that_of_the_spans(self):
        """Entries have the ids of their spans and hang below the span above."""
        imported = told(*RUN)
        assert [(one["entry_id"], one["parent_id"]) for one in imported.dialogs] == [
            ("a2", "a1"),
            ("a2#1", "a2"),
            ("a4", "a1"),
        ]

    def test_a_span_above_that_is_not_there_is_named(self):
        """A parent that no file tells of stands in onrecord.parent."""
        imported = told(chat("a2", 1, [HELLO], [], "gone"))
        assert imported.codes["dangling-parent"] == 1
        assert imported.dialogs[0]["onrecord"]["parent"] == "gone"

    def test_spans_above_each_other_end(self):
        """A cycle of parents is broken."""
        imported = told(chat("a2", 1, [HELLO], [], "a3"), chat("a3", 2, [HELLO], [], "a2"))
        assert imported.codes["parent-cycle"] == 1
        assert imported.bodies == ["hello"]


class TestDelta:
    def test_a_repeated_history_is_told_once(self):
        """B-4: what every answer repeats is one Dialog, one call and one result."""
        counts = told(*RUN).counts()
        assert (counts["user_turns"], counts["agent_turns"]) == (1, 2)
        assert (counts["tool_calls"], counts["tool_results"]) == (1, 1)
        assert (counts["responses"], counts["input"], counts["output"]) == (2, 20, 4)

    def test_the_second_of_two_equal_texts_is_new(self):
        """The k-th occurrence of a text in one input is new when fewer than k were seen."""
        ok = said("assistant", "ok")
        go = said("user", "go on")
        imported = told(
            chat("a2", 1, [go], [ok]), chat("a3", 3, [go, ok, go], [ok]), chat("a4", 5, [go, ok, go, ok], [])
        )
        assert imported.bodies == ["go on", "ok", "go on", "ok"]

    def test_equal_texts_in_one_message_count_each(self):
        """A message that says a text twice is known only when the text was told twice."""
        twice = said("user", "again", "again")
        once = said("user", "again")
        assert told(chat("a2", 1, [twice], []), chat("a3", 3, [once, twice], [])).bodies == ["again"] * 3

    def test_an_equal_output_is_always_new(self):
        """Two answers with the same words are two answers."""
        ok = said("assistant", "ok")
        assert told(chat("a2", 1, [HELLO], [ok]), chat("a3", 3, [HELLO], [ok])).bodies == [
            "hello",
            "ok",
            "ok",
        ]

    def test_other_conversations_are_others(self):
        """A text that another conversation holds was not told in this one."""
        other = chat("b2", 2, [HELLO], [], trace="b" * 32, attributes={"gen_ai.conversation.id": "other"})
        assert told(chat("a2", 1, [HELLO], []), other).bodies == ["hello", "hello"]

    def test_calls_without_ids_follow_the_rule_of_texts(self):
        """A repeated call without an id is told once, a second equal call again."""
        bare = said("assistant", {"type": "tool_call", "name": "look", "arguments": {}})
        assert (
            told(chat("a2", 1, [HELLO], [bare]), chat("a3", 3, [HELLO, bare], [bare])).counts()["tool_calls"]
            == 2
        )

    def test_an_id_that_is_used_again_for_another_call_is_kept(self):
        """Servers that count calls from 0 in each answer lose no call."""
        one, two = said("assistant", call("call_0", place="a")), said("assistant", call("call_0", place="b"))
        imported = told(chat("a2", 1, [HELLO], [one]), chat("a3", 3, [HELLO, one], [two]))
        assert [event["input"] for event in imported.events("tool-call")] == [{"place": "a"}, {"place": "b"}]
        assert imported.codes["duplicate-call"] == 1


class TestTools:
    def test_a_call_lasts_from_the_start_to_the_end_of_its_span(self):
        """A tool's span gives the call at its start and the result at its end."""
        run = tool(
            "a3", 2, name="look", call_id="c1", call_arguments='{"place":"here"}', call_result="a stone"
        )
        imported = told(run)
        (made,), (result,) = imported.events("tool-call"), imported.events("tool-result")
        assert (made["time"], result["time"]) == ("2026-07-01T10:00:02Z", "2026-07-01T10:00:03Z")
        assert (made["input"], result["output"], result["status"]) == (
            {"place": "here"},
            "a stone",
            "completed",
        )

    def test_without_a_call_id_the_span_id_is_one(self):
        """Call and result of a span pair by the span's id."""
        imported = told(tool("a3", 2, name="look", call_result="x"))
        assert {event["call_id"] for event in imported.events() if "call_id" in event} == {"a3"}

    def test_a_failed_run_is_an_error(self):
        """Status ERROR gives the status, and the exception as output where there is no result."""
        run = tool("a3", 2, name="look", call_id="c1")
        run["status"] = {"code": 2}
        run["events"] = [{"name": "exception", "attributes": {"exception.message": "no such place"}}]
        (result,) = told(run).events("tool-result")
        assert (result["status"], result["is_error"], result["output"]) == ("error", True, "no such place")

    def test_a_result_that_only_a_message_tells_comes_from_there(self):
        """The span's result counts first, that of the message otherwise."""
        bare = tool("a3", 2, "a1", name="look", call_id="c1")
        (result,) = told(RUN[0], bare, RUN[2]).events("tool-result")
        assert (result["output"], result["status"], result["time"]) == (
            "a stone",
            "completed",
            "2026-07-01T10:00:03Z",
        )

    def test_a_result_that_nobody_tells_is_not_made_up(self):
        """A run without a recorded result ended, and that is all."""
        (result,) = told(tool("a3", 2, name="look", call_id="c1")).events("tool-result")
        assert (result["output"], result["status"]) == ("", "completed")

    def test_arguments_that_are_no_json_are_kept_as_text(self):
        """D-LOG-18: the raw text is the input and stands in rest."""
        imported = told(
            tool("a3", 2, name="look", call_id="c1", call_arguments="over there", call_result="x")
        )
        (made,) = imported.events("tool-call")
        assert made["input"] == made["onrecord"]["rest"]["arguments"] == "over there"
        assert imported.codes["arguments-unparsed"] == 1


class TestSessions:
    def test_a_run_inside_a_run_is_a_child(self):
        """A nested agent is a child session below the call that started it, and the prompt is its parent's."""
        spans = [
            agent("a1", 0, 9, gen_ai_conversation_id="talk"),
            chat("a2", 1, [HELLO], [said("assistant", call("c1", "ask"))], "a1"),
            tool("a3", 2, "a1", name="ask", call_id="c1", call_result="done"),
            agent("b1", 3, 6, "a3", gen_ai_conversation_id="talk"),
            chat("b2", 4, [said("user", "dig")], [said("assistant", "dug")], "b1"),
        ]
        vcon = told(*spans).vcon
        parent, child = vcon["sessions"]
        assert parent["sessions"] == [{"session": 1, "type": "child", "description": "Agent b1"}]
        assert (child["agent_session_id"], child["format"]) == ("b1", "autonomous")
        dialogs = {one["body"]: one["parties"] for one in vcon["dialog"]}
        assert dialogs == {"hello": [0, 1], "dig": [1, 2], "dug": [2, 1]}
        (start,) = [event for event in vcon["events"] if event["entry_id"] == "b1"]
        (made,) = [event for event in vcon["events"] if event["type"] == "tool-call"]
        assert start["parent_id"] == made["entry_id"]

    @pytest.mark.parametrize(
        ("own", "above", "expected"),
        [
            ({"gen_ai.conversation.id": "x", "session.id": "y"}, {}, "x"),
            ({"session.id": "y"}, {"gen_ai.conversation.id": "z"}, "y"),
            ({}, {"session.id": "z"}, "z"),
            ({}, {}, "0123456789abcdef0123456789abcdef"),
        ],
    )
    def test_the_nearest_id_names_the_session(self, own, above, expected):
        """Own conversation, own session, an ancestor's, else the trace."""
        spans = [span("a2", "x", 1, 2, "a1", attributes={"gen_ai.operation.name": "chat", **own})]
        spans.append(span("a1", "y", 0, 3, attributes=above))
        names = {session.agent_session_id for session in told(*spans).sessions}
        assert expected in names

    def test_any_id_in_the_trace_names_what_has_none(self):
        """A span without an id of its own or above goes with the conversation of its trace."""
        imported = told(chat("a2", 1, [HELLO], []), span("a9", "GET /", 2, 3))
        assert [session.agent_session_id for session in imported.sessions] == ["talk"]

    def test_the_messages_of_a_run_count_only_where_no_answer_tells_them(self):
        """An agent's span that holds the messages itself gives them; beside answers they stay attributes."""
        messages = {
            "gen_ai.input.messages": json.dumps([HELLO]),
            "gen_ai.output.messages": json.dumps([said("assistant", "done")]),
        }
        run = agent("a1", 0, 5, gen_ai_conversation_id="talk")
        run["attributes"] |= messages
        assert told(run).bodies == ["hello", "done"]
        imported = told(run, chat("a2", 1, [HELLO], [said("assistant", "done")], "a1"))
        assert imported.bodies == ["hello", "done"]
        (start,) = imported.events("session-start")
        assert start["onrecord"]["rest"]["attributes"].items() >= messages.items()

    def test_a_conversation_may_be_told_by_several_files(self, tmp_path):
        """R-17: one session from two files; the history and the spans that both hold are told once."""
        paths = [tmp_path / "1.jsonl", tmp_path / "2.jsonl"]
        for path, spans in zip(paths, (RUN[:2], [RUN[1], *RUN[2:]]), strict=True):
            path.write_text("\n".join(json.dumps(otlp(one)) for one in spans))
        imported = import_files(paths, "otel")
        imported.assert_sound()
        assert sorted(imported.bodies) == ["a stone", "hello", "let me see"]
        assert imported.accounting[1]["of_duplicates"] == {"duplicate-entry": 1}


class TestDuplicates:
    def test_a_span_that_is_there_twice_is_one(self):
        """R-16: equal content is a duplicate, other content is reported, and the first one stays."""
        later = {**RUN[1], "name": "changed"}
        imported = told(*RUN, RUN[0], later)
        assert imported.counts()["responses"] == 2
        assert imported.codes["duplicate-entry"] == imported.codes["duplicate-entry-differs"] == 1
        assert imported.accounting[0]["of_duplicates"] == {"duplicate-entry": 2}


class TestUsage:
    def test_usage_of_an_answer_with_text_stands_on_the_text(self):
        """D-LOG-03: on the first text of the output, with the native members."""
        (_, first, _) = told(*RUN).dialogs
        assert first["token_usage"] == {
            "input": 10,
            "output": 2,
            "total": 12,
            "native": {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2},
        }

    def test_usage_of_an_answer_without_text_is_an_event(self):
        """D-LOG-02: a response of calls only has a token-count with the response's id."""
        only = chat(
            "a2", 1, [HELLO], [said("assistant", call("c1"))], attributes={"gen_ai.response.id": "r1"}
        )
        (count,) = told(only).events("token-count")
        assert (count["data"]["scope"], count["data"]["response_id"]) == ("response", "r1")

    def test_the_sum_of_a_run_is_not_added(self):
        """B-4: usage on the agent's span repeats that of its answers; without answers it is the turn's."""
        run = agent("a1", 0, 5, gen_ai_conversation_id="talk")
        run["attributes"] |= {"gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 4}
        assert told(*RUN[:3], run).counts()["input"] == 20
        alone = told(run)
        assert alone.counts()["input"] == 20
        assert alone.sessions[0].usage_totals()[1] == "turns"


def test_nothing_of_a_span_is_lost():
    """A-05: attributes, resource, scope, status, links and events without a home stand in rest."""
    native = otlp(
        chat("a2", 1, [HELLO], [ANSWER, FOUND], attributes={"vendor.note": "written in the margin"})
    )
    spans = native["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans[0]["links"] = [{"traceId": "feedfeedfeedfeed"}]
    spans[0]["events"] = [{"name": "first token", "timeUnixNano": "1782900001500000000", "attributes": []}]
    text = json.dumps(told(native).vcon)
    for expected in (
        "written in the margin",
        "feedfeedfeedfeed",
        "first token",
        "finder",
        "invented",
        "1782900002000000000",
    ):
        assert expected in text


def test_other_spans_are_kept_whole():
    """D-LOG-26: what is neither agent, answer nor tool is an event with the span as its data."""
    imported = told(*RUN, span("a9", "GET /", 2, 3, "a1", attributes={"http.request.method": "GET"}))
    (event,) = imported.events("span/GET /")
    assert event["data"]["attributes"] == {"http.request.method": "GET"}


def test_a_failed_answer_says_so():
    """An answer with status ERROR gives an error event."""
    failed = chat("a2", 1, [HELLO], [], attributes={"error.type": "timeout"})
    failed["status"] = {"code": 2, "message": "no answer in time"}
    (event,) = told(failed).events("error")
    assert event["data"] == {"message": "no answer in time", "type": "timeout"}


def test_records_without_times_are_marked():
    """D-LOG-04: flat attribute maps have no times; what is written is derived and says so."""
    flat = RUN[0]["attributes"]
    assert all(one["onrecord"]["time"] == "mtime" for one in told(flat).dialogs)


def test_children_whose_ids_are_used_by_messages_stay_apart():
    """A result part in a child session does not answer the parent's call of the same id."""
    spans = [
        agent("a1", 0, 9, gen_ai_conversation_id="talk"),
        chat("a2", 1, [HELLO], [said("assistant", call("c1"))], "a1"),
        agent("b1", 3, 6, "a1"),
        chat("b2", 4, [said("tool", response("c1", "inner"))], [], "b1"),
    ]
    imported = told(*spans)
    assert imported.codes["call-without-result"] == imported.codes["result-without-call"] == 1

"""What ai_agent says beyond its tables: registered names, entry trees, pairs, actors, repositories."""

import pytest

from onrecord.base.namespaces import AI_AGENT_EXTENSION, TOOL_INVOCATION_EXTENSION
from onrecord.record.checks.event_tables import EVENT
from onrecord.record.checks.tables import DIALOG, PARTY, SESSION, VCON
from onrecord.record.vcon.event_types import AI_EVENTS
from support.vcons import UUID, faults, findings, vcon


def entry(entry_id, parent_id=None, session=0, **members):
    made = {
        "type": "reasoning",
        "time": "2026-11-02T12:00:01Z",
        "session": session,
        "party": 0,
        "content": "x",
        "entry_id": entry_id,
        "parent_id": parent_id,
        **members,
    }
    return {name: value for name, value in made.items() if value is not None}


def record(*events, sessions=1, **members):
    made = vcon(*events, extensions=["ai_agent"], **members)
    made["sessions"] = [dict(made["sessions"][0]) for _ in range(sessions)]
    return made


class TestNames:
    @pytest.mark.req("AA-019", "AA-158", "TI-016", "TI-213")
    def test_extensions(self):
        """The two names are spelled as registered: one with an underscore, one with a hyphen."""
        assert (AI_AGENT_EXTENSION, TOOL_INVOCATION_EXTENSION) == ("ai_agent", "tool-invocation")

    @pytest.mark.req("AA-092", "AA-159", "AA-160", "AA-161", "AA-162", "AA-163", "AA-164")
    def test_members(self):
        """Event types and parameters are those that the draft registers, object by object."""
        assert AI_EVENTS == ("tool-call", "tool-result", "reasoning", "system-event")
        assert VCON.ai_agent == {"recording_agent", "vcs", "file_attribution"}
        assert PARTY.ai_agent == {"agent_meta"}
        assert SESSION.ai_agent == {"agent_session_id", "format", "environment"}
        assert DIALOG.ai_agent == {"model_id", "token_usage", "entry_id", "parent_id"}
        assert {
            "tool_name", "input", "call_id", "output", "status", "is_error", "content", "encrypted", "subject",
            "event_type", "data", "entry_id", "parent_id",
        } <= set(EVENT.kinds)  # fmt: skip

    @pytest.mark.parametrize(
        ("kind", "own"),
        [
            pytest.param("tool-call", {"tool_name": "x", "input": 1}, marks=pytest.mark.req("AA-030")),
            pytest.param("tool-result", {"output": 1, "status": "x"}, marks=pytest.mark.req("AA-031")),
            pytest.param("reasoning", {"content": 1}, marks=pytest.mark.req("AA-032")),
            pytest.param("system-event", {"event_type": "x"}, marks=pytest.mark.req("AA-033")),
        ],
    )
    def test_further_members(self, kind, own):
        """Another extension may add members to the four events: they are noted, kept, and no fault."""
        event = {"type": kind, "time": "2026-11-02T12:00:01Z", "session": 0, "party": 0, "more": 1, **own}
        made = record(event)
        assert ("unknown-member", "info", "/events/0/more") in findings(made)
        assert faults(made) == []

    def test_vendor_member(self):
        """Our own member is known where our extension is listed, and noted where it is not."""
        made = record(entry("a", onrecord={"time": "next"}))
        assert ("unknown-member", "info", "/events/0/onrecord") in findings(made)
        made["extensions"].append("dev.onrecord")
        assert findings(made) == []


class TestTree:
    @pytest.mark.req("AA-090", "AA-091")
    def test_duplicate_and_dangling(self):
        """An id occurs once per session, and a parent exists in it."""
        assert faults(record(entry("a"), entry("a"), entry("b", "c"))) == [
            ("entry-id-duplicate", "warning", "/events/1/entry_id"),
            ("parent-id-dangling", "warning", "/events/2/parent_id"),
        ]

    def test_same_id_in_another_session(self):
        """Sessions are scopes of their own."""
        assert faults(record(entry("a"), entry("a", session=1), sessions=2)) == []
        assert ("parent-id-dangling", "warning", "/events/1/parent_id") in faults(
            record(entry("a"), entry("b", "a", session=1), sessions=2)
        )

    def test_parent_session(self):
        """The first entry of a sub-agent may point at the call that started it, in the session above."""
        made = record(entry("a"), entry("b", "a", session=1), sessions=2)
        made["sessions"][0]["sessions"] = [{"session": 1, "type": "child"}]
        assert faults(made) == []

    def test_redacted_parents_may_be_gone(self):
        """In a redacted vCon a parent may have been removed."""
        made = record(entry("b", "gone"), redacted_from={"type": "x", "uuid": UUID})
        assert faults(made) == []

    @pytest.mark.parametrize(
        ("pairs", "places"),
        [
            ([("a", "a")], [0]),
            ([("a", "b"), ("b", "a"), ("c", "a")], [0, 1]),
            ([("a", "b"), ("b", "c"), ("c", "a")], [0, 1, 2]),
        ],
    )
    def test_cycles(self, pairs, places):
        """A cycle is an error on its own entries, not on those that hang below it."""
        expected = [("parent-id-cycle", "error", f"/events/{place}/parent_id") for place in places]
        assert faults(record(*(entry(*pair) for pair in pairs))) == expected


class TestActors:
    @pytest.mark.req("AA-081")
    def test_model_of_a_message(self):
        """A model stands on messages of agents, not of people."""
        message = {"type": "text", "start": "2026-11-02T12:00:00Z", "parties": 0, "mediatype": "text/plain",
                   "encoding": "none", "body": "x", "model_id": "m"}  # fmt: skip
        made = record(dialog=[message])
        made["sessions"][0]["dialog"] = [0]
        assert faults(made) == []
        made["parties"] = [{"type": "person", "name": "x"}]
        assert faults(made) == [("model-id-on-user", "warning", "/dialog/0/model_id")]

    def test_unknown_actor(self):
        """An entry whose party is {} says that nobody can be held to it."""
        assert faults(record(entry("a"), parties=[{}])) == [("actor-unresolved", "warning", "/events/0")]

    def test_selective_recording(self):
        """What is not recorded is announced, and the announcement is noted."""
        made = record(
            {"type": "system-event", "time": "2026-11-02T12:00:01Z", "session": 0, "party": 0,
             "event_type": "recording-policy", "data": {"omitted": ["reasoning"]}}
        )  # fmt: skip
        assert findings(made) == [("recording-selective", "info", "/events/0")]

    def test_pairs(self):
        """A result without call and doubled ids are warnings, a call without result is a note."""
        call = {"type": "tool-call", "time": "2026-11-02T12:00:01Z", "session": 0, "party": 0, "tool_name": "x",
                "input": {}, "call_id": "a"}  # fmt: skip
        result = {"type": "tool-result", "time": "2026-11-02T12:00:02Z", "session": 0, "party": 0, "output": 1,
                  "call_id": "b"}  # fmt: skip
        found = findings(record(call, call, result))
        assert found == [
            ("tool-call-open", "info", "/events/0"),
            ("call-id-duplicate", "warning", "/events/1/call_id"),
            ("call-id-dangling", "warning", "/events/2/call_id"),
        ]

    @pytest.mark.req("AA-120", "AA-122")
    def test_repository(self):
        """A repository is named without a password; its other members are texts."""
        assert faults(record(vcs={"type": "git", "revision": 5})) == [
            ("type-mismatch", "error", "/vcs/revision")
        ]
        assert faults(record(vcs={"type": "git", "repository": "https://bot:pw@git.example.com/a"})) == [
            ("url-userinfo", "warning", "/vcs/repository")
        ]

    def test_home(self):
        """A path with a user's name is noted."""
        made = record()
        made["sessions"][0]["environment"] = {"working_dir": "/home/someone/x", "sandboxes": ["/Users/other"]}
        assert findings(made) == [
            ("home-path", "info", "/sessions/0/environment/working_dir"),
            ("home-path", "info", "/sessions/0/environment/sandboxes/0"),
        ]

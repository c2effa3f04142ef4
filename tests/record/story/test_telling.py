"""The story as data: every event once, each in its session, whatever the version and the extensions."""

import json
import random

import pytest

from onrecord.base.errors import OnrecordError
from onrecord.record.forms import open_form
from onrecord.record.story import OperationStory, tell
from onrecord.record.vcon.model import Vcon
from support import hostile
from support.data import shared_data
from support.vcons import answer, decision, invocation, standing, text, vcon


def story(document):
    return tell(Vcon.read(text(document)))


def told(document):
    return story(document).to_json()


def agent_event(kind, second, **members):
    return {"type": kind, "time": f"2026-11-02T12:00:{second:02d}Z", "session": 0, "party": 0, **members}


def items(session):
    return [
        ("operation", one.item.summary.operation_id)
        if isinstance(one.item, OperationStory)
        else (one.item.place, one.item.index)
        for one in session.items
    ]


class TestSessions:
    def test_in_time_order(self):
        """Messages, events and operations of a session stand in the order of their times."""
        made = story(
            vcon(
                answer("tool-result", 9),
                invocation(5),
                agent_event("hold", 7),
                dialog=[{"type": "text", "start": "2026-11-02T12:00:06Z", "parties": 0, "body": "x"}],
                sessions=[{"start": "2026-11-02T12:00:00Z", "dialog": [0]}],
            )
        )
        assert items(made.sessions[0]) == [("operation", "a"), ("dialog", 0), ("events", 2)]
        assert made.elsewhere is None

    def test_equal_times(self):
        """Of one instant, imported objects stand as the native log had them; others keep their positions."""

        def from_log(record, **members):
            return {"onrecord": {"src": [0, record, 0]}, **members}

        def texts(*records):
            return [
                from_log(one, type="text", start="2026-11-02T12:00:06Z", parties=0, body="x")
                for one in records
            ]

        events = [from_log(record, **agent_event("reasoning", 6, content="y")) for record in (4, 2)]
        sessions = [{"start": "2026-11-02T12:00:06Z", "dialog": [0, 1]}]
        made = story(vcon(*events, dialog=texts(1, 3), sessions=sessions))
        order = [("dialog", 0), ("events", 1), ("dialog", 1), ("events", 0)]
        assert items(made.sessions[0]) == order
        for odd in (None, {}, {"src": "x"}, {"src": [0, None, 0]}, {"src": [0, 1]}):
            plain = [{**event, "onrecord": odd} for event in events]
            made = story(vcon(*plain, dialog=texts(1, 3), sessions=sessions))
            assert items(made.sessions[0])[:2] == [("events", 0), ("events", 1)]

    def test_virtual(self):
        """A file without sessions is told as one conversation (D-05)."""
        made = story({"vcon": "0.4.0", "uuid": "x", "parties": [{"tel": "+12025550101"}],
                      "dialog": [{"type": "text", "start": "2026-11-02T12:00:06Z", "parties": 0}]})  # fmt: skip
        assert [one.is_virtual for one in made.sessions] == [True]
        assert items(made.sessions[0]) == [("dialog", 0)]

    def test_in_no_session(self):
        """What names no session of the file is told apart, not lost."""
        made = story(vcon(agent_event("hold", 1), agent_event("unhold", 2, session=7), {"type": "mute"}))
        assert items(made.elsewhere) == [("events", 1), ("events", 2)]

    def test_in_several_sessions(self):
        """An entry of several sessions is told in the first one and names them all."""
        made = story(vcon(agent_event("hold", 1, session=[1, 0]), sessions=[{}, {}]))
        assert [items(one) for one in made.sessions] == [[], [("events", 0)]]
        assert made.entries[0].sessions == (1, 0)

    def test_sub_agent(self):
        """A contained session names its parent and the entry from which it came (AA-070, D-37)."""
        made = story(
            vcon(
                agent_event("tool-call", 1, tool_name="Task", input={}, call_id="c", entry_id="e1"),
                agent_event("reasoning", 2, content="x", session=1, entry_id="s1", parent_id="e1"),
                extensions=["ai_agent"],
                sessions=[{"sessions": [{"session": 1, "type": "child"}]}, {}],
            )
        )
        assert (made.sessions[1].parent, made.sessions[1].spawned_by) == (0, "e1")
        assert made.sessions[0].children == (1,)


class TestOneCallOneEntry:
    def test_both_extensions(self):
        """Call, decision, attempts and result of one call are one entry, and counted once (D-69)."""
        made = story(
            vcon(
                agent_event("tool-call", 1, tool_name="now", input={}, call_id="a"),
                decision(second=1),
                invocation(2),
                answer("tool-result", 3),
                agent_event("tool-result", 4, output="x", call_id="a"),
                extensions=["ai_agent", "tool-invocation"],
            )
        )
        assert items(made.sessions[0]) == [("events", 0)]
        assert made.totals["tool_calls"] == 1
        assert made.totals["outcomes"] == {"completed": 1}
        assert made.entries[0].operation.summary.operation_id == "a"

    def test_merged(self):
        """A merged result is an event of its operation and of its call, and told once (D-68)."""
        merged = {**answer("tool-result", 3), "output": "x", "call_id": "a"}
        made = story(
            vcon(agent_event("tool-call", 1, tool_name="now", input={}, call_id="a"), invocation(2), merged)
        )
        assert [one.index for one in made.entries] == [0]
        assert made.totals["tool_calls"] == 1

    def test_result_without_call(self):
        """A result of the model's view is told, although the call in it is only that of the host."""
        made = story(vcon(invocation(1), agent_event("tool-result", 2, output="x", call_id="a")))
        assert [(one.kind, one.index) for one in made.entries] == [("tool-result", 1)]
        assert made.totals["tool_calls"] == 1

    def test_ids_are_those_of_the_session(self):
        """A result's id in one session says nothing about the same id in another one (D-37)."""
        events = [
            agent_event("tool-call", 1, tool_name="now", input={}, call_id="a", entry_id="1"),
            agent_event("tool-result", 2, output="x", call_id="a", entry_id="2"),
            agent_event("reasoning", 3, session=1, content="x", entry_id="1"),
            agent_event("reasoning", 4, session=1, content="y", entry_id="2"),
            agent_event("reasoning", 5, session=1, content="z", entry_id="3", parent_id="2"),
            agent_event("reasoning", 6, session=1, content="z", entry_id="4", parent_id="1"),
            agent_event("reasoning", 7, session=1, content="z", entry_id="5", parent_id="1"),
        ]
        made = story(vcon(*events, sessions=[{}, {}]))
        assert [(one.item.entry_id, one.depth) for one in made.sessions[1].items] == [
            ("1", 0), ("4", 1), ("5", 1), ("2", 0), ("3", 0)
        ]  # fmt: skip

    def test_without_operation(self):
        """A tool event that belongs to no operation is an entry."""
        made = story(
            vcon(answer("tool-result", 1, operation_id=7), {"type": "tool-timeout"}, agent_event("x", 2))
        )
        assert [one.index for one in made.entries] == [0, 1, 2]

    def test_decision_about_something_else(self):
        """A decision about another kind of operation is told, although no operation has it (D-43)."""
        made = story(vcon(decision(operation="delegation"), standing(operation="delegation")))
        assert [(one.kind, one.state) for one in made.entries] == [("policy-decision", "allowed")] * 2

    @pytest.mark.parametrize("seed", range(40))
    def test_every_event_once(self, seed):
        """In damaged records too, each event that is an object is told in one place."""
        source = random.Random(seed)
        document = hostile.mutated(
            source.choice([hostile.tool_conversation, hostile.agent_conversation])(), source, steps=6
        )
        try:
            made = tell(Vcon.read(json.dumps(document).encode()))
        except OnrecordError:
            return
        events = document.get("events")
        events = events if isinstance(events, list) else []
        places = [line.index for one in made.operations for line in one.lines]
        places += [one.line.index for one in made.standing]
        places += [one.index for one in made.entries if one.place == "events"]
        places += [
            one.call.result for one in made.entries if one.call is not None and one.call.result is not None
        ]
        places += [
            one.call.result
            for one in made.operations
            if one.call is not None and one.call.call is None and one.call.result is not None
        ]
        assert set(places) == {
            index for index, event in enumerate(events) if isinstance(event, dict) and event
        }
        merged = {
            index for index, event in enumerate(events) if isinstance(event, dict) and "operation_id" in event
        }
        once = [place for place in places if place not in merged]
        assert len(once) == len(set(once))


class TestFacts:
    def test_standing(self):
        """A standing decision tells how many attempts it governed, and what replaced it."""
        made = told(
            vcon(standing("allowed", 0), invocation(1), standing("disallowed", 2), invocation(3, attempt=2))
        )
        assert [(one["governed"], one["replaced_by"]) for one in made["standing_decisions"]] == [
            (1, 2),
            (1, None),
        ]

    def test_tokens(self):
        """Token usage is added up, and numbers that no counter reaches are left out."""
        dialogs = [
            {"type": "text", "token_usage": {"input": 10, "output": 2, "cost": 0.5}},
            {"type": "text", "token_usage": {"input": 5, "output": -1, "total": 2**80}},
            {"type": "text", "token_usage": [1]},
        ]
        assert told(vcon(dialog=dialogs))["totals"]["token_usage"] == {"input": 15, "output": 2, "cost": 0.5}

    def test_token_counts(self):
        """Responses without a text count by their events; turns and sessions only where no response is told."""

        def event(scope, usage):
            data = {"scope": scope, "usage": usage}
            return agent_event("system-event", 1, event_type="token-count", data=data)

        text = {"type": "text", "token_usage": {"input": 10}}
        turn, whole = event("turn", {"input": 100}), event("session", {"input": 1000})
        odd = [
            event("news", {"input": 1}),
            event([], {"input": 1}),
            event("turn", 5),
            event("response", None),
        ]
        events = [event("response", {"input": 3}), turn, whole, *odd]
        for dialogs, told_events, expected in (
            ([text], events, 13),
            ([], [turn, whole, *odd], 100),
            ([], [whole], 1000),
            ([text], [turn, whole], 10),
        ):
            totals = told(vcon(*told_events, dialog=dialogs))["totals"]
            assert totals["token_usage"] == {"input": expected}

    def test_redacted(self):
        """Placeholders are counted, and a message without its words says that they were removed (D-19, D-20)."""
        made = told(
            vcon(
                {},
                {},
                agent_event("tool-call", 1, tool_name="now", input=None),
                redacted_from={"uuid": "u", "type": "PII masked"},
                dialog=[{}, {"type": "text", "start": "2026-11-02T12:00:00Z", "parties": 0}],
            )
        )
        assert made["removed"] == {"dialog": 1, "events": 2}
        assert made["prior"] == {"kind": "redacted", "uuid": "u", "type": "PII masked"}
        assert [one.get("state") for one in made["entries"]] == ["removed", "unfinished"]

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("redacted_from", "redacted"),
            ("redacted", "redacted"),
            ("amended_from", "amended"),
            ("amended", "amended"),
            ("appended", "amended"),
        ],
    )
    def test_prior(self, name, kind):
        """The reference to the version before is read under each of its names; an empty one is none."""
        assert told(vcon(**{name: {"uuid": "u"}}))["prior"]["kind"] == kind
        assert told(vcon(**{name: {}}))["prior"] is None

    def test_legacy_transfer(self):
        """Transfers and key presses of older versions are told, also under old names; -1 is none (record.md 1.3)."""
        made = told(
            {
                "vcon": "0.0.1",
                "uuid": "x",
                "parties": [{"name": "A"}, {"name": "B"}, {"name": "C"}],
                "dialog": [
                    {"type": "recording", "parties": [0, 1], "start": "2026-11-02T12:00:00Z", "mimetype": "audio/x-wav",
                     "party_history": [{"event": "dtmfdown", "dtmf": "5", "party": 0, "time": "2026-11-02T12:00:01Z"}]},
                    {"type": "transfer", "transferor": 1, "transferee": 0, "transfer-target": 2, "original": [0],
                     "target-dialog": -1, "start": "2026-11-02T12:00:02Z"},
                ],
            }
        )  # fmt: skip
        assert [one["what"] for one in made["entries"]] == [
            "A, B: recording, audio/x-wav",
            "A: keydown 5",
            "B: transfer of A to C, from dialog 0",
        ]

    def test_long_names_are_not_repeated(self):
        """A party's name of a megabyte is cut, since each of its entries repeats it."""
        made = vcon(*[agent_event("hold", 1)] * 200, parties=[{"name": "x" * 1_000_000}])
        assert len(json.dumps(told(made))) < 200_000

    def test_many_sessions_for_one_dialog(self):
        """Sessions that all list one dialog with a long history make no product of the two."""
        history = [{"event": "hold", "party": 0, "time": "2026-11-02T12:00:01Z"}] * 1_000
        made = vcon(sessions=[{"dialog": [0]}] * 1_000, dialog=[{"type": "text", "party_history": history}])
        assert len(json.dumps(told(made))) < 1_000_000


class TestSharedFiles:
    @pytest.mark.parametrize("name", ["ai-agent-example", "ai-agent-redacted", "both-extensions"])
    def test_agent_files(self, name):
        """Every tool call of the shared agent files is told once."""
        document = json.loads(shared_data("vcon", f"{name}.json").read_bytes())
        calls = sum(event.get("type") == "tool-call" for event in document["events"])
        assert told(document)["totals"]["tool_calls"] == calls

    @pytest.mark.req("AA-178")
    def test_expected_tree(self):
        """Sessions, entries, roots and children of the shared example are the expected ones."""
        document = json.loads(shared_data("vcon", "ai-agent-example.json").read_bytes())
        expected = json.loads(shared_data("vcon", "ai-agent-example.expected.json").read_bytes())
        made = told(document)
        members = ("index", "entries", "roots", "children")
        assert [{one: session[one] for one in members} for session in made["sessions"]] == expected[
            "sessions"
        ]
        assert made["tool_pairs"] == expected["tool_pairs"]

    def test_expected_operations(self):
        """The operations of the shared flow are the expected ones."""
        document = json.loads(shared_data("vcon", "tool-invocation-flow.json").read_bytes())
        expected = json.loads(shared_data("vcon", "tool-invocation-flow.expected.json").read_bytes())
        for made, wanted in zip(told(document)["operations"], expected["operations"], strict=True):
            for own, other in zip(made["attempts"], wanted["attempts"], strict=True):
                assert own.items() >= other.items()
            assert made.items() >= {**wanted, "attempts": made["attempts"]}.items()

    def test_all_are_told(self):
        """Every file of the shared data that can be opened has a story that is JSON."""
        count = 0
        for path in sorted(shared_data("vcon").rglob("*")):
            if path.suffix not in (".vcon", ".json"):
                continue
            try:
                form = open_form(path.read_bytes())
            except OnrecordError:
                continue
            if form.payload is not None:
                json.dumps(tell(Vcon.of_document(form.payload)).to_json())
                count += 1
        assert count > 60

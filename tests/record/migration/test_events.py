"""Events from transfer dialogs and from the history of parties."""

import pytest

from support.legacy import call, changes, migrated, old_vcon, result, turned_back
from support.vcons import faults

START = "2026-05-04T09:05:00Z"
CALLS = [call("2026-05-04T09:00:00Z", 100), call("2026-05-04T09:01:00Z", 30), call("2026-05-04T09:06:00Z", 9)]
ROLES = {"transferor": 1, "transferee": 0, "transfer_target": 2}
PARTIES = [{"name": "Customer"}, {"name": "Clerk"}, {"name": "Expert"}]


def transfer(**members):
    """A vCon with three calls and one transfer of the first."""
    dialog = {"type": "transfer", "start": START, **ROLES, "original": 0, **members}
    dialog = {name: value for name, value in dialog.items() if value is not None}
    return old_vcon(parties=PARTIES, dialog=[*CALLS, dialog])


def told(document):
    """The events of the result, shortened: type, session, consultation, target."""
    return [
        (event["type"], event["sessions"], event.get("consultation"), event.get("target_session"))
        for event in result(document).get("events", [])
    ]


class TestTransfers:
    @pytest.mark.parametrize(
        ("members", "events"),
        [
            (
                {"consultation": 1, "target_dialog": 2},
                [("consultation-start", 0, 1, None), ("consultative-transfer", 0, 1, 2)],
            ),
            ({"target_dialog": 2}, [("blind-transfer", 0, None, 1)]),
            ({"consultation": 1}, [("consultation-start", 0, 1, None), ("transfer-abandoned", 0, 1, None)]),
            ({}, [("transfer-abandoned", 0, None, None)]),
            ({"target-dialog": 2, "target_dialog": None}, [("blind-transfer", 0, None, 1)]),
            ({"target_dialog": [2]}, [("blind-transfer", 0, None, 1)]),
        ],
    )
    def test_cases(self, members, events):
        """With and without consultation and target: each case of the core draft has its events."""
        document = transfer(**members)
        assert told(document) == events
        assert faults(result(document)) == []

    def test_members(self):
        """The events name who transfers whom to whom; a consultation has the time of its call."""
        first, second = result(transfer(consultation=1, target_dialog=2))["events"]
        roles = {"party": 1, "transferee": 0, "transfer_target": 2}
        assert first == {
            "type": "consultation-start",
            "time": "2026-05-04T09:01:00Z",
            "sessions": 0,
            "consultation": 1,
            **roles,
        }
        assert second == {
            "type": "consultative-transfer",
            "time": START,
            "sessions": 0,
            "consultation": 1,
            "target_session": 2,
            **roles,
        }

    def test_dialog_stays(self):
        """The transfer dialog stays at its place, in the session of the original call, which covers it."""
        done = result(transfer(target_dialog=2))
        assert done["dialog"][3]["type"] == "transfer"
        assert done["sessions"][0] == {
            "start": "2026-05-04T09:00:00Z",
            "duration": 300,
            "parties": [0, 1],
            "dialog": [0, 3],
        }

    @pytest.mark.parametrize("unknown", [-1, [-1]])
    def test_unknown_calls(self, unknown):
        """-1 goes from the dialog; the events name a placeholder session for the call that is not known."""
        document = transfer(original=unknown, consultation=unknown, target_dialog=unknown)
        done = result(document)
        assert not {"original", "consultation", "target_dialog"} & set(done["dialog"][3])
        assert [place for place, item in enumerate(done["sessions"]) if item == {}] == [0, 1, 2]
        assert told(document) == [("consultative-transfer", 0, 1, 2)]
        assert faults(done) == []
        assert turned_back(migrated(document))["dialog"] == document["dialog"]

    @pytest.mark.parametrize("original", [3, 9, None])
    def test_no_call(self, original):
        """The transfer itself, an index without a dialog, and none are no call."""
        assert {} in result(transfer(original=original))["sessions"]

    def test_unknown_parties(self):
        """An unknown party is an empty one at the end; who an abandoned transfer was for need not be known."""
        document = transfer(transferee=-1, transferor=None, transfer_target=None, target_dialog=2)
        done = result(document)
        assert done["parties"] == [*PARTIES, {}, {}, {}]
        assert faults(done) == []
        assert len(result(transfer(transferee=-1, transfer_target=None))["parties"]) == 4
        assert turned_back(migrated(document))["parties"] == PARTIES

    def test_dangling_party(self):
        """Where an index of a party leads nowhere, no party is added: the index would then lead to it."""
        document = transfer(transferee=None, target_dialog=2)
        document["dialog"][0] = {**CALLS[0], "parties": [0, 3]}
        assert result(document)["parties"] == PARTIES
        assert ("transfer-kept", "/dialog/3") in changes(document)

    def test_same_call_twice(self):
        """Transfers of one call share its session; the target of one may be the original of the next."""
        document = transfer(target_dialog=2)
        document["dialog"].append({**document["dialog"][3], "original": 2, "target_dialog": 1})
        assert told(document) == [("blind-transfer", 0, None, 1), ("blind-transfer", 1, None, 2)]

    def test_several_consultations(self):
        """Consultations follow each other in time; the transfer names the last."""
        document = transfer(consultation=[2, 1], target_dialog=2)
        assert told(document) == [
            ("consultation-start", 0, 2, None),
            ("consultation-start", 0, 1, None),
            ("consultative-transfer", 0, 1, 1),
        ]

    def test_repeated_consultation(self):
        """A consultation that is named several times is one, and events are made of no more than people hold."""
        assert len(told(transfer(consultation=[1] * 9, target_dialog=2))) == 2
        document = old_vcon(
            parties=PARTIES, dialog=[*CALLS * 6, {**transfer()["dialog"][3], "consultation": [*range(17)]}]
        )
        assert told(document) == []
        assert ("transfer-kept", "/dialog/18") in changes(document)

    @pytest.mark.parametrize(
        "members",
        [{"transferee": [0, 1]}, {"target_dialog": [1, 2]}, {"start": None}, {"start": "soon"}],
    )
    def test_kept(self, members):
        """Several parties or targets, and no time at all, cannot be told by events; the dialog says it still."""
        document = transfer(**members)
        assert told(document) == []
        assert ("transfer-kept", "/dialog/3") in changes(document)
        assert {} not in result(document)["sessions"]

    def test_time_of_the_target(self):
        """Without a time of its own a transfer has that of the call it led to, and the report says so."""
        document = transfer(start=None, target_dialog=2)
        assert result(document)["events"][0]["time"] == "2026-05-04T09:06:00Z"
        change = next(item for item in migrated(document).report.changes if item.code == "transfer-told")
        assert change.data == {"dialog": 3, "time_from": "target_dialog"}

    def test_set_as_original(self):
        """A call that is recorded in a set has the session of the set."""
        document = transfer(original=1)
        document["dialog"][0] = {"type": "recording-set", "recordings": [1]}
        assert result(document)["sessions"][0]["dialog"] == [0, 1, 3]

    def test_sessions_there(self):
        """Where there are sessions, transfers are told by events already, or by nobody."""
        document = transfer(target_dialog=2) | {"sessions": [{"dialog": [0, 1, 2, 3]}]}
        assert told(document) == []


ENTRY = {"party": 0, "time": "2026-05-04T09:00:05Z", "event": "join"}


def history(*entries, **members):
    return old_vcon(dialog=[call("2026-05-04T09:00:00Z", 60, party_history=list(entries))], **members)


class TestHistory:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ({}, {"type": "join"}),
            ({"event": "dtmfdown", "dtmf": "3"}, {"type": "keydown", "button": "3"}),
            ({"event": "dtmfup", "button": "3"}, {"type": "keyup", "button": "3"}),
            ({"event": "mute", "note": {"a": 1}}, {"type": "mute", "note": {"a": 1}}),
        ],
    )
    def test_moved(self, old, new):
        """An entry becomes an event of its dialog's session, with every member that it has."""
        document = history({**ENTRY, **old})
        done = result(document)
        assert done["events"] == [{"time": ENTRY["time"], "sessions": 0, "party": 0, "dialog": 0, **new}]
        assert "party_history" not in done["dialog"][0]
        assert turned_back(migrated(document)) == document

    @pytest.mark.parametrize(
        "wrong",
        [
            {"event": "left"},
            {"event": 5},
            {"party": 2},
            {"party": -1},
            {"party": True},
            {"time": "soon"},
            {"event": "keydown"},
            {"event": "keydown", "button": 3},
            {"event": "keydown", "button": "3", "dtmf": "3"},
            {"button": "3"},
            {"type": "x"},
            {"sessions": 0},
            {"transferee": 0},
            {"body": "x"},
            {"operation_id": "a"},
        ],
    )
    def test_kept(self, wrong):
        """An entry that would make a wrong event stays; its neighbours move, and come back to their places."""
        document = history(
            ENTRY, {**ENTRY, **wrong}, {**ENTRY, "event": "drop"}, 5, {**ENTRY, "event": "hold"}
        )
        done = result(document)
        assert done["dialog"][0]["party_history"] == [{**ENTRY, **wrong}, 5]
        assert [event["type"] for event in done["events"]] == ["join", "drop", "hold"]
        assert turned_back(migrated(document)) == document

    @pytest.mark.parametrize("events", [{"a": 1}, "x", 5, True, 0])
    def test_no_place_for_events(self, events):
        """Where `events` is no array, entries stay in their dialog: nothing is appended to what is not there."""
        document = {**history(ENTRY), "sessions": [{"dialog": [0]}], "events": events}
        done = migrated(document)
        assert done.vcon.members["dialog"][0]["party_history"] == [ENTRY]
        assert repr(done.vcon.members["events"]) == repr(events)
        assert turned_back(done) == document

    @pytest.mark.parametrize("empty", [None, [], {}, ""])
    def test_empty_arrays(self, empty):
        """An empty value in the place of sessions or events gives way to them, and comes back."""
        document = {**history(ENTRY), "sessions": empty, "events": empty}
        done = migrated(document)
        assert (len(done.vcon.members["sessions"]), len(done.vcon.members["events"])) == (1, 1)
        assert turned_back(done) == document

    def test_told_already(self):
        """An entry that an event says already goes, and comes back when that is undone."""
        event = {"type": "join", "time": ENTRY["time"], "sessions": [0], "party": 0, "dialog": 0}
        document = history(ENTRY, sessions=[{"dialog": [0]}], events=[event])
        done = migrated(document)
        assert done.vcon.members["events"] == [event]
        assert "party_history" not in done.vcon.members["dialog"][0]
        assert turned_back(done) == document

    @pytest.mark.parametrize("more", [{"note": 1}, {"party": 1}, {"time": "2026-05-04T09:00:06Z"}])
    def test_other_event(self, more):
        """An event that says something else is another event."""
        event = {"type": "join", "time": ENTRY["time"], "sessions": [0], "party": 0, "dialog": 0, **more}
        done = result(history(ENTRY, sessions=[{"dialog": [0]}], events=[event]))
        assert len(done["events"]) == 2

    def test_sessions_there(self):
        """A dialog of several sessions has events of them all; of none, or of too many, it keeps its history."""
        for count, moved in ((0, False), (1, True), (2, True), (64, True), (65, False)):
            document = history(ENTRY, sessions=[{"dialog": [0]}] * count or [{}])
            assert ("events" in result(document)) is moved
        assert result(history(ENTRY, sessions=[{"dialog": [0]}] * 2))["events"][0]["sessions"] == [0, 1]

    def test_covered(self):
        """The session covers what happened in it, and lists who it happened to."""
        entries = [{**ENTRY, "time": "2026-05-04T08:59:00Z"}, {**ENTRY, "time": "2026-05-04T09:02:00Z"}]
        document = history(*entries)
        document["dialog"][0]["parties"] = [1]
        assert result(document)["sessions"] == [
            {"start": "2026-05-04T08:59:00Z", "duration": 180, "parties": [0, 1], "dialog": [0]}
        ]

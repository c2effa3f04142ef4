"""Sessions of vCons that have none, and session ids."""

import pytest

from support.legacy import call, changes, old_vcon, result
from support.vcons import faults


def sessions(*dialogs, **members):
    """The sessions derived from dialogs, without their parties."""
    found = result(old_vcon(dialog=list(dialogs), **members))["sessions"]
    return [{name: value for name, value in item.items() if name != "parties"} for item in found]


def text(start=None, **members):
    dialog = {"type": "text", "start": start, "parties": 0, "mediatype": "text/plain", **members}
    return {name: value for name, value in dialog.items() if value is not None}


class TestSpan:
    def test_messages(self):
        """Messages take no time: the session lasts from the first to the last."""
        assert sessions(text("2026-05-04T09:00:00Z"), text("2026-05-04T09:00:12.5Z")) == [
            {"start": "2026-05-04T09:00:00Z", "duration": 12.5, "dialog": [0, 1]}
        ]

    def test_one_message(self):
        """One message without a duration gives none."""
        assert sessions(text("2026-05-04T09:00:00Z")) == [{"start": "2026-05-04T09:00:00Z", "dialog": [0]}]

    def test_open_end(self):
        """When a recording without a duration began last, nobody knows when the session ended."""
        first = call("2026-05-04T09:00:00Z", 5)
        assert "duration" not in sessions(first, call("2026-05-04T09:01:00Z"))[0]
        assert sessions(first, call("2026-05-04T09:00:01Z"))[0]["duration"] == 5

    def test_transfer_with_duration(self):
        """A duration that a transfer should not have is within its session all the same."""
        transfer = {"type": "transfer", "start": "2026-05-04T09:00:05Z", "duration": 7, "original": 0}
        document = old_vcon(dialog=[call("2026-05-04T09:00:00Z", 5), transfer])
        assert result(document)["sessions"][0]["duration"] == 12
        assert "session-time" not in [code for code, *_ in faults(result(document))]

    def test_order(self):
        """Dialogs may stand in any order, with any offset; the start keeps its spelling."""
        found = sessions(call("2026-05-04T09:00:10Z", 1), call("2026-05-04T11:00:00+02:00", 1))
        assert found == [{"start": "2026-05-04T11:00:00+02:00", "duration": 11, "dialog": [0, 1]}]

    @pytest.mark.parametrize(
        ("written", "normal"),
        [
            ("2026-05-04t09:00:00.000z", "2026-05-04T09:00:00Z"),
            ("2026-05-04T09:00:00.050+02:00", "2026-05-04T09:00:00.050+02:00"),
            ("2026-05-04T09:00:00.00+00:00", "2026-05-04T09:00:00+00:00"),
        ],
    )
    def test_normal_dates(self, written, normal):
        """What is derived is written in normal form; what was read keeps its spelling (record.md D-08)."""
        document = old_vcon(dialog=[text(written)])
        assert result(document)["sessions"][0]["start"] == normal
        assert result(document)["dialog"][0]["start"] == written

    @pytest.mark.parametrize("start", ["Mon, 04 May 2026 09:00:00 +0000", 5, None])
    def test_no_date(self, start):
        """Without a date that can be read there is a session all the same, without a start."""
        assert sessions({"type": "text", "start": start}) == [{"dialog": [0]}]

    @pytest.mark.parametrize("duration", [-1, "5", True, 10**15, 1e300])
    def test_no_duration(self, duration):
        """What is no duration is reckoned as none."""
        assert "duration" not in sessions(call("2026-05-04T09:00:00Z", duration))[0]

    def test_tiny_and_long(self):
        """Fractions below a microsecond are rounded up, so that the session covers them."""
        dialogs = [
            call("2026-05-04T09:00:00Z", 1, type="recording"),
            text("2026-05-04T09:00:02.000000001Z", encoding="none", body="x"),
        ]
        document = old_vcon(dialog=dialogs)
        assert result(document)["sessions"][0]["duration"] == 2.000001
        long = old_vcon(dialog=[call("2026-05-04T09:00:00.5Z", 2**40)])
        assert result(long)["sessions"][0]["duration"] == 2**40
        for each in (document, long):
            assert [code for code, _, _ in faults(result(each)) if code == "session-time"] == []


class TestMembers:
    def test_parties(self):
        """All parties of all dialogs are listed once; channels are flattened, wrong indices left out."""
        dialogs = [call(parties=[[1], None, 0]), call(parties=[0, 7, -1, "x"]), call(parties=1)]
        assert result(old_vcon(dialog=dialogs))["sessions"] == [{"parties": [0, 1], "dialog": [0, 1, 2]}]

    def test_every_dialog(self):
        """Every position of the array is in a session, placeholders and what is no object too."""
        assert sessions({}, 5, None, text()) == [{"dialog": [0, 1, 2, 3]}]

    def test_recording_sets(self):
        """Each set has its session with its members, also those that only name the set."""
        dialogs = [
            call(),
            {"type": "recording-set", "recordings": [2, 2, 9, 1], "session_id": "a;remote=b"},
            call(recording_set=1),
            call(recording_set=1),
            call(recording_set=9),
            text(),
        ]
        assert sessions(*dialogs) == [
            {"dialog": [1, 2, 3], "session_id": {"local": "a", "remote": "b"}},
            {"dialog": [0, 4, 5]},
        ]

    def test_member_of_two_sets(self):
        """A recording that two sets claim is in the session of the first."""
        dialogs = [
            {"type": "recording-set", "recordings": [2]},
            {"type": "recording-set", "recordings": [2, 0]},
        ]
        assert sessions(*dialogs, call()) == [{"dialog": [0, 2]}, {"dialog": [1]}]


class TestWhen:
    @pytest.mark.parametrize(
        "members",
        [
            {"sessions": [{"dialog": [0]}]},
            {"sessions": "x"},
            {"events": [{"type": "join", "sessions": 0}]},
        ],
    )
    def test_not_derived(self, members):
        """Where there are sessions, or events that may count on some, none are made up."""
        document = old_vcon(dialog=[text()], **members)
        assert result(document).get("sessions") == members.get("sessions")

    @pytest.mark.parametrize("empty", [[], None])
    def test_empty(self, empty):
        """An empty array of sessions is none."""
        assert result({**old_vcon(dialog=[text()]), "sessions": empty, "events": empty})["sessions"]

    @pytest.mark.parametrize("dialog", [[], None, "x", {}])
    def test_no_dialog(self, dialog):
        """Without dialogs no session is needed."""
        assert "sessions" not in result({**old_vcon(), "dialog": dialog})


class TestSessionId:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("a;remote=b", {"local": "a", "remote": "b"}),
            ("a", {"local": "a", "remote": "0" * 32}),
            ("", {"local": "", "remote": "0" * 32}),
            (
                ["a", ["b;remote=c"], None, {}],
                [{"local": "a", "remote": "0" * 32}, [{"local": "b", "remote": "c"}], None, {}],
            ),
        ],
    )
    def test_split(self, old, new):
        """Strings become objects in the shape of the parties; an unknown end is the nil UUID."""
        assert result(old_vcon(vcon="0.3.0", dialog=[text(session_id=old)]))["dialog"][0]["session_id"] == new

    def test_kept(self):
        """What is neither String nor object stays."""
        document = old_vcon(dialog=[text(session_id=[5])])
        assert ("session-id-kept", "/dialog/0/session_id/0") in changes(document)
        assert result(document)["dialog"][0]["session_id"] == [5]

"""The model: bytes are kept, wrong things are not built, what is built passes the check."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.dates import parse_date
from onrecord.base.errors import MalformedError, UsageError
from onrecord.record.checks.checker import check
from onrecord.record.vcon.model import Vcon
from support.vcons import UUID, answer, findings, invocation, text, vcon


def new(**options):
    made = Vcon.new(
        uuid=UUID,
        created_at="2026-11-02T12:00:00Z",
        extensions=["ai_agent", "tool-invocation"],
        recording_agent={"name": "onrecord", "version": "0.1.0"},
        **options,
    )
    made.add_party(type="bot", name="agent")
    made.add_session(start="2026-11-02T12:00:00Z", parties=[0], agent_session_id="s-1")
    return made


EVENT = {
    "time": "2026-11-02T12:00:01Z",
    "sessions": [0],
    "party": 0,
    "operation_id": "a",
    "attempt": 1,
}


class TestRead:
    @pytest.mark.parametrize("indent", [None, 1, 3])
    def test_bytes_survive(self, indent):
        """What was read and not changed is written back byte for byte, odd spelling included."""
        data = json.dumps(vcon(invocation(), answer("tool-result")), indent=indent).encode() + b"\n"
        data = data.replace(b'"attempt": 1', b'"attempt": 1.0')
        assert Vcon.read(data).to_bytes() == data

    def test_unknown_members_survive_a_change(self):
        """A changed vCon keeps what it does not know, and its array positions."""
        document = vcon(invocation(), {}, {"type": "x.y", "z": [1]}, strange={"a": [None]})
        changed = Vcon.read(text(document))
        changed.set_member("updated_at", "2026-11-03T00:00:00Z")
        assert json.loads(changed.to_bytes()) == {**document, "updated_at": "2026-11-03T00:00:00Z"}

    def test_views(self):
        """Views give indices as tuples whatever their spelling, and read wrong types as absent."""
        made = Vcon.read(
            text(vcon(invocation(sessions=0, attempt=1.0, party="x"), parties=[{}, {"name": 3}]))
        )
        event = made.events[0]
        assert (event.sessions, event.attempt, event.party) == ((0,), 1, None)
        assert made.parties[0].is_placeholder
        assert made.parties[1].name is None

    def test_signed_form_is_not_read_as_unsigned(self):
        """A signed vCon is not taken for an unsigned one with odd members."""
        with pytest.raises(MalformedError) as caught:
            Vcon.read(b'{"payload":"e30","signatures":[],"uuid":"x"}')
        assert caught.value.code == "form-not-unsigned"

    @given(st.binary(max_size=100))
    def test_no_foreign_exception(self, data):
        """Arbitrary bytes give a vCon or one of our errors."""
        try:
            Vcon.read(data)
        except MalformedError:
            pass


class TestBuild:
    @pytest.mark.req("TI-016", "TI-017", "AA-019", "AA-020", "AA-036")
    def test_whole(self):
        """A built record of one call passes the check without error or warning, extensions listed."""
        made = new()
        made.add_event("policy-decision", **EVENT, decision="allowed", policy_life="once",
                       operation="tool-invocation", server="clock", tool="now")  # fmt: skip
        made.add_event("tool-invocation", **EVENT, server="clock", tool="now", mediatype="application/json",
                       encoding="json", body={"zone": "UTC"})  # fmt: skip
        made.add_event("tool-result", **EVENT, mediatype="text/plain", encoding="none", body="12:00")
        made.update_session(0, duration=1.0)
        made.set_member("updated_at", parse_date("2026-11-02T12:00:02.500Z"))
        data = made.to_bytes()
        assert check(data).findings == ()
        assert json.loads(data)["updated_at"] == "2026-11-02T12:00:02.5Z"
        assert b'"duration":1,' in data

    def test_dialog_and_attachment(self):
        """A dialog and an attachment are added with their index, and what is built passes the check."""
        made = new()
        assert made.add_dialog("text", start="2026-11-02T12:00:01Z", parties=[0],
                               mediatype="text/plain", encoding="none", body="hello") == 0  # fmt: skip
        assert made.add_attachment(party=0, start="2026-11-02T12:00:01Z", purpose="notes", dialog=0,
                                   mediatype="text/plain", encoding="none", body="a note") == 0  # fmt: skip
        made.update_session(0, dialog=[0])
        assert (made.dialogs[0].type, made.attachments[0].party) == ("text", 0)
        assert findings(made.to_bytes()) == []

    @pytest.mark.parametrize("add", [
        lambda made: made.add_dialog("video-call", start="2026-11-02T12:00:01Z", parties=[0]),
        lambda made: made.add_dialog("text", start="2026-11-02T12:00:01Z", parties=[7], body="x"),
        lambda made: made.add_attachment(party=7, start="2026-11-02T12:00:01Z", body="x", encoding="none"),
    ])  # fmt: skip
    def test_wrong_dialogs_and_attachments_are_loud(self, add):
        """A wrong dialog or attachment is refused, and nothing of it stays."""
        made = new()
        before = made.to_bytes()
        with pytest.raises(UsageError):
            add(made)
        assert made.to_bytes() == before

    def test_canonical(self):
        """What is built is written in canonical form: sorted, compact, the same each time."""
        data = new().to_bytes()
        assert data == json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode()

    def test_session_name_follows_the_type(self):
        """An event gets `session` or `sessions` as its own draft asks for."""
        made = new()
        made.add_event("system-event", time="2026-11-02T12:00:01Z", sessions=0, party=0, event_type="x")
        made.add_event("tool-timeout", **{**EVENT, "sessions": None}, session=0)
        assert made.members["events"][0]["session"] == 0
        assert made.members["events"][1]["sessions"] == 0

    @pytest.mark.parametrize(
        ("kind", "members", "code"),
        [
            ("tool-invocation", {}, "event-session-missing"),
            ("tool-invocation", EVENT, "required-missing"),
            ("tool-invocation", {**EVENT, "server": "clock", "tool": "now", "party": 7}, "index-range"),
            ("tool-invocation", {**EVENT, "server": "!x", "tool": "now"}, "server-reserved"),
            ("tool-result", {**EVENT, "server": "clock"}, "forbidden-present"),
            ("tool-result", {**EVENT, "time": "yesterday"}, "date-invalid"),
            ("tool-result", {**EVENT, "attempt": 0}, "attempt-invalid"),
            ("tool-result", {**EVENT, "sessions": [3]}, "index-range"),
            ("tool-result", {**EVENT, "body": "x", "encoding": "none"}, "mediatype-missing"),
            ("tool-result", {**EVENT, "dialog": 0}, "event-dialog-member"),
            ("policy-decision", {**EVENT, "decision": "maybe"}, "required-missing"),
            ("reasoning", {"time": "2026-11-02T12:00:01Z", "session": 0, "party": 0}, "required-missing"),
            ("invented", EVENT, "event-type-unknown"),
            (
                "tool-result",
                {**EVENT, "mediatype": "text/plain", "encoding": "none", "body": "sk-" + "a" * 24},
                "credential-found",
            ),
        ],
    )
    def test_wrong_events_are_loud(self, kind, members, code):
        """A wrong event is refused with the finding's code, and nothing of it stays."""
        made = new()
        before = made.to_bytes()
        with pytest.raises(UsageError) as caught:
            made.add_event(kind, **members)
        assert caught.value.code == code
        assert made.to_bytes() == before

    def test_unlisted_extension_is_loud(self):
        """An event of an extension that is not listed is refused."""
        made = Vcon.new(uuid=UUID, created_at="2026-11-02T12:00:00Z")
        made.add_party(type="bot")
        made.add_session(start="2026-11-02T12:00:00Z", parties=[0])
        with pytest.raises(UsageError) as caught:
            made.add_event("tool-timeout", **EVENT)
        assert caught.value.code == "extension-not-listed"

    def test_lenient_loses_nothing(self):
        """A lenient vCon takes the wrong event all the same and keeps the finding."""
        made = new(lenient=True)
        assert made.add_event("tool-result", **{**EVENT, "time": "yesterday"}) == 0
        assert [problem.code for problem in made.problems] == ["date-invalid"]
        assert ("date-invalid", "error", "/events/0/time") in findings(made.to_bytes())

    def test_null_is_written_for_withheld_values_only(self):
        """None leaves a member out, except input and output, whose null says that they were withheld."""
        made = new()
        made.add_event("tool-call", time="2026-11-02T12:00:01Z", session=0, party=0, tool_name="x",
                       input=None, call_id=None)  # fmt: skip
        assert made.members["events"][0]["input"] is None
        assert "call_id" not in made.members["events"][0]

    @pytest.mark.parametrize("value", ["\ud800", 2**53, {"a": [float("inf")]}])
    def test_what_json_cannot_hold_is_not_written(self, value):
        """Lone surrogates, wide integers and infinity are refused on write, not changed."""
        made = new()
        made.add_event("tool-result", **EVENT, mediatype="application/json", encoding="json", body=[value])
        with pytest.raises(MalformedError) as caught:
            made.to_bytes()
        assert caught.value.code == "not-canonical"

    def test_session_update_is_checked(self):
        """A negative duration or an unknown session is refused."""
        made = new()
        for index, members, code in ((0, {"duration": -1}, "duration-invalid"), (4, {}, "index-range")):
            with pytest.raises(UsageError) as caught:
                made.update_session(index, **members)
            assert caught.value.code == code

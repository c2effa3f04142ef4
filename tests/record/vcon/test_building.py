"""Builders: wrong things are not built, what belongs together is written together, what is built passes the check."""

import json
from datetime import UTC, datetime, timedelta, timezone
from enum import StrEnum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord import __version__
from onrecord.base.dates import ManualClock, parse_date
from onrecord.base.errors import MalformedError, UsageError
from onrecord.base.hashes import ContentHash
from onrecord.base.ids import domain_uuid_bits
from onrecord.record.checks.checker import check
from onrecord.record.vcon.contents import Content
from onrecord.record.vcon.model import Vcon
from support.vcons import UUID, findings, invocation, text, vcon

START = datetime(2026, 11, 2, 12, tzinfo=UTC)


def at(seconds):
    return START + timedelta(seconds=seconds)


def problems(made, **options):
    """The errors and warnings of a vCon that was built."""
    return [
        (finding.code, finding.pointer)
        for finding in check(made.to_bytes(), strict=True, **options).findings
        if finding.severity != "info"
    ]


def refused(run):
    with pytest.raises(UsageError) as caught:
        run()
    assert caught.value.hint
    return caught.value.code


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


class TestElements:
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

    @pytest.mark.req("TI-017", "AA-020")
    def test_extensions_are_listed_when_used(self):
        """The extension of an event or a member is listed with its first use, in that order, and once."""
        made = Vcon.new(clock=ManualClock("2026-11-02T12:00:00Z"))
        made.add_party(type="bot", agent_meta={"model_id": "m-1", "model_provider": "example"})
        assert made.extensions == ("ai_agent",)
        for name in ("a", "b"):
            made.add_event("tool-invocation", time=at(1), party=0, operation_id=name, attempt=1,
                           server="clock", tool="now")  # fmt: skip
        assert made.extensions == ("ai_agent", "tool-invocation")
        assert problems(made) == []

    def test_refused_element_lists_nothing(self):
        """An event that is refused leaves no extension listed."""
        made = Vcon.new()
        made.add_party(type="bot")
        assert refused(
            lambda: made.add_event("tool-timeout", time=at(1), party=4, operation_id="a", attempt=1)
        )
        assert set(made.members) == {"uuid", "created_at", "parties"}

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

    @pytest.mark.parametrize(
        ("value", "code"),
        [
            ("\ud800", "json-lone-surrogate"),
            ({"\udfff": 1}, "json-lone-surrogate"),
            (2**53, "json-number-range"),
            ({"a": [float("inf")]}, "json-number-range"),
            (b"bytes", "type-mismatch"),
            ({1: 2}, "type-mismatch"),
            ({1, 2}, "type-mismatch"),
            (datetime(2026, 1, 1), "date-invalid"),  # noqa: DTZ001 - without time zone on purpose
        ],
        ids=str,
    )
    def test_what_json_cannot_hold_is_loud(self, value, code):
        """Half surrogate pairs, wide integers, infinity and foreign types are refused where they are added."""
        made = new()
        before = made.to_bytes()
        with pytest.raises(UsageError) as caught:
            made.add_event("tool-result", **EVENT, content=Content.json([value]))
        assert (caught.value.code, caught.value.where.pointer[:16]) == (code, "/events/0/body/0")
        assert made.to_bytes() == before

    def test_depth_and_circles_are_loud(self):
        """What is nested deeper than a reader goes, or holds itself, is refused; the deepest that is read is not."""
        circle = []
        circle.append(circle)
        deep = value = []
        for _ in range(124):
            value.append([])
            value = value[0]
        made = new()
        made.add_event("tool-result", **EVENT, content=Content.json(deep))
        assert Vcon.read(made.to_bytes()).events[0].members["body"] == deep
        for body in (circle, [deep]):
            assert refused(
                lambda body=body: made.add_event("tool-result", **EVENT, content=Content.json(body))
            ) == ("json-depth")

    @pytest.mark.parametrize("value", ["\ud800", {"\udfff": 1}, [float("inf")]], ids=repr)
    def test_what_was_let_in_is_not_written(self, value):
        """A lenient vCon takes such values, and to_bytes refuses them with their place."""
        made = new(lenient=True)
        made.add_event("tool-result", **EVENT, content=Content.json({"x": [value]}))
        with pytest.raises(MalformedError) as caught:
            made.to_bytes()
        assert caught.value.code == "not-canonical"
        assert caught.value.where.pointer.startswith("/events/0/body/x/0")
        assert caught.value.hint

    def test_wide_integers_are_kept(self):
        """Integers beyond 2^53-1 that were read survive a change: the text is compact JSON (record.md D-25)."""
        made = Vcon.read(text(vcon(invocation(), wide=[2**53, -(2**70)])))
        made.set_member("subject", "clock")
        data = made.to_bytes()
        assert json.loads(data)["wide"] == [2**53, -(2**70)]
        assert data == json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode()

    def test_session_update_is_checked(self):
        """A negative duration or an unknown session is refused."""
        made = new()
        for index, members, code in ((0, {"duration": -1}, "duration-invalid"), (4, {}, "index-range")):
            with pytest.raises(UsageError) as caught:
                made.update_session(index, **members)
            assert caught.value.code == code


class TestNew:
    def test_defaults(self):
        """Without arguments a vCon gets a uuid of version 7 and the time of its clock."""
        made = Vcon.new(clock=ManualClock("2026-11-02T12:00:00.250Z"))
        assert made.created_at == "2026-11-02T12:00:00.25Z"
        assert made.uuid[14] == "7"
        assert made.uuid != Vcon.new(clock=ManualClock("2026-11-02T12:00:00.250Z")).uuid
        assert made.members.keys() == {"uuid", "created_at"}

    def test_domain(self):
        """With a domain the uuid is of version 8 and ends with the domain's bits."""
        made = Vcon.new(domain="example.com")
        assert made.uuid[14] == "8"
        assert int(made.uuid.replace("-", ""), 16) & (2**62 - 1) == domain_uuid_bits("example.com")

    def test_critical(self):
        """A critical extension is listed as well; one that is not known here is refused."""
        made = Vcon.new(critical=["tool-invocation"])
        assert (made.members["critical"], made.extensions) == (["tool-invocation"], ("tool-invocation",))
        assert refused(lambda: Vcon.new(critical=["unheard-of"])) == "critical-unsupported"

    @pytest.mark.req("AA-036")
    def test_recording_agent(self):
        """A vCon of agents names this package as its recorder unless told otherwise; one of people names nobody."""
        made = Vcon.new()
        made.add_party(name="Ann", validation="none")
        assert "recording_agent" not in made.members
        made.add_party(type="bot", agent_meta={"model_id": "m-1", "model_provider": "example"})
        assert made.members["recording_agent"] == {"name": "onrecord", "version": __version__}
        own = Vcon.new(recording_agent={"name": "tape"})
        own.add_party(type="bot", agent_meta={"model_id": "m-1", "model_provider": "example"})
        assert (own.members["recording_agent"], own.extensions) == ({"name": "tape"}, ("ai_agent",))

    @pytest.mark.parametrize(
        ("options", "code"),
        [
            ({"uuid": "1"}, "uuid-invalid"),
            ({"created_at": "yesterday"}, "date-invalid"),
            ({"created_at": "2026-11-02t12:00:00.000z"}, "date-not-normal"),
            ({"recording_agent": {"version": "1"}}, "required-missing"),
            ({"subject": 3}, "type-mismatch"),
            ({"event_session_key": "both"}, "event-session-key-unknown"),
        ],
    )
    def test_wrong_arguments_are_loud(self, options, code):
        """A wrong argument is refused with the finding's code."""
        assert refused(lambda: Vcon.new(**options)) == code

    def test_dates(self):
        """A datetime is written in UTC with milliseconds at most; a date that is a text keeps its spelling."""
        made = Vcon.new(created_at=datetime(2026, 1, 1, 1, 0, 0, 120_999, timezone(timedelta(hours=1))))
        assert made.created_at == "2026-01-01T00:00:00.12Z"
        assert Vcon.new(created_at="2026-01-01T01:00:00+01:00").created_at == "2026-01-01T01:00:00+01:00"


class TestSessions:
    def test_first_message_begins_a_session(self):
        """Two lines make a vCon that is right: the session begins with the message, and has it and its parties."""
        made = Vcon.new(clock=ManualClock("2026-11-02T12:00:00Z"))
        ann, bo = made.add_party(name="Ann", validation="none"), made.add_party(name="Bo", validation="none")
        made.add_message("hello", start=at(5), sender=ann, to=[bo])
        assert made.members["sessions"] == [
            {"start": "2026-11-02T12:00:05Z", "dialog": [0], "parties": [0, 1]}
        ]
        assert problems(made) == []

    def test_begun_session_reaches_back(self):
        """A session that was begun by itself starts with the earliest of what is added; a given one keeps its start."""
        made = Vcon.new()
        made.add_party()
        for second in (5, 2, 9):
            made.add_message("x", start=at(second), sender=0)
        assert made.members["sessions"][0]["start"] == "2026-11-02T12:00:02Z"
        made.add_session(start=at(5))
        before = made.to_bytes()
        assert refused(lambda: made.add_message("x", start=at(4), sender=0, session=1)) == "session-time"
        assert refused(lambda: made.add_message("x", start=at(1), sender=9, session=0)) == "index-range"
        assert made.to_bytes() == before

    def test_session_is_asked_for(self):
        """With several sessions a dialog or event says which; () is none, several are several."""
        made = Vcon.new()
        made.add_party(type="person")
        made.add_session(start=at(0))
        made.add_session(start=at(0))
        assert refused(lambda: made.add_message("x", start=at(1), sender=0)) == "dialog-unreferenced"
        assert refused(lambda: made.add_event("join", time=at(1), party=0)) == "event-session-missing"
        assert refused(lambda: made.add_message("x", start=at(1), sender=0, session=2)) == "index-range"
        made.add_message("x", start=at(1), sender=0, session=(0, 1))
        made.add_message("x", start=at(1), sender=0, session=())
        assert [session["dialog"] for session in made.members["sessions"]] == [[0], [0]]
        assert problems(made) == [("dialog-unreferenced", "/dialog/1")]

    def test_duration(self):
        """A duration covers what is there, and what comes later."""
        made = Vcon.new()
        made.add_party()
        made.add_dialog("recording", start=at(0), duration=10, parties=0,
                        content=Content.binary(b"RIFF", mediatype="audio/x-wav"))  # fmt: skip
        assert refused(lambda: made.update_session(0, duration=9.5)) == "session-time"
        made.update_session(0, duration=10)
        assert refused(lambda: made.add_event("drop", time=at(10.5), party=0)) == "session-time"
        made.add_event("drop", time=at(10), party=0)
        assert problems(made) == []

    def test_cycle(self):
        """A session cannot be made to contain itself, at whatever depth; peers may point at each other."""
        made = Vcon.new()
        for child in (None, 0, 1):
            references = [] if child is None else [{"session": child, "type": "child"}]
            made.add_session(start=at(0), sessions=references or None)
        for child in (0, 2):
            references = [{"session": child, "type": "child"}]
            assert refused(lambda r=references: made.update_session(0, sessions=r)) == "session-cycle"
        made.update_session(0, sessions=[{"session": 2, "type": "peer"}])
        made.add_party()
        assert problems(made) == []

    @pytest.mark.parametrize(("key", "name", "value"), [
        ("auto", "session", 0), ("session", "session", 0), ("sessions", "sessions", [0]),
    ])  # fmt: skip
    def test_event_session_key(self, key, name, value):
        """The name of the session member is that of the type, or the one that was chosen (record.md D-12)."""
        made = Vcon.new(event_session_key=key)
        made.add_party(type="bot")
        made.add_event("system-event", time=at(0), party=0, event_type="start")
        assert made.members["events"][0][name] == value
        assert problems(made) == []


class TestDialogs:
    def test_recording_set(self):
        """A recording set and its recordings point at each other, whichever comes first; a refused set leaves none."""
        made = Vcon.new()
        made.add_party()
        sound = Content.external("https://media.example.com/a.wav", data=b"RIFF", mediatype="audio/x-wav")
        for _ in range(2):
            made.add_dialog("recording", start=at(0), duration=1, parties=[0], content=sound)
        before = made.to_bytes()
        assert (
            refused(lambda: made.add_dialog("recording-set", start=at(0), recordings=(0, 7))) == "index-range"
        )
        assert made.to_bytes() == before
        made.add_dialog("recording-set", start=at(0), parties=[0], recordings=(0, 1))
        made.add_dialog("recording", start=at(2), parties=[0], recording_set=2, content=sound)
        assert [dialog.get("recording_set") for dialog in made.members["dialog"]] == [2, 2, None, 2]
        assert made.members["dialog"][2]["recordings"] == [0, 1, 3]
        assert refused(lambda: made.add_dialog("recording-set", start=at(0), recordings=[0])) == (
            "recording-set-mismatch"
        )
        assert problems(made) == []

    def test_transfer(self):
        """A transfer refers to calls, not to another transfer."""
        made = Vcon.new()
        for name in ("Ann", "Bo", "Cy"):
            made.add_party(name=name, validation="none")
        made.add_message("x", start=at(0), sender=0)
        transfer = {"start": at(1), "transferee": 0, "transferor": 1, "transfer_target": 2, "original": 0}
        made.add_dialog("transfer", **transfer, target_dialog=0)
        assert refused(lambda: made.add_dialog("transfer", **transfer, target_dialog=1)) == (
            "transfer-reference-type"
        )
        assert problems(made) == []

    def test_attachment_and_analysis(self):
        """An attachment belongs to a dialog that is there; an analysis says what it is of."""
        made = Vcon.new()
        made.add_party()
        note = Content.text("bring cake", filename="note.txt")
        assert refused(lambda: made.add_attachment(start=at(0), party=0, content=note)) == (
            "attachment-dialog-missing"
        )
        made.add_message("see the note", start=at(0), sender=0)
        made.add_attachment(start=at(0), party=0, dialog=0, content=note)
        made.add_analysis("summary", vendor="example", dialog=0, content=Content.json({"topic": "cake"}))
        assert refused(lambda: made.add_analysis("summary", vendor="example", dialog=3, content=note)) == (
            "index-range"
        )
        assert refused(lambda: made.add_analysis("x", vendor="example", content=Content.json("[1]"))) == (
            "json-body-string"
        )
        assert problems(made) == []

    @pytest.mark.parametrize(("content", "members"), [
        (Content.text("\u00fc"), {"mediatype": "text/plain", "encoding": "none", "body": "\u00fc"}),
        (Content.json(None), {"mediatype": "application/json", "encoding": "json", "body": None}),
        (Content.json(0), {"mediatype": "application/json", "encoding": "json", "body": 0}),
        (Content.binary(b"\xff\xfe", mediatype="audio/ogg"),
         {"mediatype": "audio/ogg", "encoding": "base64url", "body": "__4"}),
        (Content.external("https://example.com/f", content_hash=str(ContentHash.of(b"x"))),
         {"url": "https://example.com/f", "content_hash": str(ContentHash.of(b"x"))}),
    ], ids=["text", "null", "zero", "bytes", "external"])  # fmt: skip
    def test_content(self, content, members):
        """Each kind of content is written with the members that it needs."""
        made = Vcon.new()
        made.add_party()
        made.add_dialog("text", start=at(0), parties=[0], content=content)
        written = made.members["dialog"][0]
        assert {name: written[name] for name in members} == members
        assert problems(made) == []

    @pytest.mark.parametrize("options", [{}, {"data": b"x", "content_hash": "sha512-x"}])
    def test_external_needs_its_hash(self, options):
        """A file outside of the vCon is not written without its hash, or with two."""
        assert refused(lambda: Content.external("https://example.com/f", **options)) == "content-hash-missing"

    def test_values_are_copied(self):
        """What the caller changes afterwards does not change the vCon; subclasses of str are written as texts."""

        class Kind(StrEnum):
            TEXT = "text"

        body = {"a": [1]}
        made = Vcon.new()
        made.add_party()
        made.add_dialog(Kind.TEXT, start=at(0), parties=(0,), content=Content.json(body))
        body["a"].append(2)
        assert made.members["dialog"][0]["body"] == {"a": [1]}
        assert type(made.members["dialog"][0]["type"]) is str


class TestNames:
    def test_used_names_are_loud(self):
        """An operation, a call and an entry have a name of their own."""
        made = Vcon.new()
        made.add_party(type="bot")
        operation = {"time": at(0), "party": 0, "operation_id": "a", "server": "clock", "tool": "now"}
        made.add_event("tool-invocation", **operation, attempt=1)
        made.add_event("tool-invocation", **operation, attempt=2)
        assert (
            refused(lambda: made.add_event("tool-invocation", **operation, attempt=2))
            == "operation-id-reused"
        )
        call = {"time": at(0), "party": 0, "tool_name": "now", "input": {}}
        made.add_event("tool-call", **call, call_id="c", entry_id="e")
        assert refused(lambda: made.add_event("tool-call", **call, call_id="c")) == "call-id-duplicate"
        made.add_event("tool-result", time=at(0), party=0, output="12:00", call_id="c")
        assert refused(
            lambda: made.add_event("tool-result", time=at(0), party=0, output="12:00", call_id="c")
        ) == ("call-id-duplicate")
        assert (
            refused(lambda: made.add_message("x", start=at(0), sender=0, entry_id="e"))
            == "entry-id-duplicate"
        )
        read = Vcon.read(made.to_bytes())
        assert (
            refused(lambda: read.add_event("tool-invocation", **operation, attempt=1))
            == "operation-id-reused"
        )

    def test_name_is_free_again(self):
        """An entry that was taken out of a session leaves its name there to another."""
        made = Vcon.new()
        made.add_party(type="person")
        made.add_session(start=at(0))
        made.add_session(start=at(0))
        made.add_message("x", start=at(0), sender=0, session=0, entry_id="e")
        assert refused(
            lambda: made.add_message("x", start=at(0), sender=0, session=(0, 1), entry_id="e")
        ) == ("entry-id-duplicate")
        made.update_session(0, dialog=None)
        made.update_session(1, dialog=[0])
        made.add_message("x", start=at(0), sender=0, session=0, entry_id="e")
        assert refused(lambda: made.update_session(0, dialog=[0, 1])) == "entry-id-duplicate"
        assert problems(made) == []

    def test_model_of_a_person_is_loud(self):
        """A message that names its model is by an agent."""
        made = Vcon.new()
        made.add_party(type="person")
        made.add_party(type="bot")
        assert (
            refused(lambda: made.add_message("x", start=at(0), sender=0, model_id="m")) == "model-id-on-user"
        )
        made.add_message("x", start=at(0), sender=1, model_id="m")
        assert problems(made) == []

    def test_consultation(self):
        """Later events of a transfer name the consultation session that its start named."""
        made = Vcon.new()
        for _ in range(3):
            made.add_party(type="person")
            made.add_session(start=at(0))
        transfer = {"time": at(1), "party": 0, "sessions": 0, "transferee": 1, "transfer_target": 2}
        made.add_event("consultation-start", **transfer, consultation=1)
        assert refused(
            lambda: made.add_event("consultative-transfer", **transfer, consultation=2, target_session=2)
        ) == ("transfer-consultation-mismatch")
        made.add_event("consultative-transfer", **transfer, consultation=1, target_session=2)
        assert problems(made) == []


class TestReadAndAdd:
    def test_addition_to_what_was_read(self):
        """A vCon that was read is added to; what was wrong in it before does not stand in the way."""
        made = Vcon.read(text(vcon(invocation(), uuid="no uuid", strange=1)))
        made.set_member("subject", "clock")
        made.add_message("hello", start=at(3), sender=0)
        assert made.raw is None
        assert made.members["sessions"][0]["dialog"] == [0]
        assert [code for code, _, _ in findings(made.to_bytes()) if code == "uuid-invalid"]

    def test_older_versions_are_upgraded_first(self):
        """Nothing is added to a vCon of an older version."""
        made = Vcon.read(b'{"uuid":"%b","vcon":"0.4.0","parties":[]}' % UUID.encode())
        for run in (made.add_party, lambda: made.set_member("subject", "x"), lambda: made.update_session(0)):
            assert refused(run) == "version-not-written"

    def test_critical_extension(self):
        """Nothing is added to a vCon that may not be processed."""
        made = Vcon.read(text(vcon(extensions=["x.y"], critical=["x.y"])))
        assert refused(made.add_party) == "critical-unsupported"

    @pytest.mark.parametrize("name", [
        "redacted_from", "amended_from", "uuid", "created_at", "vcon", "extensions", "critical", "parties", "events",
    ])  # fmt: skip
    def test_members_with_a_way_of_their_own(self, name):
        """References to earlier versions, identity and arrays are not set by hand."""
        assert refused(lambda: Vcon.new().set_member(name, [])) == "member-not-set"

    def test_wrong_member_is_loud(self):
        """A top-level member is checked, and its extension listed."""
        made = Vcon.new(created_at=START)
        assert refused(lambda: made.set_member("updated_at", at(-1))) == "updated-before-created"
        assert refused(lambda: made.set_member("vcs", {"revision": "x"})) == "required-missing"
        made.set_member("vcs", {"type": "git"})
        assert made.extensions == ("ai_agent",)

    def test_none_takes_a_member_away(self):
        """None is never written: it takes a member of the vCon or of a session away."""
        made = Vcon.new(subject="x")
        made.add_session(start=at(0), duration=5)
        made.set_member("subject", None)
        made.update_session(0, duration=None)
        assert "subject" not in made.members
        assert made.members["sessions"] == [{"start": "2026-11-02T12:00:00Z"}]


INDEX = st.sampled_from([*[0] * 9, *[1] * 5, 2, 2, 9, -1, True])
SECOND = st.integers(-5, 60)
NAME = st.sampled_from(["a", "b", "c"])
BODY = st.one_of(
    st.text(max_size=5).map(Content.text),
    st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                 lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAME, inner, max_size=2),
                 max_leaves=4).map(Content.json),
    st.binary(max_size=8).map(lambda data: Content.binary(data, mediatype="audio/ogg")),
    st.binary(max_size=8).map(lambda data: Content.external("https://example.com/f", data=data)),
)  # fmt: skip
MAYBE_INDEX = st.sampled_from([*[None] * 6, *[0] * 6, 1, 1, 9])
SESSION = st.sampled_from([*[None] * 9, *[0] * 6, 1, 1, 9])
STEP = st.one_of(
    st.tuples(st.just("add_party"), st.fixed_dictionaries({"type": st.sampled_from(["person", "bot"])})),
    st.tuples(st.just("add_session"), st.fixed_dictionaries({
        "start": SECOND.map(at),
        "duration": st.none() | st.integers(-1, 70),
        "sessions": st.none() | INDEX.map(lambda index: [{"session": index, "type": "child"}]),
    })),
    st.tuples(st.just("add_message"), st.fixed_dictionaries({
        "text": st.text(max_size=5), "start": SECOND.map(at), "sender": INDEX, "session": SESSION,
        "entry_id": st.none() | NAME, "model_id": st.none() | NAME,
    })),
    st.tuples(st.just("add_dialog"), st.fixed_dictionaries({
        "type": st.sampled_from(["recording", "text", "recording-set", "incomplete", "transfer"]),
        "start": SECOND.map(at), "duration": st.none() | st.floats(-1, 9), "session": SESSION,
        "parties": INDEX.map(lambda index: [index]), "recordings": st.none() | st.lists(INDEX, max_size=2),
        "recording_set": MAYBE_INDEX, "content": st.none() | BODY, "original": MAYBE_INDEX,
    })),
    st.tuples(st.just("add_dialog"), st.fixed_dictionaries({
        "type": st.just("recording-set"), "start": SECOND.map(at), "session": SESSION,
        "recordings": st.lists(INDEX, max_size=2),
    })),
    st.tuples(st.just("add_dialog"), st.fixed_dictionaries({
        "type": st.just("recording"), "start": SECOND.map(at), "session": SESSION, "content": BODY,
        "parties": INDEX.map(lambda index: [index]), "recording_set": MAYBE_INDEX,
    })),
    st.tuples(st.just("add_attachment"), st.fixed_dictionaries({
        "start": SECOND.map(at), "party": INDEX, "dialog": MAYBE_INDEX, "content": BODY,
    })),
    st.tuples(st.just("add_analysis"), st.fixed_dictionaries({
        "type": NAME, "vendor": NAME, "dialog": st.none() | st.lists(INDEX, max_size=2), "content": BODY,
    })),
    st.tuples(st.just("add_event"), st.fixed_dictionaries({
        "type": st.sampled_from(["join", "drop", "hold", "keydown"]), "time": SECOND.map(at), "party": INDEX,
        "sessions": SESSION, "dialog": MAYBE_INDEX, "button": st.none() | NAME,
    })),
    st.tuples(st.just("add_event"), st.fixed_dictionaries({
        "type": st.just("reasoning"), "time": SECOND.map(at), "party": INDEX, "session": SESSION,
        "content": st.text(max_size=5), "entry_id": st.none() | NAME,
    })),
    st.tuples(st.just("add_event"), st.fixed_dictionaries({
        "type": st.just("tool-invocation"), "time": SECOND.map(at), "party": st.just(0), "sessions": SESSION,
        "operation_id": st.uuids().map(str), "attempt": INDEX, "server": st.just("clock"), "tool": NAME,
        "content": st.none() | BODY,
    })),
    st.tuples(st.just("add_event"), st.fixed_dictionaries({
        "type": st.just("tool-call"), "time": SECOND.map(at), "party": INDEX, "session": SESSION,
        "tool_name": NAME, "input": st.just({}), "call_id": NAME, "entry_id": st.none() | NAME,
    })),
    st.tuples(st.just("update_session"), st.fixed_dictionaries({
        "index": INDEX, "start": SECOND.map(at), "duration": st.integers(0, 80),
        "sessions": INDEX.map(lambda index: [{"session": index, "type": "child"}]),
    })),
    st.tuples(st.just("set_member"), st.fixed_dictionaries({
        "name": st.just("updated_at"), "value": SECOND.map(at),
    })),
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(STEP, max_size=14), st.booleans(), st.booleans())
def test_programs(steps, is_begun, is_read_between):
    """Whatever was added, and whatever was refused on the way, the vCon has no error and no warning."""
    made = Vcon.new(created_at=START)
    for kind in ("bot", "person", "bot"):
        made.add_party(type=kind)
    if is_begun:
        made.add_message("hello", start=at(-5), sender=0)
    for number, (method, arguments) in enumerate(steps):
        before = made.to_bytes()
        try:
            getattr(made, method)(**arguments)
        except UsageError:
            assert made.to_bytes() == before
        if is_read_between and number == 5:
            made = Vcon.read(made.to_bytes())
    assert problems(made) == []

"""Views: every member of the drafts has a property, old names read like new ones, and nothing is changed by reading."""

import copy
import json
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError, UsageError
from onrecord.record.checks.event_tables import EVENT
from onrecord.record.checks.tables import ANALYSIS, ATTACHMENT, DIALOG, OBJECTS, PARTY, SESSION, VCON
from onrecord.record.vcon import agent_views
from onrecord.record.vcon.dialog_view import Dialog
from onrecord.record.vcon.event_views import Event, HistoryEvent
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.references import PriorVersion, amended_from, redacted_from
from onrecord.record.vcon.session_ids import SessionId
from onrecord.record.vcon.views import Analysis, Attachment, Party, Session, SessionReference
from support.data import shared_data
from support.fuzz_targets import views
from support.hostile import ODD_VALUES, SEEDS, mutated
from support.legacy import same
from support.vcons import UUID, text, vcon

CLASSES = {
    "Party": (PARTY, Party),
    "Session": (SESSION, Session),
    "Dialog": (DIALOG, Dialog),
    "Attachment": (ATTACHMENT, Attachment),
    "Analysis": (ANALYSIS, Analysis),
    "Event": (EVENT, Event),
    "Session_Reference": (OBJECTS["Session_Reference"], SessionReference),
    "Party_History": (OBJECTS["Party_History"], HistoryEvent),
    "Redacted": (OBJECTS["Redacted"], PriorVersion),
    "Amended": (OBJECTS["Amended"], PriorVersion),
    "Recording_Agent": (OBJECTS["Recording_Agent"], agent_views.RecordingAgent),
    "VCS_Context": (OBJECTS["VCS_Context"], agent_views.VcsContext),
    "Agent_Meta": (OBJECTS["Agent_Meta"], agent_views.AgentMeta),
    "Environment": (OBJECTS["Environment"], agent_views.Environment),
    "Token_Usage": (OBJECTS["Token_Usage"], agent_views.TokenUsage),
    "File_Attribution": (OBJECTS["File_Attribution"], agent_views.FileAttribution),
    "File": (OBJECTS["File"], agent_views.AttributedFile),
    "File_Conversation": (OBJECTS["File_Conversation"], agent_views.FileConversation),
    "Range": (OBJECTS["Range"], agent_views.LineRange),
    "Contributor": (OBJECTS["Contributor"], agent_views.Contributor),
    "Resource": (OBJECTS["Resource"], agent_views.Resource),
}
"""Tables of the checks with the view of their objects."""

SAMPLES = ("words", 1, True, {"a": "b"}, [1], [{"a": 1}], ["words"], "sha512-" + "A" * 86)
"""Values one of which fits each member."""

OLD = {
    "uuid": UUID,
    "parties": [{}, {}],
    "dialog": [
        {"type": "text", "start": "2026-01-01T12:00:01+01:00"},
        7,
        {"type": "text", "start": "2026-01-01T11:00:00.5Z"},
        {"type": "text", "start": "long ago"},
    ],
}
"""A vCon of the time before sessions."""

ODD = st.sampled_from(ODD_VALUES)
ROLES = ("transferee", "transferor", "transfer_target", "original", "consultation", "target_dialog")


def properties(view):
    """The properties of a view by name."""
    return [name for name in dir(type(view)) if isinstance(getattr(type(view), name), property)]


def readings(view):
    """What every property says, the content included."""
    found = {name: getattr(view, name) for name in properties(view)}
    if hasattr(view, "content") and view.has_body:
        found["content"] = view.content()
    return found


def test_every_table_has_a_view():
    """No table of the checks is without a view."""
    assert {"vCon", *CLASSES} == {
        VCON.name, *(table.name for table in (PARTY, SESSION, DIALOG, ATTACHMENT, ANALYSIS, EVENT)), *OBJECTS
    }  # fmt: skip


@pytest.mark.parametrize(("kind", "member"), [
    (kind, member) for kind, (table, _) in CLASSES.items() for member in table.kinds
])  # fmt: skip
def test_every_member_is_read(kind, member):
    """Each member of each table changes what some property of its view says."""
    make = CLASSES[kind][1]
    empty = readings(make(0, {}))
    assert any(readings(make(0, {member: value})) != empty for value in SAMPLES)


@pytest.mark.parametrize("member", VCON.kinds)
def test_every_member_of_the_vcon_is_read(member):
    """Each top-level member changes what the model says; `group` is only a reserved name."""
    names = properties(Vcon({}))
    empty = {name: getattr(Vcon({}), name) for name in names if name not in ("members", "raw")}
    seen = [
        {name: getattr(Vcon({member: value}), name) for name in empty}
        for value in (*SAMPLES, [{}], "0.0.1", ["ai_agent"])
    ]
    assert any(found != empty for found in seen) is (member != "group")


@pytest.mark.parametrize("kind", CLASSES)
@settings(max_examples=30)
@given(data=st.data())
def test_wrong_types_read_as_absent(kind, data):
    """Any value in any member gives an answer, and never one of a wrong type: no index below 0, no boolean as index."""
    table, make = CLASSES[kind]
    names = st.sampled_from(sorted({*table.kinds, *table.aliases}))
    view = make(0, data.draw(st.dictionaries(names, ODD, max_size=6)))
    for name in properties(view):
        value = getattr(view, name)
        if name not in ("input", "output", "reasoning"):
            assert type(value) is not float or value >= 0
            for item in value if type(value) is tuple else (value,):
                assert type(item) is not int or item >= 0
                assert (
                    name in ("is_error", "is_placeholder", "has_body", "is_virtual") or type(item) is not bool
                )


@given(st.sampled_from(sorted(SEEDS)), st.integers(0, 10**6), st.integers(0, 6))
def test_reading_changes_nothing(seed, number, steps):
    """Reading every property of every view of a damaged file leaves its bytes as they were."""
    document = mutated(SEEDS[seed](), random.Random(number), steps)
    views(json.dumps(document, indent=number % 3 or None).encode())


@example("agent", 676, 1).via("an extension that is an object")
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(SEEDS)), st.integers(0, 10**6), st.integers(0, 4))
def test_change_keeps_everything_else(seed, number, steps):
    """A change of one member leaves every other, understood or not, as it was; one that is refused leaves the bytes.

    Only extensions that are used and not listed are added to the list (record.md D-18).
    """
    document = mutated(SEEDS[seed](), random.Random(number), steps)
    if type(document) is not dict or not document:
        return
    data = json.dumps({**document, "strange": {"a": [None, 1.5]}}).encode()
    try:
        made = Vcon.read(data)
    except MalformedError:
        return
    try:
        made.set_member("updated_at", "2026-11-03T00:00:00Z")
    except UsageError:
        assert made.to_bytes() == data
        return
    try:
        written = made.to_bytes()
    except MalformedError as error:
        assert error.code == "not-canonical"
        return
    before = {**json.loads(data), "updated_at": "2026-11-03T00:00:00Z"}
    after = json.loads(written)
    listed, now = before.pop("extensions", None), after.pop("extensions", None)
    assert same(after, before)
    assert same(now[: len(listed)] if type(listed) is list else now, listed) or listed is None


class TestIndices:
    @pytest.mark.parametrize("value", [-1, [-1], True, "0", 1.5, None, {}])
    def test_no_index_counts_from_the_end(self, value):
        """-1, which older versions wrote for "not known", is no index, nor is anything that is no integer."""
        event = Event(0, {"party": value, "sessions": value, "dialog": value})
        dialog = Dialog(0, dict.fromkeys(ROLES, value))
        assert (event.party, event.sessions, event.dialog) == (None, (), None)
        assert [getattr(dialog, role) for role in ROLES] == [()] * 6

    def test_one_or_many(self):
        """One index, an array and floats without a fraction are read alike."""
        for value in (1, [1], [1.0], [[1]]):
            assert Event(0, {"session": value}).sessions == (1,)
            assert Analysis(0, {"dialog": value, "attachment": value}).dialogs == (1,)

    def test_session_under_either_name(self):
        """The name `sessions` wins over session; a null does not."""
        assert Event(0, {"session": 0, "sessions": [1]}).sessions == (1,)
        assert Event(0, {"session": 0, "sessions": None}).sessions == (0,)

    def test_channels(self):
        """Each channel has its parties; an unused one has none."""
        assert Dialog(0, {"parties": [0, None, [1, 2]]}).channels == ((0,), (), (1, 2))
        assert Dialog(0, {"parties": 3}).channels == ((3,),)
        assert Dialog(0, {}).channels == ()

    def test_originator(self):
        """The originator is the first party unless another is named."""
        assert Dialog(0, {"parties": [2, 1]}).originator == 2
        assert Dialog(0, {"parties": [2, 1], "originator": 1}).originator == 1
        assert Dialog(0, {}).originator is None


class TestOlderVersions:
    def test_session_ids(self):
        """A String of 0.3.0 is split at ;remote=; one without has the nil UUID at the other end."""
        assert SessionId.read("a;remote=b") == ("a", "b")
        assert SessionId.read("a") == ("a", "0" * 32)
        assert SessionId.read({"local": "a"}) == ("a", None)
        assert SessionId.read(7) is None
        assert Dialog(0, {"session_id": ["a;remote=b", None, {}]}).session_ids == (
            ("a", "b"),
            None,
            (None, None),
        )
        assert Session(0, {"session_id": {"local": "a", "remote": "b"}}).session_id == ("a", "b")

    @pytest.mark.parametrize("name", ["transfer_target", "target_dialog"])
    def test_transfer_names(self, name):
        """Names with a hyphen and arrays are read like the present ones, which win."""
        old = name.replace("_", "-")
        assert getattr(Dialog(0, {old: [1, -1]}), name) == (1,)
        assert getattr(Dialog(0, {old: 1, name: 2}), name) == (2,)
        assert getattr(Dialog(0, {old: 1, name: None}), name) == (1,)

    def test_key_events(self):
        """In old files, dtmfdown with dtmf is keydown with button."""
        dialog = Dialog(0, {"party_history": [{}, 7, {"event": "dtmfup", "dtmf": "3", "party": 1}]})
        assert [event.index for event in dialog.party_history] == [0, 2]
        last = dialog.party_history[1]
        assert (last.type, last.button, last.party) == ("keyup", "3", 1)

    @pytest.mark.parametrize(
        ("members", "redacted", "amended"),
        [
            ({"redacted_from": {"uuid": "u"}}, "redacted_from", None),
            ({"redacted": {"uuid": "u"}}, "redacted", None),
            ({"amended": {"uuid": "u"}}, None, "amended"),
            ({"appended": {"uuid": "u"}}, None, "appended"),
            ({"amended_from": {}, "appended": {"uuid": "u"}}, None, "appended"),
            ({"redacted": {}, "amended": None, "appended": []}, None, None),
            ({"redacted": {"uuid": "o"}, "redacted_from": {"uuid": "u"}}, "redacted_from", None),
        ],
    )
    def test_prior_references(self, members, redacted, amended):
        """A reference is read under all of its names, the present one first; an empty one is none."""
        for read, name in ((redacted_from, redacted), (amended_from, amended)):
            found = read(members)
            assert (found and (found.name, found.uuid)) == (name and (name, "u"))

    def test_critical(self):
        """The lists critical and must_support are one."""
        assert Vcon({"critical": ["b", 7], "must_support": ["a", "b"]}).critical == ("b", "a")

    def test_shared_files(self):
        """Published files of four versions are read alike."""
        oldest = Vcon.read(shared_data("vcon", "py-vcon", "ab_call_ext_rec_0.0.1.vcon").read_bytes()).dialogs[
            0
        ]
        newer = Vcon.read(shared_data("vcon", "wg-core", "ab_call_ext_rec.vcon").read_bytes()).dialogs[0]
        for dialog in (oldest, newer):
            assert (dialog.type, dialog.parties, dialog.hashes[0].algorithm) == (
                "recording",
                (0, 1),
                "sha512",
            )
            assert len(dialog.hashes[0].value) == 86
            assert dialog.mediatype.startswith("audio/")
        redacted = Vcon.read(shared_data("vcon", "wg-core", "ab_call_ext_rec_redacted.vcon").read_bytes())
        amended = Vcon.read(shared_data("vcon", "wg-core", "ab_call_ext_rec_amended.vcon").read_bytes())
        appended = Vcon.read(shared_data("vcon", "vcon-info", "ab_call_ext_rec_appended.vcon").read_bytes())
        assert redacted.redacted_from is not None
        assert amended.amended_from.name == "amended"
        assert appended.amended_from.name == "appended"


class TestKind:
    @pytest.mark.parametrize(
        ("members", "listed", "kind"),
        [
            ({"type": "join"}, (), "core"),
            ({"type": "tool-progress"}, (), "tool-invocation"),
            ({"type": "reasoning"}, (), "ai_agent"),
            ({"type": "tool-result", "attempt": 1}, ("ai_agent",), "tool-invocation"),
            ({"type": "tool-result", "output": 1}, ("tool-invocation",), "ai_agent"),
            ({"type": "tool-result", "output": 1, "attempt": 1}, (), "merged"),
            ({"type": "tool-result"}, ("ai_agent",), "ai_agent"),
            ({"type": "tool-result"}, ("ai_agent", "tool-invocation"), "ambiguous"),
            ({"type": "x"}, (), None),
            ({}, (), None),
        ],
    )
    def test_of_event(self, members, listed, kind):
        """An event knows its draft, also where only the vCon's extensions tell."""
        made = Vcon.read(text(vcon(members, extensions=list(listed))))
        assert made.events[0].kind == kind


class TestWithheld:
    def test_null_input(self):
        """Null says that arguments were taken out; absent says nothing."""
        assert Event(0, {"input": None}).is_withheld("input")
        assert not Event(0, {}).is_withheld("input")
        assert not Event(0, {"input": {}}).is_withheld("input")
        assert Event(0, {"input": {}}).has("input")
        assert not Event(0, {"input": None}).has("input")


class TestVirtualSession:
    def test_spans_everything(self):
        """A vCon without sessions has one over all dialogs and parties, from the earliest instant on."""
        made = Vcon(copy.deepcopy(OLD))
        (session,) = made.sessions_or_virtual
        assert session.is_virtual
        assert (session.dialogs, session.parties) == ((0, 1, 2, 3), (0, 1))
        assert session.start == "2026-01-01T11:00:00.5Z"
        assert made.sessions == ()
        assert made.members == OLD

    def test_events_count(self):
        """The earliest event begins it, if no dialog is earlier."""
        made = Vcon({**OLD, "events": [{"type": "join", "time": "2026-01-01T10:00:00Z"}]})
        assert made.sessions_or_virtual[0].start == "2026-01-01T10:00:00Z"

    @pytest.mark.parametrize("sessions", [None, [], "x", {}])
    def test_what_is_no_session(self, sessions):
        """No array of sessions, or an empty one, is none."""
        assert Vcon({**OLD, "sessions": sessions}).sessions_or_virtual[0].is_virtual

    def test_real_sessions_stay(self):
        """A vCon with sessions, placeholders included, has no virtual one; one without content has none at all."""
        assert [item.is_virtual for item in Vcon({**OLD, "sessions": [{}]}).sessions_or_virtual] == [False]
        assert Vcon({"uuid": UUID, "parties": [{}]}).sessions_or_virtual == ()


class TestAgentObjects:
    def test_nested(self):
        """Objects of ai_agent inside of others are views as well."""
        made = Vcon({
            "recording_agent": {"name": "recorder", "version": "1"},
            "vcs": {"type": "git", "branch": "main"},
            "file_attribution": {"files": [{"path": "a.py", "conversations": [
                {"contributor": {"type": "ai"}, "related": [{"type": "issue", "url": "https://example.com/1"}],
                 "ranges": [{"start_line": 1, "end_line": 2, "content_hash": "00"}]}]}]},
            "parties": [{"agent_meta": {"model_id": "m", "models": ["m", 7, "n"]}}],
            "sessions": [{"environment": {"working_dir": "/w", "vcs": {"type": "jj"}, "sandboxes": ["/s"]}}],
            "dialog": [{"token_usage": {"input": 3.0, "output": -1, "cost": 0.25, "total": "7"}}],
        })  # fmt: skip
        assert (made.recording_agent.name, made.vcs.branch) == ("recorder", "main")
        conversation = made.file_attribution.files[0].conversations[0]
        assert (conversation.contributor.type, conversation.related[0].type) == ("ai", "issue")
        lines = conversation.ranges[0]
        assert (lines.start_line, lines.end_line, lines.content_hash_alg) == (1, 2, "sha-256")
        assert made.parties[0].agent_meta.models == ("m", "n")
        environment = made.sessions[0].environment
        assert (environment.vcs.type, environment.sandboxes) == ("jj", ("/s",))
        usage = made.dialogs[0].token_usage
        assert (usage.input, usage.output, usage.cost, usage.total) == (3, None, 0.25, None)

    def test_huge_numbers(self):
        """Integers beyond a double and infinities are no reason to stop."""
        assert Session(0, {"duration": 10**400}).duration == 10**400
        assert Session(0, {"duration": float("inf")}).duration is None
        assert Session(0, {"duration": float("nan")}).duration is None

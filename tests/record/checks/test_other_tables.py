"""The tables of ai_agent, of core events and of dialogs, one test per cell."""

import copy

import pytest

from onrecord.record.checks.event_tables import EVENT
from onrecord.record.checks.tables import DIALOG
from support.vcons import faults, findings, vcon

AI_ROWS = {"tool-call": "AA-114", "tool-result": "AA-115", "reasoning": "AA-116", "system-event": "AA-117"}
AI_BASE = {"time": "2026-11-02T12:00:02Z", "session": 0, "party": 0}
AI_OWN = {
    "tool-call": {"tool_name": "Read", "input": {"path": "x"}, "call_id": "c"},
    "tool-result": {"output": "x", "call_id": "c", "status": "success"},
    "reasoning": {"content": "think"},
    "system-event": {"event_type": "session-start"},
}
AI_VALUES = {
    "tool_name": "x",
    "input": "x",
    "call_id": "c",
    "output": "x",
    "status": "success",
    "is_error": False,
    "content": "x",
    "encrypted": "x",
    "subject": "x",
    "event_type": "x",
    "data": {},
    "dialog": 0,
    "button": "1",
    "transferee": 0,
    "transfer_target": 0,
    "consultation": 0,
    "target_session": 0,
}
TEXT = {"type": "text", "start": "2026-11-02T12:00:00Z", "parties": 0, "mediatype": "text/plain",
        "encoding": "none", "body": "hello"}  # fmt: skip
HASH = "sha512-" + "A" * 86


def ai(kind, **members):
    """A vCon with one event of ai_agent, and its partner where it has one."""
    events = [{"type": kind, **AI_BASE, **AI_OWN[kind], **members}]
    if kind == "tool-result":
        events.append({"type": "tool-call", **AI_BASE, **AI_OWN["tool-call"]})
    made = vcon(*events, extensions=["ai_agent"], dialog=[TEXT])
    made["sessions"][0]["dialog"] = [0]
    return made


def without(made, member, index=0):
    del made["events"][index][member]
    return made


def ai_cells(level):
    return [
        pytest.param(kind, member, marks=pytest.mark.req(AI_ROWS[kind]), id=f"{kind}-{member}")
        for kind in AI_ROWS
        for member, letter in EVENT.levels[f"ai_agent {kind}"].items()
        if letter == level and member not in ("type", "party")
    ]


class TestAiAgent:
    @pytest.mark.parametrize("kind", AI_ROWS)
    def test_sample_is_right(self, kind):
        """An event with what it must have has no fault."""
        assert faults(ai(kind)) == []

    @pytest.mark.parametrize(("kind", "member"), ai_cells("M"))
    @pytest.mark.req("AA-098", "AA-099", "AA-102", "AA-107", "AA-112")
    def test_must_be_present(self, kind, member):
        """Without a parameter that must be present there is exactly that error."""
        assert faults(without(ai(kind), member)) == [("required-missing", "error", "/events/0")]

    @pytest.mark.parametrize("kind", AI_ROWS)
    @pytest.mark.req("AA-093", "AA-094")
    def test_party_and_session(self, kind):
        """Every event names its session and its agent."""
        assert ("event-session-missing", "error", "/events/0") in faults(without(ai(kind), "session"))
        assert ("required-missing", "error", "/events/0") in faults(without(ai(kind), "party"))

    @pytest.mark.parametrize(("kind", "member"), ai_cells("X"))
    @pytest.mark.req("AA-118")
    def test_must_not_be_present(self, kind, member):
        """With a parameter that must not be present there is exactly that error, at the member."""
        found = faults(ai(kind, **{member: AI_VALUES[member]}))
        assert ("forbidden-present", "error", f"/events/0/{member}") in found
        assert [entry for entry in found if entry[1] == "error"] == [
            ("forbidden-present", "error", f"/events/0/{member}")
        ]

    @pytest.mark.parametrize(
        ("kind", "member", "value"),
        [
            ("tool-call", "tool_name", 5),
            ("tool-call", "call_id", 5),
            ("tool-result", "status", 5),
            ("tool-result", "is_error", "true"),
            ("reasoning", "encrypted", 1),
            ("reasoning", "subject", []),
            ("system-event", "event_type", {}),
            ("system-event", "data", "x"),
            ("tool-call", "entry_id", 1),
            ("tool-call", "parent_id", 1),
        ],
    )
    @pytest.mark.req("AA-100", "AA-103", "AA-104", "AA-105", "AA-109", "AA-110", "AA-113")
    def test_types(self, kind, member, value):
        """A value of the wrong type is an error at the value."""
        assert ("type-mismatch", "error", f"/events/0/{member}") in faults(ai(kind, **{member: value}))

    def test_null_input_and_output_are_values(self):
        """A withheld input or output is null and nothing is missing."""
        assert faults(ai("tool-call", input=None)) == []
        assert faults(ai("tool-result", output=None)) == []
        assert ("required-missing", "error", "/events/0") in faults(ai("reasoning", content=None))

    @pytest.mark.parametrize(
        ("owner", "value", "expected"),
        [
            ("recording_agent", {}, ("required-missing", "error", "/recording_agent")),
            ("recording_agent", {"name": 1}, ("type-mismatch", "error", "/recording_agent/name")),
            ("recording_agent", [], ("type-mismatch", "error", "/recording_agent")),
            ("recording_agent", {"name": "x", "more": 1}, None),
            ("vcs", {}, ("required-missing", "error", "/vcs")),
            ("vcs", {"type": "git", "branch": 1}, ("type-mismatch", "error", "/vcs/branch")),
            ("file_attribution", {}, ("required-missing", "error", "/file_attribution")),
            ("file_attribution", {"files": {}}, ("type-mismatch", "error", "/file_attribution/files")),
            ("file_attribution", {"files": [{}]}, ("required-missing", "error", "/file_attribution/files/0")),
            ("file_attribution", {"files": [], "x": 1},
             ("closed-object-member", "warning", "/file_attribution/x")),
        ],
    )  # fmt: skip
    @pytest.mark.req("AA-024", "AA-037", "AA-038", "AA-040", "AA-041", "AA-043", "AA-119", "AA-121")
    def test_top_objects(self, owner, value, expected):
        """The objects at the top have what they must; open ones take more, closed ones do not."""
        found = faults(vcon(extensions=["ai_agent"], **{owner: value}))
        assert set(found) == ({expected} if expected else set())

    @pytest.mark.parametrize(
        ("path", "value", "code"),
        [
            (("files", 0, "path"), "/etc/x", "path-unsafe"),
            (("files", 0, "path"), "a/../b", "path-unsafe"),
            (("files", 0, "path"), "C:x", "path-unsafe"),
            (("files", 0, "path"), "a\\b", "path-unsafe"),
            (("files", 0, "path"), "a\x00b", "path-unsafe"),
            (("files", 0, "conversations", 0, "url"), "a b", "uri-invalid"),
            (("files", 0, "conversations", 0, "ranges", 0, "start_line"), 0, "range-invalid"),
            (("files", 0, "conversations", 0, "ranges", 0, "end_line"), 2, "range-invalid"),
            (("files", 0, "conversations", 0, "ranges", 0, "end_line"), "9", "type-mismatch"),
            (("files", 0, "conversations", 0, "ranges", 0, "content_hash"), "AB", "range-hash-form"),
            (("files", 0, "conversations", 0, "contributor", "type"), "robot", "enum-invalid"),
            (("files", 0, "conversations", 0, "related", 0, "url"), 5, "type-mismatch"),
            (("files", 0, "more"), 5, "closed-object-member"),
            (("files", 0, "conversations", 0, "ranges", 0, "more"), 5, "closed-object-member"),
            (("files", 0, "conversations", 0, "contributor", "more"), 5, "closed-object-member"),
            (("files", 0, "conversations", 0, "related", 0, "more"), 5, "closed-object-member"),
            (("files", 0, "conversations", 0, "more"), 5, "closed-object-member"),
        ],
    )
    @pytest.mark.req(
        "AA-025", "AA-026", "AA-027", "AA-028", "AA-029", "AA-044", "AA-045", "AA-046", "AA-047", "AA-048",
        "AA-049", "AA-051", "AA-052", "AA-053", "AA-054", "AA-055", "AA-056", "AA-057", "AA-058", "AA-059",
    )  # fmt: skip
    def test_file_attribution(self, path, value, code):
        """Each wrong value in the tree of files gives its finding."""
        tree = {
            "files": [
                {
                    "path": "src/a.py",
                    "conversations": [
                        {
                            "url": "https://example.com/c",
                            "contributor": {"type": "ai", "model_id": "m"},
                            "ranges": [{"start_line": 3, "end_line": 4, "content_hash": "a" * 64}],
                            "related": [{"type": "issue", "url": "https://example.com/i"}],
                        }
                    ],
                }
            ]
        }
        assert faults(vcon(extensions=["ai_agent"], file_attribution=copy.deepcopy(tree))) == []
        place = tree
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        assert [entry[0] for entry in faults(vcon(extensions=["ai_agent"], file_attribution=tree))] == [code]

    @pytest.mark.parametrize(
        ("member", "value", "fault"),
        [
            ("agent_meta", {"model_id": "m"}, ("required-missing", "error", "/parties/0/agent_meta")),
            ("agent_meta", {"model_id": "m", "model_provider": 1},
             ("type-mismatch", "error", "/parties/0/agent_meta/model_provider")),
            ("agent_meta", {"model_id": "m", "model_provider": "p", "models": "x"},
             ("type-mismatch", "error", "/parties/0/agent_meta/models")),
            ("type", "person", ("agent-party-type", "warning", "/parties/0/type")),
        ],
    )  # fmt: skip
    @pytest.mark.req("AA-061", "AA-062", "AA-063", "AA-064", "AA-065", "AA-066", "AA-067")
    def test_agent_meta(self, member, value, fault):
        """An agent says its model and provider, and is a bot."""
        made = vcon(extensions=["ai_agent"])
        made["parties"][0]["agent_meta"] = {"model_id": "m", "model_provider": "p"}
        assert faults(made) == []
        made["parties"][0][member] = value
        assert faults(made) == [fault]

    @pytest.mark.parametrize(
        ("member", "value", "fault"),
        [
            ("agent_session_id", 1, ("type-mismatch", "error", "/sessions/0/agent_session_id")),
            ("format", 1, ("type-mismatch", "error", "/sessions/0/format")),
            ("environment", {}, ("required-missing", "error", "/sessions/0/environment")),
            ("environment", {"working_dir": "x", "sandboxes": "y"},
             ("type-mismatch", "error", "/sessions/0/environment/sandboxes")),
            ("environment", {"working_dir": "x", "vcs": {}},
             ("required-missing", "error", "/sessions/0/environment/vcs")),
        ],
    )  # fmt: skip
    @pytest.mark.req("AA-071", "AA-073", "AA-075", "AA-076", "AA-077", "AA-078")
    def test_session(self, member, value, fault):
        """The session members of the draft have their types."""
        made = vcon(extensions=["ai_agent"])
        made["sessions"][0][member] = value
        assert faults(made) == [fault]

    @pytest.mark.parametrize("name", ["input", "output", "cached", "reasoning", "total"])
    @pytest.mark.req("AA-083", "AA-084", "AA-085", "AA-086", "AA-087", "AA-088", "AA-089")
    def test_token_usage(self, name):
        """Token counts are unsigned integers, cost is any number."""
        made = vcon(extensions=["ai_agent"], dialog=[{**TEXT, "token_usage": {name: 5, "cost": 0.5}}])
        made["sessions"][0]["dialog"] = [0]
        assert faults(made) == []
        for value in (-1, "5", 1.5, True):
            made["dialog"][0]["token_usage"][name] = value
            assert faults(made) == [("type-mismatch", "error", f"/dialog/0/token_usage/{name}")]

    @pytest.mark.req("AA-020")
    def test_extension_is_listed(self):
        """Members or events of the draft without its name are a warning."""
        for made in (
            vcon(recording_agent={"name": "x"}),
            ai("reasoning"),
        ):
            made["extensions"] = []
            assert faults(made) == [("extension-not-listed", "warning", "/extensions")]


CORE_SAMPLES = {
    "join": {},
    "drop": {},
    "hold": {},
    "unhold": {},
    "mute": {},
    "unmute": {},
    "keydown": {"button": "1"},
    "keyup": {"button": "1"},
    "consultation-start": {"transferee": 0, "transfer_target": 0, "consultation": 0},
    "blind-transfer": {"transferee": 0, "transfer_target": 0, "target_session": 0},
    "consultative-transfer": {"transferee": 0, "transfer_target": 0, "consultation": 0, "target_session": 0},
    "transfer-abandoned": {"transferee": 0},
}
CORE_VALUES = {"dialog": 0, "button": "1", "transferee": 0, "transfer_target": 0, "consultation": 0,
               "target_session": 0}  # fmt: skip


def core(kind, **members):
    event = {"type": kind, "time": "2026-11-02T12:00:01Z", "sessions": 0, "party": 0, **CORE_SAMPLES[kind]}
    event.update(members)
    made = vcon(event, extensions=None, dialog=[TEXT])
    made["sessions"][0]["dialog"] = [0]
    return made


def core_cells(level):
    return [
        pytest.param(kind, member, id=f"{kind}-{member}")
        for kind in CORE_SAMPLES
        for member, letter in EVENT.levels[f"core {kind}"].items()
        if letter == level and member != "type"
    ]


class TestCoreEvents:
    @pytest.mark.parametrize("kind", CORE_SAMPLES)
    def test_sample_is_right(self, kind):
        """An event with what it must have has no fault."""
        assert faults(core(kind)) == []

    @pytest.mark.parametrize(("kind", "member"), core_cells("M"))
    def test_must_be_present(self, kind, member):
        """Without a parameter that must be present there is exactly that error."""
        assert faults(without(core(kind), member)) == [("required-missing", "error", "/events/0")]

    @pytest.mark.parametrize(("kind", "member"), core_cells("X"))
    def test_must_not_be_present(self, kind, member):
        """With a parameter that must not be present there is exactly that error."""
        assert faults(core(kind, **{member: CORE_VALUES[member]})) == [
            ("forbidden-present", "error", f"/events/0/{member}")
        ]


DIALOG_VALUES = {
    "type": "text",
    "start": "2026-11-02T12:00:00Z",
    "duration": 0,
    "parties": [0],
    "originator": 1,
    "recordings": [1],
    "recording_set": 1,
    "mediatype": "text/plain",
    "filename": "x",
    "body": "x",
    "url": "https://example.com/x",
    "encoding": "none",
    "content_hash": HASH,
    "disposition": "busy",
    "session_id": {"local": "x", "remote": "y"},
    "party_history": [],
    "transferee": 0,
    "transferor": 0,
    "transfer_target": 0,
    "original": 1,
    "target_dialog": 1,
    "consultation": 1,
    "application": "x",
    "message_id": "x",
}
DIALOG_SAMPLES = {
    "recording": ("start", "parties", "url", "content_hash"),
    "recording-set": ("start", "parties", "recordings"),
    "text": ("start", "parties", "mediatype", "encoding", "body"),
    "transfer": ("transferee", "transferor", "original", "target_dialog"),
    "incomplete": ("start", "parties", "disposition"),
}


def dialog(kind, *members):
    """A vCon with a dialog of this type, and a recording beside it that points back where that is asked for."""
    own = {name: DIALOG_VALUES[name] for name in (*DIALOG_SAMPLES[kind], *members)}
    other = {"type": "recording", "start": "2026-11-02T12:00:00Z", "parties": 0, "url": "https://example.com/y",
             "content_hash": HASH}  # fmt: skip
    if kind == "recording-set":
        other["recording_set"] = 0
    if "recording_set" in members and kind == "recording":
        other = {"type": "recording-set", "start": "2026-11-02T12:00:00Z", "parties": 0, "recordings": [0]}
    made = vcon(extensions=None, events=None, dialog=[{"type": kind, **own}, other])
    made["parties"].append({})
    made["sessions"][0].update({"dialog": [0, 1], "parties": [0, 1]})
    return made


def dialog_cells(level):
    return [
        pytest.param(kind, member, id=f"{kind}-{member}")
        for kind in DIALOG_SAMPLES
        for member, letter in DIALOG.levels[kind].items()
        if letter == level and member != "type"
    ]


class TestDialogs:
    @pytest.mark.parametrize("kind", DIALOG_SAMPLES)
    def test_sample_is_right(self, kind):
        """A dialog with what it should have has no finding at all."""
        assert findings(dialog(kind)) == []

    @pytest.mark.parametrize(("kind", "member"), dialog_cells("M"))
    def test_must_be_present(self, kind, member):
        """Without a parameter that must be present there is that error."""
        made = dialog(kind)
        del made["dialog"][0][member]
        assert ("required-missing", "error", "/dialog/0") in faults(made)

    @pytest.mark.parametrize(("kind", "member"), dialog_cells("S"))
    def test_should_be_present(self, kind, member):
        """Without a parameter that should be present there is a note and no fault."""
        made = dialog(kind)
        del made["dialog"][0][member]
        assert ("recommended-missing", "info", "/dialog/0") in findings(made)
        assert faults(made) == []

    @pytest.mark.parametrize(("kind", "member"), dialog_cells("X"))
    def test_must_not_be_present(self, kind, member):
        """With a parameter that must not be present there is exactly that error."""
        assert faults(dialog(kind, member)) == [("forbidden-present", "error", f"/dialog/0/{member}")]

    @pytest.mark.parametrize(("kind", "member"), dialog_cells("D"))
    def test_discouraged(self, kind, member):
        """A discouraged parameter is a warning."""
        assert faults(dialog(kind, member)) == [("discouraged-present", "warning", f"/dialog/0/{member}")]

    @pytest.mark.parametrize(("kind", "member"), dialog_cells("O"))
    def test_optional(self, kind, member):
        """An optional parameter of the right type gives no fault."""
        if member in ("model_id", "token_usage", "entry_id", "parent_id"):
            pytest.skip("ai_agent members are checked above")
        made = dialog(kind, member)
        if member == "session_id" and kind != "recording-set":
            made["dialog"][0][member] = [DIALOG_VALUES[member]]
        assert faults(made) == []

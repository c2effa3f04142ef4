"""The published JSON schemas as a second opinion: where they and the text differ is known, and nothing else differs.

The text beats the schema (record.md, principle 1). Each known difference must occur, or it is none any more.
"""

import copy
import json

import jsonschema
import pytest

from onrecord.base.namespaces import TI_EVENT_TYPES
from onrecord.record.checks.checker import check
from onrecord.record.vcon.event_types import kind_of
from support.complete import START, complete
from support.data import shared_data
from support.vcons import HASH, TEXT_CONTENT, answer, decision, invocation, places, standing, text, vcon

SCHEMAS = shared_data("vcon", "schema")
VALUES = (None, True, -1, "x", [], {}, [0], [None])
DROP = object()


OLDER_CORE = "vcon_json_schema.core-03.json"
CORE = "vcon_json_schema.core-04.rebuilt.json"
ELEMENTS = {"parties": "Party", "dialog": "Dialog", "analysis": "Analysis", "attachments": "Attachment"}


def schema(name, definition=None):
    """A published schema, or one definition of it."""
    rules = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    if definition is not None:
        rules = {"definitions": rules["definitions"], "$ref": f"#/definitions/{definition}"}
    return jsonschema.Draft7Validator(rules)


def call():
    """A vCon of 0.4.0 with a dialog of every type, in which every member that the schema knows occurs."""
    made = complete()
    made["redacted"] = made.pop("redacted_from")
    del made["sessions"], made["recording_agent"], made["vcs"], made["file_attribution"]
    made["dialog"] += [
        {"type": "recording-set", "start": START, "recordings": [3], "parties": [0]},
        {"type": "recording", "start": START, "recording_set": 2, "parties": [0], "mediatype": "audio/x-wav",
         "url": "https://example.com/x", "content_hash": HASH},
        {"type": "transfer", "start": START, "transferee": 0, "transferor": 0, "transfer_target": 1, "original": 1,
         "target_dialog": 1, "consultation": 1},
        {"type": "incomplete", "start": START, "parties": [0], "disposition": "busy"},
    ]  # fmt: skip
    return made


def changed(document, path, value):
    """A copy with another value at a path, or without what stands there."""
    made = copy.deepcopy(document)
    owner = made
    for key in path[:-1]:
        owner = owner[key]
    if value is DROP:
        del owner[path[-1]]
    else:
        owner[path[-1]] = value
    return made


def errors(document, profile=None):
    return {one.code for one in check(text(document), profile=profile).findings if one.severity == "error"}


TRANSFER = ("transferee", "transferor", "transfer_target", "original", "target_dialog", "consultation")
ACCEPTED = {
    "null is read as absent (D-09)": lambda path, value: value is None,
    "null for a party without a session id": lambda path, value: path[-1] == "session_id" and value == [None],
    "a placeholder of redaction (D-19)": lambda path, value: value == {} and len(path) == 2,
    "an empty reference is absent (1.3)": lambda path, value: value == {} and path == ("redacted",),
    "transfers of core-01 to -03 (1.3)": lambda path, value: path[-1] in TRANSFER and value in (-1, [0], []),
    "party events are an open list": lambda path, value: path[-1] == "event" and value == "x",
}
"""Where the core schemas reject what the text accepts, by path and value."""

ONLY_TEXT = {
    "type-mismatch", "required-missing", "encoding-body-type", "date-invalid", "mediatype-invalid", "index-range",
    "content-hash-invalid", "url-invalid", "did-invalid", "uuid-invalid", "session-id-shape", "critical-unsupported",
}  # fmt: skip
"""Errors that the core schemas do not see in a vCon that has one of them alone."""


class TestCore:
    def test_one_change(self):
        """One value changed in a correct vCon: we see what the schema sees, but for the known differences."""
        document, whole = call(), schema(CORE)
        parts = {array: schema(CORE, definition) for array, definition in ELEMENTS.items()}
        assert whole.is_valid(document)
        assert errors(document, "0.4.0") == set()
        seen, alone = set(), set()
        for path in places(document):
            for value in (*VALUES, DROP):
                made = changed(document, path, value)
                part = len(path) > 1 and parts.get(path[0])
                if part and (value is not DROP or len(path) > 2):
                    valid = part.is_valid(made[path[0]][path[1]])
                else:
                    valid = whole.is_valid(made)
                own = errors(made, "0.4.0")
                if valid:
                    alone |= own
                elif not own:
                    reasons = [reason for reason, holds in ACCEPTED.items() if holds(path, value)]
                    assert reasons, (path, value)
                    seen.update(reasons)
        assert seen == set(ACCEPTED)
        assert alone == ONLY_TEXT

    def test_start(self):
        """The schema of core-03 asks for the start of a dialog, that of core-04 and the text do not (D-04)."""
        made = changed(call(), ("dialog", 0, "start"), DROP)
        assert [schema(name).is_valid(made) for name in (OLDER_CORE, CORE)] == [False, True]
        assert errors(made, "0.4.0") == set()
        assert errors({**made, "vcon": "0.3.0"}, "0.3.0") == {"required-missing"}

    @pytest.mark.parametrize("name", [OLDER_CORE, CORE])
    def test_own_examples(self, name):
        """The schema accepts every example of 0.5.0 that is right, since it ignores sessions and events."""
        validator = schema(name)
        for path in shared_data("vcon").glob("*.json"):
            document = json.loads(path.read_text(encoding="utf-8"))
            if "uuid" in document:
                assert errors(document) == set()
                assert validator.is_valid(document)


def tool_events():
    """A correct event for every column of the tables."""
    yield decision()
    yield standing()
    yield standing(tool=None)
    yield invocation(**TEXT_CONTENT)
    for kind in TI_EVENT_TYPES:
        if kind not in ("policy-decision", "tool-invocation"):
            yield answer(kind)
    external = {"url": "https://example.com/x", "content_hash": HASH, "mediatype": "text/plain"}
    yield invocation(**external, attachment=[0])


def around(event):
    attachment = {"start": START, "party": 0, "dialog": 0, **TEXT_CONTENT}
    message = {"type": "text", "start": START, "parties": [0], **TEXT_CONTENT}
    made = vcon(event, attachments=[attachment], dialog=[message])
    made["sessions"][0]["dialog"] = [0]
    return made


SHA256 = "sha-256-" + "A" * 43
SCHEMA_ACCEPTS = [
    (invocation(body="x", encoding="none"), "mediatype-missing"),
    ({**invocation(), "time": DROP}, "required-missing"),
    (invocation(body="x", encoding="xml", mediatype="text/plain"), "encoding-invalid"),
    (invocation(body=1, encoding="none", mediatype="text/plain"), "encoding-body-type"),
    (invocation(body=[], encoding="base64url", mediatype="text/plain"), "encoding-body-type"),
    (invocation(encoding="none"), "encoding-without-body"),
    (invocation(content_hash=HASH), "hash-without-url"),
    (invocation(url="http://example.com/x", content_hash=HASH), "url-not-https"),
    (invocation(server="!foo"), "server-reserved"),
    (invocation(sessions="0"), "type-mismatch"),
    (invocation(party="0"), "type-mismatch"),
    (invocation(url="https://example.com/x", content_hash=SHA256), "content-hash-invalid"),
    (invocation(**TEXT_CONTENT, content_hash=HASH), "hash-without-url"),
    (invocation(url="https://example.com/x", content_hash=HASH, encoding="none"), "encoding-without-body"),
    (invocation(attachment=[]), "empty-value"),
    (invocation(operation_id=""), "empty-value"),
]
"""What the schema of tool-invocation accepts and the text does not (record.md 4.8, TI-252)."""

FOREIGN = {
    "time": START,
    "sessions": 0,
    "party": 0,
    "reason": 5,
    "operation": [],
    "attempt": "x",
    "tool": {},
    "server": 1,
}
SCHEMA_REJECTS = [
    {
        name: value
        for name, value in decision(operation="delegation").items()
        if name not in ("server", "tool")
    },
    {"type": "com.example.approval", **FOREIGN},
    {
        "type": "tool-result",
        "time": START,
        "session": 0,
        "party": 0,
        "output": "x",
        "call_id": "c",
        "is_error": False,
    },
    invocation(reason=None),
]
"""What it rejects and the text does not: another operation, events of others, the tool-result of ai_agent, null."""


class TestToolInvocation:
    SCHEMA = "tool_invocation_json_schema.recovered.json"

    def told(self, event):
        return [
            one.code
            for one in check(text(around(event))).findings
            if one.severity != "info" and one.pointer.startswith("/events")
        ]

    def test_samples(self):
        """A correct event of every type is right for both."""
        validator = schema(self.SCHEMA)
        for event in tool_events():
            assert validator.is_valid({"events": [event]})
            assert self.told(event) == []

    @pytest.mark.parametrize(("event", "code"), SCHEMA_ACCEPTS)
    def test_schema_accepts(self, event, code):
        """The schema lets these pass; the check reports exactly what is wrong."""
        event = {name: value for name, value in event.items() if value is not DROP}
        assert schema(self.SCHEMA).is_valid({"events": [event]})
        assert self.told(event) == [code]

    @pytest.mark.parametrize("event", SCHEMA_REJECTS)
    def test_schema_rejects(self, event):
        """The schema refuses these, and nothing is wrong with them."""
        assert not schema(self.SCHEMA).is_valid({"events": [event]})
        assert [
            code for code in self.told(event) if code not in ("call-id-dangling", "extension-not-listed")
        ] == []

    def test_one_change(self):
        """One member changed, left out or added: what the schema rejects in an event of the draft, we reject."""
        validator = schema(self.SCHEMA)
        members = {name: event[name] for event in tool_events() for name in event}
        rejected = 0
        for event in tool_events():
            changes = [(name, value) for name in event for value in (*VALUES, DROP)]
            changes += [(name, value) for name, value in members.items() if name not in event]
            for name, value in changes:
                made = changed(event, (name,), value)
                if kind_of(made, ["tool-invocation"]) != "tool-invocation" or value is None:
                    continue
                if not validator.is_valid({"events": [made]}):
                    rejected += 1
                    assert errors(around(made)), (event["type"], name, value)
        assert rejected > 200

"""The tables of tool-invocation, one test per cell: remove what must be there, add what must not."""

import pytest

from onrecord.base.namespaces import TI_EVENT_TYPES, TOOL_EVENT_TYPES
from onrecord.record.checks.event_tables import CONTENT_LEVELS
from support.vcons import answer, decision, faults, findings, invocation, standing, vcon

ROWS = {
    "once": "TI-097",
    "standing": "TI-098",
    "tool-invocation": "TI-100",
    "tool-pending": "TI-101",
    "tool-progress": "TI-102",
    "tool-input": "TI-103",
    "tool-input-response": "TI-104",
    "tool-result": "TI-105",
    "tool-failure": "TI-106",
    "tool-error": "TI-107",
    "tool-denied": "TI-108",
    "tool-timeout": "TI-109",
    "tool-cancel": "TI-110",
}
DECISION_MEMBERS = ("decision", "policy_life", "reason", "operation")
EXTRA = {
    "decision": "allowed",
    "policy_life": "once",
    "reason": "because",
    "operation": "tool-invocation",
    "operation_id": "x",
    "attempt": 1,
    "server": "clock",
    "tool": "now",
    "body": "x",
    "encoding": "none",
    "mediatype": "text/plain",
    "url": "https://example.com/x",
    "content_hash": "sha512-" + "A" * 86,
    "attachment": 0,
}
MUST = {
    "once": ("time", "sessions", "party", "decision", "policy_life", "operation", "operation_id", "attempt",
             "server", "tool"),
    "standing": ("time", "sessions", "party", "decision", "policy_life", "operation", "server"),
    "tool-invocation": ("time", "sessions", "party", "operation_id", "attempt", "server", "tool"),
}  # fmt: skip
CONTENT = ("body", "encoding", "mediatype", "url", "content_hash", "attachment")
MUST_NOT = {
    "once": CONTENT,
    "standing": ("operation_id", "attempt", *CONTENT),
    "tool-invocation": DECISION_MEMBERS,
}
for _kind in TOOL_EVENT_TYPES[1:]:
    MUST[_kind] = ("time", "sessions", "party", "operation_id", "attempt")
    MUST_NOT[_kind] = (*DECISION_MEMBERS, "server", "tool")

ATTACHMENTS = [
    {"start": "2026-11-02T12:00:00Z", "party": 0, "dialog": 0, "mediatype": "text/plain", "encoding": "none",
     "body": "file"}
]  # fmt: skip
DIALOG = [{"type": "text", "start": "2026-11-02T12:00:00Z", "parties": 0, "mediatype": "text/plain",
           "encoding": "none", "body": "hello"}]  # fmt: skip


def sample(kind):
    if kind == "once":
        return decision()
    if kind == "standing":
        return standing()
    return invocation() if kind == "tool-invocation" else answer(kind)


def document(event):
    made = vcon(event, dialog=DIALOG, attachments=ATTACHMENTS)
    made["sessions"][0]["dialog"] = [0]
    return made


def cells(table):
    return [
        pytest.param(kind, member, marks=pytest.mark.req(ROWS[kind]), id=f"{kind}-{member}")
        for kind, members in table.items()
        for member in members
    ]


class TestCells:
    @pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.req(ROWS[kind])) for kind in ROWS])
    def test_sample_is_right(self, kind):
        """An event with everything it must have has no fault."""
        assert faults(document(sample(kind))) == []

    @pytest.mark.parametrize(("kind", "member"), cells(MUST))
    @pytest.mark.req("TI-126", "TI-129", "TI-138", "TI-143", "TI-146", "TI-150", "TI-153", "TI-161", "TI-162")
    def test_must_be_present(self, kind, member):
        """Without a parameter that must be present there is exactly that error, and it names the parameter."""
        event = sample(kind)
        del event[member]
        code = "event-session-missing" if member == "sessions" else "required-missing"
        assert faults(document(event)) == [(code, "error", "/events/0")]

    @pytest.mark.parametrize(("kind", "member"), cells(MUST))
    def test_null_is_not_present(self, kind, member):
        """A null where a value must be counts as missing."""
        code = "event-session-missing" if member == "sessions" else "required-missing"
        assert (code, "error", "/events/0") in faults(document({**sample(kind), member: None}))

    @pytest.mark.parametrize(("kind", "member"), cells(MUST_NOT))
    @pytest.mark.req("TI-111", "TI-130", "TI-139", "TI-154", "TI-164")
    def test_must_not_be_present(self, kind, member):
        """With a parameter that must not be present there is exactly that error, at the member."""
        event = {**sample(kind), member: EXTRA[member]}
        assert faults(document(event)) == [("forbidden-present", "error", f"/events/0/{member}")]

    @pytest.mark.parametrize("kind", list(CONTENT_LEVELS))
    def test_content(self, kind):
        """Content that should be there and is not is a note; where it is optional there is none."""
        event = {
            name: value
            for name, value in sample(kind).items()
            if name not in ("body", "encoding", "mediatype")
        }
        expected = [("content-missing", "info", "/events/0")] if CONTENT_LEVELS[kind] == "S" else []
        found = [entry for entry in findings(document(event)) if entry[0] == "content-missing"]
        assert found == expected

    @pytest.mark.parametrize("kind", TOOL_EVENT_TYPES)
    @pytest.mark.req("TI-177")
    def test_attachment(self, kind):
        """Attachments are indices into the array: one or several, in range, and not an empty list."""
        for value in (0, [0]):
            assert faults(document({**sample(kind), "attachment": value})) == []
        assert ("index-range", "error", "/events/0/attachment") in faults(
            document({**sample(kind), "attachment": 1})
        )
        assert ("index-range", "error", "/events/0/attachment/1") in faults(
            document({**sample(kind), "attachment": [0, 5]})
        )
        assert ("empty-value", "warning", "/events/0/attachment") in faults(
            document({**sample(kind), "attachment": []})
        )

    @pytest.mark.req("TI-214", "TI-215", "TI-076")
    def test_registry(self):
        """Twelve event types and fourteen parameters, spelled as registered."""
        from onrecord.record.checks.event_tables import EVENT

        assert len(TI_EVENT_TYPES) == 12
        assert set(EXTRA) == {
            "operation_id", "attempt", "decision", "policy_life", "reason", "operation", "server", "tool",
            "body", "encoding", "url", "content_hash", "mediatype", "attachment",
        }  # fmt: skip
        assert set(EXTRA) <= set(EVENT.kinds)


class TestTypes:
    @pytest.mark.parametrize(
        ("member", "value", "code", "place"),
        [
            ("time", "2026-11-02", "date-invalid", "time"),
            ("time", 5, "type-mismatch", "time"),
            ("party", "0", "type-mismatch", "party"),
            ("party", [0], "type-mismatch", "party"),
            ("party", True, "type-mismatch", "party"),
            ("party", 4, "index-range", "party"),
            ("sessions", "0", "type-mismatch", "sessions"),
            ("sessions", -1, "type-mismatch", "sessions"),
            ("sessions", [0, 9], "index-range", "sessions/1"),
            ("sessions", [True], "type-mismatch", "sessions/0"),
            ("operation_id", 7, "type-mismatch", "operation_id"),
            ("attempt", 0, "attempt-invalid", "attempt"),
            ("attempt", 1.5, "attempt-invalid", "attempt"),
            ("attempt", "1", "attempt-invalid", "attempt"),
            ("attempt", -1, "attempt-invalid", "attempt"),
            ("attempt", True, "attempt-invalid", "attempt"),
            ("attempt", [1], "attempt-invalid", "attempt"),
            ("server", 5, "type-mismatch", "server"),
            ("tool", {}, "type-mismatch", "tool"),
            ("server", "!foo", "server-reserved", "server"),
            ("server", "https://u:p@mcp.example.com/", "server-url-secret", "server"),
            ("server", "https://token@mcp.example.com/", "server-url-secret", "server"),
        ],
    )
    @pytest.mark.req("TI-091", "TI-127", "TI-128", "TI-137", "TI-141", "TI-158")
    def test_invocation(self, member, value, code, place):
        """A value of the wrong type or range is an error at the value."""
        assert (code, "error", f"/events/0/{place}") in faults(document(invocation(**{member: value})))

    @pytest.mark.parametrize("server", ["!host", "files", "https://mcp.example.com/x", "name:!odd"])
    @pytest.mark.req("TI-157")
    def test_servers(self, server):
        """The host, a name and a URL are servers."""
        assert faults(document(invocation(server=server))) == []

    @pytest.mark.parametrize("server", ["https://mcp.example.com/?key=1", "https://mcp.example.com/#x"])
    def test_server_url_form(self, server):
        """A query or fragment does not belong to a server's URL."""
        assert faults(document(invocation(server=server))) == [
            ("server-url-form", "warning", "/events/0/server")
        ]

    def test_foreign_extension_may_define_servers(self):
        """Another listed extension may define special servers."""
        made = document(invocation(server="!robot"))
        made["extensions"].append("com.example.robots")
        assert faults(made) == []

    @pytest.mark.parametrize("value", ["denied", "Allowed", "ALLOWED", ""])
    @pytest.mark.req("TI-144")
    def test_decision_values(self, value):
        """Only three decisions exist, in lower case."""
        assert ("enum-invalid", "error", "/events/0/decision") in faults(document(decision(value)))

    @pytest.mark.parametrize("value", ["always", "Once"])
    @pytest.mark.req("TI-147")
    def test_policy_life_values(self, value):
        """A decision lasts once or stands."""
        assert ("enum-invalid", "error", "/events/0/policy_life") in faults(
            document(decision(policy_life=value))
        )

    @pytest.mark.req("TI-151")
    def test_other_operation(self):
        """Another operation is accepted with a note; server and tool are not asked for."""
        event = decision(operation="delegation")
        del event["server"], event["tool"]
        found = findings(document(event))
        assert ("operation-unknown", "info", "/events/0/operation") in found
        assert faults(document(event)) == []

    @pytest.mark.req("TI-016", "TI-017")
    def test_extension_is_listed(self):
        """Events of the draft without its name in extensions are a warning; the name is kebab case."""
        for extensions in (None, [], ["tool_invocation"]):
            assert faults(vcon(invocation(), extensions=extensions)) == [
                ("extension-not-listed", "warning", "/extensions")
            ]

    def test_dialog_is_tolerated(self):
        """`dialog` on a tool event is read with a warning, which --strict raises."""
        made = document(invocation(dialog=0))
        assert faults(made) == [("event-dialog-member", "warning", "/events/0/dialog")]
        assert faults(made, strict=True) == [("event-dialog-member", "error", "/events/0/dialog")]


class TestContent:
    @pytest.mark.parametrize(
        ("content", "fault"),
        [
            ({"body": "x", "encoding": "none"}, ("mediatype-missing", "error", "")),
            ({"body": "x", "mediatype": "text/plain"}, ("encoding-missing", "error", "")),
            ({"body": "x", "encoding": "xml", "mediatype": "text/plain"},
             ("encoding-invalid", "error", "/encoding")),
            ({"body": {"a": 1}, "encoding": "none", "mediatype": "text/plain"},
             ("encoding-body-type", "error", "/body")),
            ({"body": 1, "encoding": "base64url", "mediatype": "a/b"}, ("encoding-body-type", "error", "/body")),
            ({"body": "a", "encoding": "base64url", "mediatype": "a/b"},
             ("base64url-invalid", "error", "/body")),
            ({"body": "é", "encoding": "base64url", "mediatype": "a/b"},
             ("base64url-invalid", "error", "/body")),
            ({"body": "AA==", "encoding": "base64url", "mediatype": "a/b"},
             ("base64url-lenient", "warning", "/body")),
            ({"body": "A+/A", "encoding": "base64url", "mediatype": "a/b"},
             ("base64url-lenient", "warning", "/body")),
            ({"body": "AA AA", "encoding": "base64url", "mediatype": "a/b"},
             ("base64url-lenient", "warning", "/body")),
            ({"body": "x", "encoding": "none", "mediatype": "text"},
             ("mediatype-invalid", "error", "/mediatype")),
            ({"encoding": "none"}, ("encoding-without-body", "warning", "/encoding")),
            ({"content_hash": "sha512-" + "A" * 86}, ("hash-without-url", "warning", "/content_hash")),
            ({"url": "https://example.com/x"}, ("content-hash-missing", "error", "")),
            ({"url": "http://example.com/x", "content_hash": "sha512-" + "A" * 86},
             ("url-not-https", "error", "/url")),
            ({"url": "x.txt", "content_hash": "sha512-" + "A" * 86}, ("url-invalid", "error", "/url")),
            ({"url": "https://", "content_hash": "sha512-" + "A" * 86}, ("url-invalid", "error", "/url")),
            ({"url": "https://example.com/x", "content_hash": "sha-256-AAAA"},
             ("content-hash-invalid", "error", "/content_hash")),
            ({"url": "https://example.com/x", "content_hash": "SHA512-" + "A" * 86},
             ("content-hash-invalid", "error", "/content_hash")),
            ({"url": "https://example.com/x", "content_hash": "sha512-AA"},
             ("content-hash-invalid", "error", "/content_hash")),
            ({"url": "https://example.com/x", "content_hash": "sha256-AAAA"},
             ("content-hash-no-sha512", "warning", "/content_hash")),
            ({"url": "https://example.com/x", "content_hash": []},
             ("empty-value", "warning", "/content_hash")),
            ({"url": "https://example.com/x", "content_hash": ["sha512-" + "A" * 86, 5]},
             ("type-mismatch", "error", "/content_hash/1")),
        ],
    )  # fmt: skip
    @pytest.mark.req("TI-170", "TI-171", "TI-172", "TI-173", "TI-175", "TI-206")
    def test_one_fault(self, content, fault):
        """Each wrong piece of content gives exactly its finding."""
        code, severity, place = fault
        assert faults(document(invocation(**content))) == [(code, severity, f"/events/0{place}")]

    @pytest.mark.req("TI-174")
    def test_body_and_url(self):
        """Inline and external content together are an error."""
        content = {**EXTRA, "attachment": None}
        for name in (*DECISION_MEMBERS, "operation_id", "attempt", "server", "tool"):
            del content[name]
        assert faults(document(invocation(**content))) == [("body-and-url", "error", "/events/0")]

    @pytest.mark.parametrize(
        "body", [{}, [], "text", "", 0, 1.5, True, False, None, {"a": [None]}, '{"a":1}']
    )
    @pytest.mark.req("TI-169")
    def test_any_json_body(self, body):
        """With encoding json a body is any JSON value; in events a string that looks like JSON is a string."""
        content = {"body": body, "encoding": "json", "mediatype": "application/json"}
        assert faults(document(invocation(**content))) == []

    def test_redacted_content_may_go(self):
        """In a redacted vCon the body and url may be absent while hash and encoding stay."""
        made = document(invocation(encoding="none", content_hash="sha512-" + "A" * 86))
        made["redacted_from"] = {"uuid": made["uuid"], "type": "PII masked"}
        assert faults(made) == []
        assert ("content-missing", "info", "/events/0") not in findings(made)


class TestClassification:
    def test_ambiguous(self):
        """A bare tool-result in a vCon that lists both drafts cannot be decided."""
        bare = {"type": "tool-result", "time": "2026-11-02T12:00:02Z", "session": 0, "party": 0}
        both = vcon(bare, extensions=["ai_agent", "tool-invocation"])
        assert faults(both) == [("tool-result-ambiguous", "error", "/events/0")]

    @pytest.mark.parametrize(
        ("extensions", "missing"),
        [(["tool-invocation"], {"operation_id", "attempt"}), (["ai_agent"], {"output"})],
    )
    def test_decided_by_the_list(self, extensions, missing):
        """With one draft listed a bare tool-result is one of that draft."""
        from onrecord.record.checks.checker import check
        from support.vcons import text

        bare = {"type": "tool-result", "time": "2026-11-02T12:00:02Z", "session": 0, "party": 0}
        result = check(text(vcon(bare, extensions=extensions)))
        named = {
            finding.data["parameter"] for finding in result.findings if finding.code == "required-missing"
        }
        assert named == missing

    def test_merged(self):
        """One event with the members of both drafts is read with a warning and held to both tables."""
        merged = answer("tool-result", output="x", call_id="a", session=0)
        made = vcon(invocation(), merged, extensions=["ai_agent", "tool-invocation"])
        assert {code for code, *_ in faults(made)} == {"call-id-dangling", "tool-result-merged"}
        del merged["output"]
        made = vcon(invocation(), merged, extensions=["ai_agent", "tool-invocation"])
        assert ("required-missing", "error", "/events/1") in faults(made)

    def test_unknown_type_is_left_alone(self):
        """An event of an unknown type is noted and not judged, whatever it holds."""
        made = vcon({"type": "com.example.x", "time": 5, "party": "x", "attempt": 0})
        assert faults(made) == []

"""Vectors of section 6 from the text alone: what must give a finding, and what is close to it and must not."""

import copy

import pytest

from support.hostile import SEEDS
from support.vcons import UUID, answer, decision, findings, invocation, vcon

START = "2026-11-02T12:00:00Z"
URL = "https://alice@files.example.com/a"
HASH = "sha512-" + "A" * 86
TRANSFER = {
    "type": "consultative-transfer",
    "sessions": [0],
    "party": 0,
    "transferee": 1,
    "transfer_target": 2,
    "consultation": 0,
    "target_session": 0,
}


def at(document, pointer):
    """The value at a pointer."""
    for token in pointer.split("/")[1:]:
        document = document[int(token)] if isinstance(document, list) else document[token]
    return document


def changed(seed, changes):
    """A seed with other values at some places."""
    made = copy.deepcopy(SEEDS[seed]())
    for pointer, value in changes.items():
        above, _, last = pointer.rpartition("/")
        owner = at(made, above)
        if isinstance(owner, list):
            owner[int(last)] = value
        else:
            owner[last] = value
    return made


def codes(document, pointer):
    return sorted(code for code, _, place in findings(document) if place == pointer)


class TestNull:
    @pytest.mark.parametrize(
        ("seed", "pointer", "code", "place"),
        [
            ("call", "/uuid", "uuid-missing", "/uuid"),
            ("call", "/created_at", "created-at-missing", "/created_at"),
            ("call", "/attachments/0/dialog", "required-missing", "/attachments/0"),
            ("call", "/attachments/0/encoding", "encoding-missing", "/attachments/0"),
            ("call", "/attachments/0/mediatype", "mediatype-missing", "/attachments/0"),
            ("call", "/dialog/1/content_hash", "content-hash-missing", "/dialog/1"),
            ("call", "/events/0/sessions", "event-session-missing", "/events/0"),
        ],
    )
    def test_of_what_must_be_there(self, seed, pointer, code, place):
        """Null where a value must be counts as missing, and is no null that could be left out (D-09)."""
        made = changed(seed, {pointer: None})
        assert code in codes(made, place)
        assert "member-null" not in codes(made, pointer)

    def test_of_what_should_be_there(self):
        """Of an analysis the media type should be there only, so null is both a note and a warning."""
        made = changed("call", {"/analysis/0/mediatype": None})
        assert codes(made, "/analysis/0/mediatype") == ["member-null"]
        assert codes(made, "/analysis/0") == ["mediatype-missing"]

    def test_beside_the_other_session_name(self):
        """Null beside the other name of the session could be left out."""
        made = changed("call", {"/events/0/session": None})
        assert codes(made, "/events/0/session") == ["member-null"]

    def test_inside(self):
        """Null in an address is read as absent, null in a SessionId is a missing part."""
        made = changed("call", {"/parties/0/civicaddress": {"country": None}})
        assert codes(made, "/parties/0/civicaddress/country") == ["member-null"]
        made = changed("call", {"/dialog/3/session_id": [{"local": None, "remote": UUID}]})
        assert codes(made, "/dialog/3/session_id/0") == ["required-missing"]


class TestTexts:
    @pytest.mark.parametrize(
        "did", ["did:x:y:", "did:x:/p", "did:x:%zz", "did:x:", "did:X:y", "did:x:y z", ":did"]
    )
    def test_no_did(self, did):
        """A DID has a method and an identifier that is not empty, with whole escapes."""
        assert codes(changed("call", {"/parties/0/did": did}), "/parties/0/did") == ["did-invalid"]

    @pytest.mark.parametrize(
        "did", ["did:example:123", "did:web:a.example%3A80:u", "did:x::y", "did:x:y/p?q=1#f"]
    )
    def test_did(self, did):
        """Paths, queries and fragments may follow."""
        assert codes(changed("call", {"/parties/0/did": did}), "/parties/0/did") == []

    PLACE = "/file_attribution/files/0/conversations/0/url"

    @pytest.mark.parametrize(
        "uri",
        ["a b", "", "http://[::1", "%zz", "http://x/%", "//[/x", ":x", "1:x", "http://a:b/", "é", "a#b#c"],
    )
    def test_no_uri(self, uri):
        """What RFC 3986 does not derive is no URI reference (AA-060)."""
        assert codes(changed("agent", {self.PLACE: uri}), self.PLACE) == ["uri-invalid"]

    @pytest.mark.parametrize(
        "uri", ["https://x.example.com:8443/1?q=/?#f", "/a:b", "./a:b", "urn:x:y", "?x", "#f", "a%20b",
                "http://[2001:db8::1]/x", "mailto:a@example.com", "//x.example.com/a", "file:///a"],
    )  # fmt: skip
    def test_uri(self, uri):
        """Relative references and all schemes are URI references."""
        assert codes(changed("agent", {self.PLACE: uri}), self.PLACE) == []


class TestRelations:
    def made(self, *more, consultation=0):
        made = changed("call", {"/events/2/consultation": consultation})
        made["sessions"].append({"start": START, "parties": []})
        made["events"] += copy.deepcopy(more)
        return made

    def test_transfer_by_time(self):
        """The consultation-start of a transfer is the one before it in time, wherever it stands."""
        late = {**TRANSFER, "time": "2026-11-02T12:00:09Z", "consultation": 1}
        made = self.made(late)
        made["events"].reverse()
        assert "transfer-consultation-mismatch" in codes(made, "/events/0")
        early = {**late, "time": "2026-11-02T12:00:01Z"}
        assert "transfer-consultation-mismatch" not in codes(self.made(early), "/events/3")

    def test_start_without_consultation(self):
        """A consultation-start that names no session says nothing that another one could differ from."""
        late = {**TRANSFER, "time": "2026-11-02T12:00:09Z"}
        made = self.made(late, consultation=None)
        assert codes(made, "/events/2") == ["required-missing"]
        assert codes(made, "/events/3") == []

    @pytest.mark.parametrize(
        "role",
        [{"/events/2/transferee": 3}, {"/events/2/transfer_target": 3}, {"/dialog/2/transferor": 3},
         {"/dialog/2/transfer_target": 3}, {"/dialog/0/party_history": [{"party": 3, "time": START, "event": "join"}]}],
    )  # fmt: skip
    def test_party_in_a_role(self, role):
        """A party that is named like a tool and has some role is no tool; one without is."""
        made = changed("call", role)
        made["parties"].append({"name": "now"})
        made["events"].append(invocation())
        assert "tool-as-party" not in codes(made, "/parties/3")
        made = changed("call", {})
        made["parties"].append({"name": "now"})
        made["events"].append(invocation())
        assert codes(made, "/parties/3") == ["tool-as-party"]

    @pytest.mark.parametrize("session", [0, 1])
    def test_both_session_names(self, session):
        """With both names there the other one is no note: equal it is fine, else it is a conflict (D-12)."""
        made = self.made()
        made["events"][0]["session"] = session
        assert codes(made, "/events/0/session") == []
        assert codes(made, "/events/0") == (["event-session-conflict"] if session else [])


class TestEvents:
    @pytest.mark.parametrize("name", ["server", "attempt", "reason", "body", "encoding", "transferee"])
    def test_foreign_members(self, name):
        """The event types of ai_agent are closed: a member of another draft is no member of theirs (record.md 3.1)."""
        made = changed("agent", {f"/events/1/{name}": 0})
        expected = "forbidden-present" if name == "transferee" else "closed-object-member"
        assert codes(made, f"/events/1/{name}") == [expected]

    def test_merged(self):
        """A merged event has the members of both drafts, and none of them is foreign (D-68)."""
        merged = {**answer("tool-result"), "session": 0, "output": "x", "call_id": "a"}
        made = vcon(decision(), invocation(), merged, extensions=["ai_agent", "tool-invocation"])
        assert {code for code, _, place in findings(made) if place.startswith("/events/2")} == {
            "call-id-dangling",
            "tool-result-merged",
        }

    @pytest.mark.parametrize(
        "member",
        [{"server": 5}, {"server": "!other"}, {"server": "https://u:p@example.com/?q"}, {"tool": ""}, {"reason": 5},
         {"attachment": 9}, {"url": "x"}, {"content_hash": 5}, {"encoding": 5}, {"mediatype": "x"}, {"body": {}}],
    )  # fmt: skip
    def test_parameters_of_another_operation(self, member):
        """Of a decision about another operation the parameters of its target are not checked (D-43)."""
        other = decision(operation="delegation", operation_id="z", **member)
        found = findings(vcon(decision(), invocation(), answer("tool-result"), other))
        own = [code for code, _, place in found if place.startswith("/events/3")]
        assert [code for code in own if code != "url-userinfo"] == ["operation-unknown"]

    @pytest.mark.parametrize("allowed_later", [False, True])
    def test_call_of_a_disallowed_operation(self, allowed_later):
        """The model's call keeps no arguments either, if policy never allowed what was performed all the same."""
        call = {"type": "tool-call", "time": START, "session": 0, "party": 0, "tool_name": "now", "input": {"a": 1},
                "call_id": "a"}  # fmt: skip
        events = [decision("disallowed"), invocation(), answer("tool-failure"), call]
        if allowed_later:
            events += [decision("allowed", 3, attempt=2), invocation(4, attempt=2)]
        found = findings(vcon(*events, extensions=["ai_agent", "tool-invocation"]))
        assert (("refused-arguments", "warning", "/events/3") in found) is not allowed_later


class TestLinks:
    @pytest.mark.parametrize(
        ("seed", "place", "changes"),
        [
            ("redacted", "/redacted_from/url", {"/redacted_from/content_hash": HASH}),
            ("call", "/amended_from/url", {"/amended_from": {"uuid": UUID, "content_hash": HASH}}),
            ("agent", "/vcs/repository", {"/vcs": {"type": "git"}}),
            ("agent", "/sessions/0/environment/vcs/repository", {"/sessions/0/environment/vcs": {"type": "git"}}),
            ("agent", "/file_attribution/files/0/conversations/0/url", {}),
            ("agent", "/file_attribution/files/0/conversations/0/related/0/url",
             {"/file_attribution/files/0/conversations/0/related": [{"type": "issue"}]}),
        ],
    )  # fmt: skip
    def test_user_without_password(self, seed, place, changes):
        """User information in a URL is reported wherever the drafts have a URL, also without a password."""
        assert codes(changed(seed, {**changes, place: URL}), place) == ["url-userinfo"]
        assert codes(changed(seed, {**changes, place: URL.replace("alice@", "")}), place) == []

    @pytest.mark.parametrize("path", ["C:/Users/ann/x", "c:\\users\\ann", "/home/ann"])
    def test_home(self, path):
        """A home directory is one in every spelling."""
        place = "/sessions/0/environment/working_dir"
        assert codes(changed("agent", {place: path}), place) == ["home-path"]
        assert (
            codes(changed("agent", {place: "/srv" + path.replace("\\", "/").replace(":", "")}), place) == []
        )

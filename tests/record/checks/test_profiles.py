"""The versions of vCon core: what each one asks for otherwise than the next, in vectors of our own."""

import copy
from dataclasses import replace

import pytest

from onrecord.record.checks.catalogue import CATALOGUE
from onrecord.record.checks.checker import check
from onrecord.record.checks.collector import Collector
from onrecord.record.checks.context import Context
from onrecord.record.checks.engine import Engine
from onrecord.record.checks.profiles import (
    DIFFERENCES,
    HISTORY,
    LIVES,
    TABLES,
    Difference,
    Life,
    make_profile,
    rules_of,
)
from onrecord.record.vcon.versions import KNOWN
from support.complete import complete
from support.vcons import HASH, UUID, answer, findings, invocation, text, vcon

START = "2026-11-02T12:00:00Z"
BEFORE_04 = ("0.0.1", "0.0.2", "0.3.0")
BEFORE_05 = (*BEFORE_04, "0.4.0")
SHA512 = "A" * 86
TEXT = {"type": "text", "start": START, "parties": [0], "encoding": "none", "body": "hello"}


def old(version, **members):
    """A vCon of a version with one text in its own words, and nothing that this version would remark on."""
    named = {"vcon": version} if version in BEFORE_04 else {}
    mediatype = "mimetype" if version == "0.0.1" else "mediatype"
    made = {
        **named,
        "uuid": UUID,
        "created_at": START,
        "parties": [{"name": "Ann Example"}],
        "dialog": [{**TEXT, mediatype: "text/plain"}],
        **({"sessions": [{"start": START, "parties": [0], "dialog": [0]}]} if version == "0.5.0" else {}),
        **members,
    }
    return {name: value for name, value in made.items() if value is not None}


def found(version, document, *, own=False):
    """The findings under a version, without the one that all old versions share: they have no sessions."""
    told = findings(document, profile=None if own else version)
    return [entry for entry in told if entry != ("session-required", "info", "/sessions")]


def with_dialog(version, **members):
    """An old vCon whose dialog has other members; None takes one away."""
    made = old(version)
    made["dialog"][0].update(members)
    made["dialog"][0] = {name: value for name, value in made["dialog"][0].items() if value is not None}
    return made


def transfer(version, **members):
    """A vCon with a call and a transfer of it."""
    made = old(version)
    made["dialog"].append(
        {"type": "transfer", "start": START, "transferee": 0, "transferor": 0, "original": 0}
    )
    made["dialog"][1]["target-dialog" if version in ("0.0.1", "0.0.2") else "target_dialog"] = 0
    made["dialog"][1].update(members)
    if version == "0.5.0":
        made["sessions"][0]["dialog"] = [0, 1]
    return made


class TestBase:
    @pytest.mark.parametrize("version", KNOWN)
    def test_own_words(self, version):
        """A vCon in the words of its version has no finding but for the sessions that were unknown."""
        assert found(version, old(version)) == []
        assert found(version, transfer(version)) == []

    @pytest.mark.parametrize("version", [*BEFORE_04, "0.4.0"])
    def test_sessions_are_not_asked_for(self, version):
        """Without sessions there is a note before 0.5.0 and an error since."""
        assert findings(old(version), profile=version) == [("session-required", "info", "/sessions")]
        newest = old("0.5.0", sessions=None)
        assert findings(newest) == [("session-required", "error", "/sessions")]

    @pytest.mark.parametrize("version", KNOWN)
    def test_sessions_and_events_came_with_0_5_0(self, version):
        """An older version may hold them for new readers: notes at the members, and their rules hold all the same."""
        made = vcon(invocation(), answer("tool-result"), {"type": "join", "time": START, "sessions": 5})
        later = version in BEFORE_05
        told = found(version, made)
        assert [entry for entry in told if entry[0] == "future-name"] == (
            [("future-name", "info", "/sessions"), ("future-name", "info", "/events")] if later else []
        )
        assert ("index-range", "error", "/events/2/sessions") in told
        assert ("required-missing", "error", "/events/2") in told

    def test_dialog_outside_of_all_sessions(self):
        """That every dialog is in a session is asked since 0.5.0."""
        made = {**old("0.4.0"), "sessions": [{"start": START, "parties": [0]}]}
        assert ("dialog-unreferenced", "warning", "/dialog/0") in findings(made, profile="0.5.0")
        assert [entry[0] for entry in found("0.4.0", made)] == ["future-name"]

    @pytest.mark.parametrize("version", KNOWN)
    def test_chosen_by_the_file(self, version):
        """What a file says of its version is what it is held to."""
        made = {**old(version), "vcon": version}
        result = check(text(made))
        assert result.version == version
        assert [one.code for one in result.findings if one.code != "session-required"] == (
            [] if version in BEFORE_04 else ["version-member-present"]
        )


class TestVersionMember:
    @pytest.mark.parametrize("version", KNOWN)
    def test_missing(self, version):
        """A file that is held to an old version and does not name it is an error; left to itself it is none."""
        made = old(version, vcon=None)
        expected = [("version-missing", "error", "")] if version in BEFORE_04 else []
        assert found(version, made) == expected
        assert "version-missing" not in [entry[0] for entry in findings(made, profile=None)]

    @pytest.mark.parametrize("version", KNOWN)
    def test_unknown(self, version):
        """A value that is no version is a warning everywhere; 0.0.3 is read as 0.3.0."""
        told = found(version, old(version, vcon="1.0"))
        assert ("version-unknown", "warning", "/vcon") in told
        result = check(text(old("0.3.0", vcon="0.0.3")))
        assert result.version == "0.3.0"
        assert ("version-unknown", {"read_as": "0.3.0"}) in [(one.code, one.data) for one in result.findings]


class TestIdentity:
    @pytest.mark.parametrize("version", KNOWN)
    def test_created_at(self, version):
        """The time of creation is asked for since 0.4.0."""
        severity = "info" if version in BEFORE_04 else "error"
        assert found(version, old(version, created_at=None)) == [
            ("created-at-missing", severity, "/created_at")
        ]

    @pytest.mark.parametrize("version", KNOWN)
    def test_uuid(self, version):
        """A uuid is asked for in every version; that of a party is free text."""
        assert found(version, old(version, uuid=None)) == [("uuid-missing", "error", "/uuid")]
        assert found(version, old(version, parties=[{"uuid": "no uuid at all"}])) == []

    @pytest.mark.parametrize("version", KNOWN)
    def test_group(self, version):
        """A group with content had a meaning up to 0.3.0 and is only a reserved name since."""
        expected = [] if version in BEFORE_04 else [("group-present", "info", "/group")]
        assert found(version, old(version, group=[{"uuid": UUID}])) == expected
        assert found(version, old(version, group=[])) == []

    @pytest.mark.parametrize("version", KNOWN)
    @pytest.mark.parametrize("member", ["role", "id", "meta"])
    def test_never_in_core(self, version, member):
        """Members that other programs write into parties are unknown in every version."""
        assert found(version, old(version, parties=[{"name": "Ann", member: "x"}])) == [
            ("unknown-member", "info", f"/parties/0/{member}")
        ]


REFERENCES = [
    ("redacted", "0.0.1", "0.4.0", "redacted"),
    ("redacted_from", "0.5.0", "0.5.0", "redacted"),
    ("appended", "0.0.1", "0.3.0", "amended"),
    ("amended", "0.4.0", "0.4.0", "amended"),
    ("amended_from", "0.5.0", "0.5.0", "amended"),
]
CURRENT = {
    "redacted": {**dict.fromkeys(BEFORE_05, "redacted"), "0.5.0": "redacted_from"},
    "amended": {**dict.fromkeys(BEFORE_04, "appended"), "0.4.0": "amended", "0.5.0": "amended_from"},
}


def remark(version, first, last):
    """What a name that lived from one version to another is under a version."""
    if KNOWN.index(version) < KNOWN.index(first):
        return "future-name"
    return "legacy-name" if KNOWN.index(version) > KNOWN.index(last) else None


class TestReferences:
    @pytest.mark.parametrize("version", KNOWN)
    @pytest.mark.parametrize(("name", "first", "last", "kind"), REFERENCES)
    def test_names(self, version, name, first, last, kind):
        """Every spelling is read in every version; one of another version is remarked on, with the right name."""
        made = old(
            version, **{name: {"type": "PII masked", "uuid": UUID} if kind == "redacted" else {"uuid": UUID}}
        )
        told = [
            (one.code, one.pointer, one.data)
            for one in check(text(made), profile=version).findings
            if one.code not in ("session-required", "redacted-unsigned")
        ]
        code = remark(version, first, last)
        data = {"old": name, "new": CURRENT[kind][version]}
        assert told == ([(code, f"/{name}", data)] if code else [])

    @pytest.mark.parametrize("version", KNOWN)
    @pytest.mark.parametrize(
        ("names", "pointer"),
        [
            (("redacted", "redacted_from"), "/redacted_from"),
            (("amended", "amended_from"), "/amended_from"),
            (("appended", "amended"), "/amended_from"),
        ],
    )
    def test_two_names(self, version, names, pointer):
        """Two spellings of one reference are a conflict in every version."""
        made = old(version, **{name: {"type": "x", "uuid": UUID} for name in names})
        assert ("prior-name-conflict", "error", pointer) in found(version, made)

    @pytest.mark.parametrize("version", KNOWN)
    def test_both_references(self, version):
        """A vCon is redacted or amended, whatever the names."""
        members = {CURRENT[kind][version]: {"type": "x", "uuid": UUID} for kind in CURRENT}
        assert ("prior-both", "error", "") in found(version, old(version, **members))

    @pytest.mark.parametrize("version", KNOWN)
    def test_empty(self, version):
        """An empty reference is absent: a note at a redacted one before 0.4.0, a warning since."""
        redacted, amended = (CURRENT[kind][version] for kind in ("redacted", "amended"))
        severity = "info" if version in BEFORE_04 else "warning"
        made = old(version, **{redacted: {}, amended: {}})
        assert found(version, made) == [("redacted-empty", severity, f"/{redacted}")]

    @pytest.mark.parametrize("version", BEFORE_05)
    def test_null(self, version):
        """Null is how old versions wrote that there is none."""
        made = old(version, **{CURRENT[kind][version]: None for kind in CURRENT})
        made[CURRENT["redacted"][version]] = made[CURRENT["amended"][version]] = None
        assert found(version, made) == []

    @pytest.mark.parametrize("version", KNOWN)
    def test_inline(self, version):
        """Up to 0.3.0 the other vCon may stand inside of the reference; since then that is no reference."""
        name = CURRENT["amended"][version]
        made = old(version, **{name: {"body": {"uuid": UUID}, "encoding": "json"}})
        told = found(version, made)
        if version in BEFORE_04:
            assert told == []
        else:
            assert ("amended-reference-missing", "error", f"/{name}") in told
            assert ("unknown-member", "info", f"/{name}/body") in told

    @pytest.mark.parametrize("version", KNOWN)
    def test_inline_redacted(self, version):
        """The same holds for the less redacted vCon."""
        name = CURRENT["redacted"][version]
        made = old(
            version, **{name: {"type": "x", "body": {}, "encoding": "json", "mediatype": "application/vcon"}}
        )
        told = [entry[:1] + entry[2:] for entry in found(version, made) if entry[0] != "redacted-unsigned"]
        members = ("body", "encoding", "mediatype")
        expected = (
            [] if version in BEFORE_04 else [("unknown-member", f"/{name}/{member}") for member in members]
        )
        assert told == expected

    @pytest.mark.parametrize("version", KNOWN)
    def test_url_needs_a_hash(self, version):
        """A url needs its hash; in 0.0.1 that is an algorithm and a signature."""
        name = CURRENT["amended"][version]
        url = {"url": "https://example.com/v"}
        assert found(version, old(version, **{name: url})) == [("content-hash-missing", "error", f"/{name}")]
        proof = {"alg": "SHA-512", "signature": SHA512} if version == "0.0.1" else {"content_hash": HASH}
        assert found(version, old(version, **{name: {**url, **proof}})) == []


class TestExtensions:
    @pytest.mark.parametrize("version", KNOWN)
    def test_critical(self, version):
        """The list of extensions that a reader must know was must_support up to 0.3.0."""
        lists = {"extensions": ["ai_agent"]}
        right, other = ("must_support", "critical") if version in BEFORE_04 else ("critical", "must_support")
        assert found(version, old(version, **lists, **{right: ["ai_agent"]})) == []
        code, severity = ("future-name", "info") if version in BEFORE_04 else ("legacy-name", "warning")
        assert found(version, old(version, **lists, **{other: ["ai_agent"]})) == [
            (code, severity, f"/{other}")
        ]

    @pytest.mark.parametrize("version", KNOWN)
    @pytest.mark.parametrize("name", ["critical", "must_support"])
    def test_unsupported(self, version, name):
        """Either list ends the check in every version if it names what is not known here."""
        result = check(text(old(version, **{name: ["x"]})), profile=version)
        assert (result.form, [one.code for one in result.findings]) == (None, ["critical-unsupported"])

    @pytest.mark.parametrize("version", KNOWN)
    def test_members_of_extensions(self, version):
        """Members of an extension are known in every version, and asked to be listed."""
        made = old(version, recording_agent={"name": "x"})
        assert found(version, made) == [("extension-not-listed", "warning", "/extensions")]
        assert found(version, {**made, "extensions": ["ai_agent"]}) == []
        made["recording_agent"] = {}
        assert ("required-missing", "error", "/recording_agent") in found(version, made)

    @pytest.mark.parametrize("version", KNOWN)
    def test_spelling(self, version):
        """The names of the extensions are the same in every version; a like one is unknown."""
        assert found(version, old(version, extensions=["tool_invocation"])) == [
            ("extension-unknown", "info", "/extensions/0")
        ]


class TestDialogs:
    @pytest.mark.parametrize("version", KNOWN)
    def test_start(self, version):
        """A dialog without a start is an error before 0.4.0 and a note since."""
        made = with_dialog(version, start=None)
        result = check(text(made), profile=version)
        missing = [one for one in result.findings if one.data == {"parameter": "start"}]
        expected = "required-missing" if version in BEFORE_04 else "recommended-missing"
        assert [(one.code, one.pointer) for one in missing] == [(expected, "/dialog/0")]

    @pytest.mark.parametrize("version", KNOWN)
    def test_start_of_a_transfer(self, version):
        """That holds for transfers too; since 0.4.0 their start is optional."""
        made = transfer(version)
        del made["dialog"][1]["start"]
        expected = [("required-missing", "error", "/dialog/1")] if version in BEFORE_04 else []
        assert found(version, made) == expected

    @pytest.mark.parametrize("version", KNOWN)
    def test_media_type(self, version):
        """The member was mimetype in 0.0.1."""
        right, other = ("mimetype", "mediatype") if version == "0.0.1" else ("mediatype", "mimetype")
        made = with_dialog(version, **{right: None, other: "text/plain"})
        code, severity = ("future-name", "info") if version == "0.0.1" else ("legacy-name", "warning")
        assert found(version, made) == [(code, severity, f"/dialog/0/{other}")]
        made["dialog"][0][other] = "text"
        assert ("mediatype-invalid", "error", f"/dialog/0/{other}") in found(version, made)
        del made["dialog"][0][other]
        assert ("mediatype-missing", "error", "/dialog/0") in found(version, made)

    @pytest.mark.parametrize("version", KNOWN)
    def test_hash(self, version):
        """The hash was an algorithm and a signature in 0.0.1: both are needed, and other algorithms are kept."""
        external = {"body": None, "encoding": None, "url": "https://example.com/a.txt"}
        bare = with_dialog(version, **external)
        assert ("content-hash-missing", "error", "/dialog/0") in found(version, bare)
        for alg in ("SHA-512", "LMOTS_SHA256_N32_W8"):
            pair = with_dialog(version, **external, alg=alg, signature=SHA512)
            expected = [] if version == "0.0.1" else [
                ("legacy-name", "warning", "/dialog/0/alg"), ("legacy-name", "warning", "/dialog/0/signature")
            ]  # fmt: skip
            assert sorted(found(version, pair)) == expected
        half = with_dialog(version, **external, alg="SHA-512")
        assert ("content-hash-missing", "error", "/dialog/0") in found(version, half)
        odd = with_dialog(version, **external, alg=5, signature=[])
        assert ("type-mismatch", "error", "/dialog/0/alg") in found(version, odd)
        assert ("type-mismatch", "error", "/dialog/0/signature") in found(version, odd)
        new = with_dialog(version, **external, content_hash=HASH)
        expected = [("future-name", "info", "/dialog/0/content_hash")] if version == "0.0.1" else []
        assert found(version, new) == expected

    @pytest.mark.parametrize("version", KNOWN)
    def test_hash_without_url(self, version):
        """In 0.0.1 a hash may belong to inline content; since then it needs a url."""
        members = {"alg": "SHA-512", "signature": SHA512} if version == "0.0.1" else {"content_hash": HASH}
        expected = [] if version == "0.0.1" else [("hash-without-url", "warning", "/dialog/0/content_hash")]
        assert found(version, with_dialog(version, **members)) == expected

    @pytest.mark.parametrize("version", KNOWN)
    def test_json_in_a_string(self, version):
        """JSON stood in a string up to 0.3.0; in 0.4.0 and 0.5.0 that is an older form."""
        made = with_dialog(version, encoding="json", body='{"a":1}')
        expected = [] if version in BEFORE_04 else [("json-body-string", "warning", "/dialog/0/body")]
        assert found(version, made) == expected
        assert found(version, with_dialog(version, encoding="json", body={"a": 1})) == []

    @pytest.mark.parametrize("version", KNOWN)
    def test_session_id(self, version):
        """A session id was one String up to 0.3.0."""
        made = with_dialog(version, session_id="a84b4c76e66710")
        told = found(version, made)
        assert (
            told == [] if version in BEFORE_04 else ("type-mismatch", "error", "/dialog/0/session_id") in told
        )
        made["dialog"][0]["session_id"] = [{"local": UUID, "remote": UUID}]
        assert found(version, made) == []
        made["dialog"][0]["session_id"] = 5
        assert ("type-mismatch", "error", "/dialog/0/session_id") in found(version, made)

    @pytest.mark.parametrize("version", KNOWN)
    def test_key_events(self, version):
        """The events of keys have their present names since 0.4.0, where the older ones are still met."""
        history = [{"party": 0, "time": START, "event": "dtmfdown", "dtmf": "1"}]
        place = "/dialog/0/party_history/0"
        expected = [] if version in BEFORE_04 else [("legacy-name", "warning", f"{place}/event")]
        if version == "0.5.0":
            expected.append(("legacy-name", "warning", f"{place}/dtmf"))
        assert found(version, with_dialog(version, party_history=history)) == expected
        for event in ("dtmfup", "keyup"):
            history = [{"party": 0, "time": START, "event": event}]
            made = with_dialog(version, party_history=history)
            assert ("required-missing", "error", place) in found(version, made)

    @pytest.mark.parametrize("version", KNOWN)
    def test_encoding(self, version):
        """That a body has an encoding is asked for in every version, and base64 is none of them."""
        assert found(version, with_dialog(version, encoding=None)) == [
            ("encoding-missing", "error", "/dialog/0")
        ]
        assert found(version, with_dialog(version, encoding="base64", body="aGVsbG8")) == [
            ("encoding-invalid", "error", "/dialog/0/encoding")
        ]


class TestTransfers:
    @pytest.mark.parametrize("version", KNOWN)
    @pytest.mark.parametrize("member", ["target-dialog", "transfer-target"])
    def test_hyphens(self, version, member):
        """Names with a hyphen are of the 0.0.x versions, names with an underscore of those since."""
        made = transfer(version, **{member: 0})
        other = member.replace("-", "_")
        made["dialog"][1].pop(other, None)
        is_first = version in ("0.0.1", "0.0.2")
        expected = [] if is_first else [("legacy-name", "warning", f"/dialog/1/{member}")]
        assert found(version, made) == expected
        made["dialog"][1][other] = made["dialog"][1].pop(member)
        expected = [("future-name", "info", f"/dialog/1/{other}")] if is_first else []
        assert found(version, made) == expected

    @pytest.mark.parametrize("version", KNOWN)
    def test_lists_and_unknown_calls(self, version):
        """Before 0.5.0 several calls may be named, and one that is not known is -1; since then it is one index."""
        made = transfer(version, transferee=[0], original=[0, -1], consultation=-1)
        told = found(version, made)
        if version == "0.5.0":
            for member in ("transferee", "original", "consultation"):
                assert ("type-mismatch", "error", f"/dialog/1/{member}") in told
        else:
            assert told == [
                ("index-unknown-legacy", "info", "/dialog/1/original/1"),
                ("index-unknown-legacy", "info", "/dialog/1/consultation"),
            ]

    @pytest.mark.parametrize("version", BEFORE_05)
    @pytest.mark.parametrize(
        ("value", "code", "place"),
        [
            (5, "index-range", ""),
            ([0, 5], "index-range", "/1"),
            ([0, 0], "index-duplicate", "/1"),
            ([], "empty-value", ""),
            (-2, "type-mismatch", ""),
            ([-2], "type-mismatch", "/0"),
            ("0", "type-mismatch", ""),
            (True, "type-mismatch", ""),
            ([-1.0], "type-mismatch", "/0"),
            ([[0]], "type-mismatch", "/0"),
        ],
    )
    def test_wrong_indices(self, version, value, code, place):
        """Other values are as wrong as ever."""
        told = found(version, transfer(version, original=value))
        assert (code, f"/dialog/1/original{place}") in [(entry[0], entry[2]) for entry in told]


class TestAttachments:
    @pytest.mark.parametrize("version", KNOWN)
    def test_dialog(self, version):
        """The dialog of an attachment is asked for since 0.4.0, where there is one."""
        mediatype = "mimetype" if version == "0.0.1" else "mediatype"
        attachment = {"start": START, "party": 0, mediatype: "text/plain", "encoding": "none", "body": "x"}
        made = old(version, attachments=[attachment])
        expected = ("recommended-missing", "info") if version in BEFORE_04 else ("required-missing", "error")
        assert found(version, made) == [(*expected, "/attachments/0")]
        del made["dialog"]
        made.pop("sessions", None)
        if version not in BEFORE_04:
            expected = ("attachment-dialog-missing", "warning")
        assert found(version, made) == [(*expected, "/attachments/0")]


class TestManyAlike:
    @pytest.mark.parametrize("version", KNOWN)
    def test_as_one_by_one(self, version):
        """Many elements of one shape have the findings of one, each at its own place."""
        one = complete()
        del one["redacted_from"], one["vcs"], one["file_attribution"]
        one["dialog"] = [
            {**TEXT, "mimetype": "text/plain"},
            {**TEXT, "mediatype": "text/plain", "session_id": "x"},
            {**TEXT, "mediatype": "text/plain", "encoding": "json", "body": "[1]"},
            {"type": "recording", "parties": [0], "url": "https://example.com/a", "alg": "SHA-512", "signature": "x"},
            {"type": "transfer", "start": START, "transferee": [0], "original": -1, "target-dialog": 0},
            {**TEXT, "mediatype": "text/plain", "party_history": [{"party": 0, "time": START, "event": "dtmfup"}]},
        ]  # fmt: skip
        del one["sessions"], one["attachments"], one["analysis"]
        many = copy.deepcopy(one)
        count = len(one["dialog"])
        many["dialog"] *= 12

        def at_dialogs(document):
            return [entry for entry in findings(document, profile=version) if entry[2].startswith("/dialog/")]

        single = at_dialogs(one)
        expected = []
        for code, severity, pointer in single:
            _, array, index, *rest = pointer.split("/")
            for turn in range(12):
                place = "/".join(["", array, str(int(index) + turn * count), *rest])
                expected.append((code, severity, place))
        assert sorted(at_dialogs(many)) == sorted(expected)
        assert len(single) >= 3


class TestData:
    def test_versions(self):
        """Every version has a profile, and the newest is the tables as they stand."""
        for version in KNOWN:
            assert rules_of(version).version == version
            assert rules_of(version).tables.keys() == TABLES.keys()
        for name, table in rules_of(KNOWN[-1]).tables.items():
            assert (table.kinds, table.levels) == (TABLES[name].kinds, TABLES[name].levels)

    def test_what_must_not_be_there_stays_out(self):
        """A version that asks for a member asks only those types of object for it that may have it."""
        history = HISTORY._replace(differences=(Difference("0.5.0", levels={"Dialog": {"parties": "M"}}),))
        levels = make_profile("0.5.0", history).tables["Dialog"].levels
        assert {kind: levels[kind]["parties"] for kind in ("text", "transfer")} == {
            "text": "M",
            "transfer": "X",
        }

    def test_names_exist(self):
        """The differences name versions, tables, members and codes that exist."""
        for difference in DIFFERENCES:
            assert difference.version in KNOWN
            assert difference.severities.keys() <= CATALOGUE.keys()
            for by_table in (difference.levels, difference.kinds):
                for table, members in by_table.items():
                    assert members.keys() <= TABLES[table].kinds.keys()
        for life in LIVES:
            assert life.first in KNOWN
            assert life.last is None or KNOWN.index(life.first) <= KNOWN.index(life.last)
            assert life.name in {*TABLES[life.table].kinds, *TABLES[life.table].aliases}

    def test_every_old_name_has_a_life(self):
        """No older name is read without a remark in the version that gave it up."""
        known = {(life.table, life.name) for life in LIVES}
        for table in TABLES.values():
            for name in table.aliases:
                assert (table.name, name) in known

    def test_a_later_version_is_data(self):
        """A version that comes later is a number, the life of its names, and what the one before said otherwise."""
        session = TABLES["Session"]
        levels = {**session.levels[""], "start": "M", "call_id": "O"}
        kinds = {**session.kinds, "call_id": session.kinds["session_id"]}
        del levels["session_id"], kinds["session_id"]
        later = replace(session, kinds=kinds, levels={"": levels}, aliases={"session_id": "call_id"})
        history = HISTORY._replace(
            versions=(*KNOWN, "0.6.0"),
            tables={**TABLES, "Session": later},
            lives=(
                *LIVES,
                Life("Session", "session_id", "0.5.0", "0.5.0"),
                Life("Session", "call_id", "0.6.0", None),
            ),
            differences=(replace(DIFFERENCES[0], levels={"Session": {"start": "S"}}), *DIFFERENCES[1:]),
        )

        def told(version, item):
            collector = Collector()
            context = Context({"sessions": [item]}, collector, profile=make_profile(version, history))
            Engine(context).run("Session", "", item, "/sessions/0")
            return [(one.code, one.pointer, one.data) for one in collector.in_order(None)]

        ids = {"local": UUID, "remote": UUID}
        assert told("0.6.0", {"start": START, "parties": [], "call_id": ids}) == []
        assert told("0.5.0", {"start": START, "parties": [], "session_id": ids}) == []
        assert told("0.6.0", {"parties": [], "session_id": ids}) == [
            ("required-missing", "/sessions/0", {"parameter": "start"}),
            ("legacy-name", "/sessions/0/session_id", {"old": "session_id", "new": "call_id"}),
        ]
        assert told("0.5.0", {"parties": [], "call_id": 5}) == [
            ("recommended-missing", "/sessions/0", {"parameter": "start"}),
            ("future-name", "/sessions/0/call_id", {"old": "call_id", "new": "session_id"}),
            ("type-mismatch", "/sessions/0/call_id", {"expected": "SessionId", "found": "Integer"}),
        ]
        for version in ("0.0.1", "0.4.0"):
            assert make_profile(version, history).severities == rules_of(version).severities

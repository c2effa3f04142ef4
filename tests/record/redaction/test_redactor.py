"""The redactor: what goes, what stays, what is refused, and that the result is a vCon without errors."""

import base64
import hashlib
import json
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.dates import ManualClock
from onrecord.base.errors import MalformedError, OnrecordError, UsageError
from onrecord.record.operations import read_operations
from onrecord.record.redaction import PROFILES, Rules, compare, redact
from onrecord.record.redaction.actions import MIN_COMMITTED_BYTES
from onrecord.record.redaction.paths import ANY
from onrecord.record.redaction.report import MAX_ENTRIES, REMAINS
from onrecord.record.redaction.shapes import INDEXED
from onrecord.record.vcon.model import Vcon
from support.hostile import SEEDS, mutated
from support.redaction import errors, full, marker, path, rules
from support.vcons import HASH, UUID, answer, decision, invocation, read, vcon


def redacted(document, *tables, profile=None, **options):
    """The members of the redacted vCon."""
    chosen = Rules.named(profile) if profile else rules(*tables)
    return redact(read(document), rules=chosen, **options).vcon.members


def with_body(body, **members):
    """A vCon with one message."""
    message = {"type": "text", "start": "2026-11-02T12:00:00Z", "parties": 0, "mediatype": "text/plain",
               "encoding": "none", "body": body, **members}  # fmt: skip
    return vcon(
        invocation(),
        dialog=[message],
        sessions=[{"start": "2026-11-02T12:00:00Z", "parties": [0], "dialog": [0]}],
    )


class TestProfiles:
    @pytest.mark.parametrize("profile", ["content", "audit"])
    @pytest.mark.req("TI-202")
    def test_no_target_is_left(self, profile):
        """Every place that may hold content or personal data is emptied: dialogs, tool and agent events alike."""
        document, names = full()
        assert len(names) > 30
        redaction = redact(read(document), rules=Rules.named(profile))
        text = redaction.to_bytes().decode()
        assert [name for name in names if marker(name) in text] == []

    @pytest.mark.parametrize("profile", PROFILES)
    def test_result(self, profile):
        """The result of every profile has no error, the same array lengths, and nothing leaked."""
        document, _ = full()
        vcon_ = read(document)
        redaction = redact(vcon_, rules=Rules.named(profile))
        assert errors(redaction.to_bytes()) == set()
        for name in INDEXED:
            assert len(redaction.vcon.members[name]) == len(document[name])
        assert compare(vcon_, Vcon.read(redaction.to_bytes())) == ()

    def test_pii(self):
        """`pii` takes out who people are, also inside of texts, and leaves what was said and which agent said it."""
        document, _ = full()
        document["parties"][0]["name"] = "Ana Silva"
        document["dialog"][0]["body"] = (
            "I am ana silva; call Ana at +1 555 010 4477 or write to ana@example.com. Rates?"
        )
        members = redacted(document, profile="pii")
        assert members["parties"][0] == {"type": "person", "name": "party-1"}
        assert members["parties"][1]["name"] == marker("agent-name")
        assert members["dialog"][0]["body"] == (
            "I am party-1; call party-1 at [telephone removed] or write to [email removed]. Rates?"
        )
        assert members["events"][3]["input"] == {"a": marker("input")}
        assert members["sessions"][0]["environment"] == {"working_dir": "[redacted]"}

    def test_audit_keeps_operations(self):
        """`audit` keeps what was decided, tried and how it ended: the summary of the operations is the same."""
        document = vcon(
            decision("allowed"),
            invocation(1, mediatype="text/plain", encoding="none", body="a" * MIN_COMMITTED_BYTES),
            answer("tool-timeout", 2),
            answer("tool-result", 3),
            invocation(4, attempt=2),
            answer("tool-failure", 5, attempt=2),
        )
        members = redacted(document, profile="audit")
        before, after = (
            read_operations(events, extensions=("tool-invocation",)).operations
            for events in (document["events"], members["events"])
        )
        assert before == after
        assert len(before) == 1

    def test_audit_commits(self):
        """`audit` keeps the hash of content that cannot be guessed, so that a copy can be compared, and of no other."""
        long, short = "x" * MIN_COMMITTED_BYTES, "x" * (MIN_COMMITTED_BYTES - 1)
        digest = base64.urlsafe_b64encode(hashlib.sha512(long.encode()).digest()).rstrip(b"=").decode()
        message = redacted(with_body(long), profile="audit")["dialog"][0]
        assert message["content_hash"] == f"sha512-{digest}"
        assert not {"body", "encoding", "mediatype"} & message.keys()
        assert "content_hash" not in redacted(with_body(short), profile="audit")["dialog"][0]
        encoded = base64.urlsafe_b64encode(long.encode()).decode().rstrip("=")
        message = redacted(with_body(encoded, encoding="base64url"), profile="audit")["dialog"][0]
        assert message["content_hash"] == f"sha512-{digest}"

    @pytest.mark.req("AA-144")
    def test_unlinkable(self):
        """`unlinkable` gives sessions, entries and calls random ids, other ones each time; joins stay."""
        document, _ = full()
        one, other = (redacted(document, profile="unlinkable") for _ in range(2))
        ids = {
            (
                members["sessions"][0]["agent_session_id"],
                members["events"][3]["call_id"],
                members["dialog"][0]["entry_id"],
            )
            for members in (one, other)
        }
        assert len(ids) == 2
        assert not {"session-native-1", "c1", "e1"} & {item for triple in ids for item in triple}
        assert one["events"][3]["call_id"] == one["events"][4]["call_id"]
        assert one["events"][3]["parent_id"] == one["dialog"][0]["entry_id"]
        assert UUID not in json.dumps(one)

    def test_pseudonymous_tools(self):
        """`pseudonymous-tools` names equal tools alike, and leaves !host, which names nothing."""
        document = vcon(
            invocation(), answer("tool-result"), invocation(3, operation_id="b", server="!host", tool="read")
        )
        events = redacted(document, profile="pseudonymous-tools")["events"]
        assert [(event["server"], event["tool"]) for event in (events[0], events[2])] == [
            ("server-1", "tool-1"),
            ("!host", "tool-2"),
        ]

    @pytest.mark.req("AA-135", "TI-207")
    def test_credentials(self):
        """Credentials go from fields, arguments, JSON within texts, base64url bodies, names of members, and URLs."""
        secret = "ghp_" + "a1" * 18
        inner = json.dumps({"password": "hunter22x", "list": [json.dumps({"token": secret})]})
        document = with_body(inner)
        document["dialog"].append(
            {
                **document["dialog"][0],
                "encoding": "base64url",
                "body": base64.urlsafe_b64encode(f"use {secret}".encode()).decode().rstrip("="),
            }
        )
        document["sessions"][0]["dialog"] = [0, 1]
        document["events"][0].update(
            mediatype="application/json",
            encoding="json",
            body={"api_key": "k-1", secret: 1, "url": "https://u:pw@h.example.com/"},
        )
        document["vcs"] = {"type": "git", "repository": f"https://user:{secret}@git.example.com/a.git"}
        document["extensions"].append("ai_agent")
        redaction = redact(read(document), rules=Rules.named("credentials"))
        members = redaction.vcon.members
        text = redaction.to_bytes().decode()
        assert not any(part in text for part in (secret, "hunter22x", "k-1", "u:pw"))
        assert secret not in base64.urlsafe_b64decode(members["dialog"][1]["body"] + "==").decode()
        assert members["vcs"]["repository"] == "https://git.example.com/a.git"
        assert json.loads(members["dialog"][0]["body"])["list"]

    @pytest.mark.req("AA-132")
    def test_content_that_stays_is_told(self):
        """Content that people provided counts as personal data: a report says in how many places it still stands."""
        document, _ = full()
        pii = redact(read(document), rules=Rules.named("pii")).report
        assert pii.kept == {"dialog": 3, "attachments": 1, "analysis": 1, "events": 6}
        assert "11 places" in pii.remains[0]
        content = redact(read(document), rules=Rules.named("content")).report
        assert not content.kept
        assert content.remains == REMAINS


class TestInstance:
    def test_reference(self):
        """The result is a new instance: new uuid, dates of now, redacted_from with uuid and type, no amended_from."""
        document = vcon(invocation(), amended_from={"uuid": "01a19c21-7200-8c44-832a-bc92ac6830ce"})
        redaction = redact(
            read(document),
            rules=Rules.named("pii"),
            clock=ManualClock("2026-12-01T08:00:00Z"),
            domain="example.com",
        )
        members = redaction.vcon.members
        assert members["redacted_from"] == {"uuid": UUID, "type": "PII masked"}
        assert "amended_from" not in members
        assert (members["created_at"], members["updated_at"]) == ("2026-12-01T08:00:00Z",) * 2
        assert members["uuid"] != UUID
        assert members["uuid"].endswith("-832a-bc92ac6830cd")
        assert redaction.report.uuid == members["uuid"]

    def test_url(self):
        """Where the less redacted vCon lies is only said with its hash, and only for https."""
        document = vcon(invocation())
        url = "https://vault.example.com/1"
        members = redacted(document, profile="pii", url=url, content_hash=HASH, type="mine")
        assert members["redacted_from"] == {"uuid": UUID, "url": url, "content_hash": HASH, "type": "mine"}
        for options, code in (
            ({"url": url}, "content-hash-missing"),
            ({"url": url, "content_hash": "nothing"}, "content-hash-missing"),
            ({"url": "http://vault.example.com/1", "content_hash": HASH}, "url-not-https"),
        ):
            with pytest.raises(UsageError) as refused:
                redacted(document, profile="pii", **options)
            assert refused.value.code == code

    @pytest.mark.parametrize(
        ("version", "name"), [("0.0.1", "redacted"), ("0.4.0", "redacted"), (None, "redacted_from")]
    )
    def test_older_versions(self, version, name):
        """The reference is called as in the file's own version of core."""
        members = redacted(vcon(invocation(), vcon=version), profile="pii")
        assert members[name]["uuid"] == UUID
        assert members.get("vcon") == version

    def test_original_is_not_touched(self):
        """The vCon that was redacted stays as it was, to the last value."""
        document, _ = full()
        original = read(document)
        redact(original, rules=Rules.named("audit"))
        assert original.members == document

    def test_second_redaction(self):
        """A redacted vCon can be redacted further; the reference names the one before."""
        document, _ = full()
        first = redact(read(document), rules=Rules.named("pii"))
        second = redact(first.vcon, rules=Rules.named("content"))
        assert second.vcon.members["redacted_from"]["uuid"] == first.vcon.uuid
        assert errors(second.to_bytes()) == set()


class TestRefusal:
    def test_unknown_extension(self):
        """A listed extension that nobody knows is refused by its place, unless allowed; its members go all the same."""
        document = vcon(invocation(), extensions=["tool-invocation", "lawful_basis"], lawful_basis={"x": 1})
        with pytest.raises(MalformedError) as refused:
            redacted(document, profile="pii")
        assert (refused.value.code, refused.value.where.pointer) == (
            "redactor-extension-unknown",
            "/extensions/1",
        )
        assert "lawful_basis" not in str(refused.value)
        redaction = redact(read(document), rules=Rules.named("pii"), allow=["lawful_basis"])
        assert redaction.vcon.members["extensions"] == ["tool-invocation"]
        assert "lawful_basis" not in redaction.vcon.members
        assert {(entry.code, entry.pointer) for entry in redaction.report.not_understood} == {
            ("extension-unknown", "/extensions/1"),
            ("unknown-member", "/lawful_basis"),
        }

    def test_critical(self):
        """What a vCon calls critical cannot be allowed: such a vCon is not processed at all."""
        document = vcon(invocation(), extensions=["tool-invocation", "x"], critical=["x"])
        with pytest.raises(MalformedError) as refused:
            redacted(document, profile="pii", allow=["x"])
        assert refused.value.code == "critical-unsupported"

    def test_not_understood(self):
        """Unknown members, unknown events, wrong types and reserved names go, are reported, and indices hold."""
        document = vcon(
            invocation(),
            {"type": "x-unknown", "time": "2026-11-02T12:00:00Z", "secret": "marker-zqx"},
            "marker-zqx",
            group=[{"uuid": "marker-zqx"}],
            parties=[{"type": "bot", "name": {"first": "marker-zqx"}, "role": "marker-zqx"}],
            attachments="marker-zqx",
        )
        document["events"][0]["time"] = {"a": "marker-zqx"}
        document["events"][0]["mediatype"] = 'text/plain; name="marker-zqx"'
        redaction = redact(read(document), rules=Rules.named("credentials"))
        assert "zqx" not in redaction.to_bytes().decode()
        assert [bool(event) for event in redaction.vcon.members["events"]] == [True, False, False]
        assert {(entry.code, entry.pointer) for entry in redaction.report.not_understood} == {
            ("unknown-member", "/group"),
            ("type-mismatch", "/parties/0/name"),
            ("unknown-member", "/parties/0/role"),
            ("type-mismatch", "/attachments"),
            ("type-mismatch", "/events/0/time"),
            ("mediatype-invalid", "/events/0/mediatype"),
            ("event-type-unknown", "/events/1"),
            ("type-mismatch", "/events/2"),
        }

    def test_secret_names(self):
        """The name of an unknown member that is a credential is not in the report."""
        secret = "AKIAABCDEFGHIJKLMNOP"
        report = redact(read(vcon(invocation(), **{secret: 1})), rules=Rules.named("pii")).report
        assert [entry.pointer for entry in report.not_understood] == [""]

    def test_short_salt(self):
        """A salt that could be guessed is refused."""
        with pytest.raises(UsageError) as refused:
            redacted(vcon(invocation()), profile="pii", salt=b"x" * 15)
        assert refused.value.code == "redaction-salt-short"


BODY = {"path": "/dialog/0/body"}
ACTIONS = [
    ("remove", {}),
    ("null", {}),
    ("mask", {"body": "[redacted]", "encoding": "none", "mediatype": "text/plain"}),
    ("pseudonym", {"body": "body-1", "encoding": "none", "mediatype": "text/plain"}),
    ("keep", {"body": "some text", "encoding": "none", "mediatype": "text/plain"}),
]


class TestActions:
    @pytest.mark.parametrize(("action", "content"), ACTIONS)
    def test_on_a_body(self, action, content):
        """What becomes of a message's body; encoding and media type go or fit."""
        message = redacted(with_body("some text"), {**BODY, "action": action})["dialog"][0]
        assert {
            name: message[name] for name in ("body", "encoding", "mediatype") if name in message
        } == content

    @pytest.mark.parametrize("action", ["hash", "random"])
    def test_on_a_body_unpredictably(self, action):
        """Hashes are salted anew in each export and random ids are random, so that nothing can be looked up."""
        bodies = {
            redacted(with_body("some text"), {**BODY, "action": action})["dialog"][0]["body"]
            for _ in range(3)
        }
        assert len(bodies) == 3

    def test_shared_salt(self):
        """With one salt two exports can be compared."""
        bodies = {
            redacted(with_body("some text"), {**BODY, "action": "hash"}, salt=b"s" * 16)["dialog"][0]["body"]
            for _ in range(2)
        }
        assert len(bodies) == 1
        assert bodies.pop().startswith("salted-sha256:")

    @pytest.mark.parametrize("action", ["remove", "null", "mask", "hash", "pseudonym", "random"])
    @pytest.mark.parametrize(
        "name", ["type", "time", "session", "party", "entry_id", "call_id", "input", "tool_name"]
    )
    def test_structure_stays(self, action, name):
        """No action on one member makes an event an error: structure stays, and what must be there is replaced."""
        document, _ = full()
        rule = replace(
            rules({"path": "/events/*/input", "action": action}).rules[0], path=("events", ANY, name)
        )
        made = redact(read(document), rules=Rules(name="mine", type="mine", rules=(rule,)))
        members = made.vcon.members
        assert errors(json.dumps(members).encode()) == set()
        if name in ("type", "time", "session", "party"):
            assert [event.get(name) for event in members["events"]] == [
                event.get(name) for event in document["events"]
            ]
            assert made.report.idle == ["rules 1"]
        assert len({event["operation_id"] for event in members["events"] if "operation_id" in event}) == 1

    @pytest.mark.parametrize("action", ["remove", "mask", "hash", "pseudonym", "random", "null"])
    def test_everything(self, action):
        """A rule for everything leaves structure, and still no error."""
        document, _ = full()
        redaction = redact(read(document), rules=rules({"path": "/**", "action": action}))
        assert errors(redaction.to_bytes()) == set()

    @pytest.mark.parametrize("array", sorted(INDEXED))
    @pytest.mark.parametrize("action", ["placeholder", "remove"])
    def test_elements(self, array, action):
        """An element that goes leaves {}, so that every index holds."""
        document, _ = full()
        members = redacted(document, {"path": f"/{array}/0", "action": action})
        assert members[array][0] == {}
        assert members[array][1:] == document[array][1:]
        assert errors(json.dumps(members).encode()) == set()

    def test_event_types(self):
        """A rule may name types of events; others stay."""
        document, _ = full()
        events = redacted(document, {"event_type": ["reasoning", "tool-call"], "action": "placeholder"})[
            "events"
        ]
        assert [event.get("type") for event in events] == [
            "policy-decision", "tool-invocation", "tool-result", None, "tool-result", None, "system-event",
        ]  # fmt: skip

    def test_conditions(self):
        """`where` and `unless` look at the element that a place belongs to."""
        document, _ = full()
        tables = [
            {"path": "/parties/*/name", "where": {"type": "bot"}, "action": "mask"},
            {"pattern": "home-path", "path": "/sessions/**", "unless": {"format": "interactive"}},
        ]
        members = redacted(document, *tables)
        assert [party["name"] for party in members["parties"]] == [marker("name"), "[redacted]"]
        assert members["sessions"][0]["environment"]["working_dir"] == "/home/[user removed]/work"
        document["sessions"][0]["format"] = "interactive"
        assert redacted(document, *tables)["sessions"][0]["environment"]["working_dir"] == path("working-dir")

    def test_first_rule_decides(self):
        """A place that a rule has changed or keeps is left alone by those below it, patterns included."""
        keep = {"path": "/dialog/0/body", "action": "keep"}
        pattern = {"pattern": "email"}
        remove = {"path": "/dialog/*/body", "action": "remove"}
        document = with_body("ana@example.com")
        assert redacted(document, keep, pattern, remove)["dialog"][0]["body"] == "ana@example.com"
        assert "body" not in redacted(document, remove, keep)["dialog"][0]

    def test_call_ids(self):
        """Session ids of calls stay in their shape, and can be replaced within it."""
        document = SEEDS["call"]()
        assert (
            redacted(document, profile="pii")["dialog"][3]["session_id"]
            == document["dialog"][3]["session_id"]
        )
        (ids,) = redacted(document, profile="unlinkable")["dialog"][3]["session_id"]
        assert ids["local"] == ids["remote"] != UUID

    def test_keep_unknown(self):
        """A member that nobody knows stays where a rule keeps it."""
        document = vcon(invocation(), parties=[{"type": "bot", "name": "Agent", "role": "helper", "shoe": 1}])
        members = redacted(document, {"path": "/parties/*/role", "action": "keep"})
        assert members["parties"][0] == {"type": "bot", "name": "Agent", "role": "helper"}

    def test_everywhere(self):
        """What a rule takes out is taken out of other texts too, but no part of another word goes."""
        document = with_body('HERON flies. A heronry. {"k": "heron"}')
        document["subject"] = "Heron"
        members = redacted(
            document, {"path": "/subject", "action": "remove", "label": "project", "everywhere": True}
        )
        assert (
            members["dialog"][0]["body"] == '[project removed] flies. A heronry. {"k": "[project removed]"}'
        )

    @pytest.mark.parametrize(
        ("text", "left"),
        [
            ('{"a":"x","a":"ana@example.com"}', "[redacted]"),
            ('log: {"a":"ana\\u0040example.com"}', 'log: {"a":"[redacted]"}'),
            ('{"a":"ana\\u0040example.com"} and more', '{"a":"[redacted]"} and more'),
        ],
    )
    def test_json_that_hides(self, text, left):
        """JSON within a text that parsers read differently costs the whole text, escapes outside of JSON the word."""
        assert redacted(with_body(text), {"pattern": "email"})["dialog"][0]["body"] == left

    def test_escaped(self):
        """What JSON escapes hide within a text is found."""
        body = redacted(with_body('{"mail":"ana\\u0040example.com"}'), {"pattern": "email"})["dialog"][0][
            "body"
        ]
        assert body == '{"mail":"[email removed]"}'

    def test_binary(self):
        """Binary content is not searched, and the report says where."""
        document = with_body(
            base64.urlsafe_b64encode(bytes(range(256))).decode().rstrip("="),
            encoding="base64url",
            mediatype="audio/x-wav",
        )
        report = redact(read(document), rules=Rules.named("pii")).report
        assert report.not_searched == ["/dialog/0/body"]

    def test_invalid_base64(self):
        """A body that says base64url and is text is searched as text."""
        document = with_body("write to ana@example.com!", encoding="base64url")
        assert redacted(document, {"pattern": "email"})["dialog"][0]["body"] == "write to [email removed]!"

    def test_pseudonyms_can_be_kept(self):
        """The owner can undo pseudonyms; neither the vCon nor the report nor a repr holds the map."""
        document, _ = full()
        redaction = redact(read(document), rules=Rules.named("pii"))
        assert redaction.originals["party-1"] == marker("name")
        for text in (redaction.to_bytes().decode(), json.dumps(redaction.report.to_json()), repr(redaction)):
            assert marker("name") not in text


@pytest.mark.parametrize("name", sorted(SEEDS))
@pytest.mark.parametrize("profile", PROFILES)
def test_every_kind_of_vcon(name, profile):
    """Calls, agents, tools, redacted and old ones: no error is new, nothing leaks, the reference is there."""
    original = read(SEEDS[name]())
    redaction = redact(original, rules=Rules.named(profile))
    assert errors(redaction.to_bytes()) <= errors(original.raw)
    assert compare(original, Vcon.read(redaction.to_bytes())) == ()
    assert {"redacted", "redacted_from"} & redaction.vcon.members.keys()


class TestReport:
    @pytest.mark.parametrize("profile", PROFILES)
    def test_no_values(self, profile):
        """A report names places, rules and counts, and holds no value of the vCon."""
        document, _ = full()
        report = json.dumps(redact(read(document), rules=Rules.named(profile)).report.to_json())
        assert "zqx" not in report

    @pytest.mark.parametrize(("profile", "codes"), [("pii", 2), ("content", 1)])
    def test_notes(self, profile, codes):
        """What is left to do is noted: to review reasoning that stays, and to sign."""
        document, _ = full()
        notes = redact(read(document), rules=Rules.named(profile)).findings
        expected = [("redacted-unsigned", ""), ("reasoning-unredacted", "/events/5/content")]
        assert [(note.code, note.pointer) for note in notes] == expected[:codes]
        assert {note.severity for note in notes} == {"info"}

    def test_no_names_of_content(self):
        """Names of members inside of content may be secrets too; pointers end before them."""
        document = vcon(
            invocation(
                encoding="json", mediatype="application/json", body={"marker-zqx": {"b": "ana@example.com"}}
            )
        )
        report = redact(read(document), rules=Rules.named("pii")).report
        assert [(change.pointer, change.count) for change in report.changes] == [("/events/0/body", 1)]

    def test_limit(self):
        """Changes beyond the limit are counted."""
        document = vcon(invocation(), parties=[{"name": "x"}] * (MAX_ENTRIES + 5))
        report = redact(read(document), rules=rules({"path": "/parties/*/name", "action": "remove"})).report
        assert len(report.changes) == MAX_ENTRIES
        assert report.left_out == {"changes": 5}
        assert sum(report.counts.values()) == MAX_ENTRIES + 5


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(SEEDS)), profile=st.sampled_from(PROFILES))
def test_any_vcon(seed, name, profile):
    """Any vCon is redacted or refused by a code; no error is new, indices hold, nothing leaks."""
    document = mutated(SEEDS[name](), random.Random(seed), 6)
    try:
        original = read(document)
        redaction = redact(original, rules=Rules.named(profile))
        data = redaction.to_bytes()
    except (OnrecordError, ValueError, RecursionError) as error:
        assert isinstance(error, OnrecordError) or not isinstance(document, dict)
        return
    result = Vcon.read(data)
    for array in INDEXED:
        if isinstance(original.members.get(array), list):
            assert len(result.members[array]) == len(original.members[array])
    if profile in ("content", "audit"):
        assert [one for one in compare(original, result) if one.code == "redaction-index-shift"] == []


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), profile=st.sampled_from(PROFILES))
def test_valid_vcons_stay_valid(seed, profile):
    """However its texts are mixed, a vCon without errors is one after every profile, and nothing leaks."""
    document, _ = full()
    source = random.Random(seed)
    words = [
        "Ana Silva",
        "ana@example.com",
        "+1 555 010 4477",
        "/home/ana/x",
        "plain words",
        "AKIAABCDEFGHIJKLMNOP",
        "",
        "é\u202e\x00",
    ]
    for message in document["dialog"]:
        if message.get("encoding") == "none":
            message["body"] = " ".join(source.choice(words) for _ in range(4))
    document["parties"][0]["name"] = source.choice(words)
    document["events"][3]["input"] = {source.choice(words): [source.choice(words), source.random()]}
    document["events"][6]["data"] = {"a": {"b": source.choice(words)}}
    original = read(document)
    redaction = redact(original, rules=Rules.named(profile))
    assert errors(redaction.to_bytes()) <= errors(json.dumps(document).encode())
    if profile in ("pii", "content", "audit"):
        assert [one.pointer for one in compare(original, Vcon.read(redaction.to_bytes()))] == []


def test_too_deep():
    """A vCon that was built deeper than any that is read is refused, not walked into the ground."""
    value = "x"
    for _ in range(5_000):
        value = [value]
    document = vcon(invocation(encoding="json", mediatype="application/json"))
    document["events"][0]["body"] = value
    with pytest.raises(MalformedError) as refused:
        redact(Vcon(document), rules=Rules.named("pii"))
    assert refused.value.code == "json-depth"

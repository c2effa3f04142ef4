"""Places and spellings in which data could survive a redaction, and what must not be taken for it."""

import base64
import gzip
import hashlib
import json
import unicodedata

import pytest

from onrecord.record.redaction import Rules, compare, redact
from onrecord.record.redaction.folding import fold, plain
from onrecord.record.redaction.words import words_of_name
from onrecord.record.vcon.model import Vcon
from support.redaction import errors
from support.vcons import invocation, read, vcon

TOKEN = "AKIAABCDEFGHIJKLMNOP"
START = "2026-11-02T12:00:00Z"


def encoded(text):
    """A text or bytes in base64url."""
    data = text if isinstance(text, bytes) else text.encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def talk(body="hello", *, name="Ana Oliveira", **message):
    """A vCon with a person and one message."""
    return vcon(
        invocation(),
        parties=[{"type": "person", "name": name}, {"type": "bot", "name": "Helper"}],
        dialog=[{"type": "text", "start": START, "parties": 0, "mediatype": "text/plain", "encoding": "none",
                 "body": body, **message}],
        sessions=[{"start": START, "parties": [0], "dialog": [0]}],
    )  # fmt: skip


def redacted(document, profile):
    """The text of the redacted vCon and its report, both with plain letters."""
    rules = Rules.named(profile) if isinstance(profile, str) else Rules.of(profile)
    redaction = redact(read(document), rules=rules)
    report = json.dumps(redaction.report.to_json(), ensure_ascii=False)
    return redaction.to_bytes().decode(), report


NAMES = [
    ("Ana Oliveira", "ask oliveira now", "oliveira"),
    ("Ana Oliveira", "ask OLIVEIRA, or ANA", "ANA"),
    ("José Peña", unicodedata.normalize("NFD", "ask José Peña"), "n\u0303a"),
    (unicodedata.normalize("NFD", "José Peña"), "ask José", "José"),
    ("José Weiß", "ask JOSE WEISS", "WEISS"),
    ("Ana Oliveira", "Oli\u00advei\u2060ra", "vei"),
    ("Ana Oliveira", "\uff2f\uff4c\uff49\uff56\uff45\uff49\uff52\uff41", "\uff4c\uff49\uff56"),
    ("王小明", "我是王小明你好", "王小明"),
    ("李明", "我是李明你好", "李明"),
    ("김철수", "김철수는 왔다", "김철수"),
    ("Bo Li", "ask Li now", "Li "),
    ("Ana-Maria Lopes", "Maria came", "Maria"),
    ("Ana Oliveira", "/srv/ana/x and ana_o.txt", "ana"),
    ("Ana Oliveira", "Ana\nOliveira", "Oliveira"),
    ("Ana Oliveira", "Jos&eacute; and Oliv&#101;ira", "Oliv"),
    ("Ana Oliveira", "log: User:\\nOliveira", "Oliveira"),
    ("Ana Oliveira", f"see {encoded('to Ana Oliveira.')}", "see " + encoded("to Ana Oliveira.")),
    ("Ana Oliveira", f"see {b'to Ana Oliveira.'.hex()}", "see 746f"),
]


class TestNames:
    @pytest.mark.parametrize(("name", "body", "left"), NAMES)
    def test_found(self, name, body, left):
        """A name is found in any case, with accents or without, in scripts without blanks, behind escapes."""
        text, _ = redacted(talk(body, name=name), "pii")
        assert left not in text
        assert compare(read(talk(body, name=name)), Vcon.read(text.encode())) == ()

    @pytest.mark.parametrize(
        ("name", "body"),
        [
            ("Will Long", "we will not take long"),
            ("Ludwig van der Berg", "der van und die Firma"),
            ("Bo Li", "LIST and li and Lie"),
            ("some-id-marker", "a marker"),
        ],
    )
    def test_words_of_every_day(self, name, body):
        """Short words are no names where they are not written like one; particles never are."""
        assert body in redacted(talk(body, name=name), "pii")[0]

    def test_words(self):
        """Titles, single letters and particles do not make a name known; the parts of a double name do."""
        assert list(words_of_name("Prof. Dr. Ana-Maria de la Peña, J.")) == ["Ana", "Maria", "Pena"]

    def test_folding_keeps_places(self):
        """What is found in a folded text leads to the characters it came from."""
        text = "x\u200bJ\u00fc\u0301ßz"
        folded = plain(text)
        assert folded.text == "xJußz"
        assert text[slice(*folded.place(2, 3))] == "\u00fc"
        assert fold(text) == "xjussz"


ADDRESSES = [
    "https://x.example.com/?u=ana%40example.com",
    "ana&#64;example.com",
    "ana\uff20example.com",
    "ana@exam\u200bple.com",
    '"ana silva"@example.com',
    "ana@[192.0.2.1]",
    "=?utf-8?Q?ana=40example.com?=",
    encoded("write to ana@example.com"),
    encoded(encoded("write to ana@example.com")),
    "{\\x22m\\x22: \\x22ana\\x40example.com\\x22}",
    json.dumps(json.dumps({"m": "ana\\u0040example.com"})),
]


class TestPatterns:
    @pytest.mark.parametrize("text", ADDRESSES)
    def test_address(self, text):
        """An address is found behind escapes, in base64, with unseen and wide characters; what is around it stays."""
        body = json.loads(redacted(talk(f"before {text} after"), "pii")[0])["dialog"][0]["body"]
        assert "removed]" in body or "[redacted]" in body
        assert text not in body
        assert (body.startswith("before ") and body.endswith(" after")) or body == "[redacted]"

    @pytest.mark.parametrize(
        "text",
        ["a conversation about representations", "rates & fees = 5%", "C:\\temp\\new", '{"a":1,"b":[2]}',
         "0f8fad5b-d9cb-469f-a165-70867728950e", encoded("nothing personal here"), "if (a && b) { c = d; }",
         "https://example.com/a%20b?c=d&e=f"],
    )  # fmt: skip
    def test_plain(self, text):
        """Escapes, base64 and long words that hide nothing stay as they are."""
        assert json.loads(redacted(talk(text), "pii")[0])["dialog"][0]["body"] == text

    def test_numbers(self):
        """A card as a number goes, and a telephone number of a party in any spelling; other numbers stay."""
        document = talk(mediatype="application/json", encoding="json",
                        body={"card": 4111111111111111, "tel": 15550104477, "at": 1764590926756, "n": 7})  # fmt: skip
        document["parties"][0]["tel"] = "tel:+1-555-010-4477"
        document["attachments"] = [{"start": START, "party": 0, "dialog": 0, "mediatype": "text/plain",
                                    "encoding": "none", "body": "dial 5550104477"}]  # fmt: skip
        members = json.loads(redacted(document, "pii")[0])
        body = members["dialog"][0]["body"]
        assert (body["card"], body["tel"]) == ("[payment-card removed]", "[telephone removed]")
        assert (body["at"], body["n"]) == (1764590926756, 7)
        assert members["attachments"][0]["body"] == "dial [telephone removed]"

    @pytest.mark.parametrize("charset", ["utf-16", "utf-16le", "iso-8859-1", "windows-1252"])
    def test_character_sets(self, charset):
        """A text body is searched in the character set that it names, and keeps it."""
        body = encoded("Grüße an ana@example.com".encode(charset))
        document = talk(body, encoding="base64url", mediatype=f"text/plain; charset={charset}")
        body = json.loads(redacted(document, "pii")[0])["dialog"][0]["body"]
        decoded = base64.urlsafe_b64decode(body + "==").decode(charset)
        assert decoded == "Grüße an [email removed]"

    def test_unknown_bytes(self):
        """Text of a character set that is not known, or not named, is told as not searched, not passed over."""
        wide = encoded("mail ana@example.com".encode("utf-16-le"))
        for mediatype in ("text/plain", "text/plain; charset=utf-7"):
            document = talk(wide, encoding="base64url", mediatype=mediatype)
            assert json.loads(redacted(document, "pii")[1])["notSearched"] == ["/dialog/0/body"]


STRUCTURE = [
    ("type", TOKEN),
    ("disposition", TOKEN),
    ("mediatype", f"text/{TOKEN}"),
    ("content_hash", f"sha512-{TOKEN}"),
    ("encoding", TOKEN),
    ("session_id", [{"local": "a", "remote": "b", TOKEN: "x"}]),
    ("party_history", [{"party": 0, "time": START, "event": TOKEN}]),
]


class TestStructure:
    @pytest.mark.parametrize(("name", "value"), STRUCTURE)
    def test_dialog(self, name, value):
        """A credential that poses as a word, a media type, a hash or a name of an id does not stay."""
        text, report = redacted(talk(**{name: value}), "credentials")
        assert TOKEN not in text
        assert TOKEN not in report

    @pytest.mark.parametrize(
        "changes",
        [{"vcon": TOKEN}, {"extensions": TOKEN}, {"parties": [{"type": TOKEN}]},
         {"parties": [{"civicaddress": {TOKEN: "x"}}]}, {"vcon": TOKEN, "critical": None}],
    )  # fmt: skip
    def test_top(self, changes):
        """So at the top and at parties."""
        assert TOKEN not in redacted({**talk(), **changes}, "credentials")[0]

    @pytest.mark.parametrize(
        "start", [START, "2026-11-02T12:00:00.123+01:00", "Mon, 02 Nov 2026 12:00:00 GMT", "11/2/2026, 12:00:00 PM",
                  "2026-11-02 12:00:00"]
    )  # fmt: skip
    def test_dates(self, start):
        """Dates of any kind that files have stay."""
        assert json.loads(redacted(talk(start=start), "content")[0])["dialog"][0]["start"] == start

    @pytest.mark.parametrize(
        "start", ["+1 555 010 4477", "4111 1111 1111 1111", "12", "2026-11-02T12:00:00 ana"]
    )
    def test_no_dates(self, start):
        """What is no date does not pass for one."""
        assert "start" not in json.loads(redacted(talk(start=start), "credentials")[0])["dialog"][0]

    def test_known_words(self):
        """The words of the drafts stay even if a person is called like one."""
        document = talk("Text to Person", name="Text Person")
        message = json.loads(redacted(document, "pii")[0])
        assert (message["dialog"][0]["type"], message["dialog"][0]["mediatype"]) == ("text", "text/plain")
        assert message["parties"][0]["type"] == "person"
        assert errors(json.dumps(message).encode()) <= errors(json.dumps(document).encode())

    def test_pressed_keys(self):
        """`content` takes out which keys a caller pressed; that one was pressed stays."""
        history = [{"party": 0, "time": START, "event": "keydown", "button": "7"}]
        document = talk(party_history=history)
        document["events"] = [
            {"type": "keydown", "time": START, "sessions": 0, "party": 0, "dialog": 0, "button": "7"}
        ]
        members = json.loads(redacted(document, "content")[0])
        assert (
            members["events"][0]["button"]
            == members["dialog"][0]["party_history"][0]["button"]
            == "[redacted]"
        )


class TestHashes:
    @pytest.mark.parametrize("profile", ["content", "audit"])
    def test_short(self, profile):
        """The hash of short content goes with it, whoever put it there: it can be guessed."""
        digest = f"sha512-{encoded(hashlib.sha512(b'my PIN is 1234').digest())}"
        assert digest not in redacted(talk("my PIN is 1234", content_hash=digest), profile)[0]

    @pytest.mark.parametrize(
        "rules",
        ["pii", {"rule": [{"path": "/dialog/0/body", "action": "mask"}]},
         {"rule": [{"path": "/dialog/0/body", "action": "hash"}]}],
    )  # fmt: skip
    @pytest.mark.parametrize("encoding", ["none", "base64url"])
    def test_changed(self, rules, encoding):
        """The hash of content of which a part was taken out goes: the part could be guessed with it."""
        body = "write to ana@example.com, who knows all about the order"
        digest = f"sha512-{encoded(hashlib.sha512(body.encode()).digest())}"
        document = talk(body if encoding == "none" else encoded(body), encoding=encoding, content_hash=digest)
        assert digest not in redacted(document, rules)[0]

    def test_part_of_a_body(self):
        """So where a rule reaches into a body."""
        document = talk(
            {"a": {"b": "x" * 40}},
            encoding="json",
            mediatype="application/json",
            content_hash="sha512-" + "A" * 86,
        )
        rules = {"rule": [{"path": "/dialog/0/body/a/b", "action": "remove"}]}
        assert "sha512" not in redacted(document, rules)[0]

    def test_commit_is_our_own(self):
        """`commit` writes the hash of what stands there, not the one that the file claims."""
        document = talk("x" * 40, content_hash="sha512-" + "A" * 86)
        assert encoded(hashlib.sha512(b"x" * 40).digest()) in redacted(document, "audit")[0]


@pytest.mark.parametrize("name", ["ana@example.com", "Ana Oliveira", "+15550104477", "a" * 41, TOKEN])
def test_report_shows_no_unknown_names(name):
    """The name of a member that nobody knows may be content: the report names the object it was in."""
    _, report = redacted({**talk(), name: 1}, "credentials")
    assert name not in report
    assert json.loads(report)["notUnderstood"] == [{"code": "unknown-member", "pointer": ""}]


@pytest.mark.parametrize(
    "name", ["accessToken", "apiKey", "API-KEY", "clientSecret", "ACCESS_TOKEN", "setCookie"]
)
def test_member_names(name):
    """Members named like a credential are found however the words are joined."""
    document = talk({name: "hunter2"}, encoding="json", mediatype="application/json")
    assert "hunter2" not in redacted(document, "credentials")[0]


def test_new_objects_are_not_taken_for_old_ones():
    """What a rule handled and what was then taken out leaves no trace by which a new object passes for handled."""
    common = {"type": "tool-call", "time": START, "session": 0, "party": 1}
    first = [{**common, "tool_name": "x", "input": {"k": {"m": f"first {i}"}}} for i in range(40)]
    second = [{**common, "tool_name": "y", "input": {"j": {"m": "mail ana@example.com"}}} for _ in range(40)]
    rules = {
        "rule": [
            {"path": "/events/*/input/k", "action": "pseudonym"},
            {"path": "/events/*/input", "where": {"tool_name": "x"}, "action": "null"},
            {"words": ["mail"]},
            {"pattern": "email"},
        ]
    }
    for _ in range(5):
        document = {**talk(), "extensions": ["ai_agent"], "events": [*first, *second]}
        assert "ana@example" not in redacted(document, rules)[0]


def leak_at(document, changed):
    """The pointers of the leaks."""
    return [finding.pointer for finding in compare(read(document), read(changed))]


def without_message(body=None, **message):
    """A talk about Ana Oliveira, and its copy without the party and with another body."""
    original = talk("Ana Oliveira was here")
    copied = json.loads(json.dumps(original))
    copied["parties"][0] = {}
    copied["redacted_from"] = {"type": "test"}
    copied["dialog"][0].update(message, body=body)
    return original, copied


class TestProof:
    @pytest.mark.parametrize(
        "body",
        [
            encoded(gzip.compress(b"Ana Oliveira was here", mtime=0)),
            encoded("Ana Oliveira was here".encode("utf-16")),
            "=?utf-8?Q?Ana=20Oliveira=20was=20here?=",
            "path/" + encoded("Ana Oliveira was here"),
            base64.encodebytes(b"x" * 50 + b"Ana Oliveira was here" + b"y" * 50).decode(),
            b"Ana Oliveira was here".hex(),
            "A\u0301NA OLIVEIRA\u200b",
            "Ana\tOliveira",
            "Ana&nbsp;Oliveira",
            encoded(b"\xff\xd8" + b"Ana Oliveira was here" + b"\x00\x01"),
        ],
    )
    def test_forms(self, body):
        """A name that was taken out is found in base64 of any kind, gzip, hexadecimal, entities, with other letters."""
        assert "/dialog/0/body" in leak_at(*without_message(body))

    def test_reference(self):
        """What the reference to the original says is searched too, but its uuid is what it must be."""
        for reference in (
            {"type": "Ana Oliveira removed"},
            {"type": "x", "url": "https://example.com/ana%20oliveira"},
        ):
            original, copied = without_message("nothing")
            copied["redacted_from"] = reference
            assert [pointer[:14] for pointer in leak_at(original, copied)] == ["/redacted_from"]
        original = talk(original_uuid := talk()["uuid"])
        copied = json.loads(json.dumps(original))
        copied["redacted_from"] = {"type": "x", "uuid": original_uuid}
        del copied["dialog"][0]["body"]
        assert leak_at(original, copied) == []

    def test_brackets(self):
        """A text in brackets that was taken out is no mark of redaction."""
        original = {**talk("about [Project Heron]"), "subject": "[Project Heron]"}
        copied = {**talk("about [Project Heron]"), "redacted_from": {"type": "x"}}
        assert leak_at(original, copied) == ["/dialog/0/body"]

    def test_short_part(self):
        """A text of which only a short part was taken out must not stand elsewhere with it."""
        original = {**talk("my PIN is 1234"), "subject": "my PIN is 1234"}
        copied = {
            **talk("my PIN is 1234"),
            "subject": "my PIN is [pin removed]",
            "redacted_from": {"type": "x"},
        }
        assert leak_at(original, copied) == ["/dialog/0/body"]

    def test_numbers(self):
        """A number that was taken out of a text is found as a number."""
        original = {
            **talk({"n": 15550104477}, encoding="json", mediatype="application/json"),
            "subject": "15550104477",
        }
        copied = {**original, "subject": "[telephone removed]", "redacted_from": {"type": "x"}}
        assert leak_at(original, copied) == ["/dialog/0/body"]

    def test_structure(self):
        """A media type that says what was taken out is a leak."""
        original = {**talk(mediatype="text/ana.oliveira"), "subject": "ana.oliveira"}
        copied = {**talk(mediatype="text/ana.oliveira"), "redacted_from": {"type": "x"}}
        assert "/dialog/0/mediatype" in leak_at(original, copied)

    def calls(self, *inputs, changed):
        """A vCon with tool calls, and its copy in which the first has another input, or is gone."""
        events = [{"type": "tool-call", "time": START, "session": 0, "party": 1, "tool_name": "read_record",
                   "input": value} for value in inputs]  # fmt: skip
        original = {**talk(), "extensions": ["ai_agent"], "events": events}
        copied = {**original, "redacted_from": {"type": "x"}, "events": [changed(events[0]), *events[1:]]}
        return leak_at(original, copied)

    def test_names_of_members(self):
        """Names of members that recur are no leak, unless they say something."""
        gone = {"changed": lambda event: {**event, "input": None}}
        assert (
            self.calls({"file_path": "a", "description": "b"}, {"file_path": "c", "description": "d"}, **gone)
            == []
        )
        assert "/events/1/input" in self.calls({"ana.oliveira@x": 1}, {"ana.oliveira@x": 2}, **gone)

    def test_role(self):
        """A word that says what an object is recurs; a sentence in its place does not."""
        gone = {"changed": lambda event: {**event, "input": None}}
        assert self.calls({"role": "assistant"}, {"role": "assistant"}, **gone) == []
        assert self.calls({"role": "Dr. Ana Oliveira"}, {"q": "Dr. Ana Oliveira"}, **gone) != []

    def test_labels(self):
        """A tool's name at another event is no leak where the whole event went, and is one where only the name went."""
        assert self.calls({}, {}, changed=lambda event: {}) == []
        assert self.calls({}, {}, changed=lambda event: {**event, "tool_name": "[redacted]"}) == [
            "/events/1/tool_name"
        ]

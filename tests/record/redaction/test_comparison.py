"""The proof: what was taken out and still stands somewhere is found, and nothing else is."""

import base64
import copy
import json
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.redaction import Rules, compare, redact
from onrecord.record.redaction.comparison import MIN_REMOVED_CHARACTERS, removed_parts
from onrecord.record.redaction.decoding import readings
from support.data import shared_data
from support.redaction import full
from support.vcons import decision, invocation, read, vcon

SECRET = 'Müller said "no"\tto 4711'


def leaks(original, redacted):
    """Code and pointer of each finding."""
    return [(finding.code, finding.pointer) for finding in compare(read(original), read(redacted))]


def pair(kept="nothing"):
    """A vCon whose subject is taken out in the second copy, and a message that stays."""
    message = {"type": "text", "start": "2026-11-02T12:00:00Z", "parties": 0, "mediatype": "text/plain",
               "encoding": "none", "body": kept}  # fmt: skip
    original = vcon(invocation(), subject=SECRET, dialog=[message])
    redacted = {**copy.deepcopy(original), "redacted_from": {"type": "test"}}
    del redacted["subject"]
    return original, redacted


HIDDEN = {
    "same": f"x {SECRET} y",
    "upper case": SECRET.upper(),
    "json": json.dumps({"a": SECRET}),
    "json in json": json.dumps(json.dumps([SECRET])),
    "escapes": "".join(f"\\u{ord(char):04x}" for char in SECRET),
    "url": f"https://example.com/?q={quote(SECRET)}",
    "base64": base64.b64encode(f"--{SECRET}".encode()).decode(),
    "base64url": f"token {base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip('=')} end",
    "json in base64": base64.b64encode(json.dumps({"a": SECRET}).encode()).decode(),
}


class TestLeaks:
    @pytest.mark.parametrize("text", HIDDEN.values(), ids=HIDDEN)
    def test_forms(self, text):
        """A text that was taken out is found in whatever way it is still said."""
        assert leaks(*pair(text)) == [("redaction-leak", "/dialog/0/body")]

    @pytest.mark.parametrize(
        "text", ["nothing", SECRET[:-1], SECRET[1:], "", SECRET[:10] + "x" + SECRET[10:]]
    )
    def test_no_leak(self, text):
        """A part of it, or something like it, is no leak."""
        assert leaks(*pair(text)) == []

    def test_everywhere(self):
        """It is found in names of members, tool events, agent events, base64url bodies, and names of parties."""
        original, redacted = pair()
        extra = [
            invocation(3, operation_id="b", encoding="json", mediatype="application/json", body={SECRET: 1}),
            invocation(4, operation_id="c", encoding="base64url", mediatype="text/plain",
                       body=base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("=")),
            {"type": "tool-call", "time": "2026-11-02T12:00:00Z", "session": 0, "party": 0, "tool_name": "x",
             "input": [SECRET]},
            {"type": "reasoning", "time": "2026-11-02T12:00:00Z", "session": 0, "party": 0, "content": SECRET},
        ]  # fmt: skip
        for document in (original, redacted):
            document["events"] += copy.deepcopy(extra)
            document["parties"].append({"name": SECRET})
        assert [pointer for _, pointer in leaks(original, redacted)] == [
            "/parties/1/name", "/events/1/body", "/events/2/body", "/events/3/input", "/events/4/content",
        ]  # fmt: skip

    def test_short(self):
        """Texts of fewer than eight characters stand anywhere by chance, and do not count."""
        for length, found in ((MIN_REMOVED_CHARACTERS - 1, 0), (MIN_REMOVED_CHARACTERS, 1)):
            original, redacted = pair("a" + "q" * length)
            original["subject"] = "q" * length
            assert len(leaks(original, redacted)) == found

    def test_part_of_a_text(self):
        """What stood where a mark is now counts as taken out."""
        original, redacted = pair("write to ana@example.com now")
        del original["subject"]
        for document in (original, redacted):
            document["parties"][0]["name"] = "ana@example.com"
        redacted["dialog"][0]["body"] = "write to [email removed] now"
        assert leaks(original, redacted) == [("redaction-leak", "/parties/0/name")]

    def test_labels(self):
        """The same tool at another event is no leak; its name within a text is."""
        original = vcon(decision(tool="read_file"), invocation(tool="read_file"))
        redacted = {**copy.deepcopy(original), "redacted_from": {"type": "test"}}
        redacted["events"][0] = {}
        assert leaks(original, redacted) == []
        for document in (original, redacted):
            document["subject"] = "about read_file"
        assert leaks(original, redacted) == [("redaction-leak", "/subject")]

    def test_no_values(self):
        """A finding names places and lengths, and never the text."""
        original, redacted = pair(SECRET)
        (finding,) = compare(read(original), read(redacted))
        assert finding.data == {"removed_from": "/subject", "length": len(SECRET), "form": "same"}
        assert SECRET not in json.dumps(finding.to_json(), ensure_ascii=False)

    def test_own_example(self):
        """The shared example and its redacted copy: nothing leaked, nothing moved."""
        names = ("ai-agent-example.json", "ai-agent-redacted.json")
        original, redacted = (json.loads(shared_data("vcon", name).read_bytes()) for name in names)
        assert leaks(original, redacted) == []


class TestPositions:
    def test_lengths(self):
        """An array that lost or got an element is found, whatever the element."""
        original, _ = full()
        for name in ("parties", "sessions", "dialog", "analysis", "attachments", "events"):
            for changed in (original[name][1:], [*original[name], {}]):
                found = leaks(original, {**original, "redacted_from": {"type": "x"}, name: changed})
                assert ("redaction-index-shift", f"/{name}") in found

    def test_order(self):
        """Two elements that changed places are found, each at its place."""
        original, _ = full()
        redacted = copy.deepcopy(original)
        redacted["events"][1:3] = redacted["events"][2:0:-1]
        found = [pointer for code, pointer in leaks(original, redacted) if code == "redaction-index-shift"]
        assert found == ["/events/1", "/events/2"]

    def test_placeholder(self):
        """{} is what redaction leaves, at any place."""
        original, _ = full()
        redacted = copy.deepcopy(original)
        redacted["events"] = [{} for _ in redacted["events"]]
        assert [code for code, _ in leaks(original, redacted) if code == "redaction-index-shift"] == []


class TestParts:
    @pytest.mark.parametrize(
        ("old", "new", "parts"),
        [
            ("a secret b", "a [x removed] b", ["secret"]),
            ("one two three", "[x] two [y]", ["one", "three"]),
            ("a secret b", None, ["a secret b"]),
            ("a secret b", "", ["a secret b"]),
            ("a secret b", "party-1", ["a secret b"]),
            ("a secret b", "a secret", [" b"]),
            ("a [x] b c", "a [x] b [y]", ["c"]),
            ("a secret b", "c [x] b", ["a secret b"]),
            ("https://u:p@example.com/", "https://example.com/", ["https://u:p@example.com/"]),
        ],
    )
    def test_parts(self, old, new, parts):
        """Where marks stand between kept parts, what stood there is known; otherwise the whole text counts."""
        assert list(removed_parts(old, new)) == parts

    @given(st.lists(st.text("ab []x", min_size=1, max_size=6), min_size=3, max_size=7))
    def test_marks(self, pieces):
        """Any text with marks put into it: what is said to be missing stood in the old one."""
        old = "".join(pieces)
        new = "".join("[m]" if number % 2 else piece for number, piece in enumerate(pieces))
        assert all(part in old for part in removed_parts(old, new))


@given(st.text(max_size=60))
def test_readings_of_any_text(text):
    """Any text has readings, and the first is itself."""
    found = list(readings(text))
    assert found[0] == ("same", text)
    for _, reading in found:
        assert len(reading) <= len(text)


@settings(max_examples=40, deadline=None)
@given(secret=st.text('abcdef 0123456789é"\\', min_size=8, max_size=20).filter(lambda text: text.strip() == text),
       around=st.text(" .,;", max_size=5))  # fmt: skip
def test_taken_out_everywhere(secret, around):
    """What a rule takes out everywhere is proven to be gone, whatever it is; without `everywhere` the proof fails."""
    document = vcon(
        invocation(encoding="json", mediatype="application/json", body={"a": [around + secret + around]})
    )
    document["subject"] = secret
    for everywhere in (True, False):
        rule = {"path": "/subject", "action": "remove", "everywhere": everywhere}
        redaction = redact(read(document), rules=Rules.of({"rule": [rule]}))
        assert bool(compare(read(document), redaction.vcon)) is not everywhere

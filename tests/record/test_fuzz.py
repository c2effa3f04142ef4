"""Any bytes at all: no exception but ours, no hang, memory bounded by the input.

Each target of support.fuzz_targets gets files that are nearly right; `make fuzz` gives it those that coverage finds.
A hang shows as the time limit of the test.
"""

import base64
import gzip
import json
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError
from onrecord.record.checks.checker import check
from onrecord.record.checks.collector import MAX_FINDINGS
from onrecord.record.forms.opening import open_form
from onrecord.record.vcon.paths import MAX_CHARACTERS, pointer_of
from onrecord.record.vcon.reader import MAX_DEPTH, read_json
from support.fuzz_targets import TARGETS
from support.hostile import SEEDS, TEXT_CONTENT, enveloped, mutated, spelled, texts, wrapped
from support.vcons import decision, vcon

EXAMPLES = 25
SESSION = {"start": "2026-11-02T12:00:00Z", "parties": [0]}


@st.composite
def nearly_right(draw):
    """A file of ours after a few changes, in some spelling and form."""
    source = draw(st.randoms(use_true_random=False))
    seed = draw(st.sampled_from(sorted(SEEDS)))
    return wrapped(spelled(mutated(SEEDS[seed](), source, draw(st.integers(0, 6))), source), source)


@st.composite
def nearly_an_envelope(draw):
    """A signed or encrypted file after a few changes of the envelope."""
    source = draw(st.randoms(use_true_random=False))
    seed = json.loads(
        texts()[draw(st.sampled_from(["signed", "signed-gzip", "nested", "encrypted", "sealed"]))]
    )
    return spelled(mutated(seed, source, draw(st.integers(1, 4))), source)


class TestTargets:
    @pytest.mark.parametrize("name", sorted(TARGETS))
    def test_seeds(self, name):
        """Every seed goes through every target as it is."""
        for data in texts().values():
            TARGETS[name](data)

    @pytest.mark.parametrize("name", sorted(TARGETS))
    @settings(max_examples=EXAMPLES)
    @given(data=nearly_right())
    def test_nearly_right(self, name, data):
        """Wrong types, names, places and spellings anywhere in a vCon give findings or our errors."""
        TARGETS[name](data)

    @pytest.mark.parametrize("name", ["check", "decrypt", "forms", "verify"])
    @settings(max_examples=EXAMPLES)
    @given(data=nearly_an_envelope())
    def test_nearly_an_envelope(self, name, data):
        """So does anything wrong with an envelope."""
        TARGETS[name](data)

    @pytest.mark.parametrize("name", sorted(TARGETS))
    @settings(max_examples=EXAMPLES)
    @given(data=st.binary(max_size=200))
    @example(b"")
    @example(b"\xef\xbb\xbf{}")
    @example(b"\x1f\x8b")
    @example(b"\xff\xfe{\x00}\x00")
    def test_any_bytes(self, name, data):
        """So do bytes without any form."""
        TARGETS[name](data)


ODD_NUMBERS = [
    "1e400",
    "-1e400",
    "1e-400",
    "9" * 5_000,
    "-" + "9" * 5_000,
    "0." + "1" * 5_000,
    "1E5",
    "-0",
    "-0.0",
]


class TestBombs:
    @pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
    def test_depth(self, opening):
        """Nesting beyond the limit is refused with its place, however deep it goes."""
        for depth in (MAX_DEPTH + 1, 100_000):
            with pytest.raises(MalformedError) as refused:
                read_json((opening * depth).encode() + b"1")
            assert refused.value.code in ("json-depth", "json-invalid")

    def test_depth_of_a_complete_text(self):
        """At the limit a text is read, one deeper it is refused."""
        assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).value
        with pytest.raises(MalformedError) as refused:
            read_json(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
        assert refused.value.code == "json-depth"

    @pytest.mark.parametrize("number", ODD_NUMBERS)
    def test_numbers(self, number):
        """Numbers of any length and size are read in time, at most with a note."""
        data = b'{"uuid":"x","sessions":[{"duration":%b}]}' % number.encode()
        document = read_json(data)
        assert len(document.notes) <= 1
        assert check(data).findings

    def test_many_long_numbers(self):
        """Converting long numbers takes quadratic time; they are noted instead."""
        data = b"[" + b",".join([b"7" * 100_000] * 20) + b"]"
        assert len(read_json(data).notes) == 20

    def test_many_names(self):
        """An object of 60,000 members is read and checked."""
        members = ",".join(f'"m{number}":{number}' for number in range(60_000))
        result = check(b'{"uuid":"x","parties":[{%b}]}' % members.encode())
        assert len(result.findings) == MAX_FINDINGS
        assert sum(result.left_out.values()) > 40_000

    def test_names_that_collide(self):
        """Equal names spelled differently are still equal, and refused."""
        with pytest.raises(MalformedError) as refused:
            read_json(b'{"parties":[{"a":1,"\\u0061":2}]}')
        assert refused.value.code == "json-duplicate-member"
        assert refused.value.where.pointer == "/parties/0"

    def test_many_shapes(self):
        """Ten thousand objects of ten thousand shapes are checked, each by its own."""
        dialogs = [{"type": "text", f"x{number}": 1, **TEXT_CONTENT} for number in range(10_000)]
        result = check(json.dumps(vcon(dialog=dialogs)).encode())
        assert result.left_out["info"] or result.left_out["error"] or len(result.findings) > 10_000 - 1

    @pytest.mark.parametrize("level", [0, 1, 2])
    def test_gzip_bomb(self, level):
        """Data that grow a thousandfold and more are refused before they are held, at any level of envelopes."""
        bomb = gzip.compress(b'{"uuid":"' + b" " * 30_000_000 + b'"}', mtime=0)
        for _ in range(level):
            bomb = json.dumps(enveloped(bomb)).encode()
        try:
            form = open_form(bomb)
        except MalformedError as refused:
            assert (level, refused.code) == (0, "gzip-limit")
        else:
            assert level > 0
            assert form.payload is None
            assert form.payload_error.code == "gzip-limit"

    def test_gzip_of_gzip(self):
        """Only one layer of gzip is taken off, so layers cannot multiply."""
        twice = gzip.compress(gzip.compress(texts()["tool"], mtime=0), mtime=0)
        with pytest.raises(MalformedError) as refused:
            open_form(twice)
        assert refused.value.code == "json-invalid"


class TestProducts:
    """Files of n parts that a careless check takes n times n, or n times n times n, steps for."""

    N = 20_000

    def test_one_dialog_in_every_session(self):
        """A dialog of many parties in many sessions is not compared party by party with each; the sessions say so."""
        parties = list(range(self.N))
        document = vcon(
            parties=[{}] * self.N,
            sessions=[{"start": "2026-11-02T12:00:00Z", "parties": [0], "dialog": [0]}] * self.N,
            dialog=[{"type": "text", "start": "2026-11-02T12:00:00Z", "parties": parties, **TEXT_CONTENT}],
        )
        result = check(json.dumps(document).encode())
        found = [one for one in result.findings if one.code == "session-party-missing"]
        assert len(found) + result.left_out["info"] >= self.N - 1
        assert found[0].data["parties"][:2] == [1, 2]
        assert any("dialogs_not_compared" in one.data for one in found)

    def test_honest_conference_is_compared(self):
        """A conference of a thousand, each message to all, in two sessions, is compared completely."""
        everyone = list(range(1_000))
        message = {"type": "text", "start": "2026-11-02T12:00:00Z", "parties": everyone, **TEXT_CONTENT}
        session = {"start": "2026-11-02T12:00:00Z", "parties": everyone[:-1], "dialog": list(range(50))}
        document = vcon(
            extensions=None, parties=[{}] * 1_000, sessions=[session] * 2, dialog=[message] * 50, events=None
        )
        result = check(json.dumps(document).encode())
        assert [one.data for one in result.findings if one.code == "session-party-missing"] == [
            {"parties": [999]}
        ] * 2

    def test_one_event_in_every_session(self):
        """An event that names every session, and a party list where one index belongs."""
        everything = list(range(self.N))
        event = {"type": "join", "time": "2026-11-02T12:00:00Z", "party": everything, "sessions": everything}
        document = vcon(event, parties=[{}] * self.N, sessions=[{"start": "2026-11-02T12:00:00Z"}] * self.N)
        assert check(json.dumps(document).encode()).findings

    def test_parents_above(self):
        """A session below many others, whose entries name parents that are nowhere."""
        count = 5_000
        below = [{"sessions": [{"session": 0, "type": "child"}]} for _ in range(count)]
        events = [
            {"type": "reasoning", "time": "2026-11-02T12:00:00Z", "session": 0, "party": 0, "content": "x",
             "entry_id": f"e{number}", "parent_id": f"p{number}"}
            for number in range(count)
        ]  # fmt: skip
        document = vcon(*events, extensions=["ai_agent"], sessions=[{}, *below])
        assert check(json.dumps(document).encode()).findings

    def test_decisions_in_falling_order(self):
        """Decisions about one operation in falling order of attempts."""
        count = 8_000
        events = [decision(attempt=count - number) for number in range(count)]
        assert check(json.dumps(vcon(*events)).encode()).history is not None

    @pytest.mark.parametrize("secret", ["requestState", "password", "taskId"])
    def test_below_a_long_name(self, secret):
        """Below a name of a megabyte the places of 50,000 findings are cut at what holds them."""
        inner = [{secret: "hunter2-hunter2"}] * 50_000
        body = {"mediatype": "application/json", "encoding": "json", "body": {"n" * 1_000_000: inner}}
        event = {"type": "tool-pending", "time": "2026-11-02T12:00:00Z", "sessions": [0], "party": 0,
                 "operation_id": "a", "attempt": 1, **body}  # fmt: skip
        result = check(json.dumps(vcon(event)).encode())
        assert all(len(one.pointer) <= MAX_CHARACTERS for one in result.findings)
        assert secret == "taskId" or any(one.pointer == "/events/0/body" for one in result.findings)

    def test_notes_below_a_long_name(self):
        """So are the places of odd numbers."""
        data = b'{"%b":[%b]}' % (b"n" * 1_000_000, b",".join([b"1e999"] * 50_000))
        document = read_json(data)
        assert document.notes[0] == ("json-number-range", "")
        assert len(document.notes) + document.notes_left_out == 50_000

    def test_pointer_of_a_long_path(self):
        """A pointer that fits is whole; one that does not is that of an ancestor, escapes counted."""
        assert pointer_of(((None, "a~b"), 3), "/x") == "/x/a~0b/3"
        long = "/" * (MAX_CHARACTERS // 2)
        assert pointer_of((((None, "a"), long), 1)) == "/a"
        assert pointer_of((None, "n" * (MAX_CHARACTERS - 1))) == "/" + "n" * (MAX_CHARACTERS - 1)
        assert pointer_of((None, "n" * MAX_CHARACTERS)) == ""


MEASURE = """
import sys
from onrecord.record.checks.checker import check
def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) * 1024
check(b'{"uuid":"x","parties":[{}]}')
data = open(sys.argv[1], "rb").read()
before = peak()
result = check(data)
print(len(result.findings), (peak() - before) / len(data))
"""
BODIES = {
    "text": ('"encoding":"none","mediatype":"text/plain","body":"', "words and more", '"', 100),
    "base64url": ('"encoding":"base64url","mediatype":"audio/x-wav","body":"', "AAAAAAAAAAAAAAAA", '"', 20),
    "numbers": ('"encoding":"json","mediatype":"application/json","body":[', "0,0,0,0,0,0,0,", "0]", 10),
    "objects": (
        '"encoding":"json","mediatype":"application/json","body":[',
        '{"a":"b","c":1},'[:15] + ",",
        "0]",
        10,
    ),
}
"""What stands before, the part that is repeated, what stands after, and megabytes."""

MULTIPLES = {"text": 6, "base64url": 6, "numbers": 20, "objects": 30}
"""Memory allowed, in times of the file: the interpreter's own objects for short values are that much larger."""


class TestMemory:
    @pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
    @pytest.mark.parametrize("kind", sorted(BODIES))
    def test_large_body(self, kind, tmp_path):
        """A body of 100 MB, and one of millions of values, are checked within a fixed multiple of the file's size."""
        before, part, after, megabytes = BODIES[kind]
        body = before + part * (megabytes * 1_000_000 // len(part)) + after
        marked = json.dumps(
            vcon(dialog=["HERE"], sessions=[{**SESSION, "dialog": [0]}], events=None, extensions=None)
        )
        dialog = '{"type":"text","start":"2026-11-02T12:00:00Z","parties":[0],' + body + "}"
        path = tmp_path / "large.vcon"
        path.write_text(marked.replace('"HERE"', dialog))
        done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2_000:]
        findings, multiple = done.stdout.split()
        assert findings == "0"
        assert float(multiple) < MULTIPLES[kind]

    def test_cap_of_findings(self):
        """Of a finding per byte ten thousand are kept and the rest is counted."""
        data = b'{"uuid":"x","parties":[' + b"1," * 40_000 + b"1]}"
        result = check(data)
        assert len(result.findings) == MAX_FINDINGS
        assert result.left_out["error"] > 30_000

    def test_signed_bytes_are_not_multiplied(self):
        """Envelopes within envelopes are read to the limit of nesting and no further."""
        data = texts()["tool"]
        for _ in range(12):
            data = json.dumps(enveloped(data)).encode()
        form = open_form(data)
        assert form.payload is None
        assert len(base64.urlsafe_b64decode(json.loads(data)["payload"] + "==")) < len(data)

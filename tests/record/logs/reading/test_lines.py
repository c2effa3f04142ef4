"""JSON lines from any bytes: what is a record, what is told about the rest, and that nothing costs a neighbour."""

import hashlib
import io
import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.parsing import MAX_DEPTH
from onrecord.record.logs.reading.records import Record, Unreadable
from support.data import shared_data


class Dribble(io.BytesIO):
    """A stream that gives few bytes at a time, so that every place is the border of a block once."""

    def __init__(self, data, size):
        super().__init__(data)
        self._size = size

    def read(self, size=-1):
        return super().read(min(self._size, size) if size >= 0 else self._size)


def read(data, *, by=None, **options):
    findings = FileFindings("log.jsonl")
    stream = io.BytesIO(data) if by is None else Dribble(data, by)
    return list(read_lines(stream, findings, **options)), findings


def values(items):
    return [item.value if isinstance(item, Record) else item.code for item in items]


def codes(findings):
    return {finding.code: findings.total(finding.code) for finding in findings.listed()}


class TestLines:
    def test_places(self):
        """Records count from 1 without blank lines; line, offset and size are those of the file."""
        items, findings = read(b'{"a":1}\n\n  \r\n {"b":2} \r\n{"c":3}')
        assert [(item.number, item.line, item.offset, item.size) for item in items] == [
            (1, 1, 0, 7),
            (2, 4, 14, 7),
            (3, 5, 24, 7),
        ]
        assert codes(findings) == {}

    @pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1f", "\t", "\r"])
    def test_only_a_line_feed_ends_a_line(self, char):
        """R-01, B-7: separators and control characters inside a string are text, byte for byte."""
        items, findings = read(f'{{"a":"x{char}y"}}\n{{"b":1}}\n'.encode())
        assert values(items) == [{"a": f"x{char}y"}, {"b": 1}]
        assert codes(findings) == {}

    def test_byte_order_mark(self):
        """R-02: the mark is no part of the first record, and offsets are still those of the file."""
        items, findings = read(b'\xef\xbb\xbf{"a":1}\r\n{"b":2}\r\n')
        assert [item.offset for item in items] == [3, 12]
        assert codes(findings) == {"bom": 1}

    def test_long_line(self):
        """R-05, B-6: a line of 12 MB is a record like any other, whatever its neighbours."""
        items, findings = read(b'{"a":1}\n{"b":"' + b"x" * 12_000_000 + b'"}\n{"c":1}\n')
        assert [len(json.dumps(item.value)) for item in items] == [8, 12_000_009, 8]
        assert codes(findings) == {}

    def test_guard(self):
        """R-05: a line beyond the guard is hashed and left behind, and the next line is read."""
        long = b'{"long":"' + b"x" * 300 + b'"}'
        items, findings = read(b'{"a":1}\n' + long + b'\n{"b":2}\n' + long, max_line=100)
        assert values(items) == [{"a": 1}, "too-long", {"b": 2}, "too-long"]
        assert items[1].size == len(long)
        assert items[1].sha256 == items[3].sha256 == hashlib.sha256(long).hexdigest()
        assert (items[1].line, items[1].offset, items[3].line) == (2, 8, 4)
        assert items[1].head == long[:256].decode()
        assert items[2].offset == 8 + len(long) + 1
        assert codes(findings) == {"too-long": 2}


class TestNul:
    def test_runs(self):
        """R-03: each run is one finding with its place; records behind it keep the offsets of the file."""
        items, findings = read(b'\0\0{"a":1}\n' + b"\0" * 5 + b'\n{"b":\0\0\0"x"}\n')
        assert values(items) == [{"a": 1}, {"b": "x"}]
        assert [(item.offset, item.line) for item in items] == [(2, 1), (16, 3)]
        found = [(finding.offset, finding.data["bytes"]) for finding in findings.listed()]
        assert found == [(0, 2), (10, 5), (21, 3)]

    def test_run_over_blocks(self):
        """R-03: a run is one run, however the file is read."""
        _, findings = read(b"{}\n" + b"\0" * 50 + b"{}\n\0\0", by=7)
        assert [(finding.offset, finding.data["bytes"]) for finding in findings.listed()] == [
            (3, 50),
            (56, 2),
        ]


class TestBadLines:
    def test_malformed(self):
        """R-07, D-LOG-27: the piece is kept by its place, hash and beginning, and costs no other line."""
        items, findings = read(b'{"a":1}\nnot json at all\n{"b":2,}\n{"c":3}\n')
        assert values(items) == [{"a": 1}, "malformed-line", "malformed-line", {"c": 3}]
        bad = items[1]
        assert (bad.number, bad.line, bad.offset, bad.size) == (2, 2, 8, 15)
        assert bad.sha256 == hashlib.sha256(b"not json at all").hexdigest()
        assert bad.head == "not json at all"
        assert codes(findings) == {"malformed-line": 2}
        assert all("json" not in finding.message for finding in findings.listed())

    @pytest.mark.parametrize(
        "tail",
        [
            '{"a":',
            '{"a":"x',
            '{"a":"x\\',
            '{"a":"\\u12',
            '{"a":1',
            '{"a":1.',
            '{"a":1e',
            '{"a":-',
            '{"a":tru',
            '{"a',
            "{",
            '{"a":1,',
            '{"a":1, ',
            '[{"a":1}',
            '{"a":"é'.encode()[:-1],
        ],
    )
    def test_truncated_tail(self, tail):
        """R-07, B-8: a last line that ends inside a value is a live file or a crash; all before it is there."""
        tail = tail if isinstance(tail, bytes) else tail.encode()
        items, findings = read(b'{"a":1}\n' + tail)
        assert values(items) == [{"a": 1}, "truncated-tail"]
        assert codes(findings) == {"truncated-tail": 1}
        assert values(read(tail + b"\n")[0]) == ["malformed-line"]

    @pytest.mark.parametrize("tail", ["nonsense", '{"a" 1}', "{'a':1", '{"a":1}}', '{"a":"\\x"}'])
    def test_malformed_tail(self, tail):
        """R-07: a last line that no further byte could mend is malformed like any other."""
        items, _ = read(tail.encode())
        assert values(items)[-1] == "malformed-line"

    def test_complete_tail(self):
        """R-07: a complete last line without line feed is normal."""
        items, findings = read(b'{"a":1}\n{"b":2}')
        assert values(items) == [{"a": 1}, {"b": 2}]
        assert codes(findings) == {}

    def test_head_is_short_text(self):
        """D-LOG-27: the beginning has at most 256 characters, with U+FFFD for what is none."""
        (bad,), _ = read("ä\n".encode().replace(b"\n", b"\xff" * 300 + b"\n"))
        assert bad.head == "ä" + "\ufffd" * 255

    @pytest.mark.parametrize(
        ("text", "is_deep"),
        [
            (f'{{"a":{"[" * (n - 1)}{"]" * (n - 1)}}}', n > MAX_DEPTH)
            for n in (99, 100, 101, 500, 3000, 100_000)
        ],
    )
    def test_depth(self, text, is_deep):
        """R-08: 100 levels are read, more are reported, whatever a parser would do with them."""
        items, findings = read(text.encode() + b'\n{"b":2}\n')
        assert ["too-deep" if isinstance(item, Unreadable) else "read" for item in items] == [
            "too-deep" if is_deep else "read",
            "read",
        ]
        assert codes(findings) == ({"too-deep": 1} if is_deep else {})

    @pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"a":['])
    def test_open_depth(self, opening):
        """R-08: containers without end are no deeper trouble than others."""
        items, _ = read(opening * 100_000 + b'\n{"b":2}\n')
        assert values(items) == ["too-deep", {"b": 2}]


class TestSeveralValues:
    def test_values_on_a_line(self):
        """R-06: each value is a record; the line is reported once."""
        items, findings = read(b'{"a":1}{"b":"}{"} {"c":3}\n')
        assert values(items) == [{"a": 1}, {"b": "}{"}, {"c": 3}]
        assert [item.offset for item in items] == [0, 7, 18]
        assert codes(findings) == {"multiple-values-on-line": 1}

    def test_rubbish_behind_a_value(self):
        """R-06: a value and rubbish are one record and one unreadable rest."""
        items, findings = read(b'{"a":1} and more {"b":2}\n{"c":3}\n')
        assert values(items) == [{"a": 1}, "malformed-line", {"c": 3}]
        assert items[1].size == len(b"and more {" + b'"b":2}')
        assert codes(findings) == {"malformed-line": 1}

    def test_deep_value_between(self):
        """R-08: a value that is too deep costs neither the one before nor the one behind it on the line."""
        deep = b"[" * 3000 + b"]" * 3000
        items, _ = read(b'{"a":1}' + deep + b'{"b":2}\n')
        assert values(items) == [{"a": 1}, "too-deep", {"b": 2}]
        assert items[1].size == len(deep)

    def test_tail_behind_a_value(self):
        """R-07: the last line may end in its second value."""
        items, _ = read(b'{"a":1}{"b":')
        assert values(items) == [{"a": 1}, "truncated-tail"]

    def test_no_object(self):
        """R-10: values that are no objects are reported as such, or given where anything is expected."""
        data = b'[1]\nnull\n"x"\n12\ntrue\n{"a":1}\n'
        items, findings = read(data)
        assert values(items) == ["not-an-object"] * 5 + [{"a": 1}]
        assert codes(findings) == {"not-an-object": 5}
        assert values(read(data, objects=False)[0]) == [[1], None, "x", 12, True, {"a": 1}]

    def test_prose(self):
        """R-06: a line that begins with a number, a word or a string is one piece."""
        items, _ = read(b'12 monkeys\n"name": "x",\ntrue story\n2026-07-01 log\n')
        assert values(items) == ["malformed-line"] * 4


class TestCleaning:
    def test_numbers(self):
        """R-09, D-LOG-24: numbers that doubles do not keep become text or null, and their places are listed."""
        text = '{"a":9007199254740991,"b":9007199254740992,"c/d":[-12345678901234567890,NaN],"e":1e999,"~":-Infinity}'
        (record,), findings = read(text.encode() + b"\n")
        assert record.value == {
            "a": 9007199254740991,
            "b": "9007199254740992",
            "c/d": ["-12345678901234567890", None],
            "e": None,
            "~": None,
        }
        assert record.numbers == ["/b", "/c~1d/0", "/c~1d/1", "/e", "/~0"]
        assert codes(findings) == {"unsafe-integer": 2, "not-finite": 3}

    def test_pointers_are_bounded(self):
        """D-LOG-24: a record of bad numbers alone lists a thousand places."""
        (record,), _ = read(b'{"a":[' + b",".join([b"1e999"] * 3000) + b"]}\n")
        assert len(record.numbers) == 1000
        assert record.value == {"a": [None] * 3000}

    def test_long_digits(self):
        """R-09: a million digits are text, not an hour of arithmetic."""
        (record,), _ = read(b'{"a":' + b"7" * 1_000_000 + b"}\n")
        assert record.value == {"a": "7" * 1_000_000}

    def test_duplicates(self):
        """R-09: the last member of a name wins and the record says so."""
        (record,), findings = read(b'{"a":1,"b":{"c":1,"c":2},"a":3}\n')
        assert record.value == {"a": 3, "b": {"c": 2}}
        assert codes(findings) == {"duplicate-member": 2}

    @pytest.mark.parametrize("escape", ["\\ud800", "\\udc00", "\\uDBFF x", "\\udc00\\ud800"])
    def test_surrogates(self, escape):
        """R-09, D-LOG-25: lone surrogates do not reach the output, in values or names."""
        (record,), findings = read(f'{{"a":"{escape}","{escape}":1}}\n'.encode())
        json.dumps(record.value, ensure_ascii=False).encode()
        assert "\ufffd" in record.value["a"]
        assert codes(findings) == {"lone-surrogate": 2}

    def test_surrogate_pairs(self):
        """R-09: a pair is a character."""
        (record,), findings = read(b'{"a":"\\ud83d\\ude00"}\n')
        assert record.value == {"a": "😀"}
        assert codes(findings) == {}

    def test_broken_utf8(self):
        """R-04, D-LOG-25: one U+FFFD for each broken sequence, and the neighbours keep their text."""
        items, findings = read(b'{"a":"\xc3\xa4\xff\xe2\x82 x"}\n{"b":"\xc3\xa4"}\n')
        assert values(items) == [{"a": "ä\ufffd\ufffd x"}, {"b": "ä"}]
        assert codes(findings) == {"invalid-utf8": 1}
        assert next(iter(findings.listed())).record == 1


LINES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b'{"a":1}',
            b'{"a":1}{"b":2}',
            b'{"a":"\xff"}',
            b'{"a":NaN}',
            b'{"a":"\\',
            b'"',
            b"[[[",
            b"\0\0",
            b"\xef\xbb\xbf",
            b'{"a":1,"a":2} x',
            b"\r",
            b'"\\ud800"',
            b"1e5 {",
        ]
    ),
)


class TestAnyBytes:
    @settings(max_examples=50)
    @given(st.lists(LINES, max_size=6), st.integers(1, 9))
    def test_whole(self, lines, by):
        """Any bytes give numbered items of clean values in order, and the same ones however they are read."""
        data = b"\n".join(lines)
        items, findings = read(data)
        assert [item.number for item in items] == list(range(1, len(items) + 1))
        assert [item.offset for item in items] == sorted({item.offset for item in items})
        for item in items:
            if isinstance(item, Record):
                assert isinstance(item.value, dict)
                json.dumps(item.value, ensure_ascii=False, allow_nan=False).encode()
        again, told = read(data, by=by)
        assert values(again) == values(items)
        assert [(item.line, item.offset, item.size) for item in again] == [
            (item.line, item.offset, item.size) for item in items
        ]
        assert codes(told) == codes(findings)

    @settings(max_examples=50)
    @given(st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"")))
    def test_neighbours(self, bad):
        """R-04: whatever stands on a line, the lines around it are read."""
        items, _ = read(b'{"first":1}\n' + bad + b'\n{"last":1}\n')
        assert values(items)[0] == {"first": 1}
        assert values(items)[-1] == {"last": 1}


class TestEdgeCases:
    @pytest.mark.parametrize(
        ("name", "found", "records", "unreadable"),
        [
            ("claude-bom-crlf", {"bom": 1}, 4, 0),
            ("claude-deep-nesting", {"too-deep": 1}, 5, 1),
            ("claude-invalid-utf8", {"invalid-utf8": 1}, 4, 0),
            ("claude-malformed-middle", {"malformed-line": 2}, 6, 2),
            ("claude-null-and-odd-content", {"not-an-object": 5}, 14, 5),
            ("claude-truncated-tail", {"truncated-tail": 1}, 4, 1),
            ("claude-two-objects-one-line", {"multiple-values-on-line": 1}, 4, 0),
            ("claude-u2028-nel-ff-vt-in-string", {}, 2, 0),
        ],
    )
    def test_counts(self, name, found, records, unreadable):
        """The broken files of the acceptance list have the records and findings that they must have."""
        items, findings = read(shared_data("traces", "edge-cases", f"{name}.jsonl").read_bytes())
        assert codes(findings) == found
        assert len(items) == records
        assert sum(isinstance(item, Unreadable) for item in items) == unreadable


def test_memory_of_many_nul_runs_is_bounded():
    """R-03, R-20: NUL bytes between other bytes of one line cost no memory each, and later places are still exact."""
    data = b"\n\0" * 200_000 + b'{"a":1}\n'
    tracemalloc.start()
    try:
        items, _ = read(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [(item.offset, item.line) for item in items] == [(len(data) - 8, 200_001)]
    assert peak < 12_000_000

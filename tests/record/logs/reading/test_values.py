"""Values that are no lines: glued, spread over lines, cut, or embedded in strings."""

import hashlib
import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.record.logs.reading.test_lines import Dribble, codes, values

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.records import NotJson, Record
from onrecord.record.logs.reading.values import arguments_of, clean, read_values
from support.data import shared_data


def read(data, *, by=None, **options):
    findings = FileFindings("log.json")
    stream = io.BytesIO(data) if by is None else Dribble(data, by)
    return list(read_values(stream, findings, **options)), findings


class TestReadValues:
    def test_glued_and_spread(self):
        """R-06, 4.5 (3): values follow each other with line breaks inside and none between."""
        data = b'\n{\n  "a": "}{",\n  "b": [\n    1\n  ]\n}{"c":"\\"}"}\r\n\r\n{"d":{}}'
        items, findings = read(data)
        assert values(items) == [{"a": "}{", "b": [1]}, {"c": '"}'}, {"d": {}}]
        assert [(item.line, item.offset) for item in items] == [(2, 1), (7, 36), (9, 51)]
        assert [data[item.offset : item.offset + item.size][-1:] for item in items] == [b"}"] * 3
        assert codes(findings) == {}

    @pytest.mark.parametrize("tail", [b"{", b'{\n  "a": {\n', b'{"a":"\\', b'{"a":[1,\n2\n', b'{"a":"{}"'])
    def test_cut(self, tail):
        """R-07: a text that ends inside a value keeps the values before."""
        items, findings = read(b'{"a":1}' + tail)
        assert values(items) == [{"a": 1}, "truncated-tail"]
        assert codes(findings) == {"truncated-tail": 1}

    def test_rubbish_between(self):
        """R-07: what is no value is one piece up to the next container, and costs no value."""
        items, _ = read(b'{"a":1} some words\n and more {"b":2}{c:3}{"d":4}')
        assert values(items) == [{"a": 1}, "malformed-line", {"b": 2}, "malformed-line", {"d": 4}]
        assert items[1].size == len(b"some words\n and more")

    def test_no_objects(self):
        """R-10: lists are read where lists are expected."""
        assert values(read(b'[{"a":1}]')[0]) == ["not-an-object"]
        assert values(read(b'[{"a":1}]', objects=False)[0]) == [[{"a": 1}]]

    @pytest.mark.parametrize("levels", [101, 3000, 100_000])
    def test_depth(self, levels):
        """R-08: a value that is too deep ends where its brackets do."""
        items, findings = read(b'{"a":' * levels + b"1" + b"}" * levels + b'{"b":2}')
        assert values(items) == ["too-deep", {"b": 2}]
        assert codes(findings) == {"too-deep": 1}

    def test_guard(self):
        """R-05: a value beyond the guard is hashed and left behind, and the next one is read."""
        long = b'{"long":"' + b"}" * 3_000_000 + b'"}'
        items, _ = read(b'{"a":1}' + long + b'{"b":2}', max_value=100_000)
        assert values(items) == [{"a": 1}, "too-long", {"b": 2}]
        assert (items[1].size, items[1].sha256) == (len(long), hashlib.sha256(long).hexdigest())
        assert items[2].offset == 7 + len(long)

    def test_cleaned(self):
        """R-09: pretty-printed values are cleaned like lines, NUL bytes and byte order marks included."""
        items, findings = read(b'\xef\xbb\xbf{\n  "a": NaN,\0\n  "b": "\xff"\n}')
        assert values(items) == [{"a": None, "b": "\ufffd"}]
        assert items[0].numbers == ["/a"]
        assert codes(findings) == {"bom": 1, "nul-bytes": 1, "not-finite": 1, "invalid-utf8": 1}

    @settings(max_examples=50)
    @given(
        st.lists(
            st.one_of(
                st.binary(max_size=12),
                st.sampled_from(
                    [b'{"a":1}', b'{"a":"\\\\', b'"', b"\\", b"\n", b"[", b"]}", b"\0", b'{"a":"\xff"}']
                ),
            ),
            max_size=8,
        ),
        st.integers(1, 5),
    )
    def test_any_bytes(self, parts, by):
        """Any bytes give numbered items in order, the same ones wherever blocks end."""
        data = b"".join(parts)
        items, findings = read(data)
        assert [item.number for item in items] == list(range(1, len(items) + 1))
        again, told = read(data, by=by)
        assert values(again) == values(items)
        assert [(item.line, item.offset, item.size) for item in again] == [
            (item.line, item.offset, item.size) for item in items
        ]
        assert codes(told) == codes(findings)

    @settings(max_examples=20)
    @given(
        st.lists(
            st.dictionaries(
                st.text(max_size=4), st.recursive(st.text(max_size=6), st.lists, max_leaves=5), max_size=3
            ),
            max_size=5,
        ),
        st.sampled_from([None, 1, 4]),
        st.integers(1, 9),
    )
    def test_round_trip(self, objects, indent, by):
        """What a program wrote is read again, glued and indented as it likes."""
        data = "".join(json.dumps(item, indent=indent) for item in objects).encode()
        assert values(read(data, by=by)[0]) == objects

    def test_layout_3_of_opencode(self):
        """The sample of glued objects has its five records, the last one cut."""
        path = shared_data("traces", "edge-cases", "opencode-concat-pretty-share-secret-truncated.json")
        items, findings = read(path.read_bytes())
        assert [isinstance(item, Record) for item in items] == [True] * 4 + [False]
        assert codes(findings) == {"truncated-tail": 1}


class TestClean:
    def test_mended(self):
        """D-LOG-24, D-LOG-25: a column's text is cleaned like a line and reported for its record."""
        findings = FileFindings("store.db")
        value, numbers = clean(b'\xef\xbb\xbf{"a":1e999,"a":2e999,"b":"\\ud800"}\0', findings, record=7)
        assert (value, numbers) == ({"a": None, "b": "\ufffd"}, ["/a"])
        assert codes(findings) == {"not-finite": 1, "duplicate-member": 1, "lone-surrogate": 1}
        assert {finding.record for finding in findings.listed()} == {7}

    @pytest.mark.parametrize(
        ("data", "code"), [(b"", "malformed-line"), (b"{} x", "malformed-line"), (b"[" * 5000, "too-deep")]
    )
    def test_no_json(self, data, code):
        """What is no JSON says so by a code."""
        with pytest.raises(NotJson) as caught:
            clean(data, FileFindings("store.db"), record=1)
        assert caught.value.code == code


class TestArguments:
    @pytest.mark.parametrize(
        ("raw", "value", "kept"),
        [
            ('{"a":1}', {"a": 1}, False),
            (' { "a" : 1 } ', {"a": 1}, False),
            ("[1]", [1], False),
            ("", "", True),
            ('{"a":', '{"a":', True),
            ('{"a":1,"a":2}', {"a": 2}, True),
            ('{"a":9007199254740993}', {"a": "9007199254740993"}, True),
            ('{"a":"\\ud800"}', {"a": "\ufffd"}, True),
            ("[" * 5000, "[" * 5000, True),
            ({"a": 1}, {"a": 1}, False),
            (None, None, False),
            (12, 12, False),
        ],
    )
    def test_raw_text(self, raw, value, kept):
        """D-LOG-18: the parsed value, and the raw text where parsing loses something or fails."""
        assert arguments_of(raw) == (value, raw if kept else None)

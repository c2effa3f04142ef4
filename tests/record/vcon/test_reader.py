"""The strict reader: what is fatal, what is odd but readable, and that the fast way gives what the exact one gives."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError
from onrecord.record.vcon import reader
from onrecord.record.vcon.reader import MAX_DEPTH, read_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=20,
)


def refusal(data, **options):
    with pytest.raises(MalformedError) as caught:
        read_json(data, **options)
    return caught.value.code, caught.value.where.pointer


class TestFatal:
    @pytest.mark.parametrize(
        ("data", "code", "pointer"),
        [
            (b"", "json-invalid", ""),
            (b"{", "json-invalid", ""),
            (b"{} {}", "json-invalid", ""),
            (b"\xef\xbb\xbf{}", "json-invalid", ""),
            (b'{"a":"\xff"}', "json-invalid", ""),
            ('{"a":1}'.encode("utf-16"), "json-invalid", ""),
            (b'{"a":NaN}', "json-invalid", ""),
            (b"[Infinity]", "json-invalid", ""),
            (b"[-Infinity]", "json-invalid", ""),
            (b'{"a":1,"a":1}', "json-duplicate-member", ""),
            (b'{"a":1,"\\u0061":2}', "json-duplicate-member", ""),
            (b'{"a":[{"b":{"c":1,"c":2}}]}', "json-duplicate-member", "/a/0/b"),
            (b'{ "a b" : 1 , "a b" : 1 }', "json-duplicate-member", ""),
            (b'{"x/y":{"~":1,"~":1}}', "json-duplicate-member", "/x~1y"),
        ],
    )
    def test_refused(self, data, code, pointer):
        """Each of these is refused with its code, at its place."""
        assert refusal(data) == (code, pointer)

    def test_depth_on_both_sides(self):
        """128 levels are read, 129 are refused, and the pointer names the value that is too deep."""
        assert read_json(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).value
        assert refusal(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)) == ("json-depth", "/0" * MAX_DEPTH)
        deep = b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1)
        assert refusal(deep) == ("json-depth", "/a" * MAX_DEPTH)

    def test_depth_bomb(self):
        """A hundred thousand levels are a refusal, not a crash of the interpreter."""
        assert refusal(b"[" * 100_000)[0] == "json-depth"
        assert refusal(b'[{"a":' * 100_000)[0] == "json-depth"

    def test_white_space_in_the_depth_proof(self):
        """Pretty-printed and compact texts have the same depth limit."""
        data = json.dumps(json.loads(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH), indent=1).encode()
        assert read_json(data).value

    def test_size_on_both_sides(self):
        """The limit is exact, and the caller's."""
        assert read_json(b"[1]", max_bytes=3).value == [1]
        assert refusal(b"[10]", max_bytes=3) == ("size-limit", "")

    def test_message_holds_no_content(self):
        """A refusal names the place, never the text that stood there."""
        with pytest.raises(MalformedError) as caught:
            read_json(b'{"secret-marker":1,"secret-marker":2}')
        assert "secret-marker" not in str(caught.value)


class TestNotes:
    @pytest.mark.parametrize(
        ("data", "notes"),
        [
            (b'{"a":"\\ud800"}', [("json-lone-surrogate", "/a")]),
            (b'{"a":["x","\\udc00y"]}', [("json-lone-surrogate", "/a/1")]),
            (b'{"a":"\\ud83d\\ude00"}', []),
            (b'{"a":9007199254740991}', []),
            (b'{"a":9007199254740992}', [("json-number-range", "/a")]),
            (b'{"a":-9007199254740992}', [("json-number-range", "/a")]),
            (b'{"a":123456789012345678901234567890}', [("json-number-range", "/a")]),
            (b"[1e400]", [("json-number-range", "/0")]),
            (b"[1e-400]", [("json-number-range", "/0")]),
            (b"[0.1000000000000000055511151231257827]", [("json-number-range", "/0")]),
            (b"[0.1,1.50,1e2,-0.0,1E+2]", []),
            (b"9" * 5_000, [("json-number-range", "")]),
        ],
    )
    def test_noted(self, data, notes):
        """Odd but readable: the value is read, and the oddity is noted at its place."""
        assert list(read_json(data).notes) == notes

    def test_huge_number_is_no_quadratic_work(self):
        """A number of a million digits is noted without converting it."""
        assert math.isinf(read_json(b"[" + b"1" * 1_000_000 + b"]").value[0])

    def test_notes_are_capped_and_counted(self):
        """A file of odd numbers keeps a bounded number of notes and counts the rest."""
        document = read_json(b"[" + b",".join([b"1e999"] * (reader.MAX_NOTES + 5)) + b"]")
        assert len(document.notes) == reader.MAX_NOTES
        assert document.notes_left_out == 5


class TestFastWay:
    @given(VALUES, st.sampled_from([None, 1, 2]), st.booleans())
    def test_same_as_exact(self, value, indent, ascii_only):
        """Whatever way is taken, the value is the one that the exact way reads."""
        data = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
        try:
            document = read_json(data)
        except MalformedError as error:
            with pytest.raises(MalformedError) as caught:
                reader._read_exactly(data, MAX_DEPTH)
            assert caught.value.code == error.code
        else:
            exact = reader._read_exactly(data, MAX_DEPTH)
            assert repr(document.value) == repr(exact.value)
            assert document.notes == exact.notes

    @given(VALUES, st.text(max_size=4), VALUES, VALUES)
    @example([], " a", 1, 1)
    def test_doubled_names_are_always_found(self, around, name, one, other):
        """No spelling and no neighbour hides that a name occurs twice."""
        member = json.dumps(name)
        data = f"[{json.dumps(around)},{{{member}:{json.dumps(one)},{member}:{json.dumps(other)}}}]"
        assert refusal(data.encode("utf-8", "surrogatepass"))[0] in ("json-duplicate-member", "json-invalid")

    @given(st.binary(max_size=200))
    def test_no_foreign_exception(self, data):
        """Arbitrary bytes are read or refused with one of our errors."""
        try:
            read_json(data)
        except MalformedError as error:
            assert error.code in ("json-invalid", "json-duplicate-member", "json-depth")

"""Paths of rules: both spellings, what is refused, and what they lead to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import UsageError
from onrecord.record.redaction.paths import ANY, DEEP, MAX_STEPS, parse_path
from onrecord.record.redaction.places import root, select

TREE = {"dialog": [{"body": {"a": [1, {"a": 2}]}, "type": "text"}, {"type": "text"}], "subject": "s"}
LEADS_TO = [
    ("/subject", ["s"]),
    ("/dialog/*/type", ["text", "text"]),
    ("/dialog/1", [{"type": "text"}]),
    ("/dialog/**/a", [[1, {"a": 2}], 2]),
    ("$..a", [[1, {"a": 2}], 2]),
    ("/dialog/0/body/a/1/a", [2]),
    ("/dialog/01/type", ["text"]),
    ("/dialog/7/type", []),
    ("/subject/0", []),
    ("/nothing/*", []),
]


class TestParsing:
    @pytest.mark.parametrize(
        ("pointer", "jsonpath"),
        [
            ("/dialog/*/body", "$.dialog[*].body"),
            ("/dialog/0", "$.dialog[0]"),
            ("/events/*/input/file path", "$.events.*['input'][\"file path\"]"),
            ("/**/body", "$..body"),
            ("/**/*", "$..*"),
            ("/a-b", "$.a-b"),
        ],
    )
    def test_both_spellings(self, pointer, jsonpath):
        """A pointer with wildcards and JSONPath say the same."""
        assert parse_path(pointer) == parse_path(jsonpath)

    def test_escapes(self):
        """~1 and ~0 are a slash and a tilde in a name, as in RFC 6901."""
        assert parse_path("/a~1b/~0/*/**") == ("a/b", "~", ANY, DEEP)

    @pytest.mark.parametrize(
        "text",
        [
            "dialog/0",
            "",
            "/",
            "/a//b",
            "$.a[?(@.b)]",
            "$.a[0:2]",
            "$.a[1,2]",
            "$.",
            "$a",
            "$..",
            "$.a['b",
            "/" + "/".join("a" * (MAX_STEPS + 1)),
            "/" + "a" * 1001,
        ],
    )
    def test_refused(self, text):
        """What is no path is refused by its code, so that no rule silently looks at nothing."""
        with pytest.raises(UsageError) as refused:
            parse_path(text)
        assert refused.value.code == "redaction-path-invalid"
        assert refused.value.hint

    @given(st.text(max_size=40) | st.text("$./*[]'\"0a", max_size=20))
    def test_any_text(self, text):
        """Any text is a path or refused."""
        try:
            parse_path(text)
        except UsageError as error:
            assert error.code == "redaction-path-invalid"


class TestSelecting:
    @pytest.mark.parametrize(("path", "values"), LEADS_TO)
    def test_places(self, path, values):
        """A path leads to the places it names, in document order, each once."""
        assert [place.value for place in select(root(TREE), parse_path(path))] == values

    def test_each_once(self):
        """Two wildcards for any depth do not find a place twice."""
        places = select(root(TREE), parse_path("/**/**"))
        assert len({place.identity for place in places}) == len(places) == 12

    def test_pointers_end_where_the_tables_end(self):
        """No name out of free content gets into a pointer."""
        pointers = {place.pointer for place in select(root(TREE), parse_path("/**/a"))}
        assert pointers == {"/dialog/0/body"}

"""JSON with comments is edited member by member."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.wrap.json_text import JsonText
from onrecord.base.errors import MalformedError, OnrecordError

EDIT = {"command": "/o", "args": ["connect", "s"], "cwd": None, "env": None}

EDITED = {
    "one line": (
        '{"s": {"command": "a", "args": ["b"], "env": {"A": "b"}}}',
        '{"s": {"command": "/o", "args": ["connect", "s"]}}',
    ),
    "env first": (
        '{"s": {"env": {"A": "b"}, "command": "a", "args": []}}',
        '{"s": {"command": "/o", "args": ["connect", "s"]}}',
    ),
    "no args": (
        '{"s": {"command": "a", "x": 1}}',
        '{"s": {"command": "/o", "args": ["connect", "s"], "x": 1}}',
    ),
    "no args, in lines": (
        '{"s": {\n\t"command": "a"\n}}',
        '{"s": {\n\t"command": "/o",\n\t"args": ["connect", "s"]\n}}',
    ),
    "lines end as in Windows": (
        '{"s": {\r\n  "command": "a",\r\n  "env": {}\r\n}}\r\n',
        '{"s": {\r\n  "command": "/o",\r\n  "args": ["connect", "s"]\r\n}}\r\n',
    ),
    "trailing commas": (
        '{"s": {"command": "a", "args": [1,], "env": {"A": "b",},},}',
        '{"s": {"command": "/o", "args": ["connect", "s"],},}',
    ),
    "comments": (
        (
            '// 1 {"\n{/*2,*/"s": {"command": "a" /*3*/, // 4\n"args": ["x" /*,*/], // 5\n'
            '"env": {}, // 6\n"x": 7} /*8*/}//9'
        ),
        '// 1 {"\n{/*2,*/"s": {"command": "/o" /*3*/, // 4\n"args": ["connect", "s"], // 5\n// 6\n"x": 7} /*8*/}//9',
    ),
    "comment before the comma of the last": (
        '{"s": {"command": "a", "env": {} /* , */ , }}',
        '{"s": {"command": "/o", "args": ["connect", "s"], /* , */  }}',
    ),
    "what looks like a comment or a brace in a string": (
        '{"s": {"command": "a//b/*{", "env": {"A": "\\"}//"}, "z": "//\\\\"}}',
        '{"s": {"command": "/o", "args": ["connect", "s"], "z": "//\\\\"}}',
    ),
    "cwd and env on one line": (
        '{"s": {\n  "command": "a",\n  "cwd": "/x", "env": {}\n}}',
        '{"s": {\n  "command": "/o",\n  "args": ["connect", "s"]\n}}',
    ),
    "escaped names": (
        '{"s": {"comm\\u0061nd": "a"}}',
        '{"s": {"comm\\u0061nd": "/o", "args": ["connect", "s"]}}',
    ),
}


@pytest.mark.parametrize("case", EDITED)
def test_bytes(case):
    """Only the four members change; every other byte stays, comments too."""
    before, after = EDITED[case]
    got = JsonText.read(before).edited(("s",), EDIT).text
    if case == "cwd and env on one line":
        got = got.replace("\n  \n", "\n")
    assert got == after


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        "{} {}",
        '{"a": }',
        '{"a": "b}',
        "{/*}",
        "{/*/}",
        '{"a": 1,, "b": 2}',
        '{"a": NaN}',
        '{"a": ' * 100_000,
        '{"a": ' + "[" * 100_000,
        "/*" * 200_000,
        '{"a": ' + "9" * 5000 + "}",
    ],
)
def test_refused(text):
    """What is no JSON object is refused with a code, and in time that does not grow with the square."""
    with pytest.raises(MalformedError) as e:
        JsonText.read(text)
    assert e.value.code == "client-file-malformed"


@pytest.mark.parametrize(
    "text",
    [
        '{"s": {"command": "a", "command": "b"}}',
        '{"s": {"command": "a"}, "s": {"command": "b"}}',
        '{"s": {"env": {}, "command": "a", "e\\u006ev": {"A": "b"}}}',
    ],
)
def test_duplicate_names(text):
    """Which of two members a client takes is not known, so neither is edited."""
    with pytest.raises(MalformedError) as e:
        JsonText.read(text).edited(("s",), EDIT)
    assert e.value.code == "client-file-malformed"


def test_depth():
    """Whatever the depth, a text is edited or refused: what can be read may be too deep a moment later."""
    edited = set()
    for depth in (100, *range(900, 1001), 5000):
        with contextlib.suppress(MalformedError):
            text = JsonText.read(f'{{"x": {"[" * depth}{"]" * depth}, "a": {{"b": 1}}}}')
            assert text.edited(("a",), {"b": 2}).data["a"] == {"b": 2}
            edited.add(depth)
    assert 100 in edited
    assert 5000 not in edited


def test_duplicates_elsewhere():
    """A file may have duplicates where nothing is edited."""
    text = '{"x": {"a": 1, "a": 2}, "s": {"command": "a"}}'
    assert JsonText.read(text).edited(("s",), EDIT).data["s"]["command"] == "/o"


SPACE = st.sampled_from(["", " ", "\n", "\t", "\r\n  ", "/* , { */", "// }\n", " /**/ "])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "é", '"', "//"]), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.lists(
    st.sampled_from(["command", "args", "cwd", "env", "type", "disabled", "é//"]), unique=True, max_size=7
)


@st.composite
def objects(draw):
    """An object of a few members in any layout: text, and whether it has command."""
    names = draw(NAMES)
    if "command" not in names:
        names.insert(draw(st.integers(0, len(names))), "command")
    parts = []
    for name in names:
        value = "a" if name == "command" else draw(VALUES)
        value = json.dumps(value, ensure_ascii=draw(st.booleans()))
        parts.append(f"{draw(SPACE)}{json.dumps(name)}{draw(SPACE)}:{draw(SPACE)}{value}{draw(SPACE)}")
    tail = draw(st.sampled_from(["", f",{draw(SPACE)}"]))
    return "{" + ",".join(parts) + tail + "}"


class TestProperties:
    @given(objects(), SPACE, SPACE)
    def test_any_layout(self, text, before, after):
        """In any layout the edit gives the wanted value, and nothing outside of the object is touched."""
        head, tail = f'{before}{{{before}"x":"//",{after}"s":{before}', f'{after},"y":[1,]{before}}}{after}'
        whole = JsonText.read(head + text + tail)
        edited = whole.edited(("s",), EDIT)
        assert edited.text.startswith(head)
        assert edited.text.endswith(tail)
        kept = {name: value for name, value in whole.data["s"].items() if name not in EDIT}
        assert edited.data["s"] == kept | {"command": "/o", "args": ["connect", "s"]}
        back = edited.edited(("s",), {name: whole.data["s"].get(name) for name in EDIT})
        assert {k: v for k, v in back.data["s"].items() if v is not None} == {
            k: v for k, v in whole.data["s"].items() if v is not None
        }

    @given(st.text(alphabet='{}[],:"\\/*\n ab1', max_size=60))
    def test_any_text(self, text):
        """Whatever stands in a file, nothing but our own error comes out."""
        try:
            JsonText.read('{"s": ' + text + "}").edited(("s",), EDIT)
        except OnrecordError as error:
            assert error.code == "client-file-malformed"

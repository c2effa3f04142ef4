"""What the beginning of a large value tells."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.reading.beginnings import first_elements, member_names
from onrecord.record.logs.reading.extents import NOT_YET, Extent


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('{"a":1,"b":{"c":2},"d":[', {"a", "b", "d"}),
        (' {\n "a" : "x,\\"y" , "b\\u0041":tru', {"a", "bA"}),
        ('{"a":1}', {"a"}),
        ('{"a', set()),
        ("{}", set()),
        ("[1]", set()),
        ("", set()),
        ('{"a" 1, "b":2}', set()),
        ('{"a":"' + '\\"' * 1000, {"a"}),
    ],
)
def test_member_names(text, names):
    """Names of the outermost object as far as it goes, and none of what is no object."""
    assert member_names(text.encode()) == names


def test_bounded_names():
    """A hostile object has at most a thousand names, and long ones are left out."""
    assert len(member_names(json.dumps({str(n): 1 for n in range(5000)}).encode())) == 1000
    assert member_names(json.dumps({"n" * 300: 1, "b": 2}).encode()) == {"b"}


@settings(max_examples=50)
@given(
    st.lists(
        st.recursive(
            st.none() | st.text(max_size=5), lambda below: st.lists(below, max_size=3), max_leaves=5
        ),
        max_size=4,
    ),
    st.data(),
)
def test_first_elements(elements, data):
    """The whole elements of a cut array are those that it had."""
    text = json.dumps(elements).encode()
    cut = data.draw(st.integers(0, len(text)))
    found = first_elements(text[:cut])
    assert found == elements[: len(found)]
    assert first_elements(text) == elements


@settings(max_examples=50)
@given(st.binary(max_size=60))
def test_any_bytes(data):
    """Any bytes have names and elements, or none."""
    assert all(isinstance(name, str) for name in member_names(b"{" + data))
    assert isinstance(first_elements(b"[" + data), list)


@settings(max_examples=50)
@given(
    st.recursive(
        st.text(alphabet='a"\\{}[]é', max_size=6), lambda below: st.lists(below, max_size=3), max_leaves=6
    ),
    st.integers(1, 5),
)
def test_extent(value, step):
    """A container ends where its last bracket is, however few bytes come at a time."""
    text = json.dumps([value]).encode()
    extent = Extent()
    found = NOT_YET
    for end in [*range(0, len(text), step), len(text)]:
        found = extent.scan(text[:end], 0)
        if found != NOT_YET:
            break
    assert found == len(text)

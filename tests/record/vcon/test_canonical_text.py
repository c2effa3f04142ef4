"""The canonical text: the fast writer's bytes are those of the reference."""

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError
from onrecord.record.vcon.canonical_text import canonical_text, is_canonical

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=4), inner, max_size=4)
    ),
    max_leaves=20,
)


class TestCanonicalText:
    @given(VALUES)
    def test_same_as_reference(self, value):
        """For every JSON value the bytes are those of the RFC 8785 reference."""
        assert canonical_text(value) == rfc8785.dumps(value)

    @pytest.mark.parametrize(
        "value",
        [1.0, [1e16], {"a": 1e-7}, 1e21, 5e-324, -0.0, {"\U00010000": 1, "\ufffd": 2}, ["x.0,", "e5,"], 0.1,
         {"a": [-1e16]}, {"a": {"b": 1.5e300, "c": "x"}}, {"a": "0e0,", "b": -2e-9}, {"a": "1e5,"}],
    )  # fmt: skip
    def test_edges(self, value):
        """Integral floats, exponents and names beyond the BMP are spelled as the reference spells them."""
        assert canonical_text(value) == rfc8785.dumps(value)

    @pytest.mark.parametrize("value", [2**53, -(2**53), "\ud800", {"\udc00": 1}, float("nan"), float("inf")])
    def test_no_canonical_form(self, value):
        """Values without canonical form are refused, never bent."""
        with pytest.raises(MalformedError) as caught:
            canonical_text([value])
        assert caught.value.code == "not-canonical"

    def test_is_canonical(self):
        """Order, white space and number spelling all count."""
        assert is_canonical({"a": 1, "b": 2.5}, b'{"a":1,"b":2.5}')
        for text in (b'{"b":2.5,"a":1}', b'{"a":1, "b":2.5}', b'{"a":1.0,"b":2.5}'):
            assert not is_canonical({"a": 1, "b": 2.5}, text)

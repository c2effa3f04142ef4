"""The model: what was read is kept, byte for byte or member for member."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError
from onrecord.record.vcon.model import Vcon
from support.vcons import answer, invocation, text, vcon


class TestRead:
    @pytest.mark.parametrize("indent", [None, 1, 3])
    def test_bytes_survive(self, indent):
        """What was read and not changed is written back byte for byte, odd spelling included."""
        data = json.dumps(vcon(invocation(), answer("tool-result")), indent=indent).encode() + b"\n"
        data = data.replace(b'"attempt": 1', b'"attempt": 1.0')
        assert Vcon.read(data).to_bytes() == data

    def test_unknown_members_survive_a_change(self):
        """A changed vCon keeps what it does not know, and its array positions."""
        document = vcon(invocation(), {}, {"type": "x.y", "z": [1]}, strange={"a": [None]})
        changed = Vcon.read(text(document))
        changed.set_member("updated_at", "2026-11-03T00:00:00Z")
        assert json.loads(changed.to_bytes()) == {**document, "updated_at": "2026-11-03T00:00:00Z"}

    def test_views(self):
        """Views give indices as tuples whatever their spelling, and read wrong types as absent."""
        made = Vcon.read(
            text(vcon(invocation(sessions=0, attempt=1.0, party="x"), parties=[{}, {"name": 3}]))
        )
        event = made.events[0]
        assert (event.sessions, event.attempt, event.party) == ((0,), 1, None)
        assert made.parties[0].is_placeholder
        assert made.parties[1].name is None

    def test_signed_form_is_not_read_as_unsigned(self):
        """A signed vCon is not taken for an unsigned one with odd members."""
        with pytest.raises(MalformedError) as caught:
            Vcon.read(b'{"payload":"e30","signatures":[],"uuid":"x"}')
        assert caught.value.code == "form-not-unsigned"

    @given(st.binary(max_size=100))
    def test_no_foreign_exception(self, data):
        """Arbitrary bytes give a vCon or one of our errors."""
        try:
            Vcon.read(data)
        except MalformedError:
            pass

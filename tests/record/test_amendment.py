"""Amendment: a deep copy as a new instance that names the one it was made from."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.dates import ManualClock
from onrecord.base.errors import MalformedError, OnrecordError, UsageError
from onrecord.record.amendment import amend
from onrecord.record.vcon.model import Vcon
from support.hostile import SEEDS, mutated
from support.vcons import UUID, answer, faults, invocation, read, vcon

IDENTITY = ("uuid", "created_at", "updated_at")


class TestAmend:
    def test_instance(self):
        """The copy has a new uuid, dates of now and amended_from; everything else is as it was, and has no fault."""
        document = vcon(invocation(), answer("tool-result"), x_vendor={"a": [1.5, None]})
        amended = amend(read(document), clock=ManualClock("2026-12-01T08:00:00Z"), domain="example.com")
        members = dict(amended.members)
        assert members.pop("amended_from") == {"uuid": UUID}
        assert members["created_at"] == members["updated_at"] == "2026-12-01T08:00:00Z"
        assert members["uuid"].endswith("-832a-bc92ac6830cd")
        assert members["uuid"] != UUID
        assert {name: value for name, value in members.items() if name not in IDENTITY} == {
            name: value for name, value in document.items() if name not in IDENTITY
        }
        assert faults(amended.to_bytes()) == []

    def test_deep(self):
        """What is added to the copy is not added to the original."""
        original = read(vcon(invocation()))
        amended = amend(original)
        amended.members["parties"][0]["name"] = "other"
        assert original.members["parties"][0]["name"] == "Agent"
        assert amended.raw is None

    def test_redacted_source(self):
        """What redaction left is only right beside redacted_from: it stays, and is the one reference there may be."""
        document = vcon(invocation(), {}, redacted_from={"type": "x", "uuid": UUID})
        amended = amend(read(document))
        assert amended.members["redacted_from"] == {"type": "x", "uuid": UUID}
        assert "amended_from" not in amended.members
        assert faults(amended.to_bytes()) == []

    def test_amended_source(self):
        """A vCon refers to the version that it was made from, and to none before that."""
        first = amend(read(vcon(invocation())))
        assert amend(first).members["amended_from"] == {"uuid": first.uuid}

    @pytest.mark.parametrize(
        ("version", "name"),
        [("0.0.1", "appended"), ("0.3.0", "appended"), ("0.4.0", "amended"), (None, "amended_from")],
    )
    def test_older_versions(self, version, name):
        """The reference is called as in the file's own version of core."""
        assert amend(read(vcon(invocation(), vcon=version))).members[name] == {"uuid": UUID}

    def test_refused(self):
        """A vCon without uuid cannot be named, and one nested too deep not be copied."""
        with pytest.raises(UsageError) as refused:
            amend(read(vcon(invocation(), uuid=None)))
        assert refused.value.code == "uuid-missing"
        deep = []
        for _ in range(5_000):
            deep = [deep]
        with pytest.raises(MalformedError) as too_deep:
            amend(Vcon(vcon(invocation(), x=deep)))
        assert too_deep.value.code == "json-depth"

    @settings(max_examples=50, deadline=None)
    @given(seed=st.integers(0, 2**32), name=st.sampled_from(sorted(SEEDS)))
    def test_any_vcon(self, seed, name):
        """Any vCon is amended or refused by a code."""
        document = mutated(SEEDS[name](), random.Random(seed), 6)
        try:
            original = read(document)
            amended = amend(original)
        except (OnrecordError, ValueError, RecursionError) as error:
            assert isinstance(error, OnrecordError) or not isinstance(document, dict)
            return
        assert amended.uuid != original.uuid
        assert len(amended.members) <= len(original.members) + 4

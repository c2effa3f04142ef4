"""Identifiers."""

from __future__ import annotations

import uuid

import pytest

from onrecord.base.dates import ManualClock
from onrecord.base.ids import opaque_ref, random_id, uuid7, uuid8


class TestUuids:
    def test_version_7(self):
        """A version 7 UUID holds the milliseconds of its clock and has version and variant set."""
        clock = ManualClock("2026-11-30T10:00:00.123Z")
        value = uuid.UUID(uuid7(clock=clock))
        assert (value.version, value.variant) == (7, uuid.RFC_4122)
        assert value.int >> 80 == clock.now_ns() // 1_000_000

    def test_version_7_differs(self):
        """Two of one millisecond differ."""
        clock = ManualClock()
        assert len({uuid7(clock=clock) for _ in range(1000)}) == 1000

    @pytest.mark.parametrize(
        ("domain", "tail"), [("example.com", "832a-bc92ac6830cd"), ("strolid.com", "a776-374dc8835ce7")]
    )
    def test_version_8_domain(self, domain, tail):
        """The tail of a version 8 UUID is the high 62 bits of SHA-1 of the domain (record.md D-10)."""
        value = uuid8(domain)
        assert value.endswith(tail)
        assert uuid.UUID(value).version == 8


def test_opaque():
    """References and source ids are random and of the asked length."""
    assert len(opaque_ref(12)) == 12
    assert opaque_ref() != opaque_ref()
    assert len(random_id("g-")) == 18

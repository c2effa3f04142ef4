"""What the tests of several commands need."""

import pytest

from support import vcons


@pytest.fixture
def pki():
    """The keys and certificates that all tests share."""
    return vcons.pki()

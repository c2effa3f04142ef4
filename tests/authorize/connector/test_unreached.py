"""What a connector says when onrecord cannot be reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from onrecord.authorize.connector.service import _unreached
from onrecord.base.errors import NetworkError


@pytest.mark.parametrize(
    ("cause", "says", "hint"),
    [
        (FileNotFoundError(2, "no such file"), "onrecord up is not running", "start it with onrecord up"),
        (PermissionError(13, "denied"), "this user may not connect", "principals.call_group"),
    ],
)
def test_why(cause, says, hint):
    """A user outside the call group is not told to start what runs already."""
    error = NetworkError("nothing answers", code="unreachable")
    error.__cause__ = cause
    told = _unreached(Path("/run/onrecord/authority.sock"), error)
    assert (told.code, says in str(told), hint in (told.hint or "")) == ("unreachable", True, True)

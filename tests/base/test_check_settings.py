"""The table [check] of onrecord.toml."""

from pathlib import Path

import pytest

from onrecord.base.configuration import Configuration
from onrecord.base.configuration_sections import SuppressedFinding
from onrecord.base.errors import ConfigurationError

ENVIRON = {"HOME": "/home/ada", "XDG_RUNTIME_DIR": "/run/user/1000"}


def parse(text):
    whole = f'mode = "user"\n{text}'
    return Configuration.parse(whole, file=Path("/example/onrecord.toml"), environ=ENVIRON)


def test_default():
    """Nothing is suppressed unless the file says so."""
    assert parse("").check.suppress == ()


def test_rules():
    """A rule has a code, and a place if it is not for the whole file."""
    found = parse(
        '[check]\nsuppress = [{ code = "uuid-version" }, { code = "legacy-name", pointer = "/dialog" }]'
    )
    assert found.check.suppress == (
        SuppressedFinding(code="uuid-version"),
        SuppressedFinding(code="legacy-name", pointer="/dialog"),
    )


@pytest.mark.parametrize(
    ("value", "pointer", "code"),
    [
        ('"uuid-version"', "/check/suppress", "configuration-value"),
        ("3", "/check/suppress", "configuration-value"),
        ('["uuid-version"]', "/check/suppress/0", "configuration-value"),
        ("[{}]", "/check/suppress/0", "configuration-key"),
        ('[{ pointer = "/a" }]', "/check/suppress/0", "configuration-key"),
        ('[{ code = "a" }, { code = 3 }]', "/check/suppress/1/code", "configuration-value"),
        ('[{ code = "a", pointer = ["/b"] }]', "/check/suppress/0/pointer", "configuration-value"),
        ('[{ code = "a", place = "/b" }]', "/check/suppress/0/place", "configuration-key"),
    ],
)
def test_bad_rules(value, pointer, code):
    """What is no list of such tables is refused with its line and place."""
    with pytest.raises(ConfigurationError) as caught:
        parse(f"[check]\nsuppress = {value}")
    assert caught.value.code == code
    assert (caught.value.where.line, caught.value.where.pointer) == (3, pointer)

"""Amounts and commands as facts (call-proof.md 8.3, acceptance item 53)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.policy import amounts, commands
from onrecord.authorize.policy.amounts import DECIMALS, MAX_MINOR


@pytest.mark.parametrize(
    ("value", "currency", "minor"),
    [
        (12, "EUR", 1200),
        (12.5, "EUR", 1250),
        (0.1, "USD", 10),
        (0, "EUR", 0),
        (-0.0, "EUR", 0),
        (1e2, "EUR", 10000),
        (19.99, "usd", 1999),
        (500, "JPY", 500),
        (1.234, "KWD", 1234),
        (MAX_MINOR, "JPY", MAX_MINOR),
    ],
)
def test_judged(value, currency, minor):
    """An amount in major units becomes minor units of its currency."""
    assert amounts.normalize(value, currency=currency) == (minor, currency.upper())


@pytest.mark.parametrize(
    ("value", "currency"),
    [
        (-1, "EUR"),
        (-0.01, "EUR"),
        (0.001, "EUR"),
        (12.5, "JPY"),
        (1.2345, "KWD"),
        (1, "XXX"),
        (1, "EURO"),
        (1, ""),
        (1, "\u20ac"),
        (MAX_MINOR, "EUR"),
        (1e300, "EUR"),
        (MAX_MINOR + 1, "JPY"),
    ],
)
def test_unknown(value, currency):
    """Negative, too fine, too large, and currencies that ISO 4217 does not have cannot be judged."""
    assert amounts.normalize(value, currency=currency) is None


@given(st.integers(0, 10**12), st.sampled_from(["EUR", "JPY", "KWD", "CLF"]))
def test_round_trip(minor, currency):
    """Minor units survive the way through a JSON number."""
    value = float(Decimal(minor).scaleb(-DECIMALS[currency]))
    found = amounts.normalize(value, currency=currency)
    assert found is not None
    assert found.minor == minor


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(sorted(DECIMALS)))
def test_any_number(value, currency):
    """Every finite number is judged or unknown, and a judged one is a whole number of minor units in range."""
    found = amounts.normalize(value, currency=currency)
    assert found is None or (0 <= found.minor <= MAX_MINOR and type(found.minor) is int)


@pytest.mark.parametrize(
    ("text", "program", "simple"),
    [
        ("git status", "git", True),
        ("'git' log -5", "git", True),
        ('git commit -m "a message"', "git", True),
        ("/usr/bin/env python3", "/usr/bin/env", True),
        ("git log | sh", "git", False),
        ("git log; rm -rf x", "git", False),
        ("git log && x", "git", False),
        ("git log > f", "git", False),
        ("git $(x)", "git", False),
        ("git `x`", "git", False),
        ("git\nrm x", "git", False),
        ("git *", "git", False),
        ("git a\\ b", "git", False),
        ("X=1 git", "X=1", False),
        ("~/bin/x", "~/bin/x", False),
    ],
)
def test_command(text, program, simple):
    """The first word is the program; simple is a command that a shell could only run as it stands."""
    assert commands.normalize(text) == (program, simple)


@pytest.mark.parametrize(
    "text", ["", "  ", "''", "git 'log", 'git "', "git \\", "a\0b", "x" * 16_385, "\udc80"]
)
def test_command_unknown(text):
    """Unbalanced quotes, no word, NUL and very long commands cannot be judged."""
    assert commands.normalize(text) is None


@given(st.text(max_size=60))
def test_any_command(text):
    """Any text is judged or unknown, and nothing simple holds a metacharacter."""
    found = commands.normalize(text)
    assert found is None or not found.simple or not set(text) & set("|&;<>()$`\\\n")


def test_resource():
    """A resource is its own name, if it can be read by a person as it is."""
    assert commands.resource("table/users") == "table/users"
    assert commands.resource(17) == "17"
    for text in ("", "a\nb", "a\u200bb", "e\u0301", "x" * 1025):
        assert commands.resource(text) is None

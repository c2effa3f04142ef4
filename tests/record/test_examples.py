"""The examples in the module docstrings run as they stand."""

import doctest
import importlib

import pytest

MODULES = [
    "checks.catalogue",
    "checks.checker",
    "checks.collector",
    "checks.profiles",
    "credentials",
    "forms.certificates",
    "forms.opening",
    "logs.attribution.edits",
    "logs.attribution.patches",
    "logs.attribution.paths",
    "logs.attribution.pieces",
    "logs.catalogue",
    "logs.event_types",
    "logs.inference",
    "logs.times",
    "logs.usage",
    "operations",
    "plain_text",
    "standing",
    "states",
    "vcon.model",
    "vcon.reader",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    """Every example gives what it says."""
    module = importlib.import_module(f"onrecord.record.{name}")
    assert doctest.testmod(module).failed == 0

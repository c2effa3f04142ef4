"""What holds for the migration of every vCon, however wrong it is."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.errors import OnrecordError
from onrecord.record.migration import migrate
from support.legacy import correct_vcons, migrated, old_vcons, same, turned_back
from support.vcons import faults, read

_ARRAYS = ("dialog", "attachments", "analysis")


@settings(max_examples=100)
@given(old_vcons, st.booleans())
def test_turning_back(document, new_instance):
    """What is reported as reversible is undone from the texts of result and report.

    Where something is not, the rest is undone, and leads to the same result when it is migrated again.
    """
    migration = migrated(document, new_instance=new_instance)
    back = turned_back(migration)
    if migration.report.is_reversible:
        assert same(back, document)
    elif not new_instance:
        assert same(undated(migrated(back)), undated(migration))


def undated(migration):
    """The members without the date of the migration."""
    return {name: value for name, value in migration.vcon.members.items() if name != "updated_at"}


@settings(max_examples=100)
@given(old_vcons)
def test_twice(document):
    """A result that is migrated again comes back byte for byte."""
    first = migrated(document).to_bytes()
    again = migrated(first)
    assert not again.report.is_changed
    assert again.to_bytes() == first


@settings(max_examples=100)
@given(old_vcons)
def test_positions(document):
    """Elements keep their places, and the given vCon is not touched."""
    source = read(document)
    result = migrate(source).vcon.members
    assert same(source.members, document)
    for name in _ARRAYS:
        before, after = document.get(name), result.get(name)
        if not isinstance(before, list):
            assert before == after
            continue
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            assert isinstance(old, dict) or same(old, new)
            if isinstance(old, dict) and isinstance(old.get("type"), str):
                assert new["type"] == old["type"]
    if isinstance(document["parties"], list):
        assert result["parties"][: len(document["parties"])] == document["parties"]


@settings(max_examples=60)
@given(old_vcons, st.randoms(use_true_random=False), st.sampled_from([None, True, 7, "x", [], {}, [[{}]]]))
def test_wrong_types(document, random, value):
    """Any value in any place gives a result or an error with a code."""
    text = json.dumps(document)
    places = []

    def walk(item):
        entries = item.items() if isinstance(item, dict) else enumerate(item)
        for key, part in list(entries):
            places.append((item, key))
            if isinstance(part, (dict, list)):
                walk(part)

    document = json.loads(text)
    walk(document)
    holder, key = random.choice(places)
    holder[key] = value
    try:
        migrated(json.dumps(document).encode()).to_bytes()
    except OnrecordError as error:
        assert error.code


@given(st.binary(max_size=200))
def test_any_bytes(data):
    """Bytes that are no vCon are refused by the reader."""
    try:
        migrated(data)
    except OnrecordError as error:
        assert error.code


@settings(max_examples=100)
@given(correct_vcons())
def test_correct_results(document):
    """A correct old vCon becomes one that is correct, without any warning, and can be turned back.

    One warning may be: between the same parties of one call, a transfer whose consultation is not known follows one
    whose consultation is.
    """
    migration = migrated(document)
    found = {code for code, _, _ in faults(migration.to_bytes())}
    several = sum(dialog["type"] == "transfer" for dialog in document["dialog"]) > 1
    assert found <= ({"transfer-consultation-mismatch"} if several else set())
    assert {change.code for change in migration.report.changes if change.action == "kept"} <= {
        "encoding-kept"
    }
    if migration.report.is_reversible:
        assert same(turned_back(migration), document)

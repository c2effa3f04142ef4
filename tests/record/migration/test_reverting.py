"""Reports as JSON, and undoing with a report that does not fit."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.errors import MalformedError
from onrecord.record.migration import STEPS, Change, MigrationReport, revert
from support.legacy import call, migrated, odd, old_vcon
from support.vcons import read

DOCUMENT = old_vcon(
    vcon="0.0.1",
    redacted={},
    dialog=[
        call(
            "2026-05-04T09:00:00Z",
            party_history=[{"party": 0, "time": "2026-05-04T09:00:00Z", "event": "join"}],
            session_id="a;remote=b",
        )
    ],
    analysis=[{"type": "summary", "mimetype": "text/plain", "body": "Hello."}],
)


def test_report_there_and_back():
    """A report survives its JSON."""
    report = migrated(DOCUMENT).report
    again = MigrationReport.from_json(json.loads(json.dumps(report.to_json())))
    assert again == report


def test_totals():
    """The totals count each action once per change."""
    report = migrated(DOCUMENT).report
    totals = report.totals()
    assert sum(count for name, count in totals.items() if name != "irreversible") == len(report.changes)
    assert totals["dropped"] == 2


def test_no_content():
    """Nothing of what people said or sent is in a report."""
    assert "Hello" not in json.dumps(migrated(DOCUMENT).report.to_json())


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"from": "0.4.0", "to": "0.5.0", "changes": {}},
        {"from": "0.4.0", "to": "0.5.0", "changes": [5]},
        {"from": "0.4.0", "to": "0.5.0", "changes": [{"code": "x", "pointer": "", "reversible": True}]},
        {"from": "0.4.0", "to": "0.5.0", "changes": [{"code": [], "pointer": "", "reversible": True}]},
        {"from": "0.4.0", "to": "0.5.0", "changes": [{"code": "group-kept", "pointer": "", "reversible": 1}]},
        {
            "from": "0.4.0",
            "to": "0.5.0",
            "changes": [{"code": "group-kept", "pointer": "", "reversible": True, "data": []}],
        },
    ],
)
def test_no_report(document):
    """What is no report is refused."""
    with pytest.raises(MalformedError) as error:
        MigrationReport.from_json(document)
    assert error.value.code == "migration-report-invalid"


@pytest.mark.parametrize(
    "change",
    [
        Change("member-renamed", "/dialog/7/mimetype", data={"to": "mediatype"}),
        Change("member-renamed", "/redacted", data={"to": "nothing"}),
        Change("empty-dropped", "/redacted", data={"value": "secret"}),
        Change("index-unknown-dropped", "/dialog/0/original", data={"value": 5}),
        Change("hash-joined", "/parties/0"),
        Change("party-history-moved", "/dialog/0/party_history/0", data={"to": "/events/9"}),
        Change("party-history-moved", "/dialog/0/party_history/9", data={"to": "/events/0"}),
        Change("party-history-moved", "/dialog/0/party_history/0", data={"to": "/parties/0"}),
        Change("transfer-told", "/dialog/0"),
        Change("json-parsed", "/analysis/0/body", data={"spelling": "x"}),
        Change("version-dropped", "/vcon"),
        Change("amended-from-set", "/amended_from"),
    ],
)
def test_other_vcon(change):
    """A report that does not fit the vCon is refused, whatever it names."""
    with pytest.raises(MalformedError) as error:
        revert(migrated(DOCUMENT).vcon, MigrationReport("0.0.1", "0.5.0", (change,)))
    assert error.value.code == "migration-report-invalid"


_changes = st.builds(
    Change,
    st.sampled_from(sorted(STEPS)),
    st.sampled_from(
        [
            "",
            "/vcon",
            "/dialog/0",
            "/dialog/0/body",
            "/dialog/0/party_history/0",
            "/events/0",
            "/sessions/0",
            "x",
            "/a/b",
        ]
    ),
    st.booleans(),
    st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            "to": odd | st.sampled_from(["/events/0", "mediatype"]),
            "value": odd,
            "spelling": odd | st.sampled_from(["base64", "compact", "pair"]),
            "event": odd,
            "button": st.just("dtmf"),
            "previous": odd,
        },
    ),
)


@settings(max_examples=100)
@given(st.lists(_changes, max_size=6))
def test_hostile_report(changes):
    """Any report gives a vCon or an error with a code, and leaves the given vCon as it was."""
    vcon = migrated(DOCUMENT).vcon
    before = vcon.to_bytes()
    try:
        revert(vcon, MigrationReport("0.0.1", "0.5.0", tuple(changes)))
    except MalformedError as error:
        assert error.code == "migration-report-invalid"
    assert vcon.to_bytes() == before


def test_reads_back_what_it_wrote():
    """Undoing gives the source also when result and report were stored in between."""
    done = migrated(DOCUMENT)
    report = MigrationReport.from_json(json.loads(json.dumps(done.report.to_json())))
    assert revert(read(done.to_bytes()), report).members == DOCUMENT

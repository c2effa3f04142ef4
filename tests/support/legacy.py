"""Old vCons that the tests of the migration make: by hand, and at random."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from onrecord.base.dates import ManualClock
from onrecord.record.migration import MigrationReport, migrate, revert
from support.vcons import read

UUID = "019df26e-2d00-8f11-832a-bc92ac6830cd"
NOW = "2026-11-30T00:00:00Z"


def old_vcon(**members):
    """A vCon of 0.4.0 with two parties; a member that is None is left out."""
    document = {
        "vcon": "0.4.0",
        "uuid": UUID,
        "created_at": "2026-05-04T10:00:00Z",
        "parties": [{"tel": "+12025550101"}, {"name": "Clerk"}],
        **members,
    }
    return {name: value for name, value in document.items() if value is not None}


def call(start=None, duration=None, **members):
    """A recording of both parties that lies elsewhere."""
    dialog = {
        "type": "recording",
        "start": start,
        "duration": duration,
        "parties": [0, 1],
        "mediatype": "audio/x-wav",
        "url": "https://media.example.com/a.wav",
        "content_hash": "sha512-" + "A" * 86,
        **members,
    }
    return {name: value for name, value in dialog.items() if value is not None}


def migrated(document, **options):
    """The migration of a document at a fixed time."""
    return migrate(read(document), clock=ManualClock(NOW), **options)


def result(document, **options):
    """What a reader of the migrated text gets."""
    return json.loads(migrated(document, **options).to_bytes())


def changes(document, *, kept=True, **options):
    """Codes and pointers of a migration's report, without the new date."""
    return [
        (change.code, change.pointer)
        for change in migrated(document, **options).report.changes
        if change.code != "updated-at-set" and (kept or change.action != "kept")
    ]


def turned_back(migration):
    """The members after undoing a migration from the texts of its result and report."""
    report = MigrationReport.from_json(json.loads(json.dumps(migration.report.to_json())))
    return revert(read(migration.to_bytes()), report).members


def same(one, other):
    """Say whether two values are the same JSON value; 1.0 is 1 and no boolean."""
    return json.dumps(_plain(one), sort_keys=True) == json.dumps(_plain(other), sort_keys=True)


def _plain(value):
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _optional(**members):
    """Objects with any of the members."""
    return st.fixed_dictionaries({}, optional=members)


odd = st.sampled_from(
    [None, True, 0, -1, 1.0, 2.5, "", "x", [], {}, [0], [[0]], {"a": 1}, [-1], "-1", 10**15]
)
"""Values of every JSON type."""

dates = st.sampled_from(
    [
        "2026-05-04T09:00:00Z",
        "2026-05-04T11:00:01.5+02:00",
        "2026-05-04t09:00:02.000z",
        "Mon, 04 May 2026 09:00:00 +0000",
        "2026-05-04T09:01:00.000000001Z",
    ]
)
indices = st.sampled_from([0, 1, 2, 7, -1, [0], [1], [-1], [0, 1], [], None, 1.0])
_texts = st.sampled_from(
    [
        "",
        "Hello.",
        "UklGRgAA",
        "UklGRgAA+/8=",
        "UklG RgAA",
        "AAA",
        '{"b":1,"a":[2]}',
        '{"a": 1}',
        '{\n  "a": 1\n}',
        '{"a":1,"a":2}',
        "[1.0]",
        '["\\ud800"]',
        "[12345678901234567890]",
        "null",
        '"[1]"',
    ]
)
_bodies = _texts | odd
_content = {
    "mimetype": st.sampled_from(["text/plain", "audio/x-wav", "application/json", None]),
    "mediatype": st.sampled_from(["text/plain", "audio/x-wav", None]),
    "encoding": st.sampled_from(["base64", "base64url", "json", "none", None, "hex"]) | odd,
    "body": _bodies,
    "url": st.just("https://media.example.com/a.wav"),
    "alg": st.sampled_from(["SHA-512", "LMOTS_SHA256_N32_W8", None]),
    "signature": st.sampled_from(["A" * 86, "B" * 85 + "+", "A" * 86 + "==", "short", None]),
    "content_hash": st.sampled_from([None, "sha512-" + "A" * 86]),
}
_history = st.fixed_dictionaries(
    {},
    optional={
        "party": st.sampled_from([0, 1, 9, None]),
        "time": dates,
        "event": st.sampled_from(["join", "drop", "dtmfdown", "dtmfup", "keyup", "left"]),
        "button": st.sampled_from(["1", 3]),
        "dtmf": st.sampled_from(["3", 3]),
        "note": odd,
    },
)
_session_ids = st.sampled_from(
    ["ab30317f;remote=47755a9d", "ab30317f", ";remote=", {"local": "a", "remote": "b"}]
)
_dialogs = _optional(
    type=st.sampled_from(["recording", "recording-set", "text", "transfer", "incomplete"]),
    start=dates,
    duration=st.sampled_from([5, 2.25, 0, -1, "5", 10**16]),
    parties=indices | st.just([[0], None, 1]),
    originator=indices,
    recordings=st.lists(st.integers(-1, 4), max_size=3),
    recording_set=indices,
    session_id=_session_ids | st.lists(_session_ids | st.none(), max_size=2) | odd,
    party_history=st.lists(_history | odd, max_size=3),
    transferee=indices,
    transferor=indices,
    original=indices,
    consultation=indices,
    target_dialog=indices,
    transfer_target=indices,
    **{"transfer-target": indices, "target-dialog": indices},
    **_content,
)
_references = st.sampled_from(
    [
        None,
        {},
        0,
        "",
        {"uuid": "x"},
        {"url": "https://example.com/v", "alg": "SHA-512", "signature": "A" * 86},
    ]
)


def _array(elements):
    return st.lists(elements, max_size=5) | st.sampled_from([None, [], "x"])


old_vcons = st.fixed_dictionaries(
    {"parties": _array(_optional(name=st.just("Clerk"), role=odd))},
    optional={
        "vcon": st.sampled_from(["0.0.1", "0.0.2", "0.3.0", "0.4.0", "", "0.0.3", None]) | odd,
        "uuid": st.sampled_from([UUID, "", None]),
        "created_at": dates,
        "updated_at": dates | odd,
        "redacted": _references,
        "redacted_from": _references,
        "appended": _references,
        "amended": _references,
        "amended_from": _references,
        "must_support": st.sampled_from([None, [], ["ai_agent"]]),
        "critical": st.sampled_from([None, ["ai_agent"]]),
        "group": st.sampled_from([[], None, [{"uuid": "x"}]]),
        "dialog": _array(_dialogs | odd),
        "attachments": _array(_optional(party=indices, type=odd, **_content) | odd),
        "analysis": _array(_optional(dialog=indices, transcript=odd, **_content) | odd),
        "sessions": st.sampled_from([None, [], [{"dialog": [0, 1]}, {"dialog": [1]}]]) | odd,
        "events": st.sampled_from(
            [
                None,
                [],
                [{"type": "join", "time": "2026-05-04T09:00:00Z", "sessions": 0, "party": 0, "dialog": 0}],
            ]
        )
        | odd,
        "meta": odd,
    },
)
"""Old vCons, most of them wrong somewhere."""


@st.composite
def correct_vcons(draw):
    """Old vCons without any mistake: conversations of every kind, in the forms of their versions."""
    oldest = draw(st.booleans())
    parties = draw(st.integers(1, 4))
    party = st.integers(0, parties - 1)
    count = draw(st.integers(1, 6))
    dialogs = [draw(_correct_dialog(party, oldest=oldest)) for _ in range(count)]
    if draw(st.booleans()) and count > 1:
        _make_set(draw, dialogs)
    calls = [index for index, dialog in enumerate(dialogs) if dialog["type"] != "transfer"]
    for _ in range(draw(st.integers(0, 2)) if calls else 0):
        dialogs.append(_correct_transfer(draw, party, st.sampled_from(calls), dialogs, oldest=oldest))
    document = {
        "vcon": draw(st.sampled_from(["0.0.1", "0.0.2"] if oldest else ["0.3.0", "0.4.0"])),
        "uuid": UUID,
        "created_at": "2026-05-04T10:00:00Z",
        "redacted": {},
        "group": [],
        "parties": [{"name": f"Clerk {number}"} for number in range(parties)],
        "dialog": dialogs,
        "analysis": [],
    }
    if draw(st.booleans()):
        document["amended" if document["vcon"] == "0.4.0" else "appended"] = {"uuid": UUID[:-1] + "e"}
    if draw(st.booleans()):
        document["attachments"] = [
            {
                "start": "2026-05-04T09:00:00Z",
                "party": 0,
                "dialog": 0,
                **draw(_correct_content(oldest=oldest)),
            }
        ]
    return document


_seconds = st.integers(0, 3000)


def _moment(second, fraction=""):
    return f"2026-05-04T09:{second // 60:02d}:{second % 60:02d}{fraction}Z"


_moments = st.builds(_moment, _seconds, st.sampled_from(["", ".5", ".123456789", ".000001"]))


def _correct_content(*, oldest):
    kind = "mimetype" if oldest else "mediatype"
    choices = [
        {kind: "text/plain", "encoding": "none", "body": "Hello."},
        {kind: "audio/x-wav", "encoding": "base64url", "body": "UklGRgAA"},
        {kind: "application/json", "encoding": "json", "body": '{"note": "taken over", "n": [1, 2]}'},
        {kind: "application/json", "encoding": "json", "body": {"note": "taken over"}},
        {kind: "audio/x-wav", "encoding": "base64", "body": "UklGRgAA+/8="},
        {kind: "text/plain", "body": "Hello."},
        {kind: "audio/x-wav", "body": "UklGRgAA"},
    ]
    location = {kind: "audio/x-wav", "url": "https://media.example.com/a.wav"}
    hashes = {"alg": "SHA-512", "signature": "A" * 86} if oldest else {"content_hash": "sha512-" + "A" * 86}
    return st.sampled_from([*choices, {**location, **hashes}])


@st.composite
def _correct_dialog(draw, party, *, oldest):
    kind = draw(st.sampled_from(["recording", "text", "incomplete"]))
    dialog = {
        "type": kind,
        "start": draw(_moments),
        "parties": draw(st.lists(party, min_size=1, unique=True)),
    }
    if draw(st.booleans()):
        dialog["duration"] = draw(st.sampled_from([0, 5, 58.25, 0.000001, 3600]))
    if kind == "incomplete":
        dialog["disposition"] = "busy"
    else:
        dialog.update(draw(_correct_content(oldest=oldest)))
    if draw(st.booleans()):
        dialog["party_history"] = draw(st.lists(_correct_history(party), max_size=3))
    if draw(st.booleans()):
        ids = st.sampled_from(["ab30317f;remote=47755a9d", "ab30317f"])
        dialog["session_id"] = [draw(ids) for _ in dialog["parties"]]
    return dialog


@st.composite
def _correct_history(draw, party):
    entry = {"party": draw(party), "time": draw(_moments)}
    old = draw(st.booleans())
    entry["event"] = draw(st.sampled_from(["join", "hold", "dtmfdown" if old else "keydown"]))
    if entry["event"] in ("dtmfdown", "keydown"):
        entry["dtmf" if old else "button"] = "5"
    return entry


def _make_set(draw, dialogs):
    """Turn the first dialog into a set of those recordings among the others that the draw takes."""
    members = [index for index, dialog in enumerate(dialogs) if index and dialog["type"] == "recording"]
    members = [index for index in members if draw(st.booleans())]
    if members:
        dialogs[0] = {
            "type": "recording-set",
            "start": dialogs[0]["start"],
            "parties": dialogs[0]["parties"],
            "recordings": members,
            "session_id": "ab30317f;remote=47755a9d",
        }
        for index in members:
            dialogs[index]["recording_set"] = 0


def _correct_transfer(draw, party, call, dialogs, *, oldest):
    names = ("transfer-target", "target-dialog") if oldest else ("transfer_target", "target_dialog")
    role = party.map(lambda index: [index]) if draw(st.booleans()) else party
    transfer = {
        "type": "transfer",
        "start": draw(_moments),
        "transferee": draw(role),
        "transferor": draw(role),
    }
    transfer[names[0]] = draw(role | st.sampled_from([-1, [-1]]))
    settable = [index for index, dialog in enumerate(dialogs) if dialog["type"] in ("recording", "text")]
    if settable:
        transfer["original"] = draw(st.sampled_from([*settable, -1]))
    for name in ("consultation", names[1]):
        if draw(st.booleans()):
            transfer[name] = draw(call | st.just(-1))
    return transfer

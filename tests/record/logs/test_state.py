"""The notes of imports: written whole, read back, and of no use when they are damaged or hostile."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs.folders import Stamp
from onrecord.record.logs.state import FILE_NAME, Known, KnownGroup, State
from support.diary import Registered

UUID = "01a19b83-0f20-8b33-832a-bc92ac6830cd"


@pytest.fixture(autouse=True)
def _diary():
    with Registered():
        yield


REPORT = {
    "file": "a.jsonl",
    "format": "diary",
    "bytes": 5,
    "sha256": "00",
    "sessions": [
        {
            "agent_session_id": "r1",
            "parent": None,
            "counts": {"dialogs": 1},
            "usage": {"input": 0},
            "start": None,
            "vcon": None,
        }
    ],
    "accounting": {"records": 1, "mapped": 1, "duplicates": 0, "reported": 0, "of_duplicates": {}},
    "findings": [
        {"code": "bom", "severity": "info", "file": "a.jsonl", "message": "m", "action": "", "count": 1}
    ],
}


def state():
    made = State("r")
    stamp = Stamp(size=5, mtime_ns=1, ctime_ns=2, inode=3)
    made.sources["/a.jsonl"] = Known(
        stamp=stamp, sha256="00", is_settled=True, group="g", told=["m"], report=REPORT
    )
    made.groups["g"] = KnownGroup(side="", vcons=[UUID])
    made.vcons[UUID] = 7
    made.numbers["/a.jsonl"] = 0
    return made


def document(place):
    return json.loads((place / FILE_NAME).read_text())


class TestState:
    def test_round_trip(self, tmp_path):
        """What was written is read back, with mode 0600; other rules make the notes empty without a fault."""
        state().write(tmp_path)
        back = State.read(tmp_path, rules="r")
        assert (back.sources, back.groups, back.fault) == (state().sources, state().groups, None)
        assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
        other = State.read(tmp_path, rules="other")
        assert (other.sources, other.groups, other.fault, other.numbers) == ({}, {}, None, {"/a.jsonl": 0})

    def test_odd_names(self, tmp_path):
        """Paths that are no Unicode come back as they were."""
        made = state()
        made.sources["/\udcff.jsonl"] = made.sources.pop("/a.jsonl")
        made.write(tmp_path)
        assert list(State.read(tmp_path, rules="r").sources) == ["/\udcff.jsonl"]

    def test_vcons(self, tmp_path):
        """A group counts as done only while its vCons lie there with their sizes."""
        made = state()
        assert not made.has_vcons("g", tmp_path)
        (tmp_path / f"{UUID}.vcon").write_text("1234567")
        assert made.has_vcons("g", tmp_path)
        (tmp_path / f"{UUID}.vcon").write_text("123")
        assert not made.has_vcons("g", tmp_path)
        assert not made.has_vcons("absent", tmp_path)

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "null", '{"version":1}', "[" * 200_000, '{"version":2}', "\x00\xff"]
    )
    def test_damaged(self, tmp_path, text):
        """Notes that are damaged or of another version are not used, and it is said."""
        (tmp_path / FILE_NAME).write_text(text, encoding="latin-1")
        read = State.read(tmp_path, rules="r")
        assert read.fault in ("damaged", "written by another version")
        assert not read.sources

    def test_no_file(self, tmp_path):
        """A link or a folder in place of the notes is not read."""
        (tmp_path / FILE_NAME).symlink_to("/etc/passwd")
        assert State.read(tmp_path, rules="r").fault is not None

    @pytest.mark.parametrize("name", ["../../etc/x", "", "A" * 36, UUID + "/"])
    def test_hostile_vcon_name(self, tmp_path, name):
        """A name that is no uuid makes the notes useless: it would lead out of the folder."""
        state().write(tmp_path)
        changed = document(tmp_path)
        changed["groups"]["g"]["vcons"] = [name]
        (tmp_path / FILE_NAME).write_text(json.dumps(changed))
        assert State.read(tmp_path, rules="r").fault == "damaged"

    @pytest.mark.parametrize(
        ("pointer", "value"),
        [
            (("sources", "/a.jsonl", "report", "format"), "no format"),
            (("sources", "/a.jsonl", "report", "accounting", "mapped"), 2),
            (("sources", "/a.jsonl", "report", "accounting", "mapped"), -1),
            (("sources", "/a.jsonl", "report", "sessions", 0, "parent"), ["r1"]),
            (("numbers",), {"a": 0, "b": 0}),
            (("numbers",), {"a": -1}),
            (("numbers",), {"a": 1 << 40}),
        ],
    )
    def test_hostile_values(self, tmp_path, pointer, value):
        """Formats that nobody reads, numbers that are two files', accounts that do not add up: of no use."""
        state().write(tmp_path)
        changed = document(tmp_path)
        here = changed
        for name in pointer[:-1]:
            here = here[name]
        here[pointer[-1]] = value
        (tmp_path / FILE_NAME).write_text(json.dumps(changed))
        assert State.read(tmp_path, rules="r").fault == "damaged"

    @settings(max_examples=50)
    @given(st.data())
    def test_hostile_members(self, tmp_path_factory, data):
        """Whatever one member is replaced by, the notes are read or refused; nothing is raised."""
        place = tmp_path_factory.mktemp("s")
        state().write(place)
        changed = document(place)
        here = changed
        while isinstance(here, dict | list) and here:
            keys = list(here) if isinstance(here, dict) else list(range(len(here)))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(here[key], dict | list) or not here[key] or data.draw(st.booleans()):
                here[key] = data.draw(st.sampled_from([None, True, -1, 1.5, "x", [], {}, [1], {"a": 1}]))
                break
            here = here[key]
        (place / FILE_NAME).write_text(json.dumps(changed))
        read = State.read(place, rules="r")
        assert read.fault in (None, "damaged", "written by another version")
        for known in read.sources.values():
            assert known.stamp == known.stamp
            assert all(isinstance(finding["count"], int) for finding in known.report["findings"])

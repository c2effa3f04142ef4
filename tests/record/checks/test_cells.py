"""The tables of objects that are no events, one test per cell: left out, null, of another type, unknown."""

import copy

import pytest

from onrecord.record.checks.checker import check
from onrecord.record.checks.profiles import TABLES
from support.complete import PLACES, at, complete
from support.vcons import faults, findings, text

MUST = {
    "Session_Reference": "session",
    "Dialog": "type",
    "Party_History": "party time event button",
    "Attachment": "start party dialog",
    "Analysis": "type vendor",
    "Redacted": "type",
    "Recording_Agent": "name",
    "VCS_Context": "type",
    "Agent_Meta": "model_id model_provider",
    "Environment": "working_dir",
    "File_Attribution": "files",
    "File": "path conversations",
    "File_Conversation": "ranges",
    "Range": "start_line end_line",
    "Contributor": "type",
    "Resource": "type url",
}
SHOULD = {"Session": "start parties", "Session_Reference": "type", "Dialog": "start parties"}
CONTENT = "body url encoding content_hash mediatype"
OPEN = ("Recording_Agent", "VCS_Context", "Agent_Meta", "Environment", "Token_Usage")
CLOSED = ("File_Attribution", "File", "File_Conversation", "Range", "Contributor", "Resource")
OF_TYPE = {
    "Boolean": True,
    "Number": 0.5,
    "Integer": 0,
    "String": "x",
    "Array": [],
    "Object": {},
}
ALSO_RIGHT = {
    ("Dialog", "parties"): "Integer Array",
    ("Dialog", "session_id"): "Array Object",
    ("Analysis", "dialog"): "Integer Array",
    ("Analysis", "attachment"): "Integer Array",
    **{(table, "content_hash"): "String Array" for table in ("Redacted", "Amended")},
    ("Session", "duration"): "Integer Number",
    ("Dialog", "duration"): "Integer Number",
    ("Token_Usage", "cost"): "Integer Number",
}
"""Members that take values of other JSON types than the one in the complete vCon."""

OWN_CODE = {"uuid": "uuid-missing", "created_at": "created-at-missing"}
EXTRA = {("vCon", "uuid"), ("vCon", "created_at"), ("vCon", "vcon"), ("vCon", "group")}
_NAMES = {dict: "Object", list: "Array", str: "String", int: "Integer", float: "Number", bool: "Boolean"}


def documents():
    """Each table with a vCon and the object of it, to be changed."""
    for name, pointer in PLACES.items():
        made = complete(amended=name == "Amended")
        yield name, pointer, made, at(made, pointer)


SAMPLES = {name: (pointer, made) for name, pointer, made, _ in documents()}
MEMBERS = [(name, member) for name, _, _, item in documents() for member in item]


def changed(name, member, value=None, *, drop=False):
    """The complete vCon with one member of one object left out or replaced, and the pointer of the object."""
    pointer, made = SAMPLES[name]
    made = copy.deepcopy(made)
    item = at(made, pointer)
    if drop:
        del item[member]
    else:
        item[member] = value
    return made, pointer


def cells(table):
    return [(name, member) for name, members in table.items() for member in members.split()]


def of_object(document, code, pointer):
    """The parameters that findings of this code name at an object."""
    return [
        one.data["parameter"]
        for one in check(text(document)).findings
        if (one.code, one.pointer) == (code, pointer)
    ]


class TestComplete:
    @pytest.mark.parametrize("name", SAMPLES)
    def test_is_right(self, name):
        """With every member that may be there, nothing is wrong."""
        assert faults(SAMPLES[name][1]) == []

    def test_holds_every_member(self):
        """Every member of every table is in it, but for those of other dialogs and of other forms of content."""
        left_out = {
            (name, member)
            for name, table in TABLES.items()
            if name in PLACES
            for member in table.kinds
            if (name, member) not in MEMBERS
        }
        apart = {
            (name, member) for name in ("Dialog", "Attachment", "Analysis") for member in CONTENT.split()
        }
        other_types = {
            ("Dialog", member)
            for member in (
                "recordings", "recording_set", "disposition", "transferee", "transferor", "transfer_target",
                "original", "target_dialog", "consultation", "parent_id",
            )
        }  # fmt: skip
        top = {("vCon", member) for member in ("vcon", "group", "events", "amended_from")}
        assert left_out <= apart | other_types | top


class TestPresence:
    @pytest.mark.parametrize(("name", "member"), cells(MUST))
    def test_must(self, name, member):
        """Without a member that must be there the object has an error that names it."""
        made, pointer = changed(name, member, drop=True)
        assert of_object(made, "required-missing", pointer) == [member]

    @pytest.mark.parametrize(("name", "member"), cells(MUST))
    def test_null_is_missing(self, name, member):
        """Null where a value must be counts as missing."""
        made, pointer = changed(name, member)
        assert of_object(made, "required-missing", pointer) == [member]

    @pytest.mark.parametrize(("name", "member"), cells(SHOULD))
    def test_should(self, name, member):
        """Without a member that should be there the object has a note that names it, and no fault."""
        made, pointer = changed(name, member, drop=True)
        assert of_object(made, "recommended-missing", pointer) == [member]
        assert {code for code, *_ in faults(made)} <= {"session-id-shape"}

    @pytest.mark.parametrize("member", OWN_CODE)
    def test_identity(self, member):
        """The members uuid and created_at have codes of their own."""
        for made, _ in (changed("vCon", member, drop=True), changed("vCon", member)):
            assert (OWN_CODE[member], "error", f"/{member}") in faults(made)

    @pytest.mark.parametrize(
        ("name", "member"),
        [cell for cell in MEMBERS if cell not in {*cells(MUST), *cells(SHOULD)} and cell[1] not in OWN_CODE],
    )
    def test_may(self, name, member):
        """Any other member may be left out: the object itself asks for nothing."""
        made, pointer = changed(name, member, drop=True)
        for code in ("required-missing", "recommended-missing"):
            assert of_object(made, code, pointer) == []

    @pytest.mark.parametrize(
        ("name", "member"),
        [cell for cell in MEMBERS if cell not in cells(MUST) and cell[1] not in (*OWN_CODE, "body")],
    )
    def test_null_is_read_as_absent(self, name, member):
        """Null where a member may be left out is a note at the member; beside a body or url some may not."""
        made, pointer = changed(name, member)
        beside = {"encoding": "body", "mediatype": "body", "content_hash": "url"}.get(member)
        must = beside in at(made, pointer) and (name, member) != ("Analysis", "mediatype")
        assert (("member-null", "info", f"{pointer}/{member}") in findings(made)) is not must
        if must:
            assert (f"{member.replace('_', '-')}-missing", "error", pointer) in faults(made)


class TestTypes:
    @pytest.mark.parametrize("kind", OF_TYPE)
    @pytest.mark.parametrize(("name", "member"), [cell for cell in MEMBERS if cell[1] != "body"])
    def test_other_types(self, name, member, kind):
        """A value of another JSON type is an error there, one of the right type is none."""
        pointer, original = SAMPLES[name]
        right = ALSO_RIGHT.get((name, member), _NAMES[type(at(original, pointer)[member])])
        made, _ = changed(name, member, OF_TYPE[kind])
        place = f"{pointer}/{member}"
        wrong = [
            code
            for code, severity, where in faults(made)
            if severity == "error" and code in ("type-mismatch", "duration-invalid") and where == place
        ]
        assert bool(wrong) == (kind not in right.split())


class TestUnknown:
    @pytest.mark.parametrize("name", PLACES)
    def test_unknown_member(self, name):
        """A member that nobody knows is a note, a warning in a closed object, and nothing in an open one."""
        made, pointer = changed(name, "com.example.x", 1)
        expected = [] if name in OPEN else [("unknown-member", "info", f"{pointer}/com.example.x")]
        if name in CLOSED:
            expected = [("closed-object-member", "warning", f"{pointer}/com.example.x")]
        assert [
            entry for entry in findings(made) if "member" in entry[0] and "null" not in entry[0]
        ] == expected


class TestCivicAddress:
    @pytest.mark.parametrize(
        ("key", "code", "severity"),
        [("pc", None, None), ("PC", "civicaddress-case", "error"), ("zip", "unknown-member", "info")],
    )
    def test_keys(self, key, code, severity):
        """The keys are those of the draft, in lower case; another one is unknown."""
        made, pointer = changed("Party", "civicaddress", {key: "x"})
        told = [entry for entry in findings(made) if entry[2].startswith(f"{pointer}/civicaddress")]
        assert told == ([(code, severity, f"{pointer}/civicaddress/{key}")] if code else [])

"""AA appendix C: each data item of a VACR record has its place in the vCon (native-logs.md 4.10)."""

import copy
import json
import uuid

import pytest
from hypothesis import given, settings

from onrecord.record.logs.vacr import VacrImporter
from support.native_logs import CREATED_AT, import_files, import_lines, mutations, odd_shapes

FORMAT = "ietf-vac-v3.0"
ID = "01998f10-193e-8231-b9a2-079d3c1a8b60"
ENTRIES = [
    {"type": "user", "content": "What is here?", "timestamp": "2026-07-01T10:00:05Z", "id": "e1"},
    {
        "type": "reasoning",
        "content": "Look.",
        "subject": "Plan",
        "encrypted": "c2VjcmV0",
        "timestamp": 1782900007000,
    },
    {
        "type": "assistant",
        "content": "I look.",
        "id": "e3",
        "parent-id": "e1",
        "model-id": "example-2",
        "token-usage": {
            "input": 10,
            "output": 7,
            "cached": 4,
            "reasoning": 2,
            "cost": 0.5,
            "x-tier": "standard",
        },
        "timestamp": "2026-07-01T12:00:08.5+02:00",
        "children": [
            {
                "type": "tool-call",
                "name": "look",
                "input": {"place": "here"},
                "call-id": "c1",
                "children": [
                    {
                        "type": "tool-result",
                        "output": {"found": "a stone"},
                        "call-id": "c1",
                        "status": "success",
                    }
                ],
            },
        ],
    },
    {"type": "tool-result", "output": "broken", "call-id": "c1", "is-error": True},
    {
        "type": "system-event",
        "event-type": "pause",
        "data": {"for": "tea"},
        "timestamp": "2026-07-01T10:00:20Z",
    },
]
RECORD = {
    "version": "3.0.0",
    "id": ID,
    "created": 1782900300000,
    "recording-agent": {"name": "example-recorder", "version": "0.1", "vendor-note": "kept"},
    "vcs": {
        "type": "git",
        "revision": "4f2a",
        "branch": "main",
        "repository": "https://git.example.com/p.git",
    },
    "session": {
        "format": "interactive",
        "session-id": "s1",
        "session-start": 1782900000000,
        "session-end": "2026-07-01T10:01:35.5Z",
        "agent-meta": {
            "model-id": "example-1",
            "model-provider": "example",
            "models": ["example-1", "example-2"],
            "cli-name": "example-cli",
            "cli-version": "1.2",
            "x-seat": "window",
        },
        "environment": {
            "working-dir": "/home/dev/p",
            "vcs": {"type": "git", "branch": "side"},
            "sandboxes": ["/mnt/box"],
            "x-shell": "fish",
        },
        "entries": ENTRIES,
        "x-room": "kitchen",
    },
    "file-attribution": {
        "files": [
            {
                "path": "src/a.py",
                "conversations": [
                    {
                        "contributor": {"type": "ai", "model-id": "example-1"},
                        "ranges": [
                            {
                                "start-line": 3,
                                "end-line": 9,
                                "content-hash": "9f2e8a1b",
                                "content-hash-alg": "murmur3",
                            }
                        ],
                    }
                ],
            }
        ]
    },
    "x-note": "in the margin",
}


def told(record=RECORD):
    imported = import_lines(json.dumps(record, indent=1), FORMAT)
    imported.assert_sound()
    return imported


def changed(**members):
    return {**copy.deepcopy(RECORD), **members}


def with_session(**members):
    return changed(session={**copy.deepcopy(RECORD["session"]), **members})


def with_entries(*entries):
    return with_session(entries=list(entries))


class TestRecord:
    @pytest.mark.req("AA-238", "AA-239", "AA-240")
    def test_the_record_is_a_vcon(self):
        """The record becomes a vCon with its id as uuid and the ai_agent extension; the version stays in the report."""
        vcon = told().vcon
        assert vcon["uuid"] == ID
        assert "ai_agent" in vcon["extensions"]
        (start,) = [event for event in vcon["events"] if event.get("event_type") == "session-start"]
        assert start["data"]["version"] == "3.0.0"

    @pytest.mark.req("AA-240")
    @pytest.mark.parametrize("identity", ["record-7", "{01998f10-193e-8231-b9a2-079d3c1a8b60}", "../../x"])
    def test_an_id_that_is_no_uuid_gives_one_by_name(self, identity):
        """D-77: version 5 from urn:vacr: and the id, which is kept."""
        vcon = told(changed(id=identity)).vcon
        assert vcon["uuid"] == str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:vacr:{identity}"))
        assert vcon["sessions"][0]["onrecord"]["rest"]["id"] == identity

    @pytest.mark.req("AA-241", "AA-264")
    @pytest.mark.parametrize(
        ("created", "expected"),
        [
            (1782900300000, "2026-07-01T10:05:00Z"),
            ("2026-07-01T12:05:00+02:00", "2026-07-01T10:05:00Z"),
            (None, CREATED_AT),
            ("soon", CREATED_AT),
        ],
    )
    def test_created_is_a_date(self, created, expected):
        """Epoch milliseconds and RFC 3339 become a Date in UTC; without one the time of conversion stands."""
        assert told(changed(created=created)).vcon["created_at"] == expected

    @pytest.mark.req("AA-242", "AA-243")
    def test_recorder_and_vcs_are_those_of_the_record(self):
        """recording-agent and vcs are kept, their further members too."""
        vcon = told().vcon
        assert vcon["recording_agent"] == RECORD["recording-agent"]
        assert vcon["vcs"] == RECORD["vcs"]

    @pytest.mark.req("AA-244", "AA-267")
    def test_file_attribution_is_renamed(self):
        """Members in kebab-case become snake_case."""
        (file,) = told().vcon["file_attribution"]["files"]
        (conversation,) = file["conversations"]
        assert conversation["contributor"] == {"type": "ai", "model_id": "example-1"}
        assert conversation["ranges"] == [
            {"start_line": 3, "end_line": 9, "content_hash": "9f2e8a1b", "content_hash_alg": "murmur3"}
        ]

    def test_two_records_of_one_session_are_two_vcons(self):
        """The record's id is its identity; the same record again is a duplicate."""
        other = changed(id="01998f10-193e-8231-b9a2-079d3c1a8b61")
        imported = import_lines([RECORD, other, RECORD, changed(version="3.0.1")], FORMAT)
        imported.assert_sound()
        assert [vcon["uuid"][-2:] for vcon in imported.vcons] == ["60", "61"]
        assert imported.codes["duplicate-entry"] == imported.codes["duplicate-entry-differs"] == 1
        assert imported.accounting[0]["duplicates"] == 16

    def test_members_without_a_place_are_kept(self):
        """D-LOG-01: unknown members of record and session are the session's rest."""
        rest = told().vcon["sessions"][0]["onrecord"]["rest"]
        assert (rest["x-note"], rest["x-room"]) == ("in the margin", "kitchen")


class TestSession:
    @pytest.mark.req("AA-245", "AA-246", "AA-247", "AA-248", "AA-249", "AA-250")
    def test_the_session_trace_is_a_session(self):
        """Ids, format, times and environment are those of the session."""
        (session,) = told().vcon["sessions"]
        assert (session["agent_session_id"], session["format"]) == ("s1", "interactive")
        assert (session["start"], session["duration"]) == ("2026-07-01T10:00:00Z", 95.5)
        assert session["environment"] == {
            "working_dir": "/home/dev/p",
            "vcs": {"type": "git", "branch": "side"},
            "sandboxes": ["/mnt/box"],
            "x-shell": "fish",
        }

    @pytest.mark.req("AA-248")
    def test_without_a_start_the_first_entry_is_it(self):
        """An absent session-start is the time of the first entry."""
        session = {name: value for name, value in RECORD["session"].items() if name != "session-start"}
        assert told(changed(session=session)).vcon["sessions"][0]["start"] == "2026-07-01T10:00:05Z"

    @pytest.mark.req("AA-251")
    def test_agent_meta_is_that_of_the_agent(self):
        """The agent's Party has the renamed members and the further ones."""
        user, agent = told().vcon["parties"]
        assert user["type"] == "person"
        assert agent["agent_meta"] == {
            "model_id": "example-1",
            "model_provider": "example",
            "models": ["example-1", "example-2"],
            "cli_name": "example-cli",
            "cli_version": "1.2",
            "x-seat": "window",
        }

    def test_an_environment_without_a_directory_is_none(self):
        """D-LOG-20: working_dir is required there, so the rest of it is kept elsewhere."""
        (session,) = told(with_session(environment={"sandboxes": ["/mnt/box"]})).vcon["sessions"]
        assert "environment" not in session
        assert session["onrecord"]["rest"]["environment"] == {"sandboxes": ["/mnt/box"]}


class TestEntries:
    @pytest.mark.req("AA-252", "AA-253", "AA-254", "AA-255")
    def test_messages_are_texts(self):
        """Entries of user and assistant are text Dialogs with model_id and token_usage, whose further members stay."""
        user, agent = told().dialogs
        assert (user["body"], user["parties"]) == ("What is here?", [0, 1])
        assert (agent["body"], agent["parties"], agent["model_id"]) == ("I look.", [1, 0], "example-2")
        assert agent["token_usage"] == {
            "input": 10,
            "output": 7,
            "total": 17,
            "cached": 4,
            "reasoning": 2,
            "cost": 0.5,
            "x-tier": "standard",
        }

    @pytest.mark.req("AA-256", "AA-257", "AA-258", "AA-259", "AA-260")
    def test_other_entries_are_events(self):
        """tool-call with tool_name, tool-result, reasoning and system-event keep their members."""
        imported = told()
        (made,) = imported.events("tool-call")
        assert (made["tool_name"], made["input"], made["call_id"]) == ("look", {"place": "here"}, "c1")
        found, broken = imported.events("tool-result")
        assert (found["output"], found["status"], "is_error" in found) == (
            {"found": "a stone"},
            "success",
            False,
        )
        assert (broken["output"], broken["is_error"]) == ("broken", True)
        (thought,) = imported.events("reasoning")
        assert (thought["content"], thought["subject"], thought["encrypted"]) == ("Look.", "Plan", "c2VjcmV0")
        (pause,) = imported.events("pause")
        assert (pause["type"], pause["data"]) == ("system-event", {"for": "tea"})

    @pytest.mark.req("AA-261", "AA-264")
    def test_timestamps_are_start_or_time(self):
        """Dialogs have start, Events time, in UTC; a child without one has its parent's, others the one before."""
        imported = told()
        assert [one["start"] for one in imported.dialogs] == [
            "2026-07-01T10:00:05Z",
            "2026-07-01T10:00:08.5Z",
        ]
        times = [(event["time"], event["onrecord"].get("time")) for event in imported.events()[1:]]
        assert times == [
            ("2026-07-01T10:00:07Z", None),
            ("2026-07-01T10:00:08.5Z", "message"),
            ("2026-07-01T10:00:08.5Z", "message"),
            ("2026-07-01T10:00:08.5Z", "previous"),
            ("2026-07-01T10:00:20Z", None),
        ]

    @pytest.mark.req("AA-262", "AA-263")
    def test_ids_and_children_are_the_entry_tree(self):
        """Ids and parent-ids are kept, entries without ids are counted, children hang below their entry."""
        imported = told()
        tree = {one["entry_id"]: one.get("parent_id") for one in [*imported.dialogs, *imported.events()[1:]]}
        assert tree == {"e1": None, "e3": "e1", "L2": None, "L4": "e3", "L5": "L4", "L6": None, "L7": None}

    def test_each_block_of_text_is_a_dialog(self):
        """Blocks of text are Dialogs, other blocks events; an empty message is an event."""
        blocks = [{"type": "text", "text": "one", "mood": "calm"}, "two", {"type": "hologram", "of": "three"}]
        imported = told(with_entries({"type": "user", "content": blocks}, {"type": "assistant"}))
        assert imported.bodies == ["one", "two"]
        assert imported.dialogs[0]["onrecord"]["rest"] == {"mood": "calm"}
        assert imported.events("block/hologram")[0]["data"] == blocks[2]
        assert len(imported.events("empty-text")) == 1

    def test_usage_without_a_text_is_an_event(self):
        """D-LOG-02: the usage of a message without text is a token-count."""
        imported = told(
            with_entries({"type": "assistant", "content": [], "token-usage": {"input": 3, "output": 4}})
        )
        assert imported.events("token-count")[0]["data"]["usage"]["total"] == 7
        assert imported.counts()["total"] == 7

    def test_an_entry_that_is_there_again_is_a_duplicate(self):
        """R-16: equal content is skipped with its children, other content stays under an id of its own."""
        parent = {"type": "user", "content": "x", "id": "a", "children": [{"type": "user", "content": "y"}]}
        imported = told(with_entries(parent, parent, {**parent, "content": "z", "children": []}))
        assert imported.bodies == ["x", "y", "z"]
        assert imported.codes["duplicate-entry"] == imported.codes["duplicate-entry-differs"] == 1
        assert [one["entry_id"] for one in imported.dialogs] == ["a", "L2", "a~2"]

    def test_unknown_entries_are_kept(self):
        """D-LOG-26: an unknown type is an event with the entry as data; what is no object is reported."""
        imported = told(with_entries({"type": "dance", "steps": 3}, 7))
        assert imported.events("dance")[0]["data"] == {"type": "dance", "steps": 3}
        assert imported.codes["not-an-object"] == imported.accounting[0]["reported"] == 1

    def test_an_error_by_another_name_is_one(self):
        """is-error counts; a status that says something else is kept."""
        entry = {"type": "tool-result", "output": 1, "call-id": "c", "status": "completed", "is-error": True}
        (result,) = told(with_entries(entry)).events("tool-result")
        assert (result["status"], result["is_error"]) == ("error", True)
        assert result["onrecord"]["rest"] == {"status": "completed"}


def test_children_of_children_end():
    """Entries nested as deep as JSON is read are told."""
    entry = {"type": "user", "content": "deepest"}
    for _ in range(45):
        entry = {"type": "system-event", "event-type": "x", "children": [entry]}
    assert told(with_entries(entry)).bodies == ["deepest"]


def test_broken_documents_are_accounted():
    """R-06, R-07: a record cut short is unreadable, the one before it is told; foreign values are reported."""
    text = json.dumps(RECORD, indent=1)
    imported = import_lines(f'\ufeff{text}\n{{"a":1}}\n{text[:200]}', FORMAT)
    imported.assert_sound()
    assert imported.codes["truncated-tail"] == imported.codes["foreign-record"] == imported.codes["bom"] == 1
    assert len(imported.bodies) == 2
    assert imported.accounting[0]["reported"] == 2


def test_records_are_recognised_by_their_session(tmp_path):
    """Section 3: an object with session.entries and session.session-id is decisive, others are not."""
    assert VacrImporter.recognises(RECORD)
    for other in ({"session": {"entries": []}}, {"session": {"session-id": "x"}}, {"session": "s"}, {}):
        assert not VacrImporter.recognises(other)


def test_a_second_copy_adds_nothing(tmp_path):
    """R-17: the same record in two files is one vCon."""
    paths = [tmp_path / "1.json", tmp_path / "2.json"]
    for path in paths:
        path.write_text(json.dumps(RECORD))
    imported = import_files(paths, FORMAT)
    assert len(imported.vcons) == 1
    assert imported.accounting[1]["of_duplicates"] == {"duplicate-entry": 8}


def test_entries_of_any_shape_are_kept():
    """Each member of each entry replaced by each other kind leaves a sound import with all records in it."""
    variants = [one for entry in ENTRIES for _, one in odd_shapes(entry)]
    imported = told(with_entries(*variants, {"type": "user", "content": "still here"}))
    assert "still here" in imported.bodies
    assert imported.accounting[0]["records"] > len(variants)


def test_records_of_any_shape_are_kept():
    """Each member around the entries replaced by each other kind leaves a sound import."""
    bare = with_entries(ENTRIES[0])
    variants = [
        {**one, "id": f"{number}"} if one.get("id") == ID else one
        for number, (tag, one) in enumerate(odd_shapes(bare))
        if not tag.startswith("session/entries/") and number % 2
    ]
    imported = import_lines(variants, FORMAT)
    imported.assert_sound()
    assert len(imported.vcons) > len(variants) / 2


@given(mutations([RECORD]))
@settings(max_examples=40, deadline=None)
def test_mutated_records_import(data):
    """A record with changed members and damaged bytes imports soundly."""
    import_lines(data, FORMAT).assert_sound()


def test_session_begins_and_ends_when_the_record_says():
    """Times of entries outside of session-start and session-end do not move start and duration (4.10)."""
    record = copy.deepcopy(RECORD)
    record["session"]["entries"] = [
        {"type": "user", "content": "early", "timestamp": "2026-07-01T09:00:00Z"},
        {"type": "user", "content": "late", "timestamp": "2026-07-01T12:00:00Z"},
    ]
    session = told(record).vcon["sessions"][0]
    assert session["start"] == "2026-07-01T10:00:00Z"
    assert session["duration"] == 95.5


def test_session_that_ends_before_it_begins_is_not_believed():
    """The times of the entries count then, and the record's own stay."""
    record = copy.deepcopy(RECORD)
    record["session"]["session-end"] = "2026-06-30T10:00:00Z"
    session = told(record).vcon["sessions"][0]
    assert session["onrecord"]["rest"]["session-end"] == "2026-06-30T10:00:00Z"
    assert session["onrecord"]["rest"]["session-start"] == 1782900000000


def test_value_in_the_place_of_an_entry_is_kept_as_unreadable():
    """What is no object is reported, and its beginning stands in an event (D-LOG-27)."""
    record = copy.deepcopy(RECORD)
    record["session"]["entries"] = ["a bare text", {"type": "user", "content": "hello"}]
    imported = told(record)
    (event,) = imported.events("unreadable-record")
    assert event["data"]["head"] == '"a bare text"'
    assert imported.accounting[0]["reported"] == 1


def test_file_objects_that_cannot_be_made_are_kept():
    """What file-attribution holds beside File Objects goes to the rest of the session (D-LOG-26)."""
    outside = {"path": "../else.py", "conversations": [{"url": "https://example.com/else", "ranges": []}]}
    record = changed(**{"file-attribution": {"files": ["no object", outside]}})
    imported = told(record)
    rest = imported.vcon["sessions"][0]["onrecord"]["rest"]
    assert rest["file-attribution"]["files"] == ["no object", outside]


def test_counts_that_contradict_each_other_are_kept_beside_ours():
    """A native total that is not the sum stays in token_usage.native (section 7)."""
    record = copy.deepcopy(RECORD)
    usage = {"input": 10, "output": 5, "total": 99}
    record["session"]["entries"] = [{"type": "assistant", "content": "hello", "token-usage": usage}]
    imported = told(record)
    assert imported.codes["usage-inconsistent"] == 1
    assert imported.dialogs[0]["token_usage"]["total"] == 15
    assert imported.dialogs[0]["token_usage"]["native"] == usage


def test_source_of_a_picture_keeps_its_other_members():
    """Of an attached picture only the data leaves its block."""
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo=", "x-from": "camera"}
    record = copy.deepcopy(RECORD)
    record["session"]["entries"] = [
        {"type": "user", "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}]}
    ]
    (attachment,) = told(record).vcon["attachments"]
    del source["data"]
    assert attachment["onrecord"]["rest"]["source"] == source


def test_content_check_knows_that_hashes_are_divided():
    """The algorithm before a hash is no text that could be missing (F-04)."""
    files = [{"path": "a.py", "conversations": [{"ranges": [{"content-hash": "sha256:" + "ab" * 32}]}]}]
    about, *_ = VacrImporter.records_in({**RECORD, "file-attribution": {"files": files}})
    (ranges,) = [told["ranges"] for told in about["file-attribution"]["files"][0]["conversations"]]
    assert ranges == [{"content-hash": "ab" * 32}]

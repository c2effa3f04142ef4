"""`policy bind` (running.md 4.4)."""

import json

import pytest

from onrecord.authorize.policy import read_bundle, schema_hash
from onrecord.authorize.policy.advertised import AdvertisedServer, AdvertisedTool
from onrecord.authorize.policy.lint import check_bundle
from onrecord.authorize.policy.pinning import ServerSource, bind, compare, pin, shape_differences
from onrecord.authorize.policy.proposals import json_types, propose
from onrecord.authorize.policy.source import compose
from onrecord.base.errors import OnrecordError, PolicyError, StorageError, UsageError
from support.policies import example_document


def tool(name, properties, annotations=None):
    schema = {"type": "object", "properties": properties}
    return AdvertisedTool(
        name=name, pin=schema_hash(schema), input_schema=schema, annotations=annotations or {}
    )


def server(*tools, name="fake"):
    return AdvertisedServer(name=name, version="1", tools=tools)


TEXT = {"type": "string"}
READ = tool("read_file", {"path": TEXT})


@pytest.fixture
def source(tmp_path):
    """The source of one server without bindings."""
    (tmp_path / "bundle.json").write_text(
        json.dumps({"servers": [{"id": "s", "bases": {"work": "/srv"}, "bindings": "bindings/s.json"}]})
    )
    return ServerSource(tmp_path, "s")


def binding(**more):
    return {
        "tool": "read_file",
        "op": "read",
        "impact": 1,
        "arguments": {"path": {"json": "string", "fact": "path", "base": "work"}},
    } | more


class TestPin:
    """--pin changes nothing but pins."""

    def test_source_bindings(self, source):
        """The hash is written, every other member stays; a second run changes nothing."""
        source.write([binding(impact=3)])
        report = pin(source, server(READ, tool("other", {})))
        assert (report.pinned, report.unbound) == (("read_file",), ("other",))
        assert source.bindings() == [binding(impact=3, inputSchemaSha256=READ.pin)]
        before = source.file.stat().st_mtime_ns
        assert pin(source, server(READ)).unchanged == ("read_file",)
        assert source.file.stat().st_mtime_ns == before

    def test_not_advertised(self, source):
        """A bound tool that is not advertised stays as it is, and is told."""
        source.write([binding(), binding(tool="gone", inputSchemaSha256="sha-256:" + "A" * 43)])
        report = pin(source, server(READ))
        assert report.missing == ("gone",)
        assert source.bindings()[1] == binding(tool="gone", inputSchemaSha256="sha-256:" + "A" * 43)

    @pytest.mark.parametrize(
        "properties",
        [
            {},
            {"path": TEXT, "encoding": TEXT},
            {"file": TEXT},
            {"path": {"type": "array", "items": TEXT}},
            {"path": {"type": ["string", "null"]}},
            {"path": {}},
            {"path": {"$ref": "#/$defs/x"}},
        ],
    )
    def test_other_shape(self, source, properties):
        """A tool with other arguments or JSON types is refused, and nothing is written."""
        source.write([binding()])
        before = source.file.read_bytes()
        with pytest.raises(PolicyError) as e:
            pin(source, server(tool("read_file", properties)))
        assert e.value.code == "binding-shape"
        assert source.file.read_bytes() == before

    def test_unknown_server(self, source):
        """Without bindings in source or catalogue there is nothing to pin."""
        with pytest.raises(PolicyError) as e:
            pin(source, server(READ, name="unheard-of"))
        assert e.value.code == "catalogue-unknown"
        assert not source.file.exists()

    def test_catalogue_needs_a_base(self, tmp_path):
        """Relative paths need a base that is clear."""
        for bases, expected in (
            ({}, None),
            ({"a": "/a", "b": "/b"}, None),
            ({"default": "/a", "b": "/b"}, "default"),
        ):
            entry = {"id": "s", "bases": bases, "bindings": "s.json"}
            (tmp_path / "bundle.json").write_text(json.dumps({"servers": [entry]}))
            source = ServerSource(tmp_path, "s")
            if expected is None:
                with pytest.raises(PolicyError) as e:
                    pin(source, server(READ, name="example-files"))
                assert e.value.code == "catalogue-base"
            else:
                pin(source, server(READ, name="example-files"))
                assert source.bindings()[0]["arguments"]["path"]["base"] == expected

    def test_catalogue_leaves_out_what_is_not_there(self, source):
        """Of a catalogue entry only tools that the installed server advertises are taken."""
        report = pin(source, server(READ, name="example-files"))
        assert [b["tool"] for b in source.bindings()] == ["read_file"]
        assert {"list_directory", "get_pull_request", "post_comment"} <= set(report.missing)

    def test_untouched_proposals(self, source):
        """Proposals that nobody has touched give way to the catalogue; one decision, and they stay."""
        known = server(READ, name="example-files")
        report = bind(source, known)
        assert report.in_catalogue
        assert pin(source, known).pinned == ("read_file",)
        assert "decide" not in source.bindings()[0]
        source.file.unlink()
        bind(source, known)
        (proposal,) = source.bindings()
        proposal["decide"] = ["impact"]
        source.write([proposal])
        assert not bind(source, known).in_catalogue
        assert pin(source, known).unchanged == ("read_file",)
        assert source.bindings() == [proposal]

    def test_untouched_proposals_of_an_unknown_server(self, source):
        """Without an entry in the catalogue the proposals are what there is."""
        unknown = server(READ, name="unheard-of")
        assert not bind(source, unknown).in_catalogue
        assert pin(source, unknown).unchanged == ("read_file",)


class TestBind:
    """Without --pin: proposals that a person decides."""

    def test_proposals_are_undecided(self, source):
        """Every proposal carries what is open, and the lint refuses it until a person has decided."""
        report = bind(source, server(READ, tool("run_command", {"command": TEXT})))
        assert report.proposed == ("read_file", "run_command")
        for entry in source.bindings():
            assert {"op", "impact"} <= set(entry["decide"])
        document = example_document()
        document["servers"][0] |= {"tools": source.bindings(), "bases": {"work": "/srv"}}
        bundle, _ = read_bundle(compose(document))
        assert "binding-undecided" in [item.code for item in check_bundle(bundle)]

    def test_decisions_are_kept(self, source):
        """An entry that is there keeps everything; only its pin follows a tool of the same shape."""
        source.write([binding(op="admin", impact=4, inputSchemaSha256="sha-256:" + "A" * 43)])
        report = bind(source, server(READ, tool("new", {})))
        assert (report.pinned, report.proposed) == (("read_file",), ("new",))
        assert source.bindings()[0] == binding(op="admin", impact=4, inputSchemaSha256=READ.pin)

    def test_changed_shape(self, source):
        """A tool of another shape keeps its old entry with its old pin, so it is denied until somebody looks."""
        old = binding(inputSchemaSha256="sha-256:" + "A" * 43)
        source.write([old])
        report = bind(source, server(tool("read_file", {"path": TEXT, "mode": TEXT})))
        assert report.changed == ("read_file",)
        assert source.bindings() == [old]


def test_compare(source):
    """--running compares with a report and writes nothing."""
    source.write(
        [binding(inputSchemaSha256="a"), binding(tool="b", inputSchemaSha256="b"), binding(tool="c")]
    )
    report = compare(source, {"read_file": "a", "b": "x", "d": "d"})
    assert (report.unchanged, report.changed, report.missing, report.unbound) == (
        ("read_file",),
        ("b",),
        ("c",),
        ("d",),
    )


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1]",
        '[{"tool":1}]',
        '[{"tool":"a"}]',
        '[{"tool":"a","arguments":{"x":1}}]',
        "[",
        '[{"a":1,"a":1}]',
    ],
)
def test_malformed_bindings(source, text):
    """A bindings file that cannot be read is named, and not overwritten."""
    source.file.parent.mkdir()
    source.file.write_text(text)
    with pytest.raises(PolicyError) as e:
        pin(source, server(READ))
    assert e.value.code == "policy-malformed"
    assert source.file.read_text() == text


def test_unknown_server_id(source, tmp_path):
    """A server that the source does not have is a usage error with what to do."""
    with pytest.raises(UsageError) as e:
        ServerSource(tmp_path, "other")
    assert e.value.code == "server-unknown"


@pytest.mark.parametrize("name", ["/etc/x.json", "../x.json", 7])
def test_bindings_file_lies_below_the_source(tmp_path, name):
    """Nothing outside of the source is written."""
    (tmp_path / "bundle.json").write_text(json.dumps({"servers": [{"id": "s", "bindings": name}]}))
    with pytest.raises(OnrecordError) as e:
        ServerSource(tmp_path, "s")
    assert e.value.code == "policy-malformed"


@pytest.mark.parametrize(
    ("name", "schema", "fact"),
    [
        ("path", TEXT, "path"),
        ("target_path", TEXT, "path"),
        ("destination", TEXT, "path"),
        ("files", {"type": "array", "items": TEXT}, "path"),
        ("url", TEXT, "host"),
        ("link", {"type": "string", "format": "uri"}, "host"),
        ("hostname", TEXT, "host"),
        ("cmd", TEXT, "command"),
        ("amount", {"type": "number"}, "amount"),
        ("filePath", TEXT, "path"),
        ("outputDir", TEXT, "path"),
        ("source-file", TEXT, "path"),
        ("urls", {"type": "array", "items": TEXT}, "host"),
        ("webhookUrl", TEXT, "host"),
        ("shell_command", TEXT, "command"),
        ("body", TEXT, None),
        ("profile", TEXT, None),
        ("path", {"type": "integer"}, None),
        ("filepath", TEXT, "path"),
        ("fileName", TEXT, "path"),
        ("dst", TEXT, "path"),
        ("output_directories", {"type": "array", "items": TEXT}, "path"),
        ("paths", {"anyOf": [{"type": "array", "items": TEXT}, {"type": "null"}]}, "path"),
        ("path", {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}, "path"),
        ("links", {"type": "array", "items": {"type": "string", "format": "uri"}}, "host"),
        ("link", {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]}, "host"),
        ("commandLine", TEXT, "command"),
        ("path\u202e", TEXT, "path"),
        (" file.path ", TEXT, "path"),
        ("\uff50ath", TEXT, "path"),
    ],
)
def test_argument_proposals(name, schema, fact):
    """Names and formats propose facts (running.md 4.4)."""
    assert propose(tool("x", {name: schema}), base="work")["arguments"][name].get("fact") == fact


@pytest.mark.parametrize(
    ("name", "properties", "annotations", "op", "impact"),
    [
        ("read_file", {}, {"readOnlyHint": True}, "read", 1),
        ("deleteFile", {}, {}, "delete", 3),
        ("run", {"command": TEXT}, {"readOnlyHint": True}, "execute", 3),
        ("db_query", {"query": TEXT}, {"readOnlyHint": True}, "execute", 3),
        ("duckdb", {"query": TEXT}, {"readOnlyHint": True}, "execute", 3),
        ("runSQL", {"sql": TEXT}, {"readOnlyHint": True}, "execute", 3),
        ("search", {"query": TEXT}, {"readOnlyHint": True}, "read", 1),
        ("search_feedback", {"query": TEXT}, {"readOnlyHint": True}, "read", 1),
        ("frobnicate", {}, {}, "write", 3),
        ("frobnicate", {}, {"destructiveHint": False}, "write", 2),
        ("send_mail", {}, {}, "send", 3),
        ("get_and_delete", {}, {}, "delete", 3),
        ("list_then_remove", {}, {"readOnlyHint": True}, "delete", 3),
        ("read_write_file", {}, {}, "write", 3),
        ("search_and_replace", {}, {}, "write", 3),
        ("fetch_and_run", {}, {}, "execute", 3),
        ("deleteAll", {}, {"readOnlyHint": True, "destructiveHint": False}, "delete", 3),
        ("get_things", {}, {"destructiveHint": True}, "write", 3),
        ("get_things", {}, {"readOnlyHint": False, "destructiveHint": False}, "write", 2),
        ("get_comment", {}, {}, "read", 1),
        ("add_comment", {}, {}, "write", 3),
        ("frobnicate", {}, {"readOnlyHint": True, "destructiveHint": True}, "delete", 3),
    ],
)
def test_effect_proposals(name, properties, annotations, op, impact):
    """Verbs and annotations propose operation and impact; shells and free SQL are executions whatever they say."""
    made = propose(tool(name, properties, annotations), base="work")
    assert (made["op"], made["impact"]) == (op, impact)
    assert made["decide"][:2] == ["op", "impact"]


def test_open_questions():
    """What cannot be proposed is listed: a base, a currency, a type."""
    made = propose(tool("x", {"path": TEXT, "amount": {"type": "number"}, "any": {}}), base=None)
    assert made["decide"] == [
        "op",
        "impact",
        "arguments.path.base",
        "arguments.amount.currency",
        "arguments.any.json",
    ]


def test_nested_targets():
    """A path or host inside of an object cannot become a fact, so a person is asked about that argument."""
    inner = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"properties": {"targetUrl": TEXT}}}},
    }
    made = propose(
        tool(
            "x",
            {
                "job": inner,
                "jobs": {"type": "array", "items": inner},
                "either": {"anyOf": [{"type": "string"}, inner]},
                "plain": {"type": "object", "properties": {"text": TEXT}},
            },
        ),
        base="work",
    )
    questions = ["arguments.job", "arguments.jobs", "arguments.either"]
    assert [one for one in made["decide"][2:] if not one.endswith(".json")] == questions


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("path", {"anyOf": [TEXT, {"type": "object"}]}),
        ("path", {"type": "integer"}),
        ("files", {"type": "array"}),
        ("files", {"type": "array", "items": {"type": ["string", "object"]}}),
        ("url", {"type": "object", "properties": {"text": TEXT}}),
        ("amount", TEXT),
        ("edits", {"type": "array", "items": {"$ref": "#/$defs/Edit"}}),
        ("options", {"type": "object"}),
        ("options", {"type": "object", "additionalProperties": TEXT}),
        (
            "options",
            {"type": "object", "properties": {"a": {"type": "array", "prefixItems": [{"$ref": "#/x"}]}}},
        ),
    ],
)
def test_targets_without_a_fact(name, schema):
    """What may be a target and gives no fact is a question: a server must not pass one by its schema."""
    made = propose(tool("x", {name: schema}), base="work")
    assert "fact" not in made["arguments"][name]
    assert f"arguments.{name}" in made["decide"]


def test_paths_below_a_directory_of_the_call():
    """Where a call names a directory, what its other paths count from is a question for a person."""
    made = propose(tool("add", {"repo_path": TEXT, "files": {"type": "array", "items": TEXT}}), base="work")
    assert made["decide"] == ["op", "impact", "arguments.files.base"]
    made = propose(tool("move", {"source": TEXT, "destination": TEXT}), base="work")
    assert made["decide"] == ["op", "impact"]
    made = propose(tool("add", {"dir": TEXT, "file": TEXT}), base=None)
    assert made["decide"] == ["op", "impact", "arguments.dir.base", "arguments.file.base"]


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"string", "null"}),
        ({"enum": ["a", 1, None]}, {"string", "integer", "null"}),
        ({}, None),
        ({"$ref": "#/x"}, None),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/x"}]}, None),
        ({"type": "any"}, None),
        (True, None),
        (None, None),
    ],
)
def test_json_types(schema, types):
    """The JSON types of a property are read, or not known."""
    assert json_types(schema) == types


def test_members_of_arrays():
    """An array whose members have another type, or none that is said, has another shape."""
    bound = {"paths": {"json": "array", "items": "string", "fact": "path", "base": "work"}}
    assert shape_differences(bound, tool("t", {"paths": {"type": "array", "items": TEXT}})) == []
    for items in ({"type": "object"}, {"type": ["string", "object"]}, {"$ref": "#/x"}, None):
        found = shape_differences(bound, tool("t", {"paths": {"type": "array", "items": items}}))
        assert len(found) == 1


def test_names_that_hide(source):
    """A name cannot reorder or hide what a person reads in the bindings; it is the same name afterwards."""
    name = "a\u202e\u200b\x7f\x9b\u2028\U000e0041é\n"
    bind(source, server(tool(name, {name: TEXT})))
    text = source.file.read_text(encoding="utf-8")
    assert "é" in text
    assert all(char.isprintable() or char == "\n" for char in text)
    assert (source.bindings()[0]["tool"], list(source.bindings()[0]["arguments"])) == (name, [name])


def test_too_large_for_a_policy(source, monkeypatch):
    """Bindings that no reader would take are not written: those that are there can still be read."""
    source.write([binding()])
    monkeypatch.setattr("onrecord.authorize.policy.pinning.MAX_BUNDLE_BYTES", 1000)
    with pytest.raises(StorageError) as e:
        bind(source, server(READ, *(tool(f"t{number}", {}) for number in range(20))))
    assert e.value.code == "policy-unwritable"
    assert source.bindings() == [binding()]


def test_differences_name_both_sides():
    """What is new, what is gone and what has another type is told by name."""
    found = shape_differences(
        {"gone": {"json": "string"}, "same": {"json": "string"}, "typed": {"json": ["string", "null"]}},
        tool("t", {"same": TEXT, "typed": TEXT, "new": TEXT}),
    )
    assert sorted(found) == ["new argument new", "no argument gone any more", "typed is string now"]

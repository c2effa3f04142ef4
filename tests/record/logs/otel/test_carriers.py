"""Spans come in many carriers and tell the same (native-logs.md 4.9, sections 2 and 8)."""

import json
import sqlite3

import pytest

from onrecord.record.logs.detection import detect
from onrecord.record.logs.otel.spans import OtelImporter
from onrecord.record.logs.reading.opening import NativeFile
from support.native_logs import import_files, import_lines, to_bytes
from support.spans import RUN, TRACE, otlp, span


def python_sdk(value):
    """Return a span as the Python SDK's console exporter prints it."""
    clock = "2026-07-01T10:00:{:02d}.000000Z"
    return {
        "name": value["name"],
        "context": {
            "trace_id": f"0x{TRACE}",
            "span_id": "0x" + value["spanContext"]["spanId"],
            "trace_state": "[]",
        },
        "kind": "SpanKind.INTERNAL",
        "parent_id": "0x" + value["parentSpanId"] if value["parentSpanId"] else None,
        "start_time": clock.format(value["startTime"][0] - 1_782_900_000),
        "end_time": clock.format(value["endTime"][0] - 1_782_900_000),
        "status": {"status_code": "UNSET"},
        "attributes": value["attributes"],
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "finder"}, "schema_url": ""},
    }


def batch(values):
    """Return one OTLP export of several spans."""
    made = otlp(values[0])
    spans = made["resourceSpans"][0]["scopeSpans"][0]["spans"]
    spans += [otlp(value)["resourceSpans"][0]["scopeSpans"][0]["spans"][0] for value in values[1:]]
    return made


CARRIERS = {
    "sdk objects, one a line": to_bytes(RUN),
    "sdk objects in a list": json.dumps(RUN, indent=1).encode(),
    "sdk objects in a list on one line": json.dumps(RUN).encode(),
    "otlp, one a line": to_bytes([otlp(value) for value in RUN]),
    "otlp, all in one line": to_bytes([batch(RUN)]),
    "otlp, one document": json.dumps(batch(RUN), indent=1).encode(),
    "python, glued": "\n".join(json.dumps(python_sdk(value), indent=4) for value in RUN).encode(),
    "python, one a line": to_bytes([python_sdk(value) for value in RUN]),
}


def story(imported):
    """What a vCon tells, without where it stood."""
    imported.assert_sound()
    keep = (
        "body",
        "start",
        "time",
        "type",
        "entry_id",
        "parent_id",
        "tool_name",
        "input",
        "output",
        "status",
        "model_id",
    )
    return [
        {name: one[name] for name in keep if name in one} for one in [*imported.dialogs, *imported.events()]
    ]


@pytest.mark.parametrize("name", CARRIERS)
def test_carriers_tell_the_same(name, tmp_path):
    """Each carrier is detected and gives the same story, each span one record."""
    path = tmp_path / "spans.json"
    path.write_bytes(CARRIERS[name])
    assert detect(NativeFile(path), [OtelImporter]).format == "otel"
    imported = import_files([path], "otel")
    assert story(imported) == story(import_lines(RUN, "otel"))
    assert imported.accounting[0] == {
        "records": 4,
        "mapped": 4,
        "of_mapped": {"conversation": 3, "system_event": 1},
        "duplicates": 0,
        "of_duplicates": {},
        "reported": 0,
    }


COLUMNS = (
    "span_id TEXT PRIMARY KEY, trace_id TEXT, parent_span_id TEXT, name TEXT, start_time_ms INTEGER,"
    "end_time_ms INTEGER,"
    "status_code INTEGER, operation_name TEXT, conversation_id TEXT, response_model TEXT, input_tokens INTEGER,"
    "output_tokens INTEGER, tool_name TEXT, tool_call_id TEXT"
)


def store(path, spans, *, more=()):
    """Write spans into an SQLite store."""
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE spans ({COLUMNS})")
        connection.execute("CREATE TABLE span_attributes (span_id TEXT, key TEXT, value TEXT)")
        connection.execute(
            "CREATE TABLE span_events (id INTEGER, span_id TEXT, name TEXT, timestamp_ms INTEGER, attributes TEXT)"
        )
        for value in spans:
            attributes = dict(value["attributes"])
            row = (
                value["spanContext"]["spanId"],
                value["spanContext"]["traceId"],
                value["parentSpanId"] or None,
                value["name"],
                value["startTime"][0] * 1000,
                value["endTime"][0] * 1000,
                0,
                attributes.pop("gen_ai.operation.name", None),
                attributes.pop("gen_ai.conversation.id", None),
                attributes.get("gen_ai.response.model"),
                attributes.pop("gen_ai.usage.input_tokens", None),
                attributes.pop("gen_ai.usage.output_tokens", None),
                attributes.pop("gen_ai.tool.name", None),
                attributes.pop("gen_ai.tool.call.id", None),
            )
            connection.execute(f"INSERT INTO spans VALUES ({','.join('?' * len(row))})", row)
            for name, inner in attributes.items():
                connection.execute("INSERT INTO span_attributes VALUES (?,?,?)", (row[0], name, str(inner)))
        for statement in more:
            connection.execute(statement)
    connection.close()


class TestStore:
    def test_a_store_tells_the_same(self, tmp_path):
        """SQLite: the story of its rows is that of the spans; each row of the three tables is a record."""
        path = tmp_path / "traces.db"
        event = "INSERT INTO span_events VALUES (1, 'a2', 'first token', 1782900001500, '{\"vendor\":\"invented\"}')"
        store(path, RUN, more=[event])
        assert detect(NativeFile(path), [OtelImporter]).format == "otel"
        imported = import_files([path], "otel")
        assert story(imported) == story(import_lines(RUN, "otel"))
        assert imported.accounting[0]["records"] == imported.accounting[0]["mapped"] == 4 + 12 + 1
        assert "invented" in json.dumps(imported.vcon)

    def test_columns_win(self, tmp_path):
        """A column counts before an attribute of the same meaning, which is kept."""
        path = tmp_path / "traces.db"
        change = "UPDATE span_attributes SET value = 'example-0' WHERE key = 'gen_ai.response.model'"
        store(path, RUN, more=[change])
        imported = import_files([path], "otel")
        assert {one["model_id"] for one in imported.dialogs if "model_id" in one} == {"example-1"}
        assert "example-0" in json.dumps(imported.vcon)

    def test_hostile_cells_and_lonely_rows_are_kept(self, tmp_path):
        """Cells of any type, rows of spans that are not there and spans without ids are told and accounted."""
        path = tmp_path / "traces.db"
        more = [
            "INSERT INTO span_attributes VALUES ('lonely', 'gen_ai.prompt', 'kept after all')",
            "INSERT INTO span_attributes VALUES ('a2', NULL, x'00ff')",
            "INSERT INTO spans (span_id, name, start_time_ms) VALUES (NULL, 'nameless', 'never')",
            "INSERT INTO spans (span_id, input_tokens, start_time_ms) VALUES ('zz', -5, 9223372036854775807)",
            "INSERT INTO spans (span_id, output_tokens, operation_name) VALUES ('zy', 1e999, 'chat')",
        ]
        store(path, RUN, more=more)
        imported = import_files([path], "otel")
        imported.assert_sound()
        assert imported.codes["orphan-part"] == 1
        assert "kept after all" in json.dumps(imported.vcons)
        assert imported.accounting[0]["records"] == 4 + 12 + 5

    def test_views_are_not_read(self, tmp_path):
        """R-12: a store whose second table is a view is read without it."""
        path = tmp_path / "traces.db"
        store(path, RUN, more=["DROP TABLE span_events", "CREATE VIEW span_events AS SELECT * FROM spans"])
        assert import_files([path], "otel").accounting[0]["records"] == 4 + 12


class TestBrokenFiles:
    def test_one_bad_line_costs_no_other(self):
        """R-04 to R-07: BOM, CRLF, blank lines, invalid UTF-8, two values, a bad line and a cut tail."""
        lines = to_bytes(RUN).split(b"\n")
        lines[1] = lines[1].replace(b"a stone", b"a st\xffne")
        data = b"\xef\xbb\xbf" + b"\r\n".join(
            [lines[0] + lines[1], b"", b"{broken", lines[2], lines[3], lines[0][:50]]
        )
        imported = import_lines(data, "otel")
        imported.assert_sound()
        assert imported.bodies == ["hello", "let me see", "a stone"]
        for code in ("bom", "invalid-utf8", "multiple-values-on-line", "malformed-line", "truncated-tail"):
            assert imported.codes[code] == 1, code
        assert imported.accounting[0]["reported"] == len(imported.events("unreadable-record")) == 2

    def test_line_separators_in_texts_are_texts(self):
        """B-7: U+2028 and NEL do not end a line."""
        data = to_bytes(RUN).replace(b"hello", "hel\u2028\x85lo".encode())
        assert import_lines(data, "otel").bodies[0] == "hel\u2028\x85lo"

    def test_what_is_no_span_is_kept(self):
        """D-LOG-26: exports of another kind and unknown objects are events; scalars are reported."""
        values = [
            *RUN,
            {"resourceSpans": []},
            {"resourceMetrics": [{"scope": "metre"}]},
            [5, {"note": "aside"}],
        ]
        imported = import_lines(values, "otel")
        imported.assert_sound()
        account = imported.accounting[0]
        assert (account["records"], account["mapped"], account["reported"]) == (8, 7, 1)
        assert {"metre", "aside"} <= {
            word for word in ("metre", "aside") if word in json.dumps(imported.vcon)
        }

    @pytest.mark.parametrize(
        "value", ["x", 5, None, ["y"], {"scopeSpans": 7}, {"scopeSpans": [5, {"spans": "z"}]}]
    )
    def test_an_export_of_odd_shape_is_accounted(self, value):
        """Whatever stands where lists of spans should stand is a record of its own."""
        imported = import_lines([*RUN, {"resourceSpans": [value]}], "otel")
        imported.assert_sound()
        assert imported.bodies == ["hello", "let me see", "a stone"]
        assert imported.accounting[0]["records"] > 4

    def test_large_numbers_are_told(self):
        """D-LOG-24: numbers that JSON readers change are listed where they stood."""
        text = json.dumps(span("a9", "x", 1, 2, attributes={"gen_ai.x": "N"})).replace(
            '"N"', "12345678901234567890"
        )
        imported = import_lines(text, "otel")
        assert imported.codes["unsafe-integer"] == 1
        assert '"12345678901234567890"' in json.dumps(imported.vcon)


@pytest.mark.parametrize(
    "value",
    [
        {"captureDate": "2026-02-03", "attributeSummary": {"ai": ["ai.embedding"]}},
        {"type": "user", "message": {"content": "x"}},
        {"name": "x", "attributes": {"http.method": "GET"}, "spanId": "1"},
        {"airport": "x", "llm": 5, "generation": "ai.x"},
    ],
)
def test_near_neighbours_are_not_decisive(value):
    """Section 3: only spans and maps with attributes of agents are."""
    assert not OtelImporter.recognises(value)


def test_schema_addresses_of_an_export_are_kept():
    """What an export tells of resource and scope is kept with each span (D-LOG-01)."""
    one = {
        "spanId": "a1",
        "name": "chat",
        "attributes": [{"key": "gen_ai.system", "value": {"stringValue": "x"}}],
    }
    scoped = {"spans": [one], "schemaUrl": "https://example.com/scope"}
    export = {"resourceSpans": [{"scopeSpans": [scoped], "schemaUrl": "https://example.com/resource"}]}
    imported = import_lines([export], "otel")
    imported.assert_sound()
    text = imported.texts[0].decode()
    assert "https://example.com/scope" in text
    assert "https://example.com/resource" in text


def test_value_in_the_place_of_a_span_is_kept_as_unreadable():
    """What is no object is reported, and its beginning stands in an event (D-LOG-27)."""
    imported = import_lines([{"spanId": "a1", "attributes": {"gen_ai.system": "x"}}, 7, "a text"], "otel")
    imported.assert_sound()
    heads = [event["data"]["head"] for event in imported.events("unreadable-record")]
    assert heads == ["7", '"a text"']
    assert imported.accounting[0]["reported"] == 2


def test_ids_of_another_kind_are_kept():
    """An id that is no text is none, and stays where it was (R-10)."""
    one = {"spanId": "a1", "parentSpanId": {"odd": "parent"}, "attributes": {"gen_ai.tool.call.id": ["c9"]}}
    one["name"] = one["attributes"]["gen_ai.operation.name"] = "execute_tool"
    (call,) = import_lines([one], "otel").events("tool-call")
    assert call["call_id"] == "a1"
    assert call["onrecord"]["rest"]["parentSpanId"] == {"odd": "parent"}
    assert call["onrecord"]["rest"]["attributes"]["gen_ai.tool.call.id"] == ["c9"]


def test_attribute_that_is_no_list_of_otlp_is_kept():
    """A value that only looks like a list of OTLP stays as it is."""
    odd = {"key": "gen_ai.x", "value": {"arrayValue": {"items": ["kept text"]}}}
    assert "kept text" in import_lines([{"spanId": "a1", "attributes": [odd]}], "otel").texts[0].decode()


def test_first_line_that_breaks_off_costs_no_other():
    """A file of lines is one also when its first line is cut (R-04)."""
    ends = [{"spanId": f"a{number}", "attributes": {"gen_ai.system": "x"}} for number in range(3)]
    whole = [json.dumps(one) for one in ends]
    imported = import_lines("\n".join(['{"spanId":"a9","na', *whole, ""]), "otel")
    imported.assert_sound()
    assert (imported.accounting[0]["mapped"], imported.accounting[0]["reported"]) == (3, 1)


def test_flat_map_with_members_of_a_span():
    """A map of attributes may stand beside ids, name and times: they are the span's (4.9, D-LOG-04)."""
    one = {
        "trace_id": "t1",
        "span_id": "a1",
        "name": "chat",
        "timestamp": "2026-07-01T10:00:07Z",
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt": "hello",
    }
    imported = import_lines([one], "otel")
    imported.assert_sound()
    (dialog,) = imported.dialogs
    assert (dialog["body"], dialog["start"], dialog["entry_id"]) == ("hello", "2026-07-01T10:00:07Z", "a1")
    assert imported.vcon["sessions"][0]["agent_session_id"] == "t1"


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "2300-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_times_far_away_are_times(time):
    """A time beyond 64 bits of nanoseconds, such as the zero time of Go programs, is written as it is (R-14)."""
    one = {"spanId": "a1", "start_time": time, "end_time": time, "attributes": {"gen_ai.prompt": "hello"}}
    imported = import_lines([one], "otel")
    imported.assert_sound()
    assert imported.dialogs[0]["start"] == time

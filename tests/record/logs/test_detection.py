"""Which format a file is in: by content, whatever comes first, however it comes, and never by likeness."""

import csv
import json
import sqlite3
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.base.errors import UsageError
from onrecord.record.logs.detection import MAX_BYTES, detect
from onrecord.record.logs.interface import Importer, formats, importers
from onrecord.record.logs.reading.opening import NativeFile
from support.data import shared_data


class Diary(Importer):
    """An invented format of lines and of documents with pages."""

    format = "diary"
    carriers = frozenset(["lines", "document"])
    tables = frozenset(["page", "margin"])

    @classmethod
    def recognises(cls, value):
        return value.get("kind") == "diary"

    @classmethod
    def recognises_document(cls, value):
        if isinstance(value, list):
            return bool(value) and isinstance(value[0], dict) and "page" in value[0]
        return isinstance(value, dict) and "pages" in value

    @classmethod
    def recognises_members(cls, names):
        return "pages" in names


class Notes(Importer):
    """Another one: glued values; its records look like a diary's when they are marked as both."""

    format = "notes"
    carriers = frozenset(["lines", "values"])

    @classmethod
    def recognises(cls, value):
        return "note" in value

    @classmethod
    def hints_at(cls, path):
        return "notes" in path.parts


ASKED = [Diary, Notes]


@pytest.fixture
def found(tmp_path):
    def find(data, *, name="log"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return detect(NativeFile(path), ASKED)

    return find


class TestText:
    def test_first_decisive_record(self, found):
        """B-2: bookkeeping, blank, broken and foreign lines come first; the first decisive record decides."""
        lines = ["", "{}", '{"kind":"other"}', "broken {", "[1]", '{"note":1}', '{"kind":"diary"}']
        detection = found("\n".join(lines))
        assert (detection.format, detection.carrier, detection.reason) == ("notes", "lines", "record 5")

    def test_200_records(self, found):
        """Section 3: 200 records are looked at, and no more."""
        assert found('{"a":1}\n' * 199 + '{"note":1}\n').format == "notes"
        assert found('{"a":1}\n' * 200 + '{"note":1}\n').format is None

    def test_order_and_hint(self, found):
        """Section 3: order breaks ties, a place where the program puts its logs breaks them first."""
        both = '{"kind":"diary","note":1}\n'
        assert found(both).format == "diary"
        assert found(both, name="notes/log").format == "notes"
        assert found('{"kind":"diary"}\n{"note":1}\n', name="notes/log").format == "diary"

    @pytest.mark.parametrize(
        "text",
        [
            '{"pages":[]}',
            '\ufeff\n{\n  "title": "x",\n  "pages": [\n{"note":1}\n]\n}\n',
            '[\n  {"page": 1},\n  {"note": 1}\n]',
            '{\n"title":"x","pages":[{"note":1',
            "\0\0\n" + json.dumps({"pages": [{"note": 1}]}, indent=2),
        ],
    )
    def test_documents(self, found, text):
        """A value over several lines is one document, although lines in it look like records; a cut one too."""
        detection = found(text)
        assert (detection.format, detection.carrier) == ("diary", "document")

    @pytest.mark.parametrize("indent", [None, 1])
    def test_large_documents(self, found, indent):
        """A document beyond what is looked at is known by the names of its members, or its first elements."""
        pages = [{"page": number, "text": "x" * 1000} for number in range(MAX_BYTES // 1000 + 100)]
        for value in ({"title": {"pages": 0}, "pages": pages}, pages):
            detection = found(json.dumps(value, indent=indent))
            assert (detection.format, detection.carrier) == ("diary", "document")
        assert found(json.dumps({"title": {"pages": 0}, "other": pages}, indent=indent)).format is None

    def test_large_first_line(self, found):
        """A first record that alone is larger than what is looked at is still a record."""
        line = json.dumps({"text": "x" * MAX_BYTES, "kind": "diary"})
        assert found(f"{line}\n{{}}\n").carrier == "lines"
        assert found(line).format == "diary"

    def test_glued_values(self, found):
        """4.5 (3): values glued without line break, the last one cut."""
        text = json.dumps({"a": 1}, indent=2) + json.dumps({"note": {"b": 2}}, indent=2) + '{"c'
        detection = found(text)
        assert (detection.format, detection.carrier) == ("notes", "values")

    def test_broken_first_line(self, found):
        """A first line without end, as a crash leaves it, does not hide the lines behind it."""
        assert found('{"a":"cut\n{"kind":"diary"}\n{"kind":"diary"}\n').carrier == "lines"

    @pytest.mark.parametrize("data", [b"", b"\n \r\n\n", b"\0" * 3_000_000, b"\xef\xbb\xbf\n"])
    def test_empty(self, found, data):
        """A file without anything but blanks and NUL bytes is empty, not unknown."""
        assert found(data)[0] is None
        assert found(data).code == "empty-file"

    def test_behind_nul(self, found):
        """R-03: a long run of NUL bytes does not hide what comes behind it."""
        assert found(b"\0" * 3_000_000 + b'{"note":1}\n').format == "notes"

    def test_utf16_and_packed(self, found):
        """R-02: what is looked at is the decoded text."""
        assert found('\ufeff{"note":1}\n'.encode("utf-16-le")).format == "notes"

    @pytest.mark.parametrize("data", [b"prose\n", b"[]", b"{}", b"12", b'["note"]', b"{" * 5000, b"\xff\xfe"])
    def test_unknown(self, found, data):
        """Section 3: no decisive record is unknown-format with a hint."""
        detection = found(data)
        assert (detection.format, detection.carrier) == (None, None)
        assert detection.code in ("unknown-format", "empty-file")

    def test_reason_quotes_nothing(self, found):
        """The reason names members, at most 64 characters each, and no values."""
        detection = found(json.dumps({"n" * 100: "secret", "b": "secret"}))
        assert "secret" not in detection.reason
        assert "n" * 65 not in detection.reason
        assert "--format" in detection.hint

    def test_copilot_chat(self, found):
        """4.6: known stores that are not read say so."""
        text = json.dumps({"version": 3, "requests": [], "responderUsername": "x"}, indent=2)
        assert found(text).code == "unsupported-store"

    @settings(max_examples=50)
    @given(st.binary(max_size=80))
    def test_any_bytes(self, tmp_path_factory, data):
        """Any bytes have a format or a code that says why not."""
        path = tmp_path_factory.getbasetemp() / "any"
        path.write_bytes(data)
        try:
            detection = detect(NativeFile(path), ASKED)
        except UsageError as error:
            assert error.code == "unreadable-file"
        else:
            assert (detection.format is None) == (detection.code is not None)

    @pytest.mark.parametrize("around", ["{}\nrubbish", '{}\n{{"pages":', "{}\n{}", "rubbish\n{}"])
    @pytest.mark.parametrize("indent", [None, 2])
    def test_rubbish_around_a_document_does_not_hide_it(self, found, around, indent):
        """A document with rubbish, a cut value or a second document beside it is recognised by the whole one."""
        text = json.dumps({"pages": [{"text": "a"}]}, indent=indent)
        detection = found(around.format(*[text] * around.count("{}")))
        assert (detection.format, detection.carrier) == ("diary", "document")

    @pytest.mark.parametrize("data", [b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd\xff\xff\xff"])
    def test_an_archive_of_which_nothing_is_left_is_not_empty(self, found, data):
        """A damaged archive that gives no text is an unknown file, which is an error, and no empty one."""
        assert found(data).code == "unknown-format"


class TestStores:
    @pytest.mark.parametrize(
        ("tables", "format", "code"),
        [
            (["page", "margin", "more"], "diary", None),
            (["page"], None, "unknown-format"),
            (["blobs", "meta"], None, "unsupported-store"),
            (["ItemTable"], None, "unsupported-store"),
            (["cursorDiskKV"], None, "unsupported-store"),
        ],
    )
    def test_tables(self, tmp_path, tables, format, code):
        """4.6: SQLite is known by its tables; stores that are known and not read say so."""
        connection = sqlite3.connect(tmp_path / "store.db")
        for name in tables:
            connection.execute(f"CREATE TABLE {name} (id)")
        connection.close()
        detection = detect(NativeFile(tmp_path / "store.db"), ASKED)
        assert (detection.format, detection.code) == (format, code)
        assert detection.carrier == ("sqlite" if format else None)

    def test_views_are_no_tables(self, tmp_path):
        """R-12: a view of the right name is no table."""
        connection = sqlite3.connect(tmp_path / "store.db")
        connection.execute("CREATE TABLE page (id)")
        connection.execute("CREATE VIEW margin AS SELECT * FROM page")
        connection.close()
        assert detect(NativeFile(tmp_path / "store.db"), ASKED).code == "unknown-format"

    def test_damaged(self, found):
        """A damaged SQLite file cannot be read, which is not the same as unknown."""
        with pytest.raises(UsageError) as caught:
            found(b"SQLite format 3\0" + b"\xff" * 5000)
        assert caught.value.code == "unreadable-file"

    def test_zip(self, tmp_path):
        """Archives of evaluations are of the second wave."""
        with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
            archive.writestr("header.json", "{}")
        assert detect(NativeFile(tmp_path / "a.eval"), ASKED).code == "unknown-format"


class TestSamples:
    def test_manifest(self):
        """Section 3: samples with stated counts have their format; second wave and neighbours are unknown."""
        root = shared_data("traces")
        asked = list(importers())
        wrong = []
        with (root / "MANIFEST.tsv").open(encoding="utf-8") as manifest:
            rows = list(csv.DictReader(manifest, delimiter="\t", quoting=csv.QUOTE_NONE))
        for row in rows:
            name, stated = row["file"], row["format"]
            if name.endswith("/"):
                continue
            is_first_wave = stated in formats()
            if is_first_wave and row["sessions"] == "-":
                continue  # side files, empty ones and stores that are not read
            if stated == "-" and not name.startswith("unmapped/"):
                continue  # pieces whose format the manifest does not state
            detection = detect(NativeFile(root / name), asked)
            if detection.format != (stated if is_first_wave else None):
                wrong.append((name, stated, detection.format))
        assert wrong == []

    @pytest.mark.parametrize(
        "name",
        [
            "cursor-jsonl/agent-sessions/Cursor/test-store.db",
            "cursor-jsonl/cursor-history/composer-global-state.vscdb",
        ],
    )
    def test_stores(self, name):
        """4.6: the stores of Cursor are recognised and answered."""
        file = NativeFile(shared_data("traces", *name.split("/")))
        assert detect(file, list(importers())).code == "unsupported-store"

    def test_edge_cases(self):
        """Section 8: the broken files are of the formats that the acceptance list states."""
        root = shared_data("traces", "edge-cases")
        asked = list(importers())
        with (root / "expected.tsv").open(encoding="utf-8") as expected:
            rows = list(csv.DictReader(expected, delimiter="\t", quoting=csv.QUOTE_NONE))
        found = {row["file"]: detect(NativeFile(root / row["file"]), asked).format for row in rows}
        assert found == {row["file"]: row["format"] for row in rows}

"""SQLite stores: a copy is read, with its log, and nothing that the schema says is run."""

import sqlite3

import pytest

from onrecord.base.errors import UsageError
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.sqlite import column_names, open_copy, rows, table_names


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "store.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute('CREATE TABLE "message" (id TEXT, data)')
    connection.executemany("INSERT INTO message VALUES (?, ?)", [("b", "{}"), ("a", b"\xff"), (None, 1.5)])
    yield path, connection
    connection.close()


def all_rows(path, table="message", **options):
    findings = FileFindings("store.db")
    with open_copy(path, findings) as connection:
        return list(rows(connection, table, findings, **options)), findings


class TestReading:
    def test_live_store(self, store):
        """R-12, B-13: what lies in the write-ahead log of a live program is read, and its files are not touched."""
        path, _ = store
        before = {
            file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")
        }
        assert all_rows(path, columns=["id", "data"])[0] == [("b", "{}"), ("a", b"\xff"), (None, 1.5)]
        assert all_rows(path, columns=["id"], order=["id"])[0] == [(None,), ("a",), ("b",)]
        after = {
            file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")
        }
        assert after == before

    def test_lone_main_file(self, store, tmp_path):
        """R-12: a main file in WAL mode whose log is gone is readable."""
        path, connection = store
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("INSERT INTO message VALUES ('late', 1)")
        lone = tmp_path / "lone" / "store.db"
        lone.parent.mkdir()
        lone.write_bytes(path.read_bytes())
        assert len(all_rows(lone, columns=["id"])[0]) == 3

    def test_names(self, store):
        """Tables and columns are listed, views are not."""
        path, connection = store
        connection.execute("CREATE VIEW part AS SELECT * FROM message")
        with open_copy(path) as copy:
            assert table_names(copy) == {"message"}
            assert column_names(copy, "message") == ("id", "data")

    def test_broken_text(self, store):
        """D-LOG-25: text that is not UTF-8 is read with U+FFFD and counted."""
        path, connection = store
        connection.execute("INSERT INTO message VALUES (CAST(x'61ff' AS TEXT), 1)")
        found, findings = all_rows(path, columns=["id"])
        assert found[-1] == ("a\ufffd",)
        assert findings.total("invalid-utf8") == 1


class TestHostile:
    @pytest.mark.parametrize(
        "statement",
        [
            "SELECT * FROM part",
            "SELECT load_extension('x')",
            "SELECT randomblob(1000000000)",
            "DELETE FROM message",
            "CREATE TABLE other (a)",
            "ATTACH '/etc/passwd' AS other",
            "PRAGMA writable_schema = ON",
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
        ],
    )
    def test_only_real_tables(self, store, statement):
        """R-12, R-21: views, functions, loops, changes and other files are refused."""
        path, connection = store
        connection.execute("CREATE VIEW part AS SELECT hex(zeroblob(1000000000)) AS id FROM message")
        with pytest.raises(UsageError) as caught, open_copy(path) as copy:
            copy.execute(statement).fetchall()
        assert caught.value.code == "unreadable-file"

    def test_generated_column(self, tmp_path):
        """A column that computes is not computed: it is null, and the others are read."""
        path = tmp_path / "store.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE message (id TEXT, big AS (hex(zeroblob(9))))")
        connection.execute("INSERT INTO message (id) VALUES ('a')")
        connection.commit()
        connection.close()
        found, findings = all_rows(path, columns=["id", "big"])
        assert found == [("a", None)]
        assert list(findings.listed()) == []

    @pytest.mark.parametrize("data", [b"", b"no database", b"SQLite format 3\0" + b"\xff" * 4000])
    def test_no_database(self, tmp_path, data):
        """A file that is no database says so, or has no tables."""
        path = tmp_path / "store.db"
        path.write_bytes(data)
        try:
            with open_copy(path) as copy:
                assert table_names(copy) == frozenset()
        except UsageError as error:
            assert error.code == "unreadable-file"

    def test_damaged_schema(self, tmp_path):
        """A schema whose complaint is not even text is damage like any other."""
        path = tmp_path / "store.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE message (id)")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_master SET name = CAST(x'ff' AS TEXT), sql = CAST(x'ff' AS TEXT)")
        connection.commit()
        connection.close()
        with pytest.raises(UsageError) as caught, open_copy(path):
            pass
        assert caught.value.code == "unreadable-file"

    def test_damaged_page(self, tmp_path):
        """A damaged page ends its table with a finding; the rows before it stay."""
        path = tmp_path / "store.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE message (id INTEGER, data TEXT)")
        connection.executemany(
            "INSERT INTO message VALUES (?, ?)", [(number, "x" * 500) for number in range(500)]
        )
        connection.commit()
        connection.close()
        data = bytearray(path.read_bytes())
        middle = len(data) // 2 // 4096 * 4096
        data[middle : middle + 4096] = b"\xff" * 4096
        path.write_bytes(data)
        found, findings = all_rows(path, columns=["id"])
        assert 0 < len(found) < 500
        assert findings.total("malformed-line") == 1

    def test_links(self, store, tmp_path):
        """R-21: a link is opened only where a person named it."""
        path, _ = store
        link = tmp_path / "link.db"
        link.symlink_to(path)
        with pytest.raises(UsageError), open_copy(link):
            pass
        with open_copy(link, follow=True) as copy:
            # The log of the real file lies beside the real file.
            assert table_names(copy) == {"message"}

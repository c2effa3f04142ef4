"""Small parts: reading entries and lines, server names, publication, filter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import StorageError
from onrecord.base.wire import Request
from onrecord.record.recorder.daemon import RandomPool
from onrecord.record.recorder.entries import Entry, read_entry
from onrecord.record.recorder.members import BadEntryError
from onrecord.record.recorder.naming import server_name
from onrecord.record.recorder.publication import Publication
from onrecord.record.recorder.reading import read_line, writable

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
MEMBERS = st.sampled_from(
    [
        "kind",
        "time",
        "mono_ns",
        "connection",
        "call",
        "session",
        "server",
        "tool",
        "actionDigest",
        "content",
        "data",
    ]
)


class TestEntries:
    @given(value=JSON)
    def test_any_json_is_an_entry_or_a_bad_one(self, value):
        """Reading never ends in anything but an entry or a BadEntryError."""
        with pytest.raises(BadEntryError):
            read_entry(value)

    @given(index=st.integers(0, 11), member=MEMBERS, value=JSON)
    def test_mutated_entries(self, index, member, value, entries):
        """One wrong member makes a bad entry or an entry, never another error."""
        whole = entries.conversation()
        raw = [*whole["authority"], *whole["guard"]][index] | {member: value}
        try:
            assert isinstance(read_entry(raw), Entry)
        except BadEntryError as error:
            assert str(value) not in str(error) or len(str(value)) < 8

    def test_every_kind_is_read(self, entries):
        """The examples of all kinds are read."""
        whole = entries.conversation()
        kinds = [read_entry(raw).kind for raw in [*whole["authority"], *whole["guard"]]]
        assert set(kinds) == {"decision", "proof", "connection", "invocation", "result", "denied"}


class TestLines:
    @given(data=st.binary(max_size=200))
    def test_any_bytes(self, data):
        """Any line is a request, an error answer or nothing."""
        line = data.replace(b"\n", b"")
        assert isinstance(read_line(line), Request | bytes | None)

    @given(value=JSON)
    def test_writable(self, value):
        """What was read leniently can be written."""
        json.dumps(writable(value), ensure_ascii=False, allow_nan=False).encode("utf-8")

    def test_depth(self):
        """A line that is nested too deeply is refused without being parsed."""
        line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
        assert b"depth" in read_line(line)

    @pytest.mark.parametrize(
        ("line", "word"),
        [
            (b"nonsense", b"parse_error"),
            (b"[]", b"invalid_request"),
            (b'{"jsonrpc":"2.0","id":true,"method":"m"}', b"invalid_request"),
            (b'{"jsonrpc":"1.0","id":1,"method":"m"}', b"invalid_request"),
            (b'{"jsonrpc":"2.0","id":1,"method":"m","params":[]}', b"invalid_params"),
        ],
    )
    def test_broken_lines_are_answered(self, line, word):
        """Each broken line has its answer."""
        assert word in read_line(line)

    def test_notification(self):
        """A notification is ignored."""
        assert read_line(b'{"jsonrpc":"2.0","method":"m"}') is None


class TestServerName:
    @pytest.mark.req("TI-155", "TI-160")
    def test_url_of_the_deployment(self):
        """A server with a URL has it as its name, without user information, query and fragment."""
        name = server_name(
            "files", ti_server="https://user:pw@tools.example.com:8443/mcp?k=1#x", own_name="files-server"
        )
        assert name == ("https://tools.example.com:8443/mcp", False)

    @pytest.mark.req("TI-156")
    def test_own_name_then_id(self):
        """Without a URL the name in serverInfo counts, without one the deployment id."""
        assert server_name("files", ti_server=None, own_name="example-files") == ("example-files", False)
        assert server_name("files", ti_server="", own_name=None) == ("files", False)

    @pytest.mark.req("TI-157")
    def test_host_tools(self):
        """Tools of the host have the server !host, if the deployment says so."""
        assert server_name("host", ti_server="!host", own_name=None) == ("!host", False)

    @pytest.mark.req("TI-158")
    @pytest.mark.parametrize(
        "own", ["!host", "!other", "https://bank.example.com", "http://u:p@x.example.com/?q"]
    )
    def test_a_server_cannot_pass_for_another(self, own):
        """A name that a server gives itself and that begins with ! or looks like a URL is marked."""
        text, is_prefixed = server_name("files", ti_server=None, own_name=own)
        assert is_prefixed
        assert text.startswith("name:")
        assert "u:p@" not in text

    @pytest.mark.req("TI-158")
    def test_reserved_names_of_a_deployment(self):
        """A reserved name that nobody defines is marked too."""
        assert server_name("files", ti_server="!mine", own_name=None) == ("name:!mine", True)


class TestPublication:
    def test_finished_file_is_never_replaced(self, short_dir):
        """Writing to a name that is taken fails and leaves the file as it was."""
        publication = Publication(short_dir, is_shared=False)
        path = publication.place("u-1", date="2026-11-30T10:00:00Z")
        publication.write(path, b"one")
        with pytest.raises(StorageError) as error:
            publication.write(path, b"two")
        assert error.value.code == "record-exists"
        assert publication.read(path) == b"one"
        assert [one.name for one in path.parent.iterdir()] == [path.name]

    def test_modes(self, short_dir):
        """User mode: 0700 and 0600. System mode: the group may look, and directories inherit it."""
        private = Publication(short_dir / "a", is_shared=False)
        path = private.place("u-1", date="2026-11-30T10:00:00Z")
        private.write(path, b"one")
        assert [one.stat().st_mode & 0o7777 for one in (path, path.parent)] == [0o600, 0o700]
        (short_dir / "b").mkdir()
        (short_dir / "b").chmod(0o2750)
        shared = Publication(short_dir / "b", is_shared=True)
        path = shared.place("u-1", date="2026-11-30T10:00:00Z")
        shared.write(path, b"one")
        assert [one.stat().st_mode & 0o7777 for one in (path, path.parent)] == [0o640, 0o2750]

    def test_link_in_the_way(self, short_dir):
        """A symbolic link in place of the file is neither read nor followed."""
        publication = Publication(short_dir, is_shared=False)
        path = publication.place("u-1", date="2026-11-30T10:00:00Z")
        path.parent.mkdir(parents=True)
        (short_dir / "other").write_bytes(b"other")
        path.symlink_to(short_dir / "other")
        with pytest.raises(StorageError):
            publication.read(path)
        with pytest.raises(StorageError):
            publication.write(path, b"mine")
        assert (short_dir / "other").read_bytes() == b"other"


@given(counts=st.lists(st.integers(1, 40), max_size=60))
def test_salts_are_never_handed_out_twice(counts):
    """The pool gives the asked length, and no byte of it again."""
    pool = RandomPool(size_bytes=64)
    drawn = [pool(count) for count in counts]
    assert [len(one) for one in drawn] == counts
    long = [one for one in drawn if len(one) >= 16]
    assert len(set(long)) == len(long)

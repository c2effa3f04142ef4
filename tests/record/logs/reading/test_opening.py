"""Native files: what is opened, unpacked and decoded, and what a damaged archive still gives."""

import gzip
import hashlib
import io
import os

import pytest
import zstandard
from tests.record.logs.reading.test_lines import codes

from onrecord.base.errors import UsageError
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.reading.lines import read_lines
from onrecord.record.logs.reading.opening import NativeFile
from onrecord.record.logs.reading.records import Record
from support.data import shared_data

TEXT = b"".join(b'{"number":%d,"said":"hello %d"}\n' % (number, number * 7919) for number in range(20_000))


def opened(path, data, **options):
    path.write_bytes(data)
    file = NativeFile(path, **options)
    findings = FileFindings(file.name)
    with file.open(findings) as stream:
        text = stream.read()
    return file, text, codes(findings)


def frames(*texts, **options):
    return b"".join(zstandard.ZstdCompressor(**options).compress(text) for text in texts)


class TestFiles:
    def test_plain(self, tmp_path):
        """A-06: size and hash are those of the bytes on disk, whether they were read to the end or not."""
        file, text, found = opened(tmp_path / "a.jsonl", TEXT)
        assert (text, file.size, file.compression, found) == (TEXT, len(TEXT), None, {})
        assert file.sha256 == hashlib.sha256(TEXT).hexdigest()
        unread = NativeFile(tmp_path / "a.jsonl")
        assert unread.head(10) == TEXT[:10]
        assert unread.sha256 == file.sha256

    def test_progress(self, tmp_path):
        """The reads from disk are told while they happen."""
        (tmp_path / "a.jsonl").write_bytes(TEXT)
        file = NativeFile(tmp_path / "a.jsonl")
        told = []
        file.on_read = told.append
        with file.open() as stream:
            stream.read(1)
            assert 0 < sum(told) < len(TEXT)
            stream.read()
        assert sum(told) == len(TEXT)

    def test_kinds(self, tmp_path):
        """R-21: neither pipes nor folders are opened, links only where a person named them."""
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "real").write_bytes(b"{}\n")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        for name in ("pipe", "missing", "link", "", "na\0me"):
            with pytest.raises(UsageError) as caught:
                NativeFile(tmp_path / name)
            assert caught.value.code == "unreadable-file"
        assert NativeFile(tmp_path / "link", follow=True).head(9) == b"{}\n"

    def test_name_decides_nothing(self, tmp_path):
        """An archive is known by its bytes, and so is a plain file with an archive's name."""
        assert opened(tmp_path / "a.jsonl", frames(TEXT))[1] == TEXT
        assert opened(tmp_path / "a.jsonl.zst", TEXT)[1] == TEXT


class TestUtf16:
    @pytest.mark.parametrize(
        ("encoding", "mark"),
        [("utf-16-le", True), ("utf-16-be", True), ("utf-16-le", False), ("utf-16-be", False)],
    )
    def test_decoded(self, tmp_path, encoding, mark):
        """R-02: UTF-16 is decoded, with a byte order mark and without."""
        text = ("\ufeff" if mark else "") + '{"a":"ä😀"}\n' * 5
        _, read, found = opened(tmp_path / "a.jsonl", text.encode(encoding))
        assert read.decode() == '{"a":"ä😀"}\n' * 5
        assert found == {"utf-16": 1}

    def test_broken(self, tmp_path):
        """D-LOG-25: half a pair is U+FFFD, in the middle and at the end."""
        data = b"\xff\xfe" + "a".encode("utf-16-le") + b"\x00\xd8" + "b".encode("utf-16-le") + b"\x00"
        assert opened(tmp_path / "a.jsonl", data)[1].decode() == "a\ufffdb\ufffd"

    def test_nul_bytes_are_none(self, tmp_path):
        """R-03: a block of NUL bytes is no UTF-16."""
        for data in (b"\0" * 64 + b"{}\n", b"{\0\0\0}\n"):
            assert opened(tmp_path / "a.jsonl", data)[1:] == (data, {})


class TestZstd:
    @pytest.mark.parametrize(
        "data",
        [
            frames(TEXT),
            frames(TEXT[:999], b"", TEXT[999:]),
            frames(TEXT, write_checksum=True),
            frames(TEXT, write_content_size=False),
            zstandard.ZstdCompressor(level=19).compressobj().compress(b"") + frames(TEXT),
            b"\x50\x2a\x4d\x18\x05\0\0\0other" + frames(TEXT) + b"\x5f\x2a\x4d\x18\0\0\0\0",
        ],
    )
    def test_frames(self, tmp_path, data):
        """R-11: frames of all sorts, several in a row, skippable ones between them."""
        file, text, found = opened(tmp_path / "a.jsonl.zst", data)
        assert (text, file.compression, found) == (TEXT, "zst", {})
        assert file.sha256 == hashlib.sha256(data).hexdigest()

    def test_every_cut(self, tmp_path):
        """R-11, B-12: an archive cut anywhere gives the beginning of its text and one finding."""
        first = frames(TEXT[:300_000], write_checksum=True)
        data = first + frames(b"second frame\n")
        seen = set()
        for end in (*range(4, 20), *range(20, len(data) - 40, 9_973), *range(len(data) - 40, len(data))):
            file, text, found = opened(tmp_path / "a.zst", data[:end])
            assert (TEXT[:300_000] + b"second frame\n").startswith(text)
            assert found == ({} if end == len(first) else {"truncated-archive": 1})
            assert file.sha256 == hashlib.sha256(data[:end]).hexdigest()
            seen.add(len(text))
        assert {0, 131_072, 262_144, 300_000} <= seen

    @pytest.mark.parametrize("behind", [b"rubbish", b"\x28\xb5", b"\x28\xb5\x2f\xfd"])
    def test_rubbish_behind(self, tmp_path, behind):
        """R-11: what follows the last frame is reported; the frames are read."""
        _, text, found = opened(tmp_path / "a.zst", frames(TEXT) + behind)
        assert (text, found) == (TEXT, {"truncated-archive": 1})

    def test_damage(self, tmp_path):
        """R-11: damaged bytes give no traceback, and the same hash as any file."""
        data = bytearray(frames(TEXT, write_checksum=True))
        for place in range(4, len(data), max(len(data) // 40, 1)):
            damaged = bytes(data[:place]) + bytes([data[place] ^ 0x5A]) + bytes(data[place + 1 :])
            file, text, found = opened(tmp_path / "a.zst", damaged)
            assert found == {"truncated-archive": 1} or text == TEXT
            assert file.sha256 == hashlib.sha256(damaged).hexdigest()

    def test_bomb(self, tmp_path):
        """R-11: blocks are unpacked one by one, so that 2 KB cannot become gigabytes at once."""
        # A frame of 64 MiB: 512 blocks of which each repeats one byte 128 KiB.
        size = 128 << 10
        block = (size << 3 | 1 << 1).to_bytes(3, "little") + b"x"
        last = (size << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"x"
        path = tmp_path / "a.zst"
        path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x38" + block * 511 + last)
        with NativeFile(path).open() as stream:
            sizes = [len(part) for part in iter(lambda: stream.read1(1 << 30), b"")]
        assert sum(sizes) == 64 << 20
        assert max(sizes) <= 1 << 20

    def test_sample(self):
        """The cut rollout of the acceptance list has 74 whole lines."""
        file = NativeFile(shared_data("traces", "edge-cases", "codex-truncated.jsonl.zst"))
        findings = FileFindings(file.name)
        with file.open(findings) as stream:
            items = list(read_lines(stream, findings))
        assert sum(isinstance(item, Record) for item in items) == 74
        assert findings.total("truncated-archive") == 1


class TestGzip:
    def test_members(self, tmp_path):
        """R-11: several members in a row, with padding between and behind them."""
        data = gzip.compress(TEXT[:999]) + b"\0" * 70_000 + gzip.compress(TEXT[999:]) + b"\0" * 512
        file, text, found = opened(tmp_path / "a.jsonl.gz", data)
        assert (text, file.compression, found) == (TEXT, "gz", {})

    def test_cuts(self, tmp_path):
        """R-11: a cut archive gives the beginning of its text and one finding."""
        data = gzip.compress(TEXT)
        for end in range(2, len(data), len(data) // 40):
            _, text, found = opened(tmp_path / "a.gz", data[:end])
            assert TEXT.startswith(text)
            assert found == {"truncated-archive": 1}

    def test_gzip_checksum(self, tmp_path):
        """A gzip archive whose checksum or length is wrong gives its whole text, and the finding."""
        for at in (-8, -1):
            data = bytearray(gzip.compress(TEXT))
            data[at] ^= 0xFF
            _, text, found = opened(tmp_path / "a.gz", bytes(data))
            assert (text, found) == (TEXT, {"truncated-archive": 1})

    def test_damage(self, tmp_path):
        """R-11: a damaged byte ends the text with a finding."""
        data = bytearray(gzip.compress(TEXT))
        data[len(data) // 2] ^= 0xFF
        _, text, found = opened(tmp_path / "a.gz", bytes(data))
        assert text[: len(text) // 4] == TEXT[: len(text) // 4]
        assert len(text) < len(TEXT) + (1 << 18)
        assert found == {"truncated-archive": 1}

    def test_bomb(self, tmp_path):
        """R-11: a bomb is unpacked in pieces of bounded size."""
        path = tmp_path / "a.gz"
        path.write_bytes(gzip.compress(b"x" * (64 << 20), compresslevel=1))
        with NativeFile(path).open() as stream:
            sizes = [len(part) for part in iter(lambda: stream.read1(1 << 30), b"")]
        assert sum(sizes) == 64 << 20
        assert max(sizes) <= 1 << 20


def test_streams_are_readers(tmp_path):
    """A packed file is a binary stream like any other."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    with NativeFile(tmp_path / "a.gz").open() as stream:
        assert isinstance(stream, io.BufferedReader)
        assert list(stream) == [b"one\n", b"two\n"]

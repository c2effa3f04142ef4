"""Signed notes and checkpoints: the published example, our own, and everything that is refused."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.base.errors import LogError, MalformedError, OnrecordError, UsageError
from onrecord.record.ledger._c2sp_note import (
    MAX_NOTE_BYTES,
    MAX_NOTE_SIGNATURES,
    CheckpointText,
    Note,
    NoteKey,
    ed25519_key_id,
    sign_note,
)
from onrecord.record.ledger.checkpoints import Checkpoint, CheckpointSigner, origin_of
from support.data import shared_data

PUBLISHED_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PUBLISHED_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ORIGIN = "host.example/authority/journal/1"
TEXT = f"{ORIGIN}\n4\n{b64encode(b'r' * 32).decode()}\n"


@pytest.fixture
def note(signer):
    return CheckpointSigner(signer, origin=ORIGIN).sign(4, b"r" * 32)


def signed(signer, text, name=ORIGIN):
    raw = signer.public_key.public_bytes_raw()
    return sign_note(
        text, name=name, key_id=ed25519_key_id(name, raw), sign=lambda data: signer.sign(data, alg="Ed25519")
    )


def refusal(check):
    with pytest.raises(OnrecordError) as caught:
        check()
    return caught.value.code


class TestPublished:
    def test_published_note(self):
        """The example of the signed-note documents is read and verifies with its verifier key."""
        key = NoteKey.read(PUBLISHED_KEY)
        assert Note.read(PUBLISHED_NOTE).verify([key]) == (key,)
        assert str(key) == PUBLISHED_KEY

    def test_published_note_changed(self):
        """With one word changed the known key's signature does not fit."""
        changed = Note.read(PUBLISHED_NOTE.replace("answer", "Answer"))
        assert (
            refusal(lambda: changed.verify([NoteKey.read(PUBLISHED_KEY)])) == "checkpoint-signature-invalid"
        )

    def test_shared_notes(self):
        """The notes of the shared vectors verify with their verifier key."""
        folder = shared_data("cose", "onrecord", "journal")
        key = NoteKey.read((folder / "vkey.txt").read_text())
        for name, size in (("ok.0.note", 4), ("ok.1.note", 9)):
            read = Note.read((folder / name).read_bytes())
            assert read.verify([key]) == (key,)
            assert CheckpointText.read(read.text).size == size


class TestOurs:
    def test_round_trip(self, note, signer):
        """What we sign is read back with the same origin, size and root, and has no extension lines."""
        checkpoint = Checkpoint.open(note, trusted={signer.kid: signer.public_key}, origin=ORIGIN)
        assert (checkpoint.origin, checkpoint.size, checkpoint.root) == (ORIGIN, 4, b"r" * 32)
        assert Note.read(note).text == TEXT

    def test_key_id(self, note, signer):
        """The key id is the first 4 bytes of SHA-256 over name, line feed, type 1 and key."""
        (line,) = Note.read(note).signatures
        assert line.key_id == ed25519_key_id(ORIGIN, signer.public_key.public_bytes_raw())
        assert line.name == ORIGIN

    def test_unknown_signers_are_ignored(self, note, signer, other_signer):
        """A line of somebody else changes nothing, wherever it stands."""
        foreign = signed(other_signer, TEXT, name="witness.example").rsplit("\n", 2)[1]
        head, line = note.split("\n\n")
        for lines in (f"{foreign}\n{line}", f"{line}{foreign}\n"):
            assert Checkpoint.open(f"{head}\n\n{lines}", trusted={signer.kid: signer.public_key}).size == 4

    def test_one_bad_signature_of_a_known_key_rejects(self, note, signer):
        """A second line of the known key that does not fit rejects the note, though the first one fits."""
        bad = signed(signer, TEXT.replace("\n4\n", "\n5\n")).rsplit("\n", 2)[1]
        check = lambda: Checkpoint.open(note + bad + "\n", trusted={signer.kid: signer.public_key})
        assert refusal(check) == "checkpoint-signature-invalid"

    def test_key_under_another_name(self, signer):
        """The known key counts only under the log's own name."""
        check = lambda: Checkpoint.open(
            signed(signer, TEXT, name="witness.example"), trusted={signer.kid: signer.public_key}
        )
        assert refusal(check) == "checkpoint-key-unknown"

    def test_unknown_key(self, note, other_signer):
        """A note by another key is `checkpoint-key-unknown`."""
        check = lambda: Checkpoint.open(note, trusted={other_signer.kid: other_signer.public_key})
        assert refusal(check) == "checkpoint-key-unknown"

    def test_other_log(self, note, signer):
        """A note of another origin is `checkpoint-other-log`."""
        check = lambda: Checkpoint.open(note, trusted={signer.kid: signer.public_key}, origin="x/journal/1")
        assert refusal(check) == "checkpoint-other-log"

    def test_no_contradiction_is_signed(self, signer):
        """The signer refuses a smaller tree, and another root for a size that it knows."""
        heads = CheckpointSigner(signer, origin=ORIGIN)
        heads.remember(4, b"r" * 32)
        assert heads.sign(4, b"r" * 32)
        assert heads.sign(5, b"s" * 32)
        assert refusal(lambda: heads.sign(3, b"r" * 32)) == "log-truncated"
        assert refusal(lambda: heads.sign(4, b"s" * 32)) == "log-rewritten"

    @pytest.mark.parametrize("name", ["", "a b", "a+b", "https://a.example", "a\nb", "a\u00a0b", "x" * 256])
    def test_names_that_no_journal_has(self, name):
        """A journal's name has no scheme, no white space and no plus sign."""
        with pytest.raises(UsageError) as caught:
            origin_of(name, 1)
        assert caught.value.code == "journal-name"


class TestLimits:
    def test_bytes(self, signer):
        """A note of exactly the largest size is read, one byte more is not."""
        tail = signed(signer, "x\n").split("\n\n")[1]
        text = "x" * (MAX_NOTE_BYTES - len(f"\n\n{tail}".encode())) + "\n"
        fits = text + "\n" + tail
        assert len(fits.encode()) == MAX_NOTE_BYTES
        assert Note.read(fits).text == text
        assert refusal(lambda: Note.read("x" + fits)) == "note-too-large"

    def test_signatures(self, note):
        """64 signature lines are read, 65 are not."""
        head, line = note.split("\n\n")
        assert len(Note.read(f"{head}\n\n{line * MAX_NOTE_SIGNATURES}").signatures) == MAX_NOTE_SIGNATURES
        assert refusal(lambda: Note.read(f"{head}\n\n{line * (MAX_NOTE_SIGNATURES + 1)}")) == "note-too-large"


def damaged_notes():
    good = PUBLISHED_NOTE
    yield "empty", ""
    yield "no signature", "text\n"
    yield "no empty line", good.replace("\n\n", "\n")
    yield "no final line feed", good[:-1]
    yield "carriage return", good.replace("\n", "\r\n")
    yield "tab", good.replace("problem,", "problem,\t")
    yield "hyphen for the dash", good.replace("—", "-")
    yield "two spaces", good.replace("— ", "—  ")
    yield "name with plus", good.replace("— Peter", "— Peter+")
    yield "base64 without padding", good.replace("JnAM=", "JnAM")
    yield "base64 with unused bits", good.replace("JnAM=", "JnAN=")
    yield "base64url", good.replace("/", "_")
    yield "signature too short", "x\n\n— a AAAA\n"
    yield "empty line at the end", good + "\n"
    yield "not UTF-8", good.encode() + b"\xff\n"
    yield "lone surrogate", good + "\ud800\n"


@pytest.mark.parametrize("bad", [pytest.param(bad, id=name) for name, bad in damaged_notes()])
def test_malformed_notes(bad):
    """A note that is not exactly of the form is refused as malformed."""
    with pytest.raises(MalformedError) as caught:
        Note.read(bad)
    assert caught.value.code == "note-malformed"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a\n1\n",
        "\n1\n" + "A" * 43 + "=\n",
        "a\n01\n" + "A" * 43 + "=\n",
        "a\n+1\n" + "A" * 43 + "=\n",
        "a\n\u0661\n" + "A" * 43 + "=\n",
        "a\n9223372036854775808\n" + "A" * 43 + "=\n",
        "a\n1\n" + "A" * 40 + "\n",
        "a\n1\n" + "A" * 42 + "B=\n",
        "a\n1\n" + "A" * 43 + "=\n\nx\n",
    ],
)
def test_malformed_checkpoints(text):
    """A checkpoint has an origin, a decimal size below 2**63 without leading zeros, a root of 32 bytes."""
    with pytest.raises(MalformedError) as caught:
        CheckpointText.read(text)
    assert caught.value.code == "checkpoint-malformed"


def test_extension_lines_are_kept():
    """Readers accept extension lines that are not empty."""
    text = f"a\n1\n{'A' * 43}=\none\ntwo\n"
    assert CheckpointText.read(text).extensions == ("one", "two")
    assert str(CheckpointText.read(text)) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a+b",
        "a+00000000+AQ==",
        PUBLISHED_KEY.replace("c74f", "c74e"),
        PUBLISHED_KEY.replace("ARp", "Apc"),
    ],
)
def test_malformed_verifier_keys(text):
    """A verifier key has a name, the key id that fits, and type 1."""
    with pytest.raises(MalformedError) as caught:
        NoteKey.read(text)
    assert caught.value.code == "note-key-malformed"


@given(st.binary(max_size=300) | st.text(max_size=300))
def test_random_input_raises_our_errors_only(data):
    """Whatever is read as a note is read or refused by us."""
    try:
        note = Note.read(data)
        CheckpointText.read(note.text)
    except MalformedError:
        pass


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_no_mutant_verifies(at, bit):
    """No note with one flipped bit verifies as another text."""
    raw = bytearray(PUBLISHED_NOTE.encode())
    raw[at % len(raw)] ^= 1 << bit
    try:
        Note.read(bytes(raw)).verify([NoteKey.read(PUBLISHED_KEY)])
    except (MalformedError, LogError):
        return
    raise AssertionError("a mutant verified")


@given(
    origin=st.text(
        st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="+"), min_size=1
    ),
    size=st.integers(0, 2**63 - 1),
    root=st.binary(min_size=32, max_size=32),
)
def test_checkpoint_text_round_trip(origin, size, root):
    """Every origin, size and root is read back as written."""
    text = CheckpointText(origin, size, root)
    assert CheckpointText.read(str(text)) == text

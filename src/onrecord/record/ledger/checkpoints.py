"""Checkpoints of a journal: signed tree heads that leave the machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from onrecord.base.errors import LogError, UsageError
from onrecord.base.keys import Signer, ed25519_public_bytes
from onrecord.record.ledger import _rfc9162
from onrecord.record.ledger._c2sp_note import CheckpointText, Note, NoteKey, ed25519_key_id, sign_note

TrustedKeys = Mapping[str, Ed25519PublicKey]
"""Public keys of journals by key id, as `base.keys.read_trusted_keys` returns them."""

_NAME: Final = re.compile(r"[^\s+\x00-\x1f\x7f]{1,255}")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A tree head whose signature was verified: size in records, root of 32 bytes, and the note itself.

    `kids` are the ids of the trusted keys that signed it.
    """

    origin: str
    size: int
    root: bytes
    note: str
    kids: frozenset[str]

    @classmethod
    def open(cls, note: bytes | str, *, trusted: TrustedKeys, origin: str | None = None) -> Self:
        """Read a note and verify it with the trusted keys; the key's name is the origin (transparency.md 4.5).

        `origin` is the log it must be of, if one is expected.

        Raises `MalformedError` with code "note-malformed", "note-too-large" or "checkpoint-malformed", `LogError`
        with code "checkpoint-other-log", "checkpoint-signature-invalid" or "checkpoint-key-unknown".
        """
        signed = Note.read(note)
        text = CheckpointText.read(signed.text)
        if origin is not None and text.origin != origin:
            raise LogError(
                "the checkpoint is of another log",
                code="checkpoint-other-log",
                hint=f"expected was the origin {origin}",
            )
        known = {NoteKey(text.origin, key.public_bytes_raw()): kid for kid, key in trusted.items()}
        kids = frozenset(known[key] for key in signed.verify(known))
        whole = note if isinstance(note, str) else note.decode("utf-8")
        return cls(text.origin, text.size, text.root, whole, kids)


class CheckpointSigner:
    """Signs the tree heads of one log, and never two that contradict each other."""

    def __init__(self, signer: Signer, *, origin: str) -> None:
        self.origin = origin
        self._signer = signer
        self._key_id = ed25519_key_id(origin, ed25519_public_bytes(signer))
        self._known_size = 0
        self._known_root = _rfc9162.EMPTY_ROOT

    def remember(self, size: int, root: bytes) -> None:
        """Take note of a tree head that left, or may have left, this process."""
        if size >= self._known_size:
            self._known_size, self._known_root = size, root

    def sign(self, size: int, root: bytes) -> str:
        """Return the note for a tree head.

        Raises `LogError` with code "log-truncated" or "log-rewritten" if it contradicts one that is known.
        """
        if size < self._known_size:
            raise LogError("a larger tree was signed before", code="log-truncated")
        if size == self._known_size and root != self._known_root:
            raise LogError("another tree of this size was signed before", code="log-rewritten")
        text = str(CheckpointText(self.origin, size, root))
        return sign_note(text, name=self.origin, key_id=self._key_id, sign=self._sign)

    def _sign(self, message: bytes) -> bytes:
        return self._signer.sign(message, alg="Ed25519")


def origin_of(recorder: str, epoch: int) -> str:
    """Return the origin of a journal: `<recorder>/journal/<epoch>`.

    Raises `UsageError` with code "journal-name" for a name with a scheme, white space or a plus sign.

    Source: transparency.md 4.5.
    """
    if not _NAME.fullmatch(recorder) or "://" in recorder:
        raise UsageError(
            "a journal's name has neither white space nor plus sign nor scheme, and 255 characters at most",
            code="journal-name",
        )
    return f"{recorder}/journal/{epoch}"


def require_same_history(root: bytes, checkpoint: Checkpoint) -> None:
    """Compare the recomputed root at a checkpoint's size with the checkpoint.

    Raises `LogError` with code "log-rewritten".
    """
    if root != checkpoint.root:
        raise LogError(
            f"the root over the first {checkpoint.size} records is not the one that was signed",
            code="log-rewritten",
            hint="records before that size were changed; keep the file and the checkpoint as evidence",
        )

"""Signed notes and log checkpoints of C2SP (signed-note, tlog-checkpoint): text with Ed25519 signature lines."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from binascii import Error as BinasciiError
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from onrecord.base.errors import LogError, MalformedError

MAX_NOTE_BYTES: Final = 65_536
"""Bytes read of one note: a checkpoint with sixteen post-quantum cosignatures has about 55 000."""

MAX_NOTE_SIGNATURES: Final = 64
"""Signature lines read per note: anyone can add one. Readers must accept at least 16."""

MAX_NAME_CHARACTERS: Final = 512
"""Longest key name: names are host names with a path."""

ED25519: Final = 0x01
"""Signature type of a plain Ed25519 signature over the note text."""

_DASH: Final = "— "
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_NAME: Final = re.compile(rf"[^\s+]{{1,{MAX_NAME_CHARACTERS}}}")


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: key name, 4-byte key id, and the signature bytes behind it."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A signed note. `text` ends with a line feed; the signatures are those found, not those verified."""

    text: str
    signatures: tuple[NoteSignature, ...]

    @classmethod
    def read(cls, data: bytes | str) -> Self:
        """Read a note strictly; nothing is repaired.

        Raises `MalformedError` with code "note-too-large" or "note-malformed".

        Source: C2SP signed-note, format.
        """
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        if len(raw) > MAX_NOTE_BYTES:
            raise MalformedError(f"the note has more than {MAX_NOTE_BYTES} bytes", code="note-too-large")
        try:
            whole = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise _malformed("it is not UTF-8") from None
        if _CONTROL.search(whole):
            raise _malformed("it holds a control character")
        split = whole.rfind("\n\n")
        if split < 0 or not whole.endswith("\n"):
            raise _malformed("there is no empty line before signature lines")
        text, block = whole[: split + 1], whole[split + 2 :]
        lines = block.split("\n")[:-1]
        if not lines:
            raise _malformed("there is no signature line")
        if len(lines) > MAX_NOTE_SIGNATURES:
            raise MalformedError(
                f"the note has more than {MAX_NOTE_SIGNATURES} signatures", code="note-too-large"
            )
        return cls(text, tuple(_read_signature(line) for line in lines))

    def verify(self, keys: Iterable[NoteKey]) -> tuple[NoteKey, ...]:
        """Return the keys whose signatures verify, at least one.

        Signatures of unknown keys are ignored; one bad signature of a known key rejects the note.

        Raises `LogError` with code "checkpoint-signature-invalid" or "checkpoint-key-unknown".

        Source: C2SP signed-note, verification.
        """
        known = {(key.name, key.key_id): key for key in keys}
        good: list[NoteKey] = []
        for line in self.signatures:
            key = known.get((line.name, line.key_id))
            if key is None:
                continue
            if not key.accepts(self.text.encode("utf-8"), line.signature):
                raise LogError(
                    "the signature of a known key does not fit the note",
                    code="checkpoint-signature-invalid",
                    hint="the note was changed, or it was signed by another key under this key's id",
                )
            if key not in good:
                good.append(key)
        if not good:
            raise LogError(
                "no signature of the note is by a key that we know",
                code="checkpoint-key-unknown",
                hint="add the journal's public key to the trust file",
            )
        return tuple(good)


@dataclass(frozen=True, slots=True)
class NoteKey:
    """A public key under a name: what C2SP calls a verifier. `public_key` has 32 bytes (Ed25519)."""

    name: str
    public_key: bytes

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a verifier key, "name+hex key id+base64 of type and key".

        Raises `MalformedError` with code "note-key-malformed".
        """
        parts = text.strip().split("+", 2)
        raw = _decode_base64(parts[2]) if len(parts) == 3 else None
        if raw is None or len(raw) != 33 or raw[0] != ED25519 or not _is_name(parts[0]):
            raise MalformedError("not a verifier key of type Ed25519", code="note-key-malformed")
        key = cls(parts[0], raw[1:])
        if key.key_id.hex() != parts[1]:
            raise MalformedError("the key id does not fit name and key", code="note-key-malformed")
        return key

    def __str__(self) -> str:
        encoded = b64encode(bytes((ED25519,)) + self.public_key).decode("ascii")
        return f"{self.name}+{self.key_id.hex()}+{encoded}"

    @property
    def key_id(self) -> bytes:
        """Return the first 4 bytes of SHA-256(name || 0x0A || type || key)."""
        return ed25519_key_id(self.name, self.public_key)

    def accepts(self, message: bytes, signature: bytes) -> bool:
        """Say whether the signature fits the message."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public_key).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


def ed25519_key_id(name: str, public_key: bytes) -> bytes:
    """Return the 4-byte key id of an Ed25519 key under a name."""
    return hashlib.sha256(name.encode("utf-8") + b"\n" + bytes((ED25519,)) + public_key).digest()[:4]


def sign_note(text: str, *, name: str, key_id: bytes, sign: Callable[[bytes], bytes]) -> str:
    """Return the note of `text`, which ends with a line feed, with one signature line.

    The one place where the kind of signature is chosen: another type has another key id and another `sign`.

    Raises `MalformedError` with code "note-malformed" for a text or name that no note can have.
    """
    if not text.endswith("\n") or _CONTROL.search(text) or not _is_name(name):
        raise _malformed("the text must end with a line feed, the name must hold neither space nor plus sign")
    encoded = b64encode(key_id + sign(text.encode("utf-8"))).decode("ascii")
    return f"{text}\n{_DASH}{name} {encoded}\n"


@dataclass(frozen=True, slots=True)
class CheckpointText:
    """The signed text of a checkpoint: origin, tree size, root hash (32 bytes), extension lines."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str) -> Self:
        """Read the text part of a note as a checkpoint.

        Raises `MalformedError` with code "checkpoint-malformed".

        Source: C2SP tlog-checkpoint, note text.
        """
        lines: Sequence[str] = text.split("\n")[:-1]
        if len(lines) < 3 or not lines[0] or not all(lines[3:]):
            raise MalformedError("not the lines origin, size, root", code="checkpoint-malformed")
        if not _SIZE.fullmatch(lines[1]) or int(lines[1]) >= 1 << 63:
            raise MalformedError("the size is not a decimal number below 2**63", code="checkpoint-malformed")
        root = _decode_base64(lines[2])
        if root is None or len(root) != 32:
            raise MalformedError("the root is not 32 bytes in base64", code="checkpoint-malformed")
        return cls(lines[0], int(lines[1]), root, tuple(lines[3:]))

    def __str__(self) -> str:
        head = f"{self.origin}\n{self.size}\n{b64encode(self.root).decode('ascii')}\n"
        return head + "".join(f"{line}\n" for line in self.extensions)


def _read_signature(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    raw = _decode_base64(encoded) if space and line.startswith(_DASH) else None
    if raw is None or len(raw) < 5 or not _is_name(name):
        raise _malformed("a signature line is not a dash, a name, and base64 of key id and signature")
    return NoteSignature(name, raw[:4], raw[4:])


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def _decode_base64(text: str) -> bytes | None:
    """Decode standard base64 with padding; None unless it is the one way to write these bytes."""
    try:
        raw = a2b_base64(text.encode("ascii"), strict_mode=True)
    except (BinasciiError, UnicodeEncodeError):
        return None
    return raw if b64encode(raw).decode("ascii") == text else None


def _malformed(reason: str) -> MalformedError:
    return MalformedError(f"this is not a signed note: {reason}", code="note-malformed")

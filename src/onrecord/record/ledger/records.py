"""Journal records: their bytes, what stands beside them, and how they are read back.

`record.bytes` is written once and hashed as stored; reading never writes it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from onrecord.base.canonical import compact
from onrecord.base.errors import LogError, OnrecordError, UsageError

RECORD_VERSION: Final = 1
"""`v` of the records written here."""

SALT_BYTES: Final = 32
"""Length of the random salt of a body: as long as the hash, so that no guess can be confirmed without it."""

MAX_RECORD_BYTES: Final = 1 << 25
"""Largest record: a record/append line has 17 MiB at most, and its entry may be kept as it came."""

MAX_BODY_BYTES: Final = 1 << 25
"""Largest body: content is at most 16 MiB, larger is replaced by its hash before it comes here."""

MAX_BODIES: Final = 64
"""Bodies of one record: one entry has arguments or content, a few parts at most."""

MAX_KNOWN_TYPES: Final = 256
"""Record types whose text is kept ready: there are some forty, and callers could invent more."""

JOURNAL_OPEN: Final = "journal.open"
JOURNAL_CLOSE: Final = "journal.close"
SESSION_OPEN: Final = "session.open"
SESSION_CLOSE: Final = "session.close"
HEARTBEAT: Final = "heartbeat"
STATEMENT: Final = "statement"
KEY_CHANGED: Final = "key.changed"
ERASURE: Final = "erasure"


class Receipt(NamedTuple):
    """What a writer gets once its record is on disk: its number, the tree size, the signed checkpoint."""

    seq: int
    size: int
    note: str


@dataclass(frozen=True, slots=True)
class Body:
    """Erasable bytes beside a record, under a part name that is unique in it."""

    part: str
    bytes: bytes = field(repr=False)
    media_type: str = "application/json"


class SaltedBody(NamedTuple):
    """A body as it goes into its table."""

    part: str
    salt: bytes
    bytes: bytes


@dataclass(frozen=True, slots=True)
class BodyReference:
    """What a record says of a body: SHA-256(salt || bytes) in hex, length in bytes, media type."""

    part: str
    sha256: str
    length: int
    media_type: str


@dataclass(frozen=True, slots=True)
class Record:
    """A record that was read. `time` is RFC 3339 UTC, `mono_ns` CLOCK_BOOTTIME of the boot named by `boot`."""

    seq: int
    type: str
    time: str
    mono_ns: int
    boot: str
    session: str | None
    data: Mapping[str, Any] = field(repr=False)
    bodies: tuple[BodyReference, ...]
    recorder: str
    epoch: int

    @classmethod
    def read(cls, data: bytes) -> Record:
        """Read the bytes of one record.

        Raises `LogError` with code "record-malformed".
        """
        try:
            raw = orjson.loads(data)
            record = cls(
                seq=_of(int, raw["seq"]),
                type=_of(str, raw["type"]),
                time=_of(str, raw["time"]),
                mono_ns=_of(int, raw["mono_ns"]),
                boot=_of(str, raw["boot"]),
                session=_of(str, raw["session"]) if "session" in raw else None,
                data=_of(dict, raw["data"]),
                bodies=tuple(_read_reference(reference) for reference in _of(list, raw["bodies"])),
                recorder=_of(str, raw["recorder"]),
                epoch=_of(int, raw["epoch"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LogError("the record is not JSON of the journal's form", code="record-malformed") from error
        if raw.get("v") != RECORD_VERSION:
            raise LogError("the record is of another version", code="record-malformed")
        return record


def _read_reference(raw: Any) -> BodyReference:
    return BodyReference(
        part=_of(str, raw["part"]),
        sha256=_of(str, raw["sha256"]),
        length=_of(int, raw["length"]),
        media_type=_of(str, raw["media_type"]),
    )


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(kind.__name__)
    return value


def salt_bodies(
    bodies: Sequence[Body], salts: Sequence[bytes]
) -> tuple[list[dict[str, Any]], tuple[SaltedBody, ...]]:
    """Return the `bodies` member of a record and the rows beside it.

    Raises `UsageError` with code "record-body" for too many or too large bodies, or two of one part.
    """
    if len(bodies) > MAX_BODIES or len({body.part for body in bodies}) != len(bodies):
        raise UsageError(f"a record has at most {MAX_BODIES} bodies of different parts", code="record-body")
    references: list[dict[str, Any]] = []
    rows: list[SaltedBody] = []
    for body, salt in zip(bodies, salts, strict=True):
        if len(body.bytes) > MAX_BODY_BYTES:
            raise UsageError(f"a body has more than {MAX_BODY_BYTES} bytes", code="record-body")
        references.append(
            {
                "part": body.part,
                "sha256": hashlib.sha256(salt + body.bytes).hexdigest(),
                "length": len(body.bytes),
                "media_type": body.media_type,
            }
        )
        rows.append(SaltedBody(body.part, salt, body.bytes))
    return references, tuple(rows)


class RecordForm:
    """Writes the records of one journal: sorted members, no white space.

    The members that never change are written once; only `data` and `bodies` go through the JSON writer each time.
    """

    def __init__(self, recorder: str, epoch: int, *, boot: str) -> None:
        self._boot = b',"boot":' + compact(boot) + b',"data":'
        self._epoch = b',"epoch":%d,"mono_ns":' % epoch
        self._recorder = b',"recorder":' + compact(recorder) + b',"seq":'
        self._types: dict[str, bytes] = {}

    def write(
        self,
        seq: int,
        type: str,
        data: Mapping[str, Any],
        *,
        time: str,
        mono_ns: int,
        session: str | None = None,
        bodies: Sequence[Mapping[str, Any]] = (),
    ) -> bytes:
        """Return the bytes of a record. `time` has the form of `format_ms`.

        Raises `UsageError` with code "record-not-json" or "record-too-large".
        """
        try:
            written = b'{"bodies":%b%b%b%b%d%b%d%b,"time":"%b"%b' % (
                compact(bodies) if bodies else b"[]",
                self._boot,
                compact(data),
                self._epoch,
                mono_ns,
                self._recorder,
                seq,
                b',"session":' + compact(session) if session is not None else b"",
                time.encode("ascii"),
                self._types.get(type) or self._end(type),
            )
        except OnrecordError as error:
            raise UsageError("the record's data cannot be written as JSON", code="record-not-json") from error
        if len(written) > MAX_RECORD_BYTES:
            raise UsageError(f"the record has more than {MAX_RECORD_BYTES} bytes", code="record-too-large")
        return written

    def _end(self, type: str) -> bytes:
        end = b',"type":%b,"v":%d}' % (compact(type), RECORD_VERSION)
        if len(self._types) < MAX_KNOWN_TYPES:
            self._types[type] = end
        return end


def ranges_of(numbers: Sequence[int]) -> list[list[int]]:
    """Return sorted numbers as closed ranges: [1, 2, 3, 7] is [[1, 3], [7, 7]]."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges

"""Decisions on their way to the recorder: numbered in the journal, sent after their commit, resent after a restart.

Nothing here ever holds up issue or verify: entries wait in memory, and when there are too many they are read again
from the journal. The cursor file only saves work; without it everything is offered again and the recorder ignores
what it has.

Source: running.md 8, 12 (row "authority to recorder behind"); call-proof.md 12.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onrecord.authorize.authority.reasons import DECISION_RECORDS, RecordType
from onrecord.base.canonical import compact
from onrecord.base.dates import format_ms
from onrecord.base.errors import NetworkError, OnrecordError
from onrecord.base.files import read_regular, replace_whole
from onrecord.base.ids import random_id
from onrecord.base.namespaces import PROTOCOL_VERSION
from onrecord.base.rpc_client import RpcClient
from onrecord.base.strict_json import MAX_SAFE_INTEGER, parse
from onrecord.record.recorder.settings import APPEND_BATCH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from onrecord.base.dates import Clock
    from onrecord.record.ledger.journal import Journal

QUEUED_ENTRIES: Final = 8192
"""Entries kept in memory for the recorder; older ones are read from the journal again."""

GATHER_SECONDS: Final = 0.02
"""How long the first new decision waits for others: one append for many is less work on both sides."""

READ_RECORDS: Final = 512
"""Journal records looked at in one step when entries are read again."""

CURSOR_NS: Final = 1_000_000_000
"""The cursor is written at most this often, in nanoseconds: it only saves work."""

CALL_TIMEOUT_MS: Final = 5000
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 5.0


class QueuedEntry(NamedTuple):
    """One decision in memory: its number, journal sequence, and what the entry is made from."""

    number: int
    seq: int
    type: str
    data: Mapping[str, Any]
    time_ns: int
    mono_ns: int


class Cursor(NamedTuple):
    """How far the recorder is. `base` is the entry number before the first one of this source."""

    source: str
    base: int
    through: int
    """Highest entry number that was acknowledged."""
    seq: int
    """A journal sequence at or before that of entry `through`."""


_DECISIONS: Final = {
    RecordType.ISSUE_GRANTED: "allowed",
    RecordType.ISSUE_DENIED: "disallowed",
    RecordType.APPROVAL_PENDING: "permission-required",
}


def entry_of(number: int, type_: str, data: Mapping[str, Any], *, time: str, mono_ns: int) -> dict[str, Any]:
    """Return the record/append entry of one record about a decision. `number` is the number on the wire.

    Source: running.md 8, kinds `decision` and `proof`.
    """
    entry: dict[str, Any] = {
        "n": number,
        "kind": "decision",
        "time": time,
        "mono_ns": mono_ns if mono_ns <= MAX_SAFE_INTEGER else str(mono_ns),
    }
    body = {member: data[member] for member in ("server", "actionDigest", "operationId")}
    granted = type_ == RecordType.ISSUE_GRANTED
    for member in ("proofRef", "approvalId"):
        if member in data:
            body[member] = data[member]
    if granted and (data.get("afterApproval") or (data.get("round") and data.get("continues"))):
        # The operation has its decision already: the one that asked for permission, or that of its first round.
        return entry | body | {"kind": "proof"} | ({"round": data["round"]} if data.get("round") else {})
    if "inputDigest" in data:
        body["inputDigest"] = data["inputDigest"]
    entry |= body | {
        "session": {"uid": data["platform"]["uid"], "caller": data["caller"], "label": data["session"]},
        "tool": data["name"],
        "decision": _DECISIONS[RecordType(type_)],
    }
    if type_ == RecordType.ISSUE_DENIED:
        entry |= {"ref": data["ref"], "reason": "call-proof: denied"}
    return entry


def last_entry_number(journal: Journal) -> int:
    """Return the number of the newest entry in the journal, 0 if there is none. Reads backwards."""
    end = journal.size
    while end > 0:
        start = max(0, end - READ_RECORDS)
        for record in reversed(journal.read(start, end - start)):
            if record.type in DECISION_RECORDS and "entry" in record.data:
                return int(record.data["entry"])
        end = start
    return 0


def source_of(journal: Journal) -> str:
    """Return the source id of this journal: the same after a restart, another one for another journal file."""
    first = journal.read(0, 1)
    seed = f"{first[0].time} {first[0].mono_ns} {first[0].boot} {first[0].data}" if first else ""
    return "a-" + hashlib.sha256(seed.encode("utf-8")).hexdigest()[:16]


class RecorderFeed:
    """Ships decisions to record.sock. Used by the event loop's thread alone."""

    def __init__(
        self, journal: Journal, *, socket: Path, expected_uid: int, cursor_file: Path, clock: Clock
    ) -> None:
        self._journal = journal
        self._socket = socket
        self._expected_uid = expected_uid
        self._cursor_file = cursor_file
        self._clock = clock
        self._last = last_entry_number(journal)
        self._cursor = _read_cursor(cursor_file) or Cursor(source_of(journal), 0, 0, 0)
        self._position = self._cursor.through + 1
        self._scan: tuple[int, int] = (self._cursor.through, self._cursor.seq)
        self._queue: deque[QueuedEntry] = deque()
        self._committed = journal.size
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._saved_ns = 0
        self.is_connected = False
        """Whether the recorder answers now; False makes the authority's status `degraded`."""

    @property
    def next_number(self) -> int:
        """The number that the next decision gets in its journal record."""
        return self._last + 1

    @property
    def backlog(self) -> int:
        """Entries that the recorder has not acknowledged."""
        return max(0, self._last - self._cursor.through)

    def add(self, seq: int, type_: str, data: Mapping[str, Any]) -> None:
        """Take a decision whose record, with `next_number` in it, was handed to the journal as `seq`."""
        self._last += 1
        if len(self._queue) >= QUEUED_ENTRIES:
            self._queue.popleft()
        self._queue.append(
            QueuedEntry(self._last, seq, type_, data, self._clock.now_ns(), self._clock.boottime_ns())
        )

    def committed(self, size: int) -> None:
        """Learn that the journal has `size` records on its medium; entries among them may leave."""
        self._committed = size
        if self._last >= self._position:
            self._news.set()

    def start(self) -> None:
        """Begin to connect and ship, in the background."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self, *, grace_seconds: float = 0.5) -> None:
        """Give what is committed a short time to leave, write the cursor and end."""
        self._committed = self._journal.size
        self._news.set()
        deadline = asyncio.get_running_loop().time() + grace_seconds
        while self.is_connected and self.backlog and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        task, self._task = self._task, None
        while task is not None and not task.done():
            # Before Python 3.12 asyncio.wait_for may swallow one cancellation, so one is not enough.
            task.cancel()
            await asyncio.wait({task}, timeout=0.1)
        self._save()

    async def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        while True:
            client: RpcClient | None = None
            try:
                client = await RpcClient.connect(
                    self._socket, expected_uid=self._expected_uid, timeout_ms=CALL_TIMEOUT_MS
                )
                await self._hello(client)
                self.is_connected = True
                pause = FIRST_PAUSE_SECONDS
                client.on_close = self._news.set
                await self._ship(client)
            except OnrecordError:
                # whatever it was, of the recorder or of our journal: the feed begins again, and never ends
                pass
            finally:
                self.is_connected = False
                if client is not None:
                    client.on_close = None
                    client.close()
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _hello(self, client: RpcClient) -> None:
        for _ in range(2):
            answer = await client.call(
                "record/hello",
                {"versions": [PROTOCOL_VERSION], "source": self._cursor.source},
                timeout_ms=CALL_TIMEOUT_MS,
            )
            through = self._cursor.base + _count(answer, "through")
            if through <= self._last:
                break
            # The recorder has numbers that this journal lost: they must not be given to other decisions.
            base = min(self._cursor.through, self._last)
            self._cursor = Cursor(random_id("a-"), base, base, 0)
            self._save()
        if through < self._cursor.through:
            self._scan = (0, 0)
        self._cursor = self._cursor._replace(through=through, seq=min(self._cursor.seq, self._scan[1]))
        self._position = through + 1

    async def _ship(self, client: RpcClient) -> None:
        while True:
            self._news.clear()  # before looking: what is committed meanwhile rings again
            batch = await self._next_batch()
            if client.closed:
                raise NetworkError("the recorder closed the connection", code="closed")
            if not batch:
                await self._news.wait()
                await asyncio.sleep(GATHER_SECONDS)
                continue
            answer = await client.call(
                "record/append",
                {"entries": [entry for _, _, entry in batch]},
                timeout_ms=CALL_TIMEOUT_MS,
            )
            through = self._cursor.base + _count(answer, "through")
            sent = {number: seq for number, seq, _ in batch}
            self._cursor = self._cursor._replace(
                through=min(through, self._last), seq=sent.get(through, self._cursor.seq)
            )
            if through in sent:
                self._scan = (through, sent[through])
            self._position = self._cursor.through + 1
            if self._clock.boottime_ns() - self._saved_ns >= CURSOR_NS:
                self._save()

    async def _next_batch(self) -> list[tuple[int, int, dict[str, Any]]]:
        """Return number, journal sequence and entry of the next decisions that are committed."""
        while self._queue and self._queue[0].number < self._position:
            self._queue.popleft()
        if self._position > self._last:
            return []
        if not self._queue or self._queue[0].number > self._position:
            return await asyncio.to_thread(self._read_again, self._position, self._scan)
        batch: list[tuple[int, int, dict[str, Any]]] = []
        for queued in self._queue:
            if queued.seq >= self._committed or len(batch) >= APPEND_BATCH:
                break
            entry = entry_of(
                queued.number - self._cursor.base,
                queued.type,
                queued.data,
                time=format_ms(queued.time_ns),
                mono_ns=queued.mono_ns,
            )
            batch.append((queued.number, queued.seq, entry))
        return batch

    def _read_again(self, position: int, scan: tuple[int, int]) -> list[tuple[int, int, dict[str, Any]]]:
        batch: list[tuple[int, int, dict[str, Any]]] = []
        seq = scan[1] if scan[0] < position else 0
        while len(batch) < APPEND_BATCH:
            records = self._journal.read(seq, READ_RECORDS)
            for record in records:
                number = record.data.get("entry") if record.type in DECISION_RECORDS else None
                if number is None or number < position or len(batch) >= APPEND_BATCH:
                    continue
                entry = entry_of(
                    number - self._cursor.base,
                    record.type,
                    record.data,
                    time=record.time,
                    mono_ns=record.mono_ns,
                )
                batch.append((number, record.seq, entry))
            if len(records) < READ_RECORDS:
                break
            seq = records[-1].seq + 1
        return batch

    def _save(self) -> None:
        self._saved_ns = self._clock.boottime_ns()
        with contextlib.suppress(OSError):  # everything is offered again without it
            line = compact(self._cursor._asdict()) + b"\n"
            replace_whole(self._cursor_file, line, mode=0o600, durable=False)


def _count(answer: Any, member: str) -> int:
    value = answer.get(member) if isinstance(answer, dict) else None
    if type(value) is not int or value < 0:
        raise NetworkError("the recorder's answer has no usable count", code="answer-unreadable")
    return value


def _read_cursor(path: Path) -> Cursor | None:
    """Return the cursor, or None if there is none that can be used; then everything is offered again."""
    try:
        value, _ = parse(read_regular(path, limit_bytes=4096))
        cursor = Cursor(**value)
    except (OnrecordError, OSError, TypeError):
        return None
    counts: tuple[Any, ...] = (cursor.base, cursor.through, cursor.seq)
    source: Any = cursor.source
    good = type(source) is str and all(type(count) is int and count >= 0 for count in counts)
    return cursor if good else None

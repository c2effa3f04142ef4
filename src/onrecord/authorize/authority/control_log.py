"""control/decision-logging: reading the decision journal for an auditor, page by page.

Source: describe.md 6.1, row decision-logging.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onrecord.authorize.authority.reasons import RecordType
from onrecord.base.dates import parse_date
from onrecord.base.errors import MalformedError
from onrecord.base.wire import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from datetime import datetime

    from onrecord.record.ledger.journal import Journal

MAX_ENTRIES: Final = 1000
"""Entries of one page (describe.md 6.1)."""

DEFAULT_ENTRIES: Final = 100

PAGE_BYTES: Final = 900_000
"""Size of one page: it must fit into a line of the control socket."""

READ_RECORDS: Final = 500
MAX_SCANNED: Final = 50_000
"""Records looked at for one page. A rare filter gets an empty page and a cursor, not a slow answer."""

VERDICTS: Final[dict[str, frozenset[str]]] = {
    "allow": frozenset({RecordType.ISSUE_GRANTED, RecordType.VERIFY_VALID}),
    "deny": frozenset(
        {
            RecordType.ISSUE_DENIED,
            RecordType.ISSUE_REFUSED,
            RecordType.VERIFY_INVALID,
            RecordType.APPROVAL_REJECTED,
            RecordType.APPROVAL_EXPIRED,
        }
    ),
    "escalate": frozenset({RecordType.APPROVAL_PENDING, RecordType.APPROVAL_GRANTED}),
}
"""Which record types a verdict stands for. What people are asked, and what they allow, is escalated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """What an auditor asks for. `members` are compared with members of the record's data."""

    members: tuple[tuple[str, str], ...]
    types: frozenset[str] | None
    since: datetime | None
    until: datetime | None
    cursor: int
    limit: int

    @classmethod
    def read(cls, params: dict[str, Any]) -> LogFilter:
        """Read the parameters. Raises `RpcError` with invalid_params; `data.detail` names the member."""
        names = {"agent": "caller", "session": "session", "tool": "name", "reason": "reason"}
        names |= {"actionDigest": "actionDigest", "server": "server"}
        members = tuple((names[name], _text(params, name)) for name in names if name in params)
        if "commitment" in params:
            raise _invalid("commitment")
        types = None
        if "verdict" in params:
            verdict = params["verdict"]
            if type(verdict) is not str or verdict not in VERDICTS:
                raise _invalid("verdict")
            types = VERDICTS[verdict]
        limit, cursor = params.get("limit", DEFAULT_ENTRIES), params.get("cursor", 0)
        if type(limit) is not int or not 1 <= limit <= MAX_ENTRIES:
            raise _invalid("limit")
        if type(cursor) is not int or cursor < 0:
            raise _invalid("cursor")
        return cls(
            members=members,
            types=types,
            since=_date(params, "from"),
            until=_date(params, "until"),
            cursor=cursor,
            limit=limit,
        )

    def admits(self, record: Any) -> bool:
        """Say whether a journal record fits."""
        if self.types is not None and record.type not in self.types:
            return False
        if any(record.data.get(member) != value for member, value in self.members):
            return False
        if self.since is None and self.until is None:
            return True
        moment = parse_date(record.time)
        return (self.since is None or moment >= self.since) and (self.until is None or moment <= self.until)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """Entries in journal order. `next_cursor` is None at the end of the journal."""

    entries: tuple[dict[str, Any], ...]
    next_cursor: int | None


def search(journal: Journal, wanted: LogFilter) -> LogPage:
    """Read one page. Blocking: runs on a thread of its own."""
    entries: list[dict[str, Any]] = []
    cursor, size = wanted.cursor, 0
    while cursor - wanted.cursor < MAX_SCANNED:
        records = journal.read(cursor, READ_RECORDS)
        for record in records:
            if wanted.admits(record):
                entry = {"seq": record.seq, "time": record.time, "type": record.type, **record.data}
                entries.append(entry)
                size += len(str(entry))
                if len(entries) >= wanted.limit or size >= PAGE_BYTES // 2:
                    return LogPage(entries=tuple(entries), next_cursor=record.seq + 1)
            cursor = record.seq + 1
        if len(records) < READ_RECORDS:
            return LogPage(entries=tuple(entries), next_cursor=None)
    return LogPage(entries=tuple(entries), next_cursor=cursor)


def _invalid(member: str) -> RpcError:
    return RpcError(INVALID_PARAMS, "Invalid parameters", {"reason": "invalid_params", "detail": member})


def _text(params: dict[str, Any], member: str) -> str:
    text = params[member]
    if type(text) is not str or len(text) > 256:
        raise _invalid(member)
    return text


def _date(params: dict[str, Any], member: str) -> datetime | None:
    if member not in params:
        return None
    try:
        return parse_date(_text(params, member))
    except MalformedError:
        raise _invalid(member) from None

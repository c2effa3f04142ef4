"""What an importer of native logs is, and the registry of importers by format id.

A new format is one new module with one class:

    @register
    class Diary(Importer):
        format = "diary"
        title = "Diary of an invented agent"
        agent_kind = "diary"

        @classmethod
        def recognises(cls, value):
            return value.get("kind") == "diary-line"

        def record(self, record):
            session = self.trace.session(str(record.value.get("run", "")))
            entry = session.entry(record, time=record.value.get("at"))
            entry.text(record.value["said"], by=AGENT)

and a line in `FORMATS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from onrecord.base.errors import UsageError

if TYPE_CHECKING:
    from onrecord.record.logs.reading.records import Record
    from onrecord.record.logs.trace import Trace


class Importer(ABC):
    """Reads the native logs of one format. One object reads one source: a file, or a folder that is one store."""

    format: ClassVar[str]
    """Format id of native-logs.md section 3; the `trace-format` of AA appendix B."""

    title: ClassVar[str]
    """What the format is, for people."""

    agent_kind: ClassVar[str]
    """Name of the program that wrote the log (`cli_name`); part of the vCon's identity."""

    provider: ClassVar[str | None] = None
    """Vendor whose models alone the program uses, if the format says so."""

    carriers: ClassVar[frozenset[str]] = frozenset(["lines"])
    """How the format comes: "lines" (JSON lines), "document" (one JSON value), "values" (values glued together),
    "sqlite", "folder"."""

    has_text_times: ClassVar[bool] = True
    """Whether times are text in this format, so that a number as one is worth reporting."""

    tables: ClassVar[frozenset[str]] = frozenset()
    """Tables that an SQLite file of this format has at least."""

    is_grouped_by_folder: ClassVar[bool] = False
    """Whether sessions are only linked with others of the same folder and below, so that each folder's vCons can be
    written as soon as it is read."""

    is_newest_first: ClassVar[bool] = False
    """Whether files that were changed last are read first: what was told first stays, and in formats that rewrite their
    entries that shall be the newest version (R-16)."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace

    @classmethod
    @abstractmethod
    def recognises(cls, value: Mapping[str, Any]) -> bool:
        """Say whether a record is decisive for this format (native-logs.md section 3). Any JSON object may come."""

    @classmethod
    def recognises_document(cls, value: Any) -> bool:
        """Say whether one JSON value that fills a whole file is of this format. By default a decisive object."""
        return isinstance(value, dict) and cls.recognises(value)

    @classmethod
    def recognises_members(cls, names: frozenset[str]) -> bool:
        """Say whether a JSON object too large to be looked at, with these member names, is of this format."""
        return False

    @classmethod
    def recognises_tables(cls, names: frozenset[str]) -> bool:
        """Say whether an SQLite file with tables of these names is of this format."""
        return bool(cls.tables) and cls.tables <= names

    @classmethod
    def recognises_folder(cls, folder: Path, names: frozenset[str]) -> bool:
        """Say whether a folder with entries of these names is one store of this format, to be read as a whole."""
        return False

    @classmethod
    def hints_at(cls, path: Path) -> bool:
        """Say whether a file of this name lies where the program puts its logs. Breaks ties only."""
        return False

    @classmethod
    def comes_last(cls, path: Path) -> bool:
        """Say whether a file repeats what others tell, so that it is read behind them."""
        return False

    @classmethod
    def is_side_file(cls, path: Path) -> bool:
        """Say whether a file found while walking folders is read with another one, or is known not to be a log."""
        return False

    @classmethod
    def without_hashed(cls, value: Any) -> Any:
        """Return a record without what a decision tells by its hash only, for the content check (A-05)."""
        return value

    @classmethod
    def records_in(cls, value: Any) -> Iterator[Any]:
        """Yield the records in one JSON value of a source, in the order of their numbers, for the content check."""
        yield value

    def read(self) -> None:
        """Read the whole source. By default each record of its lines, then `finish`."""
        for record in self.trace.records():
            self.record(record)
        self.finish()

    def record(self, record: Record) -> None:
        """Map one record: every record gets an object, or `trace.duplicate`, or `trace.reported`."""
        raise NotImplementedError

    def finish(self) -> None:  # noqa: B027 - most formats have nothing left to do
        """Map what is only known at the end of the source."""


FORMATS: Final[Mapping[str, str]] = {
    "claude-jsonl": "onrecord.record.logs.claude.code",
    "claude-stream-json": "onrecord.record.logs.claude.stream",
    "codex-jsonl": "onrecord.record.logs.codex.rollout",
    "codex-exec-json": "onrecord.record.logs.codex.exec_events",
    "gemini-json": "onrecord.record.logs.gemini.chats",
    "opencode-json": "onrecord.record.logs.opencode.store",
    "cursor-stream-json": "onrecord.record.logs.cursor.stream",
    "cursor-jsonl": "onrecord.record.logs.cursor.transcript",
    "otel": "onrecord.record.logs.otel.spans",
    "ietf-vac-v3.0": "onrecord.record.logs.vacr",
}
"""Format ids and the modules that register them, in the order in which they are asked."""

_I = TypeVar("_I", bound=Importer)
_registry: dict[str, type[Importer]] = {}


def register(importer: type[_I]) -> type[_I]:
    """Enter an importer under its format id."""
    _registry[importer.format] = importer
    return importer


def importer_for(format: str) -> type[Importer]:
    """Return the importer of a format id.

    Raises `UsageError` with code "log-format-unknown".
    """
    if format not in _registry and format in FORMATS:
        import_module(FORMATS[format])
    try:
        return _registry[format]
    except KeyError:
        raise UsageError(
            f"there is no importer for a format of this name: {format[:64]}",
            code="log-format-unknown",
            hint=f"one of {', '.join(formats())}",
        ) from None


def formats() -> tuple[str, ...]:
    """Return the format ids, in the order in which detection asks."""
    return (*FORMATS, *(name for name in _registry if name not in FORMATS))


def importers(names: Iterable[str] | None = None) -> Iterator[type[Importer]]:
    """Yield the importers of these formats, or all of them."""
    for name in formats() if names is None else names:
        yield importer_for(name)

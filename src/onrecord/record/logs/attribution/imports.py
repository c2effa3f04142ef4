"""File Objects that a log brings with it: agent-trace records and those of VACR.

Source: native-logs.md F-04, F-07, F-09.
"""

from __future__ import annotations

import heapq
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from onrecord.record.logs.findings import FileFindings

TYPES: Final = frozenset(["human", "ai", "mixed", "unknown"])
"""What a contributor can be."""

MAX_LINE: Final = 2**53 - 1
"""Largest line number: a vCon's integers end there."""

_DIGITS: Final = {"sha-256": 64, "sha-384": 96, "sha-512": 128, "murmur3": 8, "md5": 32, "sha-1": 40}
_ALGORITHM: Final = re.compile(r"sha(\d+)")
_HASH: Final = re.compile(r"([A-Za-z0-9_-]{1,32}):(.*)", re.DOTALL)
_WEB: Final = ("http://", "https://")
_NAMES: Final = {
    "start-line": "start_line",
    "end-line": "end_line",
    "content-hash": "content_hash",
    "content-hash-alg": "content_hash_alg",
    "model-id": "model_id",
}


class _Source(NamedTuple):
    """One imported record about a file."""

    timestamp: int
    revision: str | None
    conversations: list[dict[str, Any]]


class ImportedFile:
    """What the records of a log say about one file."""

    def __init__(self) -> None:
        self._sources: list[_Source] = []
        self.rest: dict[str, Any] = {}

    def add(
        self,
        file: Mapping[str, Any],
        *,
        timestamp: int | None,
        revision: str | None,
        findings: FileFindings,
        record: int | None,
    ) -> None:
        """Take one File Object; `timestamp` is in nanoseconds since 1970."""
        reader = _Reader(findings, record)
        conversations = [reader.conversation(value) for value in reader.objects(file.get("conversations"))]
        self._sources.append(_Source(-1 if timestamp is None else timestamp, revision, conversations))
        for name, value in file.items():
            if name not in ("path", "conversations"):
                self.rest.setdefault(name, value)

    def conversations(self) -> list[dict[str, Any]]:
        """Return the File_Conversation Objects; of several records about one line the later one counts."""
        if len(self._sources) > 1:
            _settle(self._sources)
        return [conversation for source in self._sources for conversation in source.conversations]


def from_flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the File Object of a flat agent-trace record, one range with what else the record says beside it."""
    span = {
        name: record[name]
        for name in ("start_line", "end_line", "content_hash", "contributor")
        if name in record
    }
    known = {*span, "file_path", "schema", "timestamp"}
    rest = {name: value for name, value in record.items() if name not in known}
    return {"path": record.get("file_path"), "conversations": [{"ranges": [span], **rest}]}


class _Reader:
    """Makes the members of one record those of AA; what has no place there goes to `onrecord.rest`."""

    def __init__(self, findings: FileFindings, record: int | None) -> None:
        self._findings = findings
        self._record = record

    def objects(self, value: Any) -> list[dict[str, Any]]:
        """Return the objects of a list; anything else is reported."""
        if value is None:
            return []
        found = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(found) < len(value):
            self._findings.add(
                "odd-shape", record=self._record, message="a list of objects was expected in a File Object"
            )
        return found

    def conversation(self, native: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        spans: list[dict[str, Any]] = []
        for name, value in native.items():
            if name == "url" and type(value) is str and value.lower().startswith(_WEB):
                made["url"] = value
            elif name == "contributor" and (contributor := _contributor(value)):
                made["contributor"] = contributor
            elif name == "related" and _is_resources(value):
                made["related"] = value
            elif name == "ranges":
                odd = [span for span in self.objects(value) if not self._range(span, spans)]
                if odd:
                    rest["ranges"] = odd
            else:
                rest[name] = value
        made["ranges"] = spans
        if rest:
            made["onrecord"] = {"rest": rest}
        return made

    def _range(self, native: Mapping[str, Any], spans: list[dict[str, Any]]) -> bool:
        made: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for native_name, value in native.items():
            name = _NAMES.get(native_name, native_name)
            if (name in ("start_line", "end_line") and _is_line(value)) or (
                name in ("content_hash", "content_hash_alg") and type(value) is str
            ):
                made[name] = value
            elif name == "contributor" and (contributor := _contributor(value)):
                made["contributor"] = contributor
            else:
                rest[native_name] = value
        if made.get("start_line", MAX_LINE) > made.get("end_line", 0):
            self._findings.add(
                "odd-shape", record=self._record, message="a range without lines in a File Object"
            )
            return False
        if "content_hash" in made and self._split_hash(made):
            rest["truncated"] = True
        if rest:
            made["onrecord"] = {"rest": rest}
        spans.append(made)
        return True

    def _split_hash(self, span: dict[str, Any]) -> bool:
        """Divide "algorithm:value"; return whether the value is shorter than the algorithm gives."""
        value: str = span["content_hash"]
        algorithm: str = span.pop("content_hash_alg", "")
        match = _HASH.fullmatch(value)
        if match is not None:
            algorithm, value = match[1], match[2]
        name = _ALGORITHM.sub(r"sha-\1", algorithm.lower()) or "sha-256"
        span["content_hash"] = value
        if name != "sha-256":
            span["content_hash_alg"] = name if name in _DIGITS else algorithm
        if len(value) >= _DIGITS.get(name, 0):
            return False
        self._findings.add("attribution-hash-short", record=self._record)
        return True


class _Span(NamedTuple):
    """A range on its way through the sweep. The first three members are its rank, the best first."""

    age: int
    order: int
    source: int
    conversation: int
    native: dict[str, Any]
    contributor: str | None


class _Won(NamedTuple):
    """Lines of a range that no later record took."""

    span: _Span
    start: int
    end: int
    is_mixed: bool

    def range(self) -> dict[str, Any]:
        """Return the Range Object; the hash of a range that was cut says nothing of what is left."""
        made = self.span.native | {"start_line": self.start, "end_line": self.end}
        if self.is_mixed:
            made["contributor"] = {"type": "mixed"}
        if (
            made["start_line"] != self.span.native["start_line"]
            or made["end_line"] != self.span.native["end_line"]
        ):
            made.pop("content_hash", None)
            made.pop("content_hash_alg", None)
        return made


def _settle(sources: list[_Source]) -> None:
    """Give each line to the latest record that has it; records of one revision that disagree make it mixed."""
    spans: list[_Span] = []
    for number, source in enumerate(sources):
        for place, conversation in enumerate(source.conversations):
            own = conversation.get("contributor")
            for native in conversation["ranges"]:
                contributor = native.get("contributor", own)
                text = None if contributor is None else json.dumps(contributor, sort_keys=True)
                spans.append(_Span(-source.timestamp, -len(spans), number, place, native, text))
            conversation["ranges"] = []
    edges = sorted(
        [(span.native["start_line"], 1, at) for at, span in enumerate(spans)]
        + [(span.native["end_line"] + 1, 0, at) for at, span in enumerate(spans)]
    )
    active: list[tuple[int, int, int]] = []
    ended: set[int] = set()
    voices: dict[str | None, Counter[str]] = {}
    won: list[_Won] = []
    at = 0
    while at < len(edges):
        line = edges[at][0]
        while at < len(edges) and edges[at][0] == line:
            _, is_start, number = edges[at]
            span = spans[number]
            voice = voices.setdefault(sources[span.source].revision, Counter())
            if is_start:
                heapq.heappush(active, (span.age, span.order, number))
            else:
                ended.add(number)
            if span.contributor is not None:
                voice[span.contributor] += 1 if is_start else -1
                if not voice[span.contributor]:
                    del voice[span.contributor]
            at += 1
        while active and active[0][2] in ended:
            heapq.heappop(active)
        if active:
            winner = spans[active[0][2]]
            revision = sources[winner.source].revision
            is_mixed = revision is not None and len(voices[revision]) > 1
            start = line
            if won and won[-1].span is winner and won[-1].is_mixed == is_mixed:
                start = won.pop().start
            won.append(_Won(winner, start, edges[at][0] - 1, is_mixed))
    for part in won:
        span = part.span
        sources[span.source].conversations[span.conversation]["ranges"].append(part.range())


def _contributor(value: Any) -> dict[str, str] | None:
    """Return a Contributor Object, or None if the value has another shape."""
    if not isinstance(value, dict) or type(value.get("type")) is not str or value["type"] not in TYPES:
        return None
    made = {_NAMES.get(str(name), str(name)): inner for name, inner in value.items()}
    if not made.keys() <= {"type", "model_id"} or type(made.get("model_id", "")) is not str:
        return None
    return made


def _is_resources(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, dict) and type(item.get("type")) is str and type(item.get("url")) is str
        for item in value
    )


def _is_line(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MAX_LINE


def sorted_ranges(conversations: Iterable[dict[str, Any]]) -> None:
    """Put the ranges of each conversation in the order of their first lines."""
    for conversation in conversations:
        conversation["ranges"].sort(key=lambda span: (span["start_line"], span["end_line"]))

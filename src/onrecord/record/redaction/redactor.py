"""Redacts a vCon: a new instance in which what the rules name is gone, and a report of what went.

>>> from onrecord.record.vcon.model import Vcon
>>> vcon = Vcon.read(b'{"uuid":"01a19b83-0f20-8b33-832a-bc92ac6830cd","created_at":"2026-11-02T09:00:00Z",'
...     b'"parties":[{"name":"Ana Silva","tel":"+15550100"}]}')
>>> redaction = redact(vcon, rules=Rules.named("pii"))
>>> redaction.vcon.members["parties"], redaction.vcon.members["redacted_from"]["type"]
([{'name': 'party-1'}], 'PII masked')

Source: record.md 2.10, D-19 to D-21, 7.1; AA 7; TI 10.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.dates import SYSTEM_CLOCK, Clock
from onrecord.base.errors import MalformedError, UsageError, Where
from onrecord.base.findings import Finding
from onrecord.record.checks.collector import Collector
from onrecord.record.instances import new_identity, prior_name
from onrecord.record.redaction.actions import Actions, as_text
from onrecord.record.redaction.folding import is_unspaced
from onrecord.record.redaction.paths import DEEP, Path
from onrecord.record.redaction.patterns import MARK as PART_MARK
from onrecord.record.redaction.places import Place, holders, root, select
from onrecord.record.redaction.pseudonyms import Pseudonyms
from onrecord.record.redaction.report import RedactionReport
from onrecord.record.redaction.rule import Rule
from onrecord.record.redaction.rules import Rules
from onrecord.record.redaction.searching import TextSearch
from onrecord.record.redaction.shapes import INDEXED
from onrecord.record.redaction.texts import MARK, TextRewriter
from onrecord.record.redaction.understanding import Understanding
from onrecord.record.redaction.words import EITHER_CASE_FROM, SHORTEST, Replacer, words_of_name
from onrecord.record.vcon.event_types import SUPPORTED_EXTENSIONS
from onrecord.record.vcon.memory import paused_collection
from onrecord.record.vcon.model import Vcon
from onrecord.record.vcon.versions import unsupported_critical

MIN_NAME_CHARACTERS: Final = 3
"""Shortest value that is taken out of other texts; shorter ones are syllables, but where a sign is a word."""

_CONTENT_HASH: Final = re.compile(r"[a-z0-9]+-[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Redaction:
    """The redacted vCon, the report, and notes on what is left to do: to review reasoning, to sign.

    `originals` says what each pseudonym stands for. Whoever has it can undo them, so it is never part of the report.
    """

    vcon: Vcon
    report: RedactionReport
    originals: Mapping[str, str] = field(repr=False)
    findings: tuple[Finding, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the text of the redacted vCon. Raises `MalformedError` with code "not-canonical"."""
        return self.vcon.to_bytes()


def redact(
    vcon: Vcon,
    *,
    rules: Rules,
    type: str | None = None,
    allow: Collection[str] = (),
    domain: str | None = None,
    clock: Clock = SYSTEM_CLOCK,
    salt: bytes | None = None,
    url: str | None = None,
    content_hash: str | Sequence[str] | None = None,
) -> Redaction:
    """Return a redacted copy of a vCon as a new instance, unsigned.

    `type` says in `redacted_from` what kind of redaction it is, by default what the rules say. Extensions that nobody
    knows here are refused unless the rules or `allow` name them; their members do not come along all the same.
    `domain` makes the new uuid one of version 8. `salt` (16 bytes or more) makes hashes comparable between exports.
    `url` with `content_hash` says where the less redacted vCon lies; it must be encrypted there.

    Raises `MalformedError` with code "redactor-extension-unknown" or "critical-unsupported", `UsageError` with code
    "content-hash-missing", "url-not-https" or "redaction-salt-short".

    Source: record.md 2.10, PR-11, PR-13.
    """
    members = vcon.members
    reference = _reference(url, content_hash)
    allowed = rules.allowed_extensions | frozenset(allow)
    unknown = _unknown_extensions(members, allowed)
    report = RedactionReport(
        type or rules.type, rules.name, source_uuid=vcon.uuid if rules.names_source else None
    )
    with paused_collection(len(vcon.raw or b"")):
        run = _Run(vcon, rules, report, Pseudonyms(salt=salt))
        copied = run.redacted()
    _drop_extensions(copied, unknown, report, keep=run.keeps_unknown)
    copied.update(new_identity(domain=domain, clock=clock))
    report.uuid = copied["uuid"]
    if rules.names_source and vcon.uuid is not None:
        reference["uuid"] = vcon.uuid
    copied[prior_name("redacted_from", vcon.version)] = {**reference, "type": report.type}
    return Redaction(Vcon(copied), report, run.pseudonyms.originals, _findings(copied))


def _findings(members: dict[str, Any]) -> tuple[Finding, ...]:
    collector = Collector()
    collector.add("redacted-unsigned", "")
    events = members.get("events")
    for index, event in enumerate(events if isinstance(events, list) else ()):
        if event.get("type") == "reasoning" and event.get("content") not in (None, "", MARK):
            collector.add("reasoning-unredacted", f"/events/{index}/content")
    return collector.in_order(members)


def _reference(url: str | None, content_hash: str | Sequence[str] | None) -> dict[str, Any]:
    if url is None:
        return {}
    if not url.startswith("https://"):
        raise UsageError("the url of the less redacted vCon is not https", code="url-not-https")
    hashes = [content_hash] if isinstance(content_hash, str) else list(content_hash or ())
    if not hashes or not all(_CONTENT_HASH.fullmatch(item) for item in hashes):
        raise UsageError(
            "a url of the less redacted vCon needs the content_hash of what lies there",
            code="content-hash-missing",
            hint='"sha512-" and the SHA-512 of the encrypted file in base64url',
        )
    return {"url": url, "content_hash": hashes[0] if len(hashes) == 1 else hashes}


def _unknown_extensions(members: Mapping[str, Any], allowed: Collection[str]) -> dict[str, int]:
    """Return the unknown extensions that are allowed, with their index. Raises for one that is not."""
    critical = unsupported_critical(members)
    if critical:
        raise MalformedError(
            "the vCon calls an extension critical that is not supported, so it may not be processed",
            code="critical-unsupported",
            where=Where(pointer=critical[0]),
            hint="ask whoever made it for a vCon without it",
        )
    unknown: dict[str, int] = {}
    listed = members.get("extensions")
    for index, name in enumerate(listed if isinstance(listed, list) else ()):
        if name in SUPPORTED_EXTENSIONS if isinstance(name, str) else name is None:
            continue
        if not isinstance(name, str) or name not in allowed:
            raise MalformedError(
                "the vCon lists an extension that is not known here: what it adds cannot be redacted",
                code="redactor-extension-unknown",
                where=Where(pointer=f"/extensions/{index}"),
                hint="allow it by name, and its members are left out",
            )
        unknown[name] = index
    return unknown


def _drop_extensions(
    members: dict[str, Any], unknown: Mapping[str, int], report: RedactionReport, *, keep: bool
) -> None:
    for index in unknown.values():
        report.dropped("extension-unknown", f"/extensions/{index}")
    listed = members.get("extensions")
    if isinstance(listed, list) and not keep:
        members["extensions"] = [name for name in listed if name not in unknown]
        if not members["extensions"]:
            del members["extensions"]


class _Run:
    """One redaction: the copy, and the rules in their order."""

    def __init__(self, vcon: Vcon, rules: Rules, report: RedactionReport, pseudonyms: Pseudonyms) -> None:
        self._vcon = vcon
        self._rules = rules
        self._report = report
        self._handled: set[tuple[int, Any]] = set()
        self._owners: dict[int, Any] = {}
        self._holders: set[tuple[int, Any]] = set()
        self._gone: dict[str, str] = {}
        self._gone_words: dict[str, str] = {}
        self._actions = Actions(pseudonyms)
        self.pseudonyms = pseudonyms
        self.keeps_unknown = False

    def redacted(self) -> dict[str, Any]:
        """Return the redacted copy of the members."""
        original = root(self._vcon.members)
        kept = {
            place.identity
            for rule in self._rules.rules
            if rule.action == "keep"
            for place in select(original, rule.path)
            if place.meets(rule.where, rule.unless)
        }
        understanding = Understanding(frozenset(self._vcon.extensions), kept, self._report)
        members = understanding.copy(self._vcon.members)
        self.keeps_unknown = understanding.keeps_unknown
        top = root(members)
        texts: list[Rule] = []
        for rule in self._rules.rules:
            if rule.is_search:
                texts.append(rule)
            else:
                before = self._report.total
                self._apply(top, rule)
                self._tell_if_idle(rule, before)
        self._apply_texts(top, texts)
        self._count_kept(members)
        return members

    def _apply(self, top: Place, rule: Rule) -> None:
        work = select(top, rule.path)
        work.reverse()
        while work:
            place = work.pop()
            if not place.is_there() or place.identity in self._handled:
                continue
            if rule.action != "keep" and place.identity in self._holders:
                work.extend(reversed(list(place.children())))
            elif place.meets(rule.where, rule.unless):
                self._apply_here(place, rule)
        if rule.action == "keep":
            self._holders = holders(top, self._handled)

    def _tell_if_idle(self, rule: Rule, before: int) -> None:
        if rule.is_own and rule.action != "keep" and self._report.total == before:
            self._report.took_nothing(rule.name)

    def _apply_here(self, place: Place, rule: Rule) -> None:
        if rule.action != "keep":
            before = _texts_of(place) if rule.everywhere != "no" else []
            count = self._actions.apply(place, rule)
            if not count:
                return
            self._report.changed(rule.name, rule.action, place.pointer, count)
            self._remember(before, rule, place)
        if place.is_there():
            self._handle(select(place, _EVERY))

    def _handle(self, places: Sequence[Place]) -> None:
        """Leave places alone from now on. Their owners stay alive: a new object must not get the identity of one."""
        for place in places:
            self._handled.add(place.identity)
            self._owners[id(place.owner)] = place.owner

    def _remember(self, texts: Sequence[str], rule: Rule, place: Place) -> None:
        """Remember what was taken out, to take it out of other texts too."""
        label = rule.label or place.shape.name or "value"
        for text in texts:
            if len(text) < MIN_NAME_CHARACTERS and not (
                len(text) >= SHORTEST and (rule.everywhere == "words" or all(map(is_unspaced, text)))
            ):
                continue
            if rule.action == "pseudonym":
                mark = self.pseudonyms.numbered(label, text)
            elif rule.action == "random":
                mark = self.pseudonyms.random(text)
            else:
                mark = PART_MARK.format(label)
            if rule.everywhere != "words" or len(text) >= EITHER_CASE_FROM or all(map(is_unspaced, text)):
                self._gone.setdefault(text, mark)
            if rule.everywhere == "words":
                for word in words_of_name(text):
                    self._gone_words.setdefault(word, mark)

    def _apply_texts(self, top: Place, texts: Sequence[Rule]) -> None:
        everywhere = Replacer(self._gone, names=self._gone_words)
        if everywhere:
            rewriter = TextRewriter([everywhere.find], has_credentials=False)
            TextSearch(rewriter, "everywhere", self._report, self._handled, self.pseudonyms).run([top])
        for rule in texts:
            rewriter = TextRewriter(rule.finders, has_credentials=rule.has_credentials)
            search = TextSearch(
                rewriter,
                rule.name,
                self._report,
                self._handled,
                self.pseudonyms,
                where=rule.where,
                unless=rule.unless,
            )
            before = self._report.total
            search.run(select(top, rule.path[:-1] if rule.path[-1:] == _EVERY else rule.path))
            self._tell_if_idle(rule, before)

    def _count_kept(self, members: Mapping[str, Any]) -> None:
        for name in INDEXED:
            items = members.get(name)
            for item in items if isinstance(items, list) else ():
                if any(item.get(key) not in (None, "", [], {}) for key in _CONTENT):
                    self._report.kept[name] += 1


_CONTENT: Final = ("body", "url", "input", "output", "content", "data", "encrypted")
_EVERY: Final[Path] = (DEEP,)


def _texts_of(place: Place) -> list[str]:
    """Return the texts at and below a place."""
    found: list[str] = []
    for inner in select(place, _EVERY):
        value = inner.value
        if type(value) in (str, int, float) and not inner.shape.is_structure:
            found.append(as_text(value))
    return found

"""Reads the rules of a rule file. Every complaint names the file, the line of the rule and the key.

Source: record.md PR-08.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path as FilePath
from typing import Any, Final, NoReturn

from onrecord.base.errors import UsageError, Where
from onrecord.record.redaction.expressions import compile_expression
from onrecord.record.redaction.fitting import fault_of
from onrecord.record.redaction.paths import DEEP, Path, parse_path
from onrecord.record.redaction.patterns import CREDENTIALS, PATTERNS, Finder
from onrecord.record.redaction.rule import ACTIONS, Condition, Rule
from onrecord.record.redaction.words import word_finder

KEYS: Final = frozenset(["name", "type", "about", "extends", "name_source", "allow_extensions", "rule"])
_RULE_KEYS: Final = frozenset(
    [
        "path",
        "event_type",
        "where",
        "unless",
        "action",
        "pattern",
        "regex",
        "words",
        "label",
        "everywhere",
    ]
)
_EVERYWHERE: Final = frozenset(["remove", "mask", "hash", "pseudonym", "random"])
_WORD_CHARACTERS: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")


class RuleReader:
    """Reads the tables of one rule file, whose text tells the lines."""

    def __init__(self, text: str, file: FilePath | None, *, is_own: bool) -> None:
        self._text = text
        self._file = file
        self._is_own = is_own

    def refuse(self, message: str, path: tuple[str | int, ...]) -> NoReturn:
        refuse_rules(message, self._where(path))

    def _where(self, path: tuple[str | int, ...]) -> Where:
        pointer = "".join(f"/{part}" for part in path)
        return Where(
            file=str(self._file) if self._file is not None else None, line=self._line(path), pointer=pointer
        )

    def _line(self, path: tuple[str | int, ...]) -> int | None:
        """Return the line of the table that a rule begins with: there are many tables of one name."""
        if len(path) < 2 or type(path[1]) is not int:
            return None
        starts = [
            number
            for number, line in enumerate(self._text.splitlines(), start=1)
            if line.replace(" ", "").startswith("[[rule]]")
        ]
        return starts[path[1]] if path[1] < len(starts) else None

    def known(self, table: Mapping[str, Any], keys: frozenset[str], path: tuple[str | int, ...]) -> None:
        for key in table:
            if key not in keys:
                near = get_close_matches(key, sorted(keys), n=1)
                what = f"; did you mean {near[0]}?" if near else ""
                self.refuse(f"there is no key of this name here{what}", (*path, key))

    def text(self, table: Mapping[str, Any], key: str, path: tuple[str | int, ...]) -> str | None:
        value = table.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            self.refuse(f"{key} is a text that is not empty", (*path, key))
        return value

    def texts(self, table: Mapping[str, Any], key: str, path: tuple[str | int, ...]) -> list[str]:
        value = table.get(key, [])
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not all(isinstance(item, str) and item for item in values):
            self.refuse(f"{key} is a text or a list of texts", (*path, key))
        return values

    def _condition(self, table: Mapping[str, Any], key: str, path: tuple[str | int, ...]) -> Condition:
        value = table.get(key, {})
        if not isinstance(value, dict):
            self.refuse(f"{key} is a table of members and values", (*path, key))
        return {name: frozenset(self.texts(value, name, (*path, key))) for name in value}

    def rule(self, table: Mapping[str, Any], index: int, owner: str) -> Rule:
        path: tuple[str | int, ...] = ("rule", index)
        self.known(table, _RULE_KEYS, path)
        action = self.text(table, "action", path) or "mask"
        if action not in ACTIONS:
            self.refuse(f"there is no action of this name; actions: {', '.join(ACTIONS)}", (*path, "action"))
        label = self.text(table, "label", path)
        if label is not None and (len(label) > 40 or not _WORD_CHARACTERS.issuperset(label)):
            self.refuse("a label has at most 40 small letters, digits and hyphens", (*path, "label"))
        finders, has_credentials = self._finders(table, path, label)
        if (finders or has_credentials) and action != "mask":
            self.refuse("pattern, regex and words go with the action mask", (*path, "action"))
        where = dict(self._condition(table, "where", path))
        types = self.texts(table, "event_type", path)
        if types:
            where["type"] = frozenset(types)
        steps = self._path(table, path, is_event=bool(types), has_pattern=bool(finders or has_credentials))
        return Rule(
            name=f"{owner} {index + 1}",
            action=action,
            path=steps,
            where=where,
            unless=self._condition(table, "unless", path),
            finders=finders,
            has_credentials=has_credentials,
            label=label,
            everywhere=self._everywhere(table, path, action, is_pattern=bool(finders or has_credentials)),
            is_own=self._is_own,
        )

    def require_fitting(self, rules: Sequence[Rule], keeps: Collection[Path]) -> None:
        """Refuse rules of this file that can never take anything out, whatever members other rules keep."""
        for index, rule in enumerate(rules):
            fault = None
            if rule.action != "keep":
                fault = fault_of(rule.path, keeps=keeps, is_search=rule.is_search)
            if fault is not None:
                raise UsageError(
                    fault.message,
                    code=fault.code,
                    hint=fault.hint,
                    where=self._where(("rule", index, "path")),
                )

    def _everywhere(
        self, table: Mapping[str, Any], path: tuple[str | int, ...], action: str, *, is_pattern: bool
    ) -> str:
        value = table.get("everywhere", False)
        if value is False:
            return "no"
        if value is not True and value != "words":
            self.refuse('everywhere is true, false or "words"', (*path, "everywhere"))
        if action not in _EVERYWHERE or is_pattern:
            self.refuse("everywhere goes with rules that take out a whole value", (*path, "everywhere"))
        return "value" if value is True else "words"

    def _path(
        self, table: Mapping[str, Any], path: tuple[str | int, ...], *, is_event: bool, has_pattern: bool
    ) -> Path:
        text = self.text(table, "path", path)
        if text is None:
            if not is_event and not has_pattern:
                self.refuse("a rule needs a path", path)
            return parse_path("/events/*") if is_event else (DEEP,)
        try:
            steps = parse_path(text)
        except UsageError as error:
            error.where = self._where((*path, "path"))
            raise
        if is_event and steps[:1] != ("events",):
            self.refuse("with event_type the path begins with /events", (*path, "path"))
        if table.get("action") == "placeholder" and (len(steps) != 2 or DEEP in steps):
            self.refuse("placeholder is for whole elements, like /events/*", (*path, "path"))
        return steps

    def _finders(
        self, table: Mapping[str, Any], path: tuple[str | int, ...], label: str | None
    ) -> tuple[tuple[Finder, ...], bool]:
        finders: list[Finder] = []
        has_credentials = False
        for name in self.texts(table, "pattern", path):
            if name not in PATTERNS:
                known = ", ".join(PATTERNS)
                self.refuse(f"there is no pattern of this name; patterns: {known}", (*path, "pattern"))
            if name == CREDENTIALS:
                has_credentials = True
            else:
                finders.append(PATTERNS[name])
        for expression in self.texts(table, "regex", path):
            try:
                finders.append(compile_expression(expression, label=label or "text"))
            except UsageError as error:
                error.where = self._where((*path, "regex"))
                raise
        words = self.texts(table, "words", path)
        if words:
            finders.append(word_finder(self._long_enough(words, path), label=label or "word"))
        return tuple(finders), has_credentials

    def _long_enough(self, words: Iterable[str], path: tuple[str | int, ...]) -> list[str]:
        found = list(words)
        if any(len(word) < 2 for word in found):
            self.refuse("words have two characters or more", (*path, "words"))
        return found


def refuse_rules(message: str, where: Where) -> NoReturn:
    """Raise `UsageError` with code "redaction-rules-invalid"."""
    raise UsageError(
        message,
        code="redaction-rules-invalid",
        hint="onrecord redact --show pii prints a profile to start from",
        where=where,
    ) from None

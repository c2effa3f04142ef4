"""Rules of redaction: which values, and what becomes of them. Read from TOML, or one of the named profiles.

    >>> Rules.named("credentials").type
    'credentials removed'

Source: record.md PR-08 to PR-10; AA 7.2, 7.3.
"""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any, Final, Self

from onrecord.base.errors import UsageError, Where
from onrecord.record.redaction.fitting import kept_by
from onrecord.record.redaction.rule import Rule
from onrecord.record.redaction.rule_reader import KEYS, RuleReader, refuse_rules

PROFILES: Final = ("credentials", "pii", "content", "audit", "pseudonymous-tools", "unlinkable")
"""Named sets of rules that come with the package."""

MAX_RULES_BYTES: Final = 1_000_000
"""Size of a rule file: far beyond any written by hand."""

MAX_EXTENDS: Final = 8
"""Levels of rule files and profiles that extend each other, so that a circle ends."""

MAX_SETS: Final = 64
"""Rule files and profiles that one names in all: each level can name many, so that a few could take forever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rules in the order in which they are applied. The first one that changes a place decides about it.

    `type` is the kind of redaction that `redacted_from` names. Without `names_source` the result does not say which
    vCon it was made from. `allowed_extensions` are unknown extensions in spite of which a vCon is redacted.
    """

    name: str
    type: str
    rules: tuple[Rule, ...]
    names_source: bool = True
    allowed_extensions: frozenset[str] = frozenset()

    @classmethod
    def named(cls, name: str) -> Self:
        """Return a named profile. Raises `UsageError` with code "redaction-profile-unknown"."""
        return cls._read(profile_text(name), file=None, name=name, above=_Above())

    @classmethod
    def load(cls, path: FilePath) -> Self:
        """Read a rule file (TOML).

        Raises `UsageError` with code "redaction-rules-unreadable", "redaction-rules-invalid",
        "redaction-path-invalid", "redaction-path-unknown", "redaction-path-structure", "redaction-pattern-invalid",
        "redaction-pattern-slow" or "redaction-profile-unknown".
        """
        return cls._read(_text_of_file(path), file=path, name=path.stem, above=_Above())

    @classmethod
    def of(cls, members: Mapping[str, Any], *, name: str = "rules") -> Self:
        """Return rules given as Python values, with the keys of a rule file. Raises as `load` does."""
        return cls._of(members, text="", file=None, name=name, above=_Above())

    @classmethod
    def combined(cls, sets: Sequence[Self]) -> Self:
        """Return several sets as one, applied in this order.

        Raises `UsageError` with code "redaction-rules-missing" if there is none.
        """
        if not sets:
            raise UsageError(
                "no rules are named",
                code="redaction-rules-missing",
                hint=f"name a rule file or one of the profiles {', '.join(PROFILES)}",
            )
        if len(sets) == 1:
            return sets[0]
        return cls(
            name=" + ".join(one.name for one in sets),
            type="; ".join(dict.fromkeys(one.type for one in sets)),
            rules=tuple(rule for one in sets for rule in one.rules),
            names_source=all(one.names_source for one in sets),
            allowed_extensions=frozenset().union(*(one.allowed_extensions for one in sets)),
        )

    @classmethod
    def _read(cls, text: str, *, file: FilePath | None, name: str, above: _Above) -> Self:
        where = Where(file=str(file)) if file is not None else Where(file=f"profile {name}")
        try:
            members = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            refuse_rules(f"the rules are no TOML: {error}", where)
        except RecursionError:
            refuse_rules("the rules are nested too deep", where)
        return cls._of(members, text=text, file=file, name=name, above=above)

    @classmethod
    def _of(
        cls, members: Mapping[str, Any], *, text: str, file: FilePath | None, name: str, above: _Above
    ) -> Self:
        above.enter(file)
        is_own = file is not None or not text  # a profile has a text and no file, Python values have neither
        reader = RuleReader(text, file, is_own=is_own)
        reader.known(members, KEYS, ())
        own_name = reader.text(members, "name", ()) or name
        tables = members.get("rule", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            reader.refuse("rule is written as [[rule]] tables", ("rule",))
        rules = [reader.rule(table, index, own_name) for index, table in enumerate(tables)]
        allowed = frozenset(reader.texts(members, "allow_extensions", ()))
        names_source = members.get("name_source", True)
        if not isinstance(names_source, bool):
            reader.refuse("name_source is true or false", ("name_source",))
        kind = reader.text(members, "type", ())
        for other in reader.texts(members, "extends", ()):
            base = cls._other(other, file=file, above=above)
            rules += base.rules
            allowed |= base.allowed_extensions
            names_source = names_source and base.names_source
            kind = kind or base.type
        reader.require_fitting(
            rules[: len(tables)], kept_by(rule.path for rule in rules if rule.action == "keep")
        )
        above.leave()
        if not rules and names_source:
            reader.refuse("there is no rule", ())
        return cls(
            name=own_name,
            type=kind or "redacted",
            rules=tuple(rules),
            names_source=names_source,
            allowed_extensions=allowed,
        )

    @classmethod
    def _other(cls, name: str, *, file: FilePath | None, above: _Above) -> Self:
        if name in PROFILES or file is None or not is_file_name(name):
            return cls._read(profile_text(name), file=None, name=name, above=above)
        path = file.parent / name
        return cls._read(_text_of_file(path), file=path, name=path.stem, above=above)


@dataclass(slots=True)
class _Above:
    """How many sets of rules extend the one that is read, and how many were read in all."""

    level: int = 0
    sets: int = 0

    def enter(self, file: FilePath | None) -> None:
        """Count a set that is read. Raises for a circle, and for too many."""
        where = Where(file=str(file) if file is not None else None)
        self.level += 1
        self.sets += 1
        if self.level > MAX_EXTENDS:
            refuse_rules("rule files extend each other in a circle", where)
        if self.sets > MAX_SETS:
            refuse_rules(f"rule files extend more than {MAX_SETS} others", where)

    def leave(self) -> None:
        """Count the end of a set."""
        self.level -= 1


def _text_of_file(path: FilePath) -> str:
    """Return the text of a rule file, which is a regular file. Raises as `Rules.load` does."""
    where = Where(file=str(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(
                    "the rules are no regular file", code="redaction-rules-unreadable", where=where
                )
            data = file.read(MAX_RULES_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"the rules cannot be read: {error.strerror}", code="redaction-rules-unreadable", where=where
        ) from error
    except ValueError:  # no UTF-8, or a name that no file can have
        refuse_rules("the rules are not UTF-8", where)
    if len(data) > MAX_RULES_BYTES:
        refuse_rules(f"the rules have more than {MAX_RULES_BYTES} bytes", where)
    return text


def is_file_name(name: str) -> bool:
    """Say whether a name is one of a file rather than of a profile."""
    return "/" in name or name.endswith(".toml")


def profile_text(name: str) -> str:
    """Return the text of a named profile, to read or to start from. Raises as `Rules.named` does."""
    if name not in PROFILES:
        near = get_close_matches(name, PROFILES, n=1)
        raise UsageError(
            f"there is no redaction profile {name[:80]!r}",
            code="redaction-profile-unknown",
            hint=f"did you mean {near[0]}?"
            if near
            else f"profiles: {', '.join(PROFILES)}; a file ends with .toml",
        )
    return (files("onrecord.record.redaction") / "profiles" / f"{name}.toml").read_text(encoding="utf-8")

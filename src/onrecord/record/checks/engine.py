"""Applies a table to objects. Objects of one shape have the same names in the same order, and share one plan.

The plan holds what the names alone decide (missing, forbidden, unknown members) and the rules for the values, so that
a file of ten thousand equal shapes costs the decision once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.findings import Severity
from onrecord.base.namespaces import AI_AGENT_EXTENSION, NS
from onrecord.record.checks.context import Context
from onrecord.record.checks.tables import OBJECTS, Table
from onrecord.record.checks.values import Rule, mismatch
from onrecord.record.vcon.pointers import step

MAX_PLANS: Final = 2_000
"""Plans kept: real files have a dozen shapes, a hostile one may have as many as elements."""

VENDOR_MEMBER: Final = "onrecord"
"""Our vendor member, known where the extension `dev.onrecord` is listed (record.md D-39)."""

NULL_IS_A_VALUE: Final = frozenset(["input", "output"])
"""Members whose null says something: the value was withheld (record.md D-20, D-71)."""

ANY_VARIANT: Final = "any"
"""Variant that no table has: values are checked, presence is not."""

_NO_LEVELS: Final[Mapping[str, str]] = {}


@dataclass(slots=True)
class Plan:
    """What follows from the member names of an object."""

    presence: list[tuple[str, str, Mapping[str, Any] | None, Severity | None]] = field(default_factory=list)
    rules: list[tuple[str, Rule]] = field(default_factory=list)
    inner: list[tuple[str, str]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)


class Engine:
    """Checks objects of one file against tables."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._plans: dict[tuple[str, ...], Plan] = {}
        self._vendor = NS in context.extensions

    def run(
        self, table: Table, variant: str, item: dict[str, Any], pointer: str, *, placeholder: bool = False
    ) -> dict[str, Any]:
        """Check one object; return it under the names of its table, without what counts as absent.

        `pointer` is the object's place, `variant` the column of the table. With `placeholder` what should be there
        is not asked for.
        """
        nulls: tuple[str, ...] = ()
        if None in item.values():
            nulls = tuple(name for name, value in item.items() if value is None and not _stands(name, item))
            if nulls:
                item = {name: value for name, value in item.items() if name not in nulls}
        key = (table.name, variant, *item)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make_plan(table, variant, tuple(item))
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        for name, rule in plan.rules:
            problems = rule(item[name])
            if problems is not None:
                place = pointer + step(name)
                for problem in problems:
                    self._context.add(
                        problem.code, place + problem.place, severity=problem.severity, data=problem.data
                    )
        if plan.presence:
            self._report_presence(plan, pointer, placeholder=placeholder)
        if nulls:
            self._report_nulls(table, variant, nulls, pointer)
        for name, inner in plan.inner:
            self._run_inner(inner, item[name], pointer + step(name))
        if plan.renamed:
            item = self._with_new_names(item, plan.renamed)
        return item

    def values_only(self, table: Table, item: dict[str, Any], pointer: str) -> None:
        """Check the values of an object whose type is not known, so that no column says what must be there."""
        self.run(table, ANY_VARIANT, item, pointer)

    def _report_presence(self, plan: Plan, pointer: str, *, placeholder: bool) -> None:
        for code, member, data, severity in plan.presence:
            if not (placeholder and code == "recommended-missing"):
                place = pointer + step(member) if member else pointer
                self._context.add(code, place, severity=severity, data=data)

    def _report_nulls(self, table: Table, variant: str, nulls: tuple[str, ...], pointer: str) -> None:
        levels = table.levels.get(variant, _NO_LEVELS)
        for name in nulls:
            if levels.get(name) != "M":
                self._context.add("member-null", pointer + step(name))

    def _run_inner(self, inner: str, value: Any, pointer: str) -> None:
        many = inner.endswith("[]")
        table = OBJECTS[inner[:-2] if many else inner]
        if not many:
            self._run_object(table, value, pointer)
        elif type(value) is not list:
            self._report(mismatch(f"{table.name}[]", value)[0].data, pointer)
        else:
            for index, element in enumerate(value):
                self._run_object(table, element, pointer + step(index))

    def _run_object(self, table: Table, value: Any, pointer: str) -> None:
        if type(value) is not dict:
            self._report(mismatch(table.name, value)[0].data, pointer)
        elif value or table.name not in ("Redacted", "Amended"):
            self.run(table, "", value, pointer)

    def _report(self, data: Mapping[str, Any] | None, pointer: str) -> None:
        self._context.add("type-mismatch", pointer, data=data)

    def _make_plan(self, table: Table, variant: str, names: tuple[str, ...]) -> Plan:
        plan = Plan()
        levels = table.levels.get(variant, _NO_LEVELS)
        present = set(names)
        for name in names:
            known = name
            if name not in table.kinds:
                alias = table.aliases.get(name)
                if alias is None:
                    self._unknown(plan, table, name)
                    continue
                plan.presence.append(("legacy-name", name, {"old": name, "new": alias}, None))
                if alias in present:
                    continue
                plan.renamed[name] = known = alias
                present.add(alias)
            level = levels.get(known, "-")
            if known in table.ai_agent:
                self._context.used.add(AI_AGENT_EXTENSION)
            if level == "X":
                plan.presence.append(("forbidden-present", name, None, None))
                continue
            if level == "D":
                plan.presence.append(("discouraged-present", name, None, None))
            if known in table.inner:
                plan.inner.append((name, table.inner[known]))
            elif table.kinds[known] != "any" and name not in ("alg", "signature"):
                plan.rules.append((name, self._context.values.rule(table.kinds[known])))
        for name, level in levels.items():
            if name not in present:
                self._missing(plan, name, level)
        return plan

    def _missing(self, plan: Plan, name: str, level: str) -> None:
        if level == "M" and not (self._context.redacted and name in _MAY_BE_REDACTED):
            plan.presence.append(("required-missing", "", {"parameter": name}, None))
        elif level == "S":
            plan.presence.append(("recommended-missing", "", {"parameter": name}, None))

    def _unknown(self, plan: Plan, table: Table, name: str) -> None:
        if table.is_open or (self._vendor and name == VENDOR_MEMBER):
            return
        if table.closed:
            plan.presence.append(("closed-object-member", name, {"object": table.name}, None))
        else:
            plan.presence.append(("unknown-member", name, None, None))

    @staticmethod
    def _with_new_names(item: dict[str, Any], renamed: Mapping[str, str]) -> dict[str, Any]:
        view = {renamed.get(name, name): value for name, value in item.items()}
        if "signature" in renamed or "alg" in renamed:
            view["content_hash"] = None
            if item.get("alg") == "SHA-512" and isinstance(item.get("signature"), str):
                view["content_hash"] = f"sha512-{item['signature']}"
        return view


_MAY_BE_REDACTED: Final = frozenset(["input", "output", "content"])
"""Members that a redacted vCon may leave out although their type asks for them (record.md D-20)."""


def _stands(name: str, item: Mapping[str, Any]) -> bool:
    return name in NULL_IS_A_VALUE or (name == "body" and item.get("encoding") == "json")

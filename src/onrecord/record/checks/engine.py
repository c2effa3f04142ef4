"""Applies a table to objects. Objects of one shape have the same names in the same order, and share one plan.

The plan holds what the names alone decide (missing, forbidden, unknown members) and the rules for the values, so that
a file of ten thousand equal shapes costs the decision once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.base.findings import Severity
from onrecord.base.namespaces import AI_AGENT_EXTENSION, NS, POLICY_DECISION
from onrecord.record.checks.context import Context
from onrecord.record.checks.event_tables import DECISION_COLUMNS, EVENT
from onrecord.record.checks.tables import ANALYSIS, VCON, Table
from onrecord.record.checks.values import Problems, Rule, mismatch, string
from onrecord.record.vcon.pointers import step

MAX_PLANS: Final = 2_000
"""Plans kept: real files have a dozen shapes, a hostile one may have as many as elements."""

VENDOR_MEMBER: Final = "onrecord"
"""Our vendor member, known where the extension `dev.onrecord` is listed (record.md D-39)."""

NULL_IS_A_VALUE: Final = frozenset(["input", "output"])
"""Members of events whose null says something: the value was withheld (record.md D-20, D-71)."""

MAY_BE_EMPTY: Final = frozenset(["Redacted", "Amended"])
"""Objects that are read as absent when they are empty (record.md 1.3)."""

ANY_VARIANT: Final = "any"
"""Variant that no table has: values are checked, presence is not."""

OLD_HASH: Final = ("alg", "signature")
"""Members of version 0.0.1 that are one content hash together. Its value is not checked: the version says nothing about
its form, and of algorithms other than SHA-512 none has a present form (record.md 1.3)."""

NULL_IS_ABSENT: Final = frozenset(["redacted", "amended", "appended"])
"""References that older versions wrote empty or null where there was no earlier vCon (record.md 1.3)."""

ASKED_FOR: Final = {(VCON.name, "uuid"), (VCON.name, "created_at")}
"""Members that must be there without being M in their table, since a finding of their own says so."""

ASKED_FOR_BESIDE: Final[Mapping[str, str]] = {"encoding": "body", "mediatype": "body", "content_hash": "url"}
"""Members of content that must be there beside another one."""

RECOMMENDED_BESIDE: Final = {(ANALYSIS.name, "mediatype")}
"""The exception: there it should be (record.md 2.6)."""

EITHER_OF: Final = frozenset(["session", "sessions"])
"""Members of an event of which one must be there (record.md D-12)."""

_NO_LEVELS: Final[Mapping[str, str]] = {}


@dataclass(slots=True)
class Plan:
    """What follows from the member names of an object. A rule is a member, the kind of its value, and the function."""

    presence: list[tuple[str, str, Mapping[str, Any] | None, Severity | None]] = field(default_factory=list)
    rules: list[tuple[str, str, Rule]] = field(default_factory=list)
    inner: list[tuple[str, str]] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    has_old_hash: bool = False
    uses_ai_agent: bool = False


class Engine:
    """Checks objects of one file against the tables of its version."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tables = context.profile.tables
        self._plans: dict[tuple[str, str, tuple[str, ...]], Plan] = {}
        self._vendor = NS in context.extensions

    def run(
        self, name: str, variant: str, item: dict[str, Any], pointer: str, *, placeholder: bool = False
    ) -> dict[str, Any]:
        """Check one object; return it under the names of the newest version, without what counts as absent.

        `name` is that of its table, `variant` the column, `pointer` the object's place. With `placeholder` what
        should be there is not asked for.
        """
        nulls: tuple[str, ...] = ()
        if None in item.values():
            present = {
                member: value
                for member, value in item.items()
                if value is not None or _stands(name, member, item)
            }
            if len(present) < len(item):
                nulls = tuple(member for member in item if member not in present)
                item = present
        plan = self.plan(name, variant, tuple(item))
        if plan.uses_ai_agent:
            self._context.used.add(AI_AGENT_EXTENSION)
        for member, _, rule in plan.rules:
            problems = rule(item[member])
            if problems is not None:
                self._report_problems(problems, pointer + step(member))
        if plan.presence:
            self._report_presence(plan, pointer, placeholder=placeholder)
        if nulls:
            self._report_nulls(self._tables[name], variant, nulls, item, pointer)
        for member, inner in plan.inner:
            self._run_inner(inner, item[member], pointer + step(member))
        if plan.has_old_hash or plan.renamed:
            item = {plan.renamed.get(member, member): value for member, value in item.items()}
            if plan.has_old_hash:
                item["content_hash"] = None
        return item

    def plan(self, name: str, variant: str, members: tuple[str, ...]) -> Plan:
        """Return what follows from the names of an object's members: `name` is that of its table."""
        key = (name, variant, members)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make_plan(self._tables[name], variant, members)
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def values_only(self, name: str, item: dict[str, Any], pointer: str) -> None:
        """Check the values of an object whose type is not known, so that no column says what must be there."""
        self.run(name, ANY_VARIANT, item, pointer)

    def level(self, name: str, member: str) -> str:
        """Return the level of a member in a table that has one column."""
        return self._tables[name].levels[""].get(member, "-")

    def knows(self, name: str, member: str) -> bool:
        """Say whether objects of a table have this member in the version of the file."""
        return member in self._tables[name].kinds

    def _report_problems(self, problems: Problems, place: str) -> None:
        for problem in problems:
            self._context.add(
                problem.code, place + problem.place, severity=problem.severity, data=problem.data
            )

    def _report_presence(self, plan: Plan, pointer: str, *, placeholder: bool) -> None:
        for code, member, data, severity in plan.presence:
            if not (placeholder and code == "recommended-missing"):
                place = pointer + step(member) if member else pointer
                self._context.add(code, place, severity=severity, data=data)

    def _report_nulls(
        self, table: Table, variant: str, nulls: tuple[str, ...], item: Mapping[str, Any], pointer: str
    ) -> None:
        """Report the nulls of an object that could be left out. `item` is what stands there beside them."""
        levels = table.levels.get(variant, _NO_LEVELS)
        for name in nulls:
            member = table.aliases.get(name, name)
            if name not in NULL_IS_ABSENT and not (
                levels.get(member) in ("M", "A")
                or (table.name, member) in ASKED_FOR
                or (ASKED_FOR_BESIDE.get(member) in item and (table.name, member) not in RECOMMENDED_BESIDE)
                or (table.name == EVENT.name and member in EITHER_OF and EITHER_OF.isdisjoint(item))
            ):
                self._context.add("member-null", pointer + step(name))

    def _run_inner(self, inner: str, value: Any, pointer: str) -> None:
        many = inner.endswith("[]")
        name = inner[:-2] if many else inner
        if not many:
            self._run_object(name, value, pointer)
        elif type(value) is not list:
            self._report_problems(mismatch(inner, value), pointer)
        else:
            for index, element in enumerate(value):
                self._run_object(name, element, pointer + step(index))

    def _run_object(self, name: str, value: Any, pointer: str) -> None:
        if type(value) is not dict:
            self._report_problems(mismatch(name, value), pointer)
        elif value or name not in MAY_BE_EMPTY:
            self.run(name, "", value, pointer)

    def _make_plan(self, table: Table, variant: str, names: tuple[str, ...]) -> Plan:
        plan = Plan()
        levels = table.levels.get(variant, _NO_LEVELS)
        column = {"type": _type_named(variant)} if variant else None
        present = set(names)
        for name in names:
            known = name if name in table.kinds else table.aliases.get(name)
            if known is None:
                self._unknown(plan, table, name)
                continue
            if name in table.remarks:
                code, data = table.remarks[name]
                plan.presence.append((code, name, data, None))
            is_old_hash = known != name and name in OLD_HASH
            if known not in present and not is_old_hash:
                plan.renamed[name] = known
                present.add(known)
            plan.uses_ai_agent = plan.uses_ai_agent or known in table.ai_agent
            level = levels.get(known, "-")
            if level == "N":
                continue
            if level == "X":
                plan.presence.append(("forbidden-present", name, column, None))
                continue
            if level == "E":
                data = {"object": _type_named(variant)}
                plan.presence.append(("closed-object-member", name, data, None))
                continue
            if level == "D":
                plan.presence.append(("discouraged-present", name, column, None))
            if is_old_hash:
                plan.has_old_hash = present.issuperset(OLD_HASH) and known not in present
                plan.rules.append((name, "string", string))
            elif known in table.inner:
                plan.inner.append((name, table.inner[known]))
            elif table.kinds[known] != "any":
                kind = table.kinds[known]
                plan.rules.append((name, kind, self._context.values.rule(kind)))
        for name, level in levels.items():
            if name not in present:
                self._missing(plan, table.spelled.get(name, name), level)
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


_MAY_BE_REDACTED: Final = frozenset(["input", "output", "content"])
"""Members that a redacted vCon may leave out although their type asks for them (record.md D-20)."""


def _type_named(variant: str) -> str:
    """Return what a column stands for, in words: a type, or a kind of policy decision."""
    name = variant.rpartition(" ")[2]
    return f"{POLICY_DECISION} ({name})" if name in DECISION_COLUMNS else name


def _stands(table: str, member: str, item: Mapping[str, Any]) -> bool:
    """Say whether a null is a value of its own."""
    if member == "body":
        return item.get("encoding") == "json"
    return member in NULL_IS_A_VALUE and table == EVENT.name

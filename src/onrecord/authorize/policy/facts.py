"""From the arguments of a call to facts. Policy sees facts only, never an argument value.

Source: call-proof.md 8.3, 8.4; running.md 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from types import NoneType
from typing import Any, Final, NamedTuple

from onrecord.authorize.policy import amounts, commands, hosts, paths
from onrecord.authorize.policy.model import Argument, Binding, OfArgument, OpTable, ServerPolicy
from onrecord.base.canonical import canonicalize
from onrecord.base.hashes import SchemaHash
from onrecord.base.strict_json import Facts

MAX_TOUCHES: Final = 64
"""Combinations of paths, hosts and other facts judged in one call; more than that is denied."""

UNKNOWN_OP: Final = "unknown"
"""The operation of a call whose operation is not known; no table may hold it."""

JSON_TYPES: Final[Mapping[str, frozenset[type]]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "null": frozenset({NoneType}),
}
"""Python types of each JSON type, as the strict reader makes them. A bool is no integer here."""

FACT_TYPES: Final[Mapping[str, frozenset[str]]] = {
    "path": frozenset({"string"}),
    "host": frozenset({"string"}),
    "command": frozenset({"string"}),
    "amount": frozenset({"integer", "number"}),
    "resource": frozenset({"string", "integer"}),
}
"""JSON types that can give a fact, alone or as members of an array."""


def schema_hash(input_schema: object, facts: Facts | None = None) -> SchemaHash:
    """Return the pin of a tool: the hash of its advertised inputSchema in RFC 8785 form.

    `facts` are those of the parse, if it is known that they cover the schema.

    Raises `MalformedError` with code "not-canonical". Source: running.md 4.4.
    """
    return SchemaHash.of(canonicalize(input_schema, facts))


class Reading(NamedTuple):
    """What a call is, for policy: op, impact, names of what is not known, and one context part per touch."""

    op: str
    impact: int
    unknown: tuple[str, ...]
    touches: tuple[dict[str, Any], ...]
    overflow: bool = False


UNBOUND: Final = Reading(UNKNOWN_OP, 4, ("tool",), ({},))
"""The reading of a tool without a binding that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rule:
    """One argument, ready to be checked."""

    name: str
    label: str
    types: frozenset[type]
    items: frozenset[type] | None
    fact: str | None
    prefixes: tuple[str, ...]
    make: Callable[[Any, dict[str, Any]], object] = field(repr=False)


def _nothing(_value: Any, _seen: dict[str, Any]) -> object:
    return None


def _accepted(names: tuple[str, ...]) -> frozenset[type]:
    return frozenset().union(*(JSON_TYPES[name] for name in names))


class Reader:
    """Reads the arguments of one tool by its binding.

    Made once per bundle; `read` is called for each call and does no more than it must.
    """

    __slots__ = ("_constant_op", "_impact", "_names", "_op_argument", "_op_table", "_ordered", "pin")

    def __init__(self, binding: Binding, server: ServerPolicy, roots: paths.Roots) -> None:
        """`binding` has passed the lint of its server."""
        self.pin = binding.pin
        self._impact = binding.impact
        if isinstance(binding.op, OpTable):
            self._constant_op: str | None = None
            self._op_argument, self._op_table = binding.op.argument, dict(binding.op.table)
        else:
            self._constant_op, self._op_argument, self._op_table = binding.op, "", {}
        mode = "read" if binding.op == "read" else "write"
        rules = [
            self._rule(name, argument, server, roots, mode) for name, argument in binding.arguments.items()
        ]
        # A path that joins another argument's path is read after it.
        rules.sort(key=lambda rule: isinstance(binding.arguments[rule.name].base, OfArgument))
        self._ordered = tuple(rules)
        self._names = frozenset(binding.arguments)

    @staticmethod
    def _rule(
        name: str, argument: Argument, server: ServerPolicy, roots: paths.Roots, default_mode: str
    ) -> _Rule:
        make: Callable[[Any, dict[str, Any]], object] = _nothing
        if argument.fact == "path":
            make = _path_maker(name, argument, server, roots, argument.mode or default_mode)
        elif argument.fact == "host":
            make = _host
        elif argument.fact == "amount":
            make = _amount_maker(argument)
        elif argument.fact == "command":
            make = _command
        elif argument.fact == "resource":
            make = _resource
        return _Rule(
            name=name,
            label=f"argument.{name}",
            types=_accepted(argument.types),
            items=None if argument.items is None else JSON_TYPES[argument.items],
            fact=argument.fact,
            prefixes=argument.forbid_prefix,
            make=make,
        )

    def read(self, arguments: Mapping[str, Any]) -> Reading:
        """Return what this call is. `arguments` is the parsed object of a strict reader."""
        unknown: set[str] = set()
        found: dict[str, list[Any]] = {}
        seen: dict[str, Any] = {"": arguments}
        if not self._names.issuperset(arguments):
            unknown.add("unlisted")
        for rule in self._ordered:
            if rule.name in arguments:
                self._read_argument(rule, arguments[rule.name], seen, found, unknown)
        op: str | None = self._constant_op
        if op is None:
            selector = arguments.get(self._op_argument)
            op = self._op_table.get(selector) if type(selector) is str else None
            if op is None:
                unknown.add("op")
                op = UNKNOWN_OP
        touches, overflow = _touches(found)
        return Reading(op, self._impact, tuple(sorted(unknown)), touches, overflow)

    @staticmethod
    def _read_argument(
        rule: _Rule, value: Any, seen: dict[str, Any], found: dict[str, list[Any]], unknown: set[str]
    ) -> None:
        kind = type(value)
        if kind not in rule.types:
            unknown.add(rule.label)
            return
        members: list[Any] = value if kind is list else [value]
        if kind is list and rule.items is not None and not all(type(m) in rule.items for m in members):
            unknown.add(rule.label)
            return
        if rule.prefixes and any(type(m) is str and m.startswith(rule.prefixes) for m in members):
            unknown.add(rule.label)
            return
        if rule.fact is None or value is None:
            return
        for member in members:
            fact = rule.make(member, seen)
            if fact is None:
                unknown.add(rule.label)
            else:
                facts = found.setdefault(rule.fact, [])
                if fact not in facts:
                    facts.append(fact)
                    if len(facts) > MAX_TOUCHES:
                        return  # denied whatever follows


def _touches(found: dict[str, list[Any]]) -> tuple[tuple[dict[str, Any], ...], bool]:
    """Return each combination that holds one fact of every kind found.

    So a rule about a path and a host together sees both, and each path meets each host.
    """
    if not found:
        return ({},), False
    if len(found) == 1:
        ((kind, facts),) = found.items()
        if len(facts) > MAX_TOUCHES:
            return ({},), True
        return tuple({kind: fact} for fact in facts), False
    count = 1
    for facts in found.values():
        count *= len(facts)
    if count > MAX_TOUCHES:
        return ({},), True
    kinds = tuple(found)
    return tuple(
        dict(zip(kinds, combination, strict=True)) for combination in product(*found.values())
    ), False


def _path_maker(
    name: str, argument: Argument, server: ServerPolicy, roots: paths.Roots, mode: str
) -> Callable[[Any, dict[str, Any]], object]:
    base = argument.base
    fixed = server.bases.get(base) if isinstance(base, str) else None
    reference = base.argument if isinstance(base, OfArgument) else None

    def make(value: Any, seen: dict[str, Any]) -> object:
        start = fixed if reference is None else seen.get(reference)
        fact = paths.normalize(value, base=start, roots=roots)
        if fact is None:
            return None
        seen[name] = fact.absolute
        return {
            "root": fact.root,
            "rel": fact.rel,
            "mode": mode,
            "dotdot": fact.dotdot,
            "hidden": fact.hidden,
        }

    return make


def _host(value: Any, _seen: dict[str, Any]) -> object:
    fact = hosts.normalize(value)
    return None if fact is None else fact._asdict()


def _amount_maker(argument: Argument) -> Callable[[Any, dict[str, Any]], object]:
    currency = argument.currency

    def make(value: Any, seen: dict[str, Any]) -> object:
        code: Any = currency
        if isinstance(currency, OfArgument):
            code = seen[""].get(currency.argument)
        fact = amounts.normalize(value, currency=code) if type(code) is str else None
        return None if fact is None else fact._asdict()

    return make


def _command(value: Any, _seen: dict[str, Any]) -> object:
    fact = commands.normalize(value)
    return None if fact is None else fact._asdict()


def _resource(value: Any, _seen: dict[str, Any]) -> object:
    return commands.resource(value)

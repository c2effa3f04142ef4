"""Consistency of one binding with itself and with its server.

Source: running.md 4.4; call-proof.md 8.4.
"""

from __future__ import annotations

from collections.abc import Iterator

from onrecord.authorize.policy.amounts import DECIMALS
from onrecord.authorize.policy.codes import finding
from onrecord.authorize.policy.facts import FACT_TYPES
from onrecord.authorize.policy.model import Argument, Binding, OfArgument, OpTable, ServerPolicy
from onrecord.base.errors import MalformedError
from onrecord.base.findings import Finding
from onrecord.base.hashes import SchemaHash


def check_binding(binding: Binding, server: ServerPolicy, pointer: str) -> Iterator[Finding]:
    """Yield what is wrong with a binding; `pointer` is its place."""
    if binding.decide:
        yield finding(
            "binding-undecided",
            f"{pointer}/decide",
            f"a person must decide {', '.join(binding.decide)} of {binding.tool}",
        )
    try:
        SchemaHash.read(binding.pin)
    except MalformedError:
        yield finding(
            "binding-pin", f"{pointer}/inputSchemaSha256", "expected sha-256: and 43 characters of base64url"
        )
    if binding.effects is not None:
        yield finding("effects-unsupported", f"{pointer}/effects", "effects are not built yet; remove them")
    if isinstance(binding.op, OpTable):
        selector = binding.arguments.get(binding.op.argument)
        if selector is None or "string" not in selector.types:
            yield finding(
                "binding-argument", f"{pointer}/op/argument", "names no argument of JSON type string"
            )
    for name, argument in binding.arguments.items():
        place = f"{pointer}/arguments/{name.replace('~', '~0').replace('/', '~1')}"
        yield from _check_argument(name, argument, binding, server, place)


def _check_argument(
    name: str, argument: Argument, binding: Binding, server: ServerPolicy, place: str
) -> Iterator[Finding]:
    types = set(argument.types)
    if not types:
        yield finding("binding-fact", f"{place}/json", "no JSON type is admitted")
    if argument.items is not None and "array" not in types:
        yield finding("binding-member", f"{place}/items", "items belong to an array")
    if argument.forbid_prefix and not types & {"string", "array"}:
        yield finding("binding-member", f"{place}/forbidPrefix", "only a string can begin with something")
    if argument.fact is not None:
        single = types - {"null", "array"}
        allowed = FACT_TYPES[argument.fact]
        if not single <= allowed or not types & {*allowed, "array"}:
            yield finding(
                "binding-fact", f"{place}/fact", f"a {argument.fact} comes from {', '.join(sorted(allowed))}"
            )
        if "array" in types and argument.items not in allowed:
            yield finding(
                "binding-fact", f"{place}/items", f"the members of the array must give a {argument.fact}"
            )
    if argument.fact == "path":
        yield from _check_base(name, argument, binding, server, place)
    elif argument.base is not None or argument.mode is not None:
        yield finding("binding-member", place, "base and mode belong to a path")
    if argument.fact == "amount":
        yield from _check_currency(argument, binding, place)
    elif argument.currency is not None:
        yield finding("binding-member", place, "currency belongs to an amount")


def _check_base(
    name: str, argument: Argument, binding: Binding, server: ServerPolicy, place: str
) -> Iterator[Finding]:
    base = argument.base
    if isinstance(base, OfArgument):
        other = binding.arguments.get(base.argument)
        if (
            base.argument == name
            or other is None
            or other.fact != "path"
            or "array" in other.types
            or isinstance(other.base, OfArgument)
        ):
            yield finding(
                "binding-base", f"{place}/base", "names no single path argument with a base of its own"
            )
    elif base is None:
        yield finding("binding-base", place, "a path needs a base that relative paths join")
    elif base not in server.bases:
        yield finding("binding-base", f"{place}/base", f"{base} is not one of the server's bases")


def _check_currency(argument: Argument, binding: Binding, place: str) -> Iterator[Finding]:
    currency = argument.currency
    if isinstance(currency, OfArgument):
        other = binding.arguments.get(currency.argument)
        if other is None or "string" not in other.types:
            yield finding("binding-argument", f"{place}/currency", "names no argument of JSON type string")
    elif currency is None or currency not in DECIMALS:
        yield finding("binding-currency", f"{place}/currency", "expected an ISO 4217 code such as EUR")

"""The compiled policy: facts in, decision out. Everything that is not a clean Allow is no.

    >>> from onrecord.authorize.policy.decisions import CallRequest
    >>> Policy  # doctest: +ELLIPSIS
    <class '...Policy'>

For each call only those rules are evaluated whose scope can match its caller and tool, with only those entities that
such rules can see. That changes no decision, since a rule whose scope does not match is never evaluated by Cedar.

Source: call-proof.md 8.5, 8.6; running.md 4.3.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import cedarpy
import orjson

from onrecord.authorize.policy import rules
from onrecord.authorize.policy.bundle import Bundle
from onrecord.authorize.policy.decisions import CallRequest, Decision, Effect, NeededApproval, Touch
from onrecord.authorize.policy.facts import UNBOUND, Reader, Reading
from onrecord.authorize.policy.paths import Roots
from onrecord.base.errors import PolicyError

UNBOUND_NAMES: Final = 1000
"""Names of tools without a binding that are remembered (running.md 4.3)."""

BOUND_VIEWS: Final = 8192
"""Pairs of caller and bound tool whose rules and entities are kept ready."""

RULE_SETS: Final = 1024
"""Parsed subsets of the rules that are kept; pairs of caller and tool share them."""

_ACTION: Final = {"type": "Action", "id": "tools/call"}
_Uid = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _View:
    """What one caller and one tool have to do with the policy, ready for the evaluator."""

    policies: cedarpy.PolicySet
    entities: cedarpy.Entities
    principal: Mapping[str, str]
    resource: Mapping[str, str]


class _Verdict(NamedTuple):
    """What came out of one evaluation: allowed, denied, or no clean decision (allowed None)."""

    allowed: bool | None
    rules: tuple[str, ...]


_FAILED: Final = _Verdict(None, ())


class Policy:
    """A bundle that has passed the lint, compiled once. `decide` may be called from several threads."""

    def __init__(self, bundle: Bundle) -> None:
        """Raise `PolicyError` with code "policy-error" for a bundle that the lint would have refused."""
        self.bundle = bundle
        parsed, findings = rules.parse(bundle.policies + "\n" + rules.built_in(bundle.unknown), own=True)
        if any(item.severity == "error" for item in findings):
            raise PolicyError("the policy has not passed the lint", code="policy-error")
        self.rules: Mapping[str, rules.Rule] = {rule.id: rule for rule in parsed}
        self._schema = cedarpy.Schema.from_str(rules.shipped_schema())
        self._parents = _parents(bundle)
        self._readers = {
            server.id: {binding.tool: Reader(binding, server, roots) for binding in server.bindings}
            for server in bundle.servers.values()
            for roots in [Roots(server.roots)]
        }
        self._callers = frozenset(caller.id for caller in bundle.callers)
        self._rule_set = lru_cache(RULE_SETS)(self._make_rule_set)
        self._bound_view = lru_cache(BOUND_VIEWS)(self._make_view)
        self._unbound_view = lru_cache(UNBOUND_NAMES)(self._make_view)
        self._rule_set(tuple(self.rules))

    def pins(self, server: str) -> Mapping[str, str]:
        """Return the pinned hash of each bound tool of a server."""
        return {tool: reader.pin for tool, reader in self._readers.get(server, {}).items()}

    def read(self, call: CallRequest) -> Reading:
        """Return what a call is, by its tool's binding; without one that counts, the tool is unknown.

        A binding counts while its pin equals the hash that the server advertises now.
        """
        reader = self._readers.get(call.server, {}).get(call.name)
        if reader is None or call.advertised is None or call.advertised.get(call.name) != reader.pin:
            return UNBOUND
        return reader.read(call.arguments)

    def decide(self, call: CallRequest) -> Decision:
        """Decide one call. Never raises for what a call holds: whatever goes wrong is a denial.

        Source: call-proof.md 8.6.
        """
        if call.caller not in self._callers:
            return Decision("deny", detail="unknown_caller")
        if call.server not in self._readers:
            return Decision("deny", detail="unknown_server")
        try:
            return self._decide(call, self.read(call))
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException:  # a panic of the evaluator is no Exception, and is a denial all the same
            return Decision("deny", detail="policy_error")

    def _decide(self, call: CallRequest, reading: Reading) -> Decision:
        if reading.overflow:
            return Decision("deny", detail="too_many_touches")
        bound = call.name in self._readers[call.server]
        view = (self._bound_view if bound else self._unbound_view)(call.caller, call.server, call.name)
        granted = tuple(sorted(filter(self._approval_number, call.approvals))) if call.approvals else ()
        common: dict[str, Any] = {
            "op": reading.op,
            "impact": reading.impact,
            "round": call.round,
            "unknown": reading.unknown,
            "approvals": granted,
        }
        contexts = [common | touch for touch in reading.touches]
        verdicts = self._evaluate(view, contexts)
        touches: list[Touch] = []
        for facts, context, verdict in zip(reading.touches, contexts, verdicts, strict=True):
            effect: Effect = "deny"
            if verdict.allowed:
                effect = "allow"
            elif verdict.allowed is False and self._can_be_approved(view, context, granted, verdict.rules):
                effect = "approval"
            touches.append(Touch(facts, effect, verdict.rules))
        return self._combine(touches, verdicts, reading)

    def _can_be_approved(
        self, view: _View, context: Mapping[str, Any], granted: tuple[str, ...], matched: tuple[str, ...]
    ) -> bool:
        """Say whether the approvals of exactly these rules would let the call pass (steps 2 and 3)."""
        if not matched or not all(self._approval_number(rule) for rule in matched):
            return False
        approvals = sorted({*granted, *matched})
        return self._evaluate(view, [{**context, "approvals": approvals}])[0].allowed is True

    def _approval_number(self, rule: str) -> int:
        known = self.rules.get(rule)
        return known.approval if known is not None else 0

    def _combine(self, touches: Sequence[Touch], verdicts: Sequence[_Verdict], reading: Reading) -> Decision:
        effects = {touch.effect for touch in touches}
        effect: Effect = "deny" if "deny" in effects else "approval" if "approval" in effects else "allow"
        names = tuple(
            dict.fromkeys(rule for touch in touches if touch.effect == effect for rule in touch.rules)
        )
        if effect == "allow":
            return Decision("allow", names, touches=tuple(touches))
        if effect == "approval":
            needed = tuple(
                NeededApproval(name, self.rules[name].approval, self.rules[name].approvers or "")
                for name in names
            )
            return Decision("approval", names, needed, touches=tuple(touches))
        if any(verdict.allowed is None for verdict in verdicts):
            return Decision("deny", detail="policy_error", touches=tuple(touches))
        if not names:
            detail = "no_permit"
        elif rules.UNKNOWN_RULE in names:
            detail = "unknown_tool" if reading is UNBOUND else "unknown_arguments"
        else:
            detail = "forbidden"
        return Decision("deny", names, detail=detail, touches=tuple(touches))

    def _evaluate(self, view: _View, contexts: Sequence[Mapping[str, Any]]) -> list[_Verdict]:
        """Evaluate each context once. Only Allow without an error allows; any error and no decision is None."""
        requests = [
            {
                "principal": view.principal,
                "action": _ACTION,
                "resource": view.resource,
                "context": orjson.dumps(context).decode(),
            }
            for context in contexts
        ]
        results = cedarpy.is_authorized_batch(requests, view.policies, view.entities, self._schema)
        if len(results) != len(requests):
            return [_FAILED] * len(requests)
        return [self._verdict(result) for result in results]

    def _verdict(self, result: cedarpy.AuthzResult) -> _Verdict:
        diagnostics = result.diagnostics
        if diagnostics.errors:
            return _FAILED
        names = diagnostics.id_annotations_by_reason
        try:
            matched = tuple(sorted(names[reason] for reason in diagnostics.reasons))
        except KeyError:
            return _FAILED
        if any(name not in self.rules for name in matched):
            return _FAILED
        decision = result.decision
        if decision is cedarpy.Decision.Allow:
            return _Verdict(allowed=True, rules=matched)
        return _Verdict(allowed=False, rules=matched) if decision is cedarpy.Decision.Deny else _FAILED

    def _make_view(self, caller: str, server: str, tool: str) -> _View:
        principal, resource = ("Agent", caller), ("Tool", f"{server}/{tool}")
        parents = {**self._parents, resource: (("Server", server),)}
        who, what = _closure([principal], parents), _closure([resource], parents)
        chosen = tuple(
            rule.id
            for rule in self.rules.values()
            if _may_match(rule.form["principal"], principal, who)
            and _may_match(rule.form["resource"], resource, what)
        )
        named = [entity for rule in chosen for entity in self.rules[rule].condition_entities()]
        visible = _closure([principal, resource, *named], parents)
        entities = [
            {"uid": _uid(entity), "attrs": {}, "parents": [_uid(parent) for parent in parents[entity]]}
            for entity in sorted(visible)
            if entity in parents
        ]
        return _View(
            self._rule_set(chosen),
            cedarpy.Entities.from_json_str(json.dumps(entities), self._schema),
            _uid(principal),
            _uid(resource),
        )

    def _make_rule_set(self, names: tuple[str, ...]) -> cedarpy.PolicySet:
        form = {
            "templates": {},
            "staticPolicies": {name: self.rules[name].form for name in names},
            "templateLinks": [],
        }
        return cedarpy.PolicySet.from_json_str(json.dumps(form))


def _uid(entity: _Uid) -> dict[str, str]:
    return {"type": entity[0], "id": entity[1]}


def _parents(bundle: Bundle) -> dict[_Uid, tuple[_Uid, ...]]:
    """Return the parents of every entity that the bundle knows."""
    parents: dict[_Uid, tuple[_Uid, ...]] = {
        ("Group", name): () for name in (*bundle.groups.callers, *bundle.groups.approvers)
    }
    for entity in bundle.entities:
        parents["Group", entity.uid.id] = tuple(("Group", parent.id) for parent in entity.parents)
    for caller in bundle.callers:
        parents["Agent", caller.id] = tuple(("Group", group) for group in dict.fromkeys(caller.groups))
    for server in bundle.servers.values():
        parents["Server", server.id] = ()
        for binding in server.bindings:
            parents["Tool", f"{server.id}/{binding.tool}"] = (("Server", server.id),)
    return parents


def _closure(start: Sequence[_Uid], parents: Mapping[_Uid, tuple[_Uid, ...]]) -> frozenset[_Uid]:
    """Return these entities and everything that they lie in."""
    found: set[_Uid] = set()
    pending = list(start)
    while pending:
        entity = pending.pop()
        if entity not in found:
            found.add(entity)
            pending.extend(parents.get(entity, ()))
    return frozenset(found)


def _may_match(scope: Mapping[str, Any], entity: _Uid, above: frozenset[_Uid]) -> bool:
    """Say whether a scope can match; a scope of a form that is not known may."""
    if scope.get("op") == "is":
        if scope.get("entity_type") not in (None, entity[0]):
            return False
        scope = {"op": "in", **scope["in"]} if isinstance(scope.get("in"), dict) else {}
    named = scope.get("entity")
    if not isinstance(named, dict):
        return True
    uid = (named["type"], named["id"])
    if scope.get("op") == "==":
        return uid == entity
    return uid in above if scope.get("op") == "in" else True

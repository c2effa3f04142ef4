"""The Cedar text of a bundle as rules, with everything refused that the evaluator would do surprisingly.

Source: call-proof.md 8.5, 8.6, 8.7; running.md 4.3.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Final, Literal

import cedarpy

from onrecord.authorize.policy.codes import finding
from onrecord.authorize.policy.model import UnknownApproval, UnknownForbid
from onrecord.base.findings import Finding

MAX_POLICIES: Final = 2000
"""Most rules in one bundle: a decision at 1000 rules costs ten times that at 10."""

MAX_POLICY_TEXT: Final = 1_048_576
"""Longest Cedar text, in characters."""

MAX_BRACKETS: Final = 32
"""Deepest nesting of brackets: the parser recurses, and at some hundred levels it ends the process."""

MAX_OPERATORS: Final = 400
"""Most operators in one rule, for the same reason."""

MAX_RULE_ID: Final = 64
"""Longest rule id."""

UNKNOWN_RULE: Final = "onrecord.unknown"
"""The built-in rule about unknown facts."""

RESERVED_PREFIX: Final = "onrecord."
"""Ids that begin so are built in."""

_RULE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|[()\[\]{}]|;|&&|\|\||==|!=|<=|>=|[-+*<>!.]|\b(?:if|in|has|like|is)\b',
    re.DOTALL,
)
_ALLOWED: Final = frozenset(
    {
        "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||", "!", "contains", "containsAll", "containsAny", "isEmpty",
        ".", "has", "like", "is", "if-then-else", "Set", "Record",
    }
)  # fmt: skip
_ARITHMETIC: Final = frozenset({"+", "-", "*", "neg"})


@cache
def shipped_schema() -> str:
    """Return the Cedar schema of this format."""
    return (
        resources.files("onrecord.authorize.policy").joinpath("data/schema.cedar").read_text(encoding="utf-8")
    )


def built_in(unknown: UnknownForbid | UnknownApproval) -> str:
    """Return the built-in rule as Cedar text. A bundle cannot remove it. Source: running.md 4.3."""
    head = f'@id("{UNKNOWN_RULE}")'
    tail = ""
    if isinstance(unknown, UnknownApproval):
        head += f' @approval("{unknown.approval}") @approvers("{unknown.approvers}")'
        tail = f' unless {{ context.approvals.contains("{UNKNOWN_RULE}") }}'
    return (
        f'{head} forbid(principal, action == Action::"tools/call", resource) '
        f"when {{ !context.unknown.isEmpty() }}{tail};\n"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule: its id, effect, the approvals that lift it, and its form in Cedar's JSON."""

    id: str
    effect: Literal["permit", "forbid"]
    approval: int
    approvers: str | None
    form: Mapping[str, Any] = field(repr=False)

    def entities(self) -> Iterator[tuple[str, str]]:
        """Return type and id of each entity that the rule names."""
        for part in ("principal", "action", "resource"):
            scope = self.form[part]
            for holder in (scope, scope.get("in") or {}):
                for entity in [holder.get("entity"), *(holder.get("entities") or ())]:
                    if entity is not None:
                        yield entity["type"], entity["id"]
        yield from self.condition_entities()

    def condition_entities(self) -> Iterator[tuple[str, str]]:
        """Return type and id of each entity that a condition names."""
        for condition in self.form["conditions"]:
            for node in _nodes(condition["body"]):
                value = node.get("Value")
                if isinstance(value, dict) and "__entity" in value:
                    yield value["__entity"]["type"], value["__entity"]["id"]


def parse(text: str, *, own: bool) -> tuple[tuple[Rule, ...], tuple[Finding, ...]]:
    """Return the rules of a Cedar text and what is wrong with it.

    `own` says that the text holds our built-in rule, whose id is then no finding. Rules without a usable id are
    left out, so the rules are complete only when there is no finding of severity error.
    """
    size = _size_finding(text)
    if size is not None:
        return (), (size,)
    try:
        form = json.loads(cedarpy.policies_to_json_str(text))
    except (ValueError, RecursionError) as error:
        return (), (finding("policies-syntax", "/policies", _first_line(str(error))),)
    findings: list[Finding] = []
    if form["templates"] or form["templateLinks"]:
        findings.append(finding("rule-template", "/policies", "a rule has a slot (?principal or ?resource)"))
    policies = form["staticPolicies"]
    if len(policies) > MAX_POLICIES:
        return (), (finding("policies-size", "/policies", f"more than {MAX_POLICIES} rules"),)
    rules: dict[str, Rule] = {}
    for key in sorted(policies, key=lambda name: int(name.removeprefix("policy"))):
        number = int(key.removeprefix("policy")) + 1
        try:
            rule = _rule(policies[key], number, findings, own=own)
        except (KeyError, TypeError, ValueError, AttributeError):
            findings.append(
                finding("rule-operator", "/policies", f"rule {number} has a form that is not known")
            )
            continue
        if rule is None:
            continue
        if rule.id in rules:
            findings.append(finding("rule-id-duplicate", "/policies", "two rules have this id", rule=rule.id))
        rules[rule.id] = rule
    return tuple(rules.values()), tuple(findings)


def _size_finding(text: str) -> Finding | None:
    """Refuse what would make the recursive parser run out of stack, before it is called."""
    if len(text) > MAX_POLICY_TEXT:
        return finding("policies-size", "/policies", f"more than {MAX_POLICY_TEXT} characters")
    depth = operators = 0
    for match in _TOKEN.finditer(text):
        lexeme = match[0]
        if lexeme in "([{":
            depth += 1
            if depth > MAX_BRACKETS:
                return finding("policies-size", "/policies", f"brackets nested deeper than {MAX_BRACKETS}")
        elif lexeme in ")]}":
            depth -= 1
        elif lexeme == ";":
            depth = operators = 0
        elif lexeme[0] not in '"/':
            operators += 1
            if operators > MAX_OPERATORS:
                return finding(
                    "policies-size", "/policies", f"more than {MAX_OPERATORS} operators in one rule"
                )
    return None


def _rule(form: Mapping[str, Any], number: int, findings: list[Finding], *, own: bool) -> Rule | None:
    annotations = form.get("annotations", {})
    rule_id = annotations.get("id")
    if not isinstance(rule_id, str) or not _RULE_ID.fullmatch(rule_id):
        findings.append(
            finding("rule-id", "/policies", f"rule {number} needs an @id of a-z, 0-9, '.', '_' and '-'")
        )
        return None
    if rule_id.startswith(RESERVED_PREFIX) and not (own and rule_id == UNKNOWN_RULE):
        findings.append(finding("rule-id-reserved", "/policies", "this id is reserved", rule=rule_id))
    approval = 0
    approvers = annotations.get("approvers")
    if "approval" in annotations:
        number_text = annotations["approval"]
        if isinstance(number_text, str) and re.fullmatch(r"[1-9]", number_text):
            approval = int(number_text)
        else:
            findings.append(
                finding(
                    "rule-approval-number", "/policies", "@approval takes a number from 1 to 9", rule=rule_id
                )
            )
        if form["effect"] != "forbid":
            findings.append(
                finding(
                    "rule-approval-effect", "/policies", "only a forbid can wait for approval", rule=rule_id
                )
            )
        if not isinstance(approvers, str) or not approvers:
            findings.append(
                finding(
                    "rule-approvers", "/policies", "@approval needs @approvers with a group", rule=rule_id
                )
            )
    elif "approvers" in annotations:
        findings.append(finding("rule-approvers", "/policies", "@approvers needs @approval", rule=rule_id))
    _check_conditions(form, rule_id, findings, needs_approval="approval" in annotations)
    return Rule(
        id=rule_id,
        effect=form["effect"],
        approval=approval,
        approvers=approvers if isinstance(approvers, str) else None,
        form=form,
    )


def _own_approval(rule_id: str) -> dict[str, Any]:
    return {
        "contains": {
            "left": {".": {"left": {"Var": "context"}, "attr": "approvals"}},
            "right": {"Value": rule_id},
        }
    }


def _check_conditions(
    form: Mapping[str, Any], rule_id: str, findings: list[Finding], *, needs_approval: bool
) -> None:
    conditions = list(form["conditions"])
    if needs_approval:
        unless = [condition for condition in conditions if condition["kind"] == "unless"]
        if len(unless) != 1 or unless[0]["body"] != _own_approval(rule_id):
            findings.append(
                finding(
                    "rule-approval-unless",
                    "/policies",
                    "the rule needs one unless, exactly context.approvals.contains of its own id",
                    rule=rule_id,
                )
            )
        else:
            conditions.remove(unless[0])
    reported: set[str] = set()

    def report(code: str, message: str) -> None:
        if code not in reported:
            reported.add(code)
            findings.append(finding(code, "/policies", message, rule=rule_id))

    for condition in conditions:
        for node in _nodes(condition["body"]):
            _check_node(node, report)


def _check_node(node: Mapping[str, Any], report: Any) -> None:
    ((name, value),) = node.items()
    if name == "Var":
        if value == "context":
            report("rule-context", "context is used as a whole")
    elif name == "Value":
        if isinstance(value, dict) and "__entity" not in value:
            report("rule-operator", "a value of an extension type is refused")
    elif name in _ARITHMETIC:
        report("rule-arithmetic", "arithmetic is refused")
    elif name not in _ALLOWED:
        report("rule-operator", f"{name} is refused")
    elif name in (".", "has") and value["left"] == {"Var": "context"} and value["attr"] == "approvals":
        report("rule-approval-elsewhere", "context.approvals is used outside of an approval's own unless")


def _nodes(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Return every expression of a condition, except a `context` whose one member is asked for."""
    pending = [body]
    while pending:
        node = pending.pop()
        yield node
        for name, value in node.items():
            if name in ("Var", "Value", "Slot") or (
                name in (".", "has") and value.get("left") == {"Var": "context"}
            ):
                continue
            children = value.values() if isinstance(value, dict) else value
            if isinstance(children, str):
                continue
            pending.extend(child for child in children if isinstance(child, dict))


def validate(text: str) -> tuple[Finding, ...]:
    """Validate rules against the shipped schema, strictly; `text` has been parsed before."""
    result = cedarpy.validate_policies(text, shipped_schema())
    names = result.id_annotations_by_policy_id
    findings = [
        finding(
            "policies-invalid",
            "/policies",
            _first_line(error.error),
            rule=names.get(error.policy_id, error.policy_id),
        )
        for error in result.errors
    ]
    if not result.validation_passed and not findings:
        findings.append(finding("policies-invalid", "/policies", "the rules do not fit the schema"))
    return tuple(findings)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:300]

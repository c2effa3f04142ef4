"""Consistency of a bundle: everything that strict reading cannot see.

Source: call-proof.md 8.7; running.md 4.1, 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Literal

from onrecord.authorize.policy import rules
from onrecord.authorize.policy.binding_lint import check_binding
from onrecord.authorize.policy.bundle import Bundle
from onrecord.authorize.policy.codes import finding
from onrecord.authorize.policy.model import NOBODY, Document, ServerPolicy, UnknownApproval
from onrecord.authorize.policy.paths import OUTSIDE, is_plain
from onrecord.base.dates import parse_date
from onrecord.base.errors import MalformedError
from onrecord.base.findings import Finding, Severity

Mode = Literal["user", "system"]


def check_bundle(bundle: Bundle, *, mode: Mode | None = None) -> tuple[Finding, ...]:
    """Return everything that is wrong with a bundle; one error is enough to refuse it.

    A uid with two roles is an error in system mode, and nothing in user mode, where uids say nothing. Where `mode` is
    not known, it is a warning if the bundle has userMode, else an error.
    """
    uids = _uid_severity(bundle.document, mode)
    return (
        *_check_document(bundle.document),
        *_check_uids(bundle.document, uids),
        *_check_groups(bundle),
        *_check_approvals(bundle),
        *check_rules(bundle),
    )


def _check_document(document: Document) -> Iterator[Finding]:
    if document.schema != rules.shipped_schema():
        yield finding("bundle-schema", "/schema", "not the schema shipped for this format")
    try:
        created = parse_date(document.created)
    except MalformedError:
        created = None
    if created is None or created.utcoffset() != timedelta(0):
        yield finding(
            "bundle-created", "/created", "expected a date-time in UTC, such as 2026-11-30T09:00:00Z"
        )
    if document.descriptions == "required":
        yield finding("descriptions-unsupported", "/descriptions", '"required" is not built yet; use "off"')
    if document.retention.body_days > document.retention.journal_days:
        yield finding("retention-order", "/retention/bodyDays", "greater than journalDays")
    yield from _check_ids(document)
    for index, approver in enumerate(document.approvers):
        if "passkey" in approver.channels or approver.credentials:
            yield finding(
                "passkey-unsupported",
                f"/approvers/{index}",
                'passkeys are not built yet; use channel "terminal"',
            )
    for index, server in enumerate(document.servers):
        yield from _check_server(server, f"/servers/{index}")


def _uid_severity(document: Document, mode: Mode | None) -> Severity | None:
    """Return how bad a shared uid is; None: not at all."""
    if mode == "user":
        return None
    return "warning" if document.user_mode is not None and mode is None else "error"


def _check_uids(document: Document, severity: Severity | None) -> Iterator[Finding]:
    """One uid has one role and one id; an approver may also have control roles."""
    agents: dict[int, str] = {}
    servers: dict[int, str] = {}
    approvers: dict[int, str] = {}
    controls: dict[int, str] = {}
    tables = (
        (
            "callers",
            [entry.uid for entry in document.callers],
            agents,
            (agents, servers, approvers, controls),
        ),
        (
            "servers",
            [entry.uid for entry in document.servers],
            servers,
            (agents, servers, approvers, controls),
        ),
        ("approvers", [entry.uid for entry in document.approvers], approvers, (agents, servers, approvers)),
        (
            "controlRoles",
            [entry.uid for entry in document.control_roles],
            controls,
            (agents, servers, controls),
        ),
    )
    for member, uids, table, exclusive in tables:
        for index, uid in enumerate(uids):
            pointer = f"/{member}/{index}/uid"
            if uid in NOBODY:
                yield finding("uid-refused", pointer, f"uid {uid} is nobody's")
            taken = next((other[uid] for other in exclusive if uid in other), None)
            if taken is not None and severity is not None:
                yield finding("uid-shared", pointer, f"uid {uid} is also that of {taken}", severity=severity)
            table[uid] = f"/{member}/{index}"


def _check_ids(document: Document) -> Iterator[Finding]:
    yield from _duplicates((server.id for server in document.servers), "/servers", "server id")
    yield from _duplicates((approver.id for approver in document.approvers), "/approvers", "approver id")
    yield from _duplicates((f"{entity.uid.id}" for entity in document.entities), "/entities", "group")
    yield from _duplicates(document.groups.callers, "/groups/callers", "group")
    yield from _duplicates(document.groups.approvers, "/groups/approvers", "group")
    first: dict[str, int] = {}
    for index, caller in enumerate(document.callers):
        other = document.callers[first.setdefault(caller.id, index)]
        if sorted(set(caller.groups)) != sorted(set(other.groups)) or caller.agent != other.agent:
            yield finding(
                "caller-differs",
                f"/callers/{index}",
                f"differs in groups or agent from /callers/{first[caller.id]}, which has the same id",
            )
    mode = document.user_mode
    if mode is not None:
        if mode.caller not in first:
            yield finding("user-mode", "/userMode/caller", "not the id of a caller")
        if mode.approver not in {approver.id for approver in document.approvers}:
            yield finding("user-mode", "/userMode/approver", "not the id of an approver")


def _duplicates(names: Iterable[str], pointer: str, what: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield finding("id-duplicate", pointer, f"{what} {name} occurs twice")
        seen.add(name)


def _check_server(server: ServerPolicy, pointer: str) -> Iterator[Finding]:
    yield from _duplicates((binding.tool for binding in server.bindings), f"{pointer}/tools", "tool")
    for member, table in (("roots", server.roots), ("bases", server.bases)):
        for name, path in table.items():
            if not is_plain(path):
                yield finding("root-path", f"{pointer}/{member}/{name}", "expected a plain absolute path")
    if OUTSIDE in server.roots:
        yield finding(
            "root-duplicate", f"{pointer}/roots/{OUTSIDE}", "this name stands for what is in no root"
        )
    seen: dict[str, str] = {}
    for name, path in server.roots.items():
        if path in seen:
            yield finding("root-duplicate", f"{pointer}/roots/{name}", f"the same path as root {seen[path]}")
        seen[path] = name
    for index, binding in enumerate(server.bindings):
        yield from check_binding(binding, server, f"{pointer}/tools/{index}")


def _check_groups(bundle: Bundle) -> Iterator[Finding]:
    document = bundle.document
    known = {*document.groups.callers, *document.groups.approvers}
    for index, caller in enumerate(document.callers):
        for group in caller.groups:
            if group not in document.groups.callers:
                yield finding(
                    "group-unknown", f"/callers/{index}/groups", f"{group} is not in groups.callers"
                )
    for index, approver in enumerate(document.approvers):
        for group in approver.groups:
            if group not in document.groups.approvers:
                yield finding(
                    "group-unknown", f"/approvers/{index}/groups", f"{group} is not in groups.approvers"
                )
    for index, entity in enumerate(document.entities):
        for group in (entity.uid.id, *(parent.id for parent in entity.parents)):
            if group not in known:
                yield finding("group-unknown", f"/entities/{index}", f"{group} is not listed under groups")
        above = bundle.groups_above(tuple(parent.id for parent in entity.parents))
        if entity.uid.id in above:
            yield finding("group-cycle", f"/entities/{index}", f"{entity.uid.id} lies in itself")


def _check_approvals(bundle: Bundle) -> Iterator[Finding]:
    unknown = bundle.unknown
    if isinstance(unknown, UnknownApproval):
        yield from _check_members(bundle, unknown.approvers, unknown.approval, "/unknown", rules.UNKNOWN_RULE)


def _check_members(bundle: Bundle, group: str, number: int, pointer: str, rule: str) -> Iterator[Finding]:
    if group not in bundle.groups.approvers:
        yield finding("rule-approvers", pointer, f"{group} is not in groups.approvers", rule=rule)
        return
    members = len({person.uid for person in bundle.approvers_of(group)})
    if members < number:
        yield finding(
            "approvers-too-few",
            pointer,
            f"{group} has {members} members, {number} approvals are needed",
            rule=rule,
        )


def check_rules(bundle: Bundle) -> Iterator[Finding]:
    """Yield what is wrong with the Cedar text of a bundle."""
    parsed, findings = rules.parse(bundle.policies, own=False)
    yield from findings
    if any(item.fatal for item in findings):
        return
    if not any(item.code in ("rule-template", "policies-size") for item in findings):
        yield from rules.validate(bundle.policies)
    for rule in parsed:
        if rule.approval and rule.approvers:
            yield from _check_members(bundle, rule.approvers, rule.approval, "/policies", rule.id)
        yield from _check_names(rule, bundle)


def _check_names(rule: rules.Rule, bundle: Bundle) -> Iterator[Finding]:
    groups = {*bundle.groups.callers, *bundle.groups.approvers}
    for kind, name in sorted(set(rule.entities())):
        if kind == "Group" and name not in groups:
            yield finding("rule-group-unknown", "/policies", f"group {name} is not listed", rule=rule.id)
        elif kind == "Agent" and bundle.caller(name) is None:
            yield finding(
                "rule-name-unknown", "/policies", "the rule names no caller of this bundle", rule=rule.id
            )
        elif kind == "Server" and name not in bundle.servers:
            yield finding(
                "rule-name-unknown", "/policies", "the rule names no server of this bundle", rule=rule.id
            )
        elif kind == "Tool":
            server, _, tool = name.partition("/")
            policy = bundle.servers.get(server)
            if policy is None:
                yield finding(
                    "rule-name-unknown", "/policies", "the rule names no server of this bundle", rule=rule.id
                )
            elif tool not in {binding.tool for binding in policy.bindings}:
                yield finding(
                    "binding-missing-tool",
                    "/policies",
                    "the rule names a tool without a binding",
                    rule=rule.id,
                )

"""One test per error of the lint (call-proof.md 8.7, running.md 4.1 and 4.4, acceptance item 50)."""

import copy

import pytest

from onrecord.authorize.policy import Policy, read_bundle
from onrecord.authorize.policy.codes import CODES
from onrecord.authorize.policy.source import compose
from onrecord.base.errors import PolicyError

TOOL = ("servers", 0, "tools", 0)


def at(document, *way):
    for step in way:
        document = document[step]
    return document


def argument(document, **members):
    """Replace the argument of read_file."""
    at(document, *TOOL)["arguments"] = {"path": members, "other": {"json": "string"}}


CHANGES = {
    "bundle-schema": lambda d: d.update(schema=d["schema"] + "\n"),
    "bundle-created": lambda d: d.update(created="2026-11-30T09:00:00+01:00"),
    "uid-refused": lambda d: at(d, "callers", 0).update(uid=65534),
    "id-duplicate": lambda d: d["servers"].append(d["servers"][0] | {"uid": 2199}),
    "caller-differs": lambda d: d["callers"].append(d["callers"][0] | {"uid": 2002, "groups": []}),
    "group-unknown": lambda d: at(d, "callers", 0).update(groups=["agents", "staff"]),
    "group-cycle": lambda d: d["entities"].append(
        {"uid": {"type": "Group", "id": "agents"}, "parents": [{"type": "Group", "id": "agents"}]}
    ),
    "user-mode": lambda d: d["userMode"].update(caller="nobody"),
    "root-path": lambda d: at(d, "servers", 0)["roots"].update(repo="/srv/review/repo/"),
    "root-duplicate": lambda d: at(d, "servers", 0)["roots"].update(again="/srv/review/repo"),
    "retention-order": lambda d: d["retention"].update(bodyDays=401),
    "descriptions-unsupported": lambda d: d.update(descriptions="required"),
    "passkey-unsupported": lambda d: at(d, "approvers", 0).update(channels=["terminal", "passkey"]),
    "effects-unsupported": lambda d: at(d, *TOOL).update(effects={}),
    "binding-undecided": lambda d: at(d, *TOOL).update(decide=["op"]),
    "binding-pin": lambda d: at(d, *TOOL).update(inputSchemaSha256="sha-256:short"),
    "binding-base": lambda d: argument(d, json="string", fact="path", base="elsewhere"),
    "binding-currency": lambda d: argument(d, json="number", fact="amount", currency="eur"),
    "binding-argument": lambda d: at(d, *TOOL).update(op={"argument": "none", "table": {"a": "read"}}),
    "binding-fact": lambda d: argument(d, json="number", fact="host"),
    "binding-member": lambda d: argument(d, json="string", mode="read"),
    "binding-missing-tool": lambda d: d["servers"][0]["tools"].pop(3),
    "approvers-too-few": lambda d: at(d, "approvers", 0).update(groups=["operators"]),
    "rule-name-unknown": lambda d: (
        at(d, "callers", 0).update(id="other"),
        d["userMode"].update(caller="other"),
    ),
}


@pytest.mark.parametrize("code", CHANGES)
def test_each_error(document, codes, code):
    """Each rule of the lint finds its own breach in an otherwise good bundle."""
    assert codes(document) == []
    CHANGES[code](document)
    assert set(codes(document)) == {code}
    assert CODES[code].severity == (
        "warning" if code in ("binding-missing-tool", "rule-name-unknown") else "error"
    )


def test_good(document, codes):
    """The example bundle has no finding at all."""
    assert codes(document) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["servers"][0].update(uid=2001),
        lambda d: d["approvers"][0].update(uid=2101),
        lambda d: d["approvers"][1].update(uid=3001),
        lambda d: d["controlRoles"][0].update(uid=2001),
        lambda d: d["controlRoles"][1].update(uid=3001),
        lambda d: d["callers"].append(d["callers"][0] | {"id": "second"}),
        lambda d: d["callers"].append(dict(d["callers"][0])),
        lambda d: d["servers"][1].update(uid=2101),
    ],
)
def test_shared_uid(document, codes, change):
    """One uid has one role and one id, wherever uids count; in user mode they say nothing."""
    change(document)
    assert codes(document, mode="system") == ["uid-shared"]
    assert codes(document, mode="user") == []
    del document["userMode"]
    assert "uid-shared" in codes(document)


def test_shared_uid_is_nobody(document):
    """Even a loader that does not know its mode gives no role to a uid with two."""
    document["approvers"][0]["uid"] = 2001
    bundle, _ = read_bundle(compose(document))
    assert bundle.caller_by_uid(2001) is None
    assert bundle.approver_by_uid(2001) is None
    assert bundle.caller_by_uid(2001) is None
    assert bundle.server_by_uid(2101).id == "filesystem"


@pytest.mark.parametrize("uid", [0, 65534])
@pytest.mark.parametrize("member", ["callers", "servers", "approvers", "controlRoles"])
def test_nobodys_uids(document, codes, member, uid):
    """Root and the overflow uid are refused in every role."""
    document[member][0]["uid"] = uid
    assert "uid-refused" in codes(document)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["approvers"][0].update(groups=["reviewers", "nobody"]),
        lambda d: d["entities"].append({"uid": {"type": "Group", "id": "new"}}),
        lambda d: d["entities"].append(
            {"uid": {"type": "Group", "id": "agents"}, "parents": [{"type": "Group", "id": "new"}]}
        ),
    ],
)
def test_group_names(document, codes, change):
    """A group name that is not listed is an error wherever it occurs."""
    change(document)
    assert codes(document) == ["group-unknown"]


def test_group_cycle_of_two(document, codes):
    """Groups that contain each other are found, and the search ends."""
    for name, parent in (("operators", "reviewers"), ("reviewers", "operators")):
        document["entities"].append(
            {"uid": {"type": "Group", "id": name}, "parents": [{"type": "Group", "id": parent}]}
        )
    assert codes(document) == ["group-cycle", "group-cycle"]


def test_nested_approvers_count(document, codes):
    """Members of a nested group are members, so two approvals of reviewers can be had."""
    document["policies"] = document["policies"].replace(
        '@approval("1")\n@approvers("reviewers")', '@approval("2")\n@approvers("reviewers")'
    )
    assert codes(document) == ["approvers-too-few"]
    document["entities"].append(
        {"uid": {"type": "Group", "id": "operators"}, "parents": [{"type": "Group", "id": "reviewers"}]}
    )
    assert codes(document) == []


def test_unknown_as_approval(document, codes):
    """The built-in rule's approvers are checked like any others."""
    document["unknown"] = {"effect": "approval", "approval": 2, "approvers": "operators"}
    assert codes(document) == []
    document["unknown"]["approval"] = 3
    assert codes(document) == ["approvers-too-few"]
    document["unknown"] = {"effect": "approval", "approval": 1, "approvers": "agents"}
    assert codes(document) == ["rule-approvers"]


@pytest.mark.parametrize(
    "members",
    [
        {"json": "array", "fact": "path", "base": "review"},
        {"json": "array", "items": "object", "fact": "path", "base": "review"},
        {"json": ["string", "integer"], "fact": "path", "base": "review"},
        {"json": "object", "fact": "command"},
        {"json": "string", "fact": "amount", "currency": "EUR"},
        {"json": "null", "fact": "host"},
        {"json": []},
    ],
)
def test_fact_types(document, codes, members):
    """A fact comes only from JSON types that can give it."""
    argument(document, **members)
    assert codes(document) == ["binding-fact"]


@pytest.mark.parametrize(
    "members",
    [
        {"json": "string", "items": "string"},
        {"json": "integer", "forbidPrefix": ["-"]},
        {"json": "string", "base": "review"},
        {"json": "string", "fact": "host", "mode": "read"},
        {"json": "string", "currency": "EUR"},
    ],
)
def test_members_out_of_place(document, codes, members):
    """A member that would be ignored is an error."""
    argument(document, **members)
    assert codes(document) == ["binding-member"]


@pytest.mark.parametrize(
    ("other", "base"),
    [
        (None, {"argument": "path"}),
        (None, {"argument": "other"}),
        (None, {"argument": "none"}),
        ({"json": "array", "items": "string", "fact": "path", "base": "review"}, {"argument": "other"}),
        ({"json": "string", "fact": "path", "base": {"argument": "path"}}, {"argument": "other"}),
    ],
)
def test_base_of_argument(document, codes, other, base):
    """A base that names an argument names a single path with a base of its own."""
    argument(document, json="string", fact="path", base=base)
    if other is not None:
        at(document, *TOOL)["arguments"]["other"] = other
    assert "binding-base" in codes(document)


def test_currency_of_argument(document, codes):
    """A currency that names an argument names a text."""
    argument(document, json="number", fact="amount", currency={"argument": "other"})
    assert codes(document) == []
    at(document, *TOOL)["arguments"]["other"] = {"json": "integer"}
    assert codes(document) == ["binding-argument"]


def test_lint_is_needed_before_compiling(document):
    """A policy that was not linted does not compile when its rules are wrong."""
    broken = copy.deepcopy(document) | {"policies": "permit(principal, action, resource);"}
    bundle, _ = read_bundle(compose(broken))
    with pytest.raises(PolicyError) as e:
        Policy(bundle)
    assert e.value.code == "policy-error"

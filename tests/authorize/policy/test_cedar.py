"""Decisions: the traps of the evaluator, approval rules, and what may be left out of an evaluation."""

import itertools
import json

import cedarpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.authorize.policy import CallRequest, Policy, cedar, read_bundle
from onrecord.authorize.policy.rules import built_in, shipped_schema
from onrecord.authorize.policy.source import compose
from support.policies import example_document

PERMIT = '@id("all") permit(principal, action == Action::"tools/call", resource);\n'
HEAD = 'forbid(principal, action == Action::"tools/call", resource)'


def approval(name, group="operators", number=1, when="true"):
    return (
        f'@id("{name}") @approval("{number}") @approvers("{group}") {HEAD} when {{ {when} }} '
        f'unless {{ context.approvals.contains("{name}") }};\n'
    )


@pytest.fixture
def with_rules(document, compile_policy):
    """Return a function from Cedar text to a compiled policy."""
    return lambda text, **more: compile_policy(document | {"policies": text} | more)


READ = ("filesystem", "read_file", {"path": "repo/README.md"})


class TestDenial:
    """Deny by default; forbid overrides permit; a call that is not clean is denied."""

    def test_no_rule(self, with_rules, decide):
        """Without a permit everything is denied."""
        decision = decide(with_rules(""), *READ)
        assert (decision.effect, decision.rules, decision.detail) == ("deny", (), "no_permit")

    def test_forbid_wins(self, with_rules, decide):
        """A forbid that matches denies whatever is permitted, and is named."""
        decision = decide(with_rules(PERMIT + f'@id("never") {HEAD};'), *READ)
        assert (decision.effect, decision.rules, decision.detail) == ("deny", ("never",), "forbidden")

    def test_unknown_caller_and_server(self, with_rules):
        """A caller or server that the bundle does not have is denied, even if everything is permitted."""
        policy = with_rules(PERMIT)
        call = CallRequest(caller="x", server="filesystem", name="read_file", arguments={})
        assert policy.decide(call).detail == "unknown_caller"
        call = CallRequest(caller="code-review", server="x", name="read_file", arguments={})
        assert policy.decide(call).detail == "unknown_server"

    def test_unbound_tool(self, with_rules, decide):
        """A tool without a binding is unknown, and the built-in rule denies it."""
        decision = decide(with_rules(PERMIT), "filesystem", "write_file", {})
        assert (decision.effect, decision.rules, decision.detail) == (
            "deny",
            ("onrecord.unknown",),
            "unknown_tool",
        )

    def test_rule_about_an_unbound_tool(self, with_rules, decide):
        """A rule that names a tool without a binding matches it all the same."""
        text = PERMIT + '@id("never") forbid(principal, action, resource == Tool::"filesystem/write_file");'
        decision = decide(with_rules(text), "filesystem", "write_file", {})
        assert decision.rules == ("never", "onrecord.unknown")

    @pytest.mark.parametrize("advertised", [None, {}, {"read_file": "sha-256:" + "A" * 43}])
    def test_pin(self, with_rules, decide, advertised):
        """A binding counts only while the server advertises the pinned schema (acceptance item 55)."""
        decision = decide(with_rules(PERMIT), *READ, advertised=advertised)
        assert (decision.effect, decision.detail) == ("deny", "unknown_tool")

    @pytest.mark.parametrize(
        "arguments",
        [
            {"path": 1},
            {"path": ["repo/README.md"]},
            {"path": "repo/README.md", "encoding": "x"},
            {"Path": "x"},
        ],
    )
    def test_wrong_arguments(self, with_rules, decide, arguments):
        """Renamed, extra and mistyped arguments are unknown (acceptance item 54)."""
        decision = decide(with_rules(PERMIT), "filesystem", "read_file", arguments)
        assert (decision.effect, decision.detail) == ("deny", "unknown_arguments")

    def test_one_path_outside(self, with_rules, decide):
        """All touches must be allowed: one path outside denies the call."""
        text = (
            PERMIT + f'@id("outside") {HEAD} when {{ context has path && context.path.root == "outside" }};'
        )
        call = ("git", "git_add", {"repo_path": "/srv/review/repo", "files": ["a", "/etc/passwd", "b"]})
        decision = decide(with_rules(text), *call)
        assert (decision.effect, decision.rules) == ("deny", ("outside",))
        assert [touch.effect for touch in decision.touches] == ["allow", "allow", "deny", "allow"]

    def test_too_many_touches(self, with_rules, decide):
        """More touches than are judged deny the call."""
        call = ("git", "git_add", {"repo_path": "/srv/review/repo", "files": [f"f{n}" for n in range(64)]})
        assert decide(with_rules(PERMIT), *call).detail == "too_many_touches"

    def test_no_value_in_a_decision(self, with_rules, decide):
        """What a decision prints holds no argument value and no fact."""
        decision = decide(with_rules(PERMIT), "filesystem", "read_file", {"path": "repo/canary-7"})
        assert "canary" not in repr(decision)
        call = CallRequest(caller="c", server="s", name="n", arguments={"path": "canary-7"})
        assert "canary" not in repr(call)


class TestTraps:
    """Each trap of call-proof.md 8.5 ends in a denial (acceptance item 49)."""

    def unlinted(self, document, text, schema=None):
        """Compile rules that the lint would refuse, as if it had missed them."""
        bundle, _ = read_bundle(compose(document | {"policies": text}))
        return Policy(bundle)

    def test_erroring_forbid(self, document, decide):
        """Cedar skips a forbid that fails; we deny."""
        text = PERMIT + f'@id("f") {HEAD} when {{ context.host.name == "evil.example" }};'
        policy = self.unlinted(document, text)
        view = policy._bound_view("code-review", "filesystem", "read_file")
        raw = cedarpy.is_authorized(
            {
                "principal": view.principal,
                "action": cedar._ACTION,
                "resource": view.resource,
                "context": {"op": "x"},
            },
            view.policies,
            view.entities,
        )
        assert raw.decision is cedarpy.Decision.Allow  # the trap
        assert raw.diagnostics.errors
        decision = decide(policy, *READ)
        assert (decision.effect, decision.detail) == ("deny", "policy_error")

    def test_overflow(self, document, decide, codes):
        """An overflow passes validation and skips the forbid: the lint refuses it, and if it did not, we deny."""
        condition = "context has amount && context.amount.minor * 100 > 5"
        text = PERMIT + f'@id("f") {HEAD} when {{ {condition} }};'
        assert "rule-arithmetic" in codes(document | {"policies": text})
        form = json.loads(cedarpy.policies_to_json_str(text))
        policy = self.unlinted(document, PERMIT)
        view = cedar._View(
            cedarpy.PolicySet.from_json_str(json.dumps(form)),
            policy._bound_view("code-review", "filesystem", "read_file").entities,
            {"type": "Agent", "id": "code-review"},
            {"type": "Tool", "id": "filesystem/read_file"},
        )
        context = {"op": "pay", "impact": 1, "round": 1, "unknown": [], "approvals": []}
        big = {**context, "amount": {"minor": 2**62, "currency": "EUR"}}
        assert policy._evaluate(view, [big])[0].allowed is None

    @pytest.mark.parametrize(
        "facts",
        [
            {"impact": 1.5},
            {"impact": None},
            {"impact": 2**63},
            {"impact": float("nan")},
            {"op": None},
            {"path": {"root": "repo"}},
            {"path": "repo"},
            {"unknown": "x"},
            {"extra": 1},
            {"op": {"__entity": {"type": "Group", "id": "agents"}}},
        ],
    )
    def test_no_decision(self, document, facts):
        """A context that is not of the schema gives no decision, and no decision is no."""
        policy = self.unlinted(document, PERMIT)
        view = policy._bound_view("code-review", "filesystem", "read_file")
        context = {"op": "read", "impact": 1, "round": 1, "unknown": [], "approvals": []} | facts
        assert policy._evaluate(view, [context])[0].allowed is None

    def test_lone_surrogate(self, document, decide):
        """A name that is no Unicode text is denied, not crashed on."""
        decision = decide(self.unlinted(document, PERMIT), "filesystem", "read\ud800", {})
        assert (decision.effect, decision.detail) == ("deny", "policy_error")

    def test_entity_in_data(self, document, decide, compile_policy):
        """An argument in the form of an entity stays data: it never reaches the evaluator."""
        document["servers"][0]["tools"][0]["arguments"]["options"] = {"json": "object"}
        text = PERMIT + f'@id("f") {HEAD} when {{ context.op == "admin" }};'
        policy = compile_policy(document | {"policies": text})
        evil = {"__entity": {"type": "Group", "id": "agents"}}
        for arguments in ({"path": evil}, {"path": "repo/x", "options": evil}):
            decision = decide(policy, "filesystem", "read_file", arguments)
            assert "__entity" not in json.dumps([dict(touch.facts) for touch in decision.touches])
        assert decision.effect == "allow"

    @pytest.mark.parametrize(
        "name",
        [
            'a"b',
            "a\nb",
            'x" || true',
            "a\\b",
            '"',
            "\u202e",
            "read_file\u0000",
            "filesystem/read_file",
            "a::b",
        ],
    )
    def test_hostile_names(self, with_rules, decide, name):
        """A tool name with quotes, line feeds or Cedar text is a name, and is unknown."""
        decision = decide(with_rules(PERMIT), "filesystem", name, {})
        assert (decision.effect, decision.detail) == ("deny", "unknown_tool")

    def test_reasons_are_our_ids(self, document, with_rules, decide):
        """Decisions name rules by @id, whatever the order in the text."""
        one = f'@id("first") {HEAD};\n'
        assert (
            decide(with_rules(PERMIT + one), *READ).rules
            == decide(with_rules(one + PERMIT), *READ).rules
            == ("first",)
        )

    def test_duplicate_id(self, document, codes):
        """Two rules with one id do not load."""
        assert codes(document | {"policies": PERMIT + PERMIT}) == ["rule-id-duplicate"]

    def test_evaluator_breaks(self, with_rules, decide, monkeypatch):
        """An exception or a panic of the evaluator is a denial; an interrupt of the person is not swallowed."""

        class PanicException(BaseException):
            pass

        policy = with_rules(PERMIT)
        for error in (ValueError("x"), RuntimeError("x"), PanicException("x"), MemoryError()):

            def fail(*args, error=error):
                raise error

            monkeypatch.setattr(cedarpy, "is_authorized_batch", fail)
            assert decide(policy, *READ).detail == "policy_error"
        monkeypatch.setattr(cedarpy, "is_authorized_batch", lambda *args: [])
        assert decide(policy, *READ).effect == "deny"

        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(cedarpy, "is_authorized_batch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            decide(policy, *READ)

    def test_schema_and_parsed_handles(self, with_rules, decide, monkeypatch):
        """Each evaluation gets the schema, and nothing is parsed again (the cost trap)."""
        policy = with_rules(PERMIT)
        seen = []
        real = cedarpy.is_authorized_batch
        monkeypatch.setattr(cedarpy, "is_authorized_batch", lambda *args: (seen.append(args), real(*args))[1])
        decide(policy, *READ)
        ((_, policies, entities, schema),) = seen
        assert isinstance(policies, cedarpy.PolicySet)
        assert isinstance(entities, cedarpy.Entities)
        assert isinstance(schema, cedarpy.Schema)


class TestApproval:
    """Approval rules (call-proof.md 8.6, acceptance item 56)."""

    def test_one_rule(self, with_rules, decide):
        """A call that only an approval rule forbids waits for that approval."""
        decision = decide(with_rules(PERMIT + approval("ask", number=2)), *READ)
        assert decision.effect == "approval"
        assert decision.approvals == (("ask", 2, "operators"),)
        assert decision.rules == ("ask",)

    def test_granted(self, with_rules, decide):
        """The granted approval lets exactly this pass."""
        policy = with_rules(PERMIT + approval("ask"))
        assert decide(policy, *READ, approvals=frozenset({"ask"})).effect == "allow"

    def test_two_rules_need_both(self, with_rules, decide):
        """Both rules are needed, and one approval does not lift the other."""
        policy = with_rules(PERMIT + approval("one") + approval("two", "reviewers"))
        assert {a.rule for a in decide(policy, *READ).approvals} == {"one", "two"}
        decision = decide(policy, *READ, approvals=frozenset({"one"}))
        assert decision.effect == "approval"
        assert [a.rule for a in decision.approvals] == ["two"]
        assert decide(policy, *READ, approvals=frozenset({"one", "two"})).effect == "allow"

    def test_hard_forbid_is_never_lifted(self, with_rules, decide):
        """Beside a forbid without approval there is nothing to ask, and approvals change nothing."""
        policy = with_rules(PERMIT + approval("ask") + f'@id("never") {HEAD};')
        for granted in (frozenset(), frozenset({"ask"}), frozenset({"ask", "never"})):
            decision = decide(policy, *READ, approvals=granted)
            assert decision.effect == "deny"
            assert "never" in decision.rules

    def test_a_permit_is_needed_all_the_same(self, with_rules, decide):
        """What no rule permits cannot be approved."""
        assert decide(with_rules(approval("ask")), *READ).effect == "deny"

    def test_forbid_that_appears_with_the_approval(self, with_rules, decide):
        """Approvals of other rules, or of none, lift nothing."""
        policy = with_rules(PERMIT + approval("ask"))
        for granted in ({"other"}, {"all"}, {"onrecord.unknown"}, {""}):
            assert decide(policy, *READ, approvals=frozenset(granted)).effect == "approval"

    def test_every_touch(self, with_rules, decide):
        """One touch that waits makes the call wait; one that is denied denies it."""
        outside = 'context has path && context.path.root == "outside"'
        call = ("git", "git_add", {"repo_path": "/srv/review/repo", "files": ["a", "/etc/x"]})
        assert decide(with_rules(PERMIT + approval("ask", when=outside)), *call).effect == "approval"
        hard = f'@id("never") {HEAD} when {{ {outside} }};'
        decision = decide(with_rules(PERMIT + hard + approval("ask", when=f"!({outside})")), *call)
        assert (decision.effect, decision.rules) == ("deny", ("never",))

    def test_unknown_as_approval(self, with_rules, decide):
        """The built-in rule can ask a person; a permit is needed all the same."""
        unknown = {"effect": "approval", "approval": 2, "approvers": "operators"}
        decision = decide(with_rules(PERMIT, unknown=unknown), "filesystem", "other", {})
        assert decision.approvals == (("onrecord.unknown", 2, "operators"),)
        assert decide(with_rules("", unknown=unknown), "filesystem", "other", {}).effect == "deny"

    def test_round(self, with_rules, decide):
        """Rules see the round of a call that went on."""
        policy = with_rules(PERMIT + approval("ask", when="context.round > 1"))
        assert decide(policy, *READ, round=1).effect == "allow"
        assert decide(policy, *READ, round=2).effect == "approval"


class TestViews:
    """Leaving rules and entities out of an evaluation changes no decision."""

    SCOPES = (
        "principal",
        'principal == Agent::"code-review"',
        'principal == Agent::"other"',
        'principal in Group::"agents"',
        'principal in Group::"outer"',
        'principal in Group::"reviewers"',
        "principal is Agent",
        'principal is Agent in Group::"agents"',
        'principal is Agent in Group::"reviewers"',
    )
    TARGETS = (
        "resource",
        'resource == Tool::"filesystem/read_file"',
        'resource == Tool::"git/git_log"',
        'resource in Server::"filesystem"',
        'resource in Server::"git"',
        "resource is Tool",
        'resource is Tool in Server::"git"',
    )
    CONDITIONS = (
        "true",
        "context.impact <= 1",
        'principal in Group::"outer"',
        'resource in Server::"git"',
        'Agent::"other" in Group::"agents"',
        'Tool::"git/git_log" in Server::"git"',
        'Group::"agents" in Group::"outer"',
        'Group::"reviewers" in [Group::"outer", Group::"agents"]',
        'principal == Agent::"other"',
        'context has path && context.path.root == "repo"',
    )
    RULES = st.lists(
        st.tuples(
            st.sampled_from(["permit", "forbid"]),
            st.sampled_from(SCOPES),
            st.sampled_from(TARGETS),
            st.sampled_from(CONDITIONS),
        ),
        max_size=6,
    )

    @given(RULES, st.sampled_from(["code-review", "other"]), st.sampled_from(["read_file", "git_log", "new"]))
    @settings(max_examples=150)
    def test_same_as_the_whole(self, rules, caller, tool):
        """A decision equals that of all rules and all entities at once."""
        document = example_document()
        document["policies"] = "".join(
            f'@id("r{n}") {effect}({scope}, action == Action::"tools/call", {target}) when {{ {condition} }};\n'
            for n, (effect, scope, target, condition) in enumerate(rules)
        )
        document["callers"].append(document["callers"][0] | {"id": "other", "uid": 2009, "groups": []})
        document["groups"]["callers"].append("outer")
        document["entities"].append(
            {"uid": {"type": "Group", "id": "agents"}, "parents": [{"type": "Group", "id": "outer"}]}
        )
        bundle, _ = read_bundle(compose(document))
        policy = Policy(bundle)
        server = "git" if tool == "git_log" else "filesystem"
        context = {"op": "read", "impact": 1, "round": 1, "unknown": [], "approvals": []}
        facts = {"root": "repo", "rel": "x", "mode": "read", "dotdot": False, "hidden": False}
        view = policy._make_view(caller, server, tool)
        parents = dict(policy._parents) | {("Tool", f"{server}/{tool}"): (("Server", server),)}
        entities = [
            {"uid": cedar._uid(e), "attrs": {}, "parents": [cedar._uid(p) for p in above]}
            for e, above in parents.items()
        ]
        whole = cedar._View(
            cedarpy.PolicySet.from_str(document["policies"] + built_in(bundle.unknown)),
            cedarpy.Entities.from_json_str(json.dumps(entities), shipped_schema()),
            view.principal,
            view.resource,
        )
        contexts = [context, context | {"path": facts}, context | {"unknown": ["tool"]}]
        assert policy._evaluate(view, contexts) == policy._evaluate(whole, contexts)
        assert len(view.policies) <= len(whole.policies)

    def test_unbound_names_are_bounded(self, with_rules, decide):
        """An agent that invents names fills no memory."""
        policy = with_rules(PERMIT)
        for number in range(cedar.UNBOUND_NAMES + 50):
            decide(policy, "filesystem", f"tool-{number}", {})
        assert policy._unbound_view.cache_info().currsize == cedar.UNBOUND_NAMES
        assert policy._rule_set.cache_info().currsize < 5

    def test_shared_rule_sets(self, with_rules, decide):
        """Tools that the same rules concern share one parsed set."""
        policy = with_rules(PERMIT)
        views = [policy._bound_view("code-review", "git", name) for name in ("git_log", "git_status")]
        assert views[0].policies is views[1].policies


def test_nested_groups(document, compile_policy, decide):
    """A rule about an outer group concerns callers of the inner one."""
    document["entities"].append(
        {"uid": {"type": "Group", "id": "agents"}, "parents": [{"type": "Group", "id": "outer"}]}
    )
    document["groups"]["callers"].append("outer")
    document["policies"] = '@id("p") permit(principal in Group::"outer", action, resource);'
    assert decide(compile_policy(document), *READ).rules == ("p",)


def test_example_decisions(document, compile_policy, decide):
    """The starter policy denies what it should, over every tool of the examples and hostile paths."""
    policy = compile_policy(document)
    paths = [
        "../secret",
        "~/.aws/credentials",
        "/etc/passwd",
        "repo/.git/config",
        "repo/../../etc",
        "repo\\..\\x",
    ]
    for tool, path in itertools.product(("read_file", "list_directory"), paths):
        assert decide(policy, "filesystem", tool, {"path": path}).effect == "deny"

"""What the lint refuses in Cedar text (call-proof.md 8.5, 8.6, 8.7, acceptance item 50)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.policy.model import UnknownApproval, UnknownForbid
from onrecord.authorize.policy.rules import (
    MAX_BRACKETS,
    MAX_OPERATORS,
    MAX_POLICIES,
    MAX_POLICY_TEXT,
    built_in,
    parse,
    validate,
)

HEAD = 'principal, action == Action::"tools/call", resource'


def rule(condition="true", *, effect="permit", head='@id("r")', kind="when", scope=HEAD):
    return f"{head} {effect}({scope}) {kind} {{ {condition} }};\n"


def found(text, *, own=False):
    return [item.code for item in parse(text, own=own)[1]]


OWN = 'unless { context.approvals.contains("r") }'
APPROVAL = '@id("r") @approval("1") @approvers("g")'


def approval(unless=OWN, *, head=APPROVAL, effect="forbid", when=""):
    return f"{head} {effect}({HEAD}) {when} {unless};\n"


def test_good_rules():
    """Rules of the plain kind have no finding."""
    text = rule('context.op == "read" && context has path && context.path.root like "re*"')
    text += approval().replace('"r"', '"s"') + rule(
        '["a","b"].contains(context.op)', head='@id("t") @doc("why")'
    )
    assert found(text) == []
    assert [r.id for r in parse(text, own=False)[0]] == ["r", "s", "t"]
    assert [r.approval for r in parse(text, own=False)[0]] == [0, 1, 0]


@pytest.mark.parametrize(
    "head",
    ["", "@id", '@id("")', '@id("Upper")', '@id("a b")', '@id("-a")', f'@id("{"a" * 65}")', '@name("r")'],
)
def test_id(head):
    """Each rule has an @id of the right form."""
    assert found(rule(head=head)) == ["rule-id"]


def test_duplicate_id():
    """Two rules with one id load without complaint in Cedar, so the lint complains."""
    assert found(rule() + rule(effect="forbid")) == ["rule-id-duplicate"]


@pytest.mark.parametrize("name", ["onrecord.unknown", "onrecord.other"])
def test_reserved_id(name):
    """A bundle cannot bring its own built-in rule."""
    assert found(rule(head=f'@id("{name}")')) == ["rule-id-reserved"]


def test_template():
    """A template decides nothing and is refused."""
    assert "rule-template" in found('@id("r") permit(principal == ?principal, action, resource);')


@pytest.mark.parametrize(
    "text",
    [
        "permit(",
        "nonsense",
        'permit(principal, action, resource) when { "open };',
        "\x00",
        '@id("r") @id("r") permit(principal, action, resource);',
    ],
)
def test_syntax(text):
    """Text that is not Cedar is refused with its reason."""
    assert found(text) == ["policies-syntax"]


@pytest.mark.parametrize(
    "condition",
    [
        "context.impact + 1 > 2",
        "context.impact - 1 > 2",
        "context.impact * 2 > 2",
        "-context.impact > 2",
        "[context.impact + 1].contains(2)",
        '{"a": context.impact * 2}.a == 2',
        "if context.impact - 1 > 0 then true else false",
    ],
)
def test_arithmetic(condition):
    """Arithmetic can overflow, which skips a forbid: refused, however deep it stands."""
    assert found(rule(condition)) == ["rule-arithmetic"]


@pytest.mark.parametrize(
    "condition",
    [
        'ip("127.0.0.1").isLoopback()',
        'decimal("1.0").lessThan(decimal("2.0"))',
        'datetime("2026-01-01").toTime() == duration("1h")',
        'principal.hasTag("x")',
        'principal.getTag("x") == "y"',
    ],
)
def test_functions(condition):
    """Extension functions and tags are refused: our facts need none, and they can fail."""
    assert "rule-operator" in found(rule(condition))


@pytest.mark.parametrize(
    "condition",
    [
        'context == {"op": "read"}',
        "[context].contains(context)",
        "(if true then context else context).impact == 1",
        '{"a": context}.a.impact == 1',
    ],
)
def test_context_as_a_whole(condition):
    """Context is used by its members only, or approvals could be read around the check."""
    assert "rule-context" in found(rule(condition))


@pytest.mark.parametrize(
    "condition",
    [
        'context.approvals.contains("r")',
        "context.approvals.isEmpty()",
        'context["approvals"].contains("r")',
        "context has approvals",
        'context.approvals == ["r"]',
        'context.approvals.containsAll(["r"])',
        '[context.approvals].contains(["r"])',
    ],
)
@pytest.mark.parametrize("effect", ["permit", "forbid"])
@pytest.mark.parametrize("kind", ["when", "unless"])
def test_approvals_elsewhere(condition, effect, kind):
    """context.approvals occurs nowhere but in the unless of its own approval rule."""
    assert found(rule(condition, effect=effect, kind=kind)) == ["rule-approval-elsewhere"]


@pytest.mark.parametrize(
    "unless",
    [
        "",
        'unless { context.approvals.contains("other") }',
        'unless { context.approvals.contains("r") || true }',
        'unless { true || context.approvals.contains("r") }',
        'unless { context.approvals.contains("r") && context.impact == 1 }',
        'unless { !context.approvals.contains("r") }',
        'unless { context.approvals.containsAny(["r"]) }',
        'unless { context.approvals.contains("r") } unless { context.impact == 0 }',
        'unless { context.approvals.contains("r") } unless { context.approvals.contains("r") }',
        'when { context.approvals.contains("r") }',
        "unless { context.impact == 0 }",
    ],
)
def test_unless_is_exact(unless):
    """The unless of an approval rule is exactly its own approval, so nothing else lifts it."""
    assert "rule-approval-unless" in found(approval(unless))


def test_when_beside_unless():
    """An approval rule may say when it applies."""
    assert found(approval(when='when { context.op == "execute" }')) == []
    assert found(approval(when="when { context.approvals.isEmpty() }")) == ["rule-approval-elsewhere"]


@pytest.mark.parametrize("number", ['("0")', '("10")', '("one")', '("")', "", '("-1")', '("1 ")'])
def test_approval_number(number):
    """The number of approvals is 1 to 9."""
    assert found(approval(head=f'@id("r") @approval{number} @approvers("g")')) == ["rule-approval-number"]


def test_approval_on_permit():
    """Only a forbid waits for approval."""
    assert "rule-approval-effect" in found(approval(effect="permit"))


def test_approvers_go_with_approval():
    """@approval needs @approvers, and the other way round."""
    assert found(approval(head='@id("r") @approval("1")')) == ["rule-approvers"]
    assert found(rule(head='@id("r") @approvers("g")')) == ["rule-approvers"]
    assert found(approval(head='@id("r") @aproval("1") @approvers("g")')) == [
        "rule-approvers",
        "rule-approval-elsewhere",
    ]


@pytest.mark.parametrize(
    "condition",
    [
        'context.path.root == "x"',
        "context.nothing == 1",
        "context.op == 1",
        'context.op > "a"',
        'principal.name == "x"',
        "context.impact",
    ],
)
def test_schema(condition):
    """A condition that could fail on some call does not pass validation."""
    assert [item.code for item in validate(rule(condition))][:1] == ["policies-invalid"]


def test_other_action():
    """Only tools/call is an action."""
    assert validate('@id("r") permit(principal, action == Action::"tools/list", resource);')[0].data == {
        "rule": "r"
    }


class TestSize:
    """What would end the process in the recursive parser is refused before the parser sees it."""

    @pytest.mark.parametrize("text", ["(" * 5000, "[" * 100_000, rule("(" * 1000 + "true" + ")" * 1000)])
    def test_brackets(self, text):
        """Deep brackets."""
        assert found(text) == ["policies-size"]

    @pytest.mark.parametrize(
        "part", ["true && ", "true || ", "!", "if true then true else ", "context.a.", "1 == "]
    )
    def test_operators(self, part):
        """Long chains."""
        assert found(rule(part * 20_000 + "true")) == ["policies-size"]

    def test_bounds(self):
        """The largest allowed nesting and chain are read, one more is not."""
        assert found(rule("(" * (MAX_BRACKETS - 1) + "true" + ")" * (MAX_BRACKETS - 1))) == []
        assert found(rule("(" * MAX_BRACKETS + "true" + ")" * MAX_BRACKETS)) == ["policies-size"]
        assert found(rule("true && " * (MAX_OPERATORS - 1) + "true")) == []
        assert found(rule("true && " * (MAX_OPERATORS + 1) + "true")) == ["policies-size"]

    def test_text_in_strings_and_comments(self):
        """Brackets and operators in strings and comments do not count."""
        assert found("// " + "(" * 999 + "\n" + rule('context.op == "' + "((&&" * 500 + '"')) == []

    def test_number_of_rules(self):
        """2000 rules are read, one more is not, and neither is a text beyond its limit."""
        rules = [rule(head=f'@id("r{n}")') for n in range(MAX_POLICIES + 1)]
        assert found("".join(rules[:-1])) == []
        assert found("".join(rules)) == ["policies-size"]
        assert found("//" + "x" * MAX_POLICY_TEXT) == ["policies-size"]


def test_built_in():
    """The built-in rule passes its own lint in both forms."""
    for unknown in (UnknownForbid(), UnknownApproval(approval=2, approvers="g")):
        text = built_in(unknown)
        assert found(text, own=True) == []
        assert validate(text) == ()
        assert found(text) == ["rule-id-reserved"]


@given(st.text(alphabet='permit(incaly,o).{}[]"&|!=<>+-*@dwh/;: \n\\0', max_size=80))
def test_any_text(text):
    """Any text ends in rules or findings, never in a foreign exception."""
    parse(text, own=False)

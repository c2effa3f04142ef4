"""From arguments to facts (call-proof.md 8.3, 8.4, acceptance item 54)."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.policy.facts import MAX_TOUCHES, Reader, schema_hash
from onrecord.authorize.policy.model import Binding, ServerPolicy
from onrecord.authorize.policy.paths import Roots

PIN = "sha-256:" + "A" * 43
SERVER = msgspec.convert(
    {
        "id": "s",
        "uid": 2101,
        "enforce": "required",
        "refuse_methods": [],
        "discloseCaller": False,
        "roots": {"repo": "/srv/repo"},
        "bases": {"work": "/srv"},
        "tools": [],
    },
    ServerPolicy,
)
PATH = {"json": "string", "fact": "path", "base": "work"}


def reader(arguments, op="read", impact=1):
    binding = {"tool": "t", "inputSchemaSha256": PIN, "op": op, "impact": impact, "arguments": arguments}
    return Reader(msgspec.convert(binding, Binding), SERVER, Roots(SERVER.roots))


def unknown(arguments, call, **more):
    return reader(arguments, **more).read(call).unknown


def test_path_fact():
    """A path argument becomes root, rest, mode and two flags; the absolute path stays behind."""
    reading = reader({"p": PATH}).read({"p": "repo/a"})
    assert reading.touches == (
        {"path": {"root": "repo", "rel": "a", "mode": "read", "dotdot": False, "hidden": False}},
    )
    assert reading.unknown == ()


@pytest.mark.parametrize(
    ("json_type", "good", "bad"),
    [
        ("string", ["x", ""], [1, None, True, [], {}, 1.0]),
        ("integer", [7, -7, 0], [7.0, "7", True, None, []]),
        ("number", [7, 7.5], ["7", False, None]),
        ("boolean", [True, False], [0, 1, "true", None]),
        ("object", [{}, {"a": 1}], ['{"a":1}', [], None]),
        ("array", [[], [1]], ["[]", {}, None]),
        ("null", [None], [0, "", False]),
        (["string", "null"], ["x", None], [1, []]),
    ],
)
def test_json_types(json_type, good, bad):
    """Servers turn "7" into 7; here a value of another JSON type than bound makes the call unknown."""
    bound = {"a": {"json": json_type}}
    for value in good:
        assert unknown(bound, {"a": value}) == ()
    for value in bad:
        assert unknown(bound, {"a": value}) == ("argument.a",)


def test_extra_and_renamed():
    """An argument that is not listed makes the call unknown, whatever it is called; its name is not repeated."""
    assert unknown({"a": {"json": "string"}}, {"a": "x", "b": "y"}) == ("unlisted",)
    assert unknown({"a": {"json": "string"}}, {"A": "x"}) == ("unlisted",)
    assert unknown({"a": {"json": "string"}}, {}) == ()


def test_array_members():
    """Each member of an array with a fact is a touch of its own, and one bad member makes the call unknown."""
    files = {"f": {"json": "array", "items": "string", "fact": "path", "base": "work"}}
    reading = reader(files).read({"f": ["repo/a", "repo/b", "repo/a"]})
    assert [touch["path"]["rel"] for touch in reading.touches] == ["a", "b"]
    assert unknown(files, {"f": ["repo/a", 1]}) == ("argument.f",)
    assert unknown(files, {"f": ["repo/a", "~/x"]}) == ("argument.f",)
    assert reader(files).read({"f": []}).touches == ({},)


def test_two_paths_and_a_host():
    """Each path meets each host, so that a rule about both sees both."""
    bound = {"a": PATH, "b": PATH, "u": {"json": "string", "fact": "host"}}
    reading = reader(bound).read({"a": "repo/a", "b": "/etc/b", "u": "https://example.com"})
    assert [(t["path"]["root"], t["host"]["name"]) for t in reading.touches] == [
        ("repo", "example.com"),
        ("outside", "example.com"),
    ]


def test_touch_limit():
    """64 touches are judged; one more is too many, also when they come from several arguments."""
    files = {"f": {"json": "array", "items": "string", "fact": "path", "base": "work"}}
    names = [f"repo/{n}" for n in range(MAX_TOUCHES)]
    assert len(reader(files).read({"f": names}).touches) == MAX_TOUCHES
    assert reader(files).read({"f": [*names, "repo/more"]}).overflow
    both = files | {"u": {"json": "array", "items": "string", "fact": "host"}}
    assert reader(both).read({"f": names[:9], "u": [f"h{n}.example" for n in range(8)]}).overflow


def test_base_of_another_argument():
    """Relative paths join the path of the argument that the binding names, whatever the order of the members."""
    bound = {
        "files": {"json": "array", "items": "string", "fact": "path", "base": {"argument": "repo_path"}},
        "repo_path": PATH,
    }
    reading = reader(bound).read({"files": ["a", "../../etc/x"], "repo_path": "/srv/repo"})
    assert [(t["path"]["root"], t["path"]["rel"]) for t in reading.touches] == [
        ("repo", ""),
        ("repo", "a"),
        ("outside", "etc/x"),
    ]
    assert unknown(bound, {"files": ["a"]}) == ("argument.files",)
    assert unknown(bound, {"files": ["a"], "repo_path": "~"}) == ("argument.files", "argument.repo_path")


def test_forbidden_prefix():
    """An option in place of a name is unknown, in arrays too."""
    bound = {
        "r": {"json": ["string", "null"], "forbidPrefix": ["-"]},
        "l": {"json": "array", "forbidPrefix": ["-"]},
    }
    assert unknown(bound, {"r": "main", "l": ["a"]}) == ()
    assert unknown(bound, {"r": "--output=/etc/x"}) == ("argument.r",)
    assert unknown(bound, {"l": ["a", "-x"]}) == ("argument.l",)
    assert unknown(bound, {"r": None}) == ()


def test_op_table():
    """The operation can depend on an argument; a value that the table does not have is unknown."""
    op = {"argument": "action", "table": {"list": "read", "drop": "delete"}}
    bound = {"action": {"json": "string"}}
    assert reader(bound, op=op).read({"action": "drop"}).op == "delete"
    for call in ({"action": "Drop"}, {"action": "x"}, {}):
        reading = reader(bound, op=op).read(call)
        assert (reading.op, reading.unknown) == ("unknown", ("op",))
    assert reader(bound, op=op).read({"action": ["drop"]}).unknown == ("argument.action", "op")


def test_amount_with_currency_argument():
    """The currency may be an argument; without it, or with another type, the amount is unknown."""
    bound = {
        "n": {"json": "number", "fact": "amount", "currency": {"argument": "c"}},
        "c": {"json": "string"},
    }
    assert reader(bound).read({"n": 12.5, "c": "EUR"}).touches == (
        {"amount": {"minor": 1250, "currency": "EUR"}},
    )
    assert reader(bound).read({"n": 500, "c": "JPY"}).touches == (
        {"amount": {"minor": 500, "currency": "JPY"}},
    )
    assert unknown(bound, {"n": 12.5}) == ("argument.n",)
    assert unknown(bound, {"n": 12.5, "c": "JPY"}) == ("argument.n",)
    assert unknown(bound, {"n": 12.5, "c": 1}) == ("argument.c", "argument.n")


def test_other_facts():
    """Commands, hosts and resources become facts of their own kind."""
    bound = {
        "c": {"json": "string", "fact": "command"},
        "r": {"json": ["string", "integer"], "fact": "resource"},
    }
    assert reader(bound, op="execute").read({"c": "git log", "r": 7}).touches == (
        {"command": {"program": "git", "simple": True}, "resource": "7"},
    )


def test_schema_hash_is_order_free():
    """The pin does not depend on how the server orders the members of its schema."""
    assert schema_hash({"type": "object", "a": 1.0}) == schema_hash({"a": 1, "type": "object"})
    assert schema_hash({"type": "object"}).startswith("sha-256:")


values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.floats(allow_nan=False), st.text()
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
BOUND = {
    "p": PATH,
    "u": {"json": "string", "fact": "host"},
    "n": {"json": "number", "fact": "amount", "currency": "EUR"},
    "c": {"json": "string", "fact": "command"},
    "r": {"json": "string", "fact": "resource"},
    "f": {"json": "array", "items": "string", "fact": "path", "base": {"argument": "p"}},
}


@given(st.dictionaries(st.sampled_from([*BOUND, "other"]), values))
def test_any_arguments(call):
    """Any arguments give a reading whose facts are of the schema's types, and nothing else reaches policy."""
    reading = reader(BOUND).read(call)
    assert reading.touches
    for touch in reading.touches:
        for kind, fact in touch.items():
            members = fact.values() if isinstance(fact, dict) else [fact]
            assert kind in ("path", "host", "amount", "command", "resource")
            assert all(type(member) in (str, int, bool) for member in members)
    if set(call) - set(BOUND):
        assert "unlisted" in reading.unknown

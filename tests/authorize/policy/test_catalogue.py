"""The shipped bindings, against what the real servers advertise (CP appendix A, acceptance item 59)."""

import json

import msgspec
import pytest

from onrecord.authorize.policy import Policy, catalogue, check_bundle, read_bundle, schema_hash
from onrecord.authorize.policy.advertised import AdvertisedServer, AdvertisedTool
from onrecord.authorize.policy.pinning import ServerSource, pin
from onrecord.authorize.policy.source import compose
from support.data import shared_data
from support.policies import POLICY_DATA, example_document

ADVERTISED = json.loads((POLICY_DATA / "advertised.json").read_text()) | {
    "example-files": json.loads((POLICY_DATA / "example-files.tools.json").read_text())
}


def advertised(name):
    """Return a server as its real program advertises it, without descriptions."""
    return AdvertisedServer(
        name=name,
        version="1",
        tools=tuple(
            AdvertisedTool(
                name=tool["name"],
                pin=schema_hash(tool["inputSchema"]),
                input_schema=tool["inputSchema"],
                annotations={},
            )
            for tool in ADVERTISED[name]
        ),
    )


@pytest.fixture
def pinned(tmp_path):
    """Return a function from a server's name to a policy with its catalogue bindings pinned."""

    def build(name):
        document = example_document()
        document["servers"] = [document["servers"][0] | {"id": "s", "tools": []}]
        (tmp_path / "bundle.json").write_text(json.dumps(document))
        source = ServerSource(tmp_path, "s")
        report = pin(source, advertised(name))
        document["servers"][0]["tools"] = source.bindings()
        bundle, _ = read_bundle(compose(document))
        assert [f for f in check_bundle(bundle) if f.severity == "error"] == []
        return Policy(bundle), report

    return build


def test_names():
    """The catalogue knows the servers by the names that they give themselves."""
    assert catalogue.names() == set(ADVERTISED)


@pytest.mark.parametrize("name", sorted(ADVERTISED))
def test_every_tool(pinned, name):
    """Each tool of the real server is bound, with its argument names and JSON types, and nothing is left over."""
    _, report = pinned(name)
    assert set(report.pinned) == {tool["name"] for tool in ADVERTISED[name]}
    assert (report.unbound, report.missing) == ((), ())


def test_examples_have_our_pins(pinned):
    """Pinning the example server gives the bindings of the examples, with the same hashes, and one tool more."""
    policy, _ = pinned("example-files")
    theirs = json.loads(shared_data("running/policy/bindings/filesystem.json").read_text())
    pins = policy.pins("s")
    assert pins.pop("request_review") == pins["get_pull_request"]
    assert pins == {binding["tool"]: binding["inputSchemaSha256"] for binding in theirs}


class TestFilesystem:
    """CP appendix A with @modelcontextprotocol/server-filesystem."""

    @pytest.fixture
    def effect(self, pinned, decide):
        """Return a function from a call to its effect."""
        policy, _ = pinned("secure-filesystem-server")
        return lambda name, arguments: decide(policy, "s", name, arguments).effect

    @pytest.mark.parametrize("tool", ["read_file", "read_text_file", "get_file_info", "list_directory"])
    def test_reading(self, effect, tool):
        """Below repo/ may be read; credentials, other places and hidden files may not."""
        assert effect(tool, {"path": "repo/README.md"}) == "allow"
        for path in ("~/.aws/credentials", "/root/.aws/credentials", "repo/../x", "repo/.env", "README.md"):
            assert effect(tool, {"path": path}) == "deny"

    def test_several_files(self, effect):
        """Each file counts."""
        assert effect("read_multiple_files", {"paths": ["repo/a", "repo/b"]}) == "allow"
        assert effect("read_multiple_files", {"paths": ["repo/a", "/etc/passwd"]}) == "deny"
        assert effect("read_multiple_files", {"paths": "repo/a"}) == "deny"

    def test_optional_arguments(self, effect):
        """Numbers are numbers."""
        assert effect("read_text_file", {"path": "repo/a", "head": 3}) == "allow"
        assert effect("read_text_file", {"path": "repo/a", "head": "3"}) == "deny"
        assert effect("directory_tree", {"path": "repo", "excludePatterns": ["x"]}) == "allow"
        assert effect("search_files", {"path": "repo", "pattern": "**/*.md"}) == "allow"

    def test_writing(self, effect):
        """Nothing is written by the starter policy."""
        assert effect("write_file", {"path": "repo/a", "content": "x"}) == "deny"
        assert effect("edit_file", {"path": "repo/a", "edits": [{"oldText": "a", "newText": "b"}]}) == "deny"

    def test_move_with_one_path_outside(self, pinned, decide):
        """Even where moving is permitted within roots, one path outside denies it, on either side."""
        policy, _ = pinned("secure-filesystem-server")
        document = json.loads(compose(example_document()))
        rule = (
            '@id("move") permit(principal, action == Action::"tools/call", resource == Tool::"s/move_file") '
            'when { context has path && context.path.root != "outside" };\n'
        )
        document["policies"] += rule
        document["servers"] = [document["servers"][0] | {"id": "s"}]
        bundle, _ = read_bundle(compose(document))
        tools = policy.bundle.document.servers
        policy = Policy(type(bundle)(msgspec.structs.replace(bundle.document, servers=tools), bundle.sha256))
        move = lambda a, b: decide(policy, "s", "move_file", {"source": a, "destination": b})
        assert move("repo/a", "repo/b").effect == "allow"
        for way in (("repo/a", "/etc/cron.d/x"), ("/etc/passwd", "repo/b"), ("repo/a", "../b")):
            assert (move(*way).effect, move(*way).rules) == ("deny", ("outside-never",))
        assert move("repo/a", "~/b").detail == "unknown_arguments"


def test_git_options(pinned, decide):
    """A revision that is an option in truth is unknown; the reading tools work below the root."""
    policy, _ = pinned("mcp-git")
    repo = {"repo_path": "/srv/review/repo"}
    assert decide(policy, "s", "git_log", repo | {"max_count": 5, "start_timestamp": None}).effect == "allow"
    assert decide(policy, "s", "git_show", repo | {"revision": "HEAD~1"}).effect == "allow"
    assert (
        decide(policy, "s", "git_show", repo | {"revision": "--output=/tmp/x"}).detail == "unknown_arguments"
    )
    assert decide(policy, "s", "git_diff", repo | {"target": "-o"}).detail == "unknown_arguments"
    assert decide(policy, "s", "git_reset", repo).effect == "deny"


def test_fetch_is_not_permitted_by_default(pinned, decide):
    """The starter policy reaches no host; the host is a fact that rules can use."""
    policy, _ = pinned("mcp-fetch")
    decision = decide(policy, "s", "fetch", {"url": "https://example.com/a"})
    assert (decision.effect, decision.detail) == ("deny", "no_permit")
    assert decision.touches[0].facts["host"]["name"] == "example.com"


def test_time(pinned, decide):
    """Harmless reading without a target is permitted."""
    policy, _ = pinned("mcp-time")
    assert decide(policy, "s", "get_current_time", {"timezone": "Europe/Berlin"}).effect == "allow"

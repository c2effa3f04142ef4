"""The policy of the demonstration: the starter policy, one rule of the review team, and proofs of two seconds."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any, Final

from onrecord.authorize.policy.starter import write_source
from onrecord.base.configuration import Configuration
from onrecord.examples.demo.principals import Cast
from onrecord.examples.demo.servers import SERVERS
from onrecord.examples.demo.tree import Tree

CALLER: Final = "code-review"
APPROVER: Final = "ada"
RULE: Final = "50-review.cedar"

PROOF_SECONDS: Final = 2
"""Short, so that a proof that is too old does not take long to show."""


def write_policy_source(configuration: Configuration, cast: Cast, tree: Tree) -> None:
    """Write the source directory of the policy; the bindings are pinned and the bundle is signed afterwards."""
    source = configuration.policy.source
    write_source(source, mode=configuration.mode, uid=cast.approver, approver=APPROVER, caller=CALLER)
    rule = files("onrecord.examples.demo").joinpath(RULE).read_text()
    (source / "policies" / RULE).write_text(rule)
    bundle = json.loads((source / "bundle.json").read_text())
    (source / "bundle.json").write_text(json.dumps(bundle | _members(cast, tree), indent=1) + "\n")
    (source / "tests.json").write_text(json.dumps(_tests(cast), indent=1) + "\n")
    if cast.is_system:
        for path in (source, *source.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def _members(cast: Cast, tree: Tree) -> dict[str, Any]:
    return {
        "version": 1,
        "callers": [{"id": CALLER, "uid": cast.agent, "role": "agent", "groups": ["agents"]}],
        "servers": [_server(name, uid, tree) for name, uid in cast.servers],
        "groups": {"callers": ["agents"], "approvers": ["operators", "reviewers"]},
        "approvers": [
            {
                "id": APPROVER,
                "uid": cast.approver,
                "groups": ["operators", "reviewers"],
                "channels": ["terminal"],
                "credentials": [],
            }
        ],
        "controlRoles": [{"uid": cast.approver, "roles": ["auditor", "operator"]}],
        "proofSeconds": PROOF_SECONDS,
    }


def _server(name: str, uid: int, tree: Tree) -> dict[str, Any]:
    base = tree.base(name)
    return {
        "id": name,
        "uid": uid,
        "tiServer": next(server.ti_server for server in SERVERS if server.id == name),
        "enforce": "required",
        "refuse_methods": ["resources/read", "prompts/get"],
        "discloseCaller": False,
        "roots": {"repo": str(base / "repo")},
        "bases": {"review": str(base)},
        "bindings": f"bindings/{name}.json",
    }


def _tests(cast: Cast) -> list[dict[str, Any]]:
    """Rows that `policy check` runs before it signs."""
    rows: list[tuple[str, str, dict[str, Any], str]] = [
        ("filesystem", "read_file", {"path": "repo/README.md"}, "allow"),
        ("filesystem", "read_file", {"path": "~/.aws/credentials"}, "deny"),
        ("filesystem", "read_file", {"path": "repo/../home/.aws/credentials"}, "deny"),
        ("filesystem", "get_pull_request", {"number": 17}, "allow"),
        ("filesystem", "post_comment", {"number": 17, "body": "Looks good."}, "approval"),
        ("archive", "request_review", {"number": 17}, "allow"),
        ("archive", "read_file", {"path": "repo/GUIDE.md"}, "allow"),
        ("archive", "post_comment", {"number": 17, "body": "Looks good."}, "deny"),
        ("git", "git_log", {"repo_path": "repo", "max_count": 5}, "allow"),
        ("git", "git_show", {"repo_path": "repo", "revision": "--output=/tmp/x"}, "deny"),
        ("git", "git_reset", {"repo_path": "repo"}, "deny"),
    ]
    return [
        {
            "id": f"demo-{number}",
            "caller": CALLER,
            "server": server,
            "name": name,
            "arguments": arguments,
            "expect": effect,
        }
        for number, (server, name, arguments, effect) in enumerate(rows, 1)
        if server in dict(cast.servers)
    ]

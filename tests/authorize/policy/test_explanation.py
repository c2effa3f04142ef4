"""Explanations (running.md 4.2)."""

from onrecord.authorize.policy import CallRequest, explain


def test_allowed(document, compile_policy):
    """Facts, touches, decision and rules of an allowed call."""
    policy = compile_policy(document)
    call = CallRequest(
        caller="code-review", server="filesystem", name="read_file", arguments={"path": "repo/README.md"}
    )
    assert explain(policy, call).to_json() == {
        "caller": "code-review",
        "server": "filesystem",
        "name": "read_file",
        "facts": {"op": "read", "impact": 1, "round": 1, "unknown": []},
        "touches": [
            {
                "facts": {
                    "path": {
                        "root": "repo",
                        "rel": "README.md",
                        "mode": "read",
                        "dotdot": False,
                        "hidden": False,
                    }
                },
                "decision": "allow",
                "rules": ["read-within-roots"],
            }
        ],
        "decision": "allow",
        "rules": ["read-within-roots"],
        "approvals": [],
    }


def test_approval(document, compile_policy):
    """The approvals that are needed are named with number and group."""
    call = CallRequest(
        caller="code-review", server="filesystem", name="post_comment", arguments={"number": 17, "body": "x"}
    )
    made = explain(compile_policy(document), call).to_json()
    assert made["decision"] == "approval"
    assert made["approvals"] == [{"rule": "comment-needs-approval", "number": 1, "group": "reviewers"}]


def test_denied(document, compile_policy):
    """A denial says why in one word and one sentence."""
    call = CallRequest(caller="code-review", server="git", name="git_push", arguments={})
    made = explain(compile_policy(document), call).to_json()
    assert (made["decision"], made["detail"]) == ("deny", "unknown_tool")
    assert made["meaning"] == "the tool has no binding that counts"


def test_changed_tool(document, compile_policy):
    """With the hashes of a changed server, the explanation shows that the binding does not count."""
    call = CallRequest(
        caller="code-review", server="git", name="git_log", arguments={}, advertised={"git_log": "sha-256:x"}
    )
    assert explain(compile_policy(document), call).to_json()["facts"]["unknown"] == ["tool"]

"""The bindings that the package ships fit the servers that they are for (running.md 4.4)."""

import json
import os

import pytest

from live.servers import node_server, python_server
from onrecord.authorize.policy import catalogue
from onrecord.authorize.policy.advertised import list_tools
from onrecord.authorize.policy.pinning import ServerSource, bind, pin
from onrecord.authorize.policy.signing import check_policy
from onrecord.authorize.policy.starter import write_source

pytestmark = pytest.mark.live

PIP_SERVERS = {"mcp-git": "mcp-server-git", "mcp-time": "mcp-server-time", "mcp-fetch": "mcp-server-fetch"}


def source_with(directory):
    """A starter source with one server and its base."""
    source = directory / "policy"
    write_source(source, mode="user", uid=os.getuid(), approver="ada")
    document = json.loads((source / "bundle.json").read_text())
    document["servers"] = [
        {
            "id": "s",
            "uid": os.getuid(),
            "enforce": "required",
            "refuse_methods": [],
            "discloseCaller": False,
            "roots": {"work": str(directory)},
            "bases": {"work": str(directory)},
            "bindings": "bindings/s.json",
        }
    ]
    (source / "bundle.json").write_text(json.dumps(document))
    return ServerSource(source, "s"), source


def check_shipped(name, command, directory):
    """Ask a real server, look at what is proposed, then pin what is shipped."""
    directory.mkdir()
    server = list_tools(command, env={"PATH": os.environ["PATH"], "HOME": str(directory)}, cwd=directory)
    assert server.name == name
    one, source = source_with(directory)
    report = bind(one, server)
    assert report.in_catalogue
    shipped = {tool["tool"]: tool["arguments"] for tool in catalogue.entry(name).tools}
    for proposal in report.proposals:
        assert {"op", "impact"} <= set(proposal["decide"])
        facts = {argument: value.get("fact") for argument, value in proposal["arguments"].items()}
        assert facts == {argument: bound.get("fact") for argument, bound in shipped[proposal["tool"]].items()}
    assert not check_policy(source, mode="user").is_clean
    report = pin(one, server)
    assert (report.unbound, report.missing) == ((), ())
    assert set(report.pinned) == {tool.name for tool in server.tools}
    checked = check_policy(source, mode="user")
    assert checked.is_clean, [finding.to_json() for finding in checked.source.findings]


def test_pip_servers(tmp_path):
    """Git, time and fetch: proposals find each path and host; each tool has a shipped binding of its very shape."""
    commands = {name: python_server(program) for name, program in PIP_SERVERS.items()}
    for name, command in commands.items():
        check_shipped(name, command, tmp_path / name)


def test_filesystem(tmp_path):
    """The same for the file system server of npm."""
    command = [*node_server("@modelcontextprotocol/server-filesystem"), str(tmp_path)]
    check_shipped("secure-filesystem-server", command, tmp_path / "s")

"""The example of CP Appendix A, end to end with @modelcontextprotocol/server-filesystem (call-proof.md 14.10)."""

import json
import os
import subprocess
import sys

import pytest

from live.servers import node_server
from support.runtime import wait_for

pytestmark = pytest.mark.live

DIGEST = "Cj0gcJjzMZ8AlETWAqmXluFlju35YQe8n4oNQesdg0Y"
CREDENTIALS = {"path": "~/.aws/credentials"}
README = {"path": "repo/README.md"}
CANARY = "canary-5d1e9a"

HOST = """
import json, sys
from pathlib import Path
import anyio, mcp
from mcp.client import advertise
from onrecord.authorize.client import CallProofClient
from onrecord.base.configuration import Configuration
from onrecord.base.namespaces import CALL_PROOF_EXTENSION, CALL_PROOF_META, RECORD_SESSION_META

CREDENTIALS, README = json.loads(sys.argv[2]), json.loads(sys.argv[3])

async def outcome(client, arguments, meta=None):
    try:
        result = await client.call_tool("read_file", arguments, meta=meta)
    except mcp.MCPError as error:
        return [error.code, error.data["reason"]]
    return ["failure" if result.is_error else "result", result.content[0].text]

async def main():
    configuration = Configuration.load(Path(sys.argv[1]))
    argv = ["-m", "onrecord", "connect", "filesystem", "--config", sys.argv[1]]
    plain = mcp.StdioServerParameters(command=sys.executable, args=argv)
    pipe = mcp.StdioServerParameters(command=sys.executable, args=[*argv, "--pipe"])
    proofs = await CallProofClient.connect(configuration)
    async with mcp.Client(plain) as ordinary, mcp.Client(pipe, extensions=[advertise(CALL_PROOF_EXTENSION)]) as aware:
        async def send(arguments, evidence=None):
            meta = {RECORD_SESSION_META: proofs.record_session}
            if evidence is not None:
                meta[CALL_PROOF_META] = dict(evidence)
            return await outcome(aware, arguments, meta)
        seen = {}
        seen["allowed"] = await outcome(ordinary, README)
        seen["denied"] = await outcome(ordinary, CREDENTIALS)
        seen["sent anyway"] = await send(CREDENTIALS)
        proof = (await proofs.issue("filesystem", "read_file", README)).evidence
        seen["with an unused proof"] = await send(CREDENTIALS, proof)
        seen["the proof itself"] = await send(README, proof)
        seen["with a used proof"] = await send(CREDENTIALS, proof)
    print(json.dumps(seen))

anyio.run(main)
"""


@pytest.fixture
def base(short_dir):
    base = short_dir / "base"
    (base / "repo").mkdir(parents=True)
    (base / "repo" / "README.md").write_text("read me\n")
    (base / ".aws").mkdir()
    (base / ".aws" / "credentials").write_text(CANARY)
    return base


def test_appendix_a(live, base):
    """Allowed, denied, missing, mismatch with an unused and with a used proof; the record has all of it."""
    from onrecord.examples.demo.evidence import examine
    from onrecord.examples.demo.journals import read_records

    command = [*node_server("@modelcontextprotocol/server-filesystem"), str(base)]
    roots = {"repo": base / "repo"}
    running = live("filesystem", command, cwd=base, roots=roots, bases={"review": base}, caller="code-review")
    configuration = running.configuration
    argv = [sys.executable, "-c", HOST, str(configuration.file), json.dumps(CREDENTIALS), json.dumps(README)]
    done = subprocess.run(
        argv, capture_output=True, text=True, timeout=90, env={**os.environ, "HOME": str(base)}
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "allowed": ["result", "read me\n"],
        "denied": [-33001, "denied"],
        "sent anyway": [-32021, "missing"],
        "with an unused proof": [-32021, "mismatch"],
        "the proof itself": ["result", "read me\n"],
        "with a used proof": [-32021, "mismatch"],
    }

    wait_for(lambda: list(configuration.paths.records.rglob("*.vcon.json")), what="a vCon", seconds=60)
    records = read_records(configuration.authority_state)
    denied = [record.data for record in records if record.type == "issue.denied"]
    assert [(data["caller"], data["actionDigest"]) for data in denied] == [("code-review", DIGEST)]
    invalid = [record.data["reason"] for record in records if record.type == "verify.invalid"]
    assert invalid == ["missing", "mismatch", "mismatch"]

    found = examine(configuration)
    assert found.report.verdict == "verified"
    vcon = json.loads(found.report.payload)
    kinds = [event["type"] for event in vcon["events"]]
    assert kinds.count("policy-decision") == 3
    assert kinds.count("tool-invocation") == 5
    assert kinds.count("tool-denied") == 3
    assert kinds.count("tool-result") == 2
    assert b".aws/credentials" not in json.dumps(vcon).encode()
    assert found.errors == 0
    # Nothing of the protected file, and no argument of the denied call, is anywhere in what onrecord wrote.
    running.stop()
    for file in configuration.file.parent.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert CANARY.encode() not in content, file
            assert b".aws/credentials" not in content, file

"""`onrecord policy` at the command line."""

import json
import re
import shutil
import sys

import pytest

from onrecord.base.keys import format_trusted_key, generate_key_file
from onrecord.cli.main import main
from support.data import shared_data
from support.policies import POLICY_SOURCE


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Return a function that runs a command and returns status, parsed standard output, and standard error."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def do(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["policy", *map(str, arguments)])
        captured = capsys.readouterr()
        document = json.loads(captured.out) if "--json" in arguments else captured.out
        return stop.value.code, document, captured.err

    return do


@pytest.fixture
def source(tmp_path):
    """A writable copy of the example source."""
    shutil.copytree(POLICY_SOURCE, tmp_path / "policy")
    return tmp_path / "policy"


@pytest.fixture
def key(tmp_path):
    """The URI of a policy key."""
    generate_key_file(tmp_path / "policy.pem")
    return f"file:{tmp_path / 'policy.pem'}"


SERVER = """
import json, sys
TOOLS = [{"name": "read_file", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}]
for line in sys.stdin:
    r = json.loads(line)
    if r["method"] == "initialize":
        info = {"name": "example-files", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
    elif r["method"] == "tools/list":
        result = {"tools": TOOLS}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": r["id"], "result": result}), flush=True)
"""


@pytest.fixture
def configured(tmp_path, source, key):
    """A configuration in user mode with a server that can be started."""
    (tmp_path / "server.py").write_text(SERVER)
    file = tmp_path / "onrecord.toml"
    file.write_text(
        f"""
mode = "user"
[paths]
config = "{tmp_path}"
state = "{tmp_path}/state"
runtime = "/tmp/r"
[keys]
policy = "{key}"
[policy]
source = "{source}"
bundle = "{tmp_path}/policy.bundle.json"
[servers.filesystem]
command = "{sys.executable}"
args = ["-I", "{tmp_path}/server.py"]
cwd = "{tmp_path}"
"""
    )
    file.chmod(0o600)
    return file


class TestCheck:
    """policy check."""

    def test_shared_bundle(self, run):
        """The unsigned example bundle is accepted: check needs no signature."""
        status, document, _ = run("check", shared_data("running/policy.bundle.json"), "--json")
        assert (status, document["ok"], document["version"], document["rules"]) == (0, True, 3, 8)

    def test_source(self, run, source):
        """A source is checked and its rows are run."""
        status, document, _ = run("check", source, "--json")
        assert (status, document["findings"]) == (0, [])
        assert [row["ok"] for row in document["tests"]] == [True] * 10

    def test_findings(self, run, source):
        """Errors are listed with code and file, exit 1."""
        (source / "policies" / "60-a.cedar").write_text("permit(principal, action, resource);")
        status, document, _ = run("check", source, "--json")
        assert (status, document["ok"]) == (1, False)
        assert [item["code"] for item in document["findings"]] == ["rule-id"]
        status, text, _ = run("check", source)
        assert (status, "rule-id" in text) == (1, True)

    def test_wrong_row(self, run, source):
        """A row that comes out differently is an error."""
        rows = json.loads((source / "tests.json").read_text())
        rows[0]["expect"] = "deny"
        (source / "tests.json").write_text(json.dumps(rows))
        status, document, _ = run("check", source, "--json")
        assert (status, [item["code"] for item in document["findings"]]) == (1, ["test-failed"])

    def test_nothing_there(self, run, tmp_path):
        """Without a policy: exit 2 with the error shape."""
        status, document, _ = run("check", tmp_path / "none", "--json")
        assert (status, document["error"]["code"]) == (2, "policy-missing")

    def test_no_configuration(self, run):
        """Without a path and without a configuration there is nothing to check."""
        status, document, _ = run("check", "--json")
        assert (status, document["error"]["code"]) == (2, "configuration-missing")

    def test_bases(self, run, configured, source):
        """With a configuration at hand, a base that is not the working directory is a warning with a hint, exit 0."""
        for arguments in (["check", "--config", configured], ["check", source, "--config", configured]):
            status, document, _ = run(*arguments, "--json")
            assert status == 0
            assert [item["code"] for item in document["findings"]] == ["base-not-cwd"]
        status, text, _ = run("check", "--config", configured)
        assert "warning: base-not-cwd: filesystem: " in text
        assert "  next: set servers.filesystem.cwd" in text

    def test_bases_of_another_policy(self, run, configured, source, monkeypatch):
        """A policy that is not the one of the configuration found is not compared with it."""
        monkeypatch.setenv("ONRECORD_CONFIG", str(configured))
        other = source.rename(source.with_name("other"))
        status, document, _ = run("check", other, "--json")
        assert (status, document["findings"]) == (0, [])

    def test_version(self, run, source, key):
        """What sign would refuse for its version is said before; the very policy that was signed is not."""
        assert run("sign", source, "--key", key, "--json")[0] == 0
        assert run("check", source, "--json")[1]["findings"] == []
        document = json.loads((source / "bundle.json").read_text())
        (source / "bundle.json").write_text(json.dumps(document | {"proofSeconds": 7}))
        status, checked, _ = run("check", source, "--json")
        (found,) = checked["findings"]
        assert (status, found["code"], found["severity"]) == (0, "version-not-new", "warning")
        assert found["data"]["hint"] == 'set "version": 4 in bundle.json'
        (source / "bundle.json").write_text(json.dumps(document | {"version": 4}))
        assert run("check", source, "--json")[1]["findings"] == []

    def test_bundle_in_the_way(self, run, source):
        """A bundle that cannot be read stands in the way of sign, which check says too."""
        (source.parent / "policy.bundle.json").write_text("{}")
        (found,) = run("check", source, "--json")[1]["findings"]
        assert found["code"] == "version-not-new"


class TestSign:
    """policy sign."""

    def test_bases(self, run, configured):
        """A base that is not the working directory is signed with a warning."""
        status, text, _ = run("sign", "--config", configured)
        assert (status, "warning: base-not-cwd: filesystem: " in text) == (0, True)

    def test_with_key(self, run, source, key, tmp_path):
        """Bundle and signature are written beside the source; a second time needs a new version."""
        status, document, _ = run("sign", source, "--key", key, "--json")
        assert (status, document["version"]) == (0, 3)
        assert document["bundle"] == str(tmp_path / "policy.bundle.json")
        assert (tmp_path / "policy.bundle.json.sig").exists()
        status, document, _ = run("sign", source, "--key", key, "--json")
        assert (status, document["error"]["code"]) == (2, "policy-version")

    def test_with_configuration(self, run, configured, tmp_path):
        """Source, bundle and key come from the configuration."""
        status, text, _ = run("sign", "--config", configured)
        assert (status, "signed version 3" in text) == (0, True)
        assert (tmp_path / "policy.bundle.json").exists()

    def test_errors(self, run, source, key):
        """A policy with errors is not signed, and all findings are in the error."""
        (source / "schema.cedar").write_text("")
        status, document, _ = run("sign", source, "--key", key, "--json")
        assert (status, document["error"]["code"]) == (2, "policy-lint")
        assert document["error"]["findings"][0]["code"] == "source-schema"

    def test_no_key(self, run, source, tmp_path):
        """A key that is not there: exit 3."""
        status, document, _ = run("sign", source, "--key", f"file:{tmp_path}/none", "--json")
        assert (status, document["error"]["code"]) == (3, "key-missing")

    def test_out(self, run, source, key, tmp_path):
        """--out names the bundle."""
        status, document, _ = run("sign", source, "--key", key, "--out", tmp_path / "x.json", "--json")
        assert (status, document["signature"]) == (0, str(tmp_path / "x.json.sig"))


class TestExplain:
    """policy explain."""

    CALL = ("--caller", "code-review", "--server", "filesystem", "--name")

    def test_json(self, run, source):
        """Decision and facts as JSON."""
        status, document, _ = run(
            "explain",
            source,
            *self.CALL,
            "read_file",
            "--arguments",
            '{"path":"repo/a"}',
            "--json",
        )
        assert (status, document["decision"], document["touches"][0]["facts"]["path"]["root"]) == (
            0,
            "allow",
            "repo",
        )

    def test_text(self, run, source):
        """For people: what is needed is named; a denial is explained; exit 0 all the same."""
        status, text, _ = run(
            "explain",
            source,
            *self.CALL,
            "post_comment",
            "--arguments",
            '{"number":1,"body":"x"}',
        )
        assert status == 0
        assert "1 of reviewers for comment-needs-approval" in text
        status, text, _ = run("explain", source, *self.CALL, "nothing")
        assert (status, "no binding that counts" in text) == (0, True)

    def test_hostile_text(self, run, source):
        """Control characters and markup of a call are shown, not obeyed."""
        status, text, _ = run("explain", source, *self.CALL, "[red]a\x1b[2J")
        assert status == 0
        assert "\x1b" not in text
        assert "[red]a\\u{1b}" in text

    def test_file(self, run, source, tmp_path):
        """@FILE reads raw bytes."""
        (tmp_path / "a.json").write_bytes(b'{"path":"repo/a"}')
        status, document, _ = run(
            "explain",
            source,
            *self.CALL,
            "read_file",
            "--arguments",
            f"@{tmp_path}/a.json",
            "--json",
        )
        assert (status, document["decision"]) == (0, "allow")

    @pytest.mark.parametrize(
        ("text", "reason"),
        [('{"a":1,"a":2}', "duplicate"), ("[]", "not_object"), ("{", "syntax"), ("@/none", None)],
    )
    def test_bad_arguments(self, run, source, text, reason):
        """Arguments that are not strict JSON are refused with their class."""
        status, document, _ = run("explain", source, *self.CALL, "read_file", "--arguments", text, "--json")
        assert status == 2
        assert document["error"].get("reason") == reason


class TestTable:
    """policy test."""

    def test_good(self, run, source):
        """All rows as expected: exit 0."""
        status, document, _ = run("test", source, "--json")
        assert (status, document["passed"], document["failed"]) == (0, 10, 0)

    def test_difference(self, run, source, tmp_path):
        """A difference: exit 1, with what came out."""
        row = {"id": "x", "caller": "code-review", "server": "git", "name": "git_push", "expect": "allow"}
        (tmp_path / "rows.json").write_text(json.dumps([row]))
        status, text, _ = run("test", source, "--tests", tmp_path / "rows.json")
        assert status == 1
        assert "x: expected allow, got deny (onrecord.unknown)" in text

    def test_bundle(self, run):
        """A bundle has no rows of its own: without --tests nothing would be tested, so it is refused."""
        bundle = shared_data("running/policy.bundle.json")
        status, document, _ = run("test", bundle, "--json")
        assert (status, document["error"]["code"]) == (2, "tests-missing")
        status, document, _ = run("test", bundle, "--tests", POLICY_SOURCE / "tests.json", "--json")
        assert (status, document["passed"]) == (0, 10)

    def test_broken_policy(self, run, source):
        """A policy with errors cannot be tested: exit 2."""
        (source / "schema.cedar").write_text("")
        status, document, _ = run("test", source, "--json")
        assert (status, document["error"]["code"]) == (2, "policy-lint")


class TestBind:
    """policy bind."""

    def test_pin(self, run, configured, source):
        """--pin starts the configured server and writes the pins."""
        (source / "bindings" / "filesystem.json").unlink()
        status, document, _ = run("bind", "filesystem", "--pin", "--config", configured, "--json")
        assert (status, document["pinned"], document["serverInfo"]) == (0, ["read_file"], "example-files")
        (made,) = json.loads((source / "bindings" / "filesystem.json").read_text())
        assert made["arguments"]["path"]["base"] == "review"
        assert made["inputSchemaSha256"].startswith("sha-256:")

    def test_proposals(self, run, configured, source):
        """Without --pin tools are proposed, and check refuses them until they are decided."""
        (source / "bindings" / "filesystem.json").write_text("[]")
        status, text, _ = run("bind", "filesystem", "--config", configured)
        assert (
            status,
            "to be decided by a person:\n  read_file: read, impact 1; path is a path\n" in text,
        ) == (0, True)
        status, document, _ = run("check", "--config", configured, "--json")
        assert status == 1
        assert "binding-undecided" in [item["code"] for item in document["findings"]]

    def test_server_cannot_start(self, run, configured, source):
        """A new server that cannot be started is added nowhere, so that the next attempt is the first again."""
        document = json.loads((source / "bundle.json").read_text())
        document["servers"] = []
        (source / "bundle.json").write_text(json.dumps(document))
        (source / "bindings" / "filesystem.json").unlink()
        text = configured.read_text()
        program = json.dumps(str(source / "no-such-program"))
        configured.write_text(re.sub(r"(?m)^command = .*$", lambda _: f"command = {program}", text))
        status, refused, _ = run("bind", "filesystem", "--root", source, "--config", configured, "--json")
        assert (status, refused["error"]["code"]) == (2, "cannot-start")
        assert json.loads((source / "bundle.json").read_text())["servers"] == []
        assert not (source / "bindings" / "filesystem.json").exists()

    def test_unknown_server(self, run, configured):
        """A server that is not in the source."""
        status, document, _ = run("bind", "other", "--pin", "--config", configured, "--json")
        assert (status, document["error"]["code"]) == (2, "server-unknown")

    def test_new_server(self, run, configured, source, tmp_path):
        """--root adds a server that the source does not have, once, and raises a version that was signed already."""
        document = json.loads((source / "bundle.json").read_text())
        document["servers"] = []
        (source / "bundle.json").write_text(json.dumps(document))
        status, _, err = run("bind", "filesystem", "--pin", "--config", configured)
        assert (status, "--root DIR adds it" in err) == (2, True)
        (tmp_path / "policy.bundle.json").write_text(json.dumps({"version": 7}))
        status, report, _ = run(
            "bind", "filesystem", "--pin", "--root", tmp_path, "--config", configured, "--json"
        )
        assert (status, report["added"], report["version"], report["pinned"]) == (0, True, 8, ["read_file"])
        (server,) = json.loads((source / "bundle.json").read_text())["servers"]
        assert server["roots"] == server["bases"] == {"work": str(tmp_path)}
        _, report, _ = run("bind", "filesystem", "--pin", "--root", "/", "--config", configured, "--json")
        assert (report["added"], report["version"]) == (False, None)

    def test_base_of_new_server(self, run, configured, source, tmp_path):
        """Relative paths of a new server count from where it opens them, which a root elsewhere does not change."""
        document = json.loads((source / "bundle.json").read_text())
        document["servers"] = []
        (source / "bundle.json").write_text(json.dumps(document))
        root = tmp_path / "letters"
        root.mkdir()
        status, out, _ = run("bind", "filesystem", "--pin", "--root", root, "--config", configured)
        assert status == 0
        assert f"relative paths count from its working directory {tmp_path}, not from --root" in out
        (server,) = json.loads((source / "bundle.json").read_text())["servers"]
        assert (server["roots"], server["bases"]) == ({"work": str(root)}, {"work": str(tmp_path)})

    def test_root_must_be_there(self, run, configured, source, tmp_path):
        """A root that is no directory is refused, and the source stays as it is."""
        document = json.loads((source / "bundle.json").read_text())
        document["servers"] = []
        (source / "bundle.json").write_text(json.dumps(document))
        status, error, _ = run(
            "bind", "filesystem", "--root", tmp_path / "none", "--config", configured, "--json"
        )
        assert (status, error["error"]["code"]) == (2, "root-not-a-directory")
        assert json.loads((source / "bundle.json").read_text())["servers"] == []

    def test_server_fails(self, run, configured, tmp_path):
        """A server that ends at once: exit 3, nothing written."""
        (tmp_path / "server.py").write_text("raise SystemExit(1)")
        status, document, _ = run("bind", "filesystem", "--pin", "--config", configured, "--json")
        assert (status, document["error"]["code"]) == (3, "server-ended")

    def test_dying_server(self, run, configured, tmp_path):
        """What a dying server says is shown, escaped, and without its own variables or other credentials."""
        (tmp_path / "server.py").write_text(
            "import os, sys\n"
            "print('x' * 100_000, file=sys.stderr)\n"
            "for number in range(30): print('line', number, file=sys.stderr)\n"
            "print('no \\x1b[2J token', os.environ['T'], 'AKIAABCDEFGHIJKLMNOP', file=sys.stderr)\n"
            "raise SystemExit('bad configuration')\n"
        )
        env_file = tmp_path / "s.env"
        env_file.write_text("T=tok-3141592653\nU=1\n")
        env_file.chmod(0o600)
        configured.write_text(configured.read_text() + f'env_file = "{env_file}"\n')
        status, _, err = run("bind", "filesystem", "--pin", "--config", configured)
        assert status == 3
        assert "  | bad configuration\n" in err
        assert "  | no \\u{1b}[2J token [value of T] [credential replaced: aws-key-id]\n" in err
        assert ("line 28" in err, "line 5" in err, "tok-3141592653" in err) == (True, False, False)
        status, document, err = run("bind", "filesystem", "--pin", "--config", configured, "--json")
        assert "bad configuration" not in json.dumps(document)

    def test_silent_server_with_a_child(self, run, configured, tmp_path):
        """A server that ends while its child still holds its standard error is not waited for."""
        (tmp_path / "server.py").write_text(
            "import os, subprocess, sys\n"
            "subprocess.Popen(['sleep', '5'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,"
            " start_new_session=True)\n"
            "print('first', file=sys.stderr)\n"
        )
        status, document, err = run("bind", "filesystem", "--pin", "--config", configured, "--json")
        assert (status, document["error"]["code"]) == (3, "server-ended")
        assert "  | first\n" in err

    def test_catalogue_is_offered(self, run, configured, source):
        """When onrecord ships bindings for a server, the proposals say how to take those."""
        (source / "bindings" / "filesystem.json").write_text("[]")
        _, text, _ = run("bind", "filesystem", "--config", configured)
        assert text.rstrip().endswith("the same command with --pin")
        status, document, _ = run("bind", "filesystem", "--pin", "--config", configured, "--json")
        assert (status, document["pinned"]) == (0, ["read_file"])

    def test_proposals_in_json(self, run, configured, source):
        """The document says for each proposal what is open."""
        (source / "bindings" / "filesystem.json").write_text("[]")
        _, document, _ = run("bind", "filesystem", "--config", configured, "--json")
        (proposal,) = document["proposals"]
        assert (proposal["tool"], proposal["decide"]) == ("read_file", ["op", "impact"])

    def test_running_needs_an_authority(self, run, configured):
        """--running asks the authority; without one: exit 3. It excludes --pin."""
        status, document, _ = run("bind", "filesystem", "--running", "--config", configured, "--json")
        assert (status, document["error"]["code"]) == (3, "authority-unreachable")
        status, document, _ = run(
            "bind", "filesystem", "--running", "--pin", "--config", configured, "--json"
        )
        assert (status, document["error"]["code"]) == (2, "usage")

    def test_running(self, run, configured, monkeypatch):
        """--running compares the pins with the last report: exit 1 when one differs."""
        pins = {
            binding["tool"]: binding["inputSchemaSha256"]
            for binding in json.loads((POLICY_SOURCE / "bindings" / "filesystem.json").read_text())
        }

        class Client:
            def __init__(self, configuration):
                pass

            def call(self, method, params):
                assert (method, params) == ("control/tools", {"server": "filesystem"})
                tools = [{"name": name, "inputSchemaSha256": value} for name, value in pins.items()]
                return {"servers": [{"server": "filesystem", "tools": tools}]}

        monkeypatch.setattr("onrecord.cli.control.ControlClient", Client)
        status, document, _ = run("bind", "filesystem", "--running", "--config", configured, "--json")
        assert (status, len(document["unchanged"])) == (0, 4)
        pins["read_file"] = "sha-256:" + "A" * 43
        status, document, _ = run("bind", "filesystem", "--running", "--config", configured, "--json")
        assert (status, document["changed"]) == (1, ["read_file"])


def test_trusted_line(key):
    """The key that signs is written to trust.policy in the form that verification reads."""
    from onrecord.base.keys import ed25519_public_bytes, signer_from_uri

    signer = signer_from_uri(key, purpose="policy")
    assert format_trusted_key(ed25519_public_bytes(signer), "policy").startswith(signer.kid)

"""The parts of the demonstration that need no daemon."""

import importlib.util
import io
import json
import os
import shutil
import stat
import subprocess
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from onrecord.base.errors import OnrecordError, StorageError, UsageError
from onrecord.base.namespaces import CALL_PROOF_REJECTED

pytest.importorskip("mcp")

from onrecord.examples.demo import keeping, principals, report, repository, servers, steps, tree
from onrecord.examples.demo.host import AgentHost
from onrecord.examples.demo.outcomes import Outcome

SERVERS = ("filesystem", "archive", "git")
PLAIN = SERVERS[:2]
"""Without the repository, which takes longer to make."""


def rejected(reason):
    return Outcome("error", code=CALL_PROOF_REJECTED, reason=reason)


def result(text):
    return Outcome("result", text=text)


GOOD = {
    "1": [result(tree.README)],
    "2": [result(json.dumps(tree.PULL_REQUEST)), Outcome("error", code=-33001, reason="denied")],
    "3": [rejected("missing")],
    "4": [rejected("mismatch")],
    "5": [result(tree.MAIN), rejected("replayed")],
    "6": [rejected("expired")],
    "7": [rejected("mismatch")],
    "8": [Outcome("approved", reason="uid 59003"), result("Commented on pull request 17.")],
    "9": [result("\n".join(repository.COMMITS)), Outcome("error", code=-33001, reason="denied")],
    "9b": [result(f"{tree.REVIEWER} was asked to review pull request 17.")],
    "10a": [rejected("authority_unreachable")],
    "10b": [rejected("expired"), result(tree.README)],
}

WRONG_KINDS = {
    "result": Outcome("error", code=-33003, reason="rejected"),
    "error": result("a canary"),
    "approved": Outcome("rejected", reason="uid 59003"),
}
"""What must not pass in the place of a good outcome."""


class TestSteps:
    def test_all_are_here(self):
        """All steps, in order."""
        assert [step.id for step in steps.STEPS] == list(GOOD)
        assert steps.RECORD_STEP.id == "11"

    @pytest.mark.parametrize("step", steps.STEPS, ids=lambda step: step.id)
    def test_judged(self, step):
        """The expected outcomes are accepted; the canary as a result, or another reason, never is."""
        good = GOOD[step.id]
        assert step.judge(good)
        for index in range(len(good)):
            for wrong in (
                rejected("revoked"),
                Outcome("failure", text="no such file"),
                WRONG_KINDS[good[index].kind],
            ):
                assert not step.judge([*good[:index], wrong, *good[index + 1 :]])

    def test_comment_that_nobody_approved(self):
        """A result of the call in step 8 counts only together with the approver's yes."""
        step = next(step for step in steps.STEPS if step.id == "8")
        posted = result("Commented on pull request 17.")
        assert not step.judge([posted])
        assert not step.judge([Outcome("rejected", reason="uid 59003"), posted])
        assert not step.judge([Outcome("rejected", reason="uid 59003"), Outcome("error", code=-33003)])


class TestOutcome:
    def test_line(self):
        """An outcome survives the line to the driver."""
        for outcome in (rejected("expired"), result("text"), Outcome("failure", text="no")):
            assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome

    def test_words_hold_no_content(self):
        """What is printed of an outcome is its kind, never its text."""
        assert str(result("a canary")) == "result"
        assert str(rejected("expired")) == "-32021 expired"
        assert str(Outcome("approved", reason="uid 59003")) == "approved by uid 59003"


class TestTree:
    def test_user(self, tmp_path):
        """One user: everything is private, and the canary is found only where somebody copies it."""
        made = tree.Tree.create(principals.Cast.of_user(PLAIN), parent=tmp_path)
        assert not made.git.exists()
        assert stat.S_IMODE(made.root.stat().st_mode) == 0o700
        assert made.occurrences(made.canary) == ()
        copy = made.root / "copy"
        copy.write_text(f"found: {made.canary}")
        assert made.occurrences(made.canary) == (copy,)
        made.remove()
        assert not made.root.exists()

    @pytest.mark.root
    def test_system(self, tmp_path, uid_block):
        """Several uids: each base belongs to its server alone, and others may pass the root of the tree."""
        cast = principals.Cast.of_block(uid_block, SERVERS)
        if not shutil.which("git"):
            cast = cast.without("git")
        made = tree.Tree.create(cast, parent=tmp_path)
        assert stat.S_IMODE(made.root.stat().st_mode) == 0o711
        for server in ("filesystem", "archive", *(["git"] if shutil.which("git") else [])):
            state = made.base(server).stat()
            assert (state.st_uid, stat.S_IMODE(state.st_mode)) == (cast.server(server), 0o700)
        assert made.files.joinpath("home/.aws/credentials").stat().st_uid == cast.server("filesystem")

    @pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
    def test_nothing_is_left(self, tmp_path, monkeypatch):
        """A tree that cannot be made whole is taken away again."""

        def broken(directory):
            raise StorageError("broken on purpose", code="git-repository")

        monkeypatch.setattr(tree, "make_repository", broken)
        with pytest.raises(StorageError) as e:
            tree.Tree.create(principals.Cast.of_user(SERVERS), parent=tmp_path)
        assert e.value.code == "git-repository"
        assert list(tmp_path.iterdir()) == []

    def test_no_place(self, tmp_path):
        """Without its parent directory the tree is a storage error."""
        with pytest.raises(StorageError) as e:
            tree.Tree.create(principals.Cast.of_user(SERVERS), parent=tmp_path / "none")
        assert e.value.code == "work-tree"

    def test_counter(self, tmp_path):
        """No counter file means that nothing has run."""
        made = tree.Tree.create(principals.Cast.of_user(PLAIN), parent=tmp_path)
        assert made.calls("filesystem") == 0
        made.counter("filesystem").write_text("read_file\nread_file\n")
        assert made.calls("filesystem") == 2


class TestCast:
    def test_block(self):
        """Every principal and every group has a number of its own."""
        cast = principals.Cast.of_block(range(59000, 59016), SERVERS)
        uids = [cast.authority, cast.recorder, cast.agent, cast.approver, *(uid for _, uid in cast.servers)]
        groups = [
            cast.call_group,
            cast.approval_group,
            cast.control_group,
            cast.record_group,
            cast.readers_group,
        ]
        assert len({*uids, *groups}) == len(uids) + len(groups)
        assert cast.agent_principal.groups == (cast.call_group,)
        assert cast.approval_group in cast.operator_principal.groups
        assert cast.call_group not in cast.operator_principal.groups

    def test_without(self):
        """A server that is not installed leaves the others as they are."""
        cast = principals.Cast.of_block(range(59000, 59016), SERVERS)
        assert dict(cast.without("git").servers) == {name: cast.server(name) for name in PLAIN}

    def test_no_block(self, monkeypatch):
        """As root without free uids it says what to do instead."""
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr(principals, "reserve_uid_block", lambda: None)
        with pytest.raises(OnrecordError) as e:
            principals.Cast.choose(SERVERS)
        assert (e.value.code, e.value.exit_code) == ("no-free-uids", 3)
        assert "ordinary user" in e.value.hint

    def test_user(self, monkeypatch):
        """An ordinary user gets user mode, and nothing is dropped."""
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        cast = principals.Cast.choose(SERVERS)
        assert not cast.is_system
        assert cast.agent_principal is None


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("git") / "repo"
    repository.make_repository(place)
    return place


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
class TestRepository:
    def git(self, place, *arguments):
        done = subprocess.run(["git", "-C", place, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    def test_two_commits(self, made):
        """The log has two commits of an invented person, whatever the configuration of whoever made it says."""
        log = self.git(made, "log", "--format=%s|%ae")
        assert log.splitlines() == [
            f"{subject}|linus@example.com" for subject in reversed(repository.COMMITS)
        ]

    def test_fingerprint(self, made, tmp_path):
        """Looking changes nothing; a reset, which the guard has to prevent, does."""
        copy = tmp_path / "repo"
        shutil.copytree(made, copy)
        before = repository.fingerprint(copy)
        self.git(copy, "log")
        self.git(copy, "show")
        assert repository.fingerprint(copy) == before
        self.git(copy, "reset", "--quiet")
        assert repository.fingerprint(copy) != before

    def test_other_head(self, made, tmp_path):
        """Another HEAD with the same index is another fingerprint."""
        copy = tmp_path / "repo"
        shutil.copytree(made, copy)
        before = repository.fingerprint(copy)
        self.git(copy, "reset", "--quiet", "--soft", "HEAD~1")
        assert repository.fingerprint(copy) != before

    def test_git_fails(self, monkeypatch, tmp_path):
        """A git that does not work is an error with a code, and its directory is named."""
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(StorageError) as e:
            repository.make_repository(tmp_path / "repo")
        assert e.value.code == "git-repository"


class TestGitServer:
    def test_no_environment(self, tmp_path):
        """Where it is not installed, the reason says how to install it."""
        reason = servers.refusal_of_git(None, directory=tmp_path)
        if shutil.which("git"):
            assert f"python3 -m venv {tmp_path}" in reason
            assert str(servers.TOOLS) in reason

    def test_no_git(self, monkeypatch, tmp_path):
        """The server needs git itself."""
        monkeypatch.setenv("PATH", str(tmp_path))
        assert servers.refusal_of_git(None, directory=tmp_path) == "git is not installed"

    @pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
    @pytest.mark.parametrize("script", ["exit 1", None], ids=["not-installed", "not-executable"])
    def test_unusable(self, tmp_path, script):
        """An environment without the server, and one that cannot be run, are refused."""
        (tmp_path / "bin").mkdir()
        python = tmp_path / "bin" / "python"
        python.write_text(f"#!/bin/sh\n{script or 'exit 0'}\n")
        if script is not None:
            python.chmod(0o755)
        reason = servers.refusal_of_git(None, directory=tmp_path)
        assert ("pip install -r" if script else "cannot be run") in reason

    def test_requirement(self):
        """What is installed for the demonstration is one exact version."""
        wanted = [line for line in servers.TOOLS.read_text().splitlines() if not line.startswith("#")]
        assert len(wanted) == 1
        assert "==" in wanted[0]


class TestKeeping:
    def test_not_empty(self, tmp_path):
        """A directory with something in it is refused and not touched."""
        (tmp_path / "mine").write_text("mine")
        with pytest.raises(UsageError) as e:
            keeping.choose_directory(tmp_path)
        assert (e.value.code, e.value.exit_code) == ("not-empty", 2)
        assert [path.name for path in tmp_path.iterdir()] == ["mine"]

    def test_not_a_directory(self, tmp_path):
        """A file is no place for results."""
        (tmp_path / "mine").write_text("mine")
        with pytest.raises(StorageError) as e:
            keeping.choose_directory(tmp_path / "mine")
        assert e.value.code == "keep-directory"

    def test_empty_and_new(self, tmp_path):
        """An empty one and a new one are taken."""
        assert keeping.choose_directory(tmp_path) == tmp_path
        assert keeping.choose_directory(tmp_path / "a" / "b").is_dir()

    def test_default(self, tmp_path, monkeypatch):
        """Without --keep it lies below the state directory of the user, which a later `onrecord up` accepts."""
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        before = os.umask(0o022)
        try:
            kept = keeping.choose_directory(None)
        finally:
            os.umask(before)
        assert kept.parent == tmp_path / "state" / "onrecord" / "demo"
        assert (tmp_path / "state" / "onrecord").stat().st_mode & 0o777 == 0o700


def test_mcp_missing(monkeypatch):
    """Without the SDK the demonstration says how to get it, exit 3."""
    from onrecord.examples.demo import driver

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OnrecordError) as e:
        driver.run()
    assert (e.value.code, e.value.exit_code) == ("mcp-missing", 3)
    assert "onrecord[mcp]" in e.value.hint


class Heard:
    """A listener that remembers."""

    def __init__(self):
        self.results, self.tree = [], None

    def begins(self, cast, made):
        self.tree = made

    def done(self, result):
        self.results.append(result)

    def fails(self, made):
        assert made is self.tree
        self.results.append("failed")


class TestFailures:
    def test_could_not_run(self, tmp_path, monkeypatch):
        """When it cannot be prepared the work tree stays and is named, nothing is kept, and the status is 3."""
        from onrecord.examples.demo import driver

        def broken(cast, made):
            raise UsageError("broken on purpose", code="on-purpose", hint="a hint")

        monkeypatch.setattr(driver.Deployment, "prepare", broken)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        heard = Heard()
        with pytest.raises(OnrecordError) as e:
            driver.run(listener=heard)
        assert (e.value.code, e.value.hint, e.value.exit_code) == ("on-purpose", "a hint", 3)
        assert heard.results == ["failed"]
        assert heard.tree.root.is_dir()
        assert list((tmp_path / "onrecord" / "demo").iterdir()) == []
        heard.tree.remove()

    def test_stopped(self, tmp_path, monkeypatch):
        """Ctrl-C leaves nothing behind and is no failure that somebody has to look at."""
        from onrecord.examples.demo import driver

        def stopped(cast, made):
            raise KeyboardInterrupt

        monkeypatch.setattr(driver.Deployment, "prepare", stopped)
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        heard = Heard()
        with pytest.raises(KeyboardInterrupt):
            driver.run(listener=heard)
        assert heard.results == []
        assert not heard.tree.root.exists()
        assert list((tmp_path / "onrecord" / "demo").iterdir()) == []


class TestHost:
    @pytest.mark.parametrize(
        "script", ["import sys; sys.stdin.readline()", 'print(\'{"fault": "ValueError"}\')']
    )
    def test_gone_or_unable(self, script):
        """A host that ends or cannot do a step is an error of the demonstration, never a hang."""
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        host = AgentHost(process)
        with pytest.raises(OnrecordError) as e:
            host.step("1")
        assert e.value.code == "agent-host"
        host.end()

    def test_silent(self, monkeypatch):
        """A host that says nothing is given up, and killed when it does not end."""
        monkeypatch.setattr("onrecord.examples.demo.host.STEP_SECONDS", 0.1)
        monkeypatch.setattr("onrecord.examples.demo.host.END_SECONDS", 0.1)
        script = "import time\nwhile True: time.sleep(60)"
        process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        host = AgentHost(process)
        with pytest.raises(OnrecordError) as e:
            host.step("1")
        assert e.value.code == "agent-host"
        host.end()
        assert process.returncode < 0


class TestReport:
    STEP = steps.StepResult("1", "A title " + "word " * 20, "expected " * 12, "observed " * 12, True)

    def lines(self, **options):
        out = io.StringIO()
        console = Console(file=out, width=60, color_system=None, highlight=False, **options)
        report.ConsoleListener(console).done(self.STEP)
        return out.getvalue().splitlines()

    def test_terminal(self):
        """On a terminal a step wraps at words, under its own beginning."""
        lines = self.lines(force_terminal=True)
        assert len(lines) > 6
        assert all(len(line) <= 60 for line in lines)
        assert all(line.startswith(" " * 11) for line in lines[1:])
        assert {word for line in lines for word in line.split()} <= {
            "ok", "1", "A", "title", "word", "expected", "observed",
        }  # fmt: skip

    def test_begins(self):
        """The last words before the parts are started say what takes so long."""
        out = io.StringIO()
        cast = principals.Cast.of_user(["files"])
        report.ConsoleListener(Console(file=out)).begins(cast, SimpleNamespace(root="/tmp/tree"))
        assert "Work tree: /tmp/tree\nPreparing keys, policy and servers" in out.getvalue()

    def test_pipe(self):
        """In a pipe there are three lines, however long."""
        assert len(self.lines(soft_wrap=True)) == 3

"""The attempts one by one: each succeeds where the kernel allows it, and is refused where it does not."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.doctor import attempts, isolation, reaching, results
from onrecord.authorize.doctor import peers as peers_module
from onrecord.authorize.doctor.attempts import Attempt, held_capabilities, try_process, try_sudo
from onrecord.authorize.doctor.peers import Peer, Peers, identity
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError

ALONE = """
import importlib.util, json, sys
from pathlib import Path
spec = importlib.util.spec_from_file_location("alone", sys.argv[1])
alone = sys.modules["alone"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(alone)
"""
"""Loads one module of the standard library's kind by its file, which is much faster than the whole package."""


def peers(**more):
    one = Peer("authority", Path("/run/a"), 1, 1, os.getpid(), -1)
    return Peers(**{"served": (one,), "processes": (), "silent": (), "real_server": True} | more)


class TestTrace:
    """What I2 says of attempts that were all refused."""

    @pytest.fixture(autouse=True)
    def refused(self, monkeypatch):
        monkeypatch.setattr(
            isolation, "try_process", lambda pid, pidfd: (Attempt("ptrace", "refused", "EPERM"),)
        )

    def said(self, home, **more):
        configuration = Configuration.parse('mode = "user"', file=Path("/x.toml"))
        check = isolation._i2(configuration, peers(**more))
        return check.result, check.detail

    def test_all(self, home):
        """Everything was tried: passed."""
        assert self.said(home)[0] == "ok"

    @pytest.mark.parametrize(
        ("more", "word"),
        [
            ({"silent": (("server", "unreachable"),)}, "not running"),
            ({"served": ()}, "not running"),
            ({"real_server": False}, "no real server"),
            ({"are_all": False}, "more than"),
        ],
    )
    def test_not_all(self, home, more, word):
        """Something was not tried: a warning that says what, never a pass."""
        result, detail = self.said(home, **more)
        assert result == "warning"
        assert word in detail

    def test_not_tried(self, home, monkeypatch):
        """An attempt that ended in another way proves nothing."""
        monkeypatch.setattr(
            isolation, "try_process", lambda pid, pidfd: (Attempt("ptrace", "untried", "EIO"),)
        )
        monkeypatch.setattr(isolation, "has_exited", lambda pidfd: False)
        assert self.said(home) == ("warning", "not tried: ptrace (EIO)")

    def test_too_many_processes(self, monkeypatch):
        """Processes are looked for up to the limit, and none beyond it."""
        command = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
        with subprocess.Popen(command, stdin=-1) as one, subprocess.Popen(command, stdin=-1) as other:
            for limit, expected in ((1, 1), (2, 2), (9, 2)):
                monkeypatch.setattr(peers_module, "MAX_PROCESSES", limit)
                seen = {}
                peers_module._look(seen, uids=(), pids=[one.pid, other.pid])
                peers_module._close(seen)
                assert len(seen) == expected
            one.stdin.close()
            other.stdin.close()


class TestListed:
    def test_many(self):
        """The first things are named, the rest is counted."""
        names = [str(number) for number in range(results.MAX_NAMED + 3)]
        assert results.listed(names) == "; ".join(names[: results.MAX_NAMED]) + " and 3 more"
        assert results.listed(names[:2]) == "0; 1"


def as_other(module, code, argument, uid):
    """Run code with `alone` (a module), `path` and `os` as another uid, and return what it prints."""
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"{ALONE}path = Path(sys.argv[2])\n{code}",
            module.__file__,
            str(argument),
        ],
        user=uid,
        group=uid,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def reached(path, call, uid):
    """Return the answer of a function of `reaching` for another uid, as text."""
    return as_other(reaching, f"print(alone.{call})", path, uid)


STATUS = (
    "Name:\tx\nCapInh:\t0000000000000000\nCapPrm:\t{:016x}\nCapEff:\t{:016x}\nCapBnd:\t000001ffffffffff\n"
)


@pytest.fixture
def child():
    """A sleeping child of the own uid."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"], stdin=-1
    ) as one:
        yield one
        one.stdin.close()


class TestProcess:
    def test_own_child(self, child):
        """Each of the five attempts succeeds on a process that nothing protects, so none of them is blind."""
        pidfd = os.pidfd_open(child.pid)
        try:
            ended = {one.what: one.outcome for one in try_process(child.pid, pidfd)}
        finally:
            os.close(pidfd)
        names = {"pidfd_getfd", "signal 0", "ptrace", "memory", "environment"}
        if "Seccomp:\t2" in Path("/proc/self/status").read_text() and "refused" in ended.values():
            pytest.skip("a filter of system calls refuses attempts that the kernel would allow")
        assert ended == dict.fromkeys(names, "succeeded")

    def test_leaves_it_alone(self, child):
        """A process that was traced runs on: it is neither stopped nor traced afterwards."""
        pidfd = os.pidfd_open(child.pid)
        for _ in range(3):
            assert all(one.outcome == "succeeded" for one in try_process(child.pid, pidfd))
        os.close(pidfd)
        child.stdin.close()
        assert child.wait(timeout=30) == 0

    def test_gone(self, child):
        """A process that has ended refuses nothing: what was asked of it counts as not tried."""
        pidfd = os.pidfd_open(child.pid)
        child.stdin.close()
        child.wait()
        ended = {one.what: one.outcome for one in try_process(child.pid, pidfd)}
        os.close(pidfd)
        assert ended["pidfd_getfd"] == ended["signal 0"] == ended["ptrace"] == "untried"

    def test_not_shown(self, child):
        """Of a process without a number here only what its descriptor allows is tried."""
        pidfd = os.pidfd_open(child.pid)
        assert {one.what for one in try_process(0, pidfd)} == {"pidfd_getfd", "signal 0"}
        os.close(pidfd)

    @pytest.mark.root
    def test_another_uid(self, child, uid_block):
        """Another uid is refused all five."""
        code = (
            "import os\npid = int(path.name)\n"
            "print([one.outcome for one in alone.try_process(pid, os.pidfd_open(pid))])"
        )
        said = as_other(attempts, code, child.pid, uid_block[0])
        assert said == str(["refused"] * 5)

    @pytest.mark.parametrize("number", [errno.EPERM, errno.EACCES, errno.ENOSYS])
    def test_refusals(self, number):
        """What the kernel forbids or does not know is a refusal."""
        assert Attempt.ended("x", number).outcome == "refused"

    @pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM, errno.ESRCH, errno.EINTR, errno.EIO])
    def test_not_tried(self, number):
        """Anything else proves nothing."""
        assert Attempt.ended("x", number).outcome == "untried"


class TestCapabilities:
    @pytest.mark.req("CP-075")
    @pytest.mark.parametrize("bit", attempts.CAPABILITIES)
    def test_each(self, bit):
        """Each dangerous capability is found: in the effective set, and in the permitted one, which can be raised."""
        for status in (STATUS.format(0, 1 << bit), STATUS.format(1 << bit, 0)):
            assert held_capabilities(status) == (attempts.CAPABILITIES[bit],)

    @pytest.mark.parametrize("bit", [10, 14, 23, 25])
    def test_harmless(self, bit):
        """Ports below 1024, locked memory, priorities and the clock do not go around uids."""
        assert held_capabilities(STATUS.format(1 << bit, 1 << bit)) == ()

    @pytest.mark.parametrize("status", ["", "CapEff:\t0\n", "CapPrm:\tx\nCapEff:\t0\n"])
    def test_unreadable(self, status):
        """A status without the sets is no "none"."""
        with pytest.raises(ValueError):
            held_capabilities(status)


class TestSudo:
    @pytest.mark.parametrize(("status", "outcome"), [(0, "succeeded"), (1, "refused")])
    def test_status(self, tmp_path, monkeypatch, status, outcome):
        """Sudo that works is a success, one that refuses a refusal."""
        (tmp_path / "sudo").write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / "sudo").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert try_sudo().outcome == outcome

    def test_silent(self, tmp_path, monkeypatch):
        """Sudo that does not answer was not tried."""
        (tmp_path / "sudo").write_text("#!/bin/sh\nexec sleep 60\n")
        (tmp_path / "sudo").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        monkeypatch.setattr(attempts, "SUDO_SECONDS", 0.05)
        assert try_sudo().outcome == "untried"

    def test_absent(self, tmp_path, monkeypatch):
        """Where there is no sudo, nobody gets anything by it."""
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setattr(attempts, "_SUDO_PATHS", (str(tmp_path / "sudo"),))
        assert try_sudo() == Attempt("sudo", "refused", "there is no sudo")


class TestIdentity:
    def test_rows(self):
        """All four uids and gids and the groups are read; groups may be missing."""
        text = b"Name:\tx\nPPid:\t9\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t6\nGroups:\t7 8 \n"
        assert identity(text) == (9, {1, 2, 3, 4}, {5, 6, 7, 8})
        assert identity(b"PPid:\t0\nUid:\t1\t1\t1\t1\nGid:\t5\t5\t5\t5\nGroups:\t\n") == (0, {1}, {5})

    @given(st.binary(max_size=200))
    def test_anything(self, data):
        """Other bytes are an error or an answer, never something else."""
        try:
            _, uids, _ = identity(data)
        except ValueError:
            return
        assert uids is not None

    def test_hostile_name(self):
        """A process cannot add rows by its name: the kernel writes a newline in it as \\n."""
        _, uids, _ = identity(b"Name:\tx\\nUid:\t0\nPPid:\t1\nUid:\t9\t9\t9\t9\nGid:\t9\t9\t9\t9\n")
        assert uids == {9}


@pytest.mark.root
class TestReaching:
    @pytest.fixture
    def tree(self, short_dir):
        short_dir.chmod(0o755)
        (short_dir / "a/b").mkdir(parents=True)
        for path in (short_dir / "a", short_dir / "a/b"):
            path.chmod(0o755)
        (short_dir / "a/b/file").write_text("x")
        (short_dir / "a/b/file").chmod(0o644)
        return short_dir

    def test_safe(self, tree, uid_block):
        """Nothing on the way can be changed; the sticky directory of root above is no danger."""
        assert reached(tree / "a/b/file", "writable(path)", uid_block[0]) == "None"

    @pytest.mark.parametrize("part", ["a", "a/b", "a/b/file"])
    @pytest.mark.parametrize("how", ["mode", "owner"])
    def test_each_part(self, tree, uid_block, part, how):
        """A writable part on the way is found, and one that belongs to the uid, who can change its mode."""
        path = tree / part
        if how == "mode":
            path.chmod(path.stat().st_mode & 0o777 | 0o002)
        else:
            os.chown(path, uid_block[0], uid_block[0])
        said = reached(tree / "a/b/file", "writable(path)", uid_block[0])
        assert str(path) in said

    def test_behind_a_link(self, tree, uid_block):
        """What a link leads to is looked at, with the directories on the way to it."""
        (tree / "link").symlink_to("a/b/../b/file")
        (tree / "a").chmod(0o757)
        said = reached(tree / "link", "writable(path)", uid_block[0])
        assert said.endswith(f"can write {tree / 'a'}")
        said = reached(tree / "link", "replaceable(path, links_allowed=False)", uid_block[0])
        assert "symbolic link" in said

    def test_missing(self, tree, uid_block):
        """What is not there can be made by who can write its directory, a sticky one included."""
        call = "writable(path)"
        assert reached(tree / "a/none", call, uid_block[0]) == "None"
        (tree / "a").chmod(0o1777)
        assert str(tree / "a") in reached(tree / "a/none", call, uid_block[0])

    @pytest.mark.parametrize("how", ["mode", "owner", "directory"])
    def test_below(self, tree, uid_block, how):
        """One changeable file or directory anywhere in a tree is found."""
        call = "writable_below(path)"
        assert reached(tree, call, uid_block[0]) == "None"
        path = tree / ("a/b" if how == "directory" else "a/b/file")
        if how == "owner":
            os.chown(path, uid_block[0], uid_block[0])
        else:
            path.chmod(path.stat().st_mode & 0o777 | 0o022)
        assert str(path) in reached(tree, call, uid_block[0])

    @pytest.mark.parametrize(
        ("bits", "answer"),
        [(0o600, "refused"), (0o604, "reached"), (0o602, "reached"), (0o640, "refused")],
    )
    def test_try_file(self, tree, uid_block, bits, answer):
        """A file is reached for reading or for writing."""
        (tree / "a/b/file").chmod(bits)
        assert reached(tree / "a/b/file", "try_path(path)[0]", uid_block[0]) == answer

    @pytest.mark.parametrize(
        ("bits", "answer"), [(0o700, "refused"), (0o701, "reached"), (0o704, "reached"), (0o702, "refused")]
    )
    def test_try_directory(self, tree, uid_block, bits, answer):
        """A directory is reached when it can be entered or listed; without entering, writing does nothing."""
        (tree / "a/b").chmod(bits)
        assert reached(tree / "a/b", "try_path(path)[0]", uid_block[0]) == answer

    def test_running_program(self, tree, uid_block):
        """A program that runs cannot be opened for writing, but who may is told apart from who may not."""
        program = tree / "a/b/sleep"
        program.write_bytes(Path("/bin/sleep").read_bytes())
        program.chmod(0o755)
        with subprocess.Popen([program, "60"]) as running:
            call = "writable(path)"
            assert reached(program, call, uid_block[0]) == "None"
            program.chmod(0o757)
            assert str(program) in reached(program, call, uid_block[0])
            running.kill()


class TestPaths:
    def test_link_loop(self, tmp_path):
        """A loop of links ends."""
        (tmp_path / "a").symlink_to("b")
        (tmp_path / "b").symlink_to("a")
        assert len(list(reaching.way_to(tmp_path / "a"))) < reaching.MAX_LINKS + len(tmp_path.parts) + 3
        assert reaching.try_path(tmp_path / "a")[0] == "untried"

    @given(st.lists(st.sampled_from(["..", "d", "l", "up", "abs", "."]), max_size=8))
    def test_as_the_kernel(self, tmp_path_factory, names):
        """The way ends where the kernel ends, whatever links and dots lie on it."""
        base = tmp_path_factory.mktemp("way")
        (base / "d").mkdir()
        for place in (base, base / "d"):
            (place / "l").symlink_to(base / "d")
            (place / "up").symlink_to("..")
            (place / "abs").symlink_to(base)
        path = base.joinpath(*[one for one in names if one not in ("..", ".")])
        parts = list(reaching.way_to(path))
        if path.exists():
            assert parts[-1][0].resolve() == path.resolve()
            assert not stat.S_ISLNK(parts[-1][1].st_mode)

    def test_too_large(self, tmp_path, monkeypatch):
        """A tree with more entries than are looked at is said, not passed over."""
        for name in "abc":
            (tmp_path / name).mkdir()
            os.chmod(tmp_path / name, 0o555)
        monkeypatch.setattr(reaching, "MAX_ENTRIES", 2)
        with pytest.raises(OverflowError):
            reaching.writable_below(tmp_path)

    def test_pipe(self, tmp_path):
        """A pipe in the place of a file is not opened, so nobody waits."""
        os.mkfifo(tmp_path / "pipe")
        assert reaching.try_path(tmp_path / "pipe")[0] == "reached"

    def test_unix_socket(self, short_dir):
        """Who may connect is told apart from a path where nothing is, whether anybody listens or not."""
        path = short_dir / "s"
        assert reaching.try_socket(path)[0] == "missing"
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
            assert reaching.try_socket(path)[0] == "reached"
            one.listen()
            assert reaching.try_socket(path)[0] == "reached"

    def test_network(self):
        """A port that answers is reached, one that does not is not; both kinds of address are read."""
        with socket.create_server(("127.0.0.1", 0)) as one:
            port = one.getsockname()[1]
            assert reaching.try_network(f"127.0.0.1:{port}")[0] == "reached"
        assert reaching.try_network(f"127.0.0.1:{port}")[0] == "refused"
        assert reaching.try_network("[::1]:1")[0] == "refused"

    @pytest.mark.parametrize(
        ("error", "answer"),
        [
            (socket.gaierror(socket.EAI_NONAME, ""), "missing"),
            (socket.gaierror(socket.EAI_AGAIN, ""), "untried"),
            (TimeoutError(), "refused"),
            (OSError(errno.ENETUNREACH, ""), "refused"),
            (OSError(errno.EPERM, ""), "refused"),
            (OSError(errno.EMFILE, ""), "untried"),
        ],
    )
    def test_network_errors(self, monkeypatch, error, answer):
        """Not to get there is a refusal; a name that is not found just now and a want of ours prove nothing."""

        def fail(*arguments, **more):
            raise error

        monkeypatch.setattr(socket, "create_connection", fail)
        assert reaching.try_network("db.example.com:5432")[0] == answer


class TestCanaryKey:
    def parse(self, text):
        return Configuration.parse(
            f'mode = "user"\n[servers.a]\ncommand = "x"\ncanaries = [{text}]', file=Path("/x.toml")
        )

    @pytest.mark.parametrize(
        "text", ['"/srv/x"', '"db.example.com:5432"', '"[2001:db8::1]:80"', '"127.0.0.1:1"', ""]
    )
    def test_good(self, home, text):
        """Paths, host:port and none at all."""
        assert len(self.parse(text).servers["a"].canaries) == bool(text)

    @pytest.mark.parametrize(
        "text",
        [
            '"srv/x"',
            '"/srv/../x"',
            '"db.example.com"',
            '"db.example.com:0"',
            '"db:65536"',
            '"::1:80"',
            '"a b:1"',
            '"~/x"',
            '""',
        ],
    )
    def test_bad(self, home, text):
        """Anything else is refused with its place."""
        with pytest.raises(ConfigurationError) as caught:
            self.parse(text)
        assert caught.value.code == "configuration-value"

    def test_none(self, home):
        """Saying nothing is not the same as saying that there is none."""
        file = 'mode = "user"\n[servers.a]\ncommand = "x"'
        server = Configuration.parse(file, file=Path("/x.toml")).servers["a"]
        assert (server.canaries, server.secret_names) == (None, None)

"""`onrecord up`: start order, readiness, restarts, limits, stop order. Real processes, scripted by the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onrecord.authorize.supervisor import (
    Child,
    Next,
    Restarts,
    all_children,
    authority_child,
    child_environment,
    guard_child,
    recorder_child,
    start_and_wait,
)
from onrecord.base.configuration import Configuration
from onrecord.base.errors import ConfigurationError, StorageError, UsageError
from support.runtime import READY_SECONDS, stop, wait_for

SHORT = (
    "Timing(start_timeout_s=20, first_delay_s=0.01, longest_delay_s=0.02, max_restarts=3, guard_stop_s=20, "
    "stop_timeout_s=20)"
)

CHILD = textwrap.dedent(
    """
    import ctypes, os, select, signal, sys
    # Ends with its supervisor, as the real children do.
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    name, log, plan = sys.argv[1:4]
    ready = int(sys.argv[sys.argv.index("--ready-fd") + 1])
    def say(what):
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, f"{name} {what}\\n".encode())
        os.close(descriptor)
    def stop(*_):
        say("stopped")
        sys.exit(0)
    if plan != "stubborn":
        signal.signal(signal.SIGTERM, stop)
    else:
        signal.signal(signal.SIGTERM, lambda *_: say("ignored"))
    say("started")
    if plan.startswith("exit"):
        sys.exit(int(plan.removeprefix("exit")))
    if plan.startswith("once"):
        mark = log + "." + name
        if not os.path.exists(mark):
            open(mark, "w").close()
            if plan == "once-killed":
                os.kill(os.getpid(), signal.SIGKILL)
            sys.exit(int(plan.removeprefix("once")))
    if plan == "busy":
        for _ in range(25):
            os.write(ready, b".")
            select.select([], [], [], 0.1)
    if plan != "silent":
        os.write(ready, b"ready\\n")
    os.close(ready)
    while True:
        signal.pause()
    """
)

PARENT = textwrap.dedent(
    """
    import asyncio, os, sys
    from onrecord.authorize.supervisor import Child, Supervisor, Timing
    log, script = sys.argv[1:3]
    children = []
    for entry in sys.argv[3:]:
        role, name, plan = entry.split(":")
        argv = (sys.executable, "-I", script, name, log, plan)
        children.append(Child(role=role, name=name, argv=argv, principal=None, env={}))
    supervisor = Supervisor(children, timing=TIMING)
    sys.exit(asyncio.run(supervisor.run(ready_fd=int(os.environ["READY"]))))
    """
)


class Run:
    """A supervisor process with scripted children."""

    def __init__(self, directory: Path, *entries: str, timing: str = SHORT) -> None:
        self.log = directory / "log"
        self.log.touch()
        script, parent = directory / "child.py", directory / "parent.py"
        script.write_text(CHILD)
        parent.write_text(PARENT.replace("timing=TIMING", f"timing={timing}"))
        self._reader, writer = os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, str(parent), str(self.log), str(script), *entries],
            env={"READY": str(writer), "PATH": os.defpath},
            pass_fds=(writer,),
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(writer)

    def ready(self) -> bool:
        return os.read(self._reader, 16) == b"ready\n"

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()

    def end(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=READY_SECONDS)
        return self.process.returncode, said

    def close(self) -> None:
        children = children_of(self.process.pid).values()
        stop(self.process, signal_number=signal.SIGKILL)
        wait_for(lambda: not any(is_running(pid) for pid in children), what="its children ended with it")
        self.process.stderr.close()
        os.close(self._reader)


@pytest.fixture
def run(tmp_path):
    running = []

    def start(*entries, timing=SHORT):
        running.append(Run(tmp_path, *entries, timing=timing))
        return running[-1]

    yield start
    for one in running:
        one.close()


ALL = ("recorder:r:good", "authority:a:good", "guard:g1:good", "guard:g2:good")


class TestOrder:
    def test_start_and_stop(self, run):
        """Recorder, authority, guards start in this order and stop in the other; status 0."""
        up = run(*ALL)
        assert up.ready()
        assert up.lines()[:2] == ["r started", "a started"]
        assert set(up.lines()[2:]) == {"g1 started", "g2 started"}
        up.process.send_signal(signal.SIGTERM)
        status, _ = up.end()
        assert status == 0
        stops = [line for line in up.lines() if "stopped" in line]
        assert set(stops[:2]) == {"g1 stopped", "g2 stopped"}
        assert stops[2:] == ["a stopped", "r stopped"]

    def test_interrupt(self, run):
        """Ctrl-C stops in order too; the children are in groups of their own and get no SIGINT."""
        up = run(*ALL)
        assert up.ready()
        up.process.send_signal(signal.SIGINT)
        assert up.end()[0] == 0
        assert up.lines()[-1] == "r stopped"

    def test_second_signal(self, run):
        """A child that does not stop is waited for, and a second signal ends the waiting at once."""
        up = run("recorder:r:good", "authority:a:stubborn")
        assert up.ready()
        up.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "a ignored" in up.lines(), what="the child got SIGTERM")
        up.process.send_signal(signal.SIGTERM)
        status, said = up.end()
        assert status == 0
        assert "killing it" in said

    def test_stop_while_starting(self, run):
        """A signal before everything is up stops what has started; nothing is said to be ready."""
        up = run("recorder:r:good", "authority:a:silent")
        wait_for(lambda: "a started" in up.lines(), what="the authority has started")
        up.process.send_signal(signal.SIGTERM)
        status, said = up.end()
        assert status == 0
        assert said == "onrecord up: stopping; a second signal stops at once\n"
        assert not up.ready()
        assert "r stopped" in up.lines()


class TestRestart:
    @pytest.mark.parametrize("plan", ["once3", "once0", "once-killed"])
    def test_is_started_again(self, run, plan):
        """A child that ends by itself, with any status but 1 and 2 or by a signal, is started again."""
        up = run("recorder:r:good", f"authority:a:{plan}")
        assert up.ready()
        assert up.lines().count("a started") == 2
        assert up.lines().count("r started") == 1

    def test_killed_later(self, run):
        """Kill -9 of a running child brings a new one; the others do not notice."""
        up = run("recorder:r:good", "authority:a:good")
        assert up.ready()
        pid = children_of(up.process.pid)["a"]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: up.lines().count("a started") == 2, what="the authority was started again")
        assert up.lines().count("r started") == 1

    def test_limit(self, run):
        """A child that keeps ending is given up, everything is stopped, status 3."""
        up = run("recorder:r:good", "authority:a:exit7")
        status, said = up.end()
        assert status == 3
        assert up.lines().count("a started") == 4
        assert up.lines()[-1] == "r stopped"
        assert "more than 3 restarts" in said
        assert not up.ready()

    @pytest.mark.parametrize("role", ["recorder", "authority", "guard"])
    def test_wrong_configuration(self, run, role):
        """Exit status 2 of any child stops everything at once with status 3."""
        up = run("recorder:r:good", f"{role}:x:exit2")
        status, said = up.end()
        assert status == 3
        assert up.lines().count("x started") == 1
        assert "configuration" in said

    def test_authority_journal(self, run):
        """Exit status 1 of the authority, a journal that does not pass, stops everything."""
        up = run("recorder:r:good", "authority:a:exit1")
        status, said = up.end()
        assert (status, up.lines().count("a started")) == (3, 1)
        assert "journal" in said

    def test_recorder_journal(self, run):
        """Exit status 1 of the recorder leaves it down, and the others run on."""
        up = run("recorder:r:exit1", "authority:a:good")
        assert up.ready()
        assert up.lines() == ["r started", "a started"]
        up.process.send_signal(signal.SIGTERM)
        status, said = up.end()
        assert status == 0
        assert "stays down" in said

    def test_never_ready(self, run):
        """A child that never says ready is ended and the start fails with status 3."""
        up = run(
            "recorder:r:good",
            "authority:a:silent",
            timing=SHORT.replace("start_timeout_s=20", "start_timeout_s=0.5"),
        )
        status, said = up.end()
        assert status == 3
        assert "not ready" in said
        assert up.lines()[-1] == "r stopped"

    def test_busy_with_its_start(self, run):
        """A child that tells of its progress is waited for, longer than one that says nothing."""
        up = run(
            "recorder:r:busy",
            "authority:a:good",
            timing=SHORT.replace("start_timeout_s=20", "start_timeout_s=1.5"),
        )
        assert up.ready()

    def test_program_is_missing(self, run, tmp_path):
        """A program that cannot be started is status 3, no traceback."""
        up = run("recorder:r:good", "authority:a:good")
        assert up.ready()
        (tmp_path / "child.py").unlink()
        os.kill(children_of(up.process.pid)["a"], signal.SIGKILL)
        status, said = up.end()
        assert status == 3
        assert "Traceback" not in said


def children_of(pid):
    """Return the children of a supervisor by their names."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                arguments = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if int(fields[1]) == pid and len(arguments) > 3:
                found[arguments[3].decode()] = int(entry.name)
    return found


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class TestRestarts:
    def test_back_off(self):
        """0.2 s, doubling to 5 s."""
        restarts = Restarts("authority", max_restarts=100)
        delays = [restarts.after_exit(3, now_s=0.0).delay_s for _ in range(7)]
        assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]

    def test_eleventh_in_a_minute(self):
        """Ten restarts in 60 s are allowed, the eleventh is not."""
        restarts = Restarts("guard")
        verdicts = [restarts.after_exit(-9, now_s=float(second)).next for second in range(11)]
        assert verdicts == [Next.RESTART] * 10 + [Next.STOP_ALL]

    def test_old_ones_are_forgotten(self):
        """A restart per 7 s goes on for ever, and after a quiet minute the first delay is back."""
        restarts = Restarts("guard")
        for step in range(50):
            assert restarts.after_exit(3, now_s=step * 7.0).next is Next.RESTART
        assert restarts.after_exit(3, now_s=50 * 7.0 + 100).delay_s == 0.2

    @pytest.mark.parametrize(
        ("role", "status", "expected"),
        [
            ("authority", 1, Next.STOP_ALL),
            ("recorder", 1, Next.LEAVE),
            ("guard", 1, Next.RESTART),
            ("authority", 2, Next.STOP_ALL),
            ("recorder", 2, Next.STOP_ALL),
            ("guard", 2, Next.STOP_ALL),
            ("authority", 3, Next.RESTART),
            ("authority", 0, Next.RESTART),
            ("recorder", -9, Next.RESTART),
        ],
    )
    def test_statuses(self, role, status, expected):
        """The table of running.md 1.1."""
        assert Restarts(role).after_exit(status, now_s=0.0).next is expected

    @given(st.lists(st.tuples(st.sampled_from([0, 3, -9, -15, 137]), st.floats(0, 100)), max_size=60))
    def test_never_more_than_ten_in_a_minute(self, exits):
        """Whatever the exits, at most ten restarts fall into any 60 s."""
        restarts, now, times = Restarts("guard"), 0.0, []
        for status, pause in exits:
            now += pause
            if restarts.after_exit(status, now_s=now).next is not Next.RESTART:
                break
            times.append(now)
            assert sum(now - one <= 60 for one in times) <= 10


SYSTEM = """
mode = "system"
principals = { authority = 59000, recorder = 59001, call_group = 59008, approval_group = 59009, \
control_group = 59010, record_group = 59011, readers_group = 59012 }
[servers.files]
command = "x"
user = 59002
env_pass = ["PASSED_ON"]
"""


class TestChildren:
    def test_system_principals(self):
        """Each child gets its uid, its gid and the socket groups that it needs, no other."""
        found = Configuration.parse(SYSTEM, file=Path("/example/onrecord.toml"))
        recorder, authority, guard = all_children(found)
        assert (recorder.principal.uid, recorder.principal.groups) == (59001, (59011, 59012))
        assert (authority.principal.uid, authority.principal.groups) == (59000, (59008, 59009, 59010, 59011))
        assert (guard.principal.uid, guard.principal.gid, guard.principal.groups) == (
            59002,
            59002,
            (59008, 59011),
        )

    def test_user_mode_has_no_guards(self):
        """In user mode connectors start the guards, and nobody changes uid."""
        found = Configuration.parse(
            'mode = "user"\npaths = {state = "/s", runtime = "/r"}\nservers.files.command = "x"',
            file=Path("/e/o.toml"),
        )
        assert [child.role for child in all_children(found)] == ["recorder", "authority"]
        assert all(child.principal is None for child in all_children(found))

    def test_command_lines(self):
        """The command lines are those of the contract, and the current directory is not on the module path."""
        found = Configuration.parse(SYSTEM, file=Path("/example/onrecord.toml"))
        tail = ("--config", "/example/onrecord.toml")
        assert recorder_child(found).argv == (
            sys.executable,
            "-I",
            "-m",
            "onrecord",
            "record",
            "serve",
            *tail,
        )
        assert authority_child(found).argv == (
            sys.executable,
            "-I",
            "-m",
            "onrecord",
            "authority",
            "serve",
            *tail,
        )
        guard = guard_child(found, "files").argv
        assert guard == (sys.executable, "-I", "-m", "onrecord", "guard", "files", "--listen", *tail)

    def test_environment(self, monkeypatch):
        """The operator's environment stays behind, but for locale, path and what env_pass names for its own guard."""
        monkeypatch.setenv("SECRET_TOKEN", "canary")
        monkeypatch.setenv("PASSED_ON", "for the guard")
        monkeypatch.setenv("LC_TIME", "C")
        found = Configuration.parse(SYSTEM, file=Path("/example/onrecord.toml"))
        for child in all_children(found):
            assert "SECRET_TOKEN" not in child.env
            assert child.env["LC_TIME"] == "C"
            assert ("PASSED_ON" in child.env) == (child.role == "guard")

    def test_home_of_a_number(self):
        """A uid without account gets HOME=/ and its number as USER."""
        environment = child_environment(59999)
        assert (environment["HOME"], environment["USER"]) == ("/", "59999")

    def test_unknown_server(self):
        """A guard for a server that is not configured is refused."""
        with pytest.raises(ConfigurationError) as caught:
            guard_child(Configuration.parse(SYSTEM, file=Path("/example/onrecord.toml")), "other")
        assert caught.value.code == "server-unknown"


def scripted(tmp_path, plan):
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    argv = (sys.executable, "-I", str(script), "c", str(tmp_path / "log"), plan)
    return Child(role="authority", name="authority", argv=argv, principal=None, env={})


class TestStartAndWait:
    def test_ready(self, tmp_path):
        """The process is returned when it has said ready."""
        process = start_and_wait(scripted(tmp_path, "good"), timeout_s=READY_SECONDS)
        assert process.poll() is None
        assert stop(process) == 0

    @pytest.mark.parametrize(
        ("plan", "kind", "code"),
        [("exit2", UsageError, "child-configuration"), ("exit1", StorageError, "child-not-ready")],
    )
    def test_ended(self, tmp_path, plan, kind, code):
        """A child that ends instead is an error that tells a wrong configuration from the rest."""
        with pytest.raises(kind) as caught:
            start_and_wait(scripted(tmp_path, plan), timeout_s=READY_SECONDS)
        assert caught.value.code == code

    def test_busy(self, tmp_path):
        """A child that tells of its progress gets the time anew with each sign."""
        process = start_and_wait(scripted(tmp_path, "busy"), timeout_s=1.5)
        assert stop(process) == 0

    def test_silent(self, tmp_path):
        """A child that closes the descriptor without a word is killed when the time is over."""
        with pytest.raises(StorageError) as caught:
            start_and_wait(scripted(tmp_path, "silent"), timeout_s=0.2)
        assert caught.value.code == "child-not-ready"

    @pytest.mark.root
    def test_as_another_principal(self, tmp_path, uid_block):
        """A child with a principal runs under its uid, gid and groups."""
        from onrecord.base.processes import Principal

        program = "import os, sys; os.write(int(sys.argv[-1]), b'ready\\n'); import time; time.sleep(60)"
        child = Child(
            role="guard",
            name="guard",
            argv=(sys.executable, "-I", "-c", program),
            principal=Principal(uid_block[0], uid_block[0], (uid_block[8],)),
            env={},
        )
        process = start_and_wait(child, timeout_s=READY_SECONDS)
        rows = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        found = {row.split(":")[0]: row.split()[1:] for row in rows}
        assert found["Uid"] == [str(uid_block[0])] * 4
        assert found["Gid"] == [str(uid_block[0])] * 4
        assert found["Groups"] == [str(uid_block[8])]
        stop(process)

"""The environment of the real server, and the guard's log."""

import os
import stat

import pytest

from onrecord.authorize.guard.checkpoints import CheckpointFile
from onrecord.authorize.guard.environment import read_env_file, server_environment
from onrecord.authorize.guard.log import ALERTS_PER_SECOND, BYTES_PER_SECOND, FILE_BYTES, GuardLog, escape
from onrecord.base.dates import ManualClock
from onrecord.base.errors import ConfigurationError, StorageError


def secrets(directory, text, mode=0o600):
    path = directory / "files.env"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.req("CP-101")
def test_nothing_else_gets_in(tmp_path):
    """Seven names of the uid, what is passed on by name, and the file; nothing of the agent's secrets."""
    own = {
        "PATH": "/bin",
        "LANG": "C",
        "LC_TIME": "C",
        "TZ": "UTC",
        "TMPDIR": "/tmp",
        "AWS_SECRET": "x",
        "SSH_AUTH_SOCK": "y",
        "KEEP": "z",
        "LC_lower": "n",
    }
    env = server_environment(
        uid=os.getuid(), own=own, env_file=secrets(tmp_path, "TOKEN=a=b\n"), env_pass=["KEEP", "ABSENT"]
    )
    assert set(env) == {"PATH", "HOME", "USER", "LANG", "LC_TIME", "TZ", "TMPDIR", "KEEP", "TOKEN"}
    assert env["TOKEN"] == "a=b"


def test_a_uid_without_account_has_a_home():
    """The demo's uids have no accounts."""
    env = server_environment(uid=59321, own={"HOME": "/root"}, env_file=None, env_pass=())
    assert (env["HOME"], env["USER"]) == ("/", "59321")


def test_lines_of_an_env_file(tmp_path):
    """Blank lines and comments are skipped; values are taken as they stand."""
    path = secrets(tmp_path, "# comment\n\nA=1\r\nB= two words \nC=\n")
    assert read_env_file(path, owner=os.getuid()) == {"A": "1", "B": " two words ", "C": ""}


@pytest.mark.parametrize("line", ["no equals", "=x", "1A=x", "A B=x", "A=\0"])
def test_a_malformed_line_names_its_number_and_no_value(tmp_path, line):
    """Where, but never what."""
    with pytest.raises(ConfigurationError) as e:
        read_env_file(secrets(tmp_path, f"OK=1\nX=SECRET\n{line}\n"), owner=os.getuid())
    assert e.value.code == "env-file-malformed"
    assert e.value.where.line == 3
    assert "SECRET" not in str(e.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_others_must_not_read_it(tmp_path, mode):
    """0600 or stricter."""
    with pytest.raises(ConfigurationError) as e:
        read_env_file(secrets(tmp_path, "A=1\n", mode), owner=os.getuid())
    assert e.value.code == "env-file-mode"


def test_it_must_belong_to_the_server(tmp_path):
    """A file of another uid is not read."""
    with pytest.raises(ConfigurationError) as e:
        read_env_file(secrets(tmp_path, "A=1\n"), owner=os.getuid() + 1)
    assert e.value.code == "env-file-owner"


def test_links_and_fifos_are_not_read(tmp_path):
    """O_NOFOLLOW, and a regular file."""
    secrets(tmp_path, "A=1\n")
    (tmp_path / "link").symlink_to(tmp_path / "files.env")
    os.mkfifo(tmp_path / "fifo", 0o600)
    for name, code in (
        ("link", "env-file-missing"),
        ("fifo", "env-file-malformed"),
        ("absent", "env-file-missing"),
    ):
        with pytest.raises(ConfigurationError) as e:
            read_env_file(tmp_path / name, owner=os.getuid())
        assert e.value.code == code


def test_control_characters_are_escaped():
    """PR-14: no escape sequence, line feed or bidirectional mark reaches a terminal through the log."""
    assert escape("a\x1b[31m\n\u202eb\x9b") == r"a\u{1b}[31m\u{a}\u{202e}b\u{9b}"
    assert escape("plain é") == "plain é"


def test_a_flood_is_counted(tmp_path):
    """A server that writes without end to standard error fills no disk."""
    clock = ManualClock()
    log = GuardLog(tmp_path / "guard.log", clock=clock)
    line = b"x" * 1000
    for _ in range(2000):
        log.server_line("1", line)
    clock.advance(1)
    log.event("after")
    log.close()
    text = (tmp_path / "guard.log").read_text()
    assert len(text) < BYTES_PER_SECOND + 2000
    assert "log.dropped lines=" in text
    assert text.splitlines()[-1].endswith("guard after")


def test_a_flood_of_alerts_stays_in_the_file(tmp_path, capsys):
    """A client can cause them; whoever reads standard error slowly must not hold up the guard."""
    clock = ManualClock()
    log = GuardLog(tmp_path / "guard.log", clock=clock)
    for _ in range(ALERTS_PER_SECOND + 5):
        log.alert("call.without-id")
    clock.advance(1)
    log.alert("after")
    log.close()
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[-1]) == (ALERTS_PER_SECOND + 1, "onrecord guard: after")
    assert len((tmp_path / "guard.log").read_text().splitlines()) == ALERTS_PER_SECOND + 6


def test_the_log_is_bounded_and_private(tmp_path):
    """At its size it becomes guard.log.1; both are readable by their owner alone."""
    clock = ManualClock()
    log = GuardLog(tmp_path / "guard.log", clock=clock)
    for _ in range(2 * FILE_BYTES // 8000 + 100):
        clock.advance(1)
        log.server_line("1", b"x" * 8000)
    log.close()
    sizes = {path.name: path.stat() for path in tmp_path.iterdir()}
    assert set(sizes) == {"guard.log", "guard.log.1"}
    assert all(one.st_size <= FILE_BYTES and stat.S_IMODE(one.st_mode) == 0o600 for one in sizes.values())


def test_pipes_in_the_state_of_a_guard_stop_nobody(tmp_path):
    """A server has the uid of its guard: what it puts in the place of a file is not waited for."""
    os.mkfifo(tmp_path / "guard.log")
    with pytest.raises(StorageError) as caught:
        GuardLog(tmp_path / "guard.log")
    assert caught.value.code == "log-unusable"
    kept = CheckpointFile(tmp_path, log=GuardLog(None))
    os.mkfifo(tmp_path / "checkpoint.json")
    assert not kept._is_older({"size": 1, "note": "example/authority/journal/1\n"})


def test_a_log_that_cannot_be_written_ends_no_call(tmp_path):
    """Writing never raises."""
    log = GuardLog(tmp_path / "guard.log")
    os.close(log._descriptor)
    log._descriptor = os.open("/dev/full", os.O_WRONLY)
    log.event("call.rejected", reason="missing")
    log.close()

"""onrecord approvals, against a real authority and at a real terminal."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from contextlib import redirect_stderr, redirect_stdout
from fcntl import ioctl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from authorize.authority.house import House, issue_params, on_thread
from onrecord.authorize.authority.callers import DoorKind
from onrecord.base.processes import Principal, spawn
from onrecord.cli.approvals import CONTINUED, MIN_COLUMNS, in_order, wrap
from onrecord.cli.main import main
from support.runtime import child_environment, make_short_dir
from support.uids import uid_block_or_skip


@pytest.fixture
def house():
    made = House(make_short_dir(), mode="user", uids=uid_block_or_skip() if os.getuid() == 0 else None)
    made.start()
    made.report()
    yield made
    made.remove()


def start(house: House, *args: str, more=(), **streams):
    principal = Principal(house.authority_uid, house.authority_uid) if os.getuid() == 0 else None
    return spawn(
        [sys.executable, "-m", "onrecord", "approvals", *args, "--config", str(house.config.file)],
        principal=principal,
        env=child_environment(TERM="dumb", **dict(more)),
        **streams,
    )


def approvals(house: House, *args: str):
    """Run the command under the house's uid, without a terminal; returns status, standard output and error."""
    argv = ["approvals", *args, "--config", str(house.config.file)]
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()

    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            main(argv)
        return ended.value.code

    with redirect_stdout(out), redirect_stderr(err):
        status = on_thread(run, uid=house.authority_uid)
        out.flush()
    return status, out.buffer.getvalue().decode(), err.getvalue()


def ask(house: House, body: str = "Please add a test.") -> dict:
    """Ask for a comment; returns the data of the error, or the result."""
    params = issue_params(name="post_comment", arguments={"number": 17, "body": body})
    with house.agent_wire() as agent:
        answer = agent.call("callProof/issue", params)
    return answer["error"]["data"] if "error" in answer else answer["result"]


def close_idle(authority) -> None:
    """Close the approvers' connections as the authority does with idle ones."""
    for server in authority._servers:
        for connection in server.connections:
            if connection.state.door.kind is DoorKind.APPROVAL:
                connection.end()


class Terminal:
    """The command at a terminal of 60 columns."""

    def __init__(self, house: House, *args: str, **environment: str) -> None:
        self.master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        if os.getuid() == 0:
            os.fchown(slave, house.authority_uid, house.authority_uid)
        self.process = start(house, *args, more=environment, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        self.text = ""

    def until(self, text: str) -> str:
        """Read until this text appears; returns everything since the last time."""
        while text not in self.text:
            more = self._read()
            assert more, f"no {text!r} in {self.text!r}"
            self.text += more
        shown, _, self.text = self.text.partition(text)
        return shown + text

    def _read(self) -> str:
        try:
            return os.read(self.master, 65536).decode(errors="replace")
        except OSError as error:
            if error.errno == errno.EIO:
                return ""
            raise

    def say(self, text: str) -> None:
        os.write(self.master, text.encode() + b"\n")

    def end(self) -> tuple[int, str]:
        """Read to the end; returns status and what was shown since the last time."""
        while more := self._read():
            self.text += more
        status = self.process.wait(60)
        self.close()
        return status, self.text

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


@pytest.fixture
def terminal_of(house):
    """A function that runs the command at a terminal; what is left running is ended."""
    made = []

    def make(*args: str, **environment: str) -> Terminal:
        made.append(Terminal(house, *args, **environment))
        return made[-1]

    yield make
    for one in made:
        one.close()


class TestCommands:
    def test_nothing_waits(self, house):
        """Without pending calls the list is empty and exit is 0."""
        assert approvals(house, "list")[:2] == (0, "nothing waits for you\n")
        assert json.loads(approvals(house, "list", "--json")[1]) == {"approvals": []}

    @pytest.mark.req("CP-051")
    def test_list_show_approve(self, house):
        """A waiting call is listed, shown in full, and approved by a beginning of its id."""
        approval_id = ask(house, "x" * 500 + "\u202e\x1b[31m")["approvalId"]
        code, out, _ = approvals(house, "list")
        assert code == 0
        assert out.startswith(f"{approval_id}  asked ")
        assert "  server: filesystem\n  tool: post_comment\n  caller: code-review\n  number: 17\n" in out
        assert "\x1b" not in out
        code, out, _ = approvals(house, "show", approval_id[:6])
        assert code == 0
        assert "x" * 500 + "\\u{202e}\\u001b[31m" in out
        code, out, _ = approvals(house, "approve", approval_id[:6])
        assert (code, out.splitlines()[-1]) == (0, "approved: the call may run once")
        assert "evidence" in ask(house, "x" * 500 + "\u202e\x1b[31m")

    def test_json(self, house):
        """With --json, before or after the command's name, one document with stable members is printed."""
        approval_id = ask(house)["approvalId"]
        (listed,) = json.loads(approvals(house, "list", "--json")[1])["approvals"]
        assert {"approvalId", "ageMs", "expiresAt", "caller", "server", "tool", "rules", "needed", "granted",
                "approvedByYou", "digestStart", "summary"} == set(listed)  # fmt: skip
        shown = json.loads(approvals(house, "--json", "show", approval_id)[1])
        assert shown["call"] == ["number: 17", 'body: "Please add a test."']
        outcome = json.loads(approvals(house, "reject", approval_id, "--json")[1])
        assert outcome == {"approvalId": approval_id, "state": "rejected", "needed": 1, "granted": 0}
        assert ask(house)["reason"] == "approval_rejected"

    def test_taken_back(self, house):
        """A grant is taken back by its whole id."""
        approval_id = ask(house)["approvalId"]
        approvals(house, "approve", approval_id)
        assert approvals(house, "reject", approval_id[:8])[0] == 2
        assert approvals(house, "reject", approval_id)[0] == 0
        assert ask(house)["reason"] == "approval_rejected"

    @pytest.mark.parametrize("name", ["", "abc", "none-such-approval", "\x1b[2J"])
    def test_unknown(self, house, name):
        """An id that no pending approval has, or too short a beginning, is an error that names what waits."""
        approval_id = ask(house)["approvalId"]
        code, out, err = approvals(house, "approve", name)
        assert (code, out) == (2, "")
        assert approval_id in err
        assert "\x1b" not in err
        assert approvals(house, "approve", approval_id[:3])[0] == 2

    def test_ambiguous(self, house):
        """A beginning that fits several approvals decides none."""
        house.inside(lambda a: setattr(a.state.approvals, "_randomness", FixedStart()))
        for body in ("one", "two"):
            ask(house, body)
        code, _, err = approvals(house, "approve", "AAAAAA")
        assert code == 2
        assert "approval-ambiguous" in err
        assert len(json.loads(approvals(house, "list", "--json")[1])["approvals"]) == 2

    def test_expired(self, house):
        """An approval that has expired meanwhile is an error with its code, not a success."""
        approval_id = ask(house)["approvalId"]
        approvals(house, "approve", approval_id)
        code, _, err = approvals(house, "approve", approval_id)
        assert code == 2
        assert "approval-unknown" in err

    def test_no_authority(self, house):
        """Without an authority: exit 3, the socket, and what to do."""
        house.stop()
        code, _, err = approvals(house, "list")
        assert code == 3
        assert "authority-unreachable" in err
        assert "`onrecord up` is not running" in err

    def test_not_an_approver(self):
        """In system mode somebody who is no approver gets the reason and no list."""
        house = House(make_short_dir(), mode="system", uids=uid_block_or_skip())
        try:
            house.start()
            house.report()
            for uid, code, word in (
                (house.approver, 0, ""),
                (house.operator, 3, "not-authorized"),
                (house.stranger, 3, "unknown-caller"),
                (house.agent, 3, "only members of the group"),
            ):
                groups = () if uid == house.agent else (house.approval_gid,)
                process = spawn(
                    [
                        sys.executable,
                        "-m",
                        "onrecord",
                        "approvals",
                        "list",
                        "--config",
                        str(house.config.file),
                    ],
                    principal=Principal(uid, uid, groups),
                    env=child_environment(),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
                _, err = process.communicate(timeout=60)
                assert (process.returncode, word in err.decode()) == (code, True), err
        finally:
            house.remove()


class FixedStart:
    """Random bytes whose first ones are always the same."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, size: int) -> bytes:
        self.count += 1
        return bytes(size - 1) + bytes([self.count])


class TestTerminal:
    @pytest.mark.req("CP-051", "CP-049")
    def test_asks_about_each(self, house, terminal_of):
        """Each waiting call is shown and asked about: yes approves, no rejects, full shows all, nonsense asks again."""
        first, second = ask(house, "one" + "x" * 500)["approvalId"], ask(house, "two")["approvalId"]
        terminal = terminal_of()
        shown = terminal.until("[q]uit: ")
        assert first in shown
        assert "code-review asks for post_comment of filesystem" in shown.splitlines()
        assert "Not all of this call is shown above" in shown
        terminal.say("perhaps")
        assert "Not all of this call" in terminal.until("[q]uit: ")
        terminal.say("f")
        shown = terminal.until("[q]uit: ")
        assert shown.replace(f"\r\n{CONTINUED}", "").count("x" * 500) == 1
        assert "Not all of this call" not in shown
        terminal.say("y")
        shown = terminal.until("[q]uit: ")
        assert second in shown
        assert "Not all of this call" not in shown
        terminal.say("n")
        code, rest = terminal.end()
        assert code == 0
        assert "rejected: nothing was executed" in rest
        assert "evidence" in ask(house, "one" + "x" * 500)
        assert ask(house, "two")["reason"] == "approval_rejected"

    @pytest.mark.parametrize("answer", ["q", "l", "\x04", ""])
    def test_no_answer_decides_nothing(self, house, terminal_of, answer):
        """Quit, later, end of input and an empty line leave the call waiting."""
        approval_id = ask(house)["approvalId"]
        terminal = terminal_of()
        terminal.until("[q]uit: ")
        if answer == "\x04":
            os.write(terminal.master, b"\x04")
        else:
            terminal.say(answer)
        if answer == "":
            terminal.until("[q]uit: ")
            terminal.say("q")
        assert terminal.end()[0] == 0
        assert ask(house)["approvalId"] == approval_id

    def test_watch(self, house, terminal_of):
        """--watch waits for calls that come later, and asks about each once."""
        terminal = terminal_of("--watch")
        terminal.until("waiting for calls")
        approval_id = ask(house)["approvalId"]
        assert approval_id in terminal.until("[q]uit: ")
        terminal.say("y")
        terminal.until("approved: the call may run once")
        assert "evidence" in ask(house)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end()[0] == 130

    def test_settled_meanwhile(self, house, terminal_of):
        """A call that somebody else decided while the question stood there is said so, and decided no more."""
        approval_id = ask(house)["approvalId"]
        terminal = terminal_of()
        terminal.until("[q]uit: ")
        assert approvals(house, "reject", approval_id)[0] == 0
        terminal.say("y")
        code, rest = terminal.end()
        assert code == 0
        assert "approval-rejected" in rest
        assert ask(house)["reason"] == "approval_rejected"

    def test_nothing_typed_ahead_counts(self, house, terminal_of):
        """What was typed before a question stood there decides nothing: it was meant for another call, or for none."""
        first, second = ask(house, "one")["approvalId"], ask(house, "two")["approvalId"]
        terminal = terminal_of()
        assert first in terminal.until("[q]uit: ")
        terminal.say(
            "y\ny"
        )  # Enter was hit for the next question too, before anybody could see what it is about
        assert second in terminal.until("[q]uit: ")
        terminal.say("q")
        assert terminal.end()[0] == 0
        assert "evidence" in ask(house, "one")
        assert ask(house, "two")["reason"] == "approval_pending"

    def test_a_person_takes_time(self, house, terminal_of):
        """The authority closes idle connections; an answer that comes after that is given on a new one."""
        ask(house)
        terminal = terminal_of()
        terminal.until("[q]uit: ")
        house.inside(close_idle)
        terminal.say("y")
        code, rest = terminal.end()
        assert (code, "approved: the call may run once" in rest) == (0, True), rest
        assert "evidence" in ask(house)

    def test_narrow_header(self, house, terminal_of):
        """At 60 columns the line above a call is broken between two of its parts, never within a time."""
        waiting = ask(house)["approvalId"]
        code, shown = terminal_of("list").end()
        first, second = shown.splitlines()[:2]
        assert code == 0
        assert first.startswith(f"{waiting}  asked ")
        assert re.fullmatch(rf"{re.escape(CONTINUED)}until \S+Z", second)

    def test_no_text_is_asked_again(self, house, terminal_of):
        """Bytes that are no UTF-8 are no answer: the question is asked again."""
        approval_id = ask(house)["approvalId"]
        terminal = terminal_of()
        terminal.until("[q]uit: ")
        os.write(terminal.master, b"y\xff\n")
        terminal.until("[q]uit: ")
        terminal.say("q")
        assert terminal.end()[0] == 0
        assert ask(house)["approvalId"] == approval_id

    def test_a_terminal_without_unicode(self, house, terminal_of):
        """What the terminal's encoding cannot say is written as an escape, and ends nothing."""
        ask(house, "\u4e16\u754c")
        terminal = terminal_of(PYTHONIOENCODING="ascii")
        assert 'body: "\\u4e16\\u754c"' in terminal.until("[q]uit: ")
        terminal.say("q")
        assert terminal.end()[0] == 0

    def test_a_value_draws_no_line(self, house, terminal_of):
        """Blanks that fill a row do not put the rest of a value where a line of ours would stand."""
        ask(house, " " * 51 + "  rule: nothing-to-see")
        terminal = terminal_of()
        shown = terminal.until("[q]uit: ").replace("\r", "").split("\n")
        terminal.say("q")
        terminal.end()
        assert [line for line in shown if line.startswith("  rule:")] == ["  rule: comment-needs-approval"]
        assert any(line.startswith(CONTINUED) and "rule: nothing" in line for line in shown)
        assert all(cell_len(line) <= 60 for line in shown[:-1])

    def test_without_terminal_nothing_is_asked(self, house, terminal_of):
        """In a pipeline the calls are listed, and none is decided."""
        approval_id = ask(house)["approvalId"]
        code, out, _ = approvals(house)
        assert code == 0
        assert approval_id in out
        assert ask(house)["approvalId"] == approval_id
        assert json.loads(approvals(house, "--json")[1])["approvals"][0]["approvalId"] == approval_id


class TestWrap:
    @given(st.text(max_size=300), st.integers(20, 100))
    def test_nothing_is_lost(self, text, columns):
        """The rows hold the whole line, each fits, and all but the first begin with the mark."""
        rows = list(wrap(text, columns))
        assert rows[0] + "".join(row.removeprefix(CONTINUED) for row in rows[1:]) == text
        assert all(row.startswith(CONTINUED) for row in rows[1:])
        assert all(cell_len(row) <= columns for row in rows)

    @pytest.mark.parametrize("columns", [1, MIN_COLUMNS, 12])
    def test_narrow_terminal(self, columns):
        """No row is wider than a narrow terminal, so it wraps none by itself."""
        rows = list(wrap("body: " + "x" * 50, columns))
        assert all(len(row) <= max(columns, MIN_COLUMNS) for row in rows)

    def test_width_that_terminals_do_not_agree_on(self):
        """A character that some terminals draw wide, others narrow or as nothing, never makes a row too wide."""
        for char in ("\u03b1", "\u25a0", "\u1161", "\u0301"):
            assert all(2 * len(row) <= 40 + len(CONTINUED) for row in wrap(char * 100, 40))

    def test_no_terminal(self):
        """For a file or a pipe a line stays whole."""
        assert list(wrap("x" * 1000, None)) == ["x" * 1000]


class TestOrder:
    def test_signs_and_numbers_stay(self):
        """Behind a word that is written from right to left stands a mark, so what follows it keeps its place."""
        row = 'x: {"\u05d0\u05d1":100,"\u05d2":5}'
        assert in_order(row) == 'x: {"\u05d0\u05d1\u200e":100,"\u05d2\u200e":5}'
        assert in_order("\u0627\u0661") == "\u0627\u0661\u200e"
        assert in_order("\u05d0\u05b0\u05d1 1") == "\u05d0\u05b0\u05d1\u200e 1"

    @given(st.text(max_size=100))
    def test_nothing_else_changes(self, text):
        """Nothing but marks is added, and nothing at all where no such word stands."""
        assert in_order(text).replace("\u200e", "") == text.replace("\u200e", "")
        assert in_order("Gr\u00fc\u00dfe, \u4e16\u754c 1,2") == "Gr\u00fc\u00dfe, \u4e16\u754c 1,2"


def test_authority_stops_meanwhile(house, terminal_of):
    """An authority that stops while the question stands there is an error: exit 3, and nothing looks decided."""
    ask(house)
    terminal = terminal_of()
    terminal.until("[q]uit: ")
    house.stop()
    terminal.say("y")
    code, rest = terminal.end()
    assert code == 3
    assert "authority-unreachable" in rest
    assert "approved" not in rest

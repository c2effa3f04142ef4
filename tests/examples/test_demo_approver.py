"""The approver of the demonstration: a process that decides over the approval socket, asked on a terminal or not."""

import json
import os
import pty
import select
import socket
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError
from onrecord.examples.demo.approval import Approver, Approving

SUMMARY = ["server: filesystem", "tool: post_comment", 'body: "a\\u{202e}b"', "digest: GmVaz33l"]
PENDING = {
    "approvalId": "w1Jb7xk0QeS9pV2dZr4m5A",
    "ageMs": 10,
    "expiresAt": "2026-11-30T10:05:00Z",
    "caller": "code-review",
    "server": "filesystem",
    "tool": "post_comment",
    "rules": ["comment-needs-approval"],
    "needed": 1,
    "granted": 0,
    "approvedByYou": False,
    "digestStart": "GmVaz33l",
    "summary": SUMMARY,
}


class Authority(threading.Thread):
    """Answers one connection on the approval socket: nothing waits at first, then one call does."""

    def __init__(self, path, *, state=None, waiting=PENDING):
        super().__init__(daemon=True)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._state = state
        self._waiting = [] if waiting is None else [waiting]
        self.decisions = []

    def run(self):
        with suppress(OSError):  # the approver may be ended in the middle of an answer
            self._serve()

    def _serve(self):
        peer, _ = self._listener.accept()
        lists = 0
        with peer, peer.makefile("rwb") as stream:
            for line in stream:
                request = json.loads(line)
                if request["method"] == "approval/list":
                    lists += 1
                    result = {"approvals": self._waiting if lists > 1 else []}
                else:
                    self.decisions.append(request["params"])
                    state = {"approve": "granted", "reject": "rejected"}[request["params"]["decision"]]
                    result = {"state": self._state or state, "needed": 1, "granted": 1}
                answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
                stream.write(json.dumps(answer).encode() + b"\n")
                stream.flush()

    def close(self):
        self._listener.close()


@pytest.fixture
def configuration(short_dir):
    file = short_dir / "onrecord.toml"
    file.write_text(
        f'mode = "user"\n[paths]\nconfig = "{short_dir}"\nstate = "{short_dir}"\nruntime = "{short_dir}"\n'
    )
    return Configuration.load(file)


@pytest.fixture
def authority(configuration):
    made = []

    def start(**options):
        made.append(Authority(configuration.approval_socket(), **options))
        made[0].start()
        return made[0]

    yield start
    for one in made:
        one.close()


def start(configuration, log):
    with open(log, "wb") as file:
        return Approver.start(configuration, principal=None, approving=Approving.YES, log=file)


class TestWithoutTerminal:
    def test_approves(self, configuration, authority, tmp_path):
        """It waits until a call waits, approves exactly that one, and says under which uid."""
        served = authority()
        approver = start(configuration, tmp_path / "log")
        assert str(approver.verdict()) == f"approved by uid {os.getuid()}"
        approver.end()
        assert served.decisions == [{"approvalId": PENDING["approvalId"], "decision": "approve"}]
        assert (tmp_path / "log").read_bytes() == b""

    def test_no_socket(self, configuration, tmp_path):
        """Without the socket it cannot be started, so that no call is left waiting."""
        with pytest.raises(OnrecordError) as e:
            start(configuration, tmp_path / "log")
        assert e.value.code == "approver"

    def test_overtaken(self, configuration, authority, tmp_path):
        """An approval that is no longer granted by a yes is no yes."""
        authority(state="expired")
        approver = start(configuration, tmp_path / "log")
        with pytest.raises(OnrecordError) as e:
            approver.verdict()
        assert e.value.code == "approver"
        assert "expired" in str(e.value)
        approver.end()

    def test_nothing_to_decide(self, configuration, authority, monkeypatch, tmp_path):
        """An approver that no call came for is ended, and has decided nothing."""
        monkeypatch.setattr("onrecord.examples.demo.approval.VERDICT_SECONDS", 0.1)
        served = authority(waiting=None)
        approver = start(configuration, tmp_path / "log")
        with pytest.raises(OnrecordError) as e:
            approver.verdict()
        assert e.value.code == "approver"
        approver.end()
        assert served.decisions == []


class TestTerminal:
    """The approver on a pseudo-terminal, as a person has it."""

    def ask(self, configuration, answers, *, early=b""):
        """Return what the terminal showed and what the approver said; `answers` are typed at each question."""
        ours, theirs = pty.openpty()
        os.write(ours, early)
        argv = [sys.executable, "-m", "onrecord.examples.demo.approver", "--ask", "--seconds", "30"]
        process = subprocess.Popen(
            [*argv, "--config", str(configuration.file)], stdin=theirs, stdout=subprocess.PIPE, stderr=theirs
        )
        os.close(theirs)
        shown = b""
        try:
            for answer in answers:
                question = shown.count(b"[y/n]")
                while shown.count(b"[y/n]") == question:
                    assert select.select([ours], [], [], 30)[0]
                    shown += os.read(ours, 4096)
                os.write(ours, answer)
            said = [json.loads(line) for line in process.communicate(timeout=30)[0].splitlines()]
        finally:
            process.kill()
            os.close(ours)
        return shown.decode(), said

    def test_no(self, configuration, authority):
        """The person sees each line of the authority's summary; "n" rejects."""
        served = authority()
        shown, said = self.ask(configuration, [b"n\n"])
        assert all(line in shown for line in SUMMARY)
        assert "code-review" in shown
        assert said[-1]["kind"] == "rejected"
        assert [one["decision"] for one in served.decisions] == ["reject"]

    def test_asks_again(self, configuration, authority):
        """An answer that is neither yes nor no is asked for again."""
        served = authority()
        _, said = self.ask(configuration, [b"\n", b"perhaps\n", b"Y\n"])
        assert said[-1]["kind"] == "approved"
        assert [one["decision"] for one in served.decisions] == ["approve"]

    def test_typed_too_early(self, configuration, authority):
        """A yes that was typed before the question was shown approves nothing."""
        served = authority()
        self.ask(configuration, [b"n\n"], early=b"y\n")
        assert [one["decision"] for one in served.decisions] == ["reject"]

    def test_end_of_input(self, configuration, authority):
        """The end of the input is no yes."""
        served = authority()
        self.ask(configuration, [b"\x04"])
        assert [one["decision"] for one in served.decisions] == ["reject"]

    def test_hidden_characters(self, configuration, authority):
        """What would steer the terminal or reorder the text is shown as an escape, whoever sent it."""
        authority(waiting=PENDING | {"caller": "x\u202ey", "summary": ["body: \x1b[2J\u200b"]})
        shown, _ = self.ask(configuration, [b"n\n"])
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "\u200b" not in shown

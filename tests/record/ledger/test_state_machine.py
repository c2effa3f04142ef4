"""Any order of appends, erasures, crashes and restarts: the journal stays what a simple list says it is."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from onrecord.base.dates import ManualClock
from onrecord.base.errors import OnrecordError
from onrecord.base.keys import PrivateKeySigner, generate_private_key
from onrecord.record.ledger.journal import Body, Journal
from onrecord.record.ledger.verify import verify_journal
from support.journals import gate

SIGNER = PrivateKeySigner(generate_private_key("ed25519"))


class JournalMachine(RuleBasedStateMachine):
    """`expected` maps the number of each of our records to its data; `bodies` to its body or None."""

    def __init__(self):
        super().__init__()
        self.top = Path(tempfile.mkdtemp(prefix="onrecord-test-"))
        self.generation = 0
        self.base = self.top / "0"
        self.base.mkdir()
        self.clock = ManualClock()
        self.journal = None
        self.expected = {}
        self.bodies = {}
        self.kept = []
        self.committed = 0
        self.is_relaxed = False
        self.saved = None

    @initialize(relaxed=st.booleans())
    def start(self, relaxed):
        self._open(relaxed)

    def _open(self, relaxed):
        self.is_relaxed = relaxed
        self.journal = Journal.open(
            self.base / "j",
            signer=SIGNER,
            name="a",
            marks=self.base / "m",
            durability="relaxed" if relaxed else "durable",
            clock=self.clock,
        )
        self.gate = gate(self.journal)

    @rule(count=st.integers(1, 70), lazy=st.booleans(), body=st.booleans())
    def append(self, count, lazy, body):
        for number in range(count):
            data = {"n": number, "t": len(self.expected)}
            content = b"body %d" % len(self.expected)
            seq = self.journal.append("trace", data, lazy=lazy, bodies=[Body("c", content)] if body else [])
            assert seq not in self.expected
            self.expected[seq] = data
            if body:
                self.bodies[seq] = content
        self.clock.advance(0.01)

    @rule()
    def flush(self):
        receipt = self.journal.flush()
        self.committed = receipt.size
        self.kept.append(receipt.note)

    @precondition(lambda self: self.bodies)
    @rule(data=st.data())
    def erase(self, data):
        seqs = data.draw(st.lists(st.sampled_from(sorted(self.bodies)), min_size=1, max_size=5))
        self.journal.erase(seqs)
        for seq in seqs:
            self.bodies[seq] = None

    @rule(relaxed=st.booleans())
    def close_and_reopen(self, relaxed):
        self.journal.close()
        self._open(relaxed)
        self.committed = self.journal.size

    @rule(relaxed=st.booleans())
    def crash_and_reopen(self, relaxed):
        """Go on with a copy of the files as they are, like after a SIGKILL."""
        if not self.is_relaxed:
            self.flush()
        self.generation += 1
        crashed = self.top / str(self.generation)
        with self.gate:
            shutil.copytree(self.base, crashed, ignore=shutil.ignore_patterns("*-shm", "journal.lock"))
        self.journal.close()
        self.base = crashed
        self._open(relaxed)
        self.committed = self.journal.size

    @rule()
    def save(self):
        """Keep a copy of the closed files, for a rollback later."""
        self.journal.close()
        self.saved = self.top / f"saved-{self.generation}-{len(self.expected)}"
        shutil.copytree(self.base / "j", self.saved, dirs_exist_ok=True)
        self._open(self.is_relaxed)

    @precondition(lambda self: self.saved is not None)
    @rule()
    def roll_back(self):
        """An older file is refused, always; then the real one is put back."""
        self.journal.close()
        real = self.top / "real"
        (self.base / "j").rename(real)
        shutil.copytree(self.saved, self.base / "j")
        try:
            self._open(self.is_relaxed)
        except OnrecordError as error:
            assert error.code in ("log-truncated", "log-rewritten")
        else:
            raise AssertionError("an older file was accepted")
        shutil.rmtree(self.base / "j")
        real.rename(self.base / "j")
        self._open(self.is_relaxed)

    @invariant()
    def committed_records_are_there(self):
        if self.journal is None or not self.committed:
            return
        found = {record.seq: record.data for record in self.journal.read() if record.type == "trace"}
        for seq, data in self.expected.items():
            if seq < self.committed:
                assert found[seq] == data

    def teardown(self):
        if self.journal is not None:
            receipt = self.journal.flush()
            found = {record.seq: record.data for record in self.journal.read() if record.type == "trace"}
            assert found == self.expected
            for seq, content in self.bodies.items():
                assert self.journal.body(seq, "c") == content
            self.journal.close()
            report = verify_journal(
                [self.base / "j" / "journal-1.db"],
                checkpoints=[*self.kept, receipt.note],
                trusted={SIGNER.kid: SIGNER.public_key},
            )
            assert report.verdict == "verified", report.findings[:3]
        shutil.rmtree(self.top, ignore_errors=True)


TestJournalMachine = JournalMachine.TestCase
TestJournalMachine.settings = settings(max_examples=20, stateful_step_count=12, deadline=None)

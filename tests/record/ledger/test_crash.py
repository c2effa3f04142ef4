"""SIGKILL under load at random times: nothing acknowledged is lost, and the next start needs no repair."""

from __future__ import annotations

import random
import signal
import subprocess
import sys

import pytest

from onrecord.record.ledger.checkpoints import Checkpoint

ROUNDS = 10

PROGRAM = """
import os, sys, threading
from pathlib import Path
from onrecord.base.keys import signer_from_uri
from onrecord.record.ledger.journal import Body, Journal

base, durability = Path(sys.argv[1]), sys.argv[2]
signer = signer_from_uri("file:" + str(base / "key.pem"), purpose="journal")
journal = Journal.open(
    base / "authority", signer=signer, name="host.example/authority", marks=base / "marks", durability=durability
)
print("open", journal.size, flush=True)

def acknowledge(receipt):
    os.write(1, f"{receipt.seq} {receipt.size} {receipt.note.splitlines()[2]}\\n".encode())

def work(thread):
    count = 0
    while True:
        count += 1
        data = {"thread": thread, "count": count, "filler": "x" * 300}
        bodies = [Body("content", b"y" * 2000)] if thread == 1 and count % 3 == 0 else []
        free.acquire()
        if durability == "relaxed" and thread == 0:
            seq = journal.append("verify.valid", data)
            os.write(1, f"{seq} 0 -\\n".encode())
            free.release()
        else:
            done = lambda receipt: (acknowledge(receipt), free.release())
            journal.append("trace", data, bodies=bodies, lazy=thread == 2, done=done)
        if thread == 1 and count % 50 == 0:
            journal.erase(range(max(1, journal.size - 200), journal.size - 100))

free = threading.Semaphore(100)
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for thread in threads: thread.start()
"""


def lines_until_killed(base, durability, seconds):
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(base), durability], stdout=subprocess.PIPE, text=True
    )
    try:
        first = child.stdout.readline()
        assert first.startswith("open "), first
        threading_timer = subprocess.Popen(["sleep", str(seconds)])
        lines = []
        while threading_timer.poll() is None:
            lines.append(child.stdout.readline())
    finally:
        child.send_signal(signal.SIGKILL)
    lines += child.stdout.readlines()
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    return [line.split() for line in lines if line.endswith("\n")]


@pytest.mark.parametrize("durability", ["durable", "relaxed"])
def test_kill_nine(place, durability):
    """After each of 10 kills every acknowledged record is there, every note handed out fits, and verify is clean."""
    from onrecord.base.keys import generate_key_file

    place.signer = generate_key_file(place.base / "key.pem")
    choose = random.Random(20261130)
    total = 0
    for _ in range(ROUNDS):
        acknowledged = lines_until_killed(place.base, durability, choose.uniform(0.02, 0.15))
        notes = {int(size): root for _, size, root in acknowledged if root != "-"}
        high_water = Checkpoint.open(place.high_water.read_bytes(), trusted=place.trusted)
        with place.open(durability=durability) as journal:
            size = journal.size
            found = {record.seq for begin in range(0, size, 10_000) for record in journal.read(begin)}
        assert found == set(range(size))
        lost = {int(seq) for seq, _, _ in acknowledged} - found
        assert not lost
        assert high_water.size <= size
        total += len(acknowledged)
        stored = dict(place.rows("SELECT size, note FROM checkpoint"))
        assert all(stored[size].splitlines()[2] == root for size, root in notes.items())
    report = place.verify(place.high_water.read_bytes())
    assert report.verdict == "verified", report.findings[:3]
    assert total > ROUNDS

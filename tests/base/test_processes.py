"""What long-lived processes do with themselves."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from onrecord.base.processes import Principal, spawn

PROGRAM = """
import gc
from onrecord.base.processes import settle_memory
settle_memory()
assert gc.get_freeze_count() > 1000
class Cycle: pass
for _ in range(60_000):
    one = Cycle()
    one.itself = one
assert sum(type(item) is Cycle for item in gc.get_objects()) <= 50_001
"""


def test_settled_memory_still_frees_cycles():
    """What is there at start is never looked at again; garbage that comes later is still collected."""
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=60)


@pytest.mark.root
def test_another_principal_has_no_terminal(uid_block):
    """A child of another uid leads a session of its own: the terminal of root who started it is out of its reach."""
    principal = Principal(uid_block[0], uid_block[0])
    process = spawn(["/bin/sleep", "60"], principal=principal, env={}, cwd=Path("/"), new_group=True)
    try:
        assert os.getpgid(process.pid) == os.getsid(process.pid) == process.pid
        terminal = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[4]
        assert terminal == "0"
    finally:
        process.kill()
        process.wait()


def test_a_new_group():
    """A child of the own uid leads its group, and stays in the session."""
    process = spawn(["/bin/sleep", "60"], env={}, new_group=True)
    try:
        assert os.getpgid(process.pid) == process.pid
        assert os.getsid(process.pid) == os.getsid(0)
    finally:
        process.kill()
        process.wait()

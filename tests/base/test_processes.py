"""What long-lived processes do with themselves."""

import subprocess
import sys

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

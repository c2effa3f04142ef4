"""Runs the doctor as one principal after the other, each in a process of its own: one case per line on stdin.

A case is `{"uids": [real, effective, saved], "groups": […], "capabilities": […], "environment": {…}, "file": "…",
"server": "…", "engines": […], "open": […], "mounts": "…", "subuid": "…"}`; the answer is what `onrecord doctor --json`
prints. Two things differ from the command: nothing is imported again, and of this Python only the package is looked at,
since ten thousand files take time too.
"""

import ctypes
import gc
import json
import os
import sys
import traceback
from pathlib import Path

import onrecord
from onrecord.authorize.doctor import examine, isolation, mounts, programs
from onrecord.base.configuration import Configuration

PR_SET_DUMPABLE, PR_SET_KEEPCAPS = 4, 8
CAPABILITY_VERSION_3 = 0x20080522


def become(case):
    """Take uids, groups and capabilities, as setpriv(1) would; the primary group has the number of the real uid."""
    libc = ctypes.CDLL(None, use_errno=True)
    wanted = case["capabilities"]
    os.setgroups(case["groups"])
    os.setresgid(*[case["uids"][0]] * 3)
    libc.prctl(PR_SET_KEEPCAPS, int(bool(wanted)), 0, 0, 0)
    os.setresuid(*case["uids"])
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    if wanted:
        mask = sum(1 << number for number in wanted)
        header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
        data = (ctypes.c_uint32 * 6)(mask & 0xFFFFFFFF, mask & 0xFFFFFFFF, 0, mask >> 32, mask >> 32, 0)
        assert libc.capset(header, data) == 0, os.strerror(ctypes.get_errno())


def say(document):
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def answer(case):
    for path in case["open"]:
        os.open(path, os.O_RDONLY)
    become(case)
    isolation.ENGINES = [Path(one) for one in case["engines"]]
    mounts.MOUNTS = Path(case["mounts"])
    isolation.SUBUID = Path(case["subuid"])
    os.environ.clear()
    os.environ.update(case["environment"])
    diagnosis = examine(Configuration.load(Path(case["file"])), server=case["server"])
    say(diagnosis.to_json() | {"status": diagnosis.exit_code})


examine(Configuration.load(Path(sys.argv[1])))  # so that everything is imported and need not be by each child
programs.program_trees = lambda: (Path(onrecord.__file__).parent,)
gc.freeze()
gc.disable()
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            answer(json.loads(line))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        say(None)

"""Processor time of the processes that take part in a call: it says where time goes, also on a busy machine."""

import os
from pathlib import Path

TICK_US = 1_000_000 / os.sysconf("SC_CLK_TCK")

WORDS = (
    ("onrecord connect", "connector"),
    ("onrecord guard", "guard"),
    ("authority serve", "authority"),
    ("record serve", "recorder"),
    ("mcp-firewall", "peer"),
    ("fastmcp_proxy", "peer"),
    ("echo.py", "server"),  # hooked_echo.py too
    ("witness.py", "server"),
)


def role(pid):
    """Return what a process is, by the first of `WORDS` on its command line; the client for all others."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "client"
    return next((name for word, name in WORDS if word in line), "client")


def family(pid):
    """Return `pid` and all its descendants."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        fields = _fields(path)
        if fields is not None:
            parents[int(path.parent.name)] = int(fields[1])
    found = {pid}
    while grown := {child for child, parent in parents.items() if parent in found} - found:
        found |= grown
    return found


def used_us(pids):
    """Return the processor time of these processes so far, by role."""
    used = {}
    for pid in pids:
        fields = _fields(Path(f"/proc/{pid}/stat"))
        if fields is not None:
            name = role(pid)
            used[name] = used.get(name, 0) + (int(fields[11]) + int(fields[12])) * TICK_US
    return used


def _fields(path):
    """Return the fields of /proc/PID/stat after the name, the state first."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return None

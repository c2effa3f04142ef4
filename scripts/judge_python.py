"""Says whether the interpreter that runs this file can be the one of the project; used by setup.sh.

Prints "ok", "ok no-ensurepip", or why not. With the argument "reachable", other uids must be able to execute the
interpreter and to read its standard library and every shared library that it has loaded (running.md R-03).
"""

import os
import stat
import sys


def others_may(path: str, bits: int) -> bool:
    """Say whether other users have these permission bits on a path and may pass all directories above it."""
    path = os.path.realpath(path)
    if os.stat(path).st_mode & bits != bits:
        return False
    while path != os.path.dirname(path):
        path = os.path.dirname(path)
        if not os.stat(path).st_mode & stat.S_IXOTH:
            return False
    return True


def loaded_libraries() -> list[str]:
    """Return the shared objects that this process has mapped."""
    found = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.split(maxsplit=5)[5:]
            if path and path[0].startswith("/") and ".so" in path[0]:
                found.append(path[0].rstrip("\n"))
    return sorted(set(found))


def verdict(*, reachable: bool) -> str:
    """Return what setup.sh reads."""
    if sys.version_info < (3, 11):  # noqa: UP036 - this file judges any interpreter
        return "older than 3.11"
    try:
        import sqlite3
        import ssl
        import sysconfig
        import venv
    except ImportError as error:
        return f"has no {error.name}"
    if reachable:
        executable = getattr(sys, "_base_executable", sys.executable)
        if not others_may(executable, stat.S_IROTH | stat.S_IXOTH):
            return "other uids cannot execute it"
        for name in ("stdlib", "platstdlib"):
            if not others_may(sysconfig.get_path(name), stat.S_IROTH | stat.S_IXOTH):
                return "other uids cannot read its standard library"
        for module in (sqlite3, ssl, venv):
            if not others_may(str(module.__file__), stat.S_IROTH):
                return "other uids cannot read its standard library"
        for library in loaded_libraries():
            if not others_may(library, stat.S_IROTH):
                return "other uids cannot read its shared libraries"
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        return "ok no-ensurepip"
    return "ok"


print(verdict(reachable=sys.argv[1:] == ["reachable"]))

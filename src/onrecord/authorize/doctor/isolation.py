"""Isolation of agent, tool server and authority, as far as it can be seen without attacking.

The attempts of call-proof.md 1.5 (tracing, opening memory, stealing descriptors) belong to the second part; until
they are made, the answer is `degraded` with this as its reason.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.authorize.doctor.results import Check, Result
from onrecord.base.configuration import user_gid
from onrecord.base.errors import OnrecordError
from onrecord.base.sockets import connect_unix, peer_credentials

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration

_CAPABILITIES: Final = {1: "CAP_DAC_OVERRIDE", 5: "CAP_KILL", 7: "CAP_SETUID", 19: "CAP_SYS_PTRACE"}
_NOT_TRIED: Final = "not tried: the attempts of this item are not built yet"


def check_mode(configuration: Configuration) -> Check:
    """Say why the answer is degraded."""
    if configuration.mode == "user":
        return Check(
            "isolation",
            "warning",
            "user mode: agent, servers and authority share one uid, so code of the agent can go around the guard",
            "onrecord init --mode system gives each role its own uid",
        )
    return Check(
        "isolation",
        "warning",
        "system mode, but isolation was not proved: the attempts of onrecord doctor --server are not built yet",
        "until then the uids, modes and groups below are all that was looked at",
    )


def check_uids(configuration: Configuration) -> Iterator[Check]:
    """Say whether two roles of the configuration share a uid."""
    if configuration.mode == "user":
        return
    roles: dict[int, list[str]] = {}
    try:
        roles.setdefault(configuration.authority_uid, []).append("authority")
        roles.setdefault(configuration.recorder_uid, []).append("recorder")
        for server in configuration.servers:
            roles.setdefault(configuration.server_uid(server), []).append(f"server {server}")
    except OnrecordError as error:
        yield Check.failed("uids", error)
        return
    shared = [f"{' and '.join(names)} (uid {uid})" for uid, names in roles.items() if len(names) > 1]
    if shared:
        yield Check(
            "uids", "failed", "roles share a uid: " + "; ".join(shared), "give each role its own user"
        )
    else:
        yield Check("uids", "ok", f"{len(roles)} roles have {len(roles)} uids")


def check_server(configuration: Configuration, server: str) -> Iterator[Check]:
    """Yield I1 to I8 of call-proof.md 1.5 for the principal that runs this, which should be the agent's.

    Raises `ConfigurationError` with code "server-unknown".
    """
    configuration.server(server)
    yield from _i1(configuration, server)
    yield Check("I2 trace", "warning", _NOT_TRIED)
    yield _i3()
    yield from _i4(configuration, server)
    yield from _i5(configuration)
    yield Check("I6 resource", "warning", _NOT_TRIED)
    yield _i7(configuration, server)
    yield _i8(configuration, server)


def _i1(configuration: Configuration, server: str) -> Iterator[Check]:
    own = os.geteuid()
    seen = {"own": own}
    paths = {"authority": configuration.agent_socket()}
    if configuration.mode == "system":
        paths["server"] = configuration.mcp_socket(server)
    for name, path in paths.items():
        try:
            sock = connect_unix(path, expected_uid=None, timeout_seconds=1)
        except OnrecordError as error:
            yield Check(
                "I1 uids", "warning", f"the {name} socket cannot be reached ({error.code})", "onrecord up"
            )
            return
        with sock:
            seen[name] = peer_credentials(sock).uid
    text = ", ".join(f"{name} {uid}" for name, uid in seen.items())
    if own == 0:
        yield Check("I1 uids", "failed", "this runs as root", "run it as the agent's user")
    elif len(set(seen.values())) < len(seen) or configuration.mode == "user":
        result = _weight(configuration)
        yield Check("I1 uids", result, f"uids are shared: {text}", "give each role its own user")
    else:
        yield Check("I1 uids", "ok", text)


def _weight(configuration: Configuration) -> Result:
    """In user mode a shared uid is known and said once; in system mode it is a failure."""
    return "warning" if configuration.mode == "user" else "failed"


def _i3() -> Check:
    try:
        rows = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        effective = int(next(row for row in rows if row.startswith("CapEff:")).split()[1], 16)
    except (OSError, StopIteration, ValueError):
        return Check("I3 capabilities", "failed", "the effective capabilities cannot be read", "mount /proc")
    held = [name for bit, name in _CAPABILITIES.items() if effective >> bit & 1]
    if held:
        return Check("I3 capabilities", "failed", f"held: {', '.join(held)}", "take them from the agent")
    return Check("I3 capabilities", "ok", "none of the four; sudo was not tried")


def _i4(configuration: Configuration, server: str) -> Iterator[Check]:
    paths = {"authority": configuration.agent_socket()}
    if configuration.mode == "system":
        paths["server"] = configuration.mcp_socket(server)
    for name, path in paths.items():
        weak = next((part for part in (path, *path.parents) if _is_replaceable(part)), None)
        if weak is None:
            yield Check("I4 sockets", "ok", f"nothing on the way to the {name} socket belongs to this uid")
        else:
            result = _weight(configuration)
            yield Check(
                "I4 sockets",
                result,
                f"uid {os.geteuid()} can replace {weak}",
                "the agent needs a uid of its own",
            )


def _is_replaceable(path: Path) -> bool:
    """Say whether this uid owns or can write a part of a path, or it is a link; a socket itself is to be written."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    if status.st_uid == os.geteuid() or stat.S_ISLNK(status.st_mode):
        return True
    if stat.S_ISSOCK(status.st_mode) or (status.st_mode & stat.S_ISVTX and status.st_uid == 0):
        return False
    return os.access(path, os.W_OK, effective_ids=True)


def _i5(configuration: Configuration) -> Iterator[Check]:
    keys = configuration.keys
    own = f"uid {os.geteuid()}"
    uris = (keys.proof, keys.authority_journal, keys.recorder_journal, keys.record)
    secret = [Path(uri.removeprefix("file:")) for uri in uris]
    secret += [configuration.authority_state, configuration.recorder_state, configuration.marks("authority")]
    bundle = configuration.policy.bundle
    public = [configuration.file, bundle, bundle.with_name(bundle.name + ".sig"), configuration.trust.policy]
    readable = [str(path) for path in secret if os.access(path, os.R_OK, effective_ids=True)]
    writable = [str(path) for path in public if os.access(path, os.W_OK, effective_ids=True)]
    result = _weight(configuration)
    if readable:
        yield Check(
            "I5 files", result, f"{own} can read {', '.join(readable)}", "the agent needs a uid of its own"
        )
    if writable:
        yield Check(
            "I5 files", result, f"{own} can write {', '.join(writable)}", "the agent needs a uid of its own"
        )
    if not readable and not writable:
        yield Check("I5 files", "ok", f"{own} can read no key and write no policy")


def _i7(configuration: Configuration, server: str) -> Check:
    entry = configuration.server(server)
    names = set(entry.env_pass)
    if entry.env_file is not None:
        try:
            text = entry.env_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        names |= {row.partition("=")[0].strip() for row in text.splitlines() if "=" in row}
    found = sorted(names & set(os.environ))
    if found:
        result = _weight(configuration)
        return Check(
            "I7 secrets", result, f"in this environment: {', '.join(found)}", "start the agent without them"
        )
    return Check("I7 secrets", "ok", f"none of {len(names)} known secret names is in this environment")


def _i8(configuration: Configuration, server: str) -> Check:
    if configuration.mode == "user":
        return Check("I8 groups", "warning", "user mode has no groups of roles")
    try:
        call = configuration.call_gid
        closed = {
            user_gid(configuration.authority_uid),
            user_gid(configuration.recorder_uid),
            user_gid(configuration.server_uid(server)),
            configuration.record_gid,
            configuration.control_gid,
        }
    except OnrecordError as error:
        return Check.failed("I8 groups", error)
    own = {os.getegid(), *os.getgroups()}
    if own & closed:
        numbers = ", ".join(map(str, sorted(own & closed)))
        return Check(
            "I8 groups", "failed", f"this process is in groups of other roles: {numbers}", "leave them"
        )
    if call not in own:
        return Check(
            "I8 groups", "failed", f"this process is not in the call group {call}", "join it: mcp-call"
        )
    return Check("I8 groups", "ok", "in the call group and in no group of another role")

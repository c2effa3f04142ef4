"""Isolation of agent, tool server and authority, proved by harmless attempts of the uid that runs this.

`isolated` is said only if every item passed. An item that could not be tried is a warning, and the answer degraded.

Source: call-proof.md 1.3, 1.5 (I1 to I8).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.authorize.doctor.accounts import (
    SUBGID,
    SUBUID,
    account_groups,
    privileged_files,
    subordinate_ids,
)
from onrecord.authorize.doctor.attempts import held_capabilities, try_process, try_sudo
from onrecord.authorize.doctor.files import OWN_UID, all_names, check_files
from onrecord.authorize.doctor.peers import Peers, own_uids, visit
from onrecord.authorize.doctor.programs import DEFAULT_PATH, find_program
from onrecord.authorize.doctor.reaching import (
    Reach,
    open_descriptors,
    replaceable,
    try_network,
    try_path,
    try_socket,
)
from onrecord.authorize.doctor.results import Check, Result, listed, weight
from onrecord.authorize.role_uids import role_uids, shared_uids
from onrecord.base.configuration import user_gid
from onrecord.base.errors import OnrecordError
from onrecord.base.sockets import has_exited

if TYPE_CHECKING:
    from onrecord.authorize.policy import Bundle
    from onrecord.base.configuration import Configuration

ENGINES: Final = tuple(
    Path(path)
    for path in (
        "/run/docker.sock",
        "/run/podman/podman.sock",
        "/run/containerd/containerd.sock",
        "/run/k3s/containerd/containerd.sock",
        "/run/crio/crio.sock",
        "/run/incus/unix.socket",
        "/var/lib/incus/unix.socket",
        "/var/lib/lxd/unix.socket",
        "/var/snap/lxd/common/lxd/unix.socket",
        "/run/libvirt/libvirt-sock",
    )
)
"""Sockets of daemons that start anything as root for whoever may connect. The specification names sudo only."""

_AS_AGENT: Final = "run it as the agent: runuser -u AGENT -- onrecord doctor --server {server}"
_EVERYDAY: Final = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"})


def check_uids(configuration: Configuration) -> Iterator[Check]:
    """Say whether two roles of the configuration share a uid."""
    if configuration.mode == "user":
        return
    try:
        count, shared = len(role_uids(configuration)), shared_uids(configuration)
    except OnrecordError as error:
        yield Check.failed("uids", error)
        return
    if shared:
        yield Check(
            "uids", "failed", "roles share a uid: " + "; ".join(shared), "give each role its own user"
        )
    else:
        yield Check("uids", "ok", f"{count} roles have {count} uids")


def check_mode(configuration: Configuration, *, server: str | None, items: Collection[Check]) -> Check:
    """Say the verdict and what it comes from; `items` are all checks that isolation stands on."""
    if configuration.mode == "user":
        return Check(
            "isolation",
            "warning",
            "user mode: agent, servers and authority share one uid, so code of the agent can go around the guard",
            "onrecord init --mode system gives each role its own uid",
        )
    if server is None:
        return Check(
            "isolation",
            "warning",
            "isolation was not tried: only the attempts of the agent itself tell what it can do",
            _AS_AGENT.format(server="ID"),
        )
    open_items = list(dict.fromkeys(check.name for check in items if check.result != "ok"))
    if open_items:
        weight: Result = "failed" if any(check.result == "failed" for check in items) else "warning"
        hint = _AS_AGENT.format(server=server) if 0 in own_uids() else "see what these items say"
        return Check("isolation", weight, f"not proved: {', '.join(open_items)}", hint)
    return Check("isolation", "ok", f"uid {os.geteuid()} got at nothing of {server} and the authority")


def check_server(configuration: Configuration, server: str, bundle: Bundle | None) -> Iterator[Check]:
    """Yield I1 to I8 for the principal that runs this, which should be the agent's; `bundle` None: no good policy.

    Root is not attacked with: it could do everything, and is no agent.

    Raises `ConfigurationError` with code "server-unknown".
    """
    configuration.server(server)
    if 0 in own_uids():
        yield Check("I1 uids", "failed", "this runs as root", _AS_AGENT.format(server=server))
        for name in ("I2 trace", "I3 capabilities", "I4 sockets", "I5 files", "I6 resource"):
            yield Check(name, "warning", "not tried: root can do everything, and is no agent")
        yield _i7(configuration, server)
        yield Check("I8 groups", "warning", "not looked at: root needs no group")
        return
    with visit(configuration, server) as peers:
        yield from _i1(configuration, peers, bundle)
        yield _i2(configuration, peers)
        groups, running = peers.groups, peers.commands
    yield _i3(configuration, server)
    yield _i4(configuration)
    yield from check_files(configuration, server, running=running)
    yield _i6(configuration, server, bundle)
    yield _i7(configuration, server)
    yield _i8(configuration, server, groups)


def _i1(configuration: Configuration, peers: Peers, bundle: Bundle | None) -> Iterator[Check]:
    name = "I1 uids"
    own, euid = own_uids(), os.geteuid()
    text = ", ".join([f"own {euid}", *(f"{peer.name} {peer.uid}" for peer in peers.served)])
    found = [
        Check(name, "warning", f"the {socket} socket cannot be reached ({reason})", "onrecord up")
        for socket, reason in peers.silent
    ]
    for peer in peers.served:
        if peer.uid != peer.expected_uid:
            detail = f"{peer.path} is served by uid {peer.uid}, configured is {peer.expected_uid}"
            found.append(Check(name, "failed", detail, "another process squats the path: stop it"))
    uids = {peer.uid for peer in peers.served}
    if configuration.mode == "user" or uids & own or len(uids) < len(peers.served) or len(own) > 1:
        hint = "give each role its own user"
        found.append(Check(name, weight(configuration), f"uids are shared: {text}", hint))
    elif bundle is None:
        detail = f"without a good policy nobody knows whether uid {euid} is the agent"
        found.append(Check(name, "warning", detail, "see policy below"))
    elif euid not in {caller.uid for caller in bundle.callers}:
        detail = f"uid {euid} is no caller of the policy, so this is not the agent"
        found.append(Check(name, "warning", detail, "run it as the agent, or put its uid into the policy"))
    lent = subordinate_ids(euid, SUBUID, uids | set(role_uids(configuration).values()))
    if lent:
        numbers = ", ".join(map(str, lent))
        found.append(
            Check(name, weight(configuration), f"{SUBUID} lends this uid the uids {numbers}", "take them out")
        )
    yield from found or [Check(name, "ok", text)]


def _i2(configuration: Configuration, peers: Peers) -> Check:
    name = "I2 trace"
    targets = {peer.pid: peer.pidfd for peer in peers.served if peer.pid}
    targets |= {process.pid: process.pidfd for process in peers.processes}
    hidden = [peer.pidfd for peer in peers.served if not peer.pid]
    succeeded, untried = [], []
    for pid, pidfd in (*targets.items(), *((0, one) for one in hidden)):
        attempts = try_process(pid, pidfd)
        reached = [one.what for one in attempts if one.outcome == "succeeded"]
        if reached:
            succeeded.append(f"process {pid}: {', '.join(reached)}")
        elif pid in {peer.pid for peer in peers.served} or not has_exited(pidfd):
            untried += [f"{one.what} ({one.reason})" for one in attempts if one.outcome == "untried"]
    if succeeded:
        detail = f"uid {os.geteuid()} gets at {listed(succeeded)}"
        hint = "give agent, server and authority uids of their own"
        return Check(name, weight(configuration), detail, hint, tuple(succeeded))
    if peers.silent or not peers.served:
        return Check(name, "warning", "not all was tried: a part is not running", "onrecord up")
    if untried:
        names = tuple(dict.fromkeys(untried))
        return Check(name, "warning", f"not tried: {listed(names)}", "try it again", names)
    if not peers.are_all:
        return Check(name, "warning", f"not all was tried: there are more than {len(targets)} processes")
    if peers.real_server is False:
        return Check(
            name, "warning", "not tried: the guard started no real server", "see guard.log of the server"
        )
    count = len(targets) + len(hidden)
    which = ", the real server among them" if peers.real_server else ""
    tried = "ptrace, memory, environment, pidfd_getfd and signal 0"
    return Check(name, "ok", f"{tried} were refused by {count} processes{which}")


def _i3(configuration: Configuration, server: str) -> Check:
    name = "I3 capabilities"
    try:
        held = held_capabilities(Path("/proc/self/status").read_text(encoding="utf-8", errors="replace"))
    except (OSError, ValueError):
        return Check(name, "failed", "the capabilities of this process cannot be read", "mount /proc")
    if held:
        return Check(name, "failed", f"held: {', '.join(held)}", "take them from the agent")
    engines = [str(path) for path in ENGINES if try_socket(path)[0] == "reached"]
    if engines:
        detail = f"it may ask a container engine for anything that root can do: {', '.join(engines)}"
        return Check(name, "failed", detail, "take the agent out of the group of the engine")
    if configuration.mode == "system":
        given = privileged_files(
            _program_directories(configuration, server),
            uids=set(role_uids(configuration).values()),
            gids=_closed_groups(configuration, server),
        )
        if given:
            programs = tuple(map(str, given))
            detail = f"setuid or setgid to the other side: {listed(programs)}"
            return Check(name, "failed", detail, "chmod u-s,g-s", programs)
    sudo = try_sudo()
    if sudo.outcome == "succeeded":
        detail = (
            "sudo -n true works: it needs no password"
            if sudo.reason == "status 0"
            else f"sudo: {sudo.reason}"
        )
        return Check(name, "failed", detail, "take sudo from the agent")
    if sudo.outcome == "untried":
        return Check(
            name, "warning", f"sudo was not tried: {sudo.reason}", "look at the configuration of sudo"
        )
    return Check(name, "ok", f"none that goes around uids; sudo -n true fails ({sudo.reason})")


def _program_directories(configuration: Configuration, server: str) -> Iterator[Path]:
    for one in f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin:{DEFAULT_PATH}".split(":"):
        if one:
            yield Path(one)
    program = find_program(configuration.server(server).command)
    if program is not None:
        yield program.parent
    yield configuration.server_cwd(server)


def _i4(configuration: Configuration) -> Check:
    name = "I4 sockets"
    paths = {
        "authority": configuration.agent_socket(),
        "approval": configuration.approval_socket(),
        "control": configuration.control_socket(),
        "record": configuration.record_socket(),
    }
    closed = ("approval", "control", "record")
    if configuration.mode == "system":
        paths |= {f"{one}/mcp.sock": configuration.mcp_socket(one) for one in configuration.servers}
    weak, untried = [], []
    for socket_name, path in paths.items():
        reason = replaceable(path, links_allowed=False)
        if reason is not None:
            weak.append(f"{socket_name}: {reason}")
        if socket_name in closed:
            reach, how = try_socket(path)
            if reach == "reached":
                weak.append(f"{path} {how}")
            elif reach == "untried":
                untried.append(f"{path} ({how})")
    if weak:
        reasons = tuple(dict.fromkeys(weak))
        return Check(name, weight(configuration), listed(reasons), OWN_UID, reasons)
    if untried:
        return Check(name, "warning", f"not tried: {listed(untried)}", items=tuple(untried))
    detail = f"{len(paths)} sockets and their directories are not this uid's to change; {', '.join(closed)} are shut"
    return Check(name, "ok", detail)


def _i6(configuration: Configuration, server: str, bundle: Bundle | None) -> Check:
    name = "I6 resource"
    canaries = configuration.server(server).canaries
    whose = "canary"
    if canaries is None:
        whose = "root of the policy"
        entry = None if bundle is None else bundle.servers.get(server)
        canaries = () if entry is None else tuple(entry.roots.values())
        if not canaries:
            hint = f'servers.{server}.canaries = ["/path", "host:port"]; [] if it has no resource of its own'
            return Check(name, "warning", "not tried: nobody has said what only the server may reach", hint)
    if not canaries:
        return Check(name, "ok", f"servers.{server}.canaries says that it has no resource of its own")
    ended = {
        name: result
        for one in canaries
        for name, result in (_try_canary(one) if one.startswith("/") else [(one, try_network(one))])
    }
    reached = [f"{one} {how}" for one, (reach, how) in ended.items() if reach == "reached"]
    unclear = [f"{one} ({how})" for one, (reach, how) in ended.items() if reach in ("missing", "untried")]
    if reached:
        hint = "only the server's uid may reach it"
        detail = f"uid {os.geteuid()} reaches {listed(reached)}"
        return Check(name, weight(configuration), detail, hint, tuple(reached))
    if unclear:
        hint = f"name in servers.{server}.canaries what is there"
        detail = f"what is not there proves nothing: {listed(unclear)}"
        return Check(name, "warning", detail, hint, tuple(unclear))
    tried = tuple(f"{one} ({how})" for one, (_, how) in ended.items())
    return Check(name, "ok", f"out of reach, each a {whose}: {listed(tried)}", items=tried)


def _try_canary(canary: str) -> Iterator[tuple[str, tuple[Reach, str]]]:
    """Yield how a path is reached, by each of its names; one that can be moved away or is held open is reached too."""
    path = Path(canary)
    held = [number for number, target in open_descriptors() if target == path or path in target.parents]
    for name in all_names(path):
        result = try_path(name)
        way = replaceable(name, links_allowed=True) if result[0] == "refused" else None
        if way is not None:
            result = ("reached", f"can be replaced: {way}")
        elif held and name == path:
            result = ("reached", f"is open as descriptor {held[0]}")
        if name == path or result[0] == "reached":
            yield str(name), result


def _i7(configuration: Configuration, server: str) -> Check:
    name = "I7 secrets"
    names, is_known = secret_names(configuration, server)
    folded = {one.casefold() for one in names}
    found = sorted(one for one in os.environ if one.casefold() in folded)
    if found:
        detail = f"in this environment: {', '.join(found)}"
        return Check(name, weight(configuration), detail, "start the agent without them")
    if not is_known:
        hint = f'servers.{server}.secret_names = ["NAME"]: names, never values; [] if there are none'
        return Check(name, "warning", "this uid cannot know the names in the environment file", hint)
    return Check(name, "ok", f"none of {len(names)} secret names is in this environment")


def secret_names(configuration: Configuration, server: str) -> tuple[frozenset[str], bool]:
    """Return the names of the secrets of a server as far as this uid can know them, and whether these are all.

    They are `secret_names`, `env_pass` but for everyday names, and the names in the environment file where it can be
    read, which is not for the agent.
    """
    entry = configuration.server(server)
    names = {one for one in entry.env_pass if one not in _EVERYDAY and not one.startswith("LC_")}
    names |= set(entry.secret_names or ())
    is_known = entry.env_file is None or entry.secret_names is not None
    if entry.env_file is not None:
        try:
            text = entry.env_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return frozenset(names), is_known
        rows = (row.strip() for row in text.splitlines())
        names |= {row.partition("=")[0].strip() for row in rows if "=" in row and not row.startswith("#")}
    return frozenset(names), True


def _i8(configuration: Configuration, server: str, groups: Collection[int]) -> Check:
    name = "I8 groups"
    if configuration.mode == "user":
        return Check(name, "warning", "user mode has no groups of roles")
    try:
        call = configuration.call_gid
        closed = _closed_groups(configuration, server) | set(groups) - {call}
    except OnrecordError as error:
        return Check.failed(name, error)
    own = {os.getegid(), *os.getresgid(), *os.getgroups()}
    if own & closed:
        numbers = ", ".join(map(str, sorted(own & closed)))
        return Check(name, "failed", f"this process is in groups of other roles: {numbers}", "leave them")
    later = account_groups(os.geteuid()) & closed
    if later:
        numbers = ", ".join(map(str, sorted(later)))
        detail = f"its account is in groups of other roles, which newgrp gives at any time: {numbers}"
        return Check(name, "failed", detail, "take it out of them")
    lent = subordinate_ids(os.geteuid(), SUBGID, closed)
    if lent:
        detail = f"{SUBGID} lends this uid groups of other roles: {', '.join(map(str, lent))}"
        return Check(name, "failed", detail, "take them out")
    if call not in own:
        return Check(name, "failed", f"this process is not in the call group {call}", "join it: mcp-call")
    return Check(name, "ok", "in the call group and in no group of another role")


def _closed_groups(configuration: Configuration, server: str) -> set[int]:
    """Return the groups that open something of another role. Raises as the configuration does for unknown accounts."""
    groups = {
        user_gid(configuration.authority_uid),
        user_gid(configuration.recorder_uid),
        user_gid(configuration.server_uid(server)),
        configuration.approval_gid,
        configuration.control_gid,
        configuration.record_gid,
        configuration.readers_gid,
    }
    return {one for one in groups if one is not None} - {configuration.call_gid}

"""Do relative paths count in the policy from where the server opens them? Only a configuration can tell.

Source: running.md 3 (servers.ID.cwd), 4.1; call-proof.md 8.3.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from onrecord.authorize.policy.codes import finding
from onrecord.base.errors import OnrecordError

if TYPE_CHECKING:
    from onrecord.authorize.policy.bundle import Bundle
    from onrecord.authorize.policy.model import ServerPolicy
    from onrecord.base.configuration import Configuration
    from onrecord.base.configuration_sections import Server
    from onrecord.base.findings import Finding

_EXAMPLE_SERVER: Final = "onrecord-example-files"
"""Our own server opens relative paths below its --base, whatever its working directory is."""

_CONFINING: Final = frozenset({"--repository"})
"""Options whose directory only limits a server: mcp-server-git opens relative paths from its working directory."""


def check_bases(bundle: Bundle, configuration: Configuration) -> Iterator[Finding]:
    """Yield a finding for each configured server whose relative paths count from elsewhere than its working directory.

    Such a call reads one file while the policy judges another one. A base that an argument of the server names may
    be right all the same, and nobody can tell: that is an info.
    """
    for index, server in enumerate(bundle.document.servers):
        entry = configuration.servers.get(server.id)
        used = _used_bases(server)
        if entry is None or not used:
            continue
        try:
            cwd = configuration.server_cwd(server.id)
        except OnrecordError:
            continue  # its user is unknown, which others say
        named, confining = _directories(entry, cwd)
        bases = {os.path.realpath(path) for path in used.values()}
        if os.path.realpath(cwd) in bases or (_is_example(entry) and bases & named):
            continue
        is_named = bool(bases & named) and not bases & confining
        shown = ", ".join(f"{name} is {path}" for name, path in used.items())
        yield finding(
            "base-not-cwd",
            f"/servers/{index}/bases",
            f"{server.id}: relative paths count from bases ({shown}), but the server runs in {cwd}",
            severity="info" if is_named else "warning",
            hint=_hint(server.id, used, cwd, is_named=is_named),
        )


def _hint(server: str, used: dict[str, str], cwd: Path, *, is_named: bool) -> str:
    name, path = next(iter(used.items()))
    change = f'set servers.{server}.cwd = "{path}", or in bases of bundle.json "{name}": "{cwd}" and sign it'
    if is_named:
        return (
            "its arguments name that directory: right if the server itself opens relative paths there, "
            f"which cannot be told from here; if not, {change}"
        )
    return f"{change}; leave both only if the server opens relative paths elsewhere than where it runs"


def _used_bases(server: ServerPolicy) -> dict[str, str]:
    """Return the bases that path arguments count from, in the order of their first use."""
    names = (
        argument.base
        for binding in server.bindings
        for argument in binding.arguments.values()
        if argument.fact == "path" and isinstance(argument.base, str)
    )
    return {name: server.bases[name] for name in names if name in server.bases}


def _directories(entry: Server, cwd: Path) -> tuple[set[str], set[str]]:
    """Return the paths that the arguments of a server name, and those of options that only limit it."""
    named: set[str] = set()
    confining: set[str] = set()
    before = ""
    for word in entry.args:
        option, separator, value = word.partition("=")
        if not (word.startswith("-") and separator):
            option, value = before, word
        if not value.startswith("-") and "\0" not in value:
            (confining if option in _CONFINING else named).add(os.path.realpath(cwd / value))
        before = word
    return named, confining


def _is_example(entry: Server) -> bool:
    return os.path.basename(entry.command) == _EXAMPLE_SERVER or "onrecord.examples.files" in entry.args

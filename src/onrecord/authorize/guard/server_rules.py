"""What the signed bundle says about one server, as far as its guard needs it. Read again when the file has changed.

Source: running.md 1, 4.1. Without a readable bundle the proof is required, and nobody is a caller.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from onrecord.authorize.guard.log import GuardLog
from onrecord.base.configuration import Configuration
from onrecord.base.errors import OnrecordError
from onrecord.base.keys import read_trusted_keys

if TYPE_CHECKING:
    from onrecord.authorize.policy.bundle import Bundle


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRules:
    """Rules of one server. `enforces` false is audit mode."""

    enforces: bool = True
    refuse_methods: frozenset[str] = frozenset()
    caller_uids: frozenset[int] = frozenset()


def load_rules(
    configuration: Configuration, server: str, previous: Bundle | None
) -> tuple[ServerRules, Bundle]:
    """Return the rules of `server` and the bundle they stand in. Raises `OnrecordError` as the policy loader does."""
    from onrecord.authorize.policy.loading import load_bundle

    bundle = load_bundle(
        configuration.policy.bundle,
        read_trusted_keys(configuration.trust.policy),
        previous=previous.loaded_version if previous is not None else None,
        mode=configuration.mode,
    )
    callers = frozenset(caller.uid for caller in bundle.callers)
    policy = bundle.servers.get(server)
    if policy is None:
        return ServerRules(caller_uids=callers), bundle
    return (
        ServerRules(
            enforces=policy.enforce == "required",
            refuse_methods=frozenset(policy.refuse_methods),
            caller_uids=callers,
        ),
        bundle,
    )


Load = Callable[[Configuration, str, "Bundle | None"], "tuple[ServerRules, Bundle]"]


class RulesFile:
    """Keeps the rules of one server up to date; a bad bundle leaves the old rules in use."""

    def __init__(
        self, configuration: Configuration, server: str, *, log: GuardLog, load: Load = load_rules
    ) -> None:
        self._configuration = configuration
        self._server = server
        self._log = log
        self._load = load
        self._rules = ServerRules()
        self._bundle: Bundle | None = None
        self._seen: tuple[int, ...] | None = None

    def rules(self) -> ServerRules:
        """Return the rules in force."""
        seen = self._stamp()
        if seen != self._seen:
            self._seen = seen
            try:
                self._rules, self._bundle = self._load(self._configuration, self._server, self._bundle)
            except OnrecordError as error:
                kept = (
                    "the old rules stay"
                    if self._bundle is not None
                    else "proofs are required, no caller is known"
                )
                self._log.alert("policy.unreadable", code=error.code, note=kept)
        return self._rules

    def _stamp(self) -> tuple[int, ...]:
        bundle = self._configuration.policy.bundle
        stamp: list[int] = []
        for path in (bundle, bundle.with_name(bundle.name + ".sig")):
            try:
                status = os.stat(path)
            except OSError:
                stamp.append(0)
            else:
                stamp += [status.st_mtime_ns, status.st_ino, status.st_size]
        return tuple(stamp)

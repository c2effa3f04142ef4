"""`onrecord doctor`: all checks in their order.

Source: call-proof.md 1.5; DESIGN.md.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from onrecord.authorize.doctor import installation, isolation, machine, running
from onrecord.authorize.doctor.results import Check, Diagnosis
from onrecord.base.dates import utc_now

if TYPE_CHECKING:
    from onrecord.base.configuration import Configuration


def examine(
    configuration: Configuration, *, server: str | None = None, now: datetime.datetime | None = None
) -> Diagnosis:
    """Look at everything that this uid can see; with `server`, try to break its isolation from that server too.

    The attempts are harmless and nothing is changed. The answer is `isolated` only in system mode, with `server`, and
    if every item of isolation passed and nothing has a wrong owner.

    Raises `ConfigurationError` with code "server-unknown".
    """
    moment = utc_now() if now is None else now
    bundle, policy = installation.check_policy(configuration)
    items = list(isolation.check_uids(configuration))
    if server is not None:
        items += isolation.check_server(configuration, server, bundle)
    ownership = tuple(installation.check_ownership(configuration))
    wrong = [check for check in ownership if check.result == "failed"]
    verdict = isolation.check_mode(configuration, server=server, items=[*items, *wrong])
    checks = [
        Check("configuration", "ok", f"{configuration.file}, {configuration.mode} mode"),
        verdict,
        *items,
        *ownership,
        *installation.check_keys(configuration),
        *installation.check_certificate(configuration, now=moment),
        *policy,
        *installation.check_servers(configuration, bundle),
        *installation.check_relative_paths(configuration, bundle),
        *installation.check_secret_names(configuration),
        *running.check_sockets(configuration),
        *running.check_authority(configuration),
        *machine.check_clocks(now=moment),
        machine.check_sqlite(),
        *machine.check_disk(configuration),
        Check(
            "no-sink",
            "warning",
            "checkpoints do not leave this machine: a cut of the newest records can be shown only by callers",
            "sinks are not built yet; keep the checkpoints that verify and record/append return",
        ),
    ]
    return Diagnosis("isolated" if verdict.result == "ok" else "degraded", tuple(checks))

"""What enforces the calls of one server: its authority, its spool, its rules, shared by all its connections.

The guard process has one for its relays, a server with the SDK hook has one of its own.

Source: call-proof.md 6; running.md 5.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from onrecord.authorize.guard.approved_input import ApprovedTasks
from onrecord.authorize.guard.authority_link import AuthorityLink
from onrecord.authorize.guard.checkpoints import CheckpointFile
from onrecord.authorize.guard.extension import COVERED_METHODS, Advertisement
from onrecord.authorize.guard.log import GuardLog
from onrecord.authorize.guard.recording import Recording
from onrecord.authorize.guard.relay import Relay
from onrecord.authorize.guard.relay_rules import ClientPeer, RelayRules
from onrecord.authorize.guard.server_rules import RulesFile
from onrecord.authorize.guard.shipping import Connect, Shipper
from onrecord.authorize.guard.spool import Spool, spool_path
from onrecord.base.configuration import Configuration
from onrecord.base.ids import random_id
from onrecord.base.rpc_client import RpcClient

SHIP_AT_STOP_SECONDS: Final = 2.0
"""How long a stopping process waits for the recorder; what is left stays in the spool."""


class Enforcement:
    """Make it inside of a running asyncio loop, then `start`; `relay` gives each connection its own relay.

    `state` is the guard's state directory, private to this uid.
    """

    def __init__(
        self, configuration: Configuration, server: str, *, state: Path, log: GuardLog, rules: RulesFile
    ) -> None:
        self._configuration = configuration
        self._server = server
        self._log = log
        self._rules = rules
        self._loop = asyncio.get_running_loop()
        limits = configuration.limits
        source = random_id("g-")
        self._spool = Spool.create(spool_path(state, source), limit_bytes=limits.spool_bytes)
        self._shipper = Shipper(self._spool, connect=recorder_of(configuration), server=server, log=log)
        self._recording = Recording(
            self._spool,
            is_required=configuration.recorder.required,
            is_durable=configuration.authority.durability == "durable",
            written=self._shipper.soon,
        )
        self._approved_tasks = ApprovedTasks()
        self._checkpoints = CheckpointFile(state, log=log)
        self._link = AuthorityLink(
            connect=self._connect_authority,
            server=server,
            hello_timeout_ms=limits.hello_timeout_ms,
            verify_timeout_ms=limits.verify_timeout_ms,
            log=log,
            on_checkpoint=self._checkpoints.keep,
        )

    def start(self) -> None:
        """Connect to authority and recorder, and stay connected."""
        self._link.start()
        self._shipper.start()
        if not self._rules.rules().enforces:
            self._log.alert(
                "mode.audit",
                server=self._server,
                note="calls without proof are executed; nothing is enforced",
            )

    async def stop(self) -> None:
        """Ship what is left, for a while, and end. All relays are closed by now."""
        await self._shipper.stop(seconds=SHIP_AT_STOP_SECONDS)
        await self._link.close()
        self._recording.close()
        self._spool.close()
        self._checkpoints.write()

    def relay(
        self,
        number: str,
        *,
        peer: ClientPeer,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
        settled: Callable[[], None],
    ) -> Relay:
        """Return the relay of connection `number` under the rules of now."""
        rules = self._rules.rules()
        limits = self._configuration.limits
        return Relay(
            number,
            rules=RelayRules(
                server=self._server,
                enforces=rules.enforces,
                refuse_methods=rules.refuse_methods,
                advertisement=Advertisement(
                    required=rules.enforces,
                    methods=COVERED_METHODS,
                    authority=f"unix://{self._configuration.agent_socket()}",
                    server=self._server,
                ),
                call_line_bytes=limits.call_line_bytes,
                other_line_bytes=limits.other_line_bytes,
                report_timeout_ms=limits.verify_timeout_ms,
            ),
            peer=peer,
            verifier=self._link,
            recording=self._recording,
            log=self._log,
            to_client=to_client,
            to_server=to_server,
            settled=settled,
            later=self._loop.call_soon,
            approved_tasks=self._approved_tasks,
        )

    async def _connect_authority(self) -> RpcClient:
        configuration = self._configuration
        return await RpcClient.connect(
            configuration.server_socket(self._server),
            expected_uid=configuration.authority_uid,
            timeout_ms=configuration.limits.hello_timeout_ms,
        )


def recorder_of(configuration: Configuration) -> Connect:
    """Return the function that connects to the recorder of a configuration."""

    async def connect() -> RpcClient:
        return await RpcClient.connect(
            configuration.record_socket(),
            expected_uid=configuration.recorder_uid,
            timeout_ms=configuration.limits.hello_timeout_ms,
        )

    return connect

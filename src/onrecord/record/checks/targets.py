"""What a tool event aims at: the server it names, and the kind of policy decision it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from onrecord.base.namespaces import AI_AGENT_EXTENSION, NS, TOOL_INVOCATION_EXTENSION
from onrecord.record.operations import OPERATION

HOST: Final = "!host"
"""Server name of tools that the host itself offers (TI 6.1.8)."""

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)([^?#]*)(.*)", re.ASCII | re.DOTALL)
_DEFINES_NO_SERVERS: Final = frozenset([AI_AGENT_EXTENSION, TOOL_INVOCATION_EXTENSION, NS])


def server_faults(server: str, extensions: Collection[str]) -> Iterator[str]:
    """Yield the codes of what is wrong with a server name. `extensions` are those that the vCon lists."""
    if server.startswith("!"):
        if server != HOST and _DEFINES_NO_SERVERS.issuperset(extensions):
            yield "server-reserved"
        return
    match = _URL.fullmatch(server)
    if match is not None:
        if "@" in match[1]:
            yield "server-url-secret"
        if match[3]:
            yield "server-url-form"


def is_other_operation(decision: Mapping[str, Any]) -> bool:
    """Say whether a policy decision is about an operation that the draft does not define."""
    operation = decision.get("operation")
    return isinstance(operation, str) and operation not in ("", OPERATION)


def decision_column(decision: Mapping[str, Any]) -> str:
    """Return the column of a policy decision; the target columns hold for its one defined operation only."""
    life = decision.get("policy_life")
    if life not in ("once", "standing"):
        return "unclear"
    return f"{life}-other" if is_other_operation(decision) else str(life)

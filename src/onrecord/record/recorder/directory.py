"""Who is who, as far as the recorder needs it. The policy room implements this; record imports no policy."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable


class AgentModel(NamedTuple):
    """Model and provider of an agent, for agent_meta (record.md 3.3)."""

    model_id: str
    model_provider: str


@runtime_checkable
class Directory(Protocol):
    """Principals and names of the signed bundle. Every method answers from memory and raises nothing."""

    @property
    def authority_uid(self) -> int:
        """Return the uid of the authority."""

    def caller_id(self, uid: int) -> str | None:
        """Return the caller id of an agent's uid, or None."""

    def ti_server(self, server_id: str) -> str | None:
        """Return the name of a server in vCons (bundle member tiServer), or None."""

    def agent(self, caller: str) -> AgentModel | None:
        """Return model and provider of a caller when both are known."""

    def control_roles(self, uid: int) -> frozenset[str]:
        """Return the control roles of a uid."""

    def server_ids_of_uid(self, uid: int) -> frozenset[str]:
        """Return the ids of the servers that run under a uid."""

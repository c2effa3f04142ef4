"""What a native log says about the agent of a session: its program, provider and models."""

from __future__ import annotations

from typing import Any

from onrecord.record.logs.inference import provider_of


class AgentFacts:
    """What the log says about the session's agent."""

    __slots__ = ("cli_name", "cli_version", "models", "more", "name", "provider")

    def __init__(self, *, cli_name: str, provider: str | None) -> None:
        self.name: str | None = None
        self.more: dict[str, Any] = {}
        """Further members of agent_meta, an open map."""
        self.cli_name: str | None = cli_name
        self.cli_version: str | None = None
        self.provider = provider
        self.models: dict[str, None] = {}

    def saw_model(self, model: Any, provider: Any = None) -> None:
        """Note a model in the order of appearance, and the provider where the log names one."""
        if isinstance(model, str) and model:
            self.models.setdefault(model)
        if isinstance(provider, str) and provider and self.provider is None:
            self.provider = provider

    @property
    def model_provider(self) -> str | None:
        """The provider that the log names, else the one inferred from the first model's name."""
        if self.provider is not None:
            return self.provider
        return next((found for model in self.models if (found := provider_of(model))), None)

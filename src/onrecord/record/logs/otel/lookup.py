"""What the attributes of a span say about model, provider, usage and tool, by any convention (native-logs.md 4.9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.otel.span import Span
from onrecord.record.logs.usage import Usage, otel

USAGE: Final = ("gen_ai.usage.", "llm.token_count.", "llm.cost.", "ai.usage.")
"""What the names of attributes begin with that hold counts of tokens."""

MODELS: Final = (
    "gen_ai.response.model",
    "ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "ai.model.id",
    "embedding.model_name",
)
"""Attributes that name a model, the one that answered first."""

PROVIDERS: Final = (
    "gen_ai.provider.name",
    "gen_ai.system",
    "llm.provider",
    "llm.system",
    "ai.model.provider",
)
"""Attributes that name who provides the model."""

RESPONSE_IDS: Final = ("gen_ai.response.id", "ai.response.id")
"""Attributes with the id of an answer."""

TOOL_NAMES: Final = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name")
"""Attributes that name a tool."""

TOOL_ARGUMENTS: Final = (
    "gen_ai.tool.call.arguments",
    "ai.toolCall.args",
    "input.value",
    "tool.parameters",
    "input",
)
"""Attributes with the arguments of a call; `tool.parameters` is often their description only."""

TOOL_RESULTS: Final = ("gen_ai.tool.call.result", "ai.toolCall.result", "output.value", "output")
"""Attributes with the result of a call."""

CALL_IDS: Final = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id")
"""Attributes with the id of a call."""


def first(attributes: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the name of the first of these attributes that is there."""
    return next((name for name in names if attributes.get(name) not in (None, "")), None)


def text_of(attributes: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the first of these attributes that is a text."""
    found = (attributes.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value), None)


def model_of(span: Span) -> str | None:
    """Return the model that answered, else the one that was asked."""
    return text_of(span.attributes, MODELS)


def provider_of(span: Span) -> str | None:
    """Return the provider that the span names."""
    return text_of(span.attributes, PROVIDERS)


def usage_of(span: Span) -> tuple[Usage, dict[str, Any]]:
    """Return the usage of a span and its native attributes."""
    native = {name: value for name, value in span.attributes.items() if name.startswith(USAGE)}
    return otel(native), native


def identifier(value: Any) -> str:
    """Return a call id as text, "" for what is none."""
    return value if isinstance(value, str) else str(value) if type(value) is int else ""


def origin_of(attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return who ran a tool, where the span says more than that the host did."""
    server = text_of(attributes, ("mcp.server.name", "gen_ai.tool.server", "mcp.server"))
    if server is not None or "mcp.method.name" in attributes:
        return {"kind": "mcp", **({"server": server} if server is not None else {})}
    return {"kind": "provider"} if attributes.get("gen_ai.tool.type") == "extension" else None

"""What a model's name says about its provider, and the names of the agents' programs.

    >>> provider_of("claude-opus-4-5")
    'anthropic'

Source: native-logs.md section 1.5.
"""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "unknown"
"""Model or provider of an agent whose log names none (D-LOG-19)."""

PROVIDERS: Final = {
    "claude": "anthropic",
    "gpt": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "codex": "openai",
    "chatgpt": "openai",
    "gemini": "google",
    "grok": "xai",
    "mistral": "mistral",
    "codestral": "mistral",
    "devstral": "mistral",
    "deepseek": "deepseek",
    "qwen": "alibaba",
    "llama": "meta",
}
"""Provider per prefix of a model name, and no others."""

CLAUDE_CODE: Final = "claude-code"
"""`cli_name` of Claude Code and of its SDK."""

CODEX_CLI: Final = "codex-cli"
"""`cli_name` of Codex."""

GEMINI_CLI: Final = "gemini-cli"
"""`cli_name` of Gemini CLI."""

OPENCODE: Final = "opencode"
"""`cli_name` of OpenCode."""

CURSOR: Final = "cursor"
"""`cli_name` of Cursor."""

_PREFIXES: Final = tuple(PROVIDERS)
_LONGEST: Final = max(map(len, PROVIDERS))


def provider_of(model: str) -> str | None:
    """Return the provider that the prefix of a model's name stands for, or None. A provider that the log names wins."""
    head = model[:_LONGEST].lower()
    if not head.startswith(_PREFIXES):
        return None
    return next(provider for prefix, provider in PROVIDERS.items() if head.startswith(prefix))

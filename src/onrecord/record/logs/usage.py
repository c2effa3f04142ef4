"""Token counts of the agents in one normal form: cached is part of input, reasoning is part of output.

    >>> to_token_usage(codex({"input_tokens": 900, "cached_input_tokens": 300, "output_tokens": 80}), native=None)
    {'input': 900, 'output': 80, 'cached': 300, 'total': 980}

There is one function per meaning of the native members, and each takes the native object as it stands in the log.

Source: native-logs.md section 7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

INVALID: Final = "usage-invalid"
"""Note: a member is negative, fractional, no number or too large, and was left out."""

INCONSISTENT: Final = "usage-inconsistent"
"""Note: no reading of the members gives the native total, or a part is larger than its whole."""

MAX_COUNT: Final = 2**53 - 1
"""Largest count: a vCon's integers end there."""

MAX_NESTING: Final = 8
"""Levels of a usage object whose members are merged; no agent nests deeper than two."""

NOTHING: Final[Mapping[str, Any]] = {}


class Usage(NamedTuple):
    """Counts in the normal form, None where the log says nothing.

    `cost` is in US dollars. `invalid` holds the names of the native members that were left out (never values), and
    `is_consistent` is False when the native counts contradict each other.
    """

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None
    total: int | None = None
    cost: float | None = None
    invalid: tuple[str, ...] = ()
    is_consistent: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether every count is zero or missing."""
        return not (self.input or self.output or self.cached or self.reasoning or self.total or self.cost)

    @property
    def notes(self) -> tuple[str, ...]:
        """The findings that this usage deserves."""
        return ((INVALID,) if self.invalid else ()) + (() if self.is_consistent else (INCONSISTENT,))


class _Native:
    """Reads members of a native object and remembers those that are no counts."""

    __slots__ = ("invalid", "value")

    def __init__(self, value: Any) -> None:
        self.value: Mapping[str, Any] = value if isinstance(value, dict) else NOTHING
        self.invalid: list[str] = [] if isinstance(value, dict) or value is None else ["usage"]

    def count(self, *names: str) -> int | None:
        """Return the first of these members that is there."""
        value = self.value
        for name in names:
            number = value.get(name)
            if number is None:
                continue
            if type(number) is float and number.is_integer():
                number = int(number)
            if type(number) is int and 0 <= number <= MAX_COUNT:
                return number
            self.invalid.append(name)
        return None

    def cost(self, *names: str) -> float | None:
        """Return the first of these members that is an amount of money."""
        for name in names:
            number = self.money(name, self.value.get(name))
            if number is not None:
                return number
        return None

    def money(self, name: str, value: Any) -> float | None:
        """Return an amount of money that the log calls `name`."""
        if type(value) in (int, float) and 0 <= value <= MAX_COUNT:
            return value  # type: ignore[no-any-return]  # int or float, as just seen
        if value is not None:
            self.invalid.append(name)
        return None

    def part(self, *names: str) -> _Native:
        """Return the first of these members that is an object; its findings join these."""
        for name in names:
            inner = self.value.get(name)
            if inner is None:
                continue
            if isinstance(inner, dict):
                part = _Native(inner)
                part.invalid = self.invalid
                return part
            self.invalid.append(name)
        part = _Native(None)
        part.invalid = self.invalid
        return part


def claude(native: Any, *, cost: Any = None) -> Usage:
    """Read the usage of Claude Code, its SDK and `claude -p`: input without cache, output with thinking.

    `cost` is the record's `costUSD`, which stands beside the usage.
    """
    read = _Native(native)
    cached = read.count("cache_read_input_tokens")
    details = read.part("output_tokens_details")
    return _usage(
        read,
        _sum(read.count("input_tokens"), read.count("cache_creation_input_tokens"), cached),
        read.count("output_tokens"),
        cached=cached,
        reasoning=details.count("reasoning_tokens", "thinking_tokens"),
        cost=read.money("costUSD", cost),
    )


def codex(native: Any) -> Usage:
    """Read a usage of Codex: input with cache, output with reasoning. Older names of the members are read too."""
    read = _Native(native)
    return _usage(
        read,
        read.count("input_tokens", "prompt_tokens", "prompt"),
        read.count("output_tokens", "completion_tokens", "completion"),
        cached=_first(
            read.count("cached_input_tokens", "cached_tokens"),
            read.part("input_tokens_details", "prompt_tokens_details").count("cached_tokens"),
        ),
        reasoning=_first(
            read.count("reasoning_output_tokens", "reasoning_tokens"),
            read.part("output_tokens_details", "completion_tokens_details").count("reasoning_tokens"),
        ),
        total=read.count("total_tokens", "total"),
    )


def gemini(native: Any) -> Usage:
    """Read the tokens of Gemini CLI: input with cache and without tools, output without thoughts.

    The names of the API's `usageMetadata` and of the stream's statistics are read too.
    """
    read = _Native(native)
    thoughts = read.count("thoughts", "thoughtsTokenCount")
    return _usage(
        read,
        _sum(
            read.count("input", "promptTokenCount", "prompt"), read.count("tool", "toolUsePromptTokenCount")
        ),
        _sum(read.count("output", "candidatesTokenCount", "candidates"), thoughts),
        cached=read.count("cached", "cachedContentTokenCount"),
        reasoning=thoughts,
        total=read.count("total", "totalTokenCount"),
    )


def opencode(native: Any, *, cost: Any = None) -> Usage:
    """Read the tokens of OpenCode: input without cache, output without reasoning.

    `cost` is the message's member of that name, which stands beside the tokens.
    """
    read = _Native(native)
    cache = read.part("cache")
    cached = cache.count("read")
    reasoning = read.count("reasoning")
    return _usage(
        read,
        _sum(read.count("input"), cached, cache.count("write")),
        _sum(read.count("output"), reasoning),
        cached=cached,
        reasoning=reasoning,
        total=read.count("total"),
        cost=read.money("cost", cost),
    )


def otel(attributes: Any) -> Usage:
    """Read the usage in a span's attributes, those of OpenTelemetry GenAI, OpenInference and `ai.usage`.

    Input is with cache, output with reasoning. `attributes` is the span's whole map, values already plain.
    """
    read = _Native(attributes)
    return _usage(
        read,
        read.count(
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "ai.usage.inputTokens",
            "ai.usage.promptTokens",
        ),
        read.count(
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "ai.usage.outputTokens",
            "ai.usage.completionTokens",
        ),
        cached=read.count(
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.cache_read_input_tokens",
            "llm.token_count.prompt_details.cache_read",
            "ai.usage.cachedInputTokens",
        ),
        reasoning=read.count(
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.output_tokens.reasoning",
            "gen_ai.usage.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
            "ai.usage.reasoningTokens",
        ),
        total=read.count("gen_ai.usage.total_tokens", "llm.token_count.total", "ai.usage.totalTokens"),
        cost=read.cost("gen_ai.usage.cost", "llm.cost.total"),
    )


def vacr(native: Any) -> Usage:
    """Read a `token-usage` of VACR, which has the normal form already."""
    read = _Native(native)
    return _usage(
        read,
        read.count("input"),
        read.count("output"),
        cached=read.count("cached"),
        reasoning=read.count("reasoning"),
        total=read.count("total"),
        cost=read.cost("cost"),
    )


def merge_max(natives: Iterable[Any]) -> dict[str, Any]:
    """Return one usage of several that repeat a response: per member the maximum, of objects member by member.

    Where members are no numbers the last one wins, and a number wins over what is none.

    Source: native-logs.md 4.1, B-3, B-4.
    """
    merged: dict[str, Any] = {}
    for native in natives:
        if isinstance(native, dict):
            _merge(merged, native, depth=0)
    return merged


def to_token_usage(usage: Usage, native: Any) -> dict[str, Any] | None:
    """Return the Token_Usage of a Dialog or the counts of a `token-count`, None if all are zero or missing.

    `native` is kept in the member of that name unless it is None.
    """
    if usage.is_empty:
        return None
    made: dict[str, Any] = {
        name: value
        for name, value in zip(_MEMBERS, usage, strict=False)  # the two last members are no counts
        if value is not None
    }
    if native is not None:
        made["native"] = native
    return made


_MEMBERS: Final = ("input", "output", "cached", "reasoning", "total", "cost")


def _usage(
    read: _Native,
    input_count: int | None,
    output: int | None,
    *,
    cached: int | None = None,
    reasoning: int | None = None,
    total: int | None = None,
    cost: float | None = None,
) -> Usage:
    """Put a usage together; `total` is the native one, which is compared and kept only where there is no sum."""
    ours = _sum(input_count, output)
    is_consistent = (
        (cached or 0) <= (MAX_COUNT if input_count is None else input_count)
        and (reasoning or 0) <= (MAX_COUNT if output is None else output)
        and (total is None or ours is None or total == ours or input_count is None or output is None)
    )
    if ours is not None and ours > MAX_COUNT:
        read.invalid.append("total")
        ours = None
        input_count = None if input_count is not None and input_count > MAX_COUNT else input_count
        output = None if output is not None and output > MAX_COUNT else output
    elif ours is None:
        ours = total
    return Usage(
        input_count, output, cached, reasoning, ours, cost, tuple(dict.fromkeys(read.invalid)), is_consistent
    )


def _sum(*counts: int | None) -> int | None:
    there = [count for count in counts if count is not None]
    return sum(there) if there else None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)


def _merge(merged: dict[str, Any], native: Mapping[str, Any], *, depth: int) -> None:
    for name, value in native.items():
        known = merged.get(name)
        if isinstance(value, dict) and isinstance(known, dict) and depth < MAX_NESTING:
            _merge(known, value, depth=depth + 1)
        elif _is_number(known):
            merged[name] = max(known, value) if _is_number(value) else known
        elif isinstance(value, dict) and depth < MAX_NESTING:
            fresh: dict[str, Any] = {}
            _merge(fresh, value, depth=depth + 1)
            merged[name] = fresh
        elif value is not None or name not in merged:
            merged[name] = value


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float

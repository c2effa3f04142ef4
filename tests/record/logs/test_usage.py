"""Token counts: one answer, told by six agents, is one usage (native-logs.md section 7)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onrecord.record.logs import usage
from onrecord.record.logs.usage import MAX_COUNT, merge_max, to_token_usage

READERS = {
    "claude": usage.claude,
    "codex": usage.codex,
    "gemini": usage.gemini,
    "opencode": usage.opencode,
    "otel": usage.otel,
    "vacr": usage.vacr,
}

SAME_ANSWER = [
    (
        "claude",
        {
            "input_tokens": 500,
            "cache_creation_input_tokens": 100,
            "cache_read_input_tokens": 300,
            "output_tokens": 80,
            "output_tokens_details": {"thinking_tokens": 32},
        },
    ),
    (
        "codex",
        {
            "input_tokens": 900,
            "cached_input_tokens": 300,
            "cache_write_input_tokens": 100,
            "output_tokens": 80,
            "reasoning_output_tokens": 32,
            "total_tokens": 980,
        },
    ),
    (
        "codex",
        {
            "prompt_tokens": 900,
            "prompt_tokens_details": {"cached_tokens": 300},
            "completion_tokens": 80,
            "completion_tokens_details": {"reasoning_tokens": 32},
        },
    ),
    ("gemini", {"input": 890, "tool": 10, "cached": 300, "output": 48, "thoughts": 32, "total": 980}),
    (
        "opencode",
        {"input": 600, "cache": {"read": 300, "write": 0}, "output": 48, "reasoning": 32, "total": 980},
    ),
    (
        "otel",
        {
            "gen_ai.usage.input_tokens": 900,
            "gen_ai.usage.cache_read.input_tokens": 300,
            "gen_ai.usage.output_tokens": 80,
            "gen_ai.usage.reasoning.output_tokens": 32,
            "gen_ai.operation.name": "chat",
        },
    ),
    (
        "otel",
        {
            "llm.token_count.prompt": 900,
            "llm.token_count.prompt_details.cache_read": 300,
            "llm.token_count.completion": 80,
            "llm.token_count.completion_details.reasoning": 32,
            "llm.token_count.total": 980,
        },
    ),
    ("vacr", {"input": 900, "cached": 300, "output": 80, "reasoning": 32, "total": 980}),
]


@pytest.mark.parametrize(("agent", "native"), SAME_ANSWER)
def test_one_answer(agent, native):
    """900 prompt tokens with 300 cached and 80 output tokens with 32 reasoning are that for every agent."""
    found = READERS[agent](native)
    assert found[:5] == (900, 80, 300, 32, 980)
    assert found.notes == ()
    assert to_token_usage(found, native) == {
        "input": 900,
        "output": 80,
        "cached": 300,
        "reasoning": 32,
        "total": 980,
        "native": native,
    }


NUMBERS = st.one_of(
    st.integers(0, 2000),
    st.integers(-5, MAX_COUNT * 2),
    st.floats(),
    st.text(max_size=3),
    st.none(),
    st.booleans(),
    st.lists(st.integers(), max_size=1),
)
NAMES = sorted({name for _, native in SAME_ANSWER for name in native})
NATIVES = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(NUMBERS, st.dictionaries(st.sampled_from(["read", "write", "thinking_tokens"]), NUMBERS)),
)


class TestAnything:
    @settings(max_examples=50)
    @given(st.sampled_from(sorted(READERS)), st.one_of(NATIVES, NUMBERS))
    def test_normal_form(self, agent, native):
        """Whatever stands there: counts are uint, total is input + output, a part above its whole is noted."""
        found = READERS[agent](native)
        for count in found[:5]:
            assert count is None or (type(count) is int and 0 <= count <= MAX_COUNT)
        if found.input is not None and found.output is not None and "total" not in found.invalid:
            assert found.total == found.input + found.output
        if found.input is not None and (found.cached or 0) > found.input:
            assert "usage-inconsistent" in found.notes
        if found.output is not None and (found.reasoning or 0) > found.output:
            assert "usage-inconsistent" in found.notes
        assert (to_token_usage(found, native) is None) == found.is_empty

    @pytest.mark.parametrize("bad", [-1, 1.5, "5", True, MAX_COUNT + 1, [], {}, float("nan"), float("inf")])
    def test_invalid_members(self, bad):
        """A member that is no count is left out and named, never quoted; the others stay."""
        found = usage.claude({"input_tokens": bad, "cache_read_input_tokens": 7, "output_tokens": 5})
        assert (found.input, found.output, found.cached, found.total) == (7, 5, 7, 12)
        assert found.invalid == ("input_tokens",)
        assert found.notes == ("usage-invalid",)

    def test_overflow(self):
        """A sum beyond the integers of a vCon is left out as invalid."""
        found = usage.claude({"input_tokens": MAX_COUNT, "cache_read_input_tokens": 1, "output_tokens": 1})
        assert (found.input, found.output, found.cached, found.total) == (None, 1, 1, None)
        assert found.notes == ("usage-invalid",)

    @pytest.mark.parametrize("native", [None, {}, {"input_tokens": 0, "output_tokens": 0}, [], "x", 5])
    def test_nothing(self, native):
        """A usage of zeros, or none, makes no token_usage; what is no object is invalid."""
        found = usage.codex(native)
        assert to_token_usage(found, native) is None
        assert bool(found.invalid) == (not isinstance(native, dict | None))

    @pytest.mark.parametrize(
        ("agent", "native", "consistent"),
        [
            ("codex", {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}, True),
            ("codex", {"input_tokens": 10, "output_tokens": 5, "total_tokens": 16}, False),
            ("codex", {"input_tokens": 10, "cached_input_tokens": 11, "output_tokens": 5}, False),
            ("gemini", {"input": 10, "output": 5, "thoughts": 3, "total": 18}, True),
            ("gemini", {"input": 10, "output": 5, "thoughts": 3, "total": 15}, False),
            ("opencode", {"input": 10, "output": 5, "reasoning": 3, "cache": {"read": 4}, "total": 22}, True),
            ("vacr", {"output": 5, "reasoning": 6}, False),
        ],
    )
    def test_totals(self, agent, native, consistent):
        """A native total that no reading gives is noted, and our sum stays."""
        found = READERS[agent](native)
        assert found.is_consistent == consistent
        assert found.notes == (() if consistent else ("usage-inconsistent",))
        if found.input is not None:
            assert found.total == found.input + found.output

    def test_only_a_total(self):
        """A log that has only a total keeps it."""
        assert to_token_usage(usage.codex({"total_tokens": 9}), None) == {"total": 9}

    def test_cost(self):
        """Cost is kept when the log has it, beside or inside of the usage; nonsense is invalid."""
        assert usage.claude({"output_tokens": 1}, cost=0.25).cost == 0.25
        assert usage.opencode({"output": 1}, cost=0).cost == 0
        assert usage.vacr({"output": 1, "cost": 2}).cost == 2
        assert usage.vacr({"output": 1, "cost": float("inf")}).notes == ("usage-invalid",)
        for bad in (-1, "free", True, float("nan")):
            assert usage.claude({"output_tokens": 1}, cost=bad)[5:7] == (None, ("costUSD",))
            assert usage.opencode({"output": 1}, cost=bad)[5:7] == (None, ("cost",))


class TestMerging:
    def test_b3_growing_counts(self):
        """B-3, B-4: a streamed answer repeats its usage; the maximum per member counts, once."""
        lines = [{"input_tokens": 3, "output_tokens": number} for number in (1, 40, 87, 40)]
        assert merge_max(lines) == {"input_tokens": 3, "output_tokens": 87}

    def test_nested_and_others(self):
        """Objects are merged member by member; of what is no number the last wins, and a number wins over it."""
        merged = merge_max(
            [
                {"a": {"b": 5, "c": "x", "d": None}, "tier": "standard", "n": None, "m": 1},
                "no object",
                {"a": {"b": 2, "c": "y"}, "tier": "batch", "n": 4, "m": "high"},
                {"a": None, "tier": None},
            ]
        )
        assert merged == {"a": {"b": 5, "c": "y", "d": None}, "tier": "batch", "n": 4, "m": 1}

    def test_natives_stay(self):
        """The objects that are merged are not changed."""
        natives = [{"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}]
        merge_max(natives)
        assert natives == [{"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}]

    def test_deep(self):
        """Nesting of 90 levels is kept, without looking into all of it."""
        deep = value = {}
        for _ in range(90):
            value["a"] = value = {}
        value["a"] = 5
        assert merge_max([deep, deep]) == deep

    @settings(max_examples=50)
    @given(st.lists(NATIVES, max_size=4))
    def test_order_of_numbers(self, natives):
        """In whatever order the lines come, the numbers are the same."""
        counts = [{name: value for name, value in native.items() if type(value) is int} for native in natives]
        assert merge_max(counts) == merge_max(reversed(counts))

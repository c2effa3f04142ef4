"""Usage of Claude's responses: once, as the maximum of its lines."""

from __future__ import annotations

from support.claude_logs import SID, USAGE, assistant, call, text, user
from support.native_logs import import_files, import_lines, to_bytes


def usage(output: int, **members) -> dict:
    """Return a usage with this output."""
    return {**USAGE, "output_tokens": output, **members}


def imported(*lines):
    """Import a log and check that it is sound."""
    found = import_lines(list(lines), "claude-jsonl")
    found.assert_sound()
    return found


def test_a_streamed_response_counts_its_maximum():
    """B-3: of growing usage in the lines of one response the maximum holds, not the first line."""
    found = imported(
        user(1, "go"),
        assistant(2, [{"type": "thinking", "thinking": "", "signature": "s"}], 1, usage=usage(1)),
        assistant(3, "text", 2, usage=usage(87)),
        assistant(4, [call("c", "Bash")], 3, usage=usage(40)),
    )
    counts = found.counts()
    assert (counts["responses"], counts["output"], counts["input"], counts["cached"]) == (1, 87, 1103, 1000)
    told = found.dialogs[1]["token_usage"]
    assert (told["output"], told["native"]["output_tokens"]) == (87, 87)


def test_repeated_usage_is_not_added():
    """B-4: lines that repeat a response's usage count once, on its first text."""
    found = imported(user(1, "go"), *(assistant(n, f"part {n}", n - 1) for n in range(2, 8)))
    assert found.counts()["input"] == 1103
    assert [bool("token_usage" in dialog) for dialog in found.dialogs] == [False, True] + [False] * 5


def test_a_response_without_text_has_a_token_count():
    """D-LOG-02: its usage is a token-count event of scope response."""
    found = imported(user(1, "go"), assistant(2, [call("c", "Bash")], 1), assistant(3, None, 2, id="msg_2"))
    counts = found.events("token-count")
    assert [event["data"]["response_id"] for event in counts] == ["msg_1", "msg_2"]
    assert all(event["data"]["scope"] == "response" for event in counts)
    assert found.counts()["responses"] == 2


def test_responses_whose_lines_alternate():
    """Lines of two responses in any order give each its maximum, and text that comes late its usage."""
    found = imported(
        user(1, "go"),
        assistant(2, [call("a", "Bash")], 1, id="A", usage=usage(5)),
        assistant(3, "b", 2, id="B", usage=usage(7)),
        assistant(4, "a", 3, id="A", usage=usage(50)),
        assistant(5, [call("b", "Bash")], 4, id="B", usage=usage(70)),
        assistant(6, [call("c", "Bash")], 5, id="A", usage=usage(6)),
    )
    counts = found.counts()
    assert (counts["responses"], counts["output"], counts["input"]) == (2, 120, 2206)
    assert [dialog.get("token_usage", {}).get("output") for dialog in found.dialogs] == [None, 70, 50]
    assert not found.events("token-count")


def test_zero_usage_is_no_response():
    """A usage of zeros counts nothing and is kept."""
    found = imported(user(1, "go"), assistant(2, "a", 1, usage={"input_tokens": 0, "output_tokens": 0}))
    assert found.counts()["responses"] == 0
    assert found.events("token-count")[0]["data"]["native"] == {"input_tokens": 0, "output_tokens": 0}


def test_costs_of_old_versions():
    """`costUSD` of 1.x is the cost of the response, the largest of its lines."""
    found = imported(user(1, "go"), assistant(2, "a", 1, costUSD=0.01), assistant(3, "b", 2, costUSD=0.02))
    assert found.dialogs[1]["token_usage"]["cost"] == 0.02


def test_the_same_response_in_another_session_counts_once(tmp_path):
    """An answer copied into another session under new ids is kept there and not counted again."""
    other = "aaaaaaaa-0000-4000-8000-000000000009"
    copy = [{**line, "sessionId": other} for line in (user(11, "go"), assistant(12, "a", 11))]
    places = [tmp_path / f"{SID}.jsonl", tmp_path / f"{other}.jsonl"]
    places[0].write_bytes(to_bytes([user(1, "go"), assistant(2, [text("a")], 1)]))
    places[1].write_bytes(to_bytes(copy))
    found = import_files(places, "claude-jsonl")
    found.assert_sound()
    assert found.counts()["responses"] == found.codes["usage-repeated"] == 1
    assert found.bodies == ["go", "a", "go", "a"]

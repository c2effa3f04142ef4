"""Token usage of Codex: of responses, from usage records or token counts, each response once.

Source: native-logs.md 4.3 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from onrecord.record.logs import event_types
from onrecord.record.logs.codex.thread import Line, Thread
from onrecord.record.logs.usage import Usage, codex

_COUNTS = (
    "prompt",
    "completion",
    "prompt_tokens",
    "completion_tokens",
    "input_tokens",
    "output_tokens",
)


def usage_record(thread: Thread, line: Line) -> None:
    """Map a `token_usage_record`: the usage of the response that ended just before it."""
    payload = line.payload
    native = payload.get("usage")
    if type(native) is not dict:
        thread.odd(line, "token_usage_record")
        return
    response = payload.get("response_id")
    if type(response) is str and response:
        mark = hash(response)
        if mark in thread.responses:
            thread.trace.duplicate(line.record, "usage-repeated", of="the usage of its response", report=True)
            return
        thread.responses.add(mark)
    _spent(thread, line, native, "token_usage_record")


def token_count(thread: Thread, line: Line) -> None:
    """Map a `token_count`, which may repeat the one before and carries the rate limits."""
    payload = line.payload
    info = payload.get("info")
    usage_from = thread.found.usage_from
    if usage_from is not None and line.record.number >= usage_from:
        if not _limits_changed(thread, line):
            thread.twin(line, "the usage record")
        return
    if type(info) is dict:
        total, last = info.get("total_token_usage"), info.get("last_token_usage")
        before = thread.total
        if type(total) is dict:
            thread.total = total
            if total == before:
                _repeated(thread, line)
                return
        if type(last) is dict:
            _spent(thread, line, last, "token_count")
        elif type(total) is dict:
            thread.trace.findings.count(
                "usage-from-totals", record=line.record.number, action="difference of the totals taken"
            )
            _spent(thread, line, difference(total, before), "token_count")
        elif any(name in info for name in _COUNTS):
            _spent(thread, line, info, "token_count")
        else:
            thread.odd(line, "token_count")
    elif type(payload.get("usage")) is dict:
        _spent(thread, line, payload["usage"], "token_count")
    elif info is None:
        _see_limits(thread, payload)
        thread.told(line, event_types.RATE_LIMITS)
    else:
        thread.odd(line, "token_count")


def pass_over(thread: Thread, payload: Mapping[str, Any]) -> None:
    """Note the total of a token count that is a copy, because the next one goes on from it."""
    info = payload.get("info")
    if type(info) is dict and type(info.get("total_token_usage")) is dict:
        thread.total = info["total_token_usage"]


def difference(total: Mapping[str, Any], before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what was spent between two totals. Totals that go down started anew."""
    spent: dict[str, Any] = dict(total)
    for name, number in total.items():
        earlier = (before or {}).get(name)
        if type(number) is int and type(earlier) is int and not isinstance(number, bool):
            if number < earlier:
                return dict(total)
            spent[name] = number - earlier
    return spent


def _spent(thread: Thread, line: Line, native: Mapping[str, Any], name: str) -> None:
    """Put the usage of a response on its first text; one without text gets a token-count event (D-LOG-02, 03)."""
    usage: Usage = codex(native)
    session, payload = thread.session, line.payload
    if not usage.is_consistent:
        thread.trace.findings.add(
            "usage-inconsistent", record=line.record.number, action="our sum stands; native values kept"
        )
    _see_limits(thread, payload)
    entry = thread.entry(line, payload.get("id"))
    text, thread.first_text = thread.first_text, None
    if text is not None and not usage.is_empty:
        session.attach_usage(text, usage, native)
        entry.event(name, payload, rest=line.more)
        return
    kept = {key: value for key, value in payload.items() if key not in ("type", "usage", "response_id")}
    entry.token_count(
        "response",
        usage,
        native,
        response_id=payload.get("response_id"),
        counted=not usage.is_empty,
        rest={**kept, **line.more},
    )


def _repeated(thread: Thread, line: Line) -> None:
    """A token count whose total is that of the one before; its rate limits may be news."""
    if _limits_changed(thread, line):
        thread.trace.findings.add("usage-repeated", record=line.record.number, action="rate limits kept")
    else:
        thread.trace.duplicate(line.record, "usage-repeated", of="the token count before", report=True)


def _limits_changed(thread: Thread, line: Line) -> bool:
    """Keep rate limits that were not told before, although the rest of the record is a duplicate."""
    if not _see_limits(thread, line.payload):
        return False
    limits = line.payload.get("rate_limits")
    thread.entry(line).event(event_types.RATE_LIMITS, {"rate_limits": limits}, rest=line.more)
    return True


def _see_limits(thread: Thread, payload: Mapping[str, Any]) -> bool:
    """Note the rate limits of a record; say whether they hold anything that was not told before."""
    limits = payload.get("rate_limits")
    if type(limits) is not dict or all(value is None or type(value) is str for value in limits.values()):
        return False
    mark = hash(orjson.dumps(limits))
    if mark == thread.limits:
        return False
    thread.limits = mark
    return True

"""The tables of events: vCon core, tool-invocation and ai_agent, one column per type.

The levels are those of `tables`, and two more: N is not looked at, E is not one of a closed object's members. Session
members are checked apart, since they may stand under two names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from onrecord.base.namespaces import AI_AGENT_EXTENSION, TI_EVENT_TYPES
from onrecord.record.checks.tables import Table, read_table

_EVENT_KINDS: Final = """
    type            | string               | O
    time            | date                 | O
    party           | index parties        | O
    session         | one-or-more sessions | -
    sessions        | one-or-more sessions | -
    dialog          | index dialog         | -
    button          | string               | -
    transferee      | index parties        | -
    transfer_target | index parties        | -
    consultation    | index sessions       | -
    target_session  | index sessions       | -
    decision        | enum decision        | -
    policy_life     | enum policy-life     | -
    operation       | identifier           | -
    reason          | string               | -
    operation_id    | identifier           | -
    attempt         | attempt              | -
    server          | identifier           | -
    tool            | identifier           | -
    body            | any                  | -
    encoding        | string               | -
    url             | url                  | -
    content_hash    | content-hash         | -
    mediatype       | mediatype            | -
    attachment      | one-or-more attachments | -
    tool_name       | identifier           | -
    input           | any                  | -
    call_id         | identifier           | -
    output          | any                  | -
    status          | string               | -
    is_error        | boolean              | -
    content         | any                  | -
    encrypted       | string               | -
    subject         | string               | -
    event_type      | identifier           | -
    data            | object               | -
    entry_id        | identifier           | -
    parent_id       | identifier           | -
"""
_CORE_EVENTS: Final = """
              | join keydown consultation-start blind-transfer consultative-transfer transfer-abandoned
type            | M M M M M M
time            | M M M M M M
party           | M M M M M M
dialog          | O O X X X X
button          | X M X X X X
transferee      | X X M M M M
transfer_target | X X M M M O
consultation    | X X M X M O
target_session  | X X X M M X
"""
_TI_EVENTS: Final = """
              | once standing once-other standing-other unclear tool-invocation tool-pending tool-progress tool-timeout
type            | M M M M M M M M M
time            | M M M M M M M M M
party           | M M M M M M M M M
decision        | M M M M M X X X X
policy_life     | M M M M M X X X X
operation       | M M M M M X X X X
reason          | O O N N O X X X X
operation_id    | M X M X - M M M M
attempt         | M X M X - M M M M
server          | M M N N - M X X X
tool            | M O N N - M X X X
body            | X X N N - C C C C
encoding        | X X N N - C C C C
url             | X X N N - C C C C
content_hash    | X X N N - C C C C
mediatype       | X X N N - C C C C
attachment      | X X N N - O O O O
"""
_AI_EVENTS: Final = """
              | tool-call tool-result reasoning system-event
type            | M M M M
time            | M M M M
party           | M M M M
tool_name       | M X X X
input           | M X X X
call_id         | O O X X
output          | X M X X
status          | X O X X
is_error        | X O X X
content         | X X M X
encrypted       | X X O X
subject         | X X O X
event_type      | X X X M
data            | X X X O
entry_id        | O O O O
parent_id       | O O O O
dialog          | X X X X
button          | X X X X
transferee      | X X X X
transfer_target | X X X X
consultation    | X X X X
target_session  | X X X X
"""
MERGED_COLUMN: Final = "merged tool-result"
"""Column of ai_agent for an event that is one of tool-invocation as well, whose members belong there (D-68)."""

DECISION_COLUMNS: Final = frozenset(["once", "standing", "once-other", "standing-other", "unclear"])
"""Columns of policy decisions: how long they last, for the operation defined or another, or neither."""

CONTENT_LEVELS: Final[Mapping[str, str]] = {
    name: "O" if name in ("tool-pending", "tool-timeout", "tool-cancel") else "S"
    for name in TI_EVENT_TYPES
    if name != "policy-decision"
}
"""Whether a tool event should have content (TI tables 4 and 5)."""

_SESSIONS: Final = frozenset(["session", "sessions"])
_SAME_COLUMN: Final = {
    **dict.fromkeys(("drop", "hold", "unhold", "mute", "unmute"), "join"),
    "keyup": "keydown",
    "tool-cancel": "tool-timeout",
    **dict.fromkeys(
        (
            "tool-input",
            "tool-input-response",
            "tool-result",
            "tool-failure",
            "tool-error",
            "tool-denied",
        ),
        "tool-progress",
    ),
}


def _columns(text: str) -> dict[str, dict[str, str]]:
    lines = [line.split("|") for line in text.strip().splitlines()]
    variants = lines[0][-1].split()
    levels: dict[str, dict[str, str]] = {variant: {} for variant in variants}
    for name, letters in lines[1:]:
        for variant, letter in zip(variants, letters.split(), strict=True):
            levels[variant][name.strip()] = letter
    return levels


def _closed(column: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return a column that admits no other member of the drafts (record.md 3.1)."""
    return {**{name: "E" for name in names if name not in _SESSIONS}, **column}


def _events() -> Table:
    kinds = read_table("Event", _EVENT_KINDS)
    core, ti, open_ai = _columns(_CORE_EVENTS), _columns(_TI_EVENTS), _columns(_AI_EVENTS)
    ai = {name: _closed(column, kinds.kinds) for name, column in open_ai.items()}
    ai[MERGED_COLUMN] = open_ai["tool-result"]
    levels = {f"core {name}": column for name, column in core.items()}
    levels.update({f"tool-invocation {name}": column for name, column in ti.items()})
    levels.update({f"{AI_AGENT_EXTENSION} {name}": column for name, column in ai.items()})
    for name, column in _SAME_COLUMN.items():
        owner = "tool-invocation" if column.startswith("tool-") else "core"
        levels[f"{owner} {name}"] = levels[f"{owner} {column}"]
    return Table("Event", kinds.kinds, levels)


EVENT: Final = _events()
"""Events: a variant is the kind of the event and its type, or for policy decisions once, standing and so on."""

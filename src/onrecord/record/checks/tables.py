"""The tables of vCon core 0.5.0 and of ai_agent's objects, as data: what a later version changes, it changes here.

One line is one member: name, kind of its value (see `values`), level in each column.
Levels: M must be present, S should, O may, X must not, D is discouraged, C follows the content rules, A must be present
if there are dialogs (record.md D-11), - says nothing. What older versions say otherwise is in `profiles`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from onrecord.record.vcon.names import CONTENT_ALIASES, TRANSFER_ALIASES, VCON_ALIASES

HISTORY_ALIASES: Final = {"dtmf": "button"}
"""Member of a Party_History of core-01 (record.md 1.3)."""


@dataclass(frozen=True, slots=True)
class Table:
    """The members of one kind of object.

    `kinds` maps a member to the kind of its value, `levels` a variant (a column) to the level of each member.
    `inner` maps members that are objects of their own, or arrays of them ("Range[]"), to the table they follow.
    `aliases` are names of other versions for a member. A `closed` object admits no other member, an `is_open` one any.
    `remarks` are findings, code and data, that a name alone gives in the version whose table this is; `spelled` are the
    names that its members have in that version, where they are not those of the table.
    """

    name: str
    kinds: Mapping[str, str]
    levels: Mapping[str, Mapping[str, str]]
    inner: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    ai_agent: frozenset[str] = frozenset()
    closed: bool = False
    is_open: bool = False
    remarks: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    spelled: Mapping[str, str] = field(default_factory=dict)


def read_table(
    name: str,
    text: str,
    *,
    columns: str = "",
    aliases: Mapping[str, str] | None = None,
    ai_agent: str = "",
    closed: bool = False,
    is_open: bool = False,
) -> Table:
    """Read a table from its text: one member a line, a level for each of `columns`, or one for all.

    Of `aliases` those are kept that stand for a member of the table.
    """
    variants = columns.split() or [""]
    kinds: dict[str, str] = {}
    inner: dict[str, str] = {}
    levels: dict[str, dict[str, str]] = {variant: {} for variant in variants}
    for line in filter(None, map(str.strip, text.splitlines())):
        member, kind, letters = (part.strip() for part in line.split("|"))
        if kind[0].isupper():
            inner[member] = kind
            kind = "any"
        kinds[member] = kind
        row = letters.split()
        for variant, letter in zip(variants, row * len(variants) if len(row) == 1 else row, strict=True):
            levels[variant][member] = letter
    return Table(
        name=name,
        kinds=kinds,
        levels=levels,
        inner=inner,
        aliases={name: member for name, member in (aliases or {}).items() if member in kinds},
        ai_agent=frozenset(ai_agent.split()),
        closed=closed,
        is_open=is_open,
    )


VCON: Final = read_table(
    "vCon",
    """
    uuid            | any          | -
    created_at      | date         | -
    updated_at      | date         | O
    vcon            | string       | -
    extensions      | strings      | O
    critical        | strings      | O
    subject         | string       | O
    redacted_from   | Redacted     | O
    amended_from    | Amended      | O
    parties         | any          | O
    sessions        | any          | O
    events          | any          | O
    dialog          | any          | O
    analysis        | any          | O
    attachments     | any          | O
    group           | any          | -
    recording_agent | Recording_Agent  | O
    vcs             | VCS_Context      | O
    file_attribution | File_Attribution | O
    """,
    aliases=VCON_ALIASES,
    ai_agent="recording_agent vcs file_attribution",
)
PARTY: Final = read_table(
    "Party",
    """
    tel          | string        | O
    sip          | string        | O
    stir         | string        | O
    mailto       | string        | O
    name         | string        | O
    did          | did           | O
    validation   | string        | O
    gmlpos       | string        | O
    civicaddress | civic-address | O
    uuid         | string        | O
    type         | enum party-type | O
    org          | string        | O
    dept         | string        | O
    agent_meta   | Agent_Meta    | O
    """,
    ai_agent="agent_meta",
)
SESSION: Final = read_table(
    "Session",
    """
    start            | date              | S
    duration         | duration          | O
    parties          | indices parties   | S
    sessions         | Session_Reference[] | O
    dialog           | indices dialog    | O
    session_id       | session-id        | O
    agent_session_id | identifier        | O
    format           | string            | O
    environment      | Environment       | O
    """,
    ai_agent="agent_session_id format environment",
)
DIALOG: Final = read_table(
    "Dialog",
    """
    type            | enum dialog-type | M M M M M
    start           | date             | S S S O S
    duration        | duration         | O O O - O
    parties         | channels parties | S S S X O
    originator      | index parties    | O O O X O
    recordings      | filled dialog    | X M X X X
    recording_set   | index dialog     | O X X X X
    mediatype       | mediatype        | C X C X X
    filename        | string           | O X O X X
    body            | any              | C X C X X
    url             | url              | C X C X X
    encoding        | string           | C X C X X
    content_hash    | content-hash     | C X C X X
    disposition     | enum disposition | D D D D M
    session_id      | session-ids      | O O O X O
    party_history   | Party_History[]  | O O O X O
    transferee      | index parties    | X X X S X
    transferor      | index parties    | X X X S X
    transfer_target | index parties    | X X X O X
    original        | index dialog     | X X X S X
    target_dialog   | index dialog     | X X X S X
    consultation    | index dialog     | X X X O X
    application     | string           | O O O O O
    message_id      | string           | O X O X X
    model_id        | string           | - - O - -
    token_usage     | Token_Usage      | - - O - -
    entry_id        | identifier       | - - O - -
    parent_id       | identifier       | - - O - -
    """,
    columns="recording recording-set text transfer incomplete",
    aliases={**CONTENT_ALIASES, **TRANSFER_ALIASES},
    ai_agent="model_id token_usage entry_id parent_id",
)
CONTENT_TYPES: Final = ("recording", "text")
"""Types of dialogs that have content."""

ATTACHMENT: Final = read_table(
    "Attachment",
    """
    start        | date          | M
    party        | index parties | M
    dialog       | index dialog  | A
    purpose      | string        | O
    mediatype    | mediatype     | C
    filename     | string        | O
    body         | any           | C
    url          | url           | C
    encoding     | string        | C
    content_hash | content-hash  | C
    """,
    aliases=CONTENT_ALIASES,
)
ANALYSIS: Final = read_table(
    "Analysis",
    """
    type         | enum analysis-type       | M
    vendor       | string                   | M
    product      | string                   | O
    schema       | string                   | O
    dialog       | one-or-more dialog       | O
    attachment   | one-or-more attachments  | O
    mediatype    | mediatype                | C
    filename     | string                   | O
    body         | any                      | C
    url          | url                      | C
    encoding     | string                   | C
    content_hash | content-hash             | C
    """,
    aliases=CONTENT_ALIASES,
)

_OBJECTS: Final = (
    read_table(
        "Session_Reference",
        """
        session     | index sessions      | M
        type        | enum reference-type | S
        description | string              | O
        """,
    ),
    read_table(
        "Party_History",
        """
        party  | index parties | M
        time   | date          | M
        event  | party-event   | M
        button | string        | O
        """,
        aliases=HISTORY_ALIASES,
    ),
    read_table(
        "Redacted",
        """
        type         | string       | M
        uuid         | string       | O
        url          | url          | O
        content_hash | content-hash | O
        """,
        aliases=CONTENT_ALIASES,
    ),
    read_table(
        "Amended",
        """
        uuid         | string       | O
        url          | url          | O
        content_hash | content-hash | O
        """,
        aliases=CONTENT_ALIASES,
    ),
    read_table("Recording_Agent", "name | string | M\nversion | string | O", is_open=True),
    read_table(
        "VCS_Context",
        "type | string | M\nrevision | string | O\nbranch | string | O\nrepository | string | O",
        is_open=True,
    ),
    read_table(
        "Agent_Meta",
        """
        model_id       | string  | M
        model_provider | string  | M
        models         | strings | O
        cli_name       | string  | O
        cli_version    | string  | O
        """,
        is_open=True,
    ),
    read_table(
        "Environment",
        "working_dir | string | M\nvcs | VCS_Context | O\nsandboxes | strings | O",
        is_open=True,
    ),
    read_table(
        "Token_Usage",
        """
        input     | uint   | O
        output    | uint   | O
        cached    | uint   | O
        reasoning | uint   | O
        total     | uint   | O
        cost      | number | O
        """,
        is_open=True,
    ),
    read_table("File_Attribution", "files | File[] | M", closed=True),
    read_table("File", "path | string | M\nconversations | File_Conversation[] | M", closed=True),
    read_table(
        "File_Conversation",
        """
        url         | uri         | O
        contributor | Contributor | O
        ranges      | Range[]     | M
        related     | Resource[]  | O
        """,
        closed=True,
    ),
    read_table(
        "Range",
        """
        start_line       | uint        | M
        end_line         | uint        | M
        content_hash     | string      | O
        content_hash_alg | string      | O
        contributor      | Contributor | O
        """,
        closed=True,
    ),
    read_table("Contributor", "type | enum contributor-type | M\nmodel_id | string | O", closed=True),
    read_table("Resource", "type | string | M\nurl | uri | M", closed=True),
)
OBJECTS: Final[Mapping[str, Table]] = {table.name: table for table in _OBJECTS}
"""Tables of the objects that stand inside of others, by name."""

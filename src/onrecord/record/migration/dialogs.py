"""Members of dialogs that had another shape: session ids in one String, indices in arrays, -1 for "not known".

Source: record.md 1.3.
"""

from __future__ import annotations

from typing import Any, Final

from onrecord.record.migration.draft import Draft
from onrecord.record.vcon.names import OLD_TRANSFER_NAMES, TRANSFER_ALIASES
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.session_ids import REMOTE, SessionId
from onrecord.record.vcon.views import index_of

_PARTY_ROLES: Final = ("transferee", "transferor", "transfer_target")
_CALL_ROLES: Final = ("original", "consultation", "target_dialog")
TRANSFER_ROLES: Final = (*_PARTY_ROLES, *_CALL_ROLES)
"""Members of a transfer dialog: three indices of parties, three of dialogs."""

Unknown = set[tuple[int, str]]
"""Dialogs with the roles that they say are not known."""


def convert_dialogs(draft: Draft) -> Unknown:
    """Convert the members of each dialog; return which roles of which transfer dialog were given as -1."""
    unknown: Unknown = set()
    for index, dialog in draft.objects("dialog"):
        pointer = f"/dialog/{index}"
        if dialog.get("session_id") is not None:
            dialog["session_id"] = _convert_session_id(draft, dialog["session_id"], f"{pointer}/session_id")
        if dialog.get("type") == "transfer":
            for role in TRANSFER_ROLES:
                old = OLD_TRANSFER_NAMES.get(role, role)
                for name in dict.fromkeys((old, role)):
                    if name in dialog and _convert_index(draft, dialog, pointer, name):
                        unknown.add((index, role))
            for old, new in TRANSFER_ALIASES.items():
                draft.give_name(dialog, pointer, old=old, new=new)
    return unknown


def _convert_index(draft: Draft, dialog: dict[str, Any], pointer: str, name: str) -> bool:
    """Convert one index of a transfer dialog; say whether it stood for "not known"."""
    value = dialog[name]
    place = pointer + step(name)
    single = value[0] if type(value) is list and len(value) == 1 else value
    if index_of(single) == -1:
        del dialog[name]
        draft.note("index-unknown-dropped", place, value=value)
        return True
    if value is None or value == []:
        draft.drop_empty(dialog, pointer, name)
    elif type(value) is list and index_of(single) is not None:
        dialog[name] = single
        draft.note("index-unwrapped", place)
    return False


def _convert_session_id(draft: Draft, value: Any, pointer: str) -> Any:
    """Return a session id with its Strings split; arrays have the shape of the parties."""
    if type(value) is list:
        return [
            item if item is None else _convert_session_id(draft, item, f"{pointer}/{position}")
            for position, item in enumerate(value)
        ]
    if type(value) is dict:
        return value
    split = SessionId.read(value)
    if split is None:
        draft.note("session-id-kept", pointer)
        return value
    draft.note("session-id-split", pointer, spelling="pair" if REMOTE in value else "local")
    return split._asdict()


def joined_session_id(value: Any, spelling: Any) -> str:
    """Undo the split of a session id. Raises `KeyError`, `TypeError` or `ValueError` for another value."""
    local, remote = value["local"], value["remote"]
    if not isinstance(local, str) or not isinstance(remote, str) or spelling not in ("pair", "local"):
        raise ValueError("not a split session id")
    return local + REMOTE + remote if spelling == "pair" else local

"""Members of the vCon, its parties, sessions, dialogs, attachments and analyses: presence, types, values, names."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.checks.content import check_content
from onrecord.record.checks.context import ARRAYS, Context
from onrecord.record.checks.engine import OLD_HASH, Engine
from onrecord.record.checks.proofs import Proofs
from onrecord.record.checks.tables import ANALYSIS, ATTACHMENT, CONTENT_TYPES, DIALOG, PARTY, SESSION, VCON
from onrecord.record.checks.values import ENUMS, type_name
from onrecord.record.vcon.event_types import KEY_EVENTS, SUPPORTED_EXTENSIONS
from onrecord.record.vcon.names import KEY_EVENT_ALIASES
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.versions import ALIASES, CRITICAL_MEMBERS, KNOWN

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", re.ASCII)
_REFERENCES: Final = (("redacted_from", "redacted"), ("amended_from", "amended", "appended"))
_PLACEHOLDER_ARRAYS: Final = ("dialog", "analysis", "attachments", "events")
_PLACEHOLDER_DIALOG: Final = frozenset(["type", "disposition"])


def check_vcon(context: Context, engine: Engine) -> None:
    """Check the top level: extensions, identity, dates, names of versions, references to earlier versions.

    With an unsupported extension in `critical` nothing else is looked at.
    """
    vcon = context.vcon
    _check_extensions(context)
    if context.collector.has("critical-unsupported"):
        return
    engine.run(VCON.name, "", dict(vcon), "")
    _check_identity(context)
    _check_version_member(context)
    _check_references(context, engine)
    if vcon.get("group") not in (None, [], {}, ""):
        context.add("group-present", "/group")
    if all(vcon.get(name) is None for name in ("parties", "dialog", "analysis", "attachments")):
        context.add("conversation-empty", "")
    if (context.sizes["dialog"] or context.sizes["events"]) and not context.sizes["sessions"]:
        context.add("session-required", "/sessions")
    for name in ARRAYS:
        _check_elements(context, name)


def _check_identity(context: Context) -> None:
    add, vcon = context.add, context.vcon
    own = vcon.get("uuid")
    if own in (None, ""):
        add("uuid-missing", "/uuid")
    elif type(own) is not str:
        add("type-mismatch", "/uuid", data={"expected": "String", "found": type_name(own)})
    elif not _UUID.fullmatch(own):
        add("uuid-invalid", "/uuid")
    elif uuid.UUID(own).version != 8:
        add("uuid-version", "/uuid")
    if vcon.get("created_at") is None:
        add("created-at-missing", "/created_at")
    created, updated = (context.instants.ns(vcon.get(name)) for name in ("created_at", "updated_at"))
    if created is not None and updated is not None and updated < created:
        add("updated-before-created", "/updated_at")


def _check_version_member(context: Context) -> None:
    """Check the member that names the version. A file that leaves it out is held to the version its names tell.

    Each version says in its profile which of these findings it has.
    """
    stated = context.vcon.get("vcon")
    if stated is None:
        if context.forced:
            context.add("version-missing", "")
    elif isinstance(stated, str) and stated not in KNOWN:
        data = {"read_as": ALIASES[stated]} if stated in ALIASES else None
        context.add("version-unknown", "/vcon", data=data)
    else:
        context.add("version-member-present", "/vcon")


def _check_extensions(context: Context) -> None:
    for index, name in _named(context.vcon.get("extensions")):
        if name not in SUPPORTED_EXTENSIONS:
            context.add("extension-unknown", f"/extensions/{index}")
    for member in CRITICAL_MEMBERS:
        for index, name in _named(context.vcon.get(member)):
            if name not in SUPPORTED_EXTENSIONS:
                context.add("critical-unsupported", f"/{member}/{index}")
            elif name not in context.extensions:
                context.add("critical-not-listed", f"/{member}/{index}")


def _named(value: Any) -> list[tuple[int, str]]:
    if not isinstance(value, list):
        return []
    return [(index, name) for index, name in enumerate(value) if isinstance(name, str)]


def _check_references(context: Context, engine: Engine) -> None:
    vcon = context.vcon
    found: list[str] = []
    for names in _REFERENCES:
        here = [name for name in names if vcon.get(name) not in (None, {})]
        found += here[:1]
        if len(here) > 1:
            context.add("prior-name-conflict", step(names[0]))
        for name in here:
            if isinstance(vcon[name], dict):
                _check_reference(context, vcon[name], name, may_be_inline=engine.knows("Amended", "body"))
    for name in _REFERENCES[0]:
        if vcon.get(name) == {}:
            context.add("redacted-empty", step(name))
    if len(found) > 1:
        context.add("prior-both", "")


def _check_reference(
    context: Context, reference: Mapping[str, Any], name: str, *, may_be_inline: bool
) -> None:
    ways = ("uuid", "url", "body") if may_be_inline else ("uuid", "url")
    if name not in _REFERENCES[0] and not any(reference.get(way) for way in ways):
        context.add("amended-reference-missing", step(name))
    hashed = reference.get("content_hash") is not None or all(
        reference.get(part) is not None for part in OLD_HASH
    )
    if reference.get("url") is not None and not hashed:
        context.add("content-hash-missing", step(name))


def _check_elements(context: Context, name: str) -> None:
    """Check that an array is one, and that its elements are objects. `{}` is a placeholder, null is not."""
    items = context.vcon.get(name)
    if items is None:
        return
    if not isinstance(items, list):
        context.add("type-mismatch", step(name), data={"expected": "Array", "found": type_name(items)})
        return
    placeholder = "placeholder" if context.redacted else "placeholder-not-redacted"
    for index, item in enumerate(items):
        if type(item) is not dict:
            data = {"expected": "Object", "found": type_name(item)}
            context.add("type-mismatch", f"/{name}/{index}", data=data)
        elif not item and name in _PLACEHOLDER_ARRAYS:
            context.add(placeholder, f"/{name}/{index}")


def check_parties(context: Context, engine: Engine) -> None:
    """Check the parties."""
    for index, party in context.elements("parties"):
        pointer = f"/parties/{index}"
        engine.run(PARTY.name, "", party, pointer)
        if party.get("agent_meta") is not None and party.get("type") != "bot":
            context.add("agent-party-type", f"{pointer}/type")


def check_sessions(context: Context, engine: Engine) -> None:
    """Check the members of the sessions; how they hang together is checked in `indexes`."""
    for index, session in context.elements("sessions"):
        engine.run(SESSION.name, "", session, f"/sessions/{index}")


def check_dialogs(context: Context, engine: Engine) -> None:
    """Check the dialogs by the column of their type."""
    for index, dialog in Proofs(context, engine).unproven_dialogs():
        pointer = f"/dialog/{index}"
        kind = dialog.get("type")
        if type(kind) is not str or kind not in DIALOG.levels:
            _check_untyped_dialog(context, engine, dialog, pointer)
            continue
        placeholder = len(dialog) <= 2 and _PLACEHOLDER_DIALOG.issuperset(dialog)
        view = engine.run(DIALOG.name, kind, dialog, pointer, placeholder=placeholder)
        if kind in CONTENT_TYPES:
            check_content(context, view, pointer, expected=not placeholder)
        if "token_usage" in view and view["token_usage"] == {}:
            context.add("token-usage-empty", f"{pointer}/token_usage")
        if "party_history" in view:
            _check_party_history(context, view["party_history"], f"{pointer}/party_history")


def _check_party_history(context: Context, history: Any, pointer: str) -> None:
    """Check that key events name their button, whichever name it has."""
    for index, entry in enumerate(history if type(history) is list else ()):
        if type(entry) is dict and entry.get("button") is None and entry.get("dtmf") is None:
            event = entry.get("event")
            if type(event) is str and KEY_EVENT_ALIASES.get(event, event) in KEY_EVENTS:
                context.add("required-missing", pointer + step(index), data={"parameter": "button"})


def _check_untyped_dialog(context: Context, engine: Engine, dialog: dict[str, Any], pointer: str) -> None:
    kind = dialog.get("type")
    if kind is None:
        context.add("required-missing", pointer, data={"parameter": "type"})
    elif type(kind) is not str:
        data = {"expected": "String", "found": type_name(kind)}
        context.add("type-mismatch", f"{pointer}/type", data=data)
    else:
        context.add("enum-invalid", f"{pointer}/type", data={"allowed": list(ENUMS["dialog-type"])})
    engine.values_only(
        DIALOG.name, {name: value for name, value in dialog.items() if name != "type"}, pointer
    )


def check_attachments(context: Context, engine: Engine) -> None:
    """Check the attachments."""
    for index, attachment in context.elements("attachments"):
        pointer = f"/attachments/{index}"
        view = engine.run(ATTACHMENT.name, "", attachment, pointer)
        check_content(context, view, pointer, expected=True)
        if "dialog" not in view and engine.level(ATTACHMENT.name, "dialog") == "A":
            if context.sizes["dialog"]:
                context.add("required-missing", pointer, data={"parameter": "dialog"})
            else:
                context.add("attachment-dialog-missing", pointer)


def check_analyses(context: Context, engine: Engine) -> None:
    """Check the analyses."""
    for index, analysis in context.elements("analysis"):
        pointer = f"/analysis/{index}"
        view = engine.run(ANALYSIS.name, "", analysis, pointer)
        check_content(context, view, pointer, expected=True, mediatype_severity="warning")


def report_unlisted_extensions(context: Context) -> None:
    """Report extensions whose members or events are used and that `extensions` does not name."""
    for name in sorted(context.used):
        if name not in context.extensions:
            context.add("extension-not-listed", "/extensions", data={"extension": name})

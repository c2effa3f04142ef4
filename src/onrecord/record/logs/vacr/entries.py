"""The entries of a VACR record as Dialogs and Events.

Source: native-logs.md 4.10; AA appendix C.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from onrecord.record.logs import event_types, media
from onrecord.record.logs.sessions import AGENT, USER, Entry
from onrecord.record.logs.usage import Usage, to_token_usage, vacr

_ALWAYS: Final = frozenset(["type", "timestamp", "id", "parent-id", "children"])
_HOMES: Final[Mapping[str, frozenset[str]]] = {
    "user": frozenset(["content", "model-id", "token-usage"]),
    "assistant": frozenset(["content", "model-id", "token-usage"]),
    "tool-call": frozenset(["name", "input", "call-id"]),
    "tool-result": frozenset(["output", "call-id", "status", "is-error"]),
    "reasoning": frozenset(["content", "encrypted", "subject"]),
    "system-event": frozenset(["event-type", "data"]),
}
_COUNTS: Final = ("input", "output", "cached", "reasoning", "total", "cost")


class EntryWriter:
    """Writes one native entry as objects."""

    def __init__(self, entry: Entry, native: Mapping[str, Any], more: Mapping[str, Any]) -> None:
        """`more` are native members that found no home before."""
        self._entry = entry
        self._native = native
        self._type = native.get("type")
        homes = _HOMES.get(self._type) if isinstance(self._type, str) else None
        self._is_known = homes is not None
        self._rest = {
            name: value for name, value in native.items() if name not in _ALWAYS and name not in (homes or ())
        }
        self._rest.update(more)

    def write(self) -> None:
        """Write the entry; one of an unknown type as an event that keeps it whole (D-LOG-26)."""
        if self._is_known and isinstance(self._type, str):
            _WRITERS[self._type](self)
            return
        name = self._type if isinstance(self._type, str) and self._type else "unknown"
        findings = self._entry.trace.findings
        findings.add("unknown-record-type", name=name[:64], action="kept as an event")
        flattened = isinstance(self._native.get("children"), list)
        data = {
            member: value for member, value in self._native.items() if member != "children" or not flattened
        }
        self._entry.event(name, data)

    def _message(self) -> None:
        native, entry = self._native, self._entry
        is_agent = self._type == "assistant"
        model = self._text("model-id") if is_agent else None
        usage = self._usage() if is_agent else None
        if not is_agent:
            self._rest |= {name: native[name] for name in ("model-id", "token-usage") if name in native}
        content = native.get("content")
        blocks = content if isinstance(content, list) else [content]
        first: int | None = None
        for number, block in enumerate(blocks):
            if block is None or block == "":
                continue
            text, left = _text_of(block)
            if text is None:
                self._block(block, number)
                continue
            made = entry.text(
                text, by=AGENT if is_agent else USER, block=number, model=model, rest=self._take(left)
            )
            first = made if first is None else first
        if first is None and model is not None:
            self._rest["model-id"] = model
        if usage is not None:
            self._count(usage, first)
        if entry.first_id is None:
            entry.event(event_types.EMPTY_TEXT, {"role": self._type}, rest=self._take())

    def _block(self, block: Any, number: int) -> None:
        native = block if isinstance(block, dict) else {"value": block}
        kind = native.get("type")
        name = kind if isinstance(kind, str) and kind else "block"
        source = native.get("source")
        holder = source if isinstance(source, dict) else native
        mediatype = holder.get("media_type") or holder.get("mimeType") or holder.get("media-type")
        found = media.medium(mediatype, holder.get("data")) if mediatype is not None else None
        if found is not None:
            left = {member: value for member, value in native.items() if member not in ("source", "data")}
            if holder is source:
                left["source"] = {member: value for member, value in source.items() if member != "data"}
            by = AGENT if self._type == "assistant" else USER
            media.attach(self._entry, found, block=number, native=native, rest=self._take(left), by=by)
            return
        findings = self._entry.trace.findings
        if name in ("block", "text"):
            self._odd("content")
        else:
            findings.add("unknown-block-type", name=name[:64], action="kept as an event")
        self._entry.event(f"block/{name}", native, block=number, rest=self._take())

    def _usage(self) -> Usage | None:
        """Return the usage of a message; one that counts nothing stays among the members without a home."""
        native = self._native.get("token-usage")
        if native is None:
            return None
        usage = vacr(native)
        if not isinstance(native, dict):
            self._odd("token-usage")
        if not isinstance(native, dict) or usage.is_empty:
            self._rest["token-usage"] = native
            return None
        return usage

    def _count(self, usage: Usage, text: int | None) -> None:
        """Write a usage on the first text of the message, or as an event when it has none."""
        native, entry = self._native["token-usage"], self._entry
        if not usage.is_consistent:
            entry.trace.findings.count(
                "usage-inconsistent", record=entry.record.number, action="our sum kept"
            )
        if text is None:
            entry.token_count("response", usage, native, rest=self._take())
        else:
            entry.trace.run.spool.late(text, {"token_usage": token_usage(usage, native)})
            entry.session.add_usage("response", usage)

    def _call(self) -> None:
        if "input" not in self._native:
            self._odd("input")
        self._entry.call(
            self._native.get("name"),
            self._native.get("input"),
            call_id=self._identifier("call-id"),
            rest=self._take(),
        )

    def _result(self) -> None:
        native = self._native
        if "output" not in native:
            self._odd("output")
        status = self._text("status")
        failed = native.get("is-error")
        if failed is True and status != "error":
            if status is not None:
                self._rest["status"] = status
            status = "error"
        elif (failed is not None and type(failed) is not bool) or (failed is False and status == "error"):
            self._rest["is-error"] = failed
        shown, told = media.in_output(self._entry, native.get("output"))
        self._entry.result(
            shown, call_id=self._identifier("call-id"), status=status, rest=self._take(), media=told
        )

    def _reasoning(self) -> None:
        encrypted, subject = self._text("encrypted"), self._text("subject")
        content = self._native.get("content")
        self._entry.reasoning(
            "" if content is None else content, encrypted=encrypted, subject=subject, rest=self._take()
        )

    def _event(self) -> None:
        kind = self._text("event-type")
        data = self._native.get("data")
        if data is not None and not isinstance(data, dict):
            self._odd("data")
        self._entry.event(kind, data, rest=self._take())

    # -- members

    def _take(self, more: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Return the members without a home for the first object, those of a block for each."""
        rest, self._rest = {**self._rest, **(more or {})}, {}
        return rest or None

    def _text(self, name: str) -> str | None:
        """Return a member that must be a text."""
        value = self._native.get(name)
        if value is None or isinstance(value, str):
            return value or None
        self._odd(name)
        self._rest[name] = value
        return None

    def _identifier(self, name: str) -> Any:
        value = self._native.get(name)
        if value is not None and not isinstance(value, str):
            self._odd(name)
            self._rest[name] = value
        return value

    def _odd(self, name: str) -> None:
        self._entry.trace.findings.add(
            "odd-shape", record=self._entry.record.number, action=f"{name} kept as it is"
        )


def token_usage(usage: Usage, native: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Token_Usage of a `token-usage`: its counts in normal form and its other members as they are."""
    is_ours = bool(usage.invalid) or not usage.is_consistent
    made = to_token_usage(usage, dict(native) if is_ours else None) or {}
    return {**{name: value for name, value in native.items() if name not in _COUNTS}, **made}


def _text_of(block: Any) -> tuple[str | None, dict[str, Any] | None]:
    """Return the text of a block and its other members; None for what is no text."""
    if isinstance(block, str):
        return block, None
    if isinstance(block, dict) and block.get("type", "text") == "text" and isinstance(block.get("text"), str):
        return block["text"], {name: value for name, value in block.items() if name not in ("type", "text")}
    return None, None


_WRITERS: Final[Mapping[str, Callable[[EntryWriter], None]]] = {
    "user": EntryWriter._message,  # noqa: SLF001 - the class's own table
    "assistant": EntryWriter._message,  # noqa: SLF001
    "tool-call": EntryWriter._call,  # noqa: SLF001
    "tool-result": EntryWriter._result,  # noqa: SLF001
    "reasoning": EntryWriter._reasoning,  # noqa: SLF001
    "system-event": EntryWriter._event,  # noqa: SLF001
}

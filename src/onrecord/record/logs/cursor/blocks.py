"""Blocks of Cursor's messages as objects (native-logs.md 4.6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from onrecord.record.logs import event_types
from onrecord.record.logs.cursor.user_text import INJECTED, TIMESTAMP, cuts
from onrecord.record.logs.media import in_output
from onrecord.record.logs.reading.values import arguments_of
from onrecord.record.logs.sessions import AGENT, PARENT, USER, Entry, NativeSession
from onrecord.record.logs.trace import Trace

REDACTED: Final = "[REDACTED]"
"""What stands in a text in the place of reasoning that was taken out."""

_CALLS: Final = frozenset(["tool_use", "tool_call", "tool-call"])
_RESULTS: Final = frozenset(["tool_result", "tool-result"])
_REASONING: Final = frozenset(["thinking", "redacted", "redacted_thinking"])


class Blocks:
    """Writes the blocks of a transcript's messages."""

    def __init__(self, trace: Trace, session: NativeSession) -> None:
        self.trace = trace
        self.session = session
        self._prompts: dict[int, str] = trace.run.memory(trace.importer.format).setdefault("prompts", {})
        """Calls of the run that gave a sub-agent its prompt, by hash of the session and the prompt."""
        self._has_prompt = False

    def begin(self, entry: Entry) -> None:
        """Begin the session with its first record."""
        if not self.session.has_begun:
            self.session.begin(entry)

    def time_tag(self, content: Any) -> str | None:
        """Return the text of the first time tag in a user's message."""
        for item in _items(content):
            text = item if isinstance(item, str) else item.get("text") if isinstance(item, dict) else None
            if isinstance(text, str) and f"<{TIMESTAMP}>" in text:
                found = next((cut.text for cut in cuts(text) if cut.tag == TIMESTAMP), None)
                if found is not None:
                    return found
        return None

    def write(
        self, entry: Entry, content: Any, *, role: str, model: str | None, rest: dict[str, Any]
    ) -> None:
        """Write the blocks of one message; `rest` goes to the first object."""
        if model is not None and not any(
            isinstance(item, str) or (isinstance(item, dict) and item.get("type") == "text")
            for item in _items(content)
        ):
            rest = rest | {"model": model}
        writing = _Writing(self, entry, role=role, model=model, rest=rest)
        for number, item in enumerate(_items(content)):
            writing.number = number
            writing.block(item)
        writing.finish(content)

    def spoke(self, text: str) -> None:
        """Look for the call that gave a sub-agent its opening prompt."""
        session = self.session
        if self._has_prompt or not session.is_child or session.parent_id is None:
            return
        self._has_prompt = True
        call = self._prompts.get(hash((session.parent_id, text.strip())))
        if call is not None:
            session.child_of(session.parent_id, call_id=call)

    def called(self, call_id: str, input: Any) -> None:
        """Note a call that may give a prompt to a sub-agent."""
        prompt = input.get("prompt") if isinstance(input, dict) else None
        if isinstance(prompt, str):
            self._prompts.setdefault(hash((self.session.agent_session_id, prompt.strip())), call_id)


class _Writing:
    """One message on its way."""

    def __init__(
        self, blocks: Blocks, entry: Entry, *, role: str, model: str | None, rest: dict[str, Any]
    ) -> None:
        self._blocks = blocks
        self._entry = entry
        self._trace = blocks.trace
        self._role = role
        self._model = model
        self._rest = rest
        self._by = AGENT if role == "assistant" else PARENT if blocks.session.is_child else USER
        self._count = 0
        self.number = 0

    def _options(self, rest: Mapping[str, Any] | None = None) -> dict[str, Any]:
        options = {"block": self.number, "rest": {**self._rest, **(rest or {})}}
        self._rest = {}
        self._count += 1
        return options

    def block(self, item: Any) -> None:
        """Write one block."""
        if isinstance(item, str):
            self._text(item, {})
            return
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(kind, str):
            self._odd("block/content", item)
        elif kind == "text":
            if isinstance(item.get("text"), str):
                self._text(item["text"], _others(item, "type", "text"))
            else:
                self._odd("block/text", item)
        elif kind in _CALLS and self._role == "assistant":
            self._call(item, kind)
        elif kind in _RESULTS:
            self._result(item, kind)
        elif kind in _REASONING:
            self._reasoning(item, kind)
        else:
            self._trace.findings.add("unknown-block-type", name=kind[:64], action="kept as system-event")
            self._entry.event(f"block/{kind}", item, **self._options())

    def _odd(self, kind: str, item: Any) -> None:
        self._trace.findings.add("odd-shape", record=self._entry.record.number, action=f"kept as {kind}")
        self._entry.event(kind, item, **self._options())

    def finish(self, content: Any) -> None:
        """Give a message without blocks an object."""
        if not self._count:
            self._entry.event("message", {"role": self._role, "content": content}, **self._options())

    # -- texts

    def _text(self, text: str, rest: dict[str, Any]) -> None:
        if self._role == "user":
            self._users(text, rest)
        else:
            self._agents(text, rest)

    def _users(self, text: str, rest: dict[str, Any]) -> None:
        if not text.strip():
            self._entry.text(text, by=self._by, **self._options(rest))
            return
        kept: list[str] = []
        pieces = []
        for cut in cuts(text):
            if cut.tag == TIMESTAMP:
                kept.append(cut.text)
            else:
                pieces.append(cut)
        if kept:
            rest = rest | {TIMESTAMP: kept[0] if len(kept) == 1 else kept}
        for cut in pieces:
            if cut.tag in INJECTED:
                data = {"tag": cut.tag, "text": cut.whole}
                self._entry.event(event_types.INJECTED_CONTEXT, data, **self._options(rest))
            else:
                self._blocks.spoke(cut.text)
                self._entry.text(cut.text, by=self._by, **self._options(rest))
            rest = {}
        if not pieces:
            self._entry.event(event_types.INJECTED_CONTEXT, {"text": text}, **self._options(rest))

    def _agents(self, text: str, rest: dict[str, Any]) -> None:
        withheld = text.count(REDACTED)
        if withheld:
            self._trace.findings.count("text-withheld", withheld, action="kept as reasoning without content")
            for _ in range(withheld):
                self._entry.reasoning("", flags=("withheld",), **self._options(rest | {"text": REDACTED}))
                rest = {}
            text = _without_markers(text)
            if not text.strip():
                return
        self._entry.text(text, by=AGENT, model=self._model, **self._options(rest))

    # -- calls, results, reasoning

    def _call(self, item: dict[str, Any], kind: str) -> None:
        native = item.get("id")
        call_id = (
            native if isinstance(native, str) and native else f"L{self._entry.record.number}#{self.number}"
        )
        mapped = (
            ("type", "name", "input")
            if native is not None and call_id != native
            else ("type", "name", "input", "id")
        )
        rest = _others(item, *mapped)
        name = item.get("name")
        if not isinstance(name, str) or not name:
            self._odd(f"block/{kind}", item)
            return
        if kind != "tool_use":
            rest["type"] = kind
        given = read_input(self._entry, item.get("input"), rest)
        self._entry.call(name, given, call_id=call_id, **self._options(rest))
        self._blocks.called(call_id, given)

    def _result(self, item: dict[str, Any], kind: str) -> None:
        name = next(
            (name for name in ("tool_use_id", "tool_call_id", "id") if item.get(name) is not None), None
        )
        rest = _others(item, "type", "content", *((name,) if name else ()))
        if kind != "tool_result":
            rest["type"] = kind
        call_id = item[name] if name else None
        if name and not isinstance(call_id, str):
            rest[name] = call_id
        status = "error" if item.get("is_error") is True else None
        if status is not None:
            rest.pop("is_error", None)
        options = self._options(rest)
        output, media = in_output(self._entry, item.get("content"))
        self._entry.result(output, call_id=call_id, status=status, media=media, **options)

    def _reasoning(self, item: dict[str, Any], kind: str) -> None:
        name = next(
            (name for name in ("thinking", "text", "content") if isinstance(item.get(name), str)), None
        )
        sealed = item.get("data") if kind != "thinking" else None
        mapped = {"type", name} | ({"data"} if isinstance(sealed, str) and sealed else set())
        rest = {member: value for member, value in item.items() if member not in mapped}
        if kind != "thinking":
            rest["type"] = kind
        content = item[name] if name is not None else ""
        if name is None and kind == "thinking":
            self._trace.findings.add(
                "odd-shape", record=self._entry.record.number, action="kept in onrecord.rest"
            )
        flags = () if content or kind == "thinking" else ("withheld",)
        if flags:
            self._trace.findings.count("text-withheld", action="kept as reasoning without content")
        self._entry.reasoning(content, encrypted=sealed, flags=flags, **self._options(rest))


def read_input(entry: Entry, native: Any, rest: dict[str, Any]) -> Any:
    """Return the input of a call; arguments that are text are parsed (D-LOG-18)."""
    given, raw = arguments_of(native)
    if raw is not None:
        rest["arguments"] = raw
        if given is raw:
            entry.trace.findings.add("arguments-unparsed", record=entry.record.number, action="kept as text")
    return given


def _without_markers(text: str) -> str:
    """Take the markers out with the blank lines around them."""
    first, *pieces = text.split(REDACTED)
    last = pieces.pop().lstrip("\r\n") if pieces else ""
    kept = [first.rstrip("\r\n"), *(piece.strip("\r\n") for piece in pieces), last]
    return "\n\n".join(piece for piece in kept if piece)


def _items(content: Any) -> Iterator[Any]:
    if isinstance(content, list):
        yield from content
    elif content is not None and content != "":
        yield content


def _others(item: Mapping[str, Any], *mapped: str) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in mapped}

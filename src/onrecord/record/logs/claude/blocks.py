"""Content blocks of Claude's messages, as they stand in session files and in the SDK's stream.

Source: native-logs.md 4.1 (assistant, user).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from onrecord.record.logs import event_types, media
from onrecord.record.logs.claude import user_text
from onrecord.record.logs.claude.calls import HOST, PROVIDER, Calls, has_human_input, origin_of, status_of
from onrecord.record.logs.claude.members import BLOCKS, IN_BLOCK
from onrecord.record.logs.sessions import PARENT, USER, Entry
from onrecord.record.logs.trace import Trace
from onrecord.record.logs.usage import claude

TEAM_LEAD: Final = "team-lead"
"""Name under which the agent that made a team talks to its members."""

_TURN_SUMS: Final = ("totalTokens", "totalToolUseCount", "totalDurationMs", "usage")

_Rest = dict[str, Any] | None


class Blocks:
    """Writes the blocks of messages. `rest` of a record goes to its first object."""

    def __init__(self, trace: Trace, calls: Calls) -> None:
        self._trace = trace
        self._calls = calls
        self._assistant: dict[str, Callable[[Entry, dict[str, Any], int, _Rest, Any], int | None]] = {
            "text": self._said,
            "thinking": self._thought,
            "redacted_thinking": self._hidden_thought,
            "tool_use": self._called,
            "server_tool_use": self._called_provider,
            "mcp_tool_use": self._called_server,
            "fallback": self._fell_back,
        }

    # -- the agent's messages

    def assistant(self, entry: Entry, content: Any, model: Any, rest: dict[str, Any]) -> int | None:
        """Write the content of an agent's message; return its first Dialog."""
        if type(content) is str:
            return entry.text(content, model=model, rest=rest)
        if type(content) is not list or not content:
            self.empty(entry, content, rest)
            return None
        first = None
        for index, block in enumerate(content):
            number = None
            if type(block) is dict:
                kind = block.get("type")
                write = self._assistant.get(kind) if type(kind) is str else None
                if write is not None:
                    number = write(entry, block, index, rest, model)
                elif kind == "tool_result":
                    self.result(entry, block, index, rest, None, None)
                elif type(kind) is str and kind.endswith("_tool_result"):
                    self._answered_by_provider(entry, block, index, rest)
                else:
                    self.unknown(entry, block, index, rest)
            elif type(block) is str:
                number = entry.text(block, model=model, block=index, rest=rest)
            else:
                self.unknown(entry, block, index, rest)
            rest = {}
            if first is None:
                first = number
        return first

    def synthetic(self, entry: Entry, content: Any, kind: str, rest: dict[str, Any]) -> None:
        """Write a message that the program made in the agent's name: an error or a notice, never a Dialog."""
        blocks = content if type(content) is list else [content]
        for index, block in enumerate(blocks or [content]):
            text = block.get("text") if type(block) is dict and block.get("type") == "text" else block
            data = {"text": text} if type(text) is str else {"content": block}
            entry.event(kind, data, block=index, rest=rest)
            rest = {}

    def _said(self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, model: Any) -> int | None:
        text = block.get("text")
        if type(text) is not str:
            self._odd(entry, block, index, rest)
            return None
        if len(block) > 2:
            rest = self._with_block(entry, block, "text", rest)
        return entry.text(text, model=model, block=index, rest=rest)

    def _thought(
        self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, model: Any
    ) -> int | None:
        rest = self._with_block(entry, block, "thinking", rest)
        entry.reasoning(block.get("thinking"), encrypted=block.get("signature"), block=index, rest=rest)
        return None

    def _hidden_thought(
        self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, model: Any
    ) -> int | None:
        rest = self._with_block(entry, block, "redacted_thinking", rest)
        entry.reasoning("", encrypted=block.get("data"), block=index, rest=rest)
        return None

    def _called(self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, model: Any) -> int | None:
        self._call(entry, block, index, rest, model, origin_of(block.get("name")))
        return None

    def _called_provider(
        self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, model: Any
    ) -> int | None:
        rest = {**(rest or {}), "block_type": "server_tool_use"}
        self._call(entry, block, index, rest, model, PROVIDER)
        return None

    def _called_server(
        self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, model: Any
    ) -> int | None:
        server, name = block.get("server_name"), block.get("name")
        origin: dict[str, Any] = {"kind": "mcp"}
        if type(server) is str and server:
            origin["server"] = server
        if type(name) is str and name:
            origin["tool"] = name
        rest = {**(rest or {}), "block_type": "mcp_tool_use"}
        self._call(entry, block, index, rest, model, origin)
        return None

    def _call(
        self,
        entry: Entry,
        block: dict[str, Any],
        index: int,
        rest: _Rest,
        model: Any,
        origin: Mapping[str, Any],
    ) -> None:
        rest = self._with_block(entry, block, "tool_use", rest)
        number = entry.call(
            block.get("name"),
            block.get("input"),
            call_id=block.get("id"),
            block=index,
            origin=origin,
            rest=rest,
        )
        self._calls.called(entry.session, block, origin, model, number)

    def _fell_back(
        self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, model: Any
    ) -> int | None:
        entry.event(event_types.MODEL_CHANGE, block, block=index, rest=rest)
        return None

    def _answered_by_provider(self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest) -> None:
        call_id = block.get("tool_use_id")
        origin = self._calls.origin(call_id)
        rest = {**(rest or {}), "block_type": block["type"]}
        rest = self._with_block(entry, block, "tool_result", rest)
        output, told = media.in_output(entry, block.get("content"))
        entry.result(
            output,
            call_id=call_id,
            status=status_of(block.get("is_error"), None, is_denied=False),
            block=index,
            origin=PROVIDER if origin is HOST else origin,
            rest=rest,
            media=told,
        )

    # -- the user's messages

    def details(self, entry: Entry, content: list[Any], value: Mapping[str, Any], name: str) -> Any:
        """Return what Claude Code noted about the result in a message; None when it does not say about which one."""
        details = value.get(name)
        if type(details) is dict and len(content) > 1:
            results = sum(
                1 for block in content if type(block) is dict and block.get("type") == "tool_result"
            )
            if results > 1:
                self._trace.findings.add(
                    "odd-shape",
                    record=entry.record.number,
                    pointer=f"/{name}",
                    action="kept in onrecord.rest",
                )
                return None
        return details

    def result(
        self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest, details: Any, denial: Any
    ) -> None:
        """Write a tool's result; `details` is what Claude Code noted about it beside the message."""
        call_id = block.get("tool_use_id")
        status = status_of(block.get("is_error"), details, is_denied=bool(denial))
        rest = self._with_block(entry, block, "tool_result", rest)
        output = block.get("content")
        told: list[dict[str, Any]] = []
        if type(output) is list:
            output, told = media.in_output(entry, output)
        entry.result(
            output,
            call_id=call_id,
            status=status,
            block=index,
            origin=self._calls.origin(call_id),
            rest=rest,
            flags=("human-input",) if has_human_input(details) else (),
            media=told,
        )
        if type(details) is dict and type(details.get("usage")) is dict:
            # The sum of the sub-agent's responses, which are counted in its own session.
            native = {name: details[name] for name in _TURN_SUMS if name in details}
            entry.token_count("turn", claude(details["usage"]), native, counted=False, block=index)
        self._calls.answered(entry, block, status, details)

    def human(
        self, entry: Entry, text: str, index: int, rest: dict[str, Any], flags: tuple[str, ...] = ()
    ) -> bool:
        """Write a text of a user message in its parts; say whether any of it is a Dialog."""
        session = entry.session
        speaker = PARENT if session.is_child else USER
        is_said = False
        for part in user_text.split(text):
            if part.kind == user_text.HUMAN:
                is_said |= entry.text(part.text, by=speaker, block=index, rest=rest, flags=flags) is not None
            elif part.kind == user_text.TEAMMATE:
                name = part.data["teammate_id"]
                by = PARENT if session.is_child and name == TEAM_LEAD else session.other(name)
                is_said |= (
                    entry.text(
                        part.text, by=by, block=index, rest={**rest, "teammate": part.data}, flags=flags
                    )
                    is not None
                )
            else:
                entry.event(part.kind, part.data, block=index, rest=rest, flags=flags)
            rest = {}
        return is_said

    def medium(self, entry: Entry, block: dict[str, Any], index: int, rest: _Rest) -> bool:
        """Write a picture or document that a user gave; say whether it is one."""
        source = block.get("source")
        if type(source) is not dict or source.get("type") == "text":
            return False
        found = media.medium(source.get("media_type"), source.get("data"))
        if found is None:
            return False
        rest = self._with_block(entry, block, str(block["type"]), rest) or {}
        extra = {name: value for name, value in source.items() if name not in ("data", "media_type")}
        if extra.pop("type", None) != "base64" or extra:
            rest = {**rest, "source": {name: value for name, value in source.items() if name != "data"}}
        media.attach(entry, found, block=index, native=block, rest=rest)
        return True

    def empty(self, entry: Entry, content: Any, rest: _Rest) -> None:
        """Write a message without content; content that is neither text nor a list is odd."""
        if content is None or content in ("", []):
            entry.event(event_types.EMPTY_TEXT, {"content": content}, rest=rest)
        else:
            self._odd(entry, content, 0, rest)

    def unknown(self, entry: Entry, block: Any, index: int, rest: _Rest) -> None:
        """Write a block of a type that is not known here, or of no type."""
        kind = block.get("type") if type(block) is dict else None
        if type(kind) is not str or not kind:
            self._odd(entry, block, index, rest)
            return
        if kind not in BLOCKS:
            self._trace.findings.add(
                "unknown-block-type",
                name=kind[:64],
                record=entry.record.number,
                action="kept as system-event",
            )
        entry.event(f"block/{kind}", block, block=index, rest=rest)

    def _odd(self, entry: Entry, block: Any, index: int, rest: _Rest) -> None:
        self._trace.findings.add(
            "odd-shape", record=entry.record.number, pointer="/message/content", action="kept as system-event"
        )
        kind = block.get("type") if type(block) is dict else None
        entry.event(f"block/{kind if type(kind) is str else 'unknown'}", block, block=index, rest=rest)

    def _with_block(self, entry: Entry, block: dict[str, Any], kind: str, rest: _Rest) -> _Rest:
        """Return `rest` with the block's members that have no home under `block`."""
        own = IN_BLOCK[kind].rest(block, self._trace.findings, record=entry.record.number)
        return {**(rest or {}), "block": own} if own else rest

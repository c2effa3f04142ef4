"""How a tool call ended, as far as the log says: by exit codes, words and members (native-logs.md 4.3, D-LOG-17)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

SUCCESS: Final = "success"
ERROR: Final = "error"
COMPLETED: Final = "completed"

_HEAD_CHARACTERS: Final = 512
_EXIT_LINE: Final = re.compile(
    r"^(?:Process exited with code|Exit code:) (-?[0-9]{1,10})[ \t\r]*$", re.MULTILINE | re.ASCII
)
_HEADERS: Final = ("Chunk ID:", "Wall time:", "Process exited", "Exit code:", "Command:")

_WORDS: Final = {
    "completed": COMPLETED,
    "success": SUCCESS,
    "failed": ERROR,
    "error": ERROR,
    "declined": ERROR,
}
_OPEN_WORDS: Final = frozenset(["inprogress", "pending", "queued", "running", "started"])


def of_exit_code(code: Any) -> str | None:
    """Return the status that an exit code means."""
    return None if type(code) is not int else ERROR if code else SUCCESS


def of_word(word: Any) -> str | None:
    """Return the status that a native status word means; words like "in_progress" mean none."""
    return _WORDS.get(word) if type(word) is str else None


def is_open(payload: Mapping[str, Any]) -> bool:
    """Say whether an event or completed item says itself that the call goes on."""
    word = payload.get("status")
    return type(word) is str and word.replace("_", "").replace("-", "").lower() in _OPEN_WORDS


def of_end(payload: Mapping[str, Any]) -> str | None:
    """Return how a call ended by the event or completed item that says so."""
    status = of_exit_code(payload.get("exit_code"))
    if status is not None:
        return status
    success = payload.get("success")
    if type(success) is bool:
        return SUCCESS if success else ERROR
    result = payload.get("result")
    if type(result) is dict:
        if "Err" in result:
            return ERROR
        inner = result["Ok"] if type(result.get("Ok")) is dict else result
        is_error = inner.get("isError", inner.get("is_error"))
        if type(is_error) is bool:
            return ERROR if is_error else SUCCESS
        if "Ok" in result:
            return SUCCESS
    if payload.get("error"):
        return ERROR
    return of_word(payload.get("status"))


def of_output(payload: Mapping[str, Any]) -> str | None:
    """Return how a call ended by the item that holds its output."""
    output = payload.get("output")
    status = _of_value(output)
    if status is None and type(output) is list:
        for part in output[:8]:
            status = _of_value(part.get("text")) if type(part) is dict else None
            if status is not None:
                break
    return status if status is not None else of_word(payload.get("status"))


def _of_value(output: Any) -> str | None:
    if type(output) is str:
        if output.startswith("{") and '"exit_code"' in output:
            try:
                value = orjson.loads(output.encode("utf-8", "replace"))
            except orjson.JSONDecodeError:
                value = None
            metadata = value.get("metadata") if type(value) is dict else None
            if type(metadata) is dict:
                return of_exit_code(metadata.get("exit_code"))
        return _of_text(output)
    if type(output) is dict:
        metadata = output.get("metadata")
        if type(metadata) is dict and type(metadata.get("exit_code")) is int:
            return of_exit_code(metadata["exit_code"])
        success = output.get("success")
        if type(success) is bool:
            return SUCCESS if success else ERROR
    return None


def _of_text(text: str) -> str | None:
    """Read the lines that the program puts before an output. What the command itself printed says nothing."""
    head = text[:_HEAD_CHARACTERS]
    if not head.startswith(_HEADERS):
        return None
    match = _EXIT_LINE.search(head.partition("\nOutput:")[0])
    return None if match is None else of_exit_code(int(match[1]))

"""What a call of Gemini CLI says about its server, and a result about its failure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.gemini.parts import RESULT, TEXT, parts_of

_MCP: Final = re.compile(r"([^()]{1,200}) \(([^()]{1,200}) MCP Server\)")
_EXIT_CODE: Final = re.compile(
    r"(?:^|\n)Exit Code: (-?[0-9]{1,10})"
    r"(?:\n(?:Signal|Background PIDs|Process Group PGID): [^\n]*)*\s*(?:</untrusted_context>)?\s*\Z"
)
_TAIL: Final = 2000


def origin(native: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the MCP server and tool that the shown name tells of."""
    shown = native.get("displayName")
    match = _MCP.fullmatch(shown) if isinstance(shown, str) and len(shown) <= 500 else None
    return {"kind": "mcp", "server": match[2], "tool": match[1]} if match else None


def has_failed(output: Any, name: Any) -> bool:
    """Say whether an output tells of a failure: a shell's exit code, or a response that has only an error."""
    is_shell = isinstance(name, str) and "shell" in name
    for part in parts_of(output):
        response = part.native[RESULT].get("response") if part.kind == RESULT else None
        texts = [part.text] if part.kind == TEXT else []
        if isinstance(response, dict):
            if response.get("error") and "output" not in response:
                return True
            texts = [text for text in response.values() if isinstance(text, str)]
        if is_shell:
            for text in texts:
                match = _EXIT_CODE.search(text[-_TAIL:])
                if match is not None and int(match[1]) != 0:
                    return True
    return False

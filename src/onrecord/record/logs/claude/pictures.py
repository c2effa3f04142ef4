"""Copies of pictures and documents that Claude's records hold beside the block that has them.

Source: native-logs.md D-LOG-14.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from onrecord.record.logs import media
from onrecord.record.logs.sessions import AGENT, Entry

_KINDS: Final = ("media_type", "mimeType", "mime_type", "type")


def without_copies(entry: Entry, value: Any, content: Any) -> Any:
    """Return a value of a record without the bytes of what stands in the blocks of its message, `content`.

    Each copy is told by SHA-256 and size. With `--media=hash` or `attach` the bytes of other media leave, too.
    """
    copies = set(_data_in(content))
    leaves = entry.trace.run.options.media in ("hash", "attach")
    if not copies and not leaves:
        return value
    return _Copies(entry, copies, leaves=leaves).without(value)


class _Copies:
    def __init__(self, entry: Entry, copies: set[str], *, leaves: bool) -> None:
        self._entry = entry
        self._copies = copies
        self._leaves = leaves
        self._moved: set[str] = set()

    def without(self, value: Any) -> Any:
        """Return a value without the bytes of media; what has none is returned as it is."""
        if type(value) is dict:
            kind = next((value[name] for name in _KINDS if type(value.get(name)) is str), None)
            changed = {
                name: new
                for name, inner in value.items()
                if (new := self._told(name, inner, kind) if type(inner) is str else self.without(inner))
                is not inner
            }
            return {**value, **changed} if changed else value
        if type(value) is list:
            items = [
                self._told("", inner, None) if type(inner) is str else self.without(inner) for inner in value
            ]
            return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        return value

    def _told(self, name: str, text: str, kind: str | None) -> Any:
        """Return what stands in the place of a text: size and hash of a medium, else the text."""
        is_copy = text in self._copies
        if not is_copy and not self._leaves:
            return text
        if text.startswith("data:"):
            found = media.from_data_url(text)
        elif is_copy or name == "base64" or (name == "data" and kind is not None):
            found = media.medium(kind, text)
        else:
            return text
        if found is None:
            return text
        if not is_copy and found.sha256 not in self._moved:
            self._moved.add(found.sha256)
            self._move(found)
        return {"sha256": found.sha256, "bytes": found.size}

    def _move(self, found: media.Medium) -> None:
        """Do what was asked for with a medium that stands in no block."""
        entry = self._entry
        if entry.trace.run.options.media == "attach":
            entry.attachment(found.mediatype, found.body, by=AGENT)
        else:
            entry.trace.findings.add(
                "media-omitted", record=entry.record.number, action="size and SHA-256 kept"
            )


def _data_in(content: Any) -> Iterator[str]:
    """Yield the encoded bytes of the media in the blocks of a message, and in its tool results."""
    for block in content if type(content) is list else ():
        if type(block) is not dict:
            continue
        source = block.get("source")
        data = source.get("data") if type(source) is dict else block.get("data")
        if type(data) is str and data:
            yield data
        if block.get("type") == "tool_result":
            yield from _data_in(block.get("content"))

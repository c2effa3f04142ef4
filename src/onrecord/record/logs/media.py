"""Pictures, documents and audio in native logs: attachments, or told by size and hash (native-logs.md D-LOG-14)."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from onrecord.record.logs.sessions import AGENT, USER, Entry

UNKNOWN_TYPE: Final = "application/octet-stream"
_MEDIATYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}", re.ASCII)
_URL_SAFE: Final = {ord("+"): "-", ord("/"): "_", **dict.fromkeys(map(ord, "=\n\r\t "))}
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_DATA_URL: Final = re.compile(r"data:([^;,]*)((?:;[^;,]*)*),", re.ASCII)


class Medium(NamedTuple):
    """Binary content found in a log."""

    mediatype: str
    body: str
    """base64url without padding."""

    size: int
    sha256: str

    def told(self, pointer: str) -> dict[str, Any]:
        """Return the entry of `onrecord.media`: what stands, or stood, at this JSON pointer."""
        return {"pointer": pointer, "mediatype": self.mediatype, "bytes": self.size, "sha256": self.sha256}


def medium(mediatype: Any, data: Any) -> Medium | None:
    """Return binary content given as base64 in either alphabet, None for what is none."""
    if not isinstance(data, str) or not data:
        return None
    body = data.translate(_URL_SAFE)
    if not _BASE64URL.fullmatch(body):
        return None
    try:
        raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    except (binascii.Error, ValueError):
        return None
    canonical = base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")
    if not raw or canonical[:-1] != body[:-1]:
        return None
    kind = mediatype if isinstance(mediatype, str) and _MEDIATYPE.fullmatch(mediatype) else UNKNOWN_TYPE
    return Medium(kind.lower(), canonical, len(raw), hashlib.sha256(raw).hexdigest())


def from_data_url(url: Any) -> Medium | None:
    """Return the content of a base64 data: URL, None for any other text."""
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    if match is None or ";base64" not in match[2].lower():
        return None
    return medium(match[1], url[match.end() :])


def attach(
    entry: Entry,
    found: Medium,
    *,
    block: int = 0,
    native: Mapping[str, Any],
    rest: Mapping[str, Any] | None = None,
    by: int = USER,
) -> int:
    """Write content that somebody gave (`by`, a speaker): an Attachment Object; or what `--media` asks for instead.

    `native` is the native block, which stays in place with `--media=inline`; `rest` are its members without a home.
    """
    choice = entry.trace.run.options.media
    if choice == "inline":
        return entry.event(f"block/{native.get('type', 'media')}", dict(native), block=block, rest=rest)
    if choice == "hash":
        entry.trace.findings.add("media-omitted", record=entry.record.number, action="size and SHA-256 kept")
        return entry.event("block/media", {"media": [found.told("")]}, block=block, rest=rest)
    return entry.attachment(found.mediatype, found.body, by=by, block=block, rest=rest)


def in_output(entry: Entry, output: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return a tool's output and what its pictures are: `{type, source{media_type, data}}`, `{data, mimeType}`.

    They stay in place, unless `--media=hash` or `attach` asks for something else.
    """
    told: list[dict[str, Any]] = []
    if type(output) is not list:
        return output, told
    choice = entry.trace.run.options.media
    shown = list(output)
    for index, item in enumerate(output):
        if type(item) is not dict:
            continue
        source = item.get("source")
        holder = source if type(source) is dict else item
        kind = holder.get("media_type") or holder.get("mimeType") or holder.get("mime_type")
        found = medium(kind, holder.get("data")) if kind is not None else None
        if found is None:
            continue
        pointer = f"/output/{index}/source/data" if holder is source else f"/output/{index}/data"
        told.append(found.told(pointer))
        if choice in ("hash", "attach"):
            if choice == "attach":
                entry.attachment(found.mediatype, found.body, by=AGENT, block=index)
            else:
                entry.trace.findings.add(
                    "media-omitted", record=entry.record.number, action="size and SHA-256 kept"
                )
            emptied = {name: value for name, value in holder.items() if name != "data"}
            shown[index] = {**item, "source": emptied} if holder is source else emptied
    return shown, told

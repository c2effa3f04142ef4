"""Binary content in the blocks of messages (native-logs.md 4.9, D-LOG-14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs import media
from onrecord.record.logs.otel.lookup import text_of

_KINDS: Final = ("mime_type", "mediaType", "mimeType", "media_type")
_PLACES: Final = ("content", "data", "image", "uri", "url", "image_url")


def binary_of(native: Mapping[str, Any]) -> tuple[media.Medium, dict[str, Any]] | None:
    """Return the binary content of a block and the block without it.

    Conventions put base64 or a data: URL into one of several members, of the block or of its `source`.
    """
    source = native.get("source")
    holder: Mapping[str, Any] = source if isinstance(source, dict) else native
    kind = text_of(holder, _KINDS)
    for name in _PLACES:
        value = holder.get(name)
        if isinstance(value, dict):
            value = value.get("url")
        if not isinstance(value, str):
            continue
        found = media.from_data_url(value)
        if found is None and name not in ("uri", "url") and "://" not in value[:16]:
            found = media.medium(kind, value)
        if found is not None:
            left = _without(holder, name)
            return found, left if holder is native else {**native, "source": left}
    return None


def _without(holder: Mapping[str, Any], name: str) -> dict[str, Any]:
    inner = holder[name]
    left = {member: value for member, value in holder.items() if member != name}
    if isinstance(inner, dict):
        left[name] = {member: value for member, value in inner.items() if member != "url"}
    return left

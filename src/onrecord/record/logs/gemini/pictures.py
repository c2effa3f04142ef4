"""Pictures and other binary content in the results of tools (native-logs.md D-LOG-14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onrecord.record.logs.gemini.parts import INLINE, RESULT
from onrecord.record.logs.media import medium
from onrecord.record.logs.sessions import Entry


def in_result(entry: Entry, output: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return a result and what its pictures are. They stay in place, unless `--media` asks for something else."""
    told: list[dict[str, Any]] = []
    choice = entry.trace.run.options.media
    for pointer, inline in list(_inline(output)):
        found = medium(inline.get("mimeType"), inline.get("data"))
        if found is None:
            continue
        told.append(found.told(f"/output{pointer}/{INLINE}/data"))
        if choice == "attach":
            entry.attachment(found.mediatype, found.body)
        elif choice == "hash":
            entry.trace.findings.add(
                "media-omitted", record=entry.record.number, action="size and SHA-256 kept"
            )
        if choice in ("attach", "hash"):
            # The result was read for this one object, so that it may be changed.
            del inline["data"]
    return output, told


def _inline(output: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the binary parts of a result: beside its response, or in the `parts` of it."""
    if not isinstance(output, list):
        return
    for index, part in enumerate(output):
        if not isinstance(part, dict):
            continue
        if isinstance(part.get(INLINE), dict):
            yield f"/{index}", part[INLINE]
        response = part.get(RESULT)
        inner = response.get("parts") if isinstance(response, dict) else None
        if isinstance(inner, list):
            for number, item in enumerate(inner):
                if isinstance(item, dict) and isinstance(item.get(INLINE), dict):
                    yield f"/{index}/{RESULT}/parts/{number}", item[INLINE]

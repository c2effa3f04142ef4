"""Pictures and audio in the parts of Codex messages and tool outputs (native-logs.md D-LOG-14)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.media import Medium, from_data_url, medium
from onrecord.record.logs.sessions import Entry

PICTURES: Final = frozenset(["input_image", "image", "inputImage", "output_image"])
"""Types of parts that are pictures; their content is a data: URL."""

AUDIO: Final = frozenset(["input_audio", "audio"])
"""Types of parts that are audio: base64 in an object, or a data: URL."""

CONTENT: Final = frozenset(["image_url", "imageUrl", "audio_url", "url", "input_audio", "data"])
"""Members of such parts that hold the content or its address."""

_MEDIA: Final = (*PICTURES, *AUDIO)


def medium_of(part: Mapping[str, Any]) -> Medium | None:
    """Return the content of a part, None where there is none or only its address."""
    for name in ("image_url", "imageUrl", "audio_url", "url"):
        url = part.get(name)
        found = from_data_url(url.get("url") if type(url) is dict else url)
        if found is not None:
            return found
    audio = part.get("input_audio")
    if type(audio) is dict:
        form = audio.get("format")
        return medium(f"audio/{form}" if type(form) is str else None, audio.get("data"))
    return medium(part.get("mimeType"), part.get("data"))


def in_output(entry: Entry, output: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Return a tool's output and what its pictures are. They stay in place unless `--media` says something else."""
    told: list[dict[str, Any]] = []
    if type(output) is not list:
        return output, told
    shown = output
    for index, part in enumerate(output):
        if type(part) is not dict or part.get("type") not in _MEDIA:
            continue
        found = medium_of(part)
        if found is None:
            continue
        told.append(found.told(f"/output/{index}"))
        if moved(entry, found, block=index):
            if shown is output:
                shown = list(output)
            shown[index] = {"type": part["type"]}
    return shown, told


def moved(entry: Entry, found: Medium, *, block: int = 0) -> bool:
    """Move content of an output where `--media` says; say whether it is no longer in place."""
    choice = entry.trace.run.options.media
    if choice == "attach":
        entry.attachment(found.mediatype, found.body, block=block)
        return True
    if choice == "hash":
        entry.trace.findings.add("media-omitted", record=entry.record.number, action="size and SHA-256 kept")
        return True
    return False

"""The content hashes of a vCon whose bytes stand beside them.

Source: record.md D-17; core "ContentHash".
"""

from __future__ import annotations

from typing import Final

from onrecord.base.hashes import ContentHash
from onrecord.record.checks.collector import Collector
from onrecord.record.vcon.bodies import body_bytes
from onrecord.record.vcon.reader import Document

_ARRAYS: Final = ("dialog", "attachments", "analysis", "events")


def check_digests(document: Document, collector: Collector) -> tuple[int, int]:
    """Check each content_hash whose bytes are in the vCon. Returns how many were checked and how many fit.

    One that does not fit is reported to `collector` as `content-hash-mismatch`. Nothing is fetched.
    """
    if b"content_hash" not in document.raw and b"\\u" not in document.raw:
        return 0, 0
    checked = fitting = 0
    for name in _ARRAYS:
        items = document.value.get(name)
        for index, item in enumerate(items if isinstance(items, list) else ()):
            if not isinstance(item, dict) or item.get("content_hash") is None:
                continue
            stated = item["content_hash"]
            tokens = stated if isinstance(stated, list) else [stated]
            known = [token for token in tokens if isinstance(token, str) and token.startswith("sha512-")]
            content = body_bytes(item) if known else None
            if content is None:
                continue
            checked += 1
            own = str(ContentHash.of(content))
            if any(token != own for token in known):
                collector.add("content-hash-mismatch", f"/{name}/{index}/content_hash")
            else:
                fitting += 1
    return checked, fitting

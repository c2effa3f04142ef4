"""The content hashes of a vCon whose bytes stand beside them.

Source: record.md 1.3, D-17; core "ContentHash".
"""

from __future__ import annotations

from typing import Final

from onrecord.record.checks.collector import Collector
from onrecord.record.vcon.content_view import ContentView
from onrecord.record.vcon.members import objects_of
from onrecord.record.vcon.reader import Document

_ARRAYS: Final = ("dialog", "attachments", "analysis", "events")


def check_digests(document: Document, collector: Collector) -> tuple[int, int]:
    """Check each hash whose bytes are in the vCon. Returns how many were checked and how many fit.

    One that does not fit is reported to `collector` as `content-hash-mismatch`. `alg` and `signature` of version 0.0.1
    are a hash too. Nothing is fetched.
    """
    if not any(name in document.raw for name in (b"content_hash", b"signature", b"\\u")):
        return 0, 0
    checked = fitting = 0
    for name in _ARRAYS:
        for index, item in objects_of(document.value.get(name)):
            view = ContentView(index, item)
            content = view.content_bytes() if view.hashes else None
            fits = None if content is None else view.fits(content)
            if fits is None:
                continue
            checked += 1
            fitting += fits
            if not fits:
                member = "content_hash" if view.has("content_hash") else "signature"
                collector.add("content-hash-mismatch", f"/{name}/{index}/{member}")
    return checked, fitting

"""Content: inline bodies and external files of dialogs, attachments, analyses and tool events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onrecord.base.findings import Severity
from onrecord.record.checks.context import Context
from onrecord.record.vcon.bodies import ENCODINGS, base64url_fault, derived_encoding, has_body, holds_json


def check_content(
    context: Context,
    item: Mapping[str, Any],
    pointer: str,
    *,
    expected: bool,
    json_strings: bool = True,
    mediatype_severity: Severity | None = None,
) -> None:
    """Check the content of one object, given without its absent members.

    `expected` says that content should be there. With `json_strings` a string that holds JSON is the form of older
    drafts, to be reported; in events a string is a string.

    Source: record.md 2.7, D-15, D-16; TI 6.1.10.
    """
    add = context.add
    inline = has_body(item)
    external = "url" in item
    if inline:
        if external:
            add("body-and-url", pointer)
        _check_inline(context, item, pointer, json_strings=json_strings)
        if "mediatype" not in item:
            add("mediatype-missing", pointer, severity=mediatype_severity)
    elif not context.redacted:
        if "encoding" in item:
            add("encoding-without-body", f"{pointer}/encoding")
        if expected and not external:
            add("content-missing", pointer)
    if external:
        if "content_hash" not in item:
            add("content-hash-missing", pointer)
    elif "content_hash" in item and not context.redacted:
        add("hash-without-url", f"{pointer}/content_hash")


def _check_inline(context: Context, item: Mapping[str, Any], pointer: str, *, json_strings: bool) -> None:
    add = context.add
    body = item["body"]
    encoding = item.get("encoding")
    is_text = type(body) is str
    if encoding == "none":
        if not is_text:
            add("encoding-body-type", f"{pointer}/body")
    elif encoding == "json":
        if json_strings and is_text and holds_json(body):
            add("json-body-string", f"{pointer}/body")
    elif encoding == "base64url":
        fault = base64url_fault(body) if is_text else "encoding-body-type"
        if fault is not None:
            add(fault, f"{pointer}/body")
    elif encoding is None:
        if body != "":
            add("encoding-missing", pointer)
    elif type(encoding) is str and encoding not in ENCODINGS:
        derived = "base64url" if encoding == "base64" else derived_encoding(body, item.get("mediatype"))
        add("encoding-invalid", f"{pointer}/encoding", data={"derived": derived})

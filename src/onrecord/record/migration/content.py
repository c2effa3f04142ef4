"""Content of older versions: hashes in two members, missing encodings, base64, JSON in a string.

Source: record.md 1.3, D-15, D-16.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from onrecord.base.errors import MalformedError
from onrecord.record.migration.draft import Draft
from onrecord.record.vcon.bodies import (
    BASE64,
    ENCODINGS,
    bare_base64url,
    base64url_fault,
    encoding_of,
    has_body,
    holds_json,
)
from onrecord.record.vcon.canonical_text import canonical_text
from onrecord.record.vcon.names import CONTENT_ALIASES, SHA512_ALG
from onrecord.record.vcon.pointers import step
from onrecord.record.vcon.reader import MAX_DEPTH, read_json

_SHA512: Final = re.compile(r"[A-Za-z0-9_-]{86}", re.ASCII)
_STANDARD: Final = str.maketrans("-_", "+/")
_BODY_DEPTH: Final = 4
"""Levels that a body stands below the top: array, element, member."""


def convert_content(draft: Draft, item: dict[str, Any], pointer: str) -> None:
    """Convert hash, encoding and body of a dialog, attachment or analysis."""
    join_hash(draft, item, pointer)
    _convert_body(draft, item, pointer)
    draft.give_name(item, pointer, old="mimetype", new=CONTENT_ALIASES["mimetype"])


def join_hash(draft: Draft, item: dict[str, Any], pointer: str) -> None:
    """Make `content_hash` of `alg` and `signature`, if they are a SHA-512 hash."""
    for name in ("alg", "signature"):
        if name in item and item[name] is None:
            draft.drop_empty(item, pointer, name)
    if "alg" not in item and "signature" not in item:
        return
    alg, signature = item.get("alg"), item.get("signature")
    token = bare_base64url(signature) if type(signature) is str and len(signature) < 200 else ""
    if alg != SHA512_ALG or not _SHA512.fullmatch(token) or item.get("content_hash") is not None:
        draft.note("hash-kept", pointer + step("alg" if "alg" in item else "signature"))
        return
    if "content_hash" in item:
        draft.drop_empty(item, pointer, "content_hash")
    del item["alg"], item["signature"]
    item["content_hash"] = f"sha512-{token}"
    draft.note("hash-joined", pointer, reversible=token == signature, to="content_hash")


def part_hash(item: dict[str, Any]) -> None:
    """Undo `join_hash`. Raises `KeyError` or `ValueError` for an object that it did not make."""
    token = item["content_hash"]
    if not isinstance(token, str) or not token.startswith("sha512-"):
        raise ValueError("not a joined hash")
    del item["content_hash"]
    item.update(alg=SHA512_ALG, signature=token.removeprefix("sha512-"))


def _convert_body(draft: Draft, item: dict[str, Any], pointer: str) -> None:
    body, encoding = item.get("body"), item.get("encoding")
    if not has_body(item) or (body == "" and encoding is None):
        return
    is_base64 = type(body) is str and base64url_fault(body) != "base64url-invalid"
    if encoding is None:
        encoding = encoding_of(item)
        if encoding == "base64url" and not is_base64:
            draft.note("encoding-kept", pointer)
            return
        if "encoding" in item:
            draft.drop_empty(item, pointer, "encoding")
        item["encoding"] = encoding
        draft.note("encoding-derived", f"{pointer}/encoding", value=encoding)
    elif encoding == BASE64 and is_base64:
        encoding = item["encoding"] = "base64url"
        draft.note("encoding-converted", f"{pointer}/encoding", value=BASE64)
    if encoding not in ENCODINGS or (encoding != "json" and type(body) is not str):
        draft.note("encoding-kept", f"{pointer}/encoding")
    elif encoding == "base64url" and type(body) is str and is_base64:
        _respell(draft, item, pointer, body)
    elif encoding == "json" and type(body) is str and holds_json(body):
        _parse(draft, item, pointer, body)


def _respell(draft: Draft, item: dict[str, Any], pointer: str, body: str) -> None:
    strict = bare_base64url(body)
    if strict == body:
        return
    item["body"] = strict
    spelling = next((name for name, spell in BASE64_SPELLINGS.items() if spell(strict) == body), None)
    data = {"spelling": spelling} if spelling is not None else {}
    draft.note("body-respelled", f"{pointer}/body", reversible=spelling is not None, **data)


def _padding(text: str) -> str:
    return "=" * (-len(text) % 4)


BASE64_SPELLINGS: Final[Mapping[str, Callable[[str], str]]] = {
    "base64": lambda strict: strict.translate(_STANDARD) + _padding(strict),
    "base64-unpadded": lambda strict: strict.translate(_STANDARD),
    "base64url-padded": lambda strict: strict + _padding(strict),
}
"""Spellings of base64 that a strict one can be turned back into."""


def _parse(draft: Draft, item: dict[str, Any], pointer: str, body: str) -> None:
    """Put the value in the place of the text, if it is exact: no name twice, no number beyond a double."""
    try:
        document = read_json(body.encode("utf-8"), max_depth=MAX_DEPTH - _BODY_DEPTH)
        written = orjson.loads(canonical_text(document.value))
    except (MalformedError, UnicodeEncodeError):
        draft.note("json-kept", f"{pointer}/body")
        return
    if document.notes:
        draft.note("json-kept", f"{pointer}/body")
        return
    item["body"] = document.value
    spelling = next((name for name, spell in JSON_SPELLINGS.items() if spell(written) == body), None)
    data = {"spelling": spelling} if spelling is not None else {}
    draft.note("json-parsed", f"{pointer}/body", reversible=spelling is not None, **data)


def _dumps(**options: Any) -> Callable[[Any], str]:
    return lambda value: json.dumps(value, sort_keys=True, **options)


JSON_SPELLINGS: Final[Mapping[str, Callable[[Any], str]]] = {
    "compact": _dumps(ensure_ascii=False, separators=(",", ":")),
    "compact-ascii": _dumps(separators=(",", ":")),
    "spaced": _dumps(ensure_ascii=False),
    "spaced-ascii": _dumps(),
    "indented-2": _dumps(ensure_ascii=False, indent=2),
    "indented-4": _dumps(ensure_ascii=False, indent=4),
}
"""Ways to write JSON, with sorted names, that a value can be turned back into: the writer keeps no other order."""

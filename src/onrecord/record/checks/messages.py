"""What a finding says at its place: the catalogue's meaning, made concrete with the names and types that are known.

    >>> message("type-mismatch", "wrong type", "/dialog/0/start", {"expected": "Date", "found": "Integer"})
    'start: expected Date, found Integer'

Values of the file never get here: a message holds names, types, lengths and the words of the drafts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from string import Formatter
from typing import Any, Final

MAX_QUOTED: Final = 80
"""Characters of a member name quoted in a message: names come from the file and may be of any length."""

_ASIDE: Final = re.compile(
    r" \((?:data|info|warning|error|otherwise|header|the default|decoded|one message|0\.0\.1|if ).*?\)"
)
"""What the catalogue says about a code in brackets: of use to its reader, not beside the place itself."""

TEMPLATES: Final[Mapping[str, Sequence[str]]] = {
    "json-invalid": ("{reason}",),
    "form-hybrid": ("{here} stands in the clear beside the envelope",),
    "legacy-name": ("{old} is an older name; this version has {new}",),
    "future-name": (
        "{old} is a name of a newer version; this one has {new}",
        "{here} came with version {since}",
    ),
    "unknown-member": ("{here} is a member neither of core nor of an extension that is known here",),
    "extension-not-listed": ("{extension} is used and not listed in extensions",),
    "version-unknown": (
        "the value is not one of the known versions; read as {read_as}",
        "the value is not one of the known versions; read by the version that the names tell",
    ),
    "did-invalid": ("{here}: expected did, a colon, a method, a colon and an identifier",),
    "url-invalid": ("{here}: expected an absolute URL with scheme and host",),
    "url-userinfo": ("{here}: a user name or password stands in a URL",),
    "placeholder": ("the element is {{}}, left by redaction",),
    "placeholder-not-redacted": ("the element is {{}}, and the vCon is not a redacted one",),
    "index-duplicate": ("{here}: the same index stands there before",),
    "prior-both": ("the vCon refers both to a less redacted one and to an amended one",),
    "path-unsafe": ("{here}: expected a path below the repository, with / between its parts",),
    "session-time": ("start and duration do not cover a dialog or event of the session",),
    "parent-id-cycle": ("following parent_id from here leads back to here",),
    "call-id-dangling": ("no tool-call has this call_id",),
    "server-reserved": ("{here}: names that start with ! are reserved; the host itself is !host",),
    "body-and-url": ("body and url stand side by side; content is in one of them",),
    "uuid-missing": ("the vCon has no uuid",),
    "uuid-invalid": ("the uuid is not the text form of a UUID",),
    "uuid-version": ("the uuid is not of version 8",),
    "created-at-missing": ("the vCon has no created_at",),
    "required-missing": (
        "{parameter} is missing and must be present",
        "a parameter that must be present is absent",
    ),
    "recommended-missing": (
        "{parameter} is missing and should be present",
        "a parameter that should be present is absent",
    ),
    "forbidden-present": (
        "{here} must not be present in an object of type {type}",
        "{here} must not be present in an object of this type",
    ),
    "discouraged-present": (
        "{here} should not be present in an object of type {type}",
        "{here} should not be present in an object of this type",
    ),
    "type-mismatch": ("{here}: expected {expected}, found {found}", "{here} has the wrong JSON type"),
    "integer-as-float": ("{here}: an integer written with a fraction or an exponent",),
    "member-null": ("{here} is null where it could be left out; read as absent",),
    "enum-invalid": (
        "{here}: expected one of {allowed}",
        "{here}: the value is none of those that are allowed here",
    ),
    "enum-unknown": (
        "{here}: the draft names {allowed}",
        "{here}: the value is none of those that the draft names",
    ),
    "empty-value": ("{here} is empty where a name or a list is meant",),
    "date-invalid": ("{here}: not an RFC 3339 date-time with offset",),
    "date-not-normal": ("{here}: a date with lower-case t or z, or with a fraction of zeros",),
    "duration-invalid": (
        "{here}: expected a number of seconds, not negative; found {found}",
        "{here}: not a number of seconds, or a negative one",
    ),
    "civicaddress-case": ("{here}: the keys of an address are in lower case",),
    "encoding-invalid": ("expected base64url, json or none; read as {derived}",),
    "content-hash-missing": ("url stands there without content_hash",),
    "content-hash-invalid": (
        "{here}: a SHA-512 has {expected} characters of base64url, found {found}",
        "{here}: expected an algorithm in lower case, a hyphen and base64url without padding",
    ),
    "index-range": (
        "{array} has no such element; it has {size}",
        "there is no such element; there are {size}",
    ),
    "version-member-present": ("the member vcon is deprecated",),
    "redacted-empty": ("{here} is empty; read as absent",),
    "mediatype-invalid": ("{here}: expected type, slash and subtype",),
    "encoding-missing": ("the body has no encoding",),
    "encoding-body-type": ("the body is no string, as its encoding says",),
    "encoding-without-body": ("encoding stands there without body",),
    "hash-without-url": ("content_hash stands there without url",),
    "base64url-invalid": ("the body cannot be decoded as base64url",),
    "base64url-lenient": ("the body is base64url with padding, + or /, or white space",),
    "json-body-string": ("the body is a string that holds JSON, as older drafts had it",),
    "mediatype-missing": ("the body has no mediatype",),
    "content-missing": ("neither body nor url, where content should be",),
    "session-required": ("there are dialogs or events, and no session",),
    "session-party-missing": ("parties lacks {parties}, which a dialog or event of the session names",),
    "dialog-unreferenced": ("no session names this dialog",),
    "originator-redundant": ("originator is equal to the first party",),
    "event-session-missing": ("the event names no session",),
    "closed-object-member": ("{here}: an object of type {object} has no such member",),
    "attempt-invalid": (
        "{here}: expected an integer of at least 1, found {found}",
        "{here}: not an integer of at least 1",
    ),
    "critical-unsupported": (
        "critical lists an extension that is not supported, so nothing else was checked",
    ),
    "credential-found": ("a text that looks like a credential: {pattern}",),
    "credential-key": ("{here} is named like a credential and has a value",),
    "jws-alg-refused": ("the algorithm is not allowed, or does not fit the key",),
    "jws-member-missing": (
        "{member} of the signature is missing or unreadable",
        "a member of the signature is missing or unreadable",
    ),
    "jws-typ-foreign": ("typ or cty names something else than a vCon",),
    "jws-no-signature": ("found {signatures} signatures where 1 to {limit} are read",),
    "jws-header-duplicate": ("{name} stands in both headers with equal values",),
    "jws-header-conflict": ("{name} stands in both headers with different values",),
    "jwe-header-duplicate": ("{name} stands in several headers with equal values",),
    "jwe-header-conflict": ("{name} stands in several headers with different values",),
    "chain-untrusted": ("no good signature leads to the required anchor {anchor}",),
    "jwe-decrypt-failed": (
        "{member} is missing or unreadable, so nothing can be decrypted",
        "found {recipients} recipients where 1 to {limit} are read",
    ),
    "not-performed": ("no attempt follows this decision",),
    "attempt-overlap": ("a new attempt starts while the one before it can still be answered",),
}
"""Messages of codes whose meaning has names to fill in, or is short; the first one that all names are known for counts.

`{here}` is the last name of the pointer, the other names are members of the finding's data.
"""


def message(code: str, meaning: str, pointer: str, data: Mapping[str, Any] | None) -> str:
    """Return the message of one finding.

    `meaning` is the catalogue's and serves a code without a template. What of `data` is not said follows in brackets.
    """
    for template, names in _templates(code):
        if all(name == "here" or (data and name in data) for name in names):
            said = {name: _quoted(value) for name, value in data.items() if name in names} if data else {}
            text = template.format(here=_last_name(pointer), **said)
            break
    else:
        said, text = {}, _short(meaning)
    rest = {name: value for name, value in data.items() if name not in said} if data else None
    if not rest:
        return text
    return f"{text} ({'; '.join(f'{name}: {_quoted(value)}' for name, value in rest.items())})"


@cache
def _templates(code: str) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple(
        (template, frozenset(name for _, name, _, _ in Formatter().parse(template) if name))
        for template in TEMPLATES.get(code, ())
    )


@cache
def _short(meaning: str) -> str:
    return _ASIDE.sub("", meaning)


def _last_name(pointer: str) -> str:
    """Return the name that a pointer ends with. Elements of an array are all called alike: repetitions are counted."""
    above, _, last = pointer.rpartition("/")
    if above and last.isascii() and last.isdigit():
        return "an element of " + _last_name(above)
    return _quoted(last[: 2 * MAX_QUOTED].replace("~1", "/").replace("~0", "~")) or "the vCon"


def _quoted(value: Any) -> str:
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        text = ", ".join(value)
    else:
        text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"

"""Proposed bindings, from names and schemas. A person decides: every proposal says what is still open.

Source: running.md 4.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from onrecord.authorize.policy.advertised import AdvertisedTool
from onrecord.authorize.policy.facts import JSON_TYPES

_PATHS: Final = frozenset(
    {"path", "paths", "file", "files", "filename", "dir", "directory", "repo_path", "source", "destination"}
)
_HOSTS: Final = frozenset({"url", "uri", "endpoint", "host", "hostname", "domain"})
_COMMANDS: Final = frozenset({"command", "cmd", "shell", "script", "code"})
_QUERIES: Final = frozenset({"sql", "query"})
_AMOUNTS: Final = frozenset({"amount", "price", "total"})
_VERBS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("delete", "remove", "drop", "purge", "unlink"), "delete"),
    **dict.fromkeys(("run", "exec", "execute", "eval"), "execute"),
    **dict.fromkeys(("send", "post", "publish", "email", "notify", "comment"), "send"),
    **dict.fromkeys(("pay", "buy", "purchase", "transfer", "refund", "charge"), "pay"),
    **dict.fromkeys(("grant", "revoke", "configure", "admin"), "admin"),
    **dict.fromkeys(("read", "get", "list", "search", "find", "show", "fetch", "describe", "status"), "read"),
    **dict.fromkeys(("write", "create", "update", "edit", "set", "add", "move", "rename", "commit"), "write"),
}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


def json_types(schema: Any) -> frozenset[str] | None:
    """Return the JSON types that a property's schema admits at its top, or None when it does not say."""
    if not isinstance(schema, dict):
        return None
    declared = schema.get("type")
    if isinstance(declared, str):
        names = [declared]
    elif isinstance(declared, list):
        names = [name for name in declared if isinstance(name, str)]
    else:
        names = []
        for member in ("anyOf", "oneOf"):
            for choice in schema.get(member) or ():
                inner = json_types(choice)
                if inner is None:
                    return None
                names += inner
        if not names and isinstance(schema.get("enum"), list):
            names = [_type_of(value) for value in schema["enum"]]
    found = frozenset(names)
    return found if found and found <= frozenset(JSON_TYPES) else None


def _type_of(value: Any) -> str:
    return next(name for name, types in JSON_TYPES.items() if type(value) in types or name == "null")


def propose(tool: AdvertisedTool, *, base: str | None) -> dict[str, Any]:
    """Return a proposed binding of a tool, with the open questions in `decide`.

    `base` is the server's base for relative paths, if it is clear which.
    """
    properties = tool.input_schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    decide = ["op", "impact"]
    arguments: dict[str, dict[str, Any]] = {}
    for name, schema in properties.items():
        arguments[name] = _argument(name, schema, base, decide)
    op, impact = _effect(tool)
    words = {word.lower() for word in _WORD.findall(tool.name)}
    names = {name.lower() for name in properties}
    if names & _COMMANDS:
        op, impact = "execute", max(impact, 3)
    elif names & _QUERIES and words & {"sql", "query", "db"}:
        op, impact = "execute", 3
    return {
        "tool": tool.name,
        "inputSchemaSha256": tool.pin,
        "op": op,
        "impact": impact,
        "arguments": arguments,
        "decide": decide,
    }


def _argument(name: str, schema: Any, base: str | None, decide: list[str]) -> dict[str, Any]:
    types = json_types(schema)
    if types is None:
        types = frozenset({"string"})
        decide.append(f"arguments.{name}.json")
    argument: dict[str, Any] = {"json": next(iter(types)) if len(types) == 1 else sorted(types)}
    items = schema.get("items") if isinstance(schema, dict) else None
    item_types = json_types(items)
    if "array" in types and item_types is not None and len(item_types) == 1:
        argument["items"] = next(iter(item_types))
    lowered = name.lower()
    text = types - {"null"} == {"string"} or argument.get("items") == "string"
    is_uri = isinstance(schema, dict) and schema.get("format") == "uri"
    if text and (lowered in _HOSTS or is_uri):
        argument["fact"] = "host"
    elif text and (lowered in _PATHS or lowered.endswith("_path")):
        argument |= {"fact": "path", "base": base or ""}
        if base is None:
            decide.append(f"arguments.{name}.base")
    elif text and lowered in _COMMANDS:
        argument["fact"] = "command"
    elif lowered in _AMOUNTS and types - {"null"} <= {"number", "integer"}:
        argument |= {"fact": "amount", "currency": ""}
        decide.append(f"arguments.{name}.currency")
    return argument


def _effect(tool: AdvertisedTool) -> tuple[str, int]:
    """Return op and impact as name and annotations suggest; the annotations are the server's own word."""
    words = [word.lower() for word in _WORD.findall(tool.name)]
    op = next((_VERBS[word] for word in words if word in _VERBS), None)
    if tool.annotations.get("readOnlyHint") is True:
        return op or "read", 1
    if op is None:
        op = "delete" if tool.annotations.get("destructiveHint") is True else "write"
    if op == "read":
        return op, 1
    return op, 2 if tool.annotations.get("destructiveHint") is False else 3

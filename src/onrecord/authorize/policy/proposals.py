"""Proposed bindings, from names and schemas. A person decides: every proposal says what is still open.

Source: running.md 4.4.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

from onrecord.authorize.policy.advertised import AdvertisedTool
from onrecord.authorize.policy.facts import JSON_TYPES

_PATHS: Final = frozenset(
    {"path", "paths", "file", "files", "filename", "filenames", "dir", "dirs", "directory", "directories"}
    | {"folder", "folders", "repo_path", "source", "destination", "root", "cwd", "workspace"}
    | {
        "filepath",
        "filepaths",
        "pathname",
        "file_name",
        "file_names",
        "dirname",
        "dirpath",
        "src",
        "dst",
        "dest",
    }
)
_DIRECTORIES: Final = ("dir", "directory", "folder", "root", "cwd", "workspace", "repo_path", "base_path")
_PATH_ENDS: Final = (
    *(
        "_path",
        "_paths",
        "_file",
        "_files",
        "_filename",
        "_filenames",
        "_file_name",
        "_file_names",
        "_filepath",
    ),
    *("_pathname", "_dir", "_dirs", "_dirname", "_directory", "_directories", "_folder", "_folders"),
)
_HOSTS: Final = frozenset(
    {"url", "urls", "uri", "uris", "endpoint", "host", "hosts", "hostname", "domain", "domains"}
)
_HOST_ENDS: Final = ("_url", "_urls", "_uri", "_uris", "_host", "_hostname")
_HOST_FORMATS: Final = frozenset({"uri", "url", "iri", "hostname"})
_COMMANDS: Final = frozenset(
    {"command", "commands", "command_line", "commandline", "cmdline", "cmd", "shell", "script", "code"}
)
_COMMAND_ENDS: Final = ("_command", "_commands", "_cmd")
_QUERIES: Final = frozenset({"sql", "query"})
_AMOUNTS: Final = frozenset({"amount", "price", "total"})
_VERBS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("delete", "remove", "drop", "purge", "unlink", "wipe", "erase", "destroy"), "delete"),
    **dict.fromkeys(("clear", "truncate", "reset", "uninstall"), "delete"),
    **dict.fromkeys(
        ("run", "exec", "execute", "eval", "invoke", "spawn", "launch", "install", "kill"), "execute"
    ),
    **dict.fromkeys(("send", "post", "publish", "email", "notify", "comment"), "send"),
    **dict.fromkeys(("pay", "buy", "purchase", "transfer", "refund", "charge"), "pay"),
    **dict.fromkeys(("grant", "revoke", "configure", "admin"), "admin"),
    **dict.fromkeys(("read", "get", "list", "search", "find", "show", "fetch", "describe", "status"), "read"),
    **dict.fromkeys(("write", "create", "update", "edit", "set", "add", "move", "rename", "commit"), "write"),
    **dict.fromkeys(("replace", "overwrite", "insert", "append", "modify", "put", "upload", "save"), "write"),
    **dict.fromkeys(("apply", "merge", "push", "patch", "store", "copy"), "write"),
}
_STRONGEST: Final = ("execute", "pay", "delete", "admin", "send", "write", "read")
_NOUNS: Final = frozenset(
    {"comment", "email", "post", "commit", "set", "run", "status", "transfer", "charge", "purchase", "refund"}
    | {
        "update",
        "edit",
        "merge",
        "push",
        "patch",
        "store",
        "copy",
        "launch",
        "install",
        "find",
        "list",
        "search",
    }
)
"""Verbs that are things as well: behind another verb they are what it is done to, as in `get_comment`."""
_JOINTS: Final = frozenset({"and", "or", "then"})
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_BETWEEN = re.compile(r"[\W_]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_MAX_DEPTH: Final = 16
"""Levels of a schema that are searched for names; deeper ones count as a question for a person."""


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
            choices = schema.get(member)
            for choice in choices if isinstance(choices, list) else ():
                inner = json_types(choice)
                if inner is None:
                    return None
                names += inner
        if not names and isinstance(schema.get("enum"), list):
            names = [_type_of(value) for value in schema["enum"]]
    found = frozenset(names)
    return found if found and found <= frozenset(JSON_TYPES) else None


def item_type(schema: Any) -> str | None:
    """Return the JSON type of an array's members, or None when the schema does not say one.

    The array may be one of several choices, as a list that can be left out is.
    """
    if not isinstance(schema, dict):
        return None
    types = json_types(schema.get("items"))
    if types is not None:
        return next(iter(types)) if len(types) == 1 else None
    arrays = [one for one in _choices(schema) if "array" in (json_types(one) or ())]
    return item_type(arrays[0]) if len(arrays) == 1 else None


def _choices(schema: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for member in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(member)
        found += choices if isinstance(choices, list) else []
    return found


def _says_host(schema: Any) -> bool:
    """Say whether a text, a member of an array or one of several choices is declared to be a host or a URL."""
    if not isinstance(schema, dict):
        return False
    if isinstance(schema.get("format"), str) and schema["format"] in _HOST_FORMATS:
        return True
    return any(_says_host(one) for one in (schema.get("items"), *_choices(schema)))


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
    decide += _open_bases(arguments, decide)
    kinds = {kind_of_name(name) for name in properties}
    if "command" in kinds:
        op, impact = "execute", max(impact, 3)
    elif {_plain(name) for name in properties} & _QUERIES and _speaks_sql(tool.name):
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
    items = item_type(schema)
    if "array" in types and items is not None:
        argument["items"] = items
    kind = kind_of_name(name)
    text = types - {"null"} == {"string"} or argument.get("items") == "string"
    is_uri = _says_host(schema)
    if text and (kind == "host" or is_uri):
        argument["fact"] = "host"
    elif text and kind == "path":
        argument |= {"fact": "path", "base": base or ""}
        if base is None:
            decide.append(f"arguments.{name}.base")
    elif text and kind == "command":
        argument["fact"] = "command"
    elif kind == "amount" and types - {"null"} <= {"number", "integer"}:
        argument |= {"fact": "amount", "currency": ""}
        decide.append(f"arguments.{name}.currency")
    elif kind is not None or is_uri or _holds_targets(schema):  # it may be a target that no rule would see
        decide.append(f"arguments.{name}")
    return argument


def _open_bases(arguments: Mapping[str, Mapping[str, Any]], decide: Sequence[str]) -> list[str]:
    """Return the questions for paths that may count from a directory which the call names, and not from the base."""
    paths = [name for name, argument in arguments.items() if argument.get("fact") == "path"]
    others = [name for name in paths if not _plain(name).endswith(_DIRECTORIES)]
    questions = [f"arguments.{name}.base" for name in others] if len(others) < len(paths) else []
    return [question for question in questions if question not in decide]


def kind_of_name(name: str) -> str | None:
    """Return the fact that an argument's name suggests, or None.

        >>> kind_of_name("filePath"), kind_of_name("target_url"), kind_of_name("body")
        ('path', 'host', None)

    Source: running.md 4.4, with the same names in other spellings.
    """
    plain = _plain(name)
    if plain in _HOSTS or plain.endswith(_HOST_ENDS):
        return "host"
    if plain in _PATHS or plain.endswith(_PATH_ENDS):
        return "path"
    if plain in _COMMANDS or plain.endswith(_COMMAND_ENDS):
        return "command"
    return "amount" if plain in _AMOUNTS else None


def _plain(name: str) -> str:
    """Return a name in lower case, its words joined by "_", without what does not show."""
    return _BETWEEN.sub("_", _HUMP.sub("_", unicodedata.normalize("NFKC", name)).lower()).strip("_")


def _speaks_sql(tool_name: str) -> bool:
    lowered = tool_name.lower()
    words = [word.lower() for word in _WORD.findall(tool_name)]
    return "sql" in lowered or "query" in lowered or any(word.endswith("db") for word in words)


def _holds_targets(schema: Any, depth: int = 0) -> bool:
    """Say whether an object, or objects in an array, may have members named like a target: no fact can reach them.

    What is described elsewhere, or not at all, may have any.
    """
    if not isinstance(schema, dict):
        return False
    if depth == _MAX_DEPTH or "$ref" in schema or "$dynamicRef" in schema:
        return True
    properties = schema.get("properties")
    named: Mapping[str, Any] = properties if isinstance(properties, dict) else {}
    types = json_types(schema) or frozenset()
    choices = _choices(schema)
    if "object" in types and not named and not choices and schema.get("additionalProperties") is not False:
        return True
    if "array" in types and not choices and not any(name in schema for name in ("items", "prefixItems")):
        return True
    if any(kind_of_name(name) for name in named):
        return True
    inner = [*named.values(), schema.get("additionalProperties"), *choices]
    for member in ("items", "prefixItems"):
        value = schema.get(member)
        inner += value if isinstance(value, list) else [value]
    patterns = schema.get("patternProperties")
    inner += patterns.values() if isinstance(patterns, dict) else ()
    return any(_holds_targets(one, depth + 1) for one in inner)


def _effect(tool: AdvertisedTool) -> tuple[str, int]:
    """Return op and impact as name and annotations suggest.

    The annotations are the server's own word: they make a tool stronger than its name, and never weaker.
    """
    op = _operation([word.lower() for word in _WORD.findall(tool.name)])
    is_destructive = tool.annotations.get("destructiveHint") is True
    read_only = tool.annotations.get("readOnlyHint")
    if op is None:
        op = "delete" if is_destructive else "read" if read_only is True else "write"
    elif op == "read" and (is_destructive or read_only is False):
        op = "write"
    if op == "read":
        return op, 1
    return op, 2 if tool.annotations.get("destructiveHint") is False and read_only is not True else 3


def _operation(words: Sequence[str]) -> str | None:
    """Return the strongest operation that the verbs of a name say, or None: `get_and_delete` deletes."""
    found: set[str] = set()
    for index, word in enumerate(words):
        is_thing = word in _NOUNS and found and words[index - 1] not in _JOINTS
        if word in _VERBS and not is_thing:
            found.add(_VERBS[word])
    return next((op for op in _STRONGEST if op in found), None)

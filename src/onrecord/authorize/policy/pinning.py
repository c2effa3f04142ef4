"""`policy bind`: bindings for what a server advertises, pinned or proposed.

Source: running.md 4.4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from onrecord.authorize.policy import catalogue
from onrecord.authorize.policy.advertised import AdvertisedServer, AdvertisedTool
from onrecord.authorize.policy.bundle import MAX_BUNDLE_BYTES, read_policy_file
from onrecord.authorize.policy.proposals import item_type, json_types, propose
from onrecord.authorize.policy.source import BUNDLE_FILE
from onrecord.base import strict_json
from onrecord.base.errors import MalformedError, PolicyError, StorageError, UsageError, Where
from onrecord.base.files import replace_whole

PIN: Final = "inputSchemaSha256"

_HIDDEN = re.compile(r"[^\n -~]")


@dataclass(frozen=True, slots=True, kw_only=True)
class BindReport:
    """What `bind` did, or would have to do: names of tools."""

    server: str
    server_name: str
    file: str | None
    pinned: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    proposed: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    proposals: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    in_catalogue: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return all members; `missing` are bound tools that the server does not advertise.

        `proposals` say what was proposed and what a person must decide; `inCatalogue`, that --pin could take shipped
        bindings in their place.
        """
        lists = ("pinned", "unchanged", "proposed", "unbound", "missing", "changed")
        document: dict[str, Any] = {"server": self.server, "serverInfo": self.server_name, "file": self.file}
        document |= {name: list(getattr(self, name)) for name in lists}
        return document | {
            "proposals": [dict(one) for one in self.proposals],
            "inCatalogue": self.in_catalogue,
        }


class ServerSource:
    """The part of a policy source that belongs to one server: its entry in bundle.json and its bindings file."""

    def __init__(self, directory: Path, server_id: str) -> None:
        """Raise `UsageError` with code "server-unknown" or `PolicyError` with code "policy-malformed"."""
        self.server_id = server_id
        document = _read_json(directory / BUNDLE_FILE)
        servers = document.get("servers") if isinstance(document, dict) else None
        entry = next((s for s in servers or () if isinstance(s, dict) and s.get("id") == server_id), None)
        if entry is None:
            raise UsageError(
                f"the policy source has no server {server_id}",
                code="server-unknown",
                where=Where(file=str(directory / BUNDLE_FILE), pointer="/servers"),
                hint=f"onrecord policy bind {server_id} --root DIR adds it; or write it into servers of bundle.json",
            )
        name = entry.get("bindings", f"bindings/{server_id}.json")
        if not isinstance(name, str) or name.startswith("/") or ".." in name.split("/"):
            raise _malformed(directory / BUNDLE_FILE, "bindings is not the name of a file below the source")
        bases = entry.get("bases")
        self.bases: tuple[str, ...] = tuple(bases) if isinstance(bases, dict) else ()
        self.file = directory / name
        self.name = name

    def bindings(self) -> list[dict[str, Any]] | None:
        """Return the bindings as written, or None when there is no file yet or it is empty."""
        if not self.file.exists():
            return None
        value = _read_json(self.file)
        if not isinstance(value, list) or not all(
            isinstance(item, dict)
            and isinstance(item.get("tool"), str)
            and isinstance(item.get("arguments"), dict)
            and all(isinstance(argument, dict) for argument in item["arguments"].values())
            for item in value
        ):
            raise _malformed(self.file, "expected an array of bindings with tool and arguments")
        return value or None

    def write(self, bindings: Sequence[Mapping[str, Any]]) -> None:
        """Replace the bindings file, one binding a line.

        Raises `StorageError` with code "policy-unwritable".
        """
        lines = ",\n".join(f" {json.dumps(binding, ensure_ascii=False)}" for binding in bindings)
        data = _shown(f"[\n{lines}\n]\n").encode()
        if len(data) > MAX_BUNDLE_BYTES:
            raise StorageError(
                f"the bindings would be larger than the {MAX_BUNDLE_BYTES} bytes of a whole policy",
                code="policy-unwritable",
                where=Where(file=str(self.file)),
                hint="this server cannot be bound",
            )
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            replace_whole(self.file, data, mode=0o644)
        except OSError as error:
            raise StorageError(
                f"cannot write the bindings ({error.strerror})",
                code="policy-unwritable",
                where=Where(file=str(self.file)),
            ) from error


def pin(source: ServerSource, server: AdvertisedServer) -> BindReport:
    """Write the hashes of the installed schemas into the bindings, and change nothing else.

    Bindings come from the source or, if it has none, from the catalogue by the server's name for itself; proposals that
    nobody has touched are none. A bound tool with other argument names or JSON types than the installed one is refused,
    and nothing is written.

    Raises `PolicyError` with code "catalogue-unknown", "catalogue-base" or "binding-shape".
    """
    present = source.bindings()
    tools = {tool.name: tool for tool in server.tools}
    if (
        present is not None
        and catalogue.entry(server.name) is not None
        and _untouched(source, present, tools)
    ):
        present = None
    bindings = _from_catalogue(source, server) if present is None else present
    differences = [
        f"{binding['tool']}: {difference}"
        for binding in bindings
        if (tool := tools.get(binding["tool"])) is not None
        for difference in shape_differences(binding["arguments"], tool)
    ]
    if differences:
        raise PolicyError(
            f"installed tools have another shape than their bindings: {'; '.join(sorted(differences)[:20])}",
            code="binding-shape",
            where=Where(file=str(source.file)),
            hint="look at the tool and change its binding by hand, then pin again",
        )
    pinned: list[str] = []
    unchanged: list[str] = []
    result: list[dict[str, Any]] = []
    for binding in bindings:
        found = tools.get(binding["tool"])
        if found is None:
            if present is not None:
                result.append(binding)  # it stays, and never counts: its pin equals nothing advertised
            continue
        (unchanged if binding.get(PIN) == found.pin else pinned).append(found.name)
        result.append(_with_pin(binding, found.pin))
    if pinned or present is None:
        source.write(result)
    bound = {binding["tool"] for binding in bindings}
    return BindReport(
        server=source.server_id,
        server_name=server.name,
        file=source.name,
        pinned=tuple(pinned),
        unchanged=tuple(unchanged),
        unbound=tuple(name for name in tools if name not in bound),
        missing=tuple(b["tool"] for b in bindings if b["tool"] not in tools),
    )


def bind(source: ServerSource, server: AdvertisedServer) -> BindReport:
    """Add a proposed binding for each tool without one; existing entries keep everything but their pin.

    A changed tool keeps its decisions only while its shape is the same; else it is proposed anew beside nothing: the
    old entry is kept as it is, without a new pin, and the tool is reported as changed.
    """
    present = source.bindings() or []
    bound = {binding["tool"]: binding for binding in present}
    base = _base_of(source)
    result, pinned, unchanged, changed = [], [], [], []
    tools = {tool.name: tool for tool in server.tools}
    for binding in present:
        tool = tools.get(binding["tool"])
        if tool is None or binding.get(PIN) == tool.pin:
            result.append(binding)
            if tool is not None:
                unchanged.append(tool.name)
        elif shape_differences(binding["arguments"], tool):
            result.append(binding)
            changed.append(tool.name)
        else:
            result.append(_with_pin(binding, tool.pin))
            pinned.append(tool.name)
    proposals = [propose(tool, base=base) for tool in server.tools if tool.name not in bound]
    result += proposals
    if proposals or pinned:
        source.write(result)
    return BindReport(
        server=source.server_id,
        server_name=server.name,
        file=source.name,
        pinned=tuple(pinned),
        unchanged=tuple(unchanged),
        proposed=tuple(proposal["tool"] for proposal in proposals),
        missing=tuple(name for name in bound if name not in tools),
        changed=tuple(changed),
        proposals=tuple(proposals),
        in_catalogue=catalogue.entry(server.name) is not None and _untouched(source, result, tools),
    )


def _untouched(
    source: ServerSource, bindings: Sequence[Mapping[str, Any]], tools: Mapping[str, AdvertisedTool]
) -> bool:
    """Say whether all bindings are proposals as they were written: nobody has decided anything yet."""
    base = _base_of(source)
    return all(
        (tool := tools.get(binding["tool"])) is not None and binding == propose(tool, base=base)
        for binding in bindings
    )


def compare(source: ServerSource, reported: Mapping[str, str]) -> BindReport:
    """Compare the pins of the source with what a running server reported; nothing is started or written."""
    bindings = {binding["tool"]: binding.get(PIN) for binding in source.bindings() or ()}
    return BindReport(
        server=source.server_id,
        server_name="",
        file=source.name,
        unchanged=tuple(
            name for name, pin_ in bindings.items() if name in reported and reported[name] == pin_
        ),
        changed=tuple(name for name, pin_ in bindings.items() if name in reported and reported[name] != pin_),
        missing=tuple(name for name in bindings if name not in reported),
        unbound=tuple(name for name in reported if name not in bindings),
    )


def shape_differences(arguments: Mapping[str, Mapping[str, Any]], tool: AdvertisedTool) -> list[str]:
    """Return how the argument names and JSON types of a binding differ from a tool's schema."""
    properties = tool.input_schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    found = [f"no argument {name} any more" for name in arguments if name not in properties]
    found += [f"new argument {name}" for name in properties if name not in arguments]
    for name, argument in arguments.items():
        if name not in properties:
            continue
        declared = json_types(properties[name])
        types = argument.get("json")
        bound = {types} if isinstance(types, str) else set(types or ())
        if declared is None:
            found.append(f"the schema gives no JSON type for {name}")
        elif bound != declared:
            found.append(f"{name} is {' or '.join(sorted(declared))} now")
        elif argument.get("items") not in (None, items := item_type(properties[name])):
            found.append(f"the members of {name} are {items or 'of no single type'} now")
    return found


def _from_catalogue(source: ServerSource, server: AdvertisedServer) -> list[dict[str, Any]]:
    entry = catalogue.entry(server.name)
    if entry is None:
        raise PolicyError(
            "neither the source nor the catalogue has bindings for this server",
            code="catalogue-unknown",
            where=Where(file=str(source.file)),
            hint=f"onrecord policy bind {source.server_id} proposes bindings; decide them, then pin",
        )
    base = _base_of(source)
    if base is None and any(
        argument.get("base") == catalogue.DEFAULT_BASE
        for tool in entry.tools
        for argument in tool["arguments"].values()
    ):
        raise PolicyError(
            f"server {source.server_id} needs one base, or one named {catalogue.DEFAULT_BASE}, for relative paths",
            code="catalogue-base",
            where=Where(file=str(source.file)),
            hint='set "bases" of the server in bundle.json, for instance {"work": "/srv/work"}',
        )
    return [
        {
            **tool,
            "arguments": {
                name: argument | {"base": base}
                if argument.get("base") == catalogue.DEFAULT_BASE
                else argument
                for name, argument in tool["arguments"].items()
            },
        }
        for tool in entry.tools
    ]


def _base_of(source: ServerSource) -> str | None:
    if catalogue.DEFAULT_BASE in source.bases:
        return catalogue.DEFAULT_BASE
    return source.bases[0] if len(source.bases) == 1 else None


def _with_pin(binding: Mapping[str, Any], value: str) -> dict[str, Any]:
    """Return the binding with this pin, as its second member."""
    rest = {name: member for name, member in binding.items() if name not in ("tool", PIN)}
    return {"tool": binding["tool"], PIN: value, **rest}


def _shown(text: str) -> str:
    """Return JSON in which everything shows: a person decides by it, and the names in it are the server's."""
    return _HIDDEN.sub(lambda match: match[0] if match[0].isprintable() else _escaped(match[0]), text)


def _escaped(char: str) -> str:
    units = char.encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _read_json(path: Path) -> Any:
    try:
        return strict_json.parse(read_policy_file(path, follow=True))[0]
    except MalformedError as error:
        raise _malformed(path, str(error)) from None


def _malformed(path: Path, message: str) -> PolicyError:
    return PolicyError(message, code="policy-malformed", where=Where(file=str(path)))

"""Checks the text of `onrecord.toml` against the table of keys and fills in the defaults.

Gives one flat mapping from key name to value; `configuration.py` makes the objects.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, Final

from onrecord.base._configuration_values import NOT_BUILT, ConfigurationText, Values, reject
from onrecord.base.configuration_keys import (
    EVIDENCE_NAMES,
    KEYS,
    KEYS_BY_NAME,
    LATER_EVIDENCE,
    MODES,
    SECTIONS,
    SERVER_KEYS,
    SERVER_KEYS_BY_NAME,
    Key,
    Mode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SERVER_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
"""A deployment id (call-proof.md 5.2)."""

_DOMAIN: Final = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9-]{1,63}(?<!-))+")


_HOST_PORT: Final = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\]):([1-9][0-9]{0,4})", re.ASCII
)


def is_canary(text: str) -> bool:
    """Say whether a text is something that `onrecord doctor` can try to reach: an absolute path or host:port."""
    if text.startswith("/"):
        return text.isprintable() and ".." not in text.split("/")
    match = _HOST_PORT.fullmatch(text)
    return match is not None and int(match[1]) < 1 << 16


def first_mode(source: ConfigurationText) -> Mode:
    """Return `mode`, which decides about all other keys."""
    if "mode" not in source.document:
        nearest = difflib.get_close_matches("mode", source.document, n=1)
        reject(
            source,
            nearest or (),
            "the key `mode` is missing",
            code="configuration-key",
            hint='write mode = "user" or "system"',
        )
    value = source.document["mode"]
    for mode in MODES:
        if value == mode:
            return mode
    reject(source, ("mode",), 'expected "user" or "system"')


class Reader:
    """One pass over one document."""

    def __init__(self, source: ConfigurationText, *, mode: Mode, environ: Mapping[str, str]) -> None:
        self._source = source
        self._mode: Mode = mode
        self._values = Values(source, mode=mode, environ=environ)

    def values(self) -> dict[str, Any]:
        """Return every key with its value; `servers` holds one mapping per server."""
        document = self._source.document
        self._refuse_unknown(document, {"mode", "servers", "sinks", *SECTIONS}, (), KEYS_BY_NAME)
        if document.get("sinks"):
            reject(
                self._source,
                ("sinks",),
                "sinks are not built yet",
                code=NOT_BUILT,
                hint="take the table out; checkpoints go to callers and to the high-water file",
            )
        written = {"mode": document["mode"]}
        for section in SECTIONS:
            table = self._values.table(document.get(section, {}), (section,))
            known = {key.name.partition(".")[2] for key in KEYS if key.name.startswith(section + ".")}
            self._refuse_unknown(table, known, (section,), KEYS_BY_NAME)
            written |= {f"{section}.{name}": value for name, value in table.items()}
        values: dict[str, Any] = {}
        for key in KEYS:
            path = key.name.split(".")
            if self._mode not in key.modes:
                if key.name in written:
                    reject(
                        self._source,
                        path,
                        f"only in {key.modes[0]} mode",
                        code="configuration-key",
                        hint="take the key out",
                    )
                continue
            values[key.name] = self._values.value(key, path, written.get(key.name))
            if path[0] == "paths":
                self._values.names[path[1]] = str(values[key.name])
        self._refuse_unbuilt(values)
        values["servers"] = self._servers(document.get("servers", {}))
        return values

    def _refuse_unknown(
        self, table: Mapping[str, Any], known: Iterable[str], path: Sequence[str], names: Mapping[str, Key]
    ) -> None:
        for name in table:
            if name not in known:
                # The last parts are compared too, so that a key in the wrong table finds its place.
                full = ".".join((*path, name))
                near = difflib.get_close_matches(full, names, n=1) or [
                    one
                    for part in difflib.get_close_matches(
                        name, [one.rpartition(".")[2] for one in names], n=1, cutoff=0.8
                    )
                    for one in names
                    if one.rpartition(".")[2] == part
                ]
                near = near or difflib.get_close_matches(name, list(known), n=1)
                hint = f"did you mean {near[0]}?" if near else "known here: " + ", ".join(sorted(known))
                reject(self._source, (*path, name), "unknown key", code="configuration-key", hint=hint)

    def _servers(self, value: object) -> dict[str, dict[str, Any]]:
        servers = {}
        for id_, table in self._values.table(value, ("servers",)).items():
            path = ("servers", id_)
            if not SERVER_ID.fullmatch(id_):
                reject(
                    self._source,
                    path,
                    "not a server id",
                    hint="lower case letters, digits, '.', '_', '-'; at most 64",
                )
            entry = self._values.table(table, path)
            self._refuse_unknown(entry, SERVER_KEYS_BY_NAME, path, SERVER_KEYS_BY_NAME)
            servers[id_] = self._server(entry, path)
        return servers

    def _server(self, entry: Mapping[str, Any], path: tuple[str, str]) -> dict[str, Any]:
        if "sandbox" in entry:
            reject(
                self._source,
                (*path, "sandbox"),
                "the sandbox is not built yet",
                code=NOT_BUILT,
                hint="take the key out",
            )
        values = {}
        for key in SERVER_KEYS:
            if self._mode not in key.modes and key.name in entry:
                reject(
                    self._source,
                    (*path, key.name),
                    "only in system mode",
                    code="configuration-key",
                    hint="take the key out",
                )
            values[key.name] = self._values.value(key, (*path, key.name), entry.get(key.name))
        for required in ("command", "user") if self._mode == "system" else ("command",):
            if values[required] is None:
                reject(self._source, path, f"the key `{required}` is missing", code="configuration-key")
        for canary in values["canaries"] or ():
            if not is_canary(canary):
                reject(
                    self._source,
                    (*path, "canaries"),
                    "expected an absolute path or host:port",
                    hint='for example "/srv/files/canary.txt", "db.example.com:5432" or "[::1]:5432"',
                )
        values["ti_server"] = values.pop("tiServer")
        return values

    def _refuse_unbuilt(self, values: Mapping[str, Any]) -> None:
        source = self._source
        for name in values["authority.evidence"]:
            if name in LATER_EVIDENCE:
                reject(
                    source,
                    ("authority", "evidence"),
                    f"the evidence type {name} is not built yet",
                    code=NOT_BUILT,
                    hint='write ["handle"]',
                )
            if name not in EVIDENCE_NAMES:
                reject(
                    source,
                    ("authority", "evidence"),
                    "unknown evidence type",
                    hint="known: " + ", ".join(EVIDENCE_NAMES),
                )
        if not values["authority.evidence"]:
            reject(
                source,
                ("authority", "evidence"),
                "at least one evidence type is needed",
                hint='write ["handle"]',
            )
        if len(set(values["authority.evidence"])) != len(values["authority.evidence"]):
            reject(source, ("authority", "evidence"), "an evidence type is named twice")
        if values["authority.digest_key"]:
            reject(
                source,
                ("authority", "digest_key"),
                "keyed digests are not built yet",
                code=NOT_BUILT,
                hint="leave it empty",
            )
        if values["authority.require_sink"]:
            reject(
                source,
                ("authority", "require_sink"),
                "sinks are not built yet",
                code=NOT_BUILT,
                hint="write false",
            )
        if values["recorder.checkpoint_seconds"]:
            reject(
                source,
                ("recorder", "checkpoint_seconds"),
                "interim vCons are not built yet",
                code=NOT_BUILT,
                hint="write 0",
            )
        if values["recorder.domain"] and not _DOMAIN.fullmatch(values["recorder.domain"]):
            reject(
                source,
                ("recorder", "domain"),
                "not a domain name",
                hint="for example records.example.com, or empty",
            )

"""The source directory of a policy: what people edit, and what `policy sign` makes a bundle of.

Source: running.md 4.2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from onrecord.authorize.policy import rules
from onrecord.authorize.policy.bundle import Bundle, read_bundle, read_policy_file
from onrecord.authorize.policy.codes import finding
from onrecord.authorize.policy.lint import Mode, check_bundle
from onrecord.authorize.policy.model import MEMBER_ORDER
from onrecord.authorize.policy.tables import Row, read_rows
from onrecord.base import strict_json
from onrecord.base.errors import MalformedError, PolicyError
from onrecord.base.findings import Finding

BUNDLE_FILE: Final = "bundle.json"
SCHEMA_FILE: Final = "schema.cedar"
POLICIES: Final = "policies"
TESTS_FILE: Final = "tests.json"

_MADE_BY_SIGN: Final = ("created", "policies", "schema")
_BINDINGS_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A policy source as read. `bundle` is None when a fatal finding is there; `data` are the bytes to sign."""

    directory: Path
    bundle: Bundle | None
    data: bytes = field(default=b"", repr=False)
    findings: tuple[Finding, ...]
    rows: tuple[Row, ...] = ()

    @property
    def has_errors(self) -> bool:
        """Say whether a finding forbids signing."""
        return any(item.severity == "error" for item in self.findings)


def read_source(directory: Path, *, now: datetime | None = None, mode: Mode | None = None) -> Source:
    """Read and check a source directory. `now` becomes the member created.

    Raises `PolicyError` with code "policy-missing" when there is no bundle.json in it.
    """
    read_policy_file(directory / BUNDLE_FILE, follow=True)
    reader = _Reader(directory)
    document = reader.document(now or datetime.now(UTC))
    rows = reader.rows()
    if document is None:
        return Source(directory=directory, bundle=None, findings=tuple(reader.findings))
    data = compose(document)
    bundle, problems = read_bundle(data)
    findings = [*reader.findings, *problems]
    if bundle is not None:
        findings += check_bundle(bundle, mode=mode)
    located = tuple(reader.locate(item) for item in findings)
    return Source(directory=directory, bundle=bundle, data=data, findings=located, rows=rows)


def compose(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a bundle: members in the order of the format, one space of indentation."""
    ordered = {name: document[name] for name in MEMBER_ORDER if name in document}
    ordered |= {name: value for name, value in document.items() if name not in ordered}
    return (json.dumps(ordered, indent=1, ensure_ascii=False) + "\n").encode()


class _Reader:
    """Reads one directory and collects what is wrong with it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rule_files: dict[str, str] = {}
        self._binding_files: dict[int, str] = {}
        self.findings: list[Finding] = []

    def document(self, now: datetime) -> dict[str, Any] | None:
        """Return the whole document, or None when bundle.json or a file that it needs cannot be read."""
        document = self._json(BUNDLE_FILE)
        policies, schema = self._policies(), self._text(SCHEMA_FILE)
        if not isinstance(document, dict):
            if document is not None:
                self.findings.append(finding("bundle-malformed", "", "expected an object", file=BUNDLE_FILE))
            return None
        for name in _MADE_BY_SIGN:
            if name in document:
                self.findings.append(
                    finding(
                        "bundle-malformed", f"/{name}", "this member is made by policy sign", file=BUNDLE_FILE
                    )
                )
        servers = document.get("servers")
        if isinstance(servers, list):
            document["servers"] = [self._server(server, index) for index, server in enumerate(servers)]
        if schema is not None and schema != rules.shipped_schema():
            self.findings.append(
                finding("source-schema", "/schema", "not a copy of the shipped schema", file=SCHEMA_FILE)
            )
        if policies is None or schema is None or any(item.fatal for item in self.findings):
            return None
        created = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return document | {"created": created, "policies": policies, "schema": rules.shipped_schema()}

    def rows(self) -> tuple[Row, ...]:
        """Return the rows of tests.json; without the file there are none."""
        if not (self._directory / TESTS_FILE).exists():
            return ()
        value = self._json(TESTS_FILE)
        if value is None:
            return ()
        rows, problems = read_rows(value)
        self.findings += [replace(item, data={"file": TESTS_FILE}) for item in problems]
        return rows

    def locate(self, item: Finding) -> Finding:
        """Add the file that a finding is about."""
        data = dict(item.data or {})
        if "file" in data:
            return item
        server = re.match(r"/servers/(\d+)/tools", item.pointer)
        if item.pointer == "/policies" and data.get("rule") in self._rule_files:
            data["file"] = self._rule_files[data["rule"]]
        elif server and int(server[1]) in self._binding_files:
            data["file"] = self._binding_files[int(server[1])]
        elif item.pointer != "/policies":
            data["file"] = BUNDLE_FILE
        return replace(item, data=data or None)

    def _server(self, server: Any, index: int) -> Any:
        if not isinstance(server, dict):
            return server
        name = server.get("bindings")
        if "tools" in server or not isinstance(name, str) or not _BINDINGS_NAME.fullmatch(name):
            self.findings.append(
                finding(
                    "bundle-malformed",
                    f"/servers/{index}/bindings",
                    "expected the name of a file below the source in place of tools",
                    file=BUNDLE_FILE,
                )
            )
            return {key: value for key, value in server.items() if key != "bindings"}
        self._binding_files[index] = name
        tools = self._json(name)
        return {key: value for key, value in server.items() if key != "bindings"} | {"tools": tools}

    def _policies(self) -> str | None:
        try:
            files = sorted((self._directory / POLICIES).glob("*.cedar"))
        except OSError:
            files = []
        texts: list[str] = []
        for path in files:
            name = f"{POLICIES}/{path.name}"
            text = self._text(name)
            if text is None:
                return None
            for match in re.finditer(r'@id\(\s*"([^"\\]*)"\s*\)', text):
                self._rule_files.setdefault(match[1], name)
            texts.append(text if not text or text.endswith("\n") else text + "\n")
        return "".join(texts)

    def _text(self, name: str) -> str | None:
        try:
            return read_policy_file(self._directory / name, follow=True).decode()
        except PolicyError as error:
            what = "the file is missing" if error.code == "policy-missing" else str(error)
            self.findings.append(finding("source-file", "", what, file=name))
        except UnicodeDecodeError:
            self.findings.append(finding("source-file", "", "the file is not UTF-8", file=name))
        return None

    def _json(self, name: str) -> Any:
        text = self._text(name)
        if text is None:
            return None
        try:
            return strict_json.parse(text.encode())[0]
        except MalformedError as error:
            self.findings.append(finding("bundle-json", "", str(error), file=name))
            return None


def read_checked(path: Path, *, mode: Mode | None = None, now: datetime | None = None) -> Source:
    """Read and check a source directory or a bundle file; the signature of a bundle is not looked at.

    Raises `PolicyError` with code "policy-missing" or "policy-unreadable".
    """
    if path.is_dir():
        return read_source(path, now=now, mode=mode)
    data = read_policy_file(path, follow=True)
    bundle, findings = read_bundle(data)
    if bundle is not None:
        findings = check_bundle(bundle, mode=mode)
    return Source(directory=path, bundle=bundle, data=data, findings=findings)

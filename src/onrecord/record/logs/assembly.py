"""vCons from spooled objects: parties, sessions and references are added, and the text is written as it is read.

Source: native-logs.md 1.1; AA sections 4 and 5.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from onrecord import __version__
from onrecord.base.namespaces import AI_AGENT_EXTENSION, NS
from onrecord.record.credentials import Hit, find, replace
from onrecord.record.logs.credential_search import CredentialSearch
from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.runs import Run
from onrecord.record.logs.sessions import AGENT, PARENT, USER, NativeSession
from onrecord.record.logs.spool import ATTACHMENT, DIALOG, EVENT

UNKNOWN: Final = "unknown"
"""What stands in REQUIRED members that the log does not tell (D-LOG-19)."""

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_IDS: Final = ("entry_id", "parent_id", "call_id")
"""Members of objects by which others name them."""

_WRITE_BYTES: Final = 1 << 19


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """A vCon that was written: its identity, its place, and the sessions in it, the root first."""

    uuid: str
    path: Path
    sessions: tuple[NativeSession, ...]
    size: int


def uuid_of(root: NativeSession) -> str:
    """Return the UUID of a root session's vCon: version 8, from format, agent kind and session id (D-LOG-22)."""
    named = root.vcon_members.get("uuid")
    if isinstance(named, str) and _UUID.fullmatch(named):
        return named
    text = f"{root.format_id}\0{root.agent_kind}\0{root.agent_session_id}"
    digest = int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:16], "big")
    digest = digest & ~(0xF << 76) | 0x8 << 76
    return str(uuid.UUID(int=digest & ~(0x3 << 62) | 0x2 << 62))


def assemble(
    run: Run,
    family: Sequence[NativeSession],
    path: Path,
    *,
    created_at: str,
    updated_at: str | None = None,
) -> Assembled:
    """Write the vCon of a root session and the sessions below it to a new file of mode 0600.

    `created_at` and `updated_at` are Dates. Credentials are reported with the findings of each session's last source.

    Raises `OSError` as the file system does.
    """
    identity = uuid_of(family[0])
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        size = _Assembly(run, family, file).write(identity, created_at, updated_at)
    return Assembled(uuid=identity, path=path, sessions=tuple(family), size=size)


class _Assembly:
    def __init__(self, run: Run, family: Sequence[NativeSession], file: BinaryIO) -> None:
        self._run = run
        self._family = family
        self._file = file
        self._place = {session.index: number for number, session in enumerate(family)}
        self._children: dict[int, list[tuple[int, NativeSession]]] = {}
        for number, session in enumerate(family):
            if number and session.parent is not None:
                self._children.setdefault(session.parent.index, []).append((number, session))
        self._others: dict[str, int] = {}
        self._names = [{number: name for name, number in session.others.items()} for session in family]
        self._objects = run.objects_of(family)
        self._dialogs: list[list[int]] = [[] for _ in family]
        self._search = CredentialSearch(self._found)
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._size = 0

    def write(self, identity: str, created_at: str, updated_at: str | None) -> int:
        root = self._family[0]
        members: dict[str, Any] = {
            "uuid": identity,
            "created_at": root.vcon_members.get("created_at", created_at),
        }
        if updated_at is not None:
            members["updated_at"] = updated_at
        members["extensions"] = [AI_AGENT_EXTENSION, NS]
        if root.subject is not None:
            members["subject"] = root.subject
        members["recording_agent"] = {"name": "onrecord", "version": __version__}
        if root.vcs.get("type"):
            members["vcs"] = root.vcs
        files = _merged(self._family)
        if files:
            members["file_attribution"] = {"files": files}
        members |= {
            name: value for name, value in root.vcon_members.items() if name not in ("uuid", "created_at")
        }
        self._index()
        members["parties"] = self._parties()
        members["sessions"] = [self._session(number) for number in range(len(self._family))]
        self._write(orjson.dumps(self._searched(members))[:-1])
        tails = self._tails()
        counts = self._kinds
        if counts[DIALOG]:
            self._write_objects("dialog", DIALOG, tails)
        if counts[EVENT]:
            self._write_objects("events", EVENT, tails)
        if counts[ATTACHMENT]:
            self._write_objects("attachments", ATTACHMENT, tails)
        self._write(b"}\n")
        self._flush()
        self._search.finish()
        return self._size

    # -- what stands around the objects

    def _index(self) -> None:
        """Number the dialogs, and find the dialog of each attachment."""
        spool = self._run.spool
        kinds, sessions, entries, speakers = spool.kinds, spool.sessions, spool.entries, spool.speakers
        place, dialogs = self._place, self._dialogs
        self._kinds = [0, 0, 0]
        self._dialog_of: dict[int, int] = {}
        homes: dict[tuple[int, int], int] = {}
        waiting: list[tuple[int, tuple[int, int], int | None]] = []
        last: dict[int, int] = {}
        for number in self._objects:
            kind = kinds[number]
            if kind == DIALOG:
                session, index = sessions[number], self._kinds[DIALOG]
                dialogs[place[session]].append(index)
                homes.setdefault((session, entries[number]), index)
                last[session] = index
                if speakers[number] > PARENT:
                    self._other(sessions[number], speakers[number])
            elif kind == ATTACHMENT:
                session = sessions[number]
                waiting.append((number, (session, entries[number]), last.get(session)))
            self._kinds[kind] += 1
        for number, home, before in waiting:
            found = homes.get(home, before)
            if found is not None or self._kinds[DIALOG]:
                self._dialog_of[number] = found or 0

    def _other(self, session: int, speaker: int) -> int:
        name = self._names[self._place[session]][speaker]
        return self._others.setdefault(name, len(self._family) + 1 + len(self._others))

    def _parties(self) -> list[dict[str, Any]]:
        root = self._family[0]
        parties = [_caller(root)]
        for session in self._family:
            agent = session.agent
            meta: dict[str, Any] = {
                "model_id": next(iter(agent.models), UNKNOWN),
                "model_provider": agent.model_provider or UNKNOWN,
            }
            if not agent.models or agent.model_provider is None:
                session.report_unknown_model()
            if agent.models:
                meta["models"] = list(agent.models)
            if agent.cli_name:
                meta["cli_name"] = agent.cli_name
            if agent.cli_version:
                meta["cli_version"] = agent.cli_version
            meta |= {name: value for name, value in agent.more.items() if name not in meta}
            name = agent.name or agent.cli_name
            parties.append({"type": "bot", **({"name": name} if name else {}), "agent_meta": meta})
        parties += [{"type": "bot", "name": name} for name in self._others]
        return parties

    def _session(self, number: int) -> dict[str, Any]:
        session = self._family[number]
        first, last = session.first, session.last
        members: dict[str, Any] = {}
        if first is not None and last is not None:
            members["start"] = first[1]
            members["duration"] = _seconds(last[0] - first[0])
        others = {self._others[name] for name in session.others if name in self._others}
        members["parties"] = sorted({self._counterpart(number), number + 1} | others)
        members["dialog"] = self._dialogs[number]
        children = [
            {
                "session": place,
                "type": "child",
                **({"description": child.child_note} if child.child_note else {}),
            }
            for place, child in self._children.get(session.index, ())
        ]
        if children:
            members["sessions"] = children
        members["agent_session_id"] = session.agent_session_id or UNKNOWN
        if session.format is not None:
            members["format"] = session.format
        if session.working_dir is not None:
            environment: dict[str, Any] = {"working_dir": session.working_dir}
            if session.vcs.get("type"):
                environment["vcs"] = session.vcs
            if session.sandboxes:
                environment["sandboxes"] = session.sandboxes
            environment |= session.environment_members
            members["environment"] = environment
        if session.rest and self._run.options.with_rest:
            members["onrecord"] = {"rest": session.rest}
        return members

    def _counterpart(self, number: int) -> int:
        """Return the party that a session's agent talks with: the user, or the agent of the session above."""
        parent = self._family[number].parent
        return 0 if parent is None or not number else self._place.get(parent.index, -1) + 1

    def _tails(self) -> list[dict[int, bytes]]:
        """Return for each session what ends its objects: by speaker for dialogs, under -1 for events."""
        tails = []
        for number, session in enumerate(self._family):
            agent, other = number + 1, self._counterpart(number)
            tail = {
                USER: b',"parties":[0,%d]' % agent,
                AGENT: b',"parties":[%d,%d]' % (agent, other),
                PARENT: b',"parties":[%d,%d]' % (other, agent),
                -1: b',"session":%d,"party":%d' % (number, agent),
            }
            for name, speaker in session.others.items():
                if name in self._others:
                    tail[speaker] = b',"parties":[%d,%d]' % (self._others[name], agent)
            tails.append(tail)
        return tails

    def _searched(self, members: dict[str, Any]) -> dict[str, Any]:
        """Report the credentials in what stands around the objects, or replace them."""
        findings = self._family[0].trace.findings
        if self._run.options.redact:
            named = {
                name: members.pop(name) for name in ("uuid", "created_at", "updated_at") if name in members
            }
            members, _ = replace(members)
            return named | members
        for hit in find(members):
            self._report(findings, None, hit)
        return members

    # -- the objects

    def _write_objects(self, name: str, kind: int, tails: list[dict[int, bytes]]) -> None:
        spool, place, run_place = self._run.spool, self._place, self._run.spool.sessions
        kinds, speakers, read = spool.kinds, spool.speakers, spool.read
        look_at = self._search.look_at
        prefix = f"/{name}/"
        parents = self._spawned() if kind != ATTACHMENT else {}
        write = self._write
        index = 0
        start = b',"%s":[{' % name.encode("ascii")
        for number in self._objects:
            if kinds[number] != kind:
                continue
            head, ext = read(number)
            session = place[run_place[number]]
            if kind == EVENT:
                tail = tails[session][-1]
            elif kind == DIALOG:
                tail = tails[session][speakers[number]]
            else:
                tail = self._contributor(session, speakers[number])
                if number in self._dialog_of:
                    tail += b',"dialog":%d' % self._dialog_of[number]
            if number in parents:
                tail += b',"parent_id":' + parents[number]
            text = b"".join((head, tail, b',"onrecord":{', ext, b"}"))
            if self._run.options.redact and kind != ATTACHMENT:
                text = _redacted(text)
            if kind != ATTACHMENT:  # base64 holds no text, and looks like a key now and then
                look_at(number, prefix + str(index), b"{" + text + b"}")
            write(start)
            write(text)
            start = b"},{"
            index += 1
        write(b"}]")

    def _contributor(self, session: int, speaker: int) -> bytes:
        """Return the party of an attachment: who gave it."""
        party = session + 1 if speaker == AGENT else self._counterpart(session) if speaker == PARENT else 0
        return b',"party":%d' % party

    def _spawned(self) -> dict[int, bytes]:
        """Return the parent of the first object of each child session whose spawning call is known."""
        parents: dict[int, bytes] = {}
        for session in self._family[1:]:
            parent, first = session.parent, session.first_object
            if parent is None or session.parent_call is None or first is None:
                continue
            call = parent.call_object(session.parent_call)
            if call is None or b'"parent_id":' in self._run.spool.read(first).head:
                continue
            members = orjson.loads(b"{" + self._run.spool.read(call).head + b"}")
            parents[first] = orjson.dumps(members["entry_id"])
        return parents

    def _found(self, number: int, hit: Hit) -> None:
        session = self._run.sessions[self._run.spool.sessions[number]]
        self._report(session.trace.findings, self._run.spool.entries[number], hit)

    @staticmethod
    def _report(findings: FileFindings, record: int | None, hit: Hit) -> None:
        findings.add(
            "credential-found",
            record=record,
            pointer=hit.pointer,
            message=f"a credential of the kind {hit.pattern}",
            action="kept as it is; --redact replaces it",
            data={"kind": hit.kind, "pattern": hit.pattern},
        )

    def _write(self, text: bytes) -> None:
        self._pending.append(text)
        self._pending_bytes += len(text)
        if self._pending_bytes >= _WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        block = memoryview(b"".join(self._pending))
        self._size += len(block)
        self._pending.clear()
        self._pending_bytes = 0
        while block:
            block = block[self._file.write(block) :]


def _redacted(text: bytes) -> bytes:
    """Replace the credentials that are left in an object: in names, ids and counts.

    Ids stay apart: what is written in place of one ends with a part of its hash.
    """
    members = orjson.loads(b"{" + text + b"}")
    clean, count = replace(members)
    if not count:
        return text
    for name in _IDS:
        if clean.get(name) != members.get(name):
            digest = hashlib.sha256(members[name].encode("utf-8")).hexdigest()
            clean[name] = f"{clean[name]} {digest[:12]}"
    return orjson.dumps(clean)[1:-1]


def _caller(root: NativeSession) -> dict[str, Any]:
    """Return party 0: the human, or a program that calls the agent when no human text is told (native-logs.md 1.1)."""
    if not root.has_human_text and (root.format == "autonomous" or root.is_child):
        return {"type": "bot", "name": "caller"}
    return {"type": "person", "name": root.user_name or "user"}


def _seconds(ns: int) -> int | float:
    whole, rest = divmod(ns, 1_000_000_000)
    return whole if not rest else round(ns / 1e9, 6)


def _merged(family: Sequence[NativeSession]) -> list[dict[str, Any]]:
    """Return the File Objects of all sessions, one for each path."""
    files: dict[str, dict[str, Any]] = {}
    for session in family:
        for file in session.file_attribution:
            known = files.get(file["path"])
            if known is None:
                files[file["path"]] = {**file, "conversations": list(file["conversations"])}
            else:
                known["conversations"] += file["conversations"]
    return [files[path] for path in sorted(files)]


__all__ = ["Assembled", "assemble", "uuid_of"]

"""What a VACR record says about itself, its session and its agent: members of the vCon, the Session and the Party.

Kebab-case names become snake_case; what has no place, or not the kind of value that belongs there, goes to `rest`.

Source: native-logs.md 4.10; record.md section 9; AA appendix C.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final

from onrecord.record.logs.findings import FileFindings
from onrecord.record.logs.sessions import NativeSession
from onrecord.record.logs.times import Time, Times

URN: Final = "urn:vacr:"
"""What stands before an id that is no UUID to make a name of it (D-77)."""

_VCS: Final = ("revision", "branch", "repository")
_DOCUMENT: Final = frozenset(
    ["version", "id", "session", "created", "file-attribution", "vcs", "recording-agent"]
)
_SESSION: Final = frozenset(
    ["format", "session-id", "session-start", "session-end", "agent-meta", "environment", "entries"]
)
_times: Final = Times()


def time_of(value: Any) -> Time | None:
    """Return an abstract-timestamp: RFC 3339 text or milliseconds since 1970."""
    return _times.read(value, is_text_format=False)


def uuid_of(identity: Any) -> str | None:
    """Return the UUID of a record's id, a name-based one for an id that is none (D-77); None without an id."""
    if not isinstance(identity, str) or not identity:
        return None
    try:
        kept = uuid.UUID(identity)
    except ValueError:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, URN + identity))
    text = str(kept)
    return text if text == identity.lower() else str(uuid.uuid5(uuid.NAMESPACE_URL, URN + identity))


class Facts:
    """Takes the members of one record that are no entries."""

    def __init__(self, session: NativeSession, findings: FileFindings, record: int) -> None:
        self._session = session
        self._findings = findings
        self._record = record
        self.rest: dict[str, Any] = {}
        """Members without a place, by the native names of the objects that they stand in."""

    def document(self, native: Mapping[str, Any]) -> None:
        """Take what the record says about itself."""
        members = self._session.vcon_members
        identity = uuid_of(native.get("id"))
        if identity is not None:
            members["uuid"] = identity
        if identity != native.get("id"):
            self._keep("id", native)
        if "created" in native:
            created = time_of(native["created"])
            if created is None:
                self._findings.add("time-missing", record=self._record, action="time of the import written")
            else:
                members["created_at"] = created.text
            if created is None or created.lost:
                self._keep("created", native)
        recorder = native.get("recording-agent")
        if isinstance(recorder, dict) and isinstance(recorder.get("name"), str):
            made, left = self._texts(recorder, ("name", "version"))
            members["recording_agent"] = {**made, **left}
        elif recorder is not None:
            self._odd("recording-agent", native)
        if "vcs" in native:
            vcs = self._vcs(native["vcs"])
            if vcs is None:
                self._odd("vcs", native)
            else:
                members["vcs"] = vcs
        self._others(native, _DOCUMENT)

    def session(self, native: Mapping[str, Any]) -> None:
        """Take what the record says about the session."""
        session = self._session
        kind = native.get("format")
        if isinstance(kind, str) and kind:
            session.format = kind  # type: ignore[assignment]  # VACR allows a vendor's word
        elif kind is not None:
            self._odd("format", native)
        for name in ("session-start", "session-end"):
            if name in native:
                read = time_of(native[name])
                if read is not None:
                    session.saw_time(read.ns, read.text)
                else:
                    self._findings.add(
                        "time-missing", record=self._record, action="that of the entries counts"
                    )
                if read is None or read.lost:
                    self._keep(name, native)
        self._agent(native.get("agent-meta"), native)
        environment = native.get("environment")
        if isinstance(environment, dict):
            self._environment(environment)
        elif environment is not None:
            self._odd("environment", native)
        self._others(native, _SESSION)

    def times(self, native: Mapping[str, Any]) -> None:
        """Let the session begin and end when the record says so, whatever the times of its entries are.

        A record that ends before it begins is not believed: its times go to `rest`, and those of the entries count.
        """
        start, end = (time_of(native.get(name)) for name in ("session-start", "session-end"))
        session = self._session
        if start is not None and end is not None and end.ns < start.ns:
            for name in ("session-start", "session-end"):
                if name not in self.rest:
                    self._keep(name, native)
            return
        if start is not None:
            session.first = (start.ns, start.text)
        if end is not None:
            session.last = (end.ns, end.text)
            # A Session has no member for its end: a duration of seconds is not the text that the record has.
            if "session-end" not in self.rest:
                self._keep("session-end", native)

    def models(self, native: Any) -> None:
        """Keep the list of models where the agent's, in the order in which they were used, is another."""
        listed = native.get("models") if isinstance(native, dict) else None
        if listed is not None and listed != list(self._session.agent.models):
            self.rest.setdefault("agent-meta", {})["models"] = listed

    def _agent(self, native: Any, session: Mapping[str, Any]) -> None:
        agent = self._session.agent
        agent.cli_name = None
        if not isinstance(native, dict):
            if native is not None:
                self._odd("agent-meta", session)
            return
        made, left = self._texts(native, ("model-id", "model-provider", "cli-name", "cli-version"))
        agent.saw_model(made.get("model_id"), made.get("model_provider"))
        models = left.pop("models", None)
        for model in models if isinstance(models, list) else ():
            agent.saw_model(model)
        agent.cli_name, agent.cli_version = made.get("cli_name"), made.get("cli_version")
        agent.more |= left

    def _environment(self, native: Mapping[str, Any]) -> None:
        session = self._session
        place = native.get("working-dir")
        if not isinstance(place, str) or not place:
            # Without a working directory there is no environment (D-LOG-20).
            self.rest["environment"] = dict(native)
            return
        session.working_dir = place
        left = {name: value for name, value in native.items() if name != "working-dir"}
        vcs = self._vcs(left.get("vcs"))
        if vcs is not None:
            session.vcs = vcs
            del left["vcs"]
        boxes = left.get("sandboxes")
        if isinstance(boxes, list) and all(isinstance(box, str) for box in boxes):
            session.sandboxes = boxes
            del left["sandboxes"]
        for name in ("vcs", "sandboxes", "working_dir"):
            if name in left:
                self.rest.setdefault("environment", {})[name] = left.pop(name)
        session.environment_members = left

    def _vcs(self, native: Any) -> dict[str, Any] | None:
        """Return a VCS_Context, an open map; None for what is none. Members of a wrong kind go under `rest`."""
        if not isinstance(native, dict) or not isinstance(native.get("type"), str) or not native["type"]:
            return None
        made = dict(native)
        for name in _VCS:
            if name in made and not isinstance(made[name], str):
                self.rest.setdefault("vcs", {})[name] = made.pop(name)
        return made

    def _texts(
        self, native: Mapping[str, Any], names: tuple[str, ...]
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the members that must be texts, renamed, and the others; texts of other kinds are reported."""
        made: dict[str, str] = {}
        left = {name: value for name, value in native.items() if name not in names}
        for name in names:
            value = native.get(name)
            if isinstance(value, str):
                made[name.replace("-", "_")] = value
            elif name in native:
                self._findings.add("odd-shape", record=self._record, action=f"{name} kept in rest")
                self.rest.setdefault("odd", {})[name] = value
        for name in [name for name in left if name in made or name.replace("_", "-") in names]:
            # A member that has the new name already would stand in the place of the one that is renamed.
            self.rest.setdefault("odd", {})[name] = left.pop(name)
        return made, left

    def _others(self, native: Mapping[str, Any], known: frozenset[str]) -> None:
        for name in native:
            if name not in known:
                self._keep(name, native)

    def _odd(self, name: str, native: Mapping[str, Any]) -> None:
        self._findings.add("odd-shape", record=self._record, action=f"{name} kept in rest")
        self._keep(name, native)

    def _keep(self, name: str, native: Mapping[str, Any]) -> None:
        self.rest[name if name not in self.rest else f"session/{name}"] = native.get(name)

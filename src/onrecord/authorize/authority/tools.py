"""What each tool server advertises now, as its guard reports it.

The lists are kept in memory only. A tool whose schema hash is another now gets a new revision, which revokes the
proofs that were issued under the old one.

Source: call-proof.md 5.7, 8.4; running.md 5.2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TOOLS_WAIT_MS: Final = 1500
"""How long an issue waits for the first report of a server (running.md 12)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolChange:
    """How a report differs from the one before: names of tools."""

    first: bool
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def is_news(self) -> bool:
        """Whether anything differs."""
        return self.first or bool(self.added or self.removed or self.changed)


@dataclass(slots=True, kw_only=True)
class _Server:
    hashes: Mapping[str, str] | None = None
    generation: int = 0
    revisions: dict[str, int] = field(default_factory=dict)
    waiting: list[Callable[[], None]] = field(default_factory=list)


class ToolReports:
    """The newest report of every server."""

    def __init__(self) -> None:
        self._servers: dict[str, _Server] = {}

    def advertised(self, server: str) -> Mapping[str, str] | None:
        """Return tool name to schema hash, or None if the server was never reported."""
        entry = self._servers.get(server)
        return None if entry is None else entry.hashes

    def generation(self, server: str) -> int:
        """Return a number that changes whenever the list of this server changes."""
        entry = self._servers.get(server)
        return 0 if entry is None else entry.generation

    def revision(self, server: str, tool: str) -> int:
        """Return a number that changes whenever the hash of this tool changes or the tool goes away."""
        entry = self._servers.get(server)
        return 0 if entry is None else entry.revisions.get(tool, 0)

    def reported(self) -> tuple[str, ...]:
        """Return the servers that were reported, in order of their ids."""
        return tuple(sorted(server for server, entry in self._servers.items() if entry.hashes is not None))

    def report(self, server: str, hashes: Mapping[str, str]) -> ToolChange:
        """Replace the list of a server, wake those who wait for it, and say what is different."""
        entry = self._servers.setdefault(server, _Server())
        before = entry.hashes
        change = ToolChange(
            first=before is None,
            added=tuple(sorted(hashes.keys() - (before or {}).keys())),
            removed=tuple(sorted((before or {}).keys() - hashes.keys())),
            changed=tuple(
                sorted(name for name in (before or {}).keys() & hashes.keys() if before[name] != hashes[name])  # type: ignore[index]
            ),
        )
        if change.is_news:
            entry.generation += 1
            entry.hashes = MappingProxyType(dict(hashes))
            for name in (*change.removed, *change.changed):
                entry.revisions[name] = entry.generation
        waiting, entry.waiting = entry.waiting, []
        for wake in waiting:
            wake()
        return change

    def wait(self, server: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Have `wake` called once, at the next report of `server`. Returns a function that takes this back."""
        waiting = self._servers.setdefault(server, _Server()).waiting
        waiting.append(wake)

        def cancel() -> None:
            entry = self._servers[server]
            if wake in entry.waiting:
                entry.waiting.remove(wake)

        return cancel

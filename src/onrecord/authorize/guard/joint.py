"""Stands in the place of a relay when the real server checks its calls itself (SDK hook): bytes pass as they come.

Nothing passes before the hook has said that it is there. A server with `hook = true` whose program has no hook would
otherwise execute every call.

Source: running.md 3 (servers.ID.hook), 5.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from onrecord.authorize.guard.lines import LineBuffer, Overlong
from onrecord.authorize.guard.log import GuardLog

HOOKED_LINE: Final = (
    b'{"jsonrpc":"2.0","method":"notifications/dev.onrecord/hooked","params":{"version":"1"}}'
)
"""The first line of a hook to its guard, which keeps it. The client never sees it."""

HOOK_SECONDS: Final = 30.0
"""How long a server may take to say so. Large frameworks need some seconds to be imported."""

NOISE_LINE_BYTES: Final = 65_536
"""Longest line before the hook's; what a program prints while it starts is dropped."""


class Joint:
    """The two directions of one connection. Bytes in, bytes out; `absent` is called if no hook shows up."""

    def __init__(
        self,
        number: str,
        *,
        log: GuardLog,
        to_client: Callable[[bytes], None],
        to_server: Callable[[bytes], None],
        settled: Callable[[], None],
        absent: Callable[[], None],
    ) -> None:
        self.number = number
        self._log = log
        self._to_client = to_client
        self._to_server = to_server
        self._settled = settled
        self._absent = absent
        self._early: list[bytes] = []
        self._noise = LineBuffer(NOISE_LINE_BYTES)
        self._is_hooked = False
        self._is_closed = False
        self._timer = asyncio.get_running_loop().call_later(HOOK_SECONDS, self._late)

    @property
    def running(self) -> int:
        """What must still pass before the server may get end of input; the calls that run are the hook's business."""
        return len(self._early)

    @property
    def held(self) -> int:
        """Pieces of the client's input that wait for the hook."""
        return len(self._early)

    def client_line(self, piece: bytes | Overlong) -> None:
        """Take bytes of the client."""
        assert not isinstance(piece, Overlong)
        if self._is_hooked:
            self._to_server(piece)
        elif not self._is_closed:
            self._early.append(piece)

    def server_line(self, piece: bytes | Overlong) -> None:
        """Take bytes of the server."""
        assert not isinstance(piece, Overlong)
        if self._is_hooked:
            self._to_client(piece)
        elif not self._is_closed:
            self._look_for_hook(piece)

    def stop_calls(self) -> None:
        """The hook refuses calls itself once its input has ended."""

    def close(self, cause: str) -> None:
        """Take note that the connection is over."""
        self._is_closed = True
        self._timer.cancel()
        self._early.clear()
        if not self._is_hooked and cause == "server-eof":
            self._log.alert("hook.missing", connection=self.number, note=_NOTE)

    def _look_for_hook(self, data: bytes) -> None:
        head, found, rest = data.partition(b"\n")
        while found:
            for line in self._noise.feed(head + found):
                if line == HOOKED_LINE:
                    self._hooked(rest)
                    return
                self._log.event("stdout.noise", connection=self.number, size=len(line))
            head, found, rest = rest.partition(b"\n")
        self._noise.feed(head)

    def _hooked(self, rest: bytes) -> None:
        self._is_hooked = True
        self._timer.cancel()
        early, self._early = self._early, []
        for piece in early:
            self._to_server(piece)
        if rest:
            self._to_client(rest)
        self._settled()

    def _late(self) -> None:
        self._log.alert("hook.missing", connection=self.number, note=_NOTE)
        self._absent()


_NOTE: Final = "the program of a server with hook = true must call onrecord.authorize.hook.protect"

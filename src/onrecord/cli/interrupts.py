"""Ctrl-C in a long run: what is being worked on is given up, what is being printed is finished."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Final, Self

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells count it: 128 and the number of the signal."""


class Interrupts:
    """While this is entered, Ctrl-C raises `KeyboardInterrupt` inside `with self.allowed:` only, else it sets `asked`.

    A second Ctrl-C is obeyed at once wherever it comes. Where signals are not ours to handle nothing is changed: in
    another thread than the main one, and where whoever started us has them ignored.
    """

    def __init__(self) -> None:
        self.asked = False
        self.allowed = _Allowed()
        self._before: signal.Handlers | int | None = None

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            try:
                self._before = signal.signal(signal.SIGINT, self._arrive)  # type: ignore[assignment]
            except ValueError:  # not the main thread
                self._before = None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _arrive(self, _number: int, _frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if again or self.allowed.is_entered:
            raise KeyboardInterrupt


class _Allowed:
    is_entered = False

    def __enter__(self) -> None:
        self.is_entered = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_entered = False

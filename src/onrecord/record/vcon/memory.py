"""Keeps the collector of reference cycles out of the way while a large file is read.

Parsing makes millions of objects and no cycle; the collector would walk all of them again and again for nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

LARGE_BYTES: Final = 500_000
"""Size from which on the collector is paused. Below, it costs less than the pause is worth."""

_lock = threading.Lock()
_pauses = 0


@contextmanager
def paused_collection(size_bytes: int) -> Iterator[None]:
    """Pause the collector while the block runs, if the input is large and the collector was on."""
    global _pauses  # noqa: PLW0603 - the collector is one per process, and so is the count of who paused it
    if size_bytes < LARGE_BYTES:
        yield
        return
    with _lock:
        paused = _pauses > 0 or gc.isenabled()
        if paused:
            _pauses += 1
            gc.disable()
    try:
        yield
    finally:
        if paused:
            with _lock:
                _pauses -= 1
                if not _pauses:
                    _pass_over_the_young()
                    gc.enable()


def _pass_over_the_young() -> None:
    """Move what was made during the pause to the oldest generation, so that the collector does not walk it at once.

    Freezing and thawing do that without a walk. An application that has frozen objects of its own keeps them.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()

"""How long a reader waits for weights that were announced and are not to be seen yet."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

# NFS clients may show a folder as it was acdirmax ago: 60 s by default, and a margin.
STALE_TIMEOUT_S: Final = 75.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Patience:
    """A bound on waiting; clock and sleep are given by tests."""

    timeout_s: float = STALE_TIMEOUT_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def looks(self, path: str) -> Iterator[None]:
        """Yield once at once, then again after growing pauses, the last time at the bound.

        Before each further look, has an NFS client ask its server about ``path``.
        """
        deadline = self.clock() + self.timeout_s
        pause = _FIRST_PAUSE_S
        yield
        while (left := deadline - self.clock()) > 0:
            self.sleep(min(pause, left))
            pause = min(2 * pause, _LONGEST_PAUSE_S)
            _revalidate(path)
            yield


def _revalidate(path: str) -> None:
    """Listing a folder makes a client compare what it has cached of it with the server."""
    for folder in (os.path.dirname(path), path):
        try:
            os.listdir(folder)
        except OSError:
            pass  # not there yet, or a file: the look that follows will say

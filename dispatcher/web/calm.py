"""Answers that are made for all who ask within a while: they cost much, and change little."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple

#: Seconds for which an answer counts, or times what it took to make it.
ANEW_S: Final = 5.0
ANEW_TIMES: Final = 20.0

#: Answers that are kept; each has some kilobytes.
MOST: Final = 64


class _Made(NamedTuple):
    until: float
    body: bytes


class CalmAnswers:
    """Keeps the newest answer of each experiment for a while. In the event loop's thread.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: OrderedDict[Path, _Made] = OrderedDict()
        self._turns: dict[Path, asyncio.Lock] = {}

    def __len__(self) -> int:
        return len(self._made)

    async def of(self, folder: Path, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return an answer: that which counts still, or a new one. Who asks meanwhile waits for it.

        Args:
            folder: of the experiment.
            make: makes the answer; what it raises is raised to who waits for it first.
        """
        turn = self._turns.setdefault(folder, asyncio.Lock())
        try:
            async with turn:
                known = self._made.get(folder)
                if known is not None and self._clock() < known.until:
                    return known.body
                began = self._clock()
                body = await make()
                now = self._clock()
                lasts = max(ANEW_S, ANEW_TIMES * (now - began))
                self._made[folder] = _Made(now + lasts, body)
                self._made.move_to_end(folder)
                while len(self._made) > MOST:
                    self._made.popitem(last=False)
                return body
        finally:
            if not turn.locked():
                self._turns.pop(folder, None)

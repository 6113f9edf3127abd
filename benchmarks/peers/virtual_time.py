"""Workers whose time is a number: what a search does with eight of them takes no time here.

The order in which trials end is what tuners react to. Every piece of work takes its length times
a factor between a half and one and a half; the factors are the same for all searches of a seed.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, eq=False)
class Piece:
    """What one worker does next: so many units, and what the search wants to know it by."""

    length: float
    what: Any


class Search(Protocol):
    """What is led: a tuner of ours, or a scheduler of another project."""

    def next(self) -> Piece | None:
        """Work for a free worker; None: nothing before something has ended."""

    def done(self, piece: Piece) -> None:
        """A piece has ended."""


def lead(
    search: Search,
    *,
    seed: int,
    workers: int,
    pieces: int = 0,
    horizon: float = 0.0,
    budget: float = 0.0,
) -> float:
    """Leads a search to the end of its budget; returns when its last piece ended.

    Args:
        search: asked for work whenever a worker is free.
        seed: of the times that pieces take.
        workers: how many work at once.
        pieces: so many are begun; 0: no bound.
        horizon: what would end later does not count; 0: no bound.
        budget: of the lengths of all pieces together; one that does not fit is not begun, nor any
            after it, and those that run end. 0: no bound.

    Raises:
        RuntimeError: no worker has anything to do, before the budget is spent.
    """
    dice = random.Random(f"times of seed {seed}")
    running: list[tuple[float, int, Piece]] = []
    now, begun, spent, closed = 0.0, 0, 0.0, False
    while True:
        while len(running) < workers and not closed:
            piece = search.next()
            if piece is None:
                break
            spent += piece.length
            if budget and spent > budget:
                closed = True
                break
            begun += 1
            closed = bool(pieces) and begun >= pieces
            ends = now + piece.length * dice.uniform(0.5, 1.5)
            heapq.heappush(running, (ends, begun, piece))
        if not running:
            if closed:
                return now
            raise RuntimeError(f"the search has nothing to do after {begun} pieces")
        ends, _, piece = heapq.heappop(running)
        if horizon and ends > horizon:
            return now
        now = ends
        search.done(piece)

"""Threads for what blocks: a few for stores, for heads, for changes; each with a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from dispatcher.inference.models import MOST_AT_ONCE
from dispatcher.web.faults import RequestRefused

P = ParamSpec("P")
R = TypeVar("R")

#: Threads that read stores, that ask heads, that change things, and that read on other machines.
STORE_THREADS: Final = 4
HEAD_THREADS: Final = 4
CHANGE_THREADS: Final = 4
FILE_THREADS: Final = 16

#: Outputs that are followed at once: each holds a thread as long as somebody looks.
FOLLOW_THREADS: Final = 32

#: Threads that wait for models; each may wait for minutes.
MODEL_THREADS: Final = MOST_AT_ONCE

#: Plots that are computed at once, each by a process of its own.
PLOT_THREADS: Final = 2

#: Calls that may wait for a thread.
MOST_WAITING: Final = 128


class WorkPool:
    """A few threads, and a bounded queue before them. Called in the event loop's thread."""

    def __init__(self, threads: int, name: str, waiting: int = MOST_WAITING) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"web-{name}")
        self._most = threads + waiting
        self.busy = 0

    def demand_room(self) -> None:
        """Raise ``RequestRefused`` if too many calls run or wait already."""
        if self.busy >= self._most:
            raise RequestRefused("too-many", "too many requests wait for their answers")

    async def run(self, act: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
        """Run a function in a thread.

        Raises:
            RequestRefused: too many wait already.
            Exception: as the function.
        """
        self.demand_room()
        self.busy += 1
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._executor, lambda: act(*given, **named))
        future.add_done_callback(self._ended)
        return await asyncio.shield(future)

    def _ended(self, future: asyncio.Future[R]) -> None:
        self.busy -= 1
        if not future.cancelled():
            future.exception()  # whoever waited may have gone

    def close(self) -> None:
        """Take no more; what runs is not waited for."""
        self._executor.shutdown(wait=False, cancel_futures=True)


class Pools:
    """All threads of a server."""

    def __init__(self) -> None:
        self.stores = WorkPool(STORE_THREADS, "store")
        self.heads = WorkPool(HEAD_THREADS, "head")
        self.changes = WorkPool(CHANGE_THREADS, "change")
        self.files = WorkPool(FILE_THREADS, "file")
        self.follows = WorkPool(FOLLOW_THREADS, "follow", waiting=0)
        self.models = WorkPool(MODEL_THREADS, "model", waiting=8)
        self.plots = WorkPool(PLOT_THREADS, "plot")

    def close(self) -> None:
        """Take no more work."""
        for pool in vars(self).values():
            pool.close()

"""Threads for what blocks: a few for stores, for heads, for changes; each with a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from dispatcher.web.faults import RequestRefused

P = ParamSpec("P")
R = TypeVar("R")

#: Threads that read stores, that ask heads, that change things, and that read on other machines.
STORE_THREADS: Final = 4
HEAD_THREADS: Final = 4
CHANGE_THREADS: Final = 4
FILE_THREADS: Final = 16

#: Plots that are computed at once, each by a process of its own.
PLOT_THREADS: Final = 2

#: Calls that may wait for a thread.
MOST_WAITING: Final = 128


class WorkPool:
    """A few threads, and a bounded queue before them. Called in the event loop's thread."""

    def __init__(self, threads: int, name: str) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=f"web-{name}")
        self._most = threads + MOST_WAITING
        self.busy = 0

    async def run(self, act: Callable[P, R], *given: P.args, **named: P.kwargs) -> R:
        """Run a function in a thread.

        Raises:
            RequestRefused: too many wait already.
            Exception: as the function.
        """
        if self.busy >= self._most:
            raise RequestRefused("too-many", "too many requests wait for their answers")
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
        self.plots = WorkPool(PLOT_THREADS, "plot")

    def close(self) -> None:
        """Take no more work."""
        for pool in (self.stores, self.heads, self.changes, self.files, self.plots):
            pool.close()

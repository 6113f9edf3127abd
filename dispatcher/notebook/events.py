"""An experiment's events for ``async for``: the loop of a notebook goes on meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.notebook.following import EventFollower, ExperimentEvent

#: Seconds between looks at the store.
EVERY_S: Final = 0.1


async def events_of(
    handle: ExperimentHandle, *, metrics: bool, past: bool
) -> AsyncIterator[ExperimentEvent]:
    """Yield what has happened and happens, until no head leads the experiment any more.

    The store is read in threads of the loop, a page at a time, and no further page before the
    events of the one before were taken. It may be cancelled at any await.

    Args:
        handle: the experiment.
        metrics: whether reports of trials that go on are events.
        past: whether what has happened before comes first.
    """
    import asyncio  # a loop that awaits this has it; others do without

    follower = EventFollower(handle.folder, metrics=metrics)
    quiet = not past
    while True:
        led = await asyncio.to_thread(lambda: handle.running)  # before what was its last look
        more = True
        while more:
            page, more = await asyncio.to_thread(follower.page)
            for event in page if not quiet else ():
                yield event
        if not led:
            break
        quiet = False
        await asyncio.sleep(EVERY_S)
    summary = await asyncio.to_thread(handle.status)
    reason = f": {summary.phase_reason}" if summary.phase_reason else ""
    yield ExperimentEvent("experiment_end", text=f"{summary.status}{reason}")

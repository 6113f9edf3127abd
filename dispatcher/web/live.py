"""Experiments that somebody looks at: each is followed once, however many browsers there are."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from dispatcher.errors import DispatcherError, ExperimentNotFound, InternalError
from dispatcher.experiments.standing import Standing, standing
from dispatcher.queries import ExperimentStatus
from dispatcher.web.answering import encoded
from dispatcher.web.faults import RequestRefused
from dispatcher.web.follower import Follower, TableStep, WholeTable
from dispatcher.web.heads import HeadLine
from dispatcher.web.work import Pools

#: Seconds between two looks at a store, and at a head.
LOOK_S: Final = 0.25
STAND_S: Final = 1.0

#: A standing takes at most this share of one thread's time.
_SHARE: Final = 0.05

#: Steps that are kept for those who come a little later, and their bytes: rows of a search with
#: hundreds of parameters have kilobytes each. Whoever comes later still is told by the store.
_MOST_STEPS: Final = 256
MOST_STEP_BYTES: Final = 4 << 20

#: Seconds for which an experiment is held that nobody looks at, and how many are held.
_LINGER_S: Final = 60.0
MOST_WATCHED: Final = 64

#: Streams of all browsers together.
MOST_STREAMS: Final = 100


_log: Final = logging.getLogger("bequeath.web.live")


class Pushed(NamedTuple):
    """A step as JSON, made once for all who get it: its rows would take five times as much."""

    before: str
    cursor: str
    anew: bool
    is_empty: bool
    body: bytes

    @classmethod
    def of(cls, step: TableStep) -> Pushed:
        """Return a step as it is sent."""
        is_empty = not step.trials and not step.anew
        return cls(step.before, step.cursor, step.anew, is_empty, encoded(step.described()))


def renewed(cursor: str) -> Pushed:
    """Return the step that has a reader read all again."""
    return Pushed.of(TableStep(cursor, cursor, anew=True, more=False, trials=[]))


class Announced(NamedTuple):
    """The newest word on an experiment as a whole: its number grows with each change."""

    number: int
    standing: bytes
    gone: bytes  # empty while the head answers, or none is expected to


class Watch:
    """One experiment that is looked at. In the event loop's thread."""

    def __init__(self, folder: Path, pools: Pools) -> None:
        self.folder = folder
        self._pools = pools
        self._follower = Follower(folder)
        self._head = HeadLine(folder)
        self._pulse = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._steps: deque[Pushed] = deque(maxlen=_MOST_STEPS)
        self._standing: Standing | None = None
        self._stood_at = 0.0
        self._standing_turn = asyncio.Lock()
        self._had_head = False
        self.announced = Announced(0, b"", b"")
        self.error: DispatcherError | None = None  # why it is looked at no more
        self.renewals = 0
        self.lookers = 0
        self.looked_at = time.monotonic()

    # -- what is asked of it ------------------------------------------------------------------

    async def table(self) -> WholeTable:
        """Return the whole table as it is now."""
        self.looked_at = time.monotonic()
        return await self._pools.stores.run(self._follower.whole)

    async def standing(self) -> Standing:
        """Return how it stands; what was asked less than :data:`STAND_S` ago is not asked again."""
        self.looked_at = time.monotonic()
        async with self._standing_turn:
            if self._standing is None or time.monotonic() - self._stood_at >= STAND_S:
                found = await self._pools.heads.run(standing, self.folder, self._head.ask)
                self._standing, self._stood_at = found, time.monotonic()
            return self._standing

    def kept_step(self, cursor: str) -> Pushed | None:
        """Return the step that begins at a cursor, if it is kept."""
        return next((one for one in self._steps if one.before == cursor), None)

    @property
    def kept_bytes(self) -> int:
        """The bytes of all steps that are kept."""
        return sum(len(one.body) for one in self._steps)

    async def step_from(self, cursor: str) -> Pushed:
        """Return what changed behind a cursor: a step that is kept, else asked of the store."""
        kept = self.kept_step(cursor)
        if kept is not None:
            return kept
        return Pushed.of(await self._pools.stores.run(self._follower.since, cursor))

    @property
    def cursor(self) -> str:
        """The cursor behind all that was read."""
        return self._follower.cursor

    async def wait(self, seconds: float) -> None:
        """Return when something is new, or the time is over."""
        pulse = self._pulse
        try:
            async with asyncio.timeout(seconds):
                await pulse.wait()
        except TimeoutError:
            pass

    # -- following --------------------------------------------------------------------------

    def begin(self) -> None:
        """Follow it from now on, unless it is followed already."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._stand())]

    def end(self) -> None:
        """Follow it no more; wakes all who wait."""
        for task in self._tasks:
            task.cancel()
        self._tasks = []
        self._beat()

    def close(self) -> None:
        """Let go of its store and its head. Blocks for a call that is under way."""
        self._follower.close()
        self._head.close()

    async def _follow(self) -> None:
        try:
            while True:
                try:
                    step = await self._pools.stores.run(self._follower.step)
                except RequestRefused:  # too much to do just now
                    step = None
                if step is not None:
                    if step.before == step.cursor:  # nobody counts changes: all was read again
                        self.renewals += 1
                    else:
                        self._keep(step)
                    self._beat()
                if step is None or not step.more:
                    await asyncio.sleep(LOOK_S)
        except DispatcherError as error:
            self.error = error
            self._beat()
        except Exception as error:  # noqa: BLE001 - the top of a task
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """End all streams where nobody thought of it: the next one who looks begins anew."""
        _log.error("an experiment cannot be followed", exc_info=error)
        self.error = InternalError(f"this is a fault of bequeath: {type(error).__name__}")
        self._beat()

    def _keep(self, step: TableStep) -> None:
        self._steps.append(Pushed.of(step))
        while self.kept_bytes > MOST_STEP_BYTES and len(self._steps) > 1:
            self._steps.popleft()

    async def _stand(self) -> None:
        while self.error is None:
            began = time.monotonic()
            try:
                self._say(await self.standing())
            except RequestRefused:
                pass
            except DispatcherError as error:
                if isinstance(error, ExperimentNotFound):
                    self.error = error
                    self._beat()
            except Exception as error:  # noqa: BLE001 - the top of a task
                self._fail(error)
            took = time.monotonic() - began
            await asyncio.sleep(max(STAND_S, took / _SHARE if took < 1 else STAND_S))

    def _say(self, standing: Standing) -> None:
        """Note what is new of the experiment as a whole."""
        running = standing.experiment.status is ExperimentStatus.RUNNING
        self._had_head = self._had_head or standing.head is not None
        missing = standing.head is None and (running or self._had_head)
        gone = self.announced.gone
        if missing and not gone:
            gone = encoded({"since": round(time.time(), 3)})
        elif not missing:
            gone = b""
        body = encoded(standing)
        if (body, gone) != (self.announced.standing, self.announced.gone):
            self.announced = Announced(self.announced.number + 1, body, gone)
            self._beat()

    def _beat(self) -> None:
        pulse, self._pulse = self._pulse, asyncio.Event()
        pulse.set()


class Hub:
    """All experiments that are looked at."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._watches: dict[Path, Watch] = {}
        self.streams = 0
        self.closing = False

    async def watch(self, folder: Path) -> Watch:
        """Return the one who looks at an experiment.

        Raises:
            NotOurs: it is somebody else's.
            ExperimentNotFound: it is gone.
            RequestRefused: too many are looked at already.
        """
        self.sweep()
        watch = self._watches.get(folder)
        if watch is not None and watch.error is not None:
            self._drop(watch)
            watch = None
        if watch is None:
            self._make_room()
            watch = self._watches[folder] = Watch(folder, self._pools)
        watch.looked_at = time.monotonic()
        return watch

    def _make_room(self) -> None:
        """Let go of the experiment that nobody follows and that was asked for longest ago. Raises
        ``RequestRefused`` if all are followed."""
        if len(self._watches) < MOST_WATCHED:
            return
        idle = [one for one in self._watches.values() if one.lookers == 0]
        if not idle:
            raise RequestRefused("too-many", f"{MOST_WATCHED} experiments are followed already")
        self._drop(min(idle, key=lambda one: one.looked_at))

    @asynccontextmanager
    async def looking(self, folder: Path, *, stream: bool) -> AsyncIterator[Watch]:
        """Look at an experiment as long as this lasts."""
        if stream and self.streams >= MOST_STREAMS:
            raise RequestRefused("too-many", f"{MOST_STREAMS} streams are open already")
        watch = await self.watch(folder)
        watch.lookers += 1
        self.streams += stream
        watch.begin()
        try:
            yield watch
        finally:
            watch.lookers -= 1
            watch.looked_at = time.monotonic()
            self.streams -= stream

    def sweep(self) -> None:
        """Let go of experiments that nobody looks at any more."""
        now = time.monotonic()
        for watch in list(self._watches.values()):
            if watch.lookers == 0 and now - watch.looked_at > _LINGER_S:
                self._drop(watch)

    def _drop(self, watch: Watch) -> None:
        self._watches.pop(watch.folder, None)
        watch.end()
        asyncio.get_running_loop().run_in_executor(None, watch.close)

    def described(self) -> dict[str, Any]:
        """Return counts, for those who watch the server."""
        return {"experiments": len(self._watches), "streams": self.streams}

    def close(self) -> None:
        """End all streams."""
        self.closing = True
        for watch in self._watches.values():
            watch.end()

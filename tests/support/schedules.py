"""Threads whose interleaving is drawn by a seed: real ones, of which one runs at a time.

Between any two lines of the traced files whoever runs may have to hand the baton to another
thread; locks, events and queues block a thread for the schedule only, and time is counted, not
waited for. So code with threads is tried as the simulation tries the rest: a seed that fails fails
again, whatever the machine does meanwhile.
"""

from __future__ import annotations

import queue
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Collection
from types import FrameType, TracebackType
from typing import Any, Self

#: What one line takes (seconds of the schedule).
LINE_S = 2e-5

#: How often a thread that has said something is kept from the processor, and for how long
#: (seconds): as a busy machine does it.
OVERTAKEN = 0.15
AWAY_S = (0.002, 0.01, 0.05)


class Over(BaseException):
    """The thread is not wanted any more. What catches it meets it again at its next step."""


class Task:
    """A thread under a schedule."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.go = threading.Lock()  # taken, but for the moment in which it is given the baton
        self.go.acquire()
        self.until: Callable[[], bool] | None = None  # what it waits for; None: it can run
        self.deadline = float("inf")
        self.rank = 0.0  # the highest one runs, where they are ranked
        self.overtaken = False  # at its next line it stands still
        self.killed = False
        self.over = False
        self.ident = 0  # of the thread, once it runs
        self.lines = 0  # that it has run

    def can_run(self, now: float) -> bool:
        """Whether it would do something with the baton."""
        return self.killed or self.until is None or self.until() or self.deadline <= now


class Schedule:
    """Who runs when.

    Args:
        seed: draws every choice.
        traced: files between whose lines the baton may change hands.
        switches: how likely that is.
        ranked: not whoever the dice say runs on, but the highest in rank; whom a switch befalls
            stands still until all others do. So one thread is overtaken by all that others can do
            in between two of its lines, which dice alone would hardly ever throw.
    """

    def __init__(
        self, seed: int, traced: Collection[str], *, switches: float = 0.2, ranked: bool = False
    ) -> None:
        self.rng = random.Random(seed)
        self._ranked = ranked
        self._lowest = 0.0
        self.now = 0.0
        self._traced = frozenset(traced)
        self._switches = switches
        self._tasks: list[Task] = []
        self._mine = threading.local()
        self._current = self._adopt("main")

    def _adopt(self, name: str) -> Task:
        task = self._mine.task = Task(name)
        self._tasks.append(task)
        return task

    # ---- threads -------------------------------------------------------------------------

    def start(self, name: str, work: Callable[[], None]) -> Task:
        """A thread that begins when it is given the baton."""
        task = Task(name)
        task.rank = self.rng.random()
        self._tasks.append(task)
        thread = threading.Thread(target=self.carry_out, args=(task, work), name=name, daemon=True)
        thread.start()
        return task

    def carry_out(self, task: Task, work: Callable[[], None]) -> None:
        """The whole of a thread, in it."""
        self._mine.task = task
        task.ident = threading.get_ident()
        task.go.acquire()
        sys.settrace(self.trace)
        try:
            self._unless_killed(task)
            work()
        except Over:
            pass
        finally:
            sys.settrace(None)
            task.over = True
            self._tasks.remove(task)
            self._hand_on()

    def has_begun(self, task: Task) -> None:
        """A thread that somebody else has started; it calls :meth:`carry_out`."""
        task.rank = self.rng.random()
        self._tasks.append(task)

    def kill(self, tasks: Collection[Task]) -> None:
        """End these threads where they stand; they are gone when this returns."""
        for task in tasks:
            task.killed = True
        self.block(lambda: all(task.over for task in tasks))

    def others(self) -> list[Task]:
        """All threads but the caller."""
        return [task for task in self._tasks if task is not self._mine.task]

    def ran_ns(self, ident: int) -> int | None:
        """How long a thread has run; None: it is not there."""
        for task in self._tasks:
            if task.ident == ident:
                return int(task.lines * LINE_S * 1e9)
        return None

    # ---- choices -------------------------------------------------------------------------

    def trace(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        """For ``sys.settrace``, in each thread."""
        return self._line if frame.f_code.co_filename in self._traced else None

    def _line(self, _frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self.point()
        return self._line

    def point(self) -> None:
        """Another thread may run now."""
        self.now += LINE_S
        task = self._mine.task
        task.lines += 1
        self._unless_killed(task)
        if task.overtaken:
            task.overtaken = False
            self.sleep(self.rng.choice(AWAY_S))
            return
        if self.rng.random() >= self._switches:
            return
        if self._ranked:
            self._lowest -= 1.0
            task.rank = self.rng.choice((self._lowest, self._lowest, self.rng.random()))
        self._pass_on(task)

    def spoke(self) -> None:
        """Somebody may act on what the caller has just said, and overtake it by that."""
        task: Task = self._mine.task
        task.overtaken = self.rng.random() < OVERTAKEN

    def block(self, until: Callable[[], bool], timeout_s: float = float("inf")) -> bool:
        """Let others run until that holds; false if the time passed before."""
        task: Task = self._mine.task
        self._unless_killed(task)
        task.until, task.deadline = until, self.now + timeout_s
        if not until():
            self._pass_on(task)
        task.until, task.deadline = None, float("inf")
        return until()

    def sleep(self, seconds: float) -> None:
        """Let others run for a while."""
        self.block(lambda: False, seconds)

    def _pass_on(self, task: Task) -> None:
        chosen = self._choose()
        if chosen is not task:
            self._current = chosen
            chosen.go.release()
            task.go.acquire()
        self._unless_killed(task)

    def _hand_on(self) -> None:
        self._current = self._choose()
        self._current.go.release()

    def _choose(self) -> Task:
        ready = [task for task in self._tasks if task.can_run(self.now)]
        if not ready:
            self.now = min(task.deadline for task in self._tasks)
            assert self.now < float("inf"), f"each waits for another: {self._tasks}"
            ready = [task for task in self._tasks if task.can_run(self.now)]
        if not self._ranked:
            return self.rng.choice(ready)
        return max(ready, key=lambda task: task.rank)

    def _unless_killed(self, task: Task) -> None:
        if task.killed:
            raise Over

    # ---- what threads block in -----------------------------------------------------------

    def lock(self) -> SimLock:
        """In place of ``threading.Lock`` and ``allocate_lock``."""
        return SimLock(self)

    def event(self) -> SimEvent:
        """In place of ``threading.Event``."""
        return SimEvent(self)

    def queue(self) -> SimQueue:
        """In place of ``queue.SimpleQueue``."""
        return SimQueue(self)

    def clock(self) -> float:
        """In place of ``time.monotonic``."""
        return self.now


class SimLock:
    """A lock that only the schedule knows to be taken."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._taken = False

    def acquire(self, blocking: bool = True, timeout: float = -1.0) -> bool:
        patience = timeout if timeout >= 0 else float("inf")
        if self._taken and not blocking:
            return False
        if not self._schedule.block(lambda: not self._taken, patience):
            return False
        self._taken = True
        return True

    def release(self) -> None:
        assert self._taken
        self._taken = False

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self.release()


class SimEvent:
    """An event that nobody's thread waits in."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._set = False

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def wait(self, timeout: float | None = None) -> bool:
        patience = float("inf") if timeout is None else timeout
        return self._schedule.block(lambda: self._set, patience)


class SimQueue:
    """A queue that only the schedule knows to be empty."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)

    def get(self, timeout: float | None = None) -> Any:
        patience = float("inf") if timeout is None else timeout
        if not self._schedule.block(lambda: bool(self._items), patience):
            raise queue.Empty
        return self._items.popleft()

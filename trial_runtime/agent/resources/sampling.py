"""Samples of the CPU time and memory of attempts, and the check of their memory bounds.

The samples bound memory where the kernel does not do it (:mod:`.cgroup`). A limit on
addresses (RLIMIT_AS) would end every CUDA program, which reserves far more than it uses, and none
of these limits counts a trial's processes together.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Optional

from trial_runtime.agent.base.helper import Looking
from trial_runtime.agent.base.loop import Timers, Watch
from trial_runtime.agent.processes.table import families, process_table, proportional_bytes

#: Between two looks (seconds): a table of processes costs milliseconds.
EVERY_S = 5.0
#: An attempt is first measured so long after its start, and no sooner again (seconds).
NEW_S = 1.0
#: Between two looks while an attempt has a bound that only we watch.
BOUNDED_EVERY_S = 0.5

Key = tuple[int, int]

_log = logging.getLogger("bequeath.agent")


class Asked(NamedTuple):
    """An attempt to measure.

    ``leader``: its first process. ``bound_bytes``: how much memory all of them may take (0: no
    bound). ``since``: the start of that process (monotonic seconds; 0: before the attempt).
    """

    leader: int
    bound_bytes: int = 0
    since: float = 0.0


class Taken(NamedTuple):
    """The usage of an attempt's processes: percent of one core, and bytes."""

    cpu: float
    rss_bytes: int
    pids: frozenset[int]


class _Measured(NamedTuple):
    leader: int
    cpu_s: float
    rss_bytes: int
    pids: frozenset[int]


class Sampler:
    """Measures attempts in a thread. Owned by the agent's loop.

    Args:
        watch: of the agent's loop.
        timers: of the agent's loop.
        running: returns the attempts that have a process.
        too_much: called with an attempt and its memory (bytes), when that is beyond its bound.
        every_s: seconds between two looks.
        bounded_every_s: the same while an attempt has a bound that only we watch.
    """

    def __init__(
        self,
        watch: Watch,
        timers: Timers,
        running: Callable[[], Mapping[Key, Asked]],
        too_much: Callable[[Key, int], None],
        *,
        every_s: float = EVERY_S,
        bounded_every_s: float = BOUNDED_EVERY_S,
    ) -> None:
        self._timers = timers
        self._running = running
        self._too_much = too_much
        self._every_s = every_s
        self._bounded_every_s = bounded_every_s
        self._asked: Mapping[Key, Asked] = {}
        self._before: dict[int, tuple[float, float]] = {}  # by leader: when, and its cpu_s then
        self._looking = Looking(watch, "agent-processes", self._look, self._took)
        self._logged = False
        self.latest_at = float("-inf")
        self.taken: dict[Key, Taken] = {}

    def start(self) -> None:
        """Measure from now on."""
        self._tick()

    def _tick(self) -> None:
        now = time.monotonic()
        running = self._running()
        bounded = any(each.bound_bytes for each in running.values())
        self._timers.at(now + self._bounded_every_s, self._tick)
        if not running:
            self.taken = {}
            return
        # New attempts are measured soon; most trials are over before that.
        new = any(
            key not in self.taken and 0.0 < each.since < now - NEW_S
            for key, each in running.items()
        )
        wait_s = NEW_S if new else self._every_s
        due = bounded or now - self.latest_at >= wait_s
        if due and self._looking.under_way_s == 0.0:
            self._asked = dict(running)
            self._looking.begin()

    def _look(self) -> tuple[float, dict[Key, _Measured]]:
        asked = self._asked
        measured = {}
        members = families(process_table(), {each.leader for each in asked.values()})
        for key, (leader, bound, _since) in asked.items():
            rows = members.get(leader, [])
            rss = sum(row.rss_bytes for row in rows)
            if 0 < bound < rss:
                rss = sum(proportional_bytes(row.pid) for row in rows)
            cpu_s = sum(row.cpu_s for row in rows)
            measured[key] = _Measured(leader, cpu_s, rss, frozenset(row.pid for row in rows))
        return time.monotonic(), measured

    def _took(
        self, sample: Optional[tuple[float, dict[Key, _Measured]]], error: Optional[Exception]
    ) -> None:
        if sample is None:
            if not self._logged:
                self._logged = True
                _log.error("what trials take cannot be measured: %r", error)
            return
        now, measured = sample
        self.latest_at = now
        before, self._before = self._before, {}
        taken = {}
        for key, each in measured.items():
            if not each.pids:
                continue
            since = self._asked[key].since
            first = (since, 0.0) if since else (now, each.cpu_s)
            then, cpu_s = before.get(each.leader, first)
            cpu = 100 * max(0.0, each.cpu_s - cpu_s) / (now - then) if now > then else 0.0
            self._before[each.leader] = (now, each.cpu_s)
            taken[key] = Taken(cpu, each.rss_bytes, each.pids)
        self.taken = taken
        for key, each in measured.items():
            bound = self._asked[key].bound_bytes
            if 0 < bound < each.rss_bytes:
                self._too_much(key, each.rss_bytes)

"""The loop that strikes a head by the schedule, and starts it again after a kill."""

from __future__ import annotations

import heapq
import json
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from dispatcher.chaos.schedule import Act, Deed, Kind, schedule
from dispatcher.chaos.victims import Victim, find
from dispatcher.folders.experiment_folder import ExperimentFolder

#: At most so many seconds between looks at the head's process.
LOOK_S: Final = 0.25

#: Kinds that are not killed twice unless a trial has ended in between: a process that dies
#: whenever it begins is given up with good reason, and that is another test.
_SPARED: Final = (Kind.HEAD, Kind.TUNER_HOST, Kind.AGENT)


class Supervisor:
    """Leads one experiment to its end under chaos.

    Args:
        folder: the experiment's folder.
        seed: of the schedule.
        start: starts a head and returns its process; called again after each that we killed.
        progress: how many trials are over.
        every_s: mean seconds between two acts.
        tell: takes a line about each act.
    """

    def __init__(
        self,
        folder: Path,
        seed: int,
        start: Callable[[], subprocess.Popen[bytes]],
        progress: Callable[[], int],
        *,
        every_s: float,
        tell: Callable[[str], None],
    ) -> None:
        self._folder = folder
        self._seed = seed
        self._start = start
        self._progress = progress
        self._tell = tell
        self._acts = schedule(seed, every_s)
        self._next = next(self._acts)
        self._next_at = 0.0  # monotonic
        self._stopped: list[tuple[float, Victim]] = []  # until when (monotonic)
        self._head_is_ours_to_start = False  # we have just killed it
        self._over_at_last_kill = -1
        self._signal = 0  # that was passed on to the head: no act follows it
        self._head: subprocess.Popen[bytes] | None = None
        self._log = ExperimentFolder(folder).chaos_log

    def run(self) -> int:
        """Run heads until one ends by itself; return its exit code. Blocks."""
        self._note("begin", seed=self._seed)
        self._next_at = time.monotonic() + self._next.wait_s
        try:
            while True:
                code = self._lead()
                ours = code == -signal.SIGKILL and self._head_is_ours_to_start
                if self._signal or not ours:
                    return code
        finally:
            self._release(time.monotonic(), everybody=True)
            self._note("end")

    @property
    def interrupted(self) -> bool:
        """Whether a signal was passed on to the head."""
        return self._signal != 0

    def interrupt(self, number: int) -> None:
        """Pass a signal on to the head, and end the acts. For signal handlers."""
        self._signal = number
        if self._head is not None and self._head.poll() is None:
            self._head.send_signal(signal.SIGCONT)
            self._head.send_signal(number)

    def _lead(self) -> int:
        self._head_is_ours_to_start = False
        self._head = head = self._start()
        self._note("start", victim=Kind.HEAD, pid=head.pid)
        if self._signal:  # it came while this head was being started
            head.send_signal(self._signal)
        while True:
            now = time.monotonic()
            self._release(now, everybody=self.interrupted)
            if now >= self._next_at and not self.interrupted:
                self._strike(self._next, head.pid)
                self._next = next(self._acts)
                self._next_at = now + self._next.wait_s
            due = min([self._next_at, *(until for until, _ in self._stopped)])
            try:
                return head.wait(max(0.01, min(LOOK_S, due - time.monotonic())))
            except subprocess.TimeoutExpired:
                continue

    def _strike(self, act: Act, head: int) -> None:
        kill = act.deed is Deed.KILL
        if kill and act.kind in _SPARED and not self._got_further():
            return
        victims = find(self._folder, head, act.kind)
        if not victims:
            self._note(act.deed, victim=act.kind, pid=None)
            return
        victim = victims[int(act.draw * len(victims))]
        if kill and victim.pid == head:
            self._head_is_ours_to_start = True  # before it can be seen to have ended
        if not victim.strike(signal.SIGKILL if kill else signal.SIGSTOP):
            return
        if not kill:
            heapq.heappush(self._stopped, (time.monotonic() + act.for_s, victim))
        self._note(act.deed, victim=act.kind, pid=victim.pid, for_s=round(act.for_s, 3))
        length = "" if kill else f" for {act.for_s:.2f} s"
        self._tell(f"chaos: {act.deed} {act.kind} {victim.pid}{length}")

    def _got_further(self) -> bool:
        over = self._progress()
        if over <= self._over_at_last_kill:
            return False
        self._over_at_last_kill = over
        return True

    def _release(self, now: float, *, everybody: bool = False) -> None:
        """Continue stopped processes whose time is over, or all of them."""
        while self._stopped and (everybody or self._stopped[0][0] <= now):
            heapq.heappop(self._stopped)[1].strike(signal.SIGCONT)

    def _note(self, deed: str, **about: object) -> None:
        line = {"at": datetime.now(UTC).isoformat(timespec="milliseconds"), "deed": deed, **about}
        with self._log.open("a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

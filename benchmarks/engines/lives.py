"""What becomes of trials when their head or a node goes: the same two questions to each engine."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks.engines.steps import Step
from benchmarks.rows import Row, row
from benchmarks.run_experiment import TRIALS
from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from tests.support.checker import check_store, read_store
from tests.support.processes import end_processes_of, wait_until

LED_AGAIN_S, BEYOND_LEASE_S = 5.0, 5.0
LEASE_S = 10.0
LIMIT_S = 300.0
LED_AGAIN_TARGET = "≤ 5 s, 0 trials restarted"
NODE_TARGET = f"≤ lease + 5 s (here {LEASE_S + BEYOND_LEASE_S:.0f} s), 0 results lost or doubled"


class Engine(NamedTuple):
    """One that runs.

    Attributes:
        name: for people.
        service: the section of allocations with room for one trial.
        base: a folder that its nodes see.
        environment: of a head.
        crash: takes the power of a node on which an agent runs.
    """

    name: str
    service: Mapping[str, Any]
    base: Path
    environment: Mapping[str, str] = MappingProxyType({})
    crash: Callable[[], None] = lambda: None


class Led:
    """An experiment, and the processes that lead it one after another.

    Args:
        engine: on which it runs.
        function: of its trials.
        trials: how many.
        allocations: as many at all times.
        keys: further ones of the file.
    """

    def __init__(
        self, engine: Engine, function: str, trials: int, allocations: int, **keys: Any
    ) -> None:
        self._engine = engine
        self.go = engine.base / f"go-{time.monotonic_ns()}"
        service = {**engine.service, "reuseMode": "inProcess", "allocations": allocations}
        values = {
            "experimentName": "bench",
            "experimentWorkingDirectory": str(engine.base),
            "tuner": {"className": "tuners_for_benchmarks:Counting", "codeDirectory": str(TRIALS)},
            "trialFunction": f"waiting:{function}",
            "trialCodeDirectory": str(TRIALS),
            "trialEnvironment": {"GO": str(self.go)},
            "trialConcurrency": allocations,
            "maxTrialNumber": trials,
            "weightsRoot": str(engine.base / "weights"),
            "trainingService": service,
            **keys,
        }
        self.folder = create(build_experiment(values))
        self.head: subprocess.Popen[bytes] | None = None

    def lead(self) -> None:
        """Start a head."""
        self.head = subprocess.Popen(
            [sys.executable, "-m", "dispatcher.background", str(self.folder)],
            env={**os.environ, **self._engine.environment},
            stdin=subprocess.DEVNULL,
        )

    def kill(self) -> None:
        """End the head at once."""
        assert self.head is not None
        self.head.kill()
        self.head.wait()

    def finish(self) -> list[str]:
        """Let all trials end, and wait for the end; what is wrong with the journal."""
        self.go.touch()
        assert self.head is not None
        if self.head.wait(LIMIT_S) != 0:
            return [f"the head has ended with {self.head.returncode}"]
        return [str(each) for each in check_store(self.folder / "journal.sqlite", over=True)]

    def count(self, kind: str) -> int:
        """How many events of a kind there are."""
        path = f"file:{self.folder / 'journal.sqlite'}?mode=ro"
        try:
            with sqlite3.connect(path, uri=True) as store:
                found = store.execute("SELECT count(*) FROM journal WHERE kind = ?", (kind,))
                return int(found.fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # nothing is there yet

    def rows(self) -> list[Any]:
        """The journal."""
        return list(read_store(self.folder / "journal.sqlite"))


@contextmanager
def led(engine: Engine, function: str, trials: int, allocations: int, **keys: Any) -> Iterator[Led]:
    """An experiment that is led; nothing of it is left afterwards."""
    one = Led(engine, function, trials, allocations, **keys)
    one.lead()
    try:
        yield one
    finally:
        if one.head is not None and one.head.poll() is None:
            one.kill()
        end_processes_of(one.folder)


def led_again_step(engine: Engine, allocations: int) -> Step:
    """See :func:`led_again`."""
    what = f"{engine.name}: head killed with {allocations} allocations, led again"
    return Step(what, LED_AGAIN_TARGET, lambda: led_again(engine, allocations))


def node_dies_step(engine: Engine, trials: int) -> Step:
    """See :func:`node_dies`."""
    what = f"{engine.name}: a node dies, until its trials run on another one"
    return Step(what, NODE_TARGET, lambda: node_dies(engine, trials))


def led_again(engine: Engine, allocations: int) -> list[Row]:
    """From the start of the next head until it has all agents again."""
    with led(engine, "until_told", allocations, allocations, headGrace="300s") as one:
        wait_until(lambda: one.count("AttemptStarted") == allocations, "all run", LIMIT_S)
        joined = one.count("WorkerJoined")
        one.kill()
        began = time.perf_counter()
        one.lead()
        wait_until(lambda: one.count("WorkerJoined") >= joined + allocations, "again", LIMIT_S)
        took_s = time.perf_counter() - began
        ended = one.count("AttemptEnded")
        wrong = one.finish()
        attempts = {(x.event.trial, x.event.attempt) for x in one.rows() if _starts(x.event)}
    anew = len(attempts) - allocations
    return [
        row(
            f"{engine.name}: head killed with {allocations} allocations, led again",
            LED_AGAIN_TARGET,
            f"{took_s:.1f} s, {anew} restarted",
            took_s <= LED_AGAIN_S and anew == 0 and ended == 0 and not wrong,
            "from the start of the next head's process until the last of its agents is heard; "
            f"the checker over the journal afterwards: {wrong or 'content'}",
        )
    ]


def node_dies(engine: Engine, trials: int) -> list[Row]:
    """From its end until what ran there runs on another one."""
    leases = {"alive": "1s", "suspect": "3s", "lost": f"{LEASE_S:.0f}s"}
    with led(engine, "two_seconds", trials, 2, leases=leases, lostRetries=5) as one:
        wait_until(lambda: one.count("AttemptEnded") >= 6, "some have ended", LIMIT_S)
        before = time.time()
        engine.crash()
        wrong = one.finish()
        rows = one.rows()
    starts = {(x.event.trial, x.event.attempt): x.at for x in rows if _starts(x.event)}
    again = [at - before for (_, attempt), at in starts.items() if attempt > 1]
    ends = [x.event for x in rows if isinstance(x.event, e.AttemptEnded)]
    results = [x for x in ends if x.reason is EndReason.FINISHED]
    allowed = LEASE_S + BEYOND_LEASE_S
    lost, twice = (
        trials - len({x.trial for x in results}),
        len(results) - len({x.trial for x in results}),
    )
    told = f"{max(again):.1f} s" if again else "nothing ran there"
    return [
        row(
            f"{engine.name}: a node dies, until its trials run on another one",
            NODE_TARGET,
            f"{told}, {lost} lost, {twice} doubled",
            bool(again) and max(again) <= allowed and lost == twice == 0 and not wrong
            if again
            else None,
            f"a lease of {LEASE_S:.0f} s, trials of 2 s, so that the other place is free at most "
            f"2 s later; the checker afterwards: {wrong or 'content'}",
        )
    ]


def _starts(event: object) -> bool:
    return isinstance(event, e.AttemptStarted)

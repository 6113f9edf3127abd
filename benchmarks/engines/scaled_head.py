"""A head of a thousand workers, run at the pace of what happens: ``… OPTIONS`` prints JSON.

Head, core, engine, store, tuner host, the drivers of agents and allocations, and the wire (ZeroMQ
over TCP with CURVE) are real. Agents only speak (``trials/timed_agents.py``, a process of its own);
Ray's driver program is a script, and what it is asked and answers goes through JSON as it does.
Time is that of :mod:`benchmarks.engines.skipping`: it is started by a line of Python that installs
this clock first, see :data:`COMMAND`.

Most trials are *hurried*: agents speak seldom then, and the engine looks at peers seldom, so that
it ends this day. At the end comes a window at the true pace, in which CPU and latencies are taken,
with what all the trials before have left in memory and in the store.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.engines.skipping import CLOCK
from dispatcher.peer_checks import CHECK_EVERY_S, PART

COMMAND = (
    "from benchmarks.engines.skipping import CLOCK; CLOCK.install(); "
    "from benchmarks.engines import scaled_head; scaled_head.main()"
)

_CREATE = """
import json, pathlib, sys
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
values, base = json.load(sys.stdin)
print(create(build_experiment(values, base_folder=pathlib.Path(base))))
"""

#: Seconds between two heartbeats (0: as the head orders them), and between looks of the engine at
#: its peers; how many peers it looks at together; seconds between looks at the scheduler's list;
#: and of the grid on which agents act together, if they do.
Pace = tuple[float, float, int, float, float]
TRUE_PACE: Pace = (0.0, CHECK_EVERY_S, PART, 5.0, 0.0)
HURRIED: Pace = (100.0, 30.0, 10_000, 60.0, 60.0)

LIMIT_S = 3_000.0

#: What an agent has sent is here by then (seconds).
ARRIVES_S = 0.002


class Agents:
    """The process that plays them. Threads: the pool orders them, the engine lets them act."""

    def __init__(self, trial_s: float, workers: int) -> None:
        arguments = [str(trial_s), str(workers)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.trials.timed_agents", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.beat_s, self.grid_s = TRUE_PACE[0], 0.0
        self.metrics = False
        self._asked = False  # and has not answered yet
        self._new: list[str] = []
        self._lock = threading.Lock()

    def begin(self, config: str) -> None:
        """One more."""
        with self._lock:
            self._new.append(config)

    def advance(self, until: float) -> float:
        """Let happen what is next, and wait for it; the moment of that, or the one given."""
        if self._asked:
            self._answer()
        self._ask(until)
        return self._answer()

    def let_act(self, until: float) -> None:
        """Let happen what is next while the caller does something else."""
        assert self.process.stdout is not None
        if self._asked and select.select([self.process.stdout], [], [], 0.0)[0]:
            self._answer()
        if not self._asked:
            self._ask(until)

    def _ask(self, until: float) -> None:
        with self._lock:
            new, self._new = self._new, []
        told = {"now": CLOCK.monotonic(), "until": until, "new": new}
        how = {"beat_s": self.beat_s, "grid_s": self.grid_s, "metrics": self.metrics}
        line = json.dumps({**told, **how})
        assert self.process.stdin is not None
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        self._asked = True

    def _answer(self) -> float:
        assert self.process.stdout is not None
        self._asked = False
        return float(json.loads(self.process.stdout.readline()))


class Scheduler:
    """In place of Ray's driver program: each actor has its place at once."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._rows: list[dict[str, Any]] = []

    def ask(self, method: str, **arguments: Any) -> Any:
        """See :class:`dispatcher.platforms.ray.conversation.Conversation`."""
        told = json.loads(json.dumps(arguments))
        if method == "submit":
            order = told["order"]
            Path(order["home"]).mkdir(parents=True, exist_ok=True)
            self._agents.begin(order["config"])
            row = {"name": told["name"], "waiting_s": 0.0, "state": "running", "place": "n1"}
            self._rows.append(row)
        return json.loads(json.dumps({"rows": self._rows})) if method == "look" else None

    def close(self) -> None:
        """Nothing runs."""


class Measured:
    """What is taken, by whoever it passes."""

    def __init__(self) -> None:
        self.ended: dict[str, float] = {}  # when the end of a worker's last attempt was committed
        self.latencies: list[float] = []
        self.harness_s = 0.0  # CPU of this file's own work in the engine's thread
        self.skips = False
        self.counts = False  # latencies: all of them would be memory that is not the head's

    def begin(self) -> tuple[float, float, float]:
        """CPU, without the harness's, and moments."""
        return time.process_time() - self.harness_s, CLOCK.monotonic(), time.perf_counter()


def install(agents: Agents, measured: Measured) -> None:
    """Put the script, the clock and the marks where they belong."""
    from dispatcher.channel import Router
    from dispatcher.core import actions as a
    from dispatcher.core import events as e
    from dispatcher.platforms.agents.driver import AgentDriver
    from dispatcher.platforms.allocations.pool import AllocationPool
    from dispatcher.platforms.ray import allocator as ray_allocator
    from dispatcher.store.journal import SqliteJournal

    ray_allocator.conversation_about = lambda *_, **__: Scheduler(agents)  # type: ignore[assignment,attr-defined]

    own_pool = AllocationPool.__init__

    def pool(self: AllocationPool, *arguments: Any, **keys: Any) -> None:
        own_pool(self, *arguments, **keys)
        self.lock.wait = CLOCK.waiter(self.lock)  # type: ignore[method-assign,assignment]

    AllocationPool.__init__ = pool  # type: ignore[method-assign]

    own_append = SqliteJournal.append

    def append(self: SqliteJournal, entries: Any, touched: Any, *, durable: bool) -> int:
        row = own_append(self, entries, touched, durable=durable)
        now = time.perf_counter()
        for entry in entries:
            if type(entry.event) is e.AttemptEnded:
                measured.ended[entry.worker] = now
        return row

    SqliteJournal.append = append  # type: ignore[method-assign]

    own_perform, own_flush = AgentDriver.perform, AgentDriver.flush
    begun: dict[int, str] = {}

    def perform(self: AgentDriver, action: a.WorkerAction) -> None:
        own_perform(self, action)
        if type(action) is a.StartAttempt:
            begun[id(self)] = action.worker

    def flush(self: AgentDriver) -> None:
        own_flush(self)
        worker = begun.pop(id(self), None) if begun else None
        at = measured.ended.pop(worker, None) if worker is not None else None
        if at is not None and measured.counts:
            measured.latencies.append(time.perf_counter() - at)

    AgentDriver.perform, AgentDriver.flush = perform, flush  # type: ignore[method-assign]

    own_poll = Router.poll

    def poll(self: Router, timeout_s: float) -> list[Any]:
        """Wait as the engine does, but for the time in which nothing happens."""
        received = own_poll(self, 0.0)
        if received or timeout_s <= 0:
            return received
        began = time.thread_time()
        if not measured.skips or measured.ended or CLOCK.works():
            # Somebody is at work: time passes by itself, and agents act beside the head, as ever.
            agents.let_act(CLOCK.monotonic())
            measured.harness_s += time.thread_time() - began
            return own_poll(self, min(timeout_s, ARRIVES_S))
        until = CLOCK.limit(CLOCK.monotonic() + timeout_s)
        reached = agents.advance(until)
        CLOCK.skip_to(reached)
        measured.harness_s += time.thread_time() - began
        return own_poll(self, ARRIVES_S) if reached < until else []

    Router.poll = poll  # type: ignore[method-assign]


def experiment(options: dict[str, Any], base: str) -> dict[str, Any]:
    """The experiment file as a mapping."""
    from benchmarks.run_experiment import TRIALS

    workers = options["workers"]
    return {
        "experimentName": "scale",
        "experimentWorkingDirectory": base,
        "tuner": {"className": "tuners_for_benchmarks:Counting", "codeDirectory": str(TRIALS)},
        "trialCommand": "true",
        "trialConcurrency": workers,
        "maxTrialNumber": 10 * options["trials"],
        "weightsRoot": f"{base}/weights",
        "leases": {"suspect": "300s", "lost": "600s"},  # for those who hurry
        "trainingService": {
            **{"platform": "ray", "slots": 1, "allocations": workers},
            **{"probe": False, "channel": "direct", "headAddress": "127.0.0.1"},
        },
    }


def pace(agents: Agents, one: Pace) -> None:
    """Set how often agents speak, and are looked at, and the scheduler's list."""
    from dispatcher import peer_checks
    from dispatcher.platforms.ray import allocator

    agents.beat_s, peer_checks.CHECK_EVERY_S, peer_checks.PART = one[:3]
    allocator.SLOW_LOOK_S, agents.grid_s = one[3:]


def lead(folder: Path, agents: Agents, measured: Measured, options: dict[str, Any]) -> None:
    """Run it, and print what was measured. Does not return."""
    from dispatcher.head.collector import walk_less
    from dispatcher.head.head import Head

    head = Head(folder)
    walk_less()  # as in a head's own process
    threading.Thread(target=head.run, name="head", daemon=True).start()
    began = time.perf_counter()

    def until(condition: Any, what: str) -> None:
        while not condition():
            if time.perf_counter() - began > LIMIT_S:
                raise TimeoutError(what)
            time.sleep(0.02)

    workers = options["workers"]
    until(lambda: head.state is not None and len(head.state.running) == workers, "all run")
    joined_s = time.perf_counter() - began
    pace(agents, HURRIED)
    measured.skips = True
    until(lambda: head.trials_over >= options["trials"], "most trials are over")
    pace(agents, TRUE_PACE)
    agents.metrics = True
    begins = CLOCK.monotonic()
    until(lambda: CLOCK.monotonic() - begins > 30.0, "it is at its pace")
    measured.counts = True
    first, over = measured.begin(), head.trials_over
    until(lambda: CLOCK.monotonic() - first[1] > options["window_s"], "the window")
    last = measured.begin()
    latencies = list(measured.latencies)
    passed_s = last[1] - first[1]
    tuners = [p for p in psutil.Process().children() if "tuner_host" in " ".join(p.cmdline())]
    result = {
        "cpu_share": (last[0] - first[0]) / passed_s,
        "simulated_s": passed_s,
        "real_s": last[2] - first[2],
        "trials_in_window": head.trials_over - over,
        "trials": head.trials_over,
        "rss_bytes": psutil.Process().memory_info().rss,
        "tuner_rss_bytes": sum(p.memory_info().rss for p in tuners),
        "latencies_s": latencies,
        "joined_s": joined_s,
        "whole_s": time.perf_counter() - began,
    }
    print(json.dumps(result), flush=True)


def created(options: dict[str, Any]) -> Path:
    """The experiment's folder, made by another process, as a head finds it: what making one takes
    in memory, such as the store's migrations, is not the head's."""
    base = options["base"]
    made = subprocess.run(
        [sys.executable, "-c", _CREATE],
        input=json.dumps([experiment(options, base), base]),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Path(made.stdout.splitlines()[-1])


def main() -> None:
    """Run it; nothing is left but files, which are the caller's."""
    options = json.loads(sys.argv[1])
    measured, agents = Measured(), Agents(options["trial_s"], options["workers"])
    try:
        folder = created(options)
        install(agents, measured)
        lead(folder, agents, measured, options)
    finally:
        agents.process.kill()
        for child in psutil.Process().children(recursive=True):
            child.kill()
    os._exit(0)  # the experiment goes on for ever

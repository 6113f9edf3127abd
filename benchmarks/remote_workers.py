"""What a head has to do for trials on many workers, against as many trials on one.

Head, journal and tuner host are real, and so is the wire (ZeroMQ over TCP with CURVE, as tunnels
carry it); agents only speak (``trials/many_agents.py``) and share a process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import zmq
from msgspec.structs import replace

from benchmarks.harness import _Quiet
from benchmarks.rows import Row, row
from benchmarks.run_experiment import TRIALS
from dispatcher.channel import CurveKeys, Router
from dispatcher.control.server import ControlServer
from dispatcher.core import actions as a
from dispatcher.core import apply, new_state, outstanding
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.settings import Settings
from dispatcher.engine import Engine
from dispatcher.platforms.agents.driver import AgentDriver
from dispatcher.platforms.agents.process import Loss
from dispatcher.ports import JournalEntry
from dispatcher.store.journal import SqliteJournal
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.driver import TunerHostDriver
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

RUNNING, WORKERS = 500, 50
TRIAL_S = 1.0


def run(*, quick: bool = False) -> list[Row]:
    """The rows; blocks for two minutes."""
    trials, rounds = (2_000, 1) if quick else (6_000, 3)
    one, many = [], []
    for _ in range(rounds):
        one.append(cpu_ms(1, trials))
        many.append(cpu_ms(WORKERS, trials))
    ratio = min(many) / min(one)
    return [
        row(
            f"{WORKERS} workers with {RUNNING} running trials: CPU of the head for each trial, "
            "against one worker with as many",
            "≤ 1.2 ×",
            f"{ratio:.2f} ×",
            ratio <= 1.2,
            f"{min(many):.2f} against {min(one):.2f} ms, the least of {rounds} runs each; trials "
            f"of {TRIAL_S:g} s, so some {RUNNING / TRIAL_S:.0f} a second; simulated agents over "
            "TCP with CURVE, threads of ZeroMQ counted",
        )
    ]


class _Process:
    """Whoever asks for an agent is told that there is one; it is started when all have asked."""

    place, trouble, outdated, ends_at = "nowhere", "", False, None

    def __init__(self) -> None:
        self.config: AgentConfig | None = None
        self.pid: int | None = None

    def ensure(self, config: AgentConfig) -> None:
        self.config, self.pid = config, 1

    def look(self, silent_s: float) -> Loss | None:
        return None

    def expects(self, pid: int, ticket: str) -> bool:
        return True

    def give_up(self, grace_s: float = 0.0) -> None: ...
    def waiting(self) -> None: ...
    def terminate(self) -> None: ...
    def end(self, until: float) -> None: ...
    def leave(self) -> None: ...


def cpu_ms(workers: int, trials: int) -> float:
    """CPU of this process for each trial (milliseconds), without the first and the last ones."""
    with _experiment(workers, trials) as (engine, watcher):
        _until(engine, lambda: len(watcher.over) >= 2 * RUNNING)
        begun, first = time.process_time(), len(watcher.over)
        _until(engine, lambda: len(watcher.over) >= trials - RUNNING)
        return (time.process_time() - begun) / (len(watcher.over) - first) * 1e3


def _until(engine: Engine, condition) -> None:  # type: ignore[no-untyped-def]
    deadline = time.monotonic() + 300
    while not condition():
        if engine.error is not None:
            raise engine.error
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {len(engine.state.running)} run")
        time.sleep(0.02)


@contextmanager
def _experiment(workers: int, trials: int) -> Iterator[tuple[Engine, _Quiet]]:
    slots = RUNNING // workers
    settings = Settings(slots=RUNNING, lookahead=64, max_trials=trials, workers=workers)
    names = [WorkerId(f"w{number}") for number in range(workers)]
    with tempfile.TemporaryDirectory(prefix="workers-") as made:
        folder = Path(made)
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        router = Router(context)
        ipc = router.bind_ipc(folder / "head")
        server, client = CurveKeys.fresh(), CurveKeys.fresh()
        address = router.bind_tcp("127.0.0.1", 0, server, [client.public])
        door = Endpoint(
            address,
            server_key=server.public,
            public_key=client.public,
            secret_key=client.secret,
        )
        journal = SqliteJournal.open(folder / "journal.sqlite")
        tuner = TunerHostDriver(
            router.admit("tuner", "tuner:benchmark"),
            TunerHostConfig(
                endpoint=Endpoint(ipc),
                weights_root=str(folder / "weights"),
                class_name="tuners_for_benchmarks:Counting",
                code_directory=str(TRIALS),
            ),
            folder,
        )
        config = AgentConfig(
            worker="",
            slots=slots,
            head=door,
            epoch=1,
            run_folder=str(folder),
            experiment_folder=str(folder),
            trial=TrialSpec(str(folder), command="true"),
            weights_root=str(folder / "weights"),
        )
        state = new_state(settings)
        for event in (e.ExperimentCreated(settings), e.HeadStarted(1)):
            apply(state, event, time.time())
            journal.append([JournalEntry(time.time(), event)], (), durable=True)
        processes = {name: _Process() for name in names}
        drivers = {
            name: AgentDriver(
                router.admit(name, f"agent:{name}"),
                replace(config, worker=name),
                processes[name],
                folder,
            )
            for name in names
        }
        for name, driver in drivers.items():
            driver.perform(a.LaunchWorker(name))
        watcher = _Quiet()
        desk = ControlServer(lambda p: e.TrialSubmitted("{}"), lambda k, v: [])
        engine = Engine(state, journal, router, tuner, dict(drivers), desk, watcher)
        engine.begin(outstanding(state))
        told = {
            "trial_s": TRIAL_S,
            "configs": [msgspec.to_builtins(p.config) for p in processes.values()],
        }
        agents = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.trials.many_agents"], stdin=subprocess.PIPE
        )
        try:
            assert agents.stdin is not None
            agents.stdin.write(json.dumps(told).encode() + b"\n")
            agents.stdin.flush()
            engine.start()
            yield engine, watcher
        finally:
            agents.kill()
            agents.wait()
            assert agents.stdin is not None
            agents.stdin.close()
            engine.abandon()
            engine.join(30)
            tuner.close(5.0)
            router.close()
            context.term()
            journal.close()


if __name__ == "__main__":
    for line in run(quick="--quick" in sys.argv):
        print(line["what"], "|", line["target"], "|", line["measured"], "|", line["detail"])

"""Agents that run attempts by dice, cut off, crash, come back, and repeat what was not
acknowledged. They keep the order of their words, as a connection does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dispatcher import codec
from dispatcher.channel import Said
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Weights

if TYPE_CHECKING:
    from tests.support.world import World

_BAD_ENDS = (
    EndReason.FAILED,
    EndReason.SIGNALLED,
    EndReason.OUT_OF_MEMORY,
    EndReason.TIMED_OUT,
)


@dataclass
class _Process:
    start: a.StartAttempt
    alive: bool = True
    seq: int = 0


@dataclass
class _Agent:
    name: str
    slots: int
    up: bool = False  # its process is there
    linked: bool = False  # and the head hears it
    life: int = 0
    processes: dict[tuple[int, int], _Process] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    said: int = 0
    unacknowledged: dict[int, list[Any]] = field(default_factory=dict)
    last_arrival: float = 0.0


class AgentBackend:
    """Implements :class:`dispatcher.ports.Backend` for all agents of a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._agents = {name: _Agent(name, slots) for name, slots in world.workers.items()}
        self._heard: list[tuple[str, int]] = []
        self.started: list[a.StartAttempt] = []

    # -- the port --------------------------------------------------------------------------

    def perform(self, action: a.WorkerAction) -> None:
        agent = self._agents[action.worker]
        match action:
            case a.LaunchWorker():
                self._soon(0.2, lambda: self._hello(agent))
            case a.StartAttempt():
                self.started.append(action)
                if agent.linked:
                    self._start(agent, action)
            case a.StopAttempt():
                if agent.linked:
                    self._stop(agent, action)

    def flush(self) -> None:
        """Everything went out at once."""

    def receive(self, payload: bytes) -> list[e.Event]:
        name, number, batch = payload.split(b"\0", 2)
        self._heard.append((name.decode(), int(number)))
        return codec.decode_batch(batch)

    def acknowledge(self) -> None:
        for name, number in self._heard:
            agent = self._agents[name]
            for old in [n for n in agent.unacknowledged if n <= number]:
                del agent.unacknowledged[old]
        self._heard.clear()

    def check(self) -> list[e.Event]:
        return []

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """Never closed."""

    # -- fate ------------------------------------------------------------------------------

    def new_head(self) -> None:
        """The head before is gone; agents go on and wait for a launch."""
        self._heard.clear()
        for agent in self._agents.values():
            agent.linked = False

    def accident(self) -> list[Said] | None:
        """A crash, or a cut that outlasts the lease."""
        agent = self._world.rng.choice(list(self._agents.values()))
        if not agent.linked:
            return None
        agent.linked = False
        if self._world.rng.random() < 0.5:
            for process in agent.processes.values():
                process.alive = False
            agent.processes.clear()
            agent.unacknowledged.clear()
            agent.up = False
        assert self._world.engine is not None
        self._world.engine.post(e.WorkerLost(agent.name, "accident"))  # type: ignore[arg-type]
        return None

    # -- one agent -------------------------------------------------------------------------

    def _soon(self, scale: float, do: Callable[[], list[Said] | None]) -> None:
        self._world.later(self._world.rng.expovariate(1 / scale), do)

    def _hello(self, agent: _Agent) -> list[Said] | None:
        if agent.linked:
            return None
        agent.life += 1
        agent.up = agent.linked = True
        with_words = {
            (x.trial, x.attempt) for batch in agent.unacknowledged.values() for x in batch
        }
        holds = tuple(sorted({*agent.processes, *with_words}))
        joined = e.WorkerJoined(agent.name, agent.slots, holds)  # type: ignore[arg-type]
        frames = [self._frame(agent, 0, [joined])]
        frames.extend(self._frame(agent, n, b) for n, b in agent.unacknowledged.items())
        return frames

    def _frame(self, agent: _Agent, number: int, batch: list[Any]) -> Said:
        payload = b"%s\0%d\0%s" % (agent.name.encode(), number, codec.encode_batch(batch))
        return Said("local", agent.name.encode(), payload)

    def _say(self, agent: _Agent, *events: Any) -> None:
        agent.said += 1
        number, life, batch = agent.said, agent.life, list(events)
        agent.unacknowledged[number] = batch
        delay = self._world.rng.expovariate(1 / 0.02)
        agent.last_arrival = max(agent.last_arrival, self._world.now + delay)

        def arrive() -> list[Said] | None:
            if not agent.linked or agent.life != life:
                return None  # it is repeated after the next hello
            frames = [self._frame(agent, number, batch)]
            if self._world.rng.random() < 0.05:  # caught up twice
                frames = [self._frame(agent, n, b) for n, b in agent.unacknowledged.items()]
                frames.append(self._frame(agent, number, batch))
            return frames

        if agent.linked:
            self._world.at(agent.last_arrival, arrive)

    def _start(self, agent: _Agent, action: a.StartAttempt) -> None:
        key = (action.trial, action.attempt)
        if key in agent.seen:
            return
        agent.seen.add(key)
        process = agent.processes[key] = _Process(action)
        self._script(agent, process)

    def _stop(self, agent: _Agent, action: a.StopAttempt) -> None:
        process = agent.processes.get((action.trial, action.attempt))
        if process is None:
            return

        def end() -> None:
            if process.alive:
                self._end(agent, process, action.reason, exit_code=None, signal=15)

        self._soon(0.3, end)

    def _end(self, agent: _Agent, process: _Process, reason: EndReason, **more: Any) -> None:
        process.alive = False
        start = process.start
        agent.processes.pop((start.trial, start.attempt), None)
        self._say(agent, e.AttemptEnded(start.trial, start.attempt, reason, **more))

    def _script(self, agent: _Agent, process: _Process) -> None:
        """What the process will do, step by step, unless it is ended before."""
        rng, start = self._world.rng, process.start
        trial, attempt = start.trial, start.attempt
        bad = rng.random() < self._world.odds.trial_fails

        def seq() -> int:
            process.seq += 1
            return process.seq

        def weights() -> Weights:
            return Weights(f"{trial}.{attempt}", "bequeath", 10)

        steps: list[Callable[[], None]] = []
        if bad and rng.random() < 0.15:
            steps.append(lambda: self._end(agent, process, EndReason.START_FAILED))
        else:
            steps.append(lambda: self._say(agent, e.AttemptStarted(trial, attempt, 1)))
        for _ in range(rng.randrange(3)):
            steps.append(
                lambda: self._say(agent, e.MetricReported(trial, attempt, seq(), f"0.{seq()}"))
            )
        writes = start.save_path is not None and rng.random() < 0.9
        publishes = writes and rng.random() < 0.6
        says = [self._publish_step(agent, trial, attempt, seq, weights)] if publishes else []
        if rng.random() < 0.9:
            value = f"{trial}.{attempt}"
            says.append(lambda: self._say(agent, e.FinalReported(trial, attempt, seq(), value)))
            if rng.random() < 0.1:
                says.append(lambda: self._say(agent, e.FinalReported(trial, attempt, seq(), "9")))
        rng.shuffle(says)
        if bad:
            says = says[: rng.randint(0, len(says))]
        steps.extend(says)
        files = weights() if writes and not publishes else None
        reason = rng.choice(_BAD_ENDS) if bad else EndReason.FINISHED
        steps.append(lambda: self._end(agent, process, reason, weights=None if bad else files))
        self._walk(process, steps)

    def _publish_step(
        self, agent: _Agent, trial: Any, attempt: int, seq: Any, weights: Any
    ) -> Callable[[], None]:
        return lambda: self._say(agent, e.WeightsPublished(trial, attempt, seq(), weights()))

    def _walk(self, process: _Process, steps: list[Callable[[], None]]) -> None:
        def step() -> None:
            if not process.alive or not steps:
                return
            steps.pop(0)()
            self._soon(0.3, step)

        self._soon(0.1, step)

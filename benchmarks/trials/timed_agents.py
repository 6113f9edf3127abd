"""Agents that only speak, at moments that somebody else's clock has reached.

A thousand of them share this process. Each line of stdin is a JSON object: ``now``, the moment;
``until``, up to which something may happen; ``new``, configurations of agents that begin;
``beat_s``, the seconds between two heartbeats, 0: as the head has ordered; ``metrics``, whether
trials report one a minute; ``grid_s``: all happens at multiples of so many seconds, many things at
once; 0: each at its own moment. What is due next happens then. The answer is a line: the moment
that was reached, which is that of what has happened, or the one asked for.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import json
import math
import random
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import zmq

from trial_runtime import facts
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.head_link import HeadLink
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.facts import EndReason

METRIC_S = 60.0

_config = msgspec.json.Decoder(AgentConfig)


class Agents:
    """All of them.

    Args:
        trial_s: how long a trial takes; those of the first round end one after another.
        first: how many belong to the first round.
    """

    def __init__(self, trial_s: float, first: int) -> None:
        self.now, self.beat_s, self.metrics, self._grid_s = 0.0, 1.0, False, 0.0
        self._trial_s, self._first = trial_s, first
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self._agents: dict[Any, Agent] = {}
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._tie = itertools.count()
        self._random = random.Random(1)

    def at(self, moment: float, do: Callable[[], None]) -> None:
        """Do something then."""
        if self._grid_s:
            moment = math.ceil(moment / self._grid_s) * self._grid_s
        heapq.heappush(self._agenda, (moment, next(self._tie), do))

    def set_grid(self, grid_s: float) -> None:
        """Have things happen at once, or each for itself: what is on the agenda is spread then."""
        if self._grid_s and not grid_s:
            spread = self._random.random
            self._agenda = [(at + self._grid_s * spread(), *do) for at, *do in self._agenda]
            heapq.heapify(self._agenda)
        self._grid_s = grid_s

    def begin(self, config: AgentConfig) -> None:
        """One more agent."""
        agent = Agent(self, self._context, config)
        self._agents[agent.link.socket] = agent
        self._poller.register(agent.link.socket, zmq.POLLIN)
        self.at(self.now + self._random.random() * agent.beat_s, agent.beat)

    def takes_s(self) -> float:
        """How long the next trial takes."""
        self._first -= 1
        share = self._random.random() if self._first >= 0 else self._random.uniform(0.9, 1.1)
        return self._trial_s * share

    def listen(self) -> None:
        """Take in what the head has said."""
        for socket, _ in self._poller.poll(0):
            self._agents[socket].receive()

    def advance(self, until: float) -> float:
        """Do what is due next, and nothing later; the moment of that, or the one given."""
        if not self._agenda or self._agenda[0][0] > until:
            self.now = max(self.now, until)
            return until
        self.now = max(self.now, self._agenda[0][0])
        while self._agenda and self._agenda[0][0] <= self.now:
            heapq.heappop(self._agenda)[2]()
        return self.now


class Agent:
    """One that starts nothing: a trial is its end in the agenda."""

    def __init__(self, all_of_them: Agents, context: zmq.Context, config: AgentConfig) -> None:
        self._all, self._ordered_s = all_of_them, config.heartbeat_s
        self._outbox = Outbox(config.spool_path)
        self._running: dict[tuple[int, int], int] = {}  # metrics so far
        self.link = HeadLink(
            context,
            config,
            self._outbox,
            lambda: list(self._running),
            clock=lambda: all_of_them.now,
        )
        self.link.tell_trouble("")  # its host has what it needs

    @property
    def beat_s(self) -> float:
        """Seconds until its next heartbeat."""
        return self._all.beat_s or self._ordered_s

    def beat(self) -> None:
        self.link.heartbeat(len(self._running), {})
        self._all.at(self._all.now + self.beat_s, self.beat)

    def receive(self) -> None:
        everything = self._all
        for order in self.link.receive():
            if isinstance(order, facts.StartAttempt):
                attempt = (order.trial, order.attempt)
                self._running[attempt] = 0
                self._say(facts.AttemptStarted(*attempt, 1))
                everything.at(everything.now + 0.01, self._flush)  # as real ones linger
                everything.at(everything.now + everything.takes_s(), partial(self._end, *attempt))
                everything.at(everything.now + METRIC_S, partial(self._measure, *attempt))

    def _measure(self, trial: int, attempt: int) -> None:
        if (trial, attempt) not in self._running:
            return
        self._all.at(self._all.now + METRIC_S, partial(self._measure, trial, attempt))
        if self._all.metrics:
            number = self._running[trial, attempt] = self._running[trial, attempt] + 1
            self._say(facts.MetricReported(trial, attempt, number, "0.5"))
            self._flush()

    def _end(self, trial: int, attempt: int) -> None:
        number = self._running.pop((trial, attempt)) + 1
        self._say(facts.FinalReported(trial, attempt, number, "1.0"))
        self._say(facts.AttemptEnded(trial, attempt, EndReason.FINISHED, 0))
        self._flush()

    def _say(self, word: facts.AttemptFact) -> None:
        self._outbox.add(word, urgent=False)

    def _flush(self) -> None:
        if not self.link.flush():
            self._all.at(self._all.now + 0.05, self._flush)


def main() -> None:
    """``TRIAL_S FIRST``: serve until stdin ends."""
    agents = Agents(float(sys.argv[1]), int(sys.argv[2]))
    for line in sys.stdin:
        told = json.loads(line)
        agents.beat_s, agents.metrics = told["beat_s"], told["metrics"]
        agents.set_grid(told["grid_s"])
        agents.now = max(agents.now, told["now"])
        for config in told["new"]:
            agents.begin(_config.decode(base64.b64decode(config)))
        agents.listen()
        print(json.dumps(agents.advance(told["until"])), flush=True)


if __name__ == "__main__":
    main()

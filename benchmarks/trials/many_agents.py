"""Agents that only speak: so many of them in this process, and trials that take their time.

Reads a line of JSON, ``{"trial_s": …, "configs": [AgentConfig, …]}``, and serves until its stdin
ends. What is said is what real agents say, by their own link and outbox.
"""

from __future__ import annotations

import heapq
import random
import sys
import time

import msgspec
import zmq

from trial_runtime import facts
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.link.head_link import HeadLink
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.facts import EndReason

HEARTBEAT_S = 1.0
LINGER_S = 0.01  # as the real one


class Told(msgspec.Struct):
    """What stdin says."""

    trial_s: float
    configs: list[AgentConfig]


class Agent:
    """One that starts nothing: a trial is an entry in a heap until it is over."""

    def __init__(self, context: zmq.Context, config: AgentConfig) -> None:
        self.outbox = Outbox(config.spool_path)
        self.running: dict[tuple[int, int], float] = {}
        self.link = HeadLink(context, config, self.outbox, lambda: list(self.running))
        self.beat_at = time.monotonic() + random.random() * HEARTBEAT_S
        self.flush_at = float("inf")

    def say(self, word: facts.AttemptFact, *, urgent: bool) -> None:
        self.outbox.add(word, urgent=urgent)
        self.flush_at = min(self.flush_at, time.monotonic() + LINGER_S)

    def look(self, now: float) -> None:
        if now >= self.beat_at:
            self.beat_at = now + HEARTBEAT_S
            self.link.heartbeat(len(self.running), {})
        if self.outbox.unsent and (self.outbox.urgent or now >= self.flush_at):
            self.flush_at = float("inf") if self.link.flush() else now + 5 * LINGER_S


def main() -> None:
    told = msgspec.json.decode(sys.stdin.buffer.readline(), type=Told)
    random.seed(1)
    context = zmq.Context()
    agents = [Agent(context, config) for config in told.configs]
    poller = zmq.Poller()
    poller.register(sys.stdin.fileno(), zmq.POLLIN)
    by_socket = {agent.link.socket: agent for agent in agents}
    for socket in by_socket:
        poller.register(socket, zmq.POLLIN)
    ends: list[tuple[float, int, int, int]] = []
    while True:
        ready = dict(poller.poll(2))
        if sys.stdin.fileno() in ready:
            return
        now = time.monotonic()
        for socket in ready:
            agent = by_socket[socket]
            for order in agent.link.receive():
                if isinstance(order, facts.StartAttempt):
                    agent.running[order.trial, order.attempt] = now
                    agent.say(facts.AttemptStarted(order.trial, order.attempt, 1), urgent=False)
                    until = now + told.trial_s * random.uniform(0.5, 1.5)
                    heapq.heappush(ends, (until, agents.index(agent), order.trial, order.attempt))
        while ends and ends[0][0] <= now:
            _, number, trial, attempt = heapq.heappop(ends)
            agent = agents[number]
            if agent.running.pop((trial, attempt), None) is not None:
                agent.say(facts.FinalReported(trial, attempt, 1, "1.0"), urgent=True)
                agent.say(facts.AttemptEnded(trial, attempt, EndReason.FINISHED, 0), urgent=True)
        for agent in agents:
            agent.look(now)


if __name__ == "__main__":
    main()

"""What an agent says of itself now and then, beside its numbered words: kept, never journalled,
but for what it offers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from dispatcher.backends.agents.translation import offer_of
from dispatcher.core.events import WorkerOffers
from dispatcher.core.ids import WorkerId
from trial_runtime import wire
from trial_runtime.refusals import MOST_REASONS

_NO_SAMPLES = wire.Samples()


@dataclass(frozen=True, slots=True)
class Statistics:
    """A look at the agent, for ``top`` and ``doctor``."""

    pid: int | None
    joined: bool
    running: int
    silence_s: float
    words: int
    refused: dict[str, int]  # by the agent, from trials and strangers
    samples: wire.Samples = _NO_SAMPLES  # what its trials and devices take, the newest


class SelfReport:
    """The newest of each."""

    def __init__(self) -> None:
        self.running = 0
        self.refused: dict[str, int] = {}
        self.samples = _NO_SAMPLES
        self._offer: wire.OfferTold | None = None  # what the core knows

    def heartbeat(self, message: wire.Heartbeat) -> None:
        """Take what comes with one."""
        self.running = message.running
        self.refused = dict(islice(message.refused.items(), MOST_REASONS))
        if message.samples is not None:
            self.samples = message.samples

    def joined(self, hello: wire.AgentHello) -> None:
        """The core is told of its offer with its joining."""
        self._offer = hello.offer

    def is_news(self, told: wire.OfferTold | None) -> bool:
        """Whether the core knows of another offer."""
        return told is not None and told != self._offer

    def offers(self, worker: WorkerId, told: wire.OfferTold | None) -> list[WorkerOffers]:
        """News for the core, if it is any: it is said again now and then, since a connection that
        breaks takes what is under way."""
        offer = offer_of(told)
        if offer is None or told == self._offer:
            return []
        self._offer = told
        return [WorkerOffers(worker, offer)]

    def gone(self) -> None:
        """What was measured there is no more."""
        self.samples = _NO_SAMPLES

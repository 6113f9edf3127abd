"""An agent's reports on itself, beside its numbered messages: kept, never journalled, but for the
resources that it offers."""

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
    """The newest figures of one agent, for ``top`` and ``doctor``."""

    pid: int | None
    joined: bool
    running: int
    silence_s: float
    messages: int  # numbered ones, received from this incarnation
    refused: dict[str, int]  # by the agent, from trials and strangers
    samples: wire.Samples = _NO_SAMPLES  # what its trials and devices take, the newest


class SelfReport:
    """The newest report of each kind."""

    def __init__(self) -> None:
        self.running = 0
        self.refused: dict[str, int] = {}
        self.samples = _NO_SAMPLES
        self._offer: wire.OfferTold | None = None  # the one that the core knows

    def heartbeat(self, message: wire.Heartbeat) -> None:
        """Keep what comes with a heartbeat."""
        self.running = message.running
        self.refused = dict(islice(message.refused.items(), MOST_REASONS))
        if message.samples is not None:
            self.samples = message.samples

    def joined(self, hello: wire.AgentHello) -> None:
        """Keep the offer of an agent that joins: the core gets it with the same event."""
        self._offer = hello.offer

    def is_news(self, offer: wire.OfferTold | None) -> bool:
        """Whether the core knows of another offer."""
        return offer is not None and offer != self._offer

    def offers(self, worker: WorkerId, offer: wire.OfferTold | None) -> list[WorkerOffers]:
        """The event of a new offer, or nothing: agents repeat an offer now and then, since a
        connection that breaks takes what is under way."""
        new = offer_of(offer)
        if new is None or offer == self._offer:
            return []
        self._offer = offer
        return [WorkerOffers(worker, new)]

    def gone(self) -> None:
        """Forget what was measured there: the agent is gone."""
        self.samples = _NO_SAMPLES

"""An agent's reports on itself, beside its numbered messages, and its process's on the place where
it runs: kept, never journalled, but for the resources that it offers and the waits for a place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice

from dispatcher.core.events import Event, WorkerOffers, WorkerWaits
from dispatcher.core.ids import WorkerId
from dispatcher.core.resources import Offer
from dispatcher.platforms.agents.process import AgentProcess
from dispatcher.platforms.agents.translation import offer_of
from trial_runtime import wire
from trial_runtime.refusals import MOST_REASONS

_NO_SAMPLES = wire.Samples()

#: The end of a place that is being taken back already (seconds since the epoch).
AT_ONCE = 0.0

#: A wait whose reason changes is reported at most once in this time (seconds): each report is a
#: row of the journal, and a scheduler may change its mind at each look.
WAITS_EVERY_S = 5.0


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
    way: str = ""  # by which it reaches the head, as it says


class SelfReport:
    """The newest report of each kind.

    Args:
        worker: the agent's.
        process: says why it waits for a place, and until when it has it.
        clock: monotonic seconds.
    """

    def __init__(self, worker: WorkerId, process: AgentProcess, clock: Callable[[], float]) -> None:
        self._worker = worker
        self._process = process
        self._clock = clock
        self._reason: str | None = None  # of the wait that the core knows
        self._quiet_until = float("-inf")
        self._ends_at: float | None = None  # as the core knows it
        self.leaving = False  # since whoever lent its place has asked it to go
        self._way = ""  # by which it reaches the head, as it says
        self.running = 0
        self.refused: dict[str, int] = {}
        self.samples = _NO_SAMPLES
        self._offer: wire.OfferMessage | None = None  # the one that the core knows

    def heartbeat(self, message: wire.Heartbeat, *, ours: bool) -> list[Event]:
        """Keep what comes with a heartbeat. That its place is taken back is an event, which is
        there before any end of an attempt that follows from it.

        Args:
            message: of an agent.
            ours: whether that is the one that has joined.
        """
        self.running = message.running
        self.refused = dict(islice(message.refused.items(), MOST_REASONS))
        if message.samples is not None:
            self.samples = message.samples
        if not (ours and message.leaving):
            return []
        self.leaving = True
        return self.of_its_place(joined=True)

    def joined(self, hello: wire.AgentHello) -> Offer | None:
        """The offer of an agent that joins: the core gets it with the same event."""
        self._offer = hello.offer
        self._reason, self._ends_at, self.leaving = None, self._process.ends_at, False
        return self._with_end(None if hello.trouble else hello.offer)

    def comes_by(self, way: str) -> None:
        """Note by which way an agent says that it has come."""
        self._way = way

    def is_news(self, offer: wire.OfferMessage | None) -> bool:
        """Whether the core knows of another offer."""
        return offer is not None and offer != self._offer

    def offers(self, offer: wire.OfferMessage | None) -> list[WorkerOffers]:
        """The event of a new offer, or nothing: agents repeat an offer now and then, since a
        connection that breaks takes what is under way."""
        new = self._with_end(offer)
        if new is None or offer == self._offer:
            return []
        self._offer = offer
        return [WorkerOffers(self._worker, new)]

    def _with_end(self, offer: wire.OfferMessage | None) -> Offer | None:
        new = offer_of(offer)
        return new if new is None else replace(new, ends_at=self._ends_at)

    def of_its_place(self, *, joined: bool) -> list[Event]:
        """The event of a place that is waited for with another reason than the core knows, or is
        had until another moment; or nothing."""
        if joined:
            ends_at = AT_ONCE if self.leaving else self._process.ends_at
            if ends_at == self._ends_at or self._offer is None:
                return []
            self._ends_at = ends_at
            new = self._with_end(self._offer)
            return [] if new is None else [WorkerOffers(self._worker, new)]
        waiting, now = self._process.waiting(), self._clock()
        if waiting is None or waiting.reason == self._reason or now < self._quiet_until:
            return []
        self._reason, self._quiet_until = waiting.reason, now + WAITS_EVERY_S
        return [WorkerWaits(self._worker, waiting.reason, waiting.waited_s)]

    def gone(self) -> None:
        """Forget what was measured there: the agent is gone."""
        self._reason, self.leaving = None, False
        self.samples = _NO_SAMPLES

    def statistics(
        self, *, joined: bool, silence_s: float, messages: int, refused: dict[str, int]
    ) -> Statistics:
        """The newest figures.

        Args:
            joined: whether the agent has.
            silence_s: since its last message.
            messages: numbered ones, received from it.
            refused: by the head, from the agent.
        """
        return Statistics(
            self._process.pid,
            joined,
            self.running,
            silence_s,
            messages,
            self.refused | refused,
            self.samples,
            self._way,
        )

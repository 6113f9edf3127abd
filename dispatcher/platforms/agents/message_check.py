"""Judges the messages of an agent as the agent is to judge those of its trials.

An agent may run on a machine that somebody else has taken over. A refusal harms the attempts of
that agent and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator

import msgspec

from dispatcher.errors import ProtocolError
from trial_runtime import facts, wire
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.trials.bounds import FLOOD_S, Allowance, metric_fault
from trial_runtime.fact_wire import decode_fact
from trial_runtime.refusals import Refusals

_log = logging.getLogger("bequeath.backends.agents")

#: Messages of an attempt that are neither metrics nor announced weights: its start and its end,
#: the first final metric, the newest weights, versions that were on their way to a remote root
#: when the last metric was taken (16), and some of its agent's own.
BESIDE_METRICS = 32

#: Unreadable frames after which an agent is not listened to any more: those that a machine sends
#: on purpose cost the head nothing but their passing.
MOST_UNREADABLE = 64

#: Messages a second that an agent may send about itself, in the long run: each is a row of the
#: journal, and an honest agent has a few in an hour. Attempts it holds that count as one more.
SELF_RATE = 2.0
HOLDS_PER_TOKEN = 20_000

#: Seconds' worth of debt beyond which news of what its host has is passed over. Short trials may
#: make it change often (the free memory of devices that are shared); an agent repeats it.
NEWS_DEBT_S = FLOOD_S / 2


class Refused(Exception):
    """Raised for a message that is not taken; ``reason`` is what it is counted under."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class MessageCheck:
    """Judges the messages of one agent, how often it reports on itself, and whether it is worth
    listening to. ``refused`` counts by reason; ``unheard``: why it is not listened to any more,
    until it is launched again.

    The messages of each attempt that the agent holds are counted; late ones, of other attempts,
    count as one attempt together. So the journal has a bound, whatever agents send.

    Args:
        worker: the worker that the agent belongs to.
        spec: the bounds on messages of trials.
        clock: monotonic seconds.
    """

    def __init__(self, worker: str, spec: TrialSpec, clock: Callable[[], float]) -> None:
        self.refused = Refusals()
        self.unheard = ""
        self._worker = worker
        self._garbled = 0  # frames since its launch that nobody can read
        self._clock = clock
        self._of_itself = Allowance(SELF_RATE, clock())
        self._spec = spec
        self._most_messages = 2 * spec.max_metrics + BESIDE_METRICS  # as many weights as metrics
        self._heard: dict[tuple[int, int], int] = {}
        self._of_others = 0
        self._start = ""  # of the process that has joined; empty from one of 0.1.0
        self._restarts = 0  # of its place, as it says

    def is_second(self, hello: wire.AgentHello) -> bool:
        """Whether another process shows the ticket of the one that has joined: its scheduler has
        started it a second time, while the first one may run."""
        return self._is_another(hello) and hello.restarts <= self._restarts

    def is_next(self, hello: wire.AgentHello) -> bool:
        """Whether another process shows the ticket of the one that has joined since its scheduler
        has taken that one's place back and lent another one."""
        return self._is_another(hello) and hello.restarts > self._restarts

    def _is_another(self, hello: wire.AgentHello) -> bool:
        return bool(hello.ticket) and hello.start != self._start

    def introduces_itself(self, holds: int = 0) -> bool:
        """Count a hello; false if there are too many to be meant."""
        self._of_itself.spend(1 + holds / HOLDS_PER_TOKEN, self._clock())
        if self._of_itself.flooded:
            self.unheard = "it introduced itself too often"
        return not self.unheard

    def takes_news(self) -> bool:
        """Count news of what its host has; false if there was too much of late."""
        self._of_itself.spend(0.0, self._clock())
        if self._of_itself.debt_s() > NEWS_DEBT_S:
            self.refused.count("news of the host")
            return False
        self._of_itself.spend(1.0, self._clock())
        return True

    def launched(self) -> None:
        """Listen to the agent again: it may be another one now."""
        self._garbled, self.unheard = 0, ""

    def read(self, payload: bytes) -> wire.AgentFrame | None:
        """A frame, or None from one that is not listened to. Raises ``ProtocolError``."""
        if self.unheard:
            self.refused.count("not listened to")
            return None
        try:
            return wire.from_agent(payload)
        except wire.WireError as error:
            self.refused.count("unreadable frame")
            self._garbled += 1
            if self._garbled > MOST_UNREADABLE:
                self.unheard = f"it sent {self._garbled} frames that nobody can read"
            raise ProtocolError(f"agent {self._worker}: {error}") from error

    def facts_of(self, messages: Iterable[msgspec.Raw]) -> Iterator[facts.AttemptFact]:
        """The facts that these messages are.

        Refused ones are skipped and counted: an agent repeats what is not taken, and all its
        later messages would wait behind one that nobody will ever understand.
        """
        for raw in messages:
            try:
                fact = decode_fact(raw)
                self.judge(fact)
                yield fact
            except (wire.WireError, Refused) as error:
                reason = error.reason if isinstance(error, Refused) else "unreadable message"
                if self.refused.count(reason):
                    _log.error("agent %s: %s", self._worker, error)

    def joined(
        self, holds: Collection[tuple[int, int]], start: str = "", restarts: int = 0
    ) -> None:
        """Begin to count: the agent holds these, and repeats what was not acknowledged.

        Args:
            holds: the numbers (trial, attempt) of the attempts that it holds.
            start: that of its hello.
            restarts: that of its hello.
        """
        self._start, self._restarts = start, restarts
        self._heard = dict.fromkeys(holds, 0)
        self._of_others = 0

    @property
    def all_ended(self) -> bool:
        """Whether the agent holds no attempt any more: an attempt's end is its last message."""
        return not self._heard

    def given(self, trial: int, attempt: int) -> None:
        """Count an attempt that the agent is ordered to start."""
        self._heard.setdefault((trial, attempt), 0)

    def judge(self, fact: facts.AttemptFact) -> None:
        """Count a fact. Raises :class:`Refused`."""
        key = (fact.trial, fact.attempt)
        if key not in self._heard:
            heard = self._of_others = self._of_others + 1
        elif isinstance(fact, facts.AttemptEnded):
            heard = 0
            del self._heard[key]
        else:
            heard = self._heard[key] = self._heard[key] + 1
        if heard > self._most_messages:
            attempt = f"{fact.trial}.{fact.attempt}"
            text = f"more than {self._most_messages:,} messages of attempt {attempt}"
            raise Refused("messages of an attempt", text)
        if isinstance(fact, (facts.MetricReported, facts.FinalReported)):
            spec = self._spec
            fault = metric_fault(fact.value, spec.max_metric_bytes, any_value=spec.nni)
            if fault:
                raise Refused("metric", f"attempt {fact.trial}.{fact.attempt} reports {fault}")

"""What trials say: numbered, and handed to the outbox for the head."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.door import Connection, Door
from trial_runtime.agent.outbox import Outbox

if TYPE_CHECKING:
    from trial_runtime.agent.remote_offers import RemoteOffers

_log = logging.getLogger("bequeath.agent")


class TrialWords:
    """Owned by the agent's loop.

    Args:
        holds_weights: word of weights is kept until they are where a child finds them, and said
            with :meth:`relay` then.
    """

    def __init__(self, spec: TrialSpec, door: Door, outbox: Outbox, *, holds_weights: bool) -> None:
        self._spec = spec
        self._door = door
        self._outbox = outbox
        self._holds_weights = holds_weights
        self.offers: RemoteOffers | None = None  # set where weights lie on no folder

    def hear(self, connection: Connection, messages: list[wire.FromTrial]) -> None:
        """Number what an attempt said and pass it on."""
        attempt = connection.speaker.attempt
        if attempt is None:
            return
        at_once = False
        start, add = attempt.start, self._outbox.add
        for message in messages:
            kind = type(message)
            if kind is wire.Metric:
                if attempt.metrics >= self._spec.max_metrics:
                    self._door.refusals.count("metric count")
                    self._refuse(connection, attempt)
                    continue
                attempt.metrics += 1
                attempt.seq += 1
                add(
                    wire.MetricRelayed(start.trial, start.attempt, attempt.seq, message.value),  # type: ignore[union-attr]
                    urgent=False,
                )
            elif isinstance(message, wire.Final):
                attempt.seq += 1
                at_once = True
                add(
                    wire.FinalRelayed(start.trial, start.attempt, attempt.seq, message.value),
                    urgent=True,
                )
            elif isinstance(message, wire.Published):
                attempt.published, at_once = message, True
                if not self._holds_weights:
                    self.relay(attempt, message)
            elif isinstance(message, wire.Offered):
                at_once = True
                self._offer(connection, attempt, message)
            elif isinstance(message, wire.Heeding):
                attempt.heeding = True
            elif isinstance(message, wire.Attach):
                attempt.attached = True
                if attempt.stop_reason is not None:
                    self._door.send(connection, [wire.StopAsked(attempt.stop_reason)])
        # Who runs one function after another does not wait for a receipt at the end of one.
        at_once = at_once and type(messages[-1]) is not wire.Done
        self._door.receipt(connection, now=at_once)

    def relay(self, attempt: Attempt, word: wire.Published) -> None:
        """Its weights are where a child finds them."""
        attempt.seq += 1
        self._outbox.add(
            wire.PublishedRelayed(
                attempt.trial, attempt.number, attempt.seq, word.digest, word.kind, word.nbytes
            ),
            urgent=True,
        )

    def _offer(self, connection: Connection, attempt: Attempt, word: wire.Offered) -> None:
        if self._spec.max_metrics <= attempt.metrics:  # each is a row of the journal, too
            self._refuse(connection, attempt)
            return
        if self.offers is not None:
            self.offers.offer(attempt, word)
        else:
            self.relay_offer(attempt, word)

    def relay_offer(self, attempt: Attempt, word: wire.Offered) -> None:
        """What it offers lies where readers find it."""
        attempt.metrics += 1
        attempt.seq += 1
        self._outbox.add(
            wire.VersionOffered(
                attempt.trial,
                attempt.number,
                attempt.seq,
                word.store,
                word.base,
                word.path,
                word.digest,
                word.nbytes,
            ),
            urgent=True,
        )

    def answer(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        """Tell an attempt what became of its offer, once it can read what it is told of."""
        if self.offers is not None:
            self.offers.answer(attempt, answer)
        else:
            self.tell(attempt, answer)

    def tell(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        """Tell an attempt what became of its offer: whichever of its processes asked."""
        for connection in self._door.connections_of(attempt):
            self._door.send(connection, [answer])

    def _refuse(self, connection: Connection, attempt: Attempt) -> None:
        if attempt.metrics == self._spec.max_metrics:
            attempt.metrics += 1
            limit = self._spec.max_metrics
            text = f"more than {limit:,} metrics; later ones are not taken"
            _log.warning("%r reports %s", attempt, text)
            self._door.send(connection, [wire.Refused(text)])

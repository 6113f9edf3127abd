"""Messages of trials: numbered, and put into the outbox for the head."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.trials.endpoint import Connection, TrialEndpoint

if TYPE_CHECKING:
    from trial_runtime.agent.attempts.remote_offers import RemoteOffers

_log = logging.getLogger("bequeath.agent")


class TrialMessages:
    """The messages between trials and head. Owned by the agent's loop.

    Args:
        spec: the caps on messages.
        endpoint: of the trials.
        outbox: for the head.
        holds_weights: do not report weights before they are where a child finds them.
    """

    def __init__(
        self, spec: TrialSpec, endpoint: TrialEndpoint, outbox: Outbox, *, holds_weights: bool
    ) -> None:
        self._spec = spec
        self._endpoint = endpoint
        self.reports = Reports(spec, outbox)
        self._holds_weights = holds_weights
        self.offers: RemoteOffers | None = None  # set where weights lie on no folder

    def hear(self, connection: Connection, messages: list[wire.FromTrial]) -> None:
        """Number the messages of an attempt and pass them on."""
        attempt = connection.speaker.attempt
        if attempt is None:
            return
        at_once = False
        for message in messages:
            kind = type(message)
            if kind is wire.Metric:
                if not self.reports.metric(attempt, message.value):  # type: ignore[union-attr]
                    self._refuse(connection, attempt)
            elif isinstance(message, wire.Final):
                at_once = True
                if not self.reports.final(attempt, message.value):
                    self._refuse(connection, attempt)
            elif isinstance(message, wire.PublishedMessage):
                attempt.published, at_once = message, True
                if not self._holds_weights:
                    self.reports.published(attempt, message)
            elif isinstance(message, wire.Offered):
                at_once = True
                self._offer(connection, attempt, message)
            elif isinstance(message, wire.AcceptsStop):
                attempt.accepts_stop = True
            elif isinstance(message, wire.Attach):
                attempt.attached = True
                if attempt.stop_reason is not None:
                    self._endpoint.send(connection, [wire.StopAsked(attempt.stop_reason)])
        # A warm worker does not wait for a receipt at the end of a function.
        at_once = at_once and type(messages[-1]) is not wire.Done
        self._endpoint.receipt(connection, now=at_once)

    def _offer(self, connection: Connection, attempt: Attempt, offer: wire.Offered) -> None:
        if not self.reports.has_room(attempt):
            self._refuse(connection, attempt)
            return
        if self.offers is not None:
            self.offers.offer(attempt, offer)
        else:
            self.reports.offered(attempt, offer)

    def answer(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        """Pass an answer on to an attempt, once it can read the version that the answer names."""
        if self.offers is not None:
            self.offers.answer(attempt, answer)
        else:
            self.tell(attempt, answer)

    def tell(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        """Send the answer to an offer to all processes of an attempt: any may have offered."""
        for connection in self._endpoint.connections_of(attempt):
            self._endpoint.send(connection, [answer])

    def _refuse(self, connection: Connection, attempt: Attempt) -> None:
        self._endpoint.refusals.count("metric count")
        if attempt.metrics == self._spec.max_metrics:
            attempt.metrics += 1
            limit = self._spec.max_metrics
            text = f"more than {limit:,} metrics; later ones are not taken"
            _log.warning("%r reports %s", attempt, text)
            self._endpoint.send(connection, [wire.Refused(text)])

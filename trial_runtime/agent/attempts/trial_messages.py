"""Messages of trials: numbered, and put into the outbox for the head."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.trials.endpoint import Closed, Connection, Heard, TrialEndpoint

_log = logging.getLogger("bequeath.agent")


class OfferChannel(Protocol):
    """The way of offers to shared stores to the head, and of its answers back."""

    def offer(self, attempt: Attempt, offer: wire.Offered) -> None:
        """Pass an offer on. A trial repeats it until it is answered."""
        ...

    def answer(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        """Pass an answer on to an attempt, once it can read the version that the answer names."""
        ...

    def forget(self, attempt: Attempt) -> None:
        """Drop the offers of an attempt that is over."""
        ...


class DirectOffers:
    """Offers on a weights root that is a folder: versions lie where each reader finds them."""

    def __init__(self, reports: Reports, endpoint: TrialEndpoint) -> None:
        self._reports = reports
        self._endpoint = endpoint

    def offer(self, attempt: Attempt, offer: wire.Offered) -> None:
        """See :class:`OfferChannel`."""
        self._reports.offered(attempt, offer)

    def answer(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        """See :class:`OfferChannel`."""
        self._endpoint.tell(attempt, [answer])

    def forget(self, attempt: Attempt) -> None:
        """See :class:`OfferChannel`."""


class TrialMessages:
    """The messages between trials and head. Owned by the agent's loop.

    Args:
        spec: the caps on messages.
        endpoint: of the trials.
        reports: takes what is for the head.
        offers: takes offers to shared stores.
        holds_weights: do not report weights before they are where a child finds them.
    """

    def __init__(
        self,
        spec: TrialSpec,
        endpoint: TrialEndpoint,
        reports: Reports,
        offers: OfferChannel,
        *,
        holds_weights: bool,
    ) -> None:
        self._spec = spec
        self._endpoint = endpoint
        self._reports = reports
        self._offers = offers
        self._holds_weights = holds_weights

    def hear(self, connection: Connection, messages: Sequence[Heard]) -> None:
        """Number the messages of an attempt and pass them on."""
        attempt = connection.speaker.attempt
        if attempt is None or type(messages[0]) is Closed:
            return
        at_once = False
        for message in messages:
            kind = type(message)
            if kind is wire.Metric:
                if not self._reports.metric(attempt, message.value):  # type: ignore[union-attr]
                    self._refuse(connection, attempt)
            elif isinstance(message, wire.Final):
                at_once = True
                if not self._reports.final(attempt, message.value):
                    self._refuse(connection, attempt)
            elif isinstance(message, wire.PublishedMessage):
                attempt.published, at_once = message, True
                if not self._holds_weights:
                    self._reports.published(attempt, message)
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
        if not self._reports.has_room(attempt):
            self._refuse(connection, attempt)
            return
        self._offers.offer(attempt, offer)

    def _refuse(self, connection: Connection, attempt: Attempt) -> None:
        self._endpoint.refusals.count("metric count")
        if attempt.metrics == self._spec.max_metrics:
            attempt.metrics += 1
            limit = self._spec.max_metrics
            text = f"more than {limit:,} metrics; later ones are not taken"
            _log.warning("%r reports %s", attempt, text)
            self._endpoint.send(connection, [wire.Refused(text)])

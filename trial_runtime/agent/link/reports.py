"""Reports of attempts on their way to the head: numbered, and bounded for each attempt.

Each report is a row of the journal, so their number has a bound.
"""

from __future__ import annotations

from trial_runtime import facts, wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.outbox import Outbox


class Reports:
    """The counted reports of all attempts. Owned by the agent's loop.

    One number bounds metrics, later final metrics and offered versions together, and announced
    weights by themselves: a trial whose metric is refused fails, and it may save as often as it
    reports. The first final metric is always taken, since it is the attempt's result; and the
    newest weights are always reported, with the attempt's end if not before.
    """

    def __init__(self, spec: TrialSpec, outbox: Outbox) -> None:
        self._most = spec.max_metrics
        self._outbox = outbox

    def has_room(self, attempt: Attempt) -> bool:
        """Whether an attempt may report more."""
        return attempt.metrics < self._most

    def metric(self, attempt: Attempt, value: str) -> bool:
        """Pass an intermediate metric on; false if there were too many."""
        if attempt.metrics >= self._most:
            return False
        attempt.metrics += 1
        attempt.seq += 1
        self._outbox.add(
            facts.MetricReported(attempt.start.trial, attempt.start.attempt, attempt.seq, value),
            urgent=False,
        )
        return True

    def final(self, attempt: Attempt, value: str) -> bool:
        """Pass a final metric on; false if there were too many."""
        if attempt.has_final:
            if attempt.metrics >= self._most:
                return False
            attempt.metrics += 1
        attempt.has_final = True
        attempt.seq += 1
        self._outbox.add(
            facts.FinalReported(attempt.trial, attempt.number, attempt.seq, value), urgent=True
        )
        return True

    def published(self, attempt: Attempt, published: wire.PublishedMessage) -> None:
        """Report weights that are where a child finds them.

        Beyond the bound only the newest count, and are reported at the end.
        """
        if attempt.announced >= self._most:
            attempt.unreported = published
            return
        attempt.announced += 1
        self._tell(attempt, published)

    def last(self, attempt: Attempt) -> None:
        """Report the weights that are not reported yet, before the attempt's end."""
        if attempt.unreported is not None:
            self._tell(attempt, attempt.unreported)
            attempt.unreported = None

    def _tell(self, attempt: Attempt, published: wire.PublishedMessage) -> None:
        attempt.seq += 1
        self._outbox.add(
            facts.WeightsPublished(
                attempt.trial,
                attempt.number,
                attempt.seq,
                facts.Weights(published.digest, published.kind, published.nbytes),
            ),
            urgent=True,
        )

    def offered(self, attempt: Attempt, offer: wire.Offered) -> None:
        """Report an offer of a version, which lies where readers find it."""
        attempt.metrics += 1
        attempt.seq += 1
        self._outbox.add(
            facts.VersionOffered(
                attempt.trial,
                attempt.number,
                attempt.seq,
                offer.store,
                offer.base,
                offer.path,
                offer.digest,
                offer.nbytes,
            ),
            urgent=True,
        )

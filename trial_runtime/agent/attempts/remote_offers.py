"""Versions of shared stores on a weights root that is no folder.

A trial writes a version into its view and offers it. Its agent copies it to the remote root first,
so that each reader finds it there. Before the trial learns that another version came first, the
agent copies the newest one into the view.
"""

from __future__ import annotations

import logging
from typing import Optional

from trial_runtime import wire
from trial_runtime.agent.attempt import Attempt, Phase
from trial_runtime.agent.base.helper import Helper
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.remote_weights import RemoteWeights
from trial_runtime.agent.trials.endpoint import TrialEndpoint
from trial_runtime.errors import WeightsError
from trial_runtime.failpoints import failpoint
from trial_runtime.weights.remote.faults import RemoteUnavailable

#: Offers of one attempt that are copied at the same time; the trial repeats others.
MOST_AT_ONCE = 16

_log = logging.getLogger("bequeath.agent")


class RemoteOffers:
    """The offers on a remote root. Owned by the agent's loop; the helper's threads copy.

    Args:
        remote: the weights root.
        helper: does the copying.
        reports: passes an offer on to the head.
        endpoint: passes an answer on to the attempt.
    """

    def __init__(
        self,
        remote: RemoteWeights,
        helper: Helper,
        reports: Reports,
        endpoint: TrialEndpoint,
    ) -> None:
        self._remote = remote
        self._helper = helper
        self._reports = reports
        self._endpoint = endpoint
        # By attempt and digest: what is being copied, and what is there.
        self._under_way: set[tuple[tuple[int, int], str]] = set()
        self._there: dict[tuple[tuple[int, int], str], wire.Offered] = {}

    def offer(self, attempt: Attempt, offer: wire.Offered) -> None:
        """Copy the version, then relay the offer. A trial repeats it until it is answered."""
        mark = (attempt.key, offer.digest)
        if mark in self._there:
            self._reports.offered(attempt, offer)
            return
        of_it = sum(key == attempt.key for key, _digest in self._under_way)
        if mark in self._under_way or of_it >= MOST_AT_ONCE:
            return
        self._under_way.add(mark)

        def done(_result: None, error: Optional[Exception]) -> None:
            failpoint("agent.version.pushed")
            self._under_way.discard(mark)
            if attempt.phase is Phase.OVER:  # its offers do not count; a sweep removes the copy
                return
            if error is None:
                self._there[mark] = offer
                self._reports.offered(attempt, offer)
                return
            _log.warning("a version of %r by %r was not stored: %s", offer.store, attempt, error)
            if isinstance(error, WeightsError) and not isinstance(error, RemoteUnavailable):
                self._tell(attempt, wire.OfferAnswered(offer.digest, False, refusal=str(error)))

        self._helper.submit(lambda: self._remote.push_version(attempt.key, offer), done)

    def answer(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        """Pass an answer on to an attempt, once it can read the version that the answer names."""
        mark = (attempt.key, answer.digest)
        offered = self._there.get(mark)
        newest = answer.newest
        if answer.accepted or newest is None or offered is None:
            self._tell(attempt, answer)
            return
        if mark in self._under_way:
            return  # an answer repeated while the newest version is on its way
        self._under_way.add(mark)

        def done(_result: None, error: Optional[Exception]) -> None:
            failpoint("agent.newest.pulled")
            self._under_way.discard(mark)
            if error is None:
                self._there.pop(mark, None)
                self._tell(attempt, answer)
            else:  # the trial asks again, is answered again, and this is tried again
                _log.warning("%r cannot be notified of a version: %s", attempt, error)

        def bring() -> None:
            self._remote.pull_version(attempt.key, newest.path, newest.digest)
            self._remote.drop_version(attempt.key, offered.path)

        self._helper.submit(bring, done)

    def _tell(self, attempt: Attempt, answer: wire.OfferAnswered) -> None:
        self._endpoint.tell(attempt, [answer])  # to all its processes: any may have offered

    def forget(self, attempt: Attempt) -> None:
        """Drop the offers of an attempt that is over."""
        for mark in [each for each in self._there if each[0] == attempt.key]:
            del self._there[mark]

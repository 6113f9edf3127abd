"""The way to the head that an agent takes, of several that its configuration names."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from trial_runtime.endpoint import FOLDER, Endpoint

#: A way by which nobody answers is tried for so long (seconds) before the next one: a host that
#: drops what comes to it says nothing. Logins and folders are slower than a connection.
TRY_S, TRY_SLOW_S = 10.0, 30.0

#: A way by which the head has answered is kept for so long without a word (seconds): a head that
#: has died comes back where it was.
STAY_S = 60.0

_log = logging.getLogger("bequeath.agent")


def try_s(endpoint: Endpoint) -> float:
    """For how long a way is tried (seconds)."""
    direct = endpoint.jump is None and endpoint.address.startswith("tcp://")
    return TRY_S if direct else TRY_SLOW_S


class Ways:
    """Takes the first way by which the head answers, and looks for another one when it is silent.

    Args:
        known: in the order in which they are tried.
        clock: monotonic seconds.
    """

    def __init__(self, known: Sequence[Endpoint], clock: Callable[[], float] = time.monotonic):
        self._known = tuple(known)
        self._clock = clock
        self._at = 0
        self._begin()

    def _begin(self) -> None:
        self._begun = self._clock()
        self._answered = False

    def heard(self) -> None:
        """Note that the head has spoken by the way that is taken."""
        self._answered = True

    @property
    def taken(self) -> Endpoint:
        """The one that is taken, or tried."""
        return self._known[self._at]

    def choose(self, known: Sequence[Endpoint], *, stands: bool, silent_s: float) -> Endpoint:
        """Return the one to take now; called now and then while the head is quiet.

        Args:
            known: as the configuration has them by now: a head may have come to another address.
            stands: whether the head is at the other end of the one that is taken.
            silent_s: since its last word.
        """
        before = self.taken
        if self._learn(known):
            return self.taken
        self._answered = self._answered or stands
        tried_s = self._clock() - self._begun
        goes_on = min(silent_s, tried_s) <= STAY_S if self._answered else tried_s <= try_s(before)
        if not goes_on and len(self._known) > 1:
            self._at = (self._at + 1) % len(self._known)
            self._begin()
            _log.warning("no answer of the head (%s); trying: %s", before.way, self.taken.way)
        return self.taken

    def pass_over(self) -> Endpoint:
        """Return the one to take in place of the one that was chosen, which cannot be tried now."""
        self._at = (self._at + 1) % len(self._known)
        self._begin()
        return self.taken

    def better(self, known: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
        """The ways before the one that is taken that can be tried beside it.

        A folder cannot: a line has one end here, which is that of the agent.

        Args:
            known: as the configuration has them by now.
        """
        self._learn(known)
        before = self._known[: self._at]
        return tuple(each for each in before if not each.address.startswith(FOLDER))

    def take(self, endpoint: Endpoint) -> Endpoint:
        """Go over to a way that leads to the head, as was tried; returns the one that is taken.

        Args:
            endpoint: one of :meth:`better`.
        """
        if endpoint in self._known and endpoint != self.taken:
            _log.info("the head answers again: %s, and no more %s", endpoint.way, self.taken.way)
            self._at = self._known.index(endpoint)
            self._begin()
        return self.taken

    def _learn(self, known: Sequence[Endpoint]) -> bool:
        """Whether the way that is taken is another one by what the configuration has now."""
        before = self.taken
        if tuple(known) == self._known:
            return False
        self._known = tuple(known)
        self._at = next((n for n, each in enumerate(known) if each.way == before.way), 0)
        if self.taken == before:
            return False
        self._begin()
        return True

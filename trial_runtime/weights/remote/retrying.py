"""Retries of requests that failed on a remote root, within a bound."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from trial_runtime.retry import Retry
from trial_runtime.weights.remote.faults import RemoteUnavailable

#: A server that is away for a minute only delays.
PATIENCE_S: Final = 300.0
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 10.0

_log = logging.getLogger("bequeath.weights")

T = TypeVar("T")


@dataclass(frozen=True)
class Persistence:
    """A bound on trying; tests replace clock and sleep."""

    timeout_s: float = PATIENCE_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def get_done(self, what: str, work: Callable[[], T]) -> T:
        """Do ``work``, and again after growing pauses while its error is one that may pass. Blocks.

        Raises:
            RemoteUnavailable: it still failed at the bound.
            RemoteRefused: and all else that ``work`` raises: at once.
        """
        tries = Retry(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, clock=self.clock, sleep=self.sleep)
        while True:
            try:
                return work()
            except RemoteUnavailable as error:
                if not tries.pause(self.timeout_s):
                    raise
                _log.warning("%s: %s; trying again", what, error.message)

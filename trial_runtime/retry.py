"""Growing pauses between tries: one rule for connections, visits, machines and files of others.

:class:`Retry` is for who waits in its thread, :func:`growing_pause` for who has a loop of its own.
The core's own pauses are arithmetic of its state.
"""

from __future__ import annotations

import time
from collections.abc import Callable

#: Twice as long each time, and no more times than that: the longest is reached long before.
_MOST_DOUBLINGS = 30


def growing_pause(failures: int, first_s: float, longest_s: float) -> float:
    """The pause before the next try (seconds). Pure.

    Args:
        failures: how many tries in a row have failed; 0 is as 1.
        first_s: the pause after the first of them; it doubles with each.
        longest_s: the longest pause.
    """
    return min(longest_s, first_s * 2.0 ** min(max(0, failures - 1), _MOST_DOUBLINGS))


class Retry:
    """The pauses between the tries of one piece of work. Made as the first try begins; one thread.

    Args:
        first_s: the first pause; each further one is twice as long.
        longest_s: the longest pause.
        clock: seconds that only grow; another one in tests, as is ``sleep``.
        sleep: lets seconds pass.
    """

    def __init__(
        self,
        first_s: float,
        longest_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._clock = clock
        self._sleep = sleep
        self._begun = clock()
        self._pauses = 0

    @property
    def spent_s(self) -> float:
        """The time since the first try began (seconds)."""
        return self._clock() - self._begun

    def pause(self, timeout_s: float) -> bool:
        """Let the pause before the next try pass; false, at once, if there is to be none.

        Args:
            timeout_s: the bound on all tries together, from the beginning of the first. The last
                pause ends there. It may be another one each time: that of the newest error.
        """
        left_s = timeout_s - self.spent_s
        if left_s <= 0:
            return False
        self._pauses += 1
        self._sleep(min(left_s, growing_pause(self._pauses, self._first_s, self._longest_s)))
        return True

"""Growing pauses between tries: one rule for connections, visits, machines and files of others.

The core's own pauses are arithmetic of its state, and a share's follow the table of its errors.
"""

from __future__ import annotations

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

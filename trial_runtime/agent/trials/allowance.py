"""The rate limit on a trial's messages: a bucket of tokens that fills at a steady rate."""

from __future__ import annotations

#: Seconds' worth of messages that may come at once.
BURST_S = 1.0

#: Seconds' worth of debt beyond which a speaker's connection is closed. Our library keeps far
#: below it, since it waits for receipts, which are held back while there is a debt.
FLOOD_S = 10.0


class Allowance:
    """The tokens of one speaker. They may become a debt: messages that arrived cannot be undone.

    Args:
        rate: tokens a second, and ``BURST_S`` times as many at once.
        now: monotonic seconds.
    """

    __slots__ = ("_at", "_rate", "level")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._at = now
        self.level = rate * BURST_S

    def spend(self, tokens: float, now: float) -> None:
        """Take so many tokens at ``now`` (monotonic seconds)."""
        self.level = min(self._rate * BURST_S, self.level + (now - self._at) * self._rate) - tokens
        self._at = now

    def debt_s(self) -> float:
        """Seconds until the debt is paid; 0 if there is none."""
        return max(0.0, -self.level / self._rate)

    @property
    def flooded(self) -> bool:
        """Whether the debt is larger than a sender that waits for receipts can have."""
        return self.level < -self._rate * FLOOD_S

"""Counts of refused messages by reason, logged now and then rather than each time.

A peer that sends a flood of nonsense would otherwise flood the log as well.
"""

from __future__ import annotations

#: Reasons that are counted one by one; a peer cannot make more of them.
MOST_REASONS = 64


class Refusals:
    """Counts by reason. Not thread-safe: the loop that counts owns it."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def count(self, reason: str, many: int = 1) -> bool:
        """Count; true when it is worth a line in the log: the first, second, fourth, eighth…"""
        if reason not in self.counts and len(self.counts) >= MOST_REASONS:
            reason = "other"
        before = self.counts.get(reason, 0)
        self.counts[reason] = before + many
        return before.bit_length() != (before + many).bit_length()

    @property
    def total(self) -> int:
        """The sum over all reasons."""
        return sum(self.counts.values())

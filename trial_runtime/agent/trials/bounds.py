"""Bounds on what trials send: its library keeps them, but any code may send.

A metric that passes is decoded by the journal's writer, the tuner host and the command line, so
none may pass on which one of them would fail. Messages are limited by a bucket of tokens, which
fills at a steady rate.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trial_runtime.trial_wire import UNREADABLE

#: As in the library of trials, plus one for the top level.
_DEEPEST = 9

_decoder = msgspec.json.Decoder()


def metric_fault(text: str, limit: int, *, any_value: bool = False) -> str:
    """The fault of a metric; empty if it has none.

    Args:
        text: the metric as JSON.
        limit: its largest size in bytes.
        any_value: accept any JSON value, as tuners written for NNI can read.
    """
    if len(text) > limit or len(text.encode()) > limit:
        return f"a metric of {len(text):,} characters; {limit:,} bytes are allowed"
    try:
        value = _decoder.decode(text)
    except UNREADABLE:
        return "a metric that is not JSON"
    if any_value:
        return "" if _fits(value, 0) else "a metric that nobody can hold"
    if isinstance(value, dict):
        if not _fits(value, 0):
            return "a metric nested too deeply, or with a number that nobody can hold"
        value = value.get("default")
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "a metric without a number"
    return "" if _fits(value, 0) else "a metric that nobody can hold"


def _fits(value: Any, depth: int) -> bool:
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        return all(_fits(inner, depth + 1) for inner in value.values())
    if isinstance(value, list):
        return all(_fits(inner, depth + 1) for inner in value)
    return not isinstance(value, int) or -(1 << 63) <= value < 1 << 64


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

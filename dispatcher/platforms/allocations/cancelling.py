"""The cancellations of allocations that are to end: each is repeated until it is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trial_runtime.retry import growing_pause

#: An order to cancel is repeated after this time (seconds), if nothing came of it.
CANCEL_AGAIN_S = 10.0

#: Longest pause after an order that failed (seconds).
LONGEST_PAUSE_S = 300.0


@dataclass
class _Cancelled:
    """One that is to end, within ``grace_s`` of ``since``, its first cancellation (monotonic)."""

    grace_s: float
    due: float
    since: float | None = None
    failures: int = 0
    trouble: str = ""

    def left_s(self, now: float) -> float:
        """The rest of its grace: an order that is repeated adds nothing to it."""
        if self.since is None:
            return self.grace_s
        return round(max(0.0, self.since + self.grace_s - now), 1)


class Cancelling:
    """The allocations that are to end. One that cannot be cancelled stops no other: after a failure
    each is tried alone."""

    def __init__(self) -> None:
        self._each: dict[str, _Cancelled] = {}

    def due(self, wanted: Mapping[str, float], now: float) -> list[tuple[float, list[str]]]:
        """Return what is to be cancelled now: names, by the grace they have.

        Args:
            wanted: all that are to end, and within what time of their first cancellation.
            now: monotonic seconds.
        """
        self._each = {name: each for name, each in self._each.items() if name in wanted}
        together: dict[float, list[str]] = defaultdict(list)
        alone: list[tuple[float, list[str]]] = []
        for name, grace_s in wanted.items():
            each = self._each.setdefault(name, _Cancelled(grace_s, now))
            if grace_s < each.grace_s:  # it is in a hurry now
                each.grace_s, each.due = grace_s, now
            if now < each.due:
                continue
            if each.failures:
                alone.append((each.left_s(now), [name]))
            else:
                together[each.left_s(now)].append(name)
        return [*together.items(), *alone]

    def hurry(self) -> None:
        """Have all of them cancelled again now: somebody waits for their end."""
        for each in self._each.values():
            each.due = float("-inf")

    def done(self, names: Sequence[str], now: float) -> None:
        """Note that these were cancelled, which takes its time."""
        for name in names:
            each = self._each[name]
            each.since = now if each.since is None else each.since
            each.due, each.failures, each.trouble = now + CANCEL_AGAIN_S, 0, ""

    def failed(self, names: Sequence[str], trouble: str, now: float) -> bool:
        """Note why these could not be cancelled; whether that is news.

        Args:
            names: that one order was about.
            trouble: why it failed.
            now: monotonic seconds.
        """
        each_again = len(names) > 1  # who of them is the reason will show
        news = False
        for name in names:
            each = self._each[name]
            news = news or trouble != each.trouble
            each.failures, each.trouble = each.failures + 1, trouble
            pause_s = growing_pause(each.failures, CANCEL_AGAIN_S, LONGEST_PAUSE_S)
            each.due = now if each_again else now + pause_s
        return news

    def trouble(self, name: str | None) -> str:
        """Why the last order for this one has failed; empty if it has not."""
        each = self._each.get(name or "")
        return "" if each is None else each.trouble

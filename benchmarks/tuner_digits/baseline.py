"""The fair baseline: random search, every trial trained for as long as suits random search best."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.tuner_digits.searching import Found


@dataclass(frozen=True)
class Sweep:
    """Random search over all seeds, by what each of its trials was trained for."""

    found: dict[int, list[Found]]

    @property
    def chosen(self) -> int:
        """The length with the best mean validation: in hindsight, in the baseline's favour."""
        return max(self.found, key=lambda length: mean_valid(self.found[length]))

    @property
    def best(self) -> list[Found]:
        """The baseline's searches, one a seed."""
        return self.found[self.chosen]


def mean_valid(found: Sequence[Found]) -> float:
    """Of the best that each search saw."""
    return statistics.fmean(one.valid for one in found)


def mean_test(found: Sequence[Found]) -> float:
    """Of what each search would hand out, on pictures unseen."""
    return statistics.fmean(one.test for one in found)

"""Who won: a tuner beside the baseline, seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.rows import Row, row
from benchmarks.tuner_digits.baseline import mean_test, mean_valid
from benchmarks.tuner_digits.searching import Found

WON = 4


@dataclass(frozen=True)
class Verdict:
    """On how many seeds a tuner's best is better than random search's."""

    seeds: int
    valid: int
    test: int

    @property
    def met(self) -> bool:
        """Enough of them, by what the searches saw: one of five may be lost."""
        return self.valid >= WON


def compare(ours: Sequence[Found], baseline: Sequence[Found]) -> Verdict:
    """Even is not better."""
    pairs = list(zip(ours, baseline, strict=True))
    valid = sum(own.valid > other.valid for own, other in pairs)
    test = sum(own.test > other.test for own, other in pairs)
    return Verdict(len(pairs), valid, test)


def judged(name: str, ours: Sequence[Found], baseline: Sequence[Found], more: str = "") -> Row:
    """The row of a tuner."""
    one = compare(ours, baseline)
    means = [f"{mean_valid(each):.3f} (test {mean_test(each):.3f})" for each in (ours, baseline)]
    return row(
        f"{name} on digits against random search with as many core-seconds: best validation",
        f"better on ≥ {WON} of {one.seeds} seeds",
        f"better on {one.valid} of {one.seeds}",
        one.met,
        f"mean {means[0]} against {means[1]}; in test on {one.test}{more}",
    )

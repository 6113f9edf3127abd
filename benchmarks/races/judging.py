"""Who was first: medians, and how sure that is by the bootstrap over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.races.running import Finish, Racer, race
from benchmarks.rows import Row, median, row

RESAMPLES = 10_000


@dataclass(frozen=True)
class Lead:
    """By what factor a peer takes longer: of the medians, and the ends of its 95 % interval."""

    ratio: float
    low: float
    high: float


def lead(ours: Sequence[float], theirs: Sequence[float]) -> Lead:
    """Compare seconds of the same seeds; seeds are drawn with replacement, in pairs.

    Raises:
        ValueError: not as many of one as of the other, or none.
    """
    if len(ours) != len(theirs) or not ours:
        raise ValueError(f"{len(ours)} races and {len(theirs)} cannot be compared")
    dice = np.random.default_rng(0)
    drawn = dice.integers(len(ours), size=(RESAMPLES, len(ours)))
    own, other = (np.median(np.array(one)[drawn], axis=1) for one in (ours, theirs))
    low, high = np.quantile(other / own, [0.025, 0.975])
    return Lead(median(theirs) / median(ours), float(low), float(high))


def raced(
    racers: Sequence[Racer],
    seeds: Sequence[int],
    *,
    what: str,
    least: float | None,
    budget_s: float,
    more: str,
) -> list[Row]:
    """Let all of them race, and return a row a peer. Blocks for minutes.

    Args:
        racers: ours, then the peers.
        seeds: one race each.
        what: is raced, with ``{peer}`` where the peer is named.
        least: see :func:`judged`.
        budget_s: seconds on the clock, of each racer and seed.
        more: for the detail.
    """
    ours, *peers = racers
    found = race(racers, seeds, budget_s)
    return [
        judged(
            what.format(peer=one.name),
            found[ours.name],
            found[one.name],
            least=least,
            budget_s=budget_s,
            more=more,
        )
        for one in peers
    ]


def judged(
    what: str,
    ours: list[Finish] | str,
    theirs: list[Finish] | str,
    *,
    least: float | None,
    budget_s: float,
    more: str,
) -> Row:
    """The row of a peer.

    Args:
        what: is compared with whom.
        ours: finishes seed by seed, or why there are none.
        theirs: those of the peer.
        least: what the ratio of the medians must be; None: the interval must lie above 1.
        budget_s: of each race.
        more: for the detail.
    """
    if least is None:
        target = "first: the 95 % interval above 1 ×"
    else:
        target = f"≥ {least:g} × less wall clock"
    if isinstance(ours, str) or isinstance(theirs, str):
        reason = f"ours: {ours}" if isinstance(ours, str) else str(theirs)
        return row(what, target, "not measured", None, reason)
    one = lead([each.wall_s for each in ours], [each.wall_s for each in theirs])
    own = lead([each.own_s for each in ours], [each.own_s for each in theirs])
    return row(
        what,
        target,
        f"{one.ratio:.2f} × ({one.low:.2f} to {one.high:.2f}): {_median(ours)} against "
        f"{_median(theirs)} s",
        one.low > 1 if least is None else one.ratio >= least,
        f"medians of {len(ours)} seeds, 95 % interval of their ratio by the bootstrap, from the "
        f"start of the process; from the start of the first trial {own.ratio:.2f} × ({own.low:.2f} "
        f"to {own.high:.2f}). Arrived within {budget_s:g} s: {_arrived(ours)} and "
        f"{_arrived(theirs)}; others count as {budget_s:g} s. Seconds by seed: {_each(ours)} and "
        f"{_each(theirs)}. {more}",
    )


def _median(finishes: Sequence[Finish]) -> str:
    return f"{median([each.wall_s for each in finishes]):.1f}"


def _arrived(finishes: Sequence[Finish]) -> str:
    return f"{sum(each.arrived for each in finishes)} of {len(finishes)}"


def _each(finishes: Sequence[Finish]) -> str:
    return ", ".join(f"{each.wall_s:.1f}" for each in finishes)

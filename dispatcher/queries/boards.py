"""The board across experiments: the best trial of each, in groups that can be compared."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from dispatcher.queries.records import OptimizeMode, Record
from dispatcher.queries.summary import ExperimentListing


class BoardGroup(StrEnum):
    """The thing that experiments of one board have in common, beside their direction."""

    DATASET = "dataset"
    TUNER = "tuner"
    TAG = "tag"  # one with several tags is on several boards
    NAME = "name"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class BoardFilter:
    """A choice of experiments; what is empty does not restrict it."""

    dataset: str = ""
    tuner: str = ""
    tag: str = ""
    name: str = ""  # a part of the name or the id, in either case
    starred: bool = False

    def takes(self, one: ExperimentListing) -> bool:
        """Whether an experiment is chosen."""
        return (
            self.dataset in ("", one.dataset)
            and self.tuner.lower() in ("", one.tuner.lower())
            and (not self.tag or self.tag in one.tags)
            and self.name.lower() in f"{one.name} {one.id}".lower()
            and (one.starred or not self.starred)
        )


@dataclass(frozen=True, slots=True)
class PlacedExperiment(Record):
    """An experiment on a board; equal values share the better place."""

    place: int
    experiment: ExperimentListing


@dataclass(frozen=True, slots=True)
class NamedRuns(Record):
    """Experiments of one name and tuner, which differ by their seeds as a rule."""

    name: str
    tuner: str
    runs: int
    best: float
    median: float
    worst: float
    seeds: tuple[int, ...]  # of those that have one, in order
    cpu_s: float
    wall_s: float
    experiments: tuple[str, ...]  # the best first


@dataclass(frozen=True, slots=True)
class Board(Record):
    """Experiments that can be compared, the best first, and beside them the same by name, in the
    order of their medians."""

    group: str  # empty: those without one
    mode: OptimizeMode
    experiments: tuple[PlacedExperiment, ...]
    names: tuple[NamedRuns, ...]


def leaderboard(
    listed: Iterable[ExperimentListing],
    group: BoardGroup = BoardGroup.DATASET,
    wanted: BoardFilter = BoardFilter(),
    limit: int | None = None,
) -> tuple[Board, ...]:
    """Put experiments that have a result on boards; those without a group come last.

    Args:
        listed: the experiments.
        group: what those of one board have in common. Whatever it is, values of which the higher
            is better never stand beside values of which the lower is.
        wanted: which experiments.
        limit: the best of each board, so many at most; those beyond count among the names.
    """
    boards: dict[tuple[str, OptimizeMode], list[ExperimentListing]] = {}
    for one in listed:
        if one.best_value is None or one.problem or not wanted.takes(one):
            continue
        for name in _groups(one, group):
            boards.setdefault((name, one.mode), []).append(one)
    order = sorted(boards, key=lambda key: (not key[0], key[0].lower(), key))
    return tuple(_board(name, mode, boards[name, mode], limit) for name, mode in order)


def _groups(one: ExperimentListing, group: BoardGroup) -> tuple[str, ...]:
    if group is BoardGroup.TAG:
        return one.tags or ("",)
    named = {BoardGroup.DATASET: one.dataset, BoardGroup.TUNER: one.tuner}
    named[BoardGroup.NAME] = one.name
    return (named.get(group, ""),)


def _board(
    name: str, mode: OptimizeMode, members: list[ExperimentListing], limit: int | None
) -> Board:
    ordered = sorted(members, key=lambda one: (_rank(mode, one.best_value), one.id))
    placed: list[PlacedExperiment] = []
    for at, one in enumerate(ordered):
        same = bool(placed) and placed[-1].experiment.best_value == one.best_value
        placed.append(PlacedExperiment(placed[-1].place if same else at + 1, one))
    by_name: dict[tuple[str, str], list[ExperimentListing]] = {}
    for one in ordered:
        by_name.setdefault((one.name, one.tuner), []).append(one)
    names = [_named(runs) for runs in by_name.values()]
    names.sort(key=lambda one: (_rank(mode, one.median), one.name))
    return Board(name, mode, tuple(placed[:limit]), tuple(names))


def _rank(mode: OptimizeMode, value: float | None) -> float:
    assert value is not None
    return -value if mode is OptimizeMode.MAXIMIZE else value


def _named(runs: list[ExperimentListing]) -> NamedRuns:
    """Summarize runs of one name, of which the best comes first."""
    values = [one.best_value for one in runs if one.best_value is not None]
    return NamedRuns(
        name=runs[0].name,
        tuner=runs[0].tuner,
        runs=len(runs),
        best=values[0],
        median=statistics.median(values),
        worst=values[-1],
        seeds=tuple(sorted({one.seed for one in runs if one.seed is not None})),
        cpu_s=sum(one.cpu_s for one in runs),
        wall_s=sum(one.wall_s for one in runs),
        experiments=tuple(one.id for one in runs),
    )

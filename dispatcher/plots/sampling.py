"""The trials that a plot is about: their results, and the parameters in which they differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.plots.axes import finite, word_of
from dispatcher.queries import ExperimentReader, OptimizeMode
from dispatcher.queries.export import flat_parameters, flatten
from dispatcher.queries.records import json_value

#: The name of the number by which trials are compared.
DEFAULT: Final = "default"

#: Trials at most, and letters of their parameters together.
MOST_TRIALS: Final = 10_000
_MOST_TEXT: Final = 96 << 20

#: Of more trials, so many of the best are taken, and an even part of the others.
_BEST: Final = 1_000

#: Parameters at most, letters of a name, and names of metrics.
MOST_NAMES: Final = 500
_MOST_LETTERS: Final = 200
_MOST_METRICS: Final = 50


@dataclass(frozen=True, slots=True)
class Sample:
    """Trials with finite results, in their order, and a column for each parameter that differs."""

    reader: ExperimentReader
    cursor: str
    metric: str
    metrics: list[str]
    mode: OptimizeMode
    results: int
    trials: list[int]
    values: list[float]
    parents: list[float | None]  # the parent's result
    columns: dict[str, list[Any]]  # None: the trial has no such parameter
    logarithmic: frozenset[str]  # by the search space
    notes: list[str] = field(default_factory=list)

    @property
    def best(self) -> int | None:
        """The place of the best trial; of equals the first."""
        if not self.values:
            return None
        chosen = max if self.mode is OptimizeMode.MAXIMIZE else min
        return self.values.index(chosen(self.values))

    def head(self) -> dict[str, Any]:
        """Return what every plot of results begins with."""
        return {
            "experiment": self.reader.id,
            "title": self.reader.name,
            "cursor": self.cursor,
            "notes": list(self.notes),
            "metric": self.metric,
            "metrics": self.metrics,
            "mode": self.mode,
            "results": self.results,
            "used": len(self.trials),
            "parameters": list(self.columns),
        }

    def demand(self, names: Sequence[str]) -> None:
        """Raise ``UserError`` unless trials differ in each of these parameters."""
        for name in names:
            if self.trials and name not in self.columns:
                shown = ", ".join(list(self.columns)[:12]) or "none"
                raise UserError(
                    f"trials do not differ in a parameter {name[:_MOST_LETTERS]!r}",
                    hint=f"they differ in: {shown}{' …' if len(self.columns) > 12 else ''}",
                )


def results(
    reader: ExperimentReader, names: Sequence[str]
) -> Iterator[tuple[int, int | None, dict[str, float]]]:
    """Yield each trial whose result was delivered, its parent, and those numbers of its result that
    are finite. A trial without any is yielded, too.

    Args:
        reader: the experiment.
        names: of numbers in the result, with dots for nested ones.
    """
    wanted = [name for name in names if name != DEFAULT]
    column = "told" if wanted else "NULL AS told"  # megabytes, which are not needed for the number
    rows = reader.rows(
        f"SELECT id, parent, number, {column} FROM trials WHERE told IS NOT NULL ORDER BY id"  # noqa: S608
    )
    for row in rows:
        found: dict[str, float] = {}
        if wanted:
            told = _flat_result(row["told"])
            found = {name: told[name] for name in wanted if name in told}
        if DEFAULT in names and (number := finite(row["number"])) is not None:
            found[DEFAULT] = number
        yield row["id"], row["parent"], found


def metric_names(reader: ExperimentReader) -> list[str]:
    """List the numbers that results hold, ``default`` first; of the first and the last trials."""
    found = {DEFAULT: None}
    for order in ("ASC", "DESC"):
        query = f"SELECT told FROM trials WHERE told IS NOT NULL ORDER BY id {order} LIMIT 100"  # noqa: S608
        for row in reader.rows(query):
            found |= dict.fromkeys(_flat_result(row["told"]))
    return [name for name in found if len(name) <= _MOST_LETTERS][:_MOST_METRICS]


def sample_of(reader: ExperimentReader, metric: str = DEFAULT, mode: str = "") -> Sample:
    """Read the trials of a plot.

    Args:
        reader: the experiment.
        metric: the name of a number in the final result.
        mode: ``maximize`` or ``minimize``; empty: as the experiment says.

    Raises:
        UserError: no result has such a number.
    """
    with reader.moment():
        cursor = queries.cursor_now(reader)
        known = [
            (n, parent, found[metric]) for n, parent, found in results(reader, [metric]) if found
        ]
        metrics = metric_names(reader)
        if not known and metric not in metrics:
            raise UserError(
                f"no result holds a number {metric[:_MOST_LETTERS]!r}",
                hint=f"there are: {', '.join(metrics[:12])}",
            )
        direction = _direction(reader, metric, mode)
        by_trial = {number: value for number, _, value in known}
        taken = _even_part(known, _room(reader), direction)
        columns, beyond = _columns(reader, [number for number, _, _ in taken])
    lists = sorted(_named(reader, "blocks") & columns.keys())
    notes = []
    if len(taken) < len(known):
        notes.append(
            f"{len(taken):,} of {len(known):,} results: the best {min(_BEST, len(taken) // 2):,}, "
            "and an even part of the others"
        )
    if beyond:
        notes.append(
            f"{beyond:,} more parameters are left out: the rarest, and those of long names"
        )
    for name in lists:
        columns[name] = [len(one) if isinstance(one, list) else one for one in columns[name]]
    if lists:
        notes.append(f"of {', '.join(lists)} the number of blocks is shown")
    return Sample(
        reader, cursor, metric, metrics, direction, len(known),
        [number for number, _, _ in taken], [value for _, _, value in taken],
        [by_trial.get(parent) if parent is not None else None for _, parent, _ in taken],
        columns, _named(reader, "loguniform", "lograndint"), notes,
    )  # fmt: skip


def spread(order: Sequence[int], most: int, best: int) -> list[int]:
    """Return at most so many of places that stand in the order of their results, the best first:
    the best ones, and an even part of the others.

    Args:
        order: places, the best first.
        most: how many are returned at most.
        best: how many of the first are taken in any case.
    """
    if len(order) <= most:
        return list(order)
    best = min(best, most // 2)
    rest = order[best:]
    step = len(rest) / (most - best)
    return [*order[:best], *(rest[int(at * step)] for at in range(most - best))]


def by_result(values: Sequence[float], mode: OptimizeMode) -> list[int]:
    """Return places by their values, the best first; of equals the first."""
    sign = -1.0 if mode is OptimizeMode.MAXIMIZE else 1.0
    return sorted(range(len(values)), key=lambda at: (sign * values[at], at))


def _direction(reader: ExperimentReader, metric: str, mode: str) -> OptimizeMode:
    if mode:
        return OptimizeMode.of(mode)
    return queries.objectives(reader).get(metric, reader.mode)


def _room(reader: ExperimentReader) -> int:
    """Return how many trials' parameters are read at most."""
    row = reader.row("SELECT avg(length(parameters)) FROM trials WHERE told IS NOT NULL")
    letters = 1.0 if row is None or row[0] is None else float(row[0])
    return max(10, min(MOST_TRIALS, int(_MOST_TEXT / max(letters, 1.0))))


def _even_part(
    known: list[tuple[int, int | None, float]], most: int, mode: OptimizeMode
) -> list[tuple[int, int | None, float]]:
    order = by_result([value for _, _, value in known], mode)
    return [known[at] for at in sorted(spread(order, most, _BEST))]


def _columns(reader: ExperimentReader, trials: Sequence[int]) -> tuple[dict[str, list[Any]], int]:
    """Return the parameters in which these trials differ, the most frequent first, and how many
    there are beyond the bound."""
    cells: dict[str, dict[int, Any]] = {}
    beyond: set[str] = set()
    query = "SELECT parameters FROM trials WHERE id IN ({marks}) ORDER BY id"
    for place, row in enumerate(reader.rows_among(query, trials)):
        for name, value in flat_parameters(row["parameters"]).items():
            if name in cells or (len(cells) < 10 * MOST_NAMES and len(name) <= _MOST_LETTERS):
                cells.setdefault(name, {})[place] = value
            elif len(beyond) < 100_000:
                beyond.add(name)
    differing = {name: held for name, held in cells.items() if _differs(held, len(trials))}
    order = sorted(differing, key=lambda name: -len(differing[name]))  # stable: as proposed
    kept = {
        name: [differing[name].get(place) for place in range(len(trials))]
        for name in order[:MOST_NAMES]
    }
    return kept, len(beyond) + len(order[MOST_NAMES:])


def _differs(held: Mapping[int, Any], trials: int) -> bool:
    if len(held) < trials and any(value is not None for value in held.values()):
        return True
    words = {word_of(value) for value in held.values()}
    return len(words) > 1


def _flat_result(text: str) -> dict[str, float]:
    told = json_value(text)
    if not isinstance(told, dict):
        return {}
    numbers = {name: finite(value) for name, value in flatten(told, "").items()}
    return {name: value for name, value in numbers.items() if value is not None}


def _named(reader: ExperimentReader, *types: str) -> frozenset[str]:
    """Return the parameters whose type in the search space ends so."""
    space = reader.config.get("searchSpace")
    if not isinstance(space, Mapping):
        return frozenset()
    return frozenset(
        str(name)
        for name, one in space.items()
        if isinstance(one, Mapping) and str(one.get("_type", "")).endswith(types)
    )

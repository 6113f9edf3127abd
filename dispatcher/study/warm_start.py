"""Results of other searches for the tuner of a study: which fit, and why others do not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dispatcher.errors import UserError
from dispatcher.queries.records import WEIGHT_PATHS
from dispatcher.study.cells import as_meant
from tuners.objectives import number_of
from tuners.space.model import Space
from tuners.space.sampling import branch_of, is_legal

#: Reasons that are named one by one; the rest is counted.
_MOST_NAMED = 8


class FoundResult(NamedTuple):
    """One result of another search. ``name``: of its trial there."""

    name: str
    parameters: dict[str, Any]
    value: Any  # a number, or a mapping with one under ``default``; None: it has no result


class FoundResults(NamedTuple):
    """All results of another search, and ``source``, its name for people. With ``cells`` they were
    text, of a CSV file. ``note``: what people should know of them."""

    source: str
    results: list[FoundResult]
    cells: bool = False
    note: str = ""


class WarmStart(NamedTuple):
    """The outcome of a warm start; it prints as a sentence.

    ``taken`` results went to the tuner. Without a space they are shown to it once their parameters
    were suggested. ``left_out`` says of others why they did not, a sentence each. ``note`` says
    that the source does not tell its direction; it is empty for one that does.
    """

    source: str
    taken: int
    left_out: tuple[str, ...]
    note: str = ""

    def __str__(self) -> str:
        text = self._counted()
        return f"{text}. {self.note}" if self.note and self.taken else text

    def _counted(self) -> str:
        text = f"{self.taken} results of {self.source} were taken"
        if not self.left_out:
            return text
        reasons = _grouped(self.left_out)
        named = "; ".join(reasons[:_MOST_NAMED])
        more = len(reasons) - _MOST_NAMED
        return f"{text}, {len(self.left_out)} were not: {named}" + (
            f"; and {more} more reasons" if more > 0 else ""
        )


def read_results(
    source: Any, modes: Mapping[str, str], study_name: str | None, metric: str | None
) -> FoundResults:
    """Read the results of another search, whatever has written them.

    Args:
        source: as of :meth:`dispatcher.study.Study.warm_start`.
        modes: ``maximize`` or ``minimize`` of each objective of the study that is to take them.
        study_name: of Optuna's.
        metric: of Ray Tune's.

    Raises:
        UserError: it cannot be read, or optimizes in the other direction.
    """
    from dispatcher.study.foreign_results import read_foreign

    found, theirs = read_foreign(source, study_name, metric)
    for name, mode in theirs.items():
        mine = modes.get(name, mode)
        if mine == mode:
            continue
        what, keyword = "", f"optimize={mode!r}"
        if name != "default":
            what, keyword = f" {name!r}", f"objectives={{{name!r}: {mode!r}}}"
        raise UserError(
            f"{found.source} is to {mode}{what}, and this study to {mine}{what}",
            hint=f"make the study with {keyword}",
        )
    results = [FoundResult(*each) for each in found.results]
    note = "" if theirs else _untold(found.source, modes)
    return FoundResults(found.source, results, found.cells, note)


def _untold(source: str, modes: Mapping[str, str]) -> str:
    """The note on results whose search may have had another direction."""
    wanted = [mode if name == "default" else f"{mode} {name!r}" for name, mode in modes.items()]
    return (
        f"{source} does not tell whether its search was to maximize or to minimize: its results "
        f"are taken as results to {' and to '.join(wanted)}, as this study has it"
    )


def fitting(
    everything: FoundResults, space: Space | None, objectives: Iterable[str] = ()
) -> tuple[list[dict[str, Any]], WarmStart]:
    """Choose the results that a tuner can take.

    Args:
        everything: all there are.
        space: of the study; None while it grows.
        objectives: numbers that a result must have.

    Returns:
        Rows of ``parameter`` and ``value``, and what became of all.
    """
    rows: list[dict[str, Any]] = []
    left_out: list[str] = []
    for name, given, value in everything.results:
        # Where a trial there found and left its weights is no parameter, and no name for one.
        parameters = {key: each for key, each in given.items() if key not in WEIGHT_PATHS}
        if everything.cells and space is not None:
            parameters = as_meant(space, parameters)
        why = _no_result(value, objectives) or ("" if space is None else misfit(space, parameters))
        if why:
            left_out.append(f"{name}: {why}")
        else:
            rows.append({"parameter": parameters, "value": value})
    return rows, WarmStart(everything.source, len(rows), tuple(left_out), everything.note)


def _grouped(sentences: Iterable[str]) -> list[str]:
    """Name each trial, but say a reason once where many have the same."""
    reasons = Counter(each.partition(": ")[2] for each in sentences)
    grouped: list[str] = []
    for sentence in sentences:
        name, _, why = sentence.partition(": ")
        many = reasons.pop(why, 0)
        if many == 1:
            grouped.append(sentence)
        elif many:
            grouped.append(f"{many} (the first is {name}): {why}")
    return grouped


def _no_result(value: Any, objectives: Iterable[str]) -> str:
    number = value.get("default") if isinstance(value, Mapping) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        return "it has no result"
    for name in ("default", *objectives):
        found = number_of(value, name)
        if found is None:
            return f"its result has no number {name!r}, which is an objective"
        if not math.isfinite(found):
            return f"its result is {found}"
    return ""


def misfit(space: Space, parameters: Mapping[str, Any]) -> str:
    """Say why parameters do not lie in a space; empty if they do."""
    names = [name for name, _ in space.dimensions]
    missing = [name for name in names if name not in parameters]
    if missing:
        return f"it has no {missing[0]!r}"
    for name in parameters:
        if name not in names and name != "_name":
            return f"it has {name!r}, which this space lacks"
    for name, dimension in space.dimensions:
        value = parameters[name]
        if not is_legal(dimension, value):
            return f"{name} is {value!r}, and may be {dimension!r}"
        branch = branch_of(dimension, value)
        below = "" if branch is None else misfit(branch.space, value)
        if below:
            return f"below {name}: {below}"
    return "" if space.admits(parameters) else "it does not meet the constraints"

"""Several objectives against one another, and the Pareto front."""

from __future__ import annotations

from itertools import combinations
from math import ceil
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dispatcher.plots.pictures.looks import ACCENT, QUIET, empty, figure_of, plain_axes, shown
from dispatcher.plots.pictures.scales import add_notes
from dispatcher.plots.shapes import Front

#: Pairs of objectives that are drawn.
_MOST_PAIRS: Final = 15
_SIZE: Final = 4.2


def front_figure(data: Front) -> Figure:
    """Draw each pair of objectives."""
    pairs = [*combinations(range(len(data.objectives)), 2)][:_MOST_PAIRS]
    across = min(3, max(1, len(pairs)))
    down = max(1, ceil(len(pairs) / across))
    width, height = max(6.4, across * _SIZE + 0.4), down * _SIZE + 1.0
    subtitle = f"{data.on_front:,} of {data.results:,} trials are beaten by no other (Pareto front)"
    figure = figure_of(width, height, shown(data.title, 60), subtitle)
    add_notes(figure, data.notes)
    if not data.trials:
        return empty(figure, "no trial has numbers for several objectives")
    for at, (x, y) in enumerate(pairs):
        left, row = 0.8 + (at % across) * _SIZE, at // across
        bottom = height - 0.8 - (row + 1) * _SIZE + 0.6
        box = (left / width, bottom / height, (_SIZE - 1.0) / width, (_SIZE - 1.0) / height)
        _draw(figure.add_axes(box), data, x, y)
    return figure


def _draw(axes: Axes, data: Front, x: int, y: int) -> None:
    plain_axes(axes)
    beaten, front = data.points[data.front :], data.points[: data.front]
    axes.scatter(
        [one[x] for one in beaten], [one[y] for one in beaten],
        s=9, color=QUIET, alpha=0.5, linewidths=0,
    )  # fmt: skip
    ordered = sorted(front, key=lambda one: one[x])
    axes.plot(
        [one[x] for one in ordered], [one[y] for one in ordered], marker="D", ms=4, color=ACCENT,
        linestyle="--" if len(data.objectives) == 2 else "none", lw=0.8,
    )  # fmt: skip
    for place, set_label in ((x, axes.set_xlabel), (y, axes.set_ylabel)):
        one = data.objectives[place]
        arrow = "more" if one.mode.value == "maximize" else "less"
        set_label(f"{shown(one.name)} ({arrow} is better)", size=9)

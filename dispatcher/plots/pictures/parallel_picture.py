"""Parallel coordinates: an axis for each parameter, a line for each trial."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from dispatcher.plots.pictures.looks import (
    ACCENT,
    INK,
    PAPER,
    QUIET,
    ValueColours,
    colour_bar,
    empty,
    figure_of,
    shown,
)
from dispatcher.plots.pictures.scales import ABSENT, add_notes, heights, label, marks
from dispatcher.plots.shapes import Axis, Parallel


def parallel_figure(data: Parallel) -> Figure:
    """Draw trials as lines across the axes of their parameters."""
    many = len(data.axes) + 1
    width = max(7.0, min(40.0, 1.5 * many + 1.2))
    some = f"{len(data.trials):,} of " if len(data.trials) < data.results else ""
    subtitle = f"{some}{data.results:,} trials; the best in colour"
    figure = figure_of(width, 5.6, shown(data.title, 60), subtitle)
    rest = f"{len(data.rest):,} less important parameters are left out: {', '.join(data.rest[:40])}"
    add_notes(figure, [*([rest] if data.rest else []), *data.notes])
    if not data.trials or not data.axes:
        return empty(figure, "no results yet" if not data.trials else "all trials are alike")
    result = Axis(data.metric, "number", min(data.values), max(data.values), [], 0)
    every = [*data.axes, result]
    at = [heights(axis, places) for axis, places in zip(data.axes, data.at, strict=True)]
    at.append(heights(result, [*data.values]))
    axes = figure.add_axes((0.75 / width, 0.12, 1 - 1.5 / width, 0.66))
    axes.set_xlim(0, many - 1)
    axes.set_ylim(ABSENT - 0.04 if any(axis.missing for axis in data.axes) else -0.02, 1.02)
    axes.axis("off")
    colours = ValueColours(data.values, data.mode)
    lines = [_curve([one[trial] for one in at]) for trial in range(len(data.trials))]
    few = len(lines) < 150
    axes.add_collection(
        LineCollection(
            lines,
            colors=[colours(value) for value in data.values],
            linewidths=1.3 if few else 0.8,
            alpha=0.75 if few else 0.4,
            capstyle="round",
        )
    )
    axes.add_collection(LineCollection([lines[-1]], colors=[ACCENT], linewidths=2.4, zorder=4))
    for x, axis in enumerate(every):
        _axis(axes, x, axis)
    colour_bar(figure, colours, shown(data.metric))
    return figure


def _curve(places: Sequence[float]) -> list[tuple[float, float]]:
    """Make a line that leaves and meets each axis level, so that the eye can follow it."""
    path: list[tuple[float, float]] = []
    for x, (here, there) in enumerate(pairwise(places)):
        for step in range(20):
            t = step / 20
            path.append((x + t, here + (there - here) * t * t * (3 - 2 * t)))
    path.append((len(places) - 1.0, places[-1]))
    return path


def _axis(axes: Any, x: int, axis: Axis) -> None:
    axes.plot([x, x], [0, 1], color=INK, linewidth=0.9, zorder=5, solid_capstyle="butt")
    for place, word in marks(axis):
        axes.text(
            x + 0.035, place, word, size=7.2, color=QUIET if place == ABSENT else INK,
            va="center", zorder=6,
            bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        )  # fmt: skip
    axes.text(
        x, 1.06, label(axis, 20), size=8.6, color=INK, ha="center", va="bottom", weight="bold",
        clip_on=False,
    )  # fmt: skip

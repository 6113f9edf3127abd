"""Each of some parameters against the result, with medians."""

from __future__ import annotations

import math
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dispatcher.plots.pictures.looks import ACCENT, INK, QUIET, empty, figure_of, plain_axes, shown
from dispatcher.plots.pictures.scales import add_notes, heights, set_across
from dispatcher.plots.shapes import Slice, Slices

_ACROSS: Final = 3
_WIDTH: Final = 3.5
_HEIGHT: Final = 2.9


def slices_figure(data: Slices) -> Figure:
    """Draw parameters one by one."""
    many = len(data.slices)
    across = min(_ACROSS, max(2, many))
    down = max(1, math.ceil(many / across))
    width, height = across * _WIDTH + 0.5, down * _HEIGHT + 1.1
    subtitle = f"{shown(data.metric, 40)} over each parameter; {len(data.trials):,} trials, medians"
    figure = figure_of(width, height, shown(data.title, 60), subtitle)
    add_notes(figure, data.notes)
    if not data.trials or not many:
        return empty(figure, "no results yet" if not data.trials else "all trials are alike")
    for at, one in enumerate(data.slices):
        left = 0.75 + (at % across) * _WIDTH
        bottom = height - 0.75 - (at // across + 1) * _HEIGHT + 0.75
        box = (left / width, bottom / height, (_WIDTH - 0.75) / width, (_HEIGHT - 1.0) / height)
        _draw(figure.add_axes(box), data, one)
    return figure


def _draw(axes: Axes, data: Slices, one: Slice) -> None:
    plain_axes(axes)
    set_across(axes, one.axis)
    places = heights(one.axis, one.at)
    axes.scatter(places, data.values, s=7, color=QUIET, alpha=0.5, linewidths=0)
    trend = heights(one.axis, [point.at for point in one.trend])
    style = "o" if one.axis.kind == "choice" else "o-"
    axes.plot(trend, [point.median for point in one.trend], style, color=INK, ms=3.5, lw=1.4)
    if data.best in data.trials:
        best = data.trials.index(data.best)
        axes.scatter([places[best]], [data.values[best]], s=34, color=ACCENT, marker="*", zorder=5)

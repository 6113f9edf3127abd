"""Two parameters, and the mean result over both."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from dispatcher.plots.pictures.looks import (
    ACCENT,
    INK,
    PAPER,
    ValueColours,
    colour_bar,
    empty,
    figure_of,
    plain_axes,
    shown,
)
from dispatcher.plots.pictures.scales import add_notes, heights, set_across, set_up
from dispatcher.plots.shapes import Contour


def contour_figure(data: Contour) -> Figure:
    """Draw the mean result over two parameters."""
    subtitle = f"mean {shown(data.metric, 40)} near each place; {len(data.trials):,} trials"
    figure = figure_of(7.4, 6.2, shown(data.title, 60), subtitle)
    add_notes(figure, data.notes)
    if data.x is None or data.y is None or not data.trials:
        return empty(figure, "no results over two parameters yet")
    axes = figure.add_axes((0.16, 0.16, 0.79, 0.7))
    plain_axes(axes)
    axes.grid(visible=False)
    known = [one for row in data.grid for one in row if one is not None]
    colours = ValueColours(known, data.mode)
    across = _edges(heights(data.x, [*data.grid_x]))
    up = _edges(heights(data.y, [*data.grid_y]))
    blank = (0.0, 0.0, 0.0, 0.0)
    fields = [[blank if one is None else colours(one) for one in row] for row in data.grid]
    axes.pcolormesh(across, up, np.array(fields), linewidth=0, rasterized=True)
    for line in data.lines:
        axes.plot(
            heights(data.x, [*line.x]), heights(data.y, [*line.y]), color=INK, lw=0.7, alpha=0.6
        )
    places = heights(data.x, [*data.at_x]), heights(data.y, [*data.at_y])
    axes.scatter(*places, s=9, color=PAPER, edgecolors=INK, linewidths=0.4, alpha=0.8, zorder=3)
    if data.best in data.trials:
        best = data.trials.index(data.best)
        axes.scatter([places[0][best]], [places[1][best]], s=60, color=ACCENT, marker="*", zorder=5)
    set_across(axes, data.x)
    set_up(axes, data.y)
    axes.set_xlim(min(across) - 0.02, max(across) + 0.02)
    axes.set_ylim(min(up) - 0.02, max(up) + 0.02)
    if known:
        colour_bar(figure, colours, shown(data.metric))
    return figure


def _edges(middles: list[float]) -> list[float]:
    """Return the edges of fields around evenly spaced places."""
    size = middles[1] - middles[0] if len(middles) > 1 else 1.0
    return [middles[0] - size / 2, *(one + size / 2 for one in middles)]

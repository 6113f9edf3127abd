"""Parameters by importance, as bars with their errors."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure

from dispatcher.plots.pictures.looks import (
    ACCENT,
    INK,
    QUIET,
    empty,
    figure_of,
    plain_axes,
    shown,
)
from dispatcher.plots.pictures.scales import add_notes
from dispatcher.plots.shapes import Importance

_MOST_BARS: Final = 40


def importance_figure(data: Importance) -> Figure:
    """Draw the importance of parameters."""
    bars = [*([data.inherited] if data.inherited else []), *data.judged][:_MOST_BARS]
    height = max(2.4, 1.5 + 0.26 * len(bars))
    explained = "" if data.explained is None else f", {max(0.0, data.explained):.0%} explained"
    about = f"importance for {shown(data.metric, 40)} by permutation"
    subtitle = f"{about}: {data.fitted:,} trials{explained}"
    figure = figure_of(8.4, height, shown(data.title, 60), subtitle)
    add_notes(figure, data.notes)
    if not bars:
        return empty(figure, "nothing to judge yet")
    axes = figure.add_axes((0.27, 0.82 / height, 0.68, 1 - 1.5 / height))
    plain_axes(axes)
    axes.grid(visible=False, axis="y")
    places = range(len(bars))
    colours = [ACCENT if data.inherited and not at else "#1f6a95" for at in places]
    axes.barh(
        places, [max(0.0, one.importance) for one in bars], xerr=[one.error for one in bars],
        color=colours if data.reliable else QUIET, height=0.62, ecolor=INK,
        error_kw={"linewidth": 0.8},
    )  # fmt: skip
    axes.set_yticks(places, [shown(one.name) for one in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_xlabel("share of the variance of results that is explained no more", size=9)
    return figure

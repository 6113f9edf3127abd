"""Every result as a dot, the best so far as a step line, over the time since the start."""

from __future__ import annotations

from matplotlib.figure import Figure

from dispatcher.plots.pictures.looks import (
    ACCENT,
    INK,
    PAPER,
    QUIET,
    empty,
    figure_of,
    plain_axes,
)
from dispatcher.queries.records import OptimizeMode
from dispatcher.queries.running_best import Progress

#: Seconds of each unit, the longest first.
UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def progress_figure(shown: Progress, name: str) -> Figure:
    """Draw the progress of an experiment."""
    points = shown.points
    word = "higher" if shown.mode is OptimizeMode.MAXIMIZE else "lower"
    subtitle = f"{len(points):,} results and the best so far; {word} is better"
    figure = figure_of(8.4, 4.8, name, subtitle)
    if not points:
        return empty(figure, "no results yet")
    end = points[-1].elapsed_s
    scale, unit = next(((s, u) for s, u in UNITS if end >= 2 * s), UNITS[-1])
    times = [point.elapsed_s / scale for point in points]
    axes = figure.add_axes((0.085, 0.125, 0.865, 0.69))
    plain_axes(axes)
    axes.scatter(
        times, [p.value for p in points], s=max(5.0, 22.0 - len(points) / 40),
        color=QUIET, alpha=0.55 if len(points) < 400 else 0.3, linewidths=0, zorder=2,
    )  # fmt: skip
    axes.step(times, [p.best for p in points], where="post", color=ACCENT, linewidth=1.8, zorder=3)
    risen = shown.improvements
    axes.scatter(
        [p.elapsed_s / scale for p in risen], [p.best for p in risen],
        s=26, color=ACCENT, edgecolors=PAPER, linewidths=1.0, zorder=4,
    )  # fmt: skip
    last = risen[-1]
    up = shown.mode is OptimizeMode.MAXIMIZE
    near_end = last.elapsed_s > 0.75 * end
    axes.annotate(
        f"{last.best:.5g} · trial {last.trial}",
        (last.elapsed_s / scale, last.best),
        xytext=(-6 if near_end else 6, 9 if up else -9),
        textcoords="offset points",
        ha="right" if near_end else "left",
        va="bottom" if up else "top",
        size=9,
        color=ACCENT,
        weight="bold",
    )
    _focus(shown, axes)
    axes.set_xlim(0, max(times[-1] * 1.02, 1e-9))
    axes.set_xlabel(f"{unit} since the start", size=9, color=INK)
    axes.set_ylabel("value", size=9, color=INK)
    return figure


def _focus(shown: Progress, axes: object) -> None:
    """Leave far outliers on the poor side outside, and say how many there are."""
    from matplotlib.axes import Axes

    assert isinstance(axes, Axes)
    ordered = sorted(point.value for point in shown.points)
    if len(ordered) < 8:
        axes.margins(y=0.15)
        return
    quarter, last_quarter = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
    reach = 3.0 * (last_quarter - quarter)
    up = shown.mode is OptimizeMode.MAXIMIZE
    low = max(ordered[0], quarter - reach) if up else ordered[0]
    high = ordered[-1] if up else min(ordered[-1], last_quarter + reach)
    pad = 0.1 * (high - low) or 0.5
    axes.set_ylim(low - pad, high + pad * 1.3)
    outside = sum(1 for value in ordered if value < low or value > high)
    if outside:
        axes.text(
            0.995, 0.015 if up else 0.97, f"{outside} beyond the edge", transform=axes.transAxes,
            ha="right", va="bottom" if up else "top", size=7.5, color=QUIET,
        )  # fmt: skip

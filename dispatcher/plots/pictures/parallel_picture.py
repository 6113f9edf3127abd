"""Parallel coordinates: an axis for each parameter, a line for each trial."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

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
)
from dispatcher.queries.export import flatten
from dispatcher.queries.records import OptimizeMode, TrialSummary

_AXES_SHOWN: Final = 14
_CATEGORIES_SHOWN: Final = 16
_ABSENT: Final = -0.06  # below the axis: the trial has no such parameter


@dataclass(frozen=True, slots=True)
class Scale:
    """The layout of one parameter's values between 0 and 1."""

    name: str
    ticks: tuple[tuple[float, str], ...]
    low: float
    high: float
    log: bool
    categories: dict[str, float] | None  # places of texts, and of numbers too few for a range
    absent: bool  # some trials have no such parameter

    def place(self, value: Any) -> float:
        """Return the place of a value on the axis."""
        if value is None:
            return _ABSENT
        if self.categories is not None:
            return self.categories[_word(value)]
        number = math.log10(value) if self.log else float(value)
        return (number - self.low) / (self.high - self.low)


def parallel_figure(trials: Sequence[TrialSummary], mode: OptimizeMode, name: str) -> Figure:
    """Draw trials as lines across the axes of their parameters.

    Args:
        trials: those without a value are left out.
        mode: which values are best.
        name: the title.
    """
    done = [t for t in trials if t.value is not None]
    points = [(t.value, flatten(t.named_parameters, "")) for t in done if t.value is not None]
    columns = _columns([flat for _, flat in points])
    scales = [scale_of(key, [flat.get(key) for _, flat in points]) for key in columns]
    values = [value for value, _ in points]
    width = max(7.0, min(22.0, 1.5 * (len(scales) + 1) + 1.2))
    subtitle = f"{len(points):,} trials; the best in colour"
    figure = figure_of(width, 5.4, name, subtitle)
    if not points or not scales:
        return empty(figure, "no results yet" if not points else "all trials are alike")
    colours = ValueColours(values, mode)
    scales.append(scale_of("value", values, spread=True))
    axes = figure.add_axes((0.75 / width, 0.1, 1 - 1.5 / width, 0.68))
    axes.set_xlim(0, len(scales) - 1)
    axes.set_ylim(-0.1 if any(scale.absent for scale in scales) else -0.02, 1.02)
    axes.axis("off")

    order = sorted(range(len(points)), key=lambda i: values[i], reverse=mode.order == "ASC")
    lines = []
    for i in order:
        value, flat = points[i]
        heights = [scale.place(flat.get(scale.name)) for scale in scales[:-1]]
        lines.append(_curve([*heights, scales[-1].place(value)]))
    axes.add_collection(
        LineCollection(
            lines,
            colors=[colours(values[i]) for i in order],
            linewidths=1.3 if len(lines) < 150 else 0.8,
            alpha=0.75 if len(lines) < 150 else 0.4,
            capstyle="round",
        )
    )
    axes.add_collection(LineCollection([lines[-1]], colors=[ACCENT], linewidths=2.4, zorder=4))
    for x, scale in enumerate(scales):
        _axis(axes, x, scale)
    colour_bar(figure, colours, "value")
    return figure


def scale_of(name: str, values: Sequence[Any], *, spread: bool = False) -> Scale:
    """Choose the scale of these values: numbers (logarithmic over two decades), or categories.

    Args:
        name: the parameter's.
        values: one for each trial; None if a trial has no such parameter.
        spread: numbers get a linear scale, however few they are.
    """
    known = [value for value in values if value is not None]
    numbers = [v for v in known if isinstance(v, int | float) and not isinstance(v, bool)]
    distinct = set(numbers)
    if len(numbers) < len(known) or (len(distinct) <= 6 and not spread):
        absent = len(known) < len(values)
        return _word_scale(name, known, numeric=len(numbers) == len(known), absent=absent)
    low, high = min(distinct), max(distinct)
    log = low > 0 and high / low >= 100 and not spread
    bottom, top = (math.log10(low), math.log10(high)) if log else (float(low), float(high))
    if bottom == top:
        bottom, top = bottom - 0.5, top + 0.5
    ticks = []
    for step in range(5):
        number = bottom + (top - bottom) * step / 4
        ticks.append((step / 4, f"{10**number if log else number:.3g}"))
    return Scale(name, tuple(ticks), bottom, top, log, None, len(known) < len(values))


def _word_scale(name: str, known: Sequence[Any], *, numeric: bool, absent: bool) -> Scale:
    distinct = list({_word(value): value for value in known}.items())
    distinct.sort(key=lambda pair: (pair[1], "") if numeric else (0, pair[0]))
    steps = max(1, len(distinct) - 1)
    alone = len(distinct) == 1
    categories = {word: 0.5 if alone else i / steps for i, (word, _) in enumerate(distinct)}
    shown = categories if len(categories) <= _CATEGORIES_SHOWN else {}
    ticks = tuple((place, _cut(word)) for word, place in shown.items())
    return Scale(name, ticks, 0.0, 1.0, False, categories, absent)


def _columns(rows: Sequence[dict[str, Any]]) -> list[str]:
    """List the parameters in which trials differ, in the order of the proposals, without paths."""
    keys = dict.fromkeys(key for row in rows for key in row)
    differing = [
        key
        for key in keys
        if not key.endswith("_path") and len({_word(row.get(key)) for row in rows}) > 1
    ]
    return differing[:_AXES_SHOWN]


def _curve(heights: list[float]) -> list[tuple[float, float]]:
    """Make a line that leaves and meets each axis level, so that the eye can follow it."""
    path: list[tuple[float, float]] = []
    for x, (here, there) in enumerate(pairwise(heights)):
        for step in range(20):
            t = step / 20
            path.append((x + t, here + (there - here) * t * t * (3 - 2 * t)))
    path.append((len(heights) - 1.0, heights[-1]))
    return path


def _axis(axes: Any, x: int, scale: Scale) -> None:
    axes.plot([x, x], [0, 1], color=INK, linewidth=0.9, zorder=5, solid_capstyle="butt")
    for place, word in scale.ticks:
        axes.text(
            x + 0.035, place, word, size=7.2, color=INK, va="center", zorder=6,
            bbox={"facecolor": PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 0.6},
        )  # fmt: skip
    label = f"{_cut(scale.name, 20)}{' (log)' if scale.log else ''}"
    axes.text(
        x, 1.06, label, size=8.6, color=INK, ha="center", va="bottom", weight="bold",
        clip_on=False,
    )  # fmt: skip
    if scale.absent:
        axes.plot([x], [_ABSENT], marker="_", color=QUIET, markersize=5, zorder=5)
        axes.text(x + 0.035, _ABSENT, "none", size=7.2, color=QUIET, va="center", zorder=6)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _cut(word: str, most: int = 14) -> str:
    return word if len(word) <= most else word[: most - 1] + "…"

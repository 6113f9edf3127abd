"""Slots of workers as lanes, attempts as bars over time."""

from __future__ import annotations

from typing import Final

from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dispatcher.plots.pictures.looks import INK, QUIET, empty, figure_of, plain_axes, shown
from dispatcher.plots.pictures.scales import add_notes
from dispatcher.plots.shapes import Timeline

#: Fills and hatches, so that no hue is needed to tell them apart.
_LOOKS: Final = {
    "succeeded": ("#2a9aa6", ""),
    "running": ("#d9480f", ""),
    "failed": ("#22272e", "///"),
    "lost": ("#c9a227", "xxx"),
}
_OTHERS: Final = ("#b8bec6", "...")
_UNITS: Final = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))
_MOST_LANES: Final = 200
_MOST_NAMES: Final = 40


def timeline_figure(data: Timeline) -> Figure:
    """Draw attempts over time."""
    lanes = data.lanes[:_MOST_LANES]
    height = min(24.0, max(2.8, 1.6 + 0.24 * len(lanes)))
    workers = len({one.worker for one in data.lanes})
    subtitle = f"attempts: {len(data.trials):,}; slots: {len(data.lanes):,}; workers: {workers:,}"
    figure = figure_of(10.5, height, shown(data.title, 60), subtitle)
    left_out = len(data.lanes) - len(lanes)
    add_notes(figure, [*([f"{left_out:,} slots are not drawn"] if left_out else []), *data.notes])
    if not data.trials:
        return empty(figure, "no attempt has started yet")
    span = data.until - data.begin
    scale, unit = next(((s, u) for s, u in _UNITS if span >= 2 * s), _UNITS[-1])
    axes = figure.add_axes((0.17, 0.78 / height, 0.8, 1 - 1.6 / height))
    plain_axes(axes)
    axes.grid(visible=False, axis="y")
    boxes: dict[str, list[list[tuple[float, float]]]] = {}
    for lane, start, end, outcome in zip(
        data.lane, data.starts, data.ends, data.outcomes, strict=True
    ):
        if lane < len(lanes):
            x0 = (start - data.begin) / scale
            x1 = ((data.until if end is None else end) - data.begin) / scale
            box = [(x0, lane - 0.4), (x1, lane - 0.4), (x1, lane + 0.4), (x0, lane + 0.4)]
            boxes.setdefault(outcome, []).append(box)
    handles = []
    for outcome, some in sorted(boxes.items()):
        colour, hatch = _LOOKS.get(outcome, _OTHERS)
        axes.add_collection(
            PolyCollection(
                some,
                facecolors=colour,
                edgecolors=colour if len(some) > 60 else "white",
                linewidths=0.3,
                hatch=hatch,
            )
        )
        handles.append(Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=outcome))
    axes.set_xlim(0, max(span / scale, 1e-9))
    axes.set_ylim(len(lanes) - 0.4, -0.6)
    step = max(1, len(lanes) // _MOST_NAMES)
    axes.set_yticks(
        range(0, len(lanes), step),
        [f"{shown(one.worker, 18)} {one.slot}" for one in lanes[::step]],
    )
    axes.set_xlabel(f"{unit} since the first of them began", size=9, color=INK)
    figure.legend(
        handles=handles, loc="upper right", ncols=min(5, len(handles)), fontsize=7, frameon=False,
        labelcolor=QUIET,
    )  # fmt: skip
    return figure

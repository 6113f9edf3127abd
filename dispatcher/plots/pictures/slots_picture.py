"""Busy slots over time, and below them what kept the others empty."""

from __future__ import annotations

from typing import Final

from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dispatcher.plots.pictures.looks import INK, QUIET, empty, figure_of, plain_axes, shown
from dispatcher.plots.pictures.scales import add_notes
from dispatcher.plots.shapes import Slots

#: Fills and hatches of causes, so that no hue is needed; of the most frequent ones first.
_LOOKS: Final = (
    ("#d9480f", "///"), ("#c9a227", "xxx"), ("#1f6a95", "\\\\\\"), ("#22272e", "..."),
)  # fmt: skip
_OTHERS: Final = ("#b8bec6", "")
_BUSY: Final = "#2a9aa6"
_BUSY_CAUSE: Final = "ALL_SLOTS_BUSY"
_UNITS: Final = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


def in_words(cause: str) -> str:
    """Return the name of a cause as people write it.

    >>> in_words("NO_FREE_GPU")
    'no free GPU'
    """
    return cause.replace("_", " ").lower().replace("gpu", "GPU")


def slots_figure(data: Slots) -> Figure:
    """Draw busy slots."""
    busy = "" if data.busy_share is None else f"{100 * data.busy_share:.1f} % busy"
    idle = [f"{in_words(one.cause)} {100 * one.share:.1f} %" for one in data.idle[:4]]
    subtitle = "; ".join([*([busy] if busy else []), *idle])
    figure = figure_of(10.5, 4.0, shown(data.title, 60), subtitle)
    add_notes(figure, data.notes)
    if not data.busy:
        return empty(figure, "nothing is known of slots")
    span = data.until - data.begin
    scale, unit = next(((s, u) for s, u in _UNITS if span >= 2 * s), _UNITS[-1])
    axes = figure.add_axes((0.08, 0.2, 0.89, 0.58))
    plain_axes(axes)
    edges = [place * data.each_s / scale for place in range(len(data.busy) + 1)]
    axes.stairs(data.busy, edges, fill=True, color=_BUSY)
    axes.stairs(data.slots, edges, color=INK, linewidth=1)
    most = max(*data.slots, 1.0)
    looks = {
        one.cause: _LOOKS[at] if at < len(_LOOKS) else _OTHERS for at, one in enumerate(data.idle)
    }
    handles = [Patch(facecolor=_BUSY, label="busy")]
    for cause in dict.fromkeys(one.cause for one in data.reasons if one.cause != _BUSY_CAUSE):
        colour, hatch = looks.get(cause, _OTHERS)
        boxes = []
        for one in data.reasons:
            if one.cause == cause:
                x0, x1 = ((at - data.begin) / scale for at in (one.begin, one.end))
                boxes.append([(x0, -0.1 * most), (x1, -0.1 * most), (x1, 0.0), (x0, 0.0)])
        axes.add_collection(
            PolyCollection(boxes, facecolors=colour, edgecolors=colour, linewidths=0.3, hatch=hatch)
        )
        handles.append(
            Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=in_words(cause))
        )
    axes.set_xlim(0, max(span / scale, 1e-9))
    axes.set_ylim(-0.1 * most, 1.05 * most)
    axes.set_ylabel("slots", size=9, color=INK)
    axes.set_xlabel(f"{unit} since the first that is shown", size=9, color=INK)
    figure.legend(
        handles=handles[:6], loc="upper right", ncols=3, fontsize=7, frameon=False,
        labelcolor=QUIET,
    )  # fmt: skip
    return figure

"""The looks that all pictures share: paper, ink, one accent, values from dark to light."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from dispatcher.queries.records import OptimizeMode

PAPER: Final = "#fcfcfa"
INK: Final = "#22272e"
QUIET: Final = "#8b939e"
FAINT: Final = "#dfe3e8"
ACCENT: Final = "#d9480f"
BAD: Final = "#b8bec6"

# From poor to good, readable on paper at both ends and in grey print.
_VALUES: Final = LinearSegmentedColormap.from_list(
    "bequeath", ["#cdd9e5", "#8fb8d0", "#4f94b5", "#23708f", "#0b4a66", "#04293d"]
)

_DPI: Final = 160


def figure_of(width: float, height: float, title: str, subtitle: str) -> Figure:
    """A figure (inches) with a title at its upper left."""
    figure = Figure(figsize=(width, height), dpi=_DPI, facecolor=PAPER)
    figure.text(
        0.3 / width, 1 - 0.24 / height, title, ha="left", va="top", size=13, color=INK,
        weight="bold",
    )  # fmt: skip
    figure.text(0.3 / width, 1 - 0.5 / height, subtitle, ha="left", va="top", size=9, color=QUIET)
    return figure


def plain_axes(axes: Axes) -> None:
    """Two thin spines, small quiet ticks, a faint grid behind."""
    axes.set_facecolor(PAPER)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(QUIET)
        axes.spines[side].set_linewidth(0.7)
    axes.tick_params(colors=QUIET, labelcolor=INK, labelsize=8, width=0.7, length=3)
    axes.grid(visible=True, color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)


class ValueColours:
    """Colours by value, best darkest. The poor end starts where the middle half begins, so that
    one outlier does not make all the others look alike."""

    def __init__(self, values: Iterable[float], mode: OptimizeMode) -> None:
        ordered = sorted(values)
        self.map = _VALUES if mode is OptimizeMode.MAXIMIZE else _VALUES.reversed()
        low, high = (ordered[0], ordered[-1]) if ordered else (0.0, 1.0)
        if len(ordered) >= 8:
            quarter, last_quarter = ordered[len(ordered) // 4], ordered[-1 - len(ordered) // 4]
            reach = 1.5 * (last_quarter - quarter)
            if mode is OptimizeMode.MAXIMIZE:
                low = max(low, quarter - reach)
            else:
                high = min(high, last_quarter + reach)
        if low == high:
            low, high = low - 0.5, high + 0.5
        self.norm = Normalize(low, high, clip=True)

    def __call__(self, value: float) -> Any:
        """The colour of a value (RGBA)."""
        return self.map(self.norm(value))


def colour_bar(figure: Figure, colours: ValueColours, label: str) -> None:
    """A thin bar at the upper right that says which colour is which value."""
    width, height = figure.get_size_inches()
    bar_width = min(1.9, width * 0.3)
    axes = figure.add_axes(
        (1 - (bar_width + 0.35) / width, 1 - 0.36 / height, bar_width / width, 0.09 / height)
    )
    axes.imshow(
        [[i / 255 for i in range(256)]], aspect="auto", cmap=colours.map, extent=(0, 1, 0, 1)
    )
    axes.set_yticks([])
    axes.set_xticks([0, 1])
    low, high = float(colours.norm.vmin or 0.0), float(colours.norm.vmax or 0.0)
    axes.set_xticklabels([f"{low:.4g}", f"{high:.4g}"])
    axes.tick_params(length=0, labelsize=7.5, labelcolor=QUIET, pad=2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(label, size=7.5, color=QUIET, pad=3)


def empty(figure: Figure, text: str) -> Figure:
    """A picture of nothing says so."""
    figure.text(0.5, 0.45, text, ha="center", va="center", size=11, color=QUIET)
    return figure

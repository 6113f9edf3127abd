"""The looks that all pictures share: paper, ink, one accent, values from dark to light."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
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
    "bequeath", ["#efdca8", "#b5d6a7", "#6abfa8", "#2a9aa6", "#1f6a95", "#1d2f6f"]
)

_DPI: Final = 160
# Four bytes each while it is drawn; viewers and browsers refuse much larger ones.
_MOST_PIXELS: Final = 30_000_000


def figure_of(width: float, height: float, title: str, subtitle: str) -> Figure:
    """Make a figure with a title at its upper left.

    Args:
        width: inches.
        height: inches.
        title: the first line.
        subtitle: the second line, smaller.
    """
    dpi = min(_DPI, math.sqrt(_MOST_PIXELS / (width * height)))
    figure = Figure(figsize=(width, height), dpi=dpi, facecolor=PAPER)
    figure.text(
        0.3 / width, 1 - 0.24 / height, title, ha="left", va="top", size=13, color=INK,
        weight="bold",
    )  # fmt: skip
    figure.text(0.3 / width, 1 - 0.5 / height, subtitle, ha="left", va="top", size=9, color=QUIET)
    return figure


def plain_axes(axes: Axes) -> None:
    """Set two thin spines, small quiet ticks, a faint grid behind."""
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
    """Colours by value, best darkest.

    Results of a search crowd near the best, where differences matter most, so a value's place
    on the scale is the mean of two: where it lies between the extremes, and how many results
    it beats. Monotone, and the colour bar names the value in its middle.
    """

    def __init__(self, values: Iterable[float], mode: OptimizeMode) -> None:
        self._ordered = sorted(values)
        self._up = mode is OptimizeMode.MAXIMIZE

    def __call__(self, value: float) -> Any:
        """Return the colour of a value (RGBA)."""
        place = self.place(value)
        return _VALUES(place if self._up else 1.0 - place)

    def place(self, value: float) -> float:
        """Return the place of a value between 0 (lowest) and 1 (highest)."""
        ordered = self._ordered
        if not ordered or ordered[0] == ordered[-1]:
            return 0.5
        share = (value - ordered[0]) / (ordered[-1] - ordered[0])
        beaten = bisect.bisect_left(ordered, value) + bisect.bisect_right(ordered, value) - 1
        rank = beaten / 2 / (len(ordered) - 1)
        return min(1.0, max(0.0, (share + rank) / 2))

    @property
    def marks(self) -> list[tuple[float, float]]:
        """(place, value) of the lowest, the one nearest to the middle, the highest."""
        ordered = self._ordered
        if not ordered:
            return []
        middle = min(ordered, key=lambda value: abs(self.place(value) - 0.5))
        marks = [(self.place(v), v) for v in (ordered[0], middle, ordered[-1])]
        return marks if len({value for _, value in marks}) == 3 else [marks[0], marks[-1]]

    @property
    def strip(self) -> list[Any]:
        """The colours from the lowest value to the highest."""
        steps = [i / 255 for i in range(256)]
        return [_VALUES(step if self._up else 1.0 - step) for step in steps]


def colour_bar(figure: Figure, colours: ValueColours, label: str) -> None:
    """Draw a thin bar at the upper right as the legend of the colours.

    Args:
        figure: to draw on.
        colours: of the values.
        label: above the bar.
    """
    width, height = figure.get_size_inches()
    bar_width = min(2.2, width * 0.3)
    axes = figure.add_axes(
        (1 - (bar_width + 0.45) / width, 1 - 0.4 / height, bar_width / width, 0.09 / height)
    )
    axes.imshow([colours.strip], aspect="auto", extent=(0, 1, 0, 1))
    axes.set_yticks([])
    marks = colours.marks
    axes.set_xticks([place for place, _ in marks])
    axes.set_xticklabels([f"{value:.4g}" for _, value in marks])
    axes.tick_params(length=2, width=0.6, color=QUIET, labelsize=7.5, labelcolor=QUIET, pad=2)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_title(label, size=7.5, color=QUIET, pad=3)


def shown(text: str, most: int = 24) -> str:
    """Return a text of a trial in one line, cut, with a mark for what cannot be seen.

    Args:
        text: any.
        most: letters of it.
    """
    one_line = "".join(letter if letter.isprintable() else "\ufffd" for letter in text[: most + 1])
    return one_line if len(text) <= most else f"{one_line[: most - 1]}…"


def empty(figure: Figure, text: str) -> Figure:
    """Write into an empty picture why it is empty."""
    figure.text(0.5, 0.45, text, ha="center", va="center", size=11, color=QUIET)
    return figure

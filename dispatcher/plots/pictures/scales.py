"""Axes of parameters in a picture: all are drawn between 0 and 1, with words at places."""

from __future__ import annotations

from typing import Any, Final

from dispatcher.plots.axes import scaled, unscaled
from dispatcher.plots.pictures.looks import QUIET, shown
from dispatcher.plots.shapes import Axis

#: Below all values: the trial has no such parameter.
ABSENT: Final = -0.07

_STEPS: Final = 4
_MOST_WORDS: Final = 12


def heights(axis: Axis, at: list[float | None]) -> list[float]:
    """Return places between 0 and 1, and :data:`ABSENT` where there is none.

    Args:
        axis: of these places.
        at: as the data have them.
    """
    found = scaled(axis, at)
    return [ABSENT if at[place] is None else float(one) for place, one in enumerate(found)]


def marks(axis: Axis, letters: int = 14) -> list[tuple[float, str]]:
    """Return where words stand on an axis, and which.

    Args:
        axis: any.
        letters: of one word at most.
    """
    if axis.kind == "choice":
        many = len(axis.choices)
        step = max(1, -(-many // _MOST_WORDS))
        places = heights(axis, [float(at) for at in range(many)])
        found = [(places[at], shown(axis.choices[at], letters)) for at in range(0, many, step)]
    else:
        shares = [step / _STEPS for step in range(_STEPS + 1)]
        found = [(share, f"{unscaled(axis, share):.3g}") for share in shares]
    return [*found, (ABSENT, "none")] if axis.missing else found


def label(axis: Axis, letters: int = 28) -> str:
    """Return the name of an axis as it is written.

    Args:
        axis: any.
        letters: of the name at most.
    """
    return f"{shown(axis.name, letters)}{' (log)' if axis.kind == 'log' else ''}"


def set_across(axes: Any, axis: Axis, letters: int = 10) -> None:
    """Label the horizontal axis of a picture.

    Args:
        axes: matplotlib's.
        axis: what is drawn across.
        letters: of one word at most.
    """
    found = marks(axis, letters)
    axes.set_xticks([place for place, _ in found], [word for _, word in found])
    longest = max((len(word) for _, word in found), default=0)
    if longest * len(found) > 36:
        for one in axes.get_xticklabels():
            one.set(rotation=35, ha="right")
    axes.set_xlim(ABSENT - 0.05 if axis.missing else -0.05, 1.05)
    axes.set_xlabel(label(axis), size=9)


def set_up(axes: Any, axis: Axis, letters: int = 14) -> None:
    """Label the vertical axis of a picture.

    Args:
        axes: matplotlib's.
        axis: what is drawn upwards.
        letters: of one word at most.
    """
    found = marks(axis, letters)
    axes.set_yticks([place for place, _ in found], [word for _, word in found])
    axes.set_ylim(ABSENT - 0.05 if axis.missing else -0.05, 1.05)
    axes.set_ylabel(label(axis), size=9)


def add_notes(figure: Any, notes: list[str]) -> None:
    """Write what people should know below a picture.

    Args:
        figure: matplotlib's.
        notes: sentences.
    """
    width, height = figure.get_size_inches()
    letters = int(width * 17)
    text = "\n".join(shown(note, letters) for note in notes[:3])
    figure.text(0.3 / width, 0.08 / height, text, ha="left", va="bottom", size=7, color=QUIET)

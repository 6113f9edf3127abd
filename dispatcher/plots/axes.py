"""The axis of a parameter: of numbers, of numbers by their magnitude, or of choices."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dispatcher.plots.shapes import Axis

#: Choices that have a place of their own, and letters of one that are shown.
MOST_CHOICES: Final = 40
_MOST_LETTERS: Final = 200

#: Numbers of so few different values are choices.
_FEW: Final = 6

#: The least ratio of the largest to the smallest number on a logarithmic axis.
_LOGARITHMIC: Final = 100.0


class Placed(NamedTuple):
    """An axis, and where each trial stands on it; None: it has no such parameter."""

    axis: Axis
    at: list[float | None]


def placed(name: str, values: Sequence[Any], *, logarithmic: bool = False) -> Placed:
    """Choose the axis of a parameter, and place its values.

    Args:
        name: the parameter's.
        values: one for each trial; None if a trial has no such parameter.
        logarithmic: whether the search space says that magnitudes count.
    """
    known = [value for value in values if value is not None]
    missing = len(values) - len(known)
    numbers = [finite(value) for value in values]
    distinct = {number for number in numbers if number is not None}
    if any(finite(value) is None for value in known) or len(distinct) <= _FEW:
        return _choices(name, values, missing)
    low, high = min(distinct), max(distinct)
    wide = low > 0 and (logarithmic or high / low >= _LOGARITHMIC)
    return Placed(Axis(name, "log" if wide else "number", low, high, [], missing), numbers)


def scaled(axis: Axis, at: Sequence[float | None]) -> NDArray[np.float64]:
    """Return places between 0 and 1 as pictures have them; NaN where there is none.

    Args:
        axis: of these places.
        at: places on it.
    """
    raw = np.array([math.nan if one is None else one for one in at], dtype=float)
    low, high = axis.low, axis.high
    if axis.kind == "log":
        raw, low, high = np.log(raw), math.log(low), math.log(high)
    # Halves, since the distance of two finite numbers may be none.
    size = high / 2 - low / 2
    return (raw / 2 - low / 2) / size if size > 0 else np.where(np.isnan(raw), raw, 0.5)


def unscaled(axis: Axis, share: float) -> float:
    """Return the value at a place between 0 and 1.

    Args:
        axis: of numbers.
        share: 0 is its low end, 1 its high one.
    """
    if axis.kind == "log":
        return math.exp(math.log(axis.low) * (1 - share) + math.log(axis.high) * share)
    return axis.low * (1 - share) + axis.high * share


def finite(value: Any) -> float | None:
    """Return a value as a finite number; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def word_of(value: Any) -> str:
    """Return a value as one word, by which choices are told apart."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _choices(name: str, values: Sequence[Any], missing: int) -> Placed:
    words = [None if value is None else word_of(value) for value in values]
    known = {word: value for word, value in zip(words, values, strict=True) if word is not None}
    counted = Counter(word for word in words if word is not None)
    kept = sorted(counted, key=lambda word: (-counted[word], word))
    several = len(kept) > MOST_CHOICES
    kept = kept[: MOST_CHOICES - 1] if several else kept
    kept.sort(key=lambda word: _order(known[word], word))
    places = {word: float(at) for at, word in enumerate(kept)}
    shown = [word if len(word) <= _MOST_LETTERS else f"{word[:_MOST_LETTERS]}…" for word in kept]
    if several:
        shown.append(f"{len(counted) - len(kept):,} others")
    at = [None if word is None else places.get(word, float(len(kept))) for word in words]
    return Placed(Axis(name, "choice", 0.0, float(max(0, len(shown) - 1)), shown, missing), at)


def _order(value: Any, word: str) -> tuple[int, float, str]:
    number = finite(value)
    return (1, 0.0, word) if number is None else (0, number, word)

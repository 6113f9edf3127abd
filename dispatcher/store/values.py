"""The number in a reported value, by which lists are sorted and pictures drawn."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

_decoder: Final = msgspec.json.Decoder()


def number_of(value: str) -> float | None:
    """Return the number in a JSON text: itself, or what a mapping calls ``default``.

    None for what is no number, and for NaN and the infinities, by which nothing can be sorted.

    >>> number_of("0.5"), number_of('{"default": 2, "loss": 1}'), number_of('"fast"')
    (0.5, 2.0, None)
    """
    try:
        number = float(value)  # nearly all are plain numbers, and this is the fast way
    except ValueError:
        number = _number_in(_decode(value))
    return number if math.isfinite(number) else None


def _decode(value: str) -> Any:
    try:
        return _decoder.decode(value)
    except (msgspec.DecodeError, RecursionError):
        return None


def _number_in(value: Any) -> float:
    if isinstance(value, dict):
        value = value.get("default")
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    return math.nan

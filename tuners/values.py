"""Reading the number out of a final result, and the sense in which it is better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tuners.errors import TunerArgumentError

OptimizeMode = Literal["maximize", "minimize"]


def scalar(value: Any) -> float:
    """Returns the number in a result: itself, or the ``default`` of a mapping. NaN passes.

    Raises:
        ValueError: neither a number nor a mapping with a numeric ``default``.
    """
    number = value.get("default") if isinstance(value, Mapping) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(
            "a final result is a number, or a mapping whose 'default' is one; "
            f"this trial reported {value!r}"
        )
    return float(number)


def score(value: Any, mode: OptimizeMode) -> float | None:
    """Returns the number with the sign that makes larger better; None when it is not finite."""
    number = scalar(value)
    if not math.isfinite(number):
        return None
    return number if mode == "maximize" else -number


def optimize_mode(value: str) -> OptimizeMode:
    """Checks a class argument.

    Raises:
        TunerArgumentError: neither ``maximize`` nor ``minimize``.
    """
    if value == "maximize":
        return "maximize"
    if value == "minimize":
        return "minimize"
    raise TunerArgumentError(f"optimize_mode is 'maximize' or 'minimize', not {value!r}.")


def seed(value: int | None) -> int:
    """Checks a class argument; None draws a fresh one, which the tuner keeps in its state.

    Raises:
        TunerArgumentError: not an integer from 0 up.
    """
    if value is None:
        import secrets

        return secrets.randbits(32)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TunerArgumentError(f"seed is an integer from 0 up, or null, not {value!r}.")
    return value


def whole(name: str, value: int, low: int) -> int:
    """Checks a class argument that is an integer of at least ``low``.

    Args:
        name: of the argument, for the error.
        value: as the user gave it.
        low: the least that it may be.

    Raises:
        TunerArgumentError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise TunerArgumentError(f"{name} is an integer from {low} up, not {value!r}.")
    return value


def share(name: str, value: float, high: float = 1.0, *, zero: bool = False) -> float:
    """Checks a class argument that is a number above 0 and up to ``high``.

    Args:
        name: of the argument, for the error.
        value: as the user gave it.
        high: the most that it may be.
        zero: whether it may be 0.

    Raises:
        TunerArgumentError: it is not.
    """
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (0 < value <= high or (zero and value == 0)):
        bounds = "from 0" if zero else "above 0 and"
        raise TunerArgumentError(f"{name} is a number {bounds} up to {high:g}, not {value!r}.")
    return float(value)


def one_of(name: str, value: str, legal: Sequence[str]) -> str:
    """Checks a class argument that is one of a few words.

    Args:
        name: of the argument, for the error.
        value: as the user gave it.
        legal: what it may be.

    Raises:
        TunerArgumentError: it is not.
    """
    if value not in legal:
        choices = " or ".join(repr(word) for word in legal)
        raise TunerArgumentError(f"{name} is {choices}, not {value!r}.")
    return value


def text(name: str, value: str) -> str:
    """Checks a class argument that is a text, and not an empty one.

    Raises:
        TunerArgumentError: it is not.
    """
    if not isinstance(value, str) or not value:
        raise TunerArgumentError(f"{name} is a text, not {value!r}.")
    return value


def flag(name: str, value: bool) -> bool:
    """Checks a class argument that is true or false.

    Raises:
        TunerArgumentError: it is not.
    """
    if not isinstance(value, bool):
        raise TunerArgumentError(f"{name} is true or false, not {value!r}.")
    return value


def mapping(name: str, value: Mapping[str, Any] | None) -> dict[str, Any]:
    """Checks a class argument that is an object, or null for an empty one.

    Raises:
        TunerArgumentError: it is not.
    """
    if value is not None and not isinstance(value, Mapping):
        raise TunerArgumentError(f"{name} is an object of arguments, not {value!r}.")
    return dict(value or {})

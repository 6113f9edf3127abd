"""Objectives as people write them: ``maximize``, ``minimize <= 4096``, or a bound alone, ``<= 8``.

The same words stand in an experiment file, in a tuner's arguments and in the record of an
experiment, and this is where they are read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tuners.values import OptimizeMode

#: A word for the direction, a bound, or both.
_FORM = re.compile(r"\s*(?P<mode>[^\W\d]+)?\s*(?:(?P<sign>[<>]=)\s*(?P<bound>\S+))?\s*")

#: What a text that cannot be read should have been.
EXAMPLES = "write 'maximize', 'minimize', a bound as in 'minimize <= 4096', or '<= 8' alone"

#: Objectives at most, letters of a name, and characters of a text.
MOST_OBJECTIVES = 16
_MOST_LETTERS = 200
_MOST_TEXT = 100


@dataclass(frozen=True, slots=True)
class Objective:
    """One number of a final result: which way it is better, and what it may not exceed.

    Args:
        name: of the number in the result; a result that is a number is called ``default``.
        mode: which way it is better; None: it is bounded, and that is all.
        bound: what it may be at most, or at least; None: anything.
        is_most: whether the bound is the most it may be, and not the least.
    """

    name: str
    mode: OptimizeMode | None
    bound: float | None = None
    is_most: bool = True

    @property
    def text(self) -> str:
        """The same in the one spelling that is recorded.

        >>> read_objective("size", "Minimize<=4e3").text
        'minimize <= 4000'
        """
        sign = "<=" if self.is_most else ">="
        bound = "" if self.bound is None else f"{sign} {_plain(self.bound)}"
        return f"{self.mode or ''} {bound}".strip()

    def beyond(self, number: float) -> float:
        """How far a number is beyond the bound; 0 or less: it keeps it.

        >>> read_objective("size", "minimize <= 4096").beyond(5000.0)
        904.0
        """
        if self.bound is None:
            return -math.inf
        return number - self.bound if self.is_most else self.bound - number


def read_objective(name: str, text: object) -> Objective:
    """Reads one objective.

    >>> read_objective("size", "minimize <= 4096")
    Objective(name='size', mode='minimize', bound=4096.0, is_most=True)

    Args:
        name: of the number in the result.
        text: as people write it.

    Raises:
        ValueError: it is no objective; says why, and does not name it.
    """
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"must be a text such as 'maximize', not {text!r}")
    if len(text) > _MOST_TEXT:
        raise ValueError(f"has more than {_MOST_TEXT} characters")
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError(f"is {text!r}, which is no direction and no bound")
    word, sign = (found["mode"] or "").lower(), found["sign"]
    if word not in ("", "maximize", "minimize"):
        raise ValueError(f"is {text!r}, and the direction is 'maximize' or 'minimize'")
    bound = None if sign is None else _number(found["bound"], text)
    mode: OptimizeMode | None = None
    if word:
        mode = "maximize" if word == "maximize" else "minimize"
    return Objective(name, mode, bound, sign != ">=")


def read_objectives(written: object) -> tuple[Objective, ...]:
    """Reads all objectives of an experiment, in their order.

    Raises:
        ValueError: they are none, or one of them is none; names it.
    """
    if not isinstance(written, Mapping) or not written:
        raise ValueError("objectives map numbers of the final result to 'maximize' or 'minimize'")
    if len(written) > MOST_OBJECTIVES:
        raise ValueError(f"there are {len(written)} objectives, and {MOST_OBJECTIVES} are allowed")
    found = []
    for name, text in written.items():
        fault = name_fault(name)
        if fault:
            raise ValueError(f"the objective {name!r} {fault}")
        try:
            found.append(read_objective(name, text))
        except ValueError as error:
            raise ValueError(f"the objective {name!r} {error}") from None
    if not any(one.mode for one in found):
        raise ValueError("objectives are bounds only: one of them needs a direction")
    return tuple(found)


def known_objectives(written: object) -> tuple[Objective, ...]:
    """Reads those of the objectives that can be read, for readers of what others have written."""
    if not isinstance(written, Mapping):
        return ()
    found = []
    for name, text in [*written.items()][:MOST_OBJECTIVES]:
        if isinstance(name, str) and not name_fault(name):
            try:
                found.append(read_objective(name, text))
            except ValueError:
                continue
    return tuple(found)


def directions_of(known: Iterable[Objective]) -> dict[str, OptimizeMode]:
    """Returns ``maximize`` or ``minimize`` of each objective that has one, by its name."""
    return {one.name: one.mode for one in known if one.mode is not None}


def bounded_ones(known: Iterable[Objective]) -> tuple[Objective, ...]:
    """Returns the objectives that have a bound, in their order."""
    return tuple(one for one in known if one.bound is not None)


def written_objectives(own: object, arguments: object) -> tuple[Objective, ...]:
    """Reads the objectives of an experiment: its own, or else those among its tuner's arguments.

    Args:
        own: as its file has them.
        arguments: of the tuner, by name.
    """
    of_tuner = arguments.get("objectives") if isinstance(arguments, Mapping) else None
    return known_objectives(own) or known_objectives(of_tuner)


def name_fault(name: object) -> str:
    """Why this is no name of a number in a result; empty if it may be one."""
    if not isinstance(name, str) or not name:
        return "must be a name of a number in the result"
    if len(name) > _MOST_LETTERS:
        return f"has a name of more than {_MOST_LETTERS} letters"
    if not name.isprintable() or '"' in name or "\\" in name:
        return "has a name with quotes, backslashes or characters that cannot be shown"
    return ""


def number_of(value: Any, name: str) -> float | None:
    """The number that a result has under a name, NaN and infinity included; None: there is none."""
    number = value if name == "default" else None
    if isinstance(value, Mapping):
        number = value.get(name)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _number(text: str, whole: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"is {whole!r}, and {text!r} is no number that could bound it")
    return number


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)

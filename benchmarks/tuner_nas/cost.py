"""What a training costs, in core-seconds that are the same on every machine.

A step of a small network costs what it costs to call its layers, and beyond that its
multiplications. The coefficients were fitted once to measured CPU time; the study measures its
trials and tells how well they hold where it runs. What a search may spend is counted by them.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.tuner_nas.task import BATCH

STEP_S, LAYER_S, MULTIPLICATION_S = 29e-6, 15.4e-6, 21e-12
JUDGED = 1800  # pictures of the validation set


@dataclass(frozen=True)
class Size:
    """How many layers a picture goes through, and how many multiplications it takes."""

    layers: float
    multiplications: float


def trained(steps: int, size: Size) -> float:
    """Core-seconds of so many steps: of a step's multiplications two thirds go back."""
    multiplied = MULTIPLICATION_S * 3 * BATCH * size.multiplications
    return steps * (STEP_S + LAYER_S * size.layers + multiplied)


def judged(size: Size) -> float:
    """Core-seconds of a look at the validation set."""
    return LAYER_S * size.layers + MULTIPLICATION_S * JUDGED * size.multiplications

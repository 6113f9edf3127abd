"""The trial of an architecture search: a chain of blocks gets one lesson more.

Pictures, chains, rate and space are those of ``benchmarks.tuner_nas`` (decision 0037), and so is
the length of a lesson, that of a trial with inheritance there. A lesson begins at the full rate and
ends at rest, so that a network may be judged after each, whether it was inherited or goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.races import clock
from benchmarks.tuner_nas import chains, task

WORKERS = 2
STEPS, RATE = 1000, 0.1

#: Of a network that is trained from scratch, at most: the longest that random search has there.
LESSONS = 16

#: The validation accuracy that is raced for: in that study evolution came to 0.657 in the mean of
#: five seeds, and random search to 0.637 on its best one.
TARGET = 0.65

#: In NNI's form, of which it has ``choice`` and ``randint`` only.
SPACE: dict[str, dict[str, Any]] = chains.space()


def lesson(
    parameters: Mapping[str, Any], weights: task.Weights | None, *numbers: int
) -> tuple[task.Weights, float]:
    """Train a network on, and judge it.

    Args:
        parameters: ``blocks``, or what the space names.
        weights: what is gone on with, which change in place; None: begin anew.
        numbers: of the trial and the lesson, so that each has a noise of its own.
    """
    clock.trial_begins()
    blocks = chains.blocks_of(parameters)
    dice = np.random.default_rng([clock.seed(), *numbers])
    if weights is None:
        weights = chains.fresh(blocks, dice)
    network = chains.through(weights, blocks)
    task.fit(weights, network, STEPS, RATE, dice, task.FEW)
    return weights, task.share_right(network, "validation", task.FEW)

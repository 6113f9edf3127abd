"""Tuners that inherit, beside random search with as many core-seconds, on scikit-learn's digits.

``searching`` leads a tuner through a *task* (trials with a cost and an outcome) until its budget is
spent, ``baseline`` finds random search's best length of a trial, ``verdict`` compares the two seed
by seed, ``page`` and ``picture`` write what was found into the documentation. A study, such as
``hyperparameters``, is a task, a search space and the tuners with their arguments.
"""

from __future__ import annotations

from benchmarks.rows import Row


def run(*, quick: bool = False) -> list[Row]:
    """The rows of the section; ``quick`` takes a fraction of the budget, and gives no verdict."""
    # Only now: races import networks of this package where there is little more than numpy.
    from benchmarks.tuner_digits import hyperparameters

    return hyperparameters.run(quick=quick)

"""Tuners of architectures that inherit, beside random search with as many core-seconds, on digits.

``task`` has the pictures and how a network is trained on them, ``chains`` and ``paths`` two spaces
of networks, ``cost`` what a training costs. ``growing``, ``fronts`` and ``one_shot`` are the
trials, ``contestants`` the searches, ``study`` runs them all and reports. What a search, a fair
baseline and a verdict are is in ``benchmarks.tuner_digits``.
"""

from __future__ import annotations

from benchmarks.rows import Row


def run(*, quick: bool = False) -> list[Row]:
    """The rows of the section; ``quick`` takes a fraction of the budget, and gives no verdict."""
    # Only now: races import networks of this package where there is little more than numpy.
    from benchmarks.tuner_nas import study

    return study.run(quick=quick)

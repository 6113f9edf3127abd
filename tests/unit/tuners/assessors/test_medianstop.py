"""The rule against an example worked out by hand."""

from __future__ import annotations

import pytest

from tuners import TunerArgumentError
from tuners.builtin import make_assessor


def run(assessor, trial, values, success=True):
    """Steps after which the trial would be stopped."""
    bad = [
        step
        for step in range(1, len(values) + 1)
        if not assessor.assess_trial(trial, values[:step]).value
    ]
    assessor.trial_end(trial, success)
    return bad


def test_a_worked_example():
    assessor = make_assessor("Medianstop", {"optimize_mode": "maximize"})
    # Averages up to each step: 1, 1.5, 2 | 3, 3, 3 | 2, 3, 4.
    assert run(assessor, "a", [1, 2, 3]) == []
    assert run(assessor, "b", [3, 3, 3]) == []
    assert run(assessor, "c", [2, 4, 6]) == []  # medians then: 2 of (1, 3), 2.25, 2.5
    # Medians now: 2, 3, 3.
    assert run(assessor, "d", [2, 2.5, 3.5], success=False) == [2]
    assert run(assessor, "e", [1.9, 2.0, 3.0], success=False) == [1, 2]


def test_the_best_so_far_counts_and_not_the_last():
    assessor = make_assessor("Medianstop")
    run(assessor, "a", [2, 2, 2])
    assert run(assessor, "b", [3, 0, 0], success=False) == []


def test_smaller_may_be_better():
    assessor = make_assessor("Medianstop", {"optimize_mode": "minimize", "start_step": 2})
    run(assessor, "a", [1.0, 0.5])
    assert run(assessor, "b", [9.0, 0.8], success=False) == [2]
    assert run(assessor, "c", [9.0, 0.7], success=False) == []


def test_what_failed_or_is_not_finite_is_compared_with_nobody():
    assessor = make_assessor("Medianstop")
    run(assessor, "a", [9.0], success=False)
    run(assessor, "b", [float("nan")])
    assert run(assessor, "c", [1.0]) == []
    assert run(assessor, "d", [float("nan")]) == [1]
    assert run(assessor, "e", [{"default": 0.5}]) == [1]


def test_so_many_end_well_before_any_is_stopped():
    """Mutations: those that failed count; it begins one too late."""
    assessor = make_assessor("Medianstop", {"min_trials": 2})
    run(assessor, "a", [2, 2])
    run(assessor, "b", [2, 2], success=False)
    assert run(assessor, "c", [1, 1]) == []  # one to compare with; itself the second
    assert run(assessor, "d", [1, 1], success=False) == [1, 2]


@pytest.mark.parametrize(
    "arguments", [{"start_steps": 1}, {"start_step": -1}, {"min_trials": -1}, {"optimize_mode": 1}]
)
def test_arguments_are_checked(arguments):
    with pytest.raises(TunerArgumentError):
        make_assessor("medianstop", arguments)

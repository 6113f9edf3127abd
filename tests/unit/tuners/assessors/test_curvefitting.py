"""Curves that are known are continued, and trials stopped that will not come near the best."""

from __future__ import annotations

import math

import pytest

from tests.unit.tuners.assessors.test_medianstop import run
from tuners import TunerArgumentError
from tuners.assessors.curves import predict
from tuners.builtin import make_assessor

CURVES = {
    "pow3": lambda x: 0.9 - 0.6 * x**-0.6,
    "exp4": lambda x: 0.8 - 0.7 * math.exp(-((0.15 * x) ** 1.2)),
    "ilog2": lambda x: 0.95 - 0.4 / math.log(x + 1),
    "pow4": lambda x: 0.9 - 0.9 * (x + 3) ** -0.8,
    "MMF": lambda x: 0.85 - 0.8 / (1 + (0.3 * x) ** 1.4),
}


@pytest.mark.parametrize("name", CURVES)
def test_a_curve_of_the_paper_is_continued(name):
    curve = CURVES[name]
    seen = [curve(x) for x in range(1, 11)]
    ahead = predict(seen, 40)
    assert ahead == pytest.approx(curve(40), abs=0.02)
    noisy = [y + 0.004 * (-1) ** n for n, y in enumerate(seen)]
    assert predict(noisy, 40) == pytest.approx(curve(40), abs=0.06)


def test_a_curve_that_falls_or_is_too_short_foretells_nothing():
    assert predict([3.0, 2.0, 1.0, 0.5], 10) is None
    assert predict([1.0, 2.0, 3.0], 10) is None
    assert predict([2.0] * 5, 10) == 2.0


def rising(limit, count=20):
    return [limit * (1 - x**-0.7) for x in range(2, count + 2)]


def test_what_will_not_come_near_the_best_is_stopped():
    assessor = make_assessor("Curvefitting", {"epoch_num": 20, "start_step": 6})
    assert run(assessor, "first", rising(0.5)) == []
    assert run(assessor, "best", rising(0.9)) == []
    assert run(assessor, "near", rising(0.9)) == []
    assert run(assessor, "far", rising(0.6), success=False) == list(range(6, 20))


def test_a_gap_spares_judgements_and_losses_fall():
    assessor = make_assessor(
        "Curvefitting",
        {"epoch_num": 20, "start_step": 5, "gap": 4, "optimize_mode": "minimize"},
    )
    assert run(assessor, "best", [1.1 - y for y in rising(0.9)]) == []
    assert run(assessor, "far", [1.1 - y for y in rising(0.5)], success=False) == [5, 9, 13, 17]
    assert run(assessor, "nan", [float("nan")] * 19, success=False) == []


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"epoch_num": 5}, "not below epoch_num"),
        ({"threshold": 1.5}, "threshold is a number"),
        ({"treshold": 0.5}, "Did you mean 'threshold'"),
        ({"gap": 0}, "gap is an integer"),
    ],
)
def test_arguments_are_checked(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        make_assessor("Curvefitting", arguments)

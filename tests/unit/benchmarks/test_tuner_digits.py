"""Inheriting tuners against random search: four of five seeds, by what each search saw."""

import numpy as np

from benchmarks.tuner_digits.network import fresh, softmax
from benchmarks.tuner_digits.searching import Better, Found
from benchmarks.tuner_digits.verdict import judged


def found(*valid):
    return [Found((Better(1.0, one, one - 0.1),)) for one in valid]


def test_four_of_five_seeds_are_enough_and_three_are_not():
    baseline = found(0.5, 0.5, 0.5, 0.5, 0.5)

    four = judged("PBT", found(0.6, 0.6, 0.6, 0.6, 0.4), baseline)
    three = judged("PBT", found(0.6, 0.6, 0.6, 0.4, 0.4), baseline)

    assert (four["ok"], three["ok"]) == (True, False)
    assert four["measured"] == "better on 4 of 5"


def test_even_is_not_better():
    assert judged("PBT", found(*[0.5] * 5), found(*[0.5] * 5))["measured"] == "better on 0 of 5"


def test_the_test_accuracy_is_told_beside_it():
    one = judged("PBT", [Found((Better(1.0, 0.9, 0.1),))], [Found((Better(1.0, 0.8, 0.2),))])

    assert "in test on 0" in one["detail"]


def test_shares_add_up_to_one():
    assert np.allclose(softmax(np.array([[1.0, 2.0], [500.0, -500.0]])).sum(1), 1.0)


def test_a_network_begins_at_rest():
    assert not fresh(np.random.default_rng(1))[1].any()

"""Aging evolution with several objectives: who is bred from, and what the archive keeps."""

from __future__ import annotations

import json

import pytest

from tuners import RegularizedEvolutionTuner, TunerArgumentError
from tuners.testing import with_gate

SPACE = {"width": {"_type": "randint", "_value": [1, 101]}}
OBJECTIVES = {"default": "maximize", "size": "minimize"}


def evolution(**arguments):
    arguments = {"population_size": 6, "sample_size": 2, "objectives": OBJECTIVES, **arguments}
    tuner = with_gate(RegularizedEvolutionTuner(**arguments))
    tuner.update_search_space(SPACE)
    return tuner


def feed(tuner, values, first=0):
    for n, (accuracy, size) in enumerate(values, first):
        parameters = tuner.generate_parameters(n)
        tuner.receive_trial_result(n, parameters, {"default": accuracy, "size": size})
        tuner.trial_end(n, True)


def archived(tuner):
    return [member["parameter_id"] for _, member in tuner.archive.members()]


def test_the_front_comes_first_then_the_lonely_one():
    # 5 is dominated by all; of the front 0 to 4 the ends are loneliest, then 3, 2 and 1.
    tuner = evolution(sample_size=6)
    feed(tuner, [(0.0, 0.0), (0.1, 1.0), (0.2, 2.5), (0.5, 6.0), (0.9, 10.0), (0.0, 99.0)])
    order = ["trials/0", "trials/4", "trials/3", "trials/2", "trials/1", "trials/5"]
    picks = [tuner.generate_parameters(n)["restore_path"] for n in range(6, 206)]
    counts = [picks.count(path) for path in order]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 100  # of six draws with replacement 0 is among them in two of three cases
    assert counts[5] < 3


def test_the_archive_outlives_the_population():
    tuner = evolution()
    feed(tuner, [(0.9, 5.0), (0.5, 1.0), (0.4, 2.0)] + [(0.1, 50.0)] * 12)
    assert archived(tuner) == [0, 1]
    assert all(one["parameter_id"] > 2 for one in tuner.state()["population"])
    feed(tuner, [(0.95, 4.0)], first=15)
    assert archived(tuner) == [15, 1]


def test_a_restored_tuner_has_the_same_archive_and_goes_on_the_same():
    one, other = evolution(), evolution(seed=9)
    feed(one, [(n / 10, float(n * n)) for n in range(8)])
    other.restore(json.loads(json.dumps(one.state())))
    assert archived(other) == archived(one)
    assert [one.generate_parameters(n) for n in range(8, 20)] == [
        other.generate_parameters(n) for n in range(8, 20)
    ]


def test_a_state_from_before_there_was_an_archive_is_read():
    one, other = evolution(objectives=None), evolution(objectives=None)
    feed(one, [(n / 10, 1.0) for n in range(8)])
    old = json.loads(json.dumps(one.state()))
    del old["archive"]
    for individual in old["population"]:
        del individual["point"]
    other.restore(old)
    assert one.generate_parameters(8) == other.generate_parameters(8)


def test_results_that_are_not_finite_or_not_there():
    tuner = evolution()
    feed(tuner, [(float("nan"), 1.0), (0.5, float("inf"))])
    assert tuner.state()["population"] == []
    assert not archived(tuner)
    with pytest.raises(ValueError, match="'size'"):
        tuner.receive_trial_result(2, {}, {"default": 0.5})


def test_objectives_are_checked():
    with pytest.raises(TunerArgumentError, match="maximize"):
        evolution(objectives={"default": "up"})

"""Search spaces in Optuna's terms and back."""

from __future__ import annotations

import math
from statistics import fmean

import numpy as np
import optuna
import pytest

from tuners import SpaceError, make_builtin
from tuners.optuna import mapping
from tuners.space import parse, sample

ALL = {
    "choice": {"_type": "choice", "_value": ["a", 2, None, True]},
    "alike": {"_type": "choice", "_value": [1, True, 1.0]},
    "lists": {"_type": "choice", "_value": [[1, 2], {"x": 1}, "x"]},
    "nested": {
        "_type": "choice",
        "_value": [
            {"_name": "one", "k": {"_type": "choice", "_value": [{"_name": "deep"}, 3]}},
            {"_name": "two", "k": {"_type": "uniform", "_value": [0, 1]}},
            "plain",
        ],
    },
    "randint": {"_type": "randint", "_value": [-3, 4]},
    "uniform": {"_type": "uniform", "_value": [-1, 1]},
    "quniform": {"_type": "quniform", "_value": [0, 10, 2.5]},
    "crooked": {"_type": "quniform", "_value": [1, 10, 4]},
    "loguniform": {"_type": "loguniform", "_value": [1e-3, 1]},
    "qloguniform": {"_type": "qloguniform", "_value": [1, 100, 5]},
    "normal": {"_type": "normal", "_value": [10, 2]},
    "qnormal": {"_type": "qnormal", "_value": [0, 3, 0.5]},
    "lognormal": {"_type": "lognormal", "_value": [0, 1]},
    "qlognormal": {"_type": "qlognormal", "_value": [1, 1, 0.25]},
}


@pytest.fixture
def suggested():
    tuner = make_builtin("Optuna", {"sampler": "Random", "seed": 3})
    assert not tuner.handles(ALL)
    tuner.update_search_space(ALL)
    return [tuner.generate_parameters(number) for number in range(400)]


def test_every_type_gives_what_our_own_sampling_gives(suggested):
    rng = np.random.default_rng(0)
    space = parse(ALL)
    ours = [sample(space, rng) for _ in range(400)]
    for name in ALL:
        kinds = {str(one[name]) for one in ours}
        theirs = {str(one[name]) for one in suggested}
        if len(kinds) < 12:  # a few values: the same ones, of the same types
            assert theirs == kinds, name
        else:
            assert {type(one[name]) for one in suggested} <= {float, dict, str}


def test_normal_numbers_are_normal(suggested):
    numbers = [one["normal"] for one in suggested]
    assert abs(fmean(numbers) - 10) < 0.5
    assert 0.25 < sum(abs(number - 10) > 2 for number in numbers) / len(numbers) < 0.4
    logs = [math.log(one["lognormal"]) for one in suggested]
    assert abs(fmean(logs)) < 0.25
    assert all(one["qnormal"] % 0.5 == 0 for one in suggested)


def test_what_was_suggested_can_be_told_from_the_parameters(suggested):
    axes = mapping.axes_of(parse(ALL))
    for parameters in suggested[:100]:
        for name, (axis, value) in mapping.to_optuna(axes, parameters).items():
            held = mapping.distribution(axis, optuna.distributions)
            assert held._contains(held.to_internal_repr(value)), (name, value)


def test_two_parameters_with_one_name_are_refused():
    space = {
        "a/b/c": {"_type": "uniform", "_value": [0, 1]},
        "a": {
            "_type": "choice",
            "_value": [{"_name": "b", "c": {"_type": "uniform", "_value": [0, 1]}}],
        },
    }
    with pytest.raises(SpaceError, match="another parameter is called 'a/b/c'"):
        mapping.axes_of(parse(space))
    assert "a/b/c" in make_builtin("TPE").handles(space)


CHOICES = {"a": {"_type": "choice", "_value": [1, 2]}, "b": {"_type": "uniform", "_value": [0, 1]}}

BELOW = {"kind": {"_type": "choice", "_value": [{"_name": "one", "n": "int(0, 20000000)"}]}}


@pytest.mark.parametrize(
    "arguments, space, words",
    [
        ({"sampler": "CmaEs"}, CHOICES, "needs two numbers or more"),
        ({"sampler": "BruteForce"}, CHOICES, "'b' is none"),
        ({"sampler": "TPE"}, {}, "is empty"),
        ({"sampler": "TPE"}, {"n": f"int({2**60}, {2**60 + 5})"}, "n has integers as large as"),
        ({"sampler": "GP"}, {"n": f"int(1, {10**7 + 1})"}, "values of n, and there are 10,000,001"),
        ({"sampler": "GP"}, {"n": "quniform(0, 2e7, 1)"}, "values of n, and there are 20,000,001"),
        ({"sampler": "GP"}, BELOW, "values of kind/one/n, and there are 20,000,001"),
    ],
)
def test_a_space_that_a_sampler_cannot_search_is_named(arguments, space, words):
    assert words in make_builtin("Optuna", arguments).handles(space)


def test_a_gaussian_process_counts_steps():
    """Mutation: what lies between two steps is counted, too."""
    space = {"n": f"int(0, {2**40}, {2**20})", "m": f"int(1, {10**7})", "x": "uniform(0, 1e9)"}
    assert not make_builtin("GP").handles(space)


def test_integers_of_a_wide_range_may_be_large():
    """A seed of 62 bits, say: Optuna draws one in hundreds, which is as good."""
    space = {"seed": f"int(0, {2**62})", "n": f"int({2**52}, {2**52 + 5})"}
    assert not make_builtin("TPE").handles(space)


def test_a_sampler_that_enumerates_comes_to_an_end():
    from tuners import NoMoreTrialError

    tuner = make_builtin("Optuna", {"sampler": "BruteForceSampler"})
    tuner.update_search_space({"a": CHOICES["a"], "n": {"_type": "randint", "_value": [0, 3]}})
    seen = []
    for number in range(6):
        seen.append(tuner.generate_parameters(number))
        tuner.receive_trial_result(number, seen[-1], 1.0)
        tuner.trial_end(number, True)
    with pytest.raises(NoMoreTrialError):
        tuner.generate_parameters(6)
    assert sorted((one["a"], one["n"]) for one in seen) == [
        (a, n) for a in (1, 2) for n in (0, 1, 2)
    ]


GRIDS = [
    (1, 2**55, 3),
    (-(2**60), 2**60, 7),
    (1, 2**55 - 1, 1),
    (1, 2**62, 2**50),
    (1, 2**54, 1000),
]


@pytest.mark.parametrize("sampler", ["TPE", "Random", "CmaEs", "QMC", "NSGAII"])
@pytest.mark.parametrize("low, high, step", GRIDS)
def test_large_integers_keep_to_their_steps(low, high, step, sampler):
    """Mutation: they are those that floating-point numbers can name."""
    space = {"n": f"int({low}, {high}, {step})", "m": f"int({low}, {high}, {step})"}
    tuner = make_builtin("Optuna", {"sampler": sampler, "seed": 1})
    assert not tuner.handles(space)
    tuner.update_search_space(space)
    for number in range(40):
        proposed = tuner.generate_parameters(number)
        for one in proposed.values():
            assert type(one) is int
            assert low <= one <= high
            assert (one - low) % step == 0
        tuner.receive_trial_result(number, proposed, -float(abs(proposed["n"])))
        tuner.trial_end(number, True)


@pytest.mark.parametrize("low, high, step", GRIDS)
def test_large_integers_of_others_are_shown(low, high, step):
    """The first and the last one, too. Mutation: Optuna finds them between two steps."""
    space = {"n": f"int({low}, {high}, {step})"}
    tuner = make_builtin("TPE", {"seed": 1})
    tuner.update_search_space(space)
    drawn = [sample(parse(space), np.random.default_rng(seed)) for seed in range(20)]
    ends = [{"n": low}, {"n": low + (high - low) // step * step}]
    rows = [{"parameter": one, "value": 1.0} for one in (*drawn, *ends)]
    assert tuner.import_data(rows) is None
    assert len(tuner.study.trials) == 22
    between = [{"n": low + 1}] if step > 1 else [{"n": low + 0.5}]
    assert tuner.import_data([{"parameter": one, "value": 1.0} for one in between])

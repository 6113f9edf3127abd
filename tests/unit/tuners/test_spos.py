"""Single path one-shot against its paper, and under what a run does to it."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from tests.unit.tuners import one_by_one
from tests.unit.tuners.one_by_one import finish
from tuners import NoMoreTrialError, ParentFailed, SPOSTuner, TunerArgumentError
from tuners.testing import OpenGate, RefusingGate, ScriptedGate, with_gate

OPTIONS = ["conv3", "conv5", "skip"]
NAMES = ["a", "b", "c", "d"]
SPACE = {name: {"_type": "choice", "_value": OPTIONS} for name in NAMES}
#: What a path is worth: each block has one best option.
WORTH = {"conv3": 0.0, "conv5": 1.0, "skip": 0.4}


def best_of(tuner, generation):
    return dict(tuner.state()["best"])[generation]


def spos(gate=None, **arguments):
    arguments = {"population_size": 8, "generations": 5, "top": 3, "seed": 7, **arguments}
    tuner = with_gate(SPOSTuner(**arguments), gate)
    tuner.update_search_space(SPACE)
    return tuner


def worth(parameters):
    return sum((n + 1) * WORTH[parameters[name]] for n, name in enumerate(NAMES))


def run(tuner, numbers, value=lambda n, parameters: 0.0 if n == 0 else worth(parameters)):
    return one_by_one.run(tuner, numbers, value)


def path(parameters):
    return tuple(OPTIONS.index(parameters[name]) for name in NAMES)


def algorithm_1(seed, size, iterations, k, admits=lambda path: True):
    """Algorithm 1 of Guo et al. (2020), line by line, with our random streams."""

    def one_of(top, rng):
        return top[int(rng.integers(len(top)))]

    def initialize_or_fill(population, rng):
        while len(population) < size:
            new = tuple(int(rng.integers(3)) for _ in NAMES)
            if new not in population and new not in top and admits(new):
                population.append(new)
        return population

    def crossover(top, count, rng):
        children = []
        while len(children) < count:
            one, other = one_of(top, rng), one_of(top, rng)
            coins = rng.random(4) < 0.5
            child = tuple(a if coin else b for a, b, coin in zip(one, other, coins, strict=True))
            tries[0] += 1
            if child not in children and child not in top and admits(child):
                children.append(child)
            if tries[0] == 200 * count:
                break
        return children

    def mutation(children, top, rng):
        tries = 0
        wanted = size - len(children)
        while len(children) < size and tries < 200 * wanted:
            one = one_of(top, rng)
            coins = rng.random(4) < 0.1
            fresh = [int(rng.integers(3)) for _ in NAMES]
            child = tuple(f if coin else a for a, f, coin in zip(one, fresh, coins, strict=True))
            tries += 1
            if child not in children and child not in top and admits(child):
                children.append(child)
        return children

    def accuracy(path):
        return sum((n + 1) * WORTH[OPTIONS[at]] for n, at in enumerate(path))

    top, history = [], []
    for i in range(iterations):
        rng = np.random.default_rng([seed, 1 + i * size, crc("generation")])
        tries = [0]
        bred = mutation(crossover(top, size // 2, rng), top, rng) if top else []
        population = initialize_or_fill(bred, rng)
        history += population
        top = sorted([*top, *population], key=lambda path: -accuracy(path))[:k]
    return history


def crc(word):
    import zlib

    return zlib.crc32(word.encode())


def test_it_is_algorithm_1_of_the_paper():
    history = run(spos(), range(41))
    assert [path(history[n]) for n in range(1, 41)] == algorithm_1(7, 8, 5, 3)


def test_a_worked_example_of_one_generation():
    # Two blocks are settled among the best: crossover cannot change them, mutation may.
    tuner = spos(population_size=4, top=2, mutation_probability=1e-9)
    ones = [("conv3", "skip", "conv3", "conv5"), ("skip", "conv3", "conv3", "conv5"),
            ("skip", "skip", "skip", "skip"), ("conv5", "conv5", "conv5", "conv5")]  # fmt: skip
    run(tuner, [0])
    for n, (one, value) in enumerate(zip(ones, [0.9, 0.8, 0.7, 0.1], strict=True), 1):
        tuner.generate_parameters(n)
        finish(tuner, n, dict(zip(NAMES, one, strict=True)), value)
    bred = [tuner.generate_parameters(n) for n in range(5, 9)]
    crossed = {tuple(one[name] for name in NAMES) for one in bred[:2]}
    # Of the two best (k = 2) only these two are new; each block is from one of the two.
    assert crossed == {("conv3", "conv3", "conv3", "conv5"), ("skip", "skip", "conv3", "conv5")}
    assert [one["restore_path"] for one in bred] == ["trials/0"] * 4


def test_the_best_of_all_generations_are_bred_from_however_old():
    tuner = spos(population_size=2, top=2, generations=3)
    run(tuner, [0])
    values = iter([0.9, 0.5, 0.6, 0.1])
    history = run(tuner, range(1, 5), lambda n, _: next(values))
    tuner.generate_parameters(5)
    best = [tuple(own.values()) for own, _ in best_of(tuner, 2)]
    assert best == [tuple(history[n][name] for name in NAMES) for n in (1, 3)]


def test_the_supernet_trains_and_paths_only_restore():
    tuner = spos(supernet={"lr": 0.1, "epochs": 30})
    history = run(tuner, range(41))
    assert history[0] == {
        "supernet": {"lr": 0.1, "epochs": 30},
        "choices": dict.fromkeys(NAMES, OPTIONS),
        "save_path": "trials/0",
    }
    for n in range(1, 41):
        assert set(history[n]) == {*NAMES, "restore_path"}
        assert history[n]["restore_path"] == "trials/0"
    with pytest.raises(NoMoreTrialError, match="all 5 generations"):
        tuner.generate_parameters(41)
    found = [worth(history[n]) for n in range(1, 41)]
    assert max(found) == sum(range(1, 5))  # conv5 everywhere
    assert np.mean(found[32:]) > np.mean(found[:8])


def test_paths_wait_for_the_supernet_and_generations_for_one_another():
    gate = ScriptedGate()
    tuner = spos(gate, population_size=2)
    supernet = tuner.generate_parameters(0)
    answers = {}

    def ask(n):
        answers[n] = tuner.generate_parameters(n)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(1, 5)]
    [thread.start() for thread in threads]
    gate.until_blocked(0, threads=4)
    assert not answers
    finish(tuner, 0, supernet, 0.3)
    gate.open(0)
    [thread.join(120) for thread in threads[:2]]
    assert set(answers) == {1, 2}
    for n in (2, 1):
        finish(tuner, n, answers[n], float(n))
        gate.open(n)
    [thread.join(120) for thread in threads]
    assert set(answers) == {1, 2, 3, 4}


def test_a_constraint_holds_for_every_path():
    costs = {name: [10, 30, 0] for name in NAMES}
    tuner = spos(costs=costs, max_cost=60)
    history = run(tuner, range(41))
    spent = [tuner.cost(history[n]) for n in range(1, 41)]
    assert max(spent) <= 60
    assert spent[0] == sum(costs[name][OPTIONS.index(history[1][name])] for name in NAMES)
    assert max(worth(history[n]) for n in range(1, 41)) == 4 + 3 + 2 * 0.4 + 0.4
    assert [path(history[n]) for n in range(1, 41)] == algorithm_1(
        7, 8, 5, 3, lambda one: sum([10, 30, 0][at] for at in one) <= 60
    )


def test_a_constraint_of_ones_own_and_one_that_admits_nothing():
    class Shallow(SPOSTuner):
        def admits(self, parameters):
            return sum(parameters[name] != "skip" for name in NAMES) <= self.most

    tuner = with_gate(Shallow(population_size=8, seed=1))
    tuner.update_search_space(SPACE)
    tuner.most = 2
    history = run(tuner, range(17))
    assert all([*history[n].values()].count("skip") >= 2 for n in range(1, 17))
    tuner.most = -1
    with pytest.raises(TunerArgumentError, match="admits none of the paths"):
        tuner.generate_parameters(17)


def test_what_failed_is_not_bred_from_and_a_space_of_few_paths_repeats_them():
    gate = OpenGate(failed={2})
    tuner = spos(gate, population_size=4, top=4)
    tuner.update_search_space({"a": SPACE["a"]})
    history = run(tuner, [0, 1], lambda n, _: 0.5)
    history[2] = tuner.generate_parameters(2)
    tuner.trial_end(2, False)
    history |= run(tuner, [3], lambda n, _: float("nan"))
    history |= run(tuner, [4], lambda n, _: 1.0)
    assert {history[n]["a"] for n in range(1, 5)} == set(OPTIONS)
    tuner.generate_parameters(5)
    assert all(own["a"] != history[2]["a"] for own, _ in best_of(tuner, 1))


def test_a_supernet_that_failed_is_trained_again_and_then_given_up():
    tuner = spos(OpenGate(failed={0}))
    tuner.generate_parameters(0)
    tuner.trial_end(0, False)
    second = tuner.generate_parameters(1)
    assert "supernet" in second
    finish(tuner, 1, second, 0.1)
    paths = [tuner.generate_parameters(n) for n in range(2, 10)]
    assert {one["restore_path"] for one in paths} == {"trials/1"}
    hopeless = spos(OpenGate(failed={0, 1}))
    for n in (0, 1):
        hopeless.generate_parameters(n)
        hopeless.trial_end(n, False)
    with pytest.raises(ParentFailed, match="the last of 2 that were to train the supernet"):
        hopeless.generate_parameters(2)


def test_a_trial_that_a_user_proposed_is_neither_supernet_nor_path():
    tuner = spos(population_size=2)
    tuner.receive_trial_result(0, {"x": 1}, 99.0, customized=True)
    tuner.trial_end(0, True)
    first = tuner.generate_parameters(1)
    assert "supernet" in first
    finish(tuner, 1, first, 0.0)
    assert tuner.generate_parameters(2)["restore_path"] == "trials/1"
    tuner.receive_trial_result(3, dict.fromkeys(NAMES, "conv5"), 99.0, customized=True)
    tuner.generate_parameters(4)
    assert best_of(tuner, 1) == []


def test_without_threads_it_asks_to_be_asked_again():
    tuner = spos(RefusingGate(), population_size=2)
    supernet = tuner.generate_parameters(0)
    with pytest.raises(NoMoreTrialError, match="trial 0 has not ended"):
        tuner.generate_parameters(1)
    finish(tuner, 0, supernet, 1.0)
    run(tuner, [1])
    second = tuner.generate_parameters(2)
    with pytest.raises(NoMoreTrialError, match="trial 2 has not ended"):
        tuner.generate_parameters(3)
    finish(tuner, 2, second, 1.0)
    assert tuner.generate_parameters(3)["restore_path"] == "trials/0"


@pytest.mark.parametrize("stop", [0, 1, 5, 9, 14])
def test_restored_in_the_middle_it_goes_on_as_if_never_stopped(stop):
    one, other = spos(), spos(seed=99)
    run(one, range(stop))
    other.restore(json.loads(json.dumps(one.state())))
    assert run(other, range(stop, 41)) == run(one, range(stop, 41))


def test_one_seed_gives_one_search_whatever_finishes_first():
    def search(reverse):
        tuner = spos()
        found = run(tuner, [0])
        for first in range(1, 33, 8):
            those = {n: tuner.generate_parameters(n) for n in range(first, first + 8)}
            found |= those
            for n in sorted(those, reverse=reverse):
                finish(tuner, n, those[n], worth(those[n]))
        return found

    assert search(reverse=False) == search(reverse=True)


def test_five_thousand_trials_leave_no_trace_but_the_last_generations():
    tuner = spos(generations=1000)
    tuner.update_search_space({f"b{n}": {"_type": "randint", "_value": [0, 9]} for n in range(9)})
    value = np.random.default_rng(0).random(5001)
    run(tuner, range(400), lambda n, _: value[n])
    early = len(json.dumps(tuner.state()))
    run(tuner, range(400, 5000), lambda n, _: value[n])
    assert len(json.dumps(tuner.state())) < early * 1.2


NESTED = {"_type": "choice", "_value": [{"_name": "x"}, {"_name": "y"}]}


@pytest.mark.parametrize(
    "arguments, space, words",
    [
        ({}, {"lr": {"_type": "uniform", "_value": [0, 1]}}, "what the supernet trains by"),
        ({}, {"a": NESTED}, "'a' is a nested choice"),
        ({}, {}, "is empty"),
        ({}, {"choices": SPACE["a"]}, "'choices' is one that the tuner itself adds"),
        ({"costs": {"z": [1]}}, SPACE, "the costs name 'z'"),
        ({"costs": {"a": [1, 2]}}, SPACE, "'a' has 3 options and 2 costs"),
        ({"costs": {"a": [5, 7, 9]}, "max_cost": 4}, SPACE, "the cheapest path costs 5"),
    ],
)
def test_spaces_that_hold_no_paths(arguments, space, words):
    assert words in spos(**arguments).handles(space)
    assert spos().handles(SPACE) == ""


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"population_size": 0}, "population_size is an integer from 1 up"),
        ({"generations": 1.5}, "generations"),
        ({"top": 0}, "top"),
        ({"crossover_share": 1.1}, "crossover_share"),
        ({"mutation_probability": 0}, "mutation_probability"),
        ({"supernet": [1]}, "supernet is an object"),
        ({"costs": [1]}, "costs maps"),
        ({"costs": {"a": [1, -1, 0]}}, "the costs of 'a'"),
        ({"max_cost": 3}, "there are none"),
        ({"costs": {"a": [1]}, "max_cost": 0}, "max_cost"),
        ({"supernet_tries": 0}, "supernet_tries"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        spos(**arguments)

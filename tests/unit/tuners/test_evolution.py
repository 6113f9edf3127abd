"""Aging evolution against its paper, and under what a run does to it."""

from __future__ import annotations

import json
import threading
from collections import deque

import numpy as np
import pytest

from tests.unit.tuners import one_by_one
from tests.unit.tuners.one_by_one import finish
from tuners import (
    NoMoreTrialError,
    RegularizedEvolutionTuner,
    TunerArgumentError,
    WaitCancelled,
)
from tuners import space as spaces
from tuners.testing import OpenGate, RefusingGate, ScriptedGate, Search, with_gate

SPACE = {
    "depth": {"_type": "randint", "_value": [1, 9]},
    "width": {"_type": "choice", "_value": [8, 16, 32]},
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
}


def population(tuner):
    return [one["parameter_id"] for one in tuner.state()["population"]]


def evolution(gate=None, **arguments):
    arguments = {"population_size": 5, "sample_size": 2, "seed": 7, **arguments}
    tuner = with_gate(RegularizedEvolutionTuner(**arguments), gate)
    tuner.update_search_space(SPACE)
    return tuner


def fitness(parameters):
    return parameters["depth"] + parameters["width"] / 100 - abs(parameters["lr"] - 0.01)


def run(tuner, count, first=0):
    ended = one_by_one.run(
        tuner, range(first, first + count), lambda n, parameters: fitness(parameters)
    )
    return list(ended.values())


def changed(parent, child):
    return {key for key in SPACE if parent[key] != child[key]}


def algorithm_1(count, population_size, sample_size, seed):
    """Algorithm 1 of Real et al. (2019), written down line by line, with our random streams."""
    population, history = deque(), []
    for parameter_id in range(count):
        rng = np.random.default_rng([seed, parameter_id])
        if parameter_id < population_size:
            arch = spaces.sample(SPACE, rng)
        else:
            sample = [population[int(i)] for i in rng.integers(population_size, size=sample_size)]
            parent = max(sample, key=lambda model: model[1])
            arch = spaces.mutate(SPACE, parent[0], rng)
        model = (arch, fitness(arch))
        population.append(model)
        history.append(arch)
        if len(population) > population_size:
            population.popleft()
    return history


@pytest.mark.parametrize("asynchronous", [True, False])
def test_run_one_by_one_it_is_algorithm_1_of_the_paper(asynchronous):
    tuner = evolution(inherit=False, asynchronous=asynchronous)
    assert run(tuner, 60) == algorithm_1(60, 5, 2, seed=7)


def test_a_worked_example_the_oldest_dies_however_good():
    tuner = evolution(population_size=3, sample_size=3, inherit=False)
    for parameter_id, depth in enumerate([8, 1, 2]):
        tuner.generate_parameters(parameter_id)
        finish(tuner, parameter_id, {"depth": depth, "width": 8, "lr": 0.01}, depth)
    assert population(tuner) == [0, 1, 2]
    finish(tuner, 3, {"depth": 3, "width": 8, "lr": 0.01}, 3)
    assert population(tuner) == [1, 2, 3]  # 0 was the best of all
    children = [tuner.generate_parameters(parameter_id) for parameter_id in range(4, 40)]
    parents = {(3, 8, 0.01), (2, 8, 0.01), (1, 8, 0.01)}
    for child in children:
        assert any(len(changed(dict(zip(SPACE, p, strict=True)), child)) == 1 for p in parents)
    # Three draws with replacement of three: the fittest is among them in 19 of 27 cases.
    of_fittest = sum(child["depth"] == 3 or child["depth"] not in (1, 2) for child in children)
    assert of_fittest > 18


def test_a_child_inherits_from_the_parent_it_differs_from_in_one_place():
    gate = OpenGate()
    tuner = evolution(gate)
    history = run(tuner, 40)
    for parameter_id, parameters in enumerate(history):
        assert parameters["save_path"] == f"trials/{parameter_id}"
        if parameter_id < 5:
            assert "restore_path" not in parameters
        else:
            parent = int(parameters["restore_path"].removeprefix("trials/"))
            assert parent >= parameter_id - 5
            assert len(changed(history[parent], parameters)) == 1
            assert (parent,) in gate.waited


def test_minimize_prefers_the_smaller():
    tuner = evolution(optimize_mode="minimize", population_size=2, sample_size=2)
    for parameter_id, value in enumerate([{"default": 5.0, "time": 1}, 1.0]):
        finish(tuner, parameter_id, tuner.generate_parameters(parameter_id), value)
    picked = [tuner.generate_parameters(n)["restore_path"] for n in range(2, 42)]
    assert picked.count("trials/1") > 20  # three quarters expected


def test_a_request_waits_for_the_earliest_unfinished_founder():
    gate = ScriptedGate()
    tuner = evolution(gate, population_size=3, sample_size=2)
    founders = [tuner.generate_parameters(n) for n in range(3)]
    answer = []
    thread = threading.Thread(target=lambda: answer.append(tuner.generate_parameters(3)))
    thread.start()
    gate.until_blocked(0)
    assert not answer
    for n in (1, 0):  # 0 is waited for; two results are enough for a sample of two
        finish(tuner, n, founders[n], float(n))
        gate.open(n)
    thread.join(120)
    assert answer[0]["restore_path"] in ("trials/0", "trials/1")
    assert gate.waited[0] == (0,)


def test_the_lock_is_free_while_a_request_waits():
    gate = ScriptedGate()
    tuner = evolution(gate, population_size=1, sample_size=1)
    founder = tuner.generate_parameters(0)
    thread = threading.Thread(target=tuner.generate_parameters, args=(1,))
    thread.start()
    gate.until_blocked(0)
    assert tuner.lock.acquire(timeout=120)
    tuner.lock.release()
    finish(tuner, 0, founder, 1.0)
    gate.open(0)
    thread.join(120)
    assert not thread.is_alive()


def test_failed_founders_are_replaced_and_never_bred_from():
    tuner = evolution()
    for n in range(8):
        parameters = tuner.generate_parameters(n)
        assert "restore_path" not in parameters
        if n in (1, 4):
            tuner.trial_end(n, False)
        elif n == 2:
            finish(tuner, n, parameters, float("nan"))
        else:
            finish(tuner, n, parameters, 1.0)
    parents = {tuner.generate_parameters(n)["restore_path"] for n in range(8, 60)}
    assert parents == {f"trials/{n}" for n in (0, 3, 5, 6, 7)}


def test_all_failing_never_stalls():
    tuner = evolution(OpenGate(failed=set(range(100))))
    for n in range(100):
        assert "restore_path" not in tuner.generate_parameters(n)
        tuner.trial_end(n, False)


def test_proposals_that_never_became_trials_do_not_stall():
    # No trial_end ever comes for these; the gate says what became of them.
    tuner = evolution(OpenGate(failed=set(range(5))))
    assert ["restore_path" in tuner.generate_parameters(n) for n in range(12)] == [False] * 12


def test_a_parent_whose_weights_are_missing_leaves_the_population():
    tuner = evolution(OpenGate(failed={0, 1, 2}))
    run(tuner, 5)
    parents = {tuner.generate_parameters(n)["restore_path"] for n in range(5, 40)}
    assert parents == {"trials/3", "trials/4"}


def test_without_threads_it_asks_to_be_asked_again():
    tuner = evolution(RefusingGate(), population_size=2, sample_size=2)
    founders = [tuner.generate_parameters(n) for n in range(2)]
    with pytest.raises(NoMoreTrialError, match="multiThread is false"):
        tuner.generate_parameters(2)
    for n in range(2):
        finish(tuner, n, founders[n], 1.0)
    assert "restore_path" in tuner.generate_parameters(2)


def test_a_cancelled_wait_leaves_nothing_behind():
    gate = ScriptedGate()
    gate.cancel()
    tuner = evolution(gate, population_size=1, sample_size=1)
    tuner.generate_parameters(0)
    with pytest.raises(WaitCancelled):
        tuner.generate_parameters(1)
    assert [number for number, _ in tuner.state()["pending"]] == [0]


def test_asking_again_gives_the_same_answer():
    tuner = evolution()
    run(tuner, 10)
    assert tuner.generate_parameters(10) == tuner.generate_parameters(10)


def test_a_restored_tuner_goes_on_as_if_never_stopped():
    one, other = evolution(), evolution(seed=99)
    run(one, 13)
    other.restore(json.loads(json.dumps(one.state())))
    assert run(other, 20, first=13) == run(one, 20, first=13)


def test_serial_mode_is_the_same_search_whatever_finishes_first():
    def search(reverse):
        gate = ScriptedGate()
        tuner = evolution(gate, asynchronous=False, population_size=4)
        founders = {n: tuner.generate_parameters(n) for n in range(4)}
        for n in sorted(founders, reverse=reverse):
            finish(tuner, n, founders[n], fitness(founders[n]))
            gate.open(n)
        answers = []
        for n in range(4, 20):
            answers.append(tuner.generate_parameters(n))
            finish(tuner, n, answers[-1], fitness(answers[-1]))
            gate.open(n)
        return answers

    assert search(reverse=False) == search(reverse=True)


def test_serial_mode_counts_those_who_still_wait_for_their_own_parents():
    gate, answers, threads = ScriptedGate(), {}, {}
    tuner = evolution(gate, asynchronous=False, population_size=1, sample_size=1)
    founder = tuner.generate_parameters(0)
    for n in (1, 2):
        threads[n] = threading.Thread(
            target=lambda n=n: answers.update({n: tuner.generate_parameters(n)})
        )
        threads[n].start()
        gate.until_blocked(0, threads=n)
    finish(tuner, 0, founder, 1.0)
    gate.open(0)
    threads[1].join(120)
    finish(tuner, 1, answers[1], 2.0)
    gate.open(1)
    threads[2].join(120)
    assert answers[1]["restore_path"] == "trials/0"
    assert answers[2]["restore_path"] == "trials/1"


def test_imported_results_are_parents_without_weights():
    tuner = evolution(population_size=2, sample_size=2)
    tuner.import_data(
        [{"parameter": {"depth": d, "width": 8, "lr": 0.01}, "value": d} for d in (3, 4)]
    )
    child = tuner.generate_parameters(0)
    assert "restore_path" not in child
    assert min(len(changed({"depth": d, "width": 8, "lr": 0.01}, child)) for d in (3, 4)) == 1


def test_a_result_that_is_no_number_is_named():
    with pytest.raises(ValueError, match=r"reported {'accuracy': 1}"):
        evolution().receive_trial_result(0, {}, {"accuracy": 1})


def test_sixty_four_requests_at_once():
    """From racing threads: ``test_at_once``."""
    search = Search(evolution(population_size=16, sample_size=4))
    answers = search.run(lambda answer, n: fitness(answer), trials=64, at_once=64, seed=1)
    assert len(answers) == 64
    assert sum("restore_path" not in parameters for parameters in answers.values()) == 16
    assert search.tuner.state()["pending"] == []


def test_five_thousand_trials_leave_no_trace_but_the_population():
    tuner = evolution(population_size=20, sample_size=5)
    run(tuner, 100)
    early = len(json.dumps(tuner.state()))
    run(tuner, 4900, first=100)
    assert len(json.dumps(tuner.state())) < early * 1.1
    assert len(population(tuner)) == 20
    assert tuner.state()["pending"] == []


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"optimize_mode": "max"}, "'maximize' or 'minimize'"),
        ({"population_size": 0}, "population_size is an integer from 1 up"),
        ({"sample_size": 6}, "above population_size"),
        ({"seed": -1}, "seed is an integer"),
        ({"population_size": 2.0}, "integer"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        evolution(**arguments)

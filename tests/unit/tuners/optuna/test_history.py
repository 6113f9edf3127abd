"""What a sampler looks back on is bounded, and a search goes on across that bound as before it."""

from __future__ import annotations

import json
import warnings

import optuna
import pytest

from tests.unit.tuners.optuna.test_as_optuna import SPACE, define_by_run, lead, result
from tuners import make_builtin
from tuners.optuna.history import History

BOUND = 40
NUMBERS = {name: SPACE[name] for name in ("lr", "momentum", "units", "depth")}
SHORT = {
    "TPE": {"n_startup_trials": 5},
    "CMA-ES": {"popsize": 6},
    "QMC": {},
    "NSGA-II": {"population_size": 8},
    "NSGA-III": {"population_size": 8},
}


def fresh(name, space=SPACE, **more):
    arguments = {"seed": 11, "optimize_mode": "minimize", "history": BOUND, **SHORT[name], **more}
    tuner = make_builtin(name, arguments)
    tuner.update_search_space(space)
    return tuner


def kept(tuner):
    return {trial.number: trial for trial in tuner.study.get_trials(deepcopy=False)}


@pytest.mark.parametrize("name", SHORT)
def test_up_to_the_bound_it_is_a_plain_study_and_beyond_it_remembers_a_part(name):
    one, endless = fresh(name), fresh(name, history=4000)
    assert lead(one, 0, BOUND) == lead(endless, 0, BOUND)
    lead(one, BOUND, 110)
    assert len(kept(one)) <= BOUND
    assert len(one.state()["log"]) < 3 * BOUND
    lead(endless, BOUND, 80)
    assert len(kept(endless)) == 80


@pytest.mark.parametrize("at", [63, 90])
@pytest.mark.parametrize("name", SHORT)
def test_a_restart_beyond_the_bound_proposes_to_the_letter_what_the_other_does(name, at):
    one = fresh(name)
    lead(one, 0, at)
    running = one.generate_parameters(at)  # its result comes after the restart
    other = fresh(name)
    other.restore(json.loads(json.dumps(one.state())))
    assert other.state() == one.state()
    for tuner in (one, other):
        tuner.receive_trial_result(at, running, result(running))
        tuner.trial_end(at, True)
    assert lead(other, at + 1, at + 40) == lead(one, at + 1, at + 40)
    assert other.state() == one.state()


def test_the_best_the_latest_and_those_under_way_are_what_is_kept():
    tuner = fresh("TPE")
    early = tuner.generate_parameters(1000)  # number 0 of the study, and never told
    lead(tuner, 0, BOUND)
    before = kept(tuner)
    told = sorted(
        (one for one in before.values() if one.values), key=lambda one: (one.value, one.number)
    )
    tuner.generate_parameters(BOUND)  # folds
    after = kept(tuner)
    assert 0 in after
    assert {one.number for one in told[: BOUND // 4]} <= after.keys()
    assert set(range(BOUND - BOUND // 2 + 1, BOUND + 1)) <= after.keys()
    assert len(after) <= BOUND // 4 + BOUND // 2 + 2
    for number, one in before.items():
        if number in after:
            assert (one.state, one.values) == (after[number].state, after[number].values)
            assert (one.params, one.distributions) == (
                after[number].params,
                after[number].distributions,
            )
    tuner.receive_trial_result(1000, early, 1.0)
    assert kept(tuner)[0].value == 1.0


def test_a_quasi_random_sequence_goes_on_across_the_bound():
    tuner = fresh("QMC", scramble=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = optuna.samplers.QMCSampler(seed=11, scramble=True, warn_independent_sampling=False)
    study = optuna.create_study(sampler=theirs)
    sequence = ("lr", "momentum", "units", "depth")
    below = set()
    for number, parameters in enumerate(lead(tuner, 0, 100)):
        trial = study.ask()
        plain = define_by_run(trial)
        if number % 7:
            study.tell(trial, result(plain))
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        if number:
            assert [parameters[x] for x in sequence] == [plain[x] for x in sequence], number
        below.add(json.dumps(parameters["conv"]))
    assert len(below) > 2  # what is drawn beside the sequence


def test_cma_es_goes_on_with_its_matrix_and_keeps_one():
    tuner = fresh("CMA-ES", NUMBERS)
    lead(tuner, 0, 200)
    generations = [one.system_attrs.get("cma:generation", 0) for one in kept(tuner).values()]
    assert max(generations) > 20
    states = [
        number
        for number, one in kept(tuner).items()
        if any(key.startswith("cma:optimizer") for key in one.system_attrs)
    ]
    assert len(states) <= 1 + BOUND // 2 // 6  # since the last fold, and the one before it
    assert len(json.dumps(tuner.state())) < 60_000


def test_the_parents_of_a_generation_are_not_forgotten():
    tuner = fresh("NSGA-II")
    lead(tuner, 0, 200)
    notes = tuner._history.get_study_system_attrs(0)
    parents = {key: ids for key, ids in notes.items() if "parent" in key}
    assert 0 < len(parents) < 10
    newest = max(parents, key=lambda key: int(key.rpartition(":")[2]))
    assert set(parents[newest]) <= kept(tuner).keys()
    assert int(newest.rpartition(":")[2]) > 15


def test_several_objectives_keep_their_best():
    modes = {"default": "maximize", "size": "minimize"}
    tuner = make_builtin("NSGA-II", {"objectives": modes, "population_size": 8, "history": BOUND})
    tuner.update_search_space(NUMBERS)
    for number in range(BOUND):
        parameters = tuner.generate_parameters(number)
        value = {"default": 99.0 if number == 3 else float(number), "size": 60.0 - number}
        tuner.receive_trial_result(number, parameters, value)
        tuner.trial_end(number, True)
    tuner.generate_parameters(BOUND)
    assert 3 in kept(tuner)
    assert 4 not in kept(tuner)


def test_one_that_enumerates_forgets_nothing():
    space = {"a": {"_type": "randint", "_value": [0, 70]}}
    tuner = make_builtin("Optuna", {"sampler": "BruteForce", "history": BOUND})
    tuner.update_search_space(space)
    seen = []
    for number in range(70):
        parameters = tuner.generate_parameters(number)
        seen.append(parameters["a"])
        tuner.receive_trial_result(number, parameters, 1.0)
        tuner.trial_end(number, True)
    assert sorted(seen) == list(range(70))


def test_a_state_of_before_there_was_a_bound_is_read():
    tuner = fresh("TPE")
    tuner.restore({"seed": 11, "log": [["space", SPACE], ["ask", 0], ["tell", 0, [1.0]]]})
    assert [one.value for one in kept(tuner).values()] == [1.0]


def test_constraints_that_are_noted_later_are_seen():
    """Mutation: what was worked out before a trial changed stays."""
    history = History()
    number = history.create_new_trial(0)
    before = history.get_trial(number)
    assert before.constraints == {}
    history.set_trial_system_attr(number, "constraints", [1.5])
    assert history.get_trial(number).constraints == {"0": 1.5}
    again = history.create_new_trial(0, history.get_trial(number))
    assert history.get_trial(again).constraints == {"0": 1.5}
    assert before.constraints == {}

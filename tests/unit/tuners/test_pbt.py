"""Population based training against its paper, and under what a run does to it."""

from __future__ import annotations

import json
import threading

import pytest

from tests.unit.tuners.one_by_one import finish, run
from tuners import NoMoreTrialError, PBTTuner, TunerArgumentError, UnknownParent
from tuners.testing import OpenGate, RefusingGate, ScriptedGate, Search, with_gate

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "units": {"_type": "randint", "_value": [8, 65]},
}


def pbt(gate=None, **arguments):
    arguments = {"population_size": 5, "seed": 7, "resample_probability": 0.0, **arguments}
    tuner = with_gate(PBTTuner(**arguments), gate)
    tuner.update_search_space(SPACE)
    return tuner


def hyper(parameters):
    return {key: parameters[key] for key in SPACE}


def test_a_worked_example_the_worst_of_five_copies_the_best_and_explores():
    tuner = pbt()
    founders = run(tuner, range(5), lambda n, _: [3.0, 1.0, 5.0, 4.0, 2.0][n])
    for n in (0, 2, 3, 4):
        child = tuner.generate_parameters(5 + n)
        assert child["restore_path"] == f"trials/{n}"  # its own weights, as they are
        assert hyper(child) == hyper(founders[n])
        assert child["save_path"] == f"trials/{5 + n}"
    child, best = tuner.generate_parameters(6), founders[2]
    assert child["restore_path"] == "trials/2"
    ratios = {key: child[key] / best[key] for key in SPACE}
    assert ratios["lr"] in (pytest.approx(1.2), pytest.approx(0.8), 0.1 / best["lr"])
    assert abs(ratios["units"] - 1) == pytest.approx(0.2, abs=0.5 / best["units"])


@pytest.mark.parametrize("how", ["on", "restored", "told of the proposal"])
def test_one_that_took_over_counts_as_what_it_took_over_until_its_next_result(how):
    # Algorithm 1: after exploit and explore p is that of the weights that were copied.
    tuner = pbt()
    run(tuner, range(5), lambda n, _: [3.0, 1.0, 5.0, 4.0, 2.0][n])
    before = json.loads(json.dumps(tuner.state()))
    child = tuner.generate_parameters(6)
    assert child["restore_path"] == "trials/2"
    after = json.loads(json.dumps(tuner.state()))
    if how != "on":
        tuner = pbt()
        tuner.restore(after if how == "restored" else before)
    if how == "told of the proposal":
        tuner.restore_proposal(6, child)

    # Member 1 is among the worst no more, so that member 4 is the worst now; as its own judge
    # it still knows its own last result.
    assert tuner.generate_parameters(9)["restore_path"] == "trials/2"
    assert tuner.generate_parameters(6)["restore_path"] == "trials/2"
    finish(tuner, 6, child, 0.5)  # worse than before
    assert tuner.generate_parameters(5)["restore_path"] == "trials/0"
    assert tuner.generate_parameters(11)["restore_path"] == "trials/2"
    assert not any(trial == 6 for trial, _ in tuner.state()["moved"])


def test_generations_apart_know_nothing_of_what_is_taken_over_meanwhile():
    tuner = pbt(asynchronous=False)
    run(tuner, range(5), lambda n, _: [3.0, 1.0, 5.0, 4.0, 2.0][n])
    assert tuner.generate_parameters(6)["restore_path"] == "trials/2"
    assert tuner.generate_parameters(9)["restore_path"] == "trials/4"


def test_a_state_from_before_members_moved_is_read():
    tuner = pbt()
    run(tuner, range(5), lambda n, _: [3.0, 1.0, 5.0, 4.0, 2.0][n])
    state = {key: value for key, value in tuner.state().items() if key != "moved"}
    again = pbt()
    again.restore(json.loads(json.dumps(state)))
    assert again.generate_parameters(6)["restore_path"] == "trials/2"


def test_minimize_turns_it_round():
    tuner = pbt(optimize_mode="minimize")
    run(tuner, range(5), lambda n, _: {"default": [3.0, 1.0, 5.0, 4.0, 2.0][n]})
    assert tuner.generate_parameters(7)["restore_path"] == "trials/1"
    assert tuner.generate_parameters(6)["restore_path"] == "trials/1"


class Toy(PBTTuner):
    """The two workers of figure 2, each of which optimises one half of the problem."""

    def founder(self, member, rng):
        return [{"h0": 1.0, "h1": 0.0}, {"h0": 0.0, "h1": 1.0}][member]

    def explore(self, parameters, rng):
        return {"h0": float(rng.uniform()), "h1": float(rng.uniform())}


def test_the_toy_of_figure_2_is_solved_by_copying_and_only_by_it():
    # Section 3, figure 2: Q = 1.2 - t0² - t1², of which a worker ascends 1.2 - h0 t0² - h1 t1²
    # from t = (0.9, 0.9). With h = (1, 0) or (0, 1) kept for good, Q ends at 1.2 - 0.81.
    def search(tuner, generations):
        tuner.update_search_space({})
        weights, best = {}, []
        for n in range(2 * generations):
            parameters = tuner.generate_parameters(n)
            t = weights.get(parameters.get("restore_path"), (0.9, 0.9))
            for _ in range(4):
                t = tuple(at - 0.02 * 2 * parameters[f"h{axis}"] * at for axis, at in enumerate(t))
            weights[parameters["save_path"]] = t
            best.append(1.2 - t[0] ** 2 - t[1] ** 2)
            finish(tuner, n, parameters, best[-1])
        return max(best)

    copying = with_gate(Toy(population_size=2, exploit="tournament", seed=1))
    assert search(copying, 40) > 1.15
    staying = with_gate(Toy(population_size=2, seed=1))
    staying.exploit_rule = lambda scores, own, rng: own
    assert search(staying, 40) < 0.4


def test_a_member_waits_for_itself_alone():
    gate = ScriptedGate()
    tuner = pbt(gate, population_size=2)
    founders = [tuner.generate_parameters(n) for n in range(2)]
    finish(tuner, 1, founders[1], 1.0)
    gate.open(1)
    answer = []
    thread = threading.Thread(target=lambda: answer.append(tuner.generate_parameters(2)))
    thread.start()
    gate.until_blocked(0)
    assert tuner.generate_parameters(3)["restore_path"] == "trials/1"  # the other one goes on
    assert not answer
    finish(tuner, 0, founders[0], 2.0)
    gate.open(0)
    thread.join(120)
    assert answer[0]["restore_path"] == "trials/0"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_one_that_diverged_or_crashed_takes_over_from_the_best(value):
    tuner = pbt(OpenGate(failed={3} if value is None else ()), exploit="tournament")
    for n in range(5):
        parameters = tuner.generate_parameters(n)
        if n != 3:
            finish(tuner, n, parameters, 1.0)
        elif value is None:
            tuner.trial_end(n, False)
        else:
            finish(tuner, n, parameters, value)
    assert tuner.generate_parameters(8)["restore_path"] in {f"trials/{n}" for n in (0, 1, 2, 4)}


def test_one_that_crashed_with_nobody_better_goes_on_from_its_last_good_trial():
    gate = OpenGate(failed={2})
    tuner = pbt(gate, population_size=2, exploit="tournament")
    run(tuner, [0], lambda n, _: 1.0)
    tuner.generate_parameters(1)
    tuner.generate_parameters(2)
    tuner.trial_end(2, False)
    assert tuner.generate_parameters(4)["restore_path"] == "trials/0"


def test_all_failing_never_stalls():
    tuner = pbt(OpenGate(failed=set(range(100))))
    for n in range(100):
        assert "restore_path" not in tuner.generate_parameters(n)
        tuner.trial_end(n, False)


def test_requests_that_became_no_trial_are_stepped_over():
    class Gap(OpenGate):
        def wait(self, parents, mode, timeout):
            super().wait(parents, mode, timeout)
            if parents[0] == 6:
                raise UnknownParent(6)
            return list(parents)

    gate = Gap()
    tuner = pbt(gate)
    run(tuner, range(5), lambda n, _: float(n + 1))
    assert tuner.generate_parameters(11)["restore_path"] == "trials/1"
    assert gate.waited[-3:] == [(6,), (1,), (1,)]


def test_a_trial_by_hand_is_no_member():
    tuner = pbt()
    run(tuner, range(5), lambda n, _: float(n + 1))
    tuner.receive_trial_result(6, {"lr": 1}, 99.0, customized=True)
    tuner.trial_end(6, True)
    assert tuner.generate_parameters(11)["restore_path"] == "trials/1"
    assert tuner.generate_parameters(5)["restore_path"] == "trials/4"  # the best, not the hand's


def test_weights_that_are_missing_are_nobodys_source():
    tuner = pbt(OpenGate(failed={4}))
    run(tuner, range(5), lambda n, _: float(n + 1))
    # Asked for the best one's weights, 0 finds that they are missing: now 4 is the worst.
    assert tuner.generate_parameters(5)["restore_path"] == "trials/0"
    assert tuner.generate_parameters(9)["restore_path"] == "trials/3"


def test_without_threads_it_asks_to_be_asked_again():
    tuner = pbt(RefusingGate(), population_size=2)
    founders = [tuner.generate_parameters(n) for n in range(2)]
    with pytest.raises(NoMoreTrialError, match="multiThread is false"):
        tuner.generate_parameters(2)
    for n in range(2):
        finish(tuner, n, founders[n], float(n))
    assert tuner.generate_parameters(2)["restore_path"] == "trials/1"
    tuner.receive_trial_result(3, {}, 1.0, customized=True)
    tuner.trial_end(3, True)
    assert tuner.generate_parameters(5)["restore_path"] == "trials/1"


@pytest.mark.parametrize("rule", ["truncation", "tournament"])
def test_a_restored_tuner_goes_on_as_if_never_stopped(rule):
    def value(n, parameters):
        return parameters["lr"] + n % 5

    one, other = pbt(exploit=rule), pbt(seed=99, exploit=rule)
    run(one, range(13), value)
    other.restore(json.loads(json.dumps(one.state())))
    assert run(other, range(13, 40), value) == run(one, range(13, 40), value)


def test_a_state_from_before_the_last_proposals_is_enough():
    # What was proposed after the state was taken is known from the results that follow it.
    one, other = pbt(), pbt()
    run(one, range(7), lambda n, _: float(n % 5))
    state = json.loads(json.dumps(one.state()))
    late = {n: one.generate_parameters(n) for n in (7, 8)}
    other.restore(state)
    for tuner in (one, other):
        for n, parameters in late.items():
            finish(tuner, n, parameters, 9.0)
    assert [one.generate_parameters(n) for n in (9, 12)] == [
        other.generate_parameters(n) for n in (9, 12)
    ]


def test_generations_apart_are_the_same_search_whatever_finishes_first():
    def search(reverse):
        tuner = pbt(asynchronous=False, population_size=4, exploit="tournament")
        answers = []
        for first in range(0, 40, 4):
            order = range(first, first + 4)
            proposed = {}
            for n in sorted(order, reverse=reverse):  # others of this generation end meanwhile
                proposed[n] = tuner.generate_parameters(n)
                finish(tuner, n, proposed[n], proposed[n]["lr"] * (1 + n))
            answers += [proposed[n] for n in order]
        return answers

    assert search(reverse=False) == search(reverse=True)


def test_generations_apart_wait_for_all_of_the_one_before():
    gate = OpenGate()
    tuner = pbt(gate, asynchronous=False, population_size=3)
    run(tuner, range(3), lambda n, _: float(n))
    gate.waited.clear()
    tuner.generate_parameters(4)
    assert gate.waited[:3] == [(0,), (1,), (2,)]


def test_sixty_four_requests_at_once():
    """From racing threads: ``test_at_once``."""
    search = Search(pbt(population_size=8))
    answers = search.run(lambda answer, n: answer["lr"], trials=64, at_once=64, seed=1)
    assert len(answers) == 64
    assert {n for n, answer in answers.items() if "restore_path" not in answer} == set(range(8))


def test_five_thousand_trials_leave_no_trace_but_the_population():
    gate = OpenGate()
    tuner = pbt(gate)
    run(tuner, range(100), lambda n, _: float(n))
    early = len(json.dumps(tuner.state()))
    waits = len(gate.waited)
    run(tuner, range(100, 5000), lambda n, _: float(n))
    assert len(json.dumps(tuner.state())) < early * 1.2
    assert len(gate.waited) < waits * 55  # two waits a request, as before


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"optimize_mode": "max"}, "'maximize' or 'minimize'"),
        ({"population_size": 1}, "population_size is an integer from 2 up"),
        ({"exploit": "ttest"}, "'truncation' or 'tournament'"),
        ({"fraction": 0.6}, "fraction is a number above 0 and up to 0.5"),
        ({"fraction": 0}, "fraction"),
        ({"factor": -0.2}, "factor"),
        ({"resample_probability": 1.5}, "resample_probability is a number from 0 up to 1"),
        ({"asynchronous": "no"}, "true or false"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        pbt(**arguments)

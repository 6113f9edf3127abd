"""ASHA against its algorithm, and promotions that go on from own weights."""

from __future__ import annotations

import json
import random
import sys
import threading

import pytest

from tests.unit.tuners.one_by_one import finish, run
from tuners import NoMoreTrialError, TunerArgumentError, WaitCancelled
from tuners.asha import ASHATuner
from tuners.testing import OpenGate, RefusingGate, ScriptedGate, with_gate

SPACE = {"lr": {"_type": "uniform", "_value": [0, 1]}}


def asha(gate=None, **arguments):
    arguments = {"max_budget": 9, "eta": 3, "seed": 4, **arguments}
    tuner = with_gate(ASHATuner(**arguments), gate)
    tuner.update_search_space(SPACE)
    return tuner


def algorithm_2(count, eta, budgets, draw):
    """Algorithm 2 of Li et al. (2020), written down line by line: (budget, configuration)."""
    rungs, promoted, jobs = [{} for _ in budgets], [set() for _ in budgets], []
    for n in range(count):
        for k in reversed(range(len(budgets) - 1)):
            ranked = sorted(rungs[k], key=lambda config: -rungs[k][config])
            top = ranked[: len(ranked) // eta]
            candidates = [config for config in top if config not in promoted[k]]
            if candidates:
                promoted[k].add(candidates[0])
                config, rung = candidates[0], k + 1
                break
        else:
            config, rung = draw(n), 0
        jobs.append((budgets[rung], config))
        rungs[rung][config] = config * (rung + 1)
    return jobs


def test_run_one_by_one_it_is_algorithm_2_of_the_paper():
    tuner = asha(max_budget=27)
    history = run(tuner, range(300), lambda n, p: p["lr"] * (1 + [1, 3, 9, 27].index(p["budget"])))
    drawn = asha()
    expected = algorithm_2(300, 3, [1, 3, 9, 27], lambda n: drawn.generate_parameters(n)["lr"])
    assert [(p["budget"], p["lr"]) for p in history.values()] == expected
    assert {budget for budget, _ in expected} == {1, 3, 9, 27}


def test_a_worked_example_one_of_three_goes_on_at_once():
    tuner = asha()
    run(tuner, range(3), lambda n, _: [0.2, 0.9, 0.1][n])
    child = tuner.generate_parameters(3)
    assert child["restore_path"] == "trials/1"
    assert (child["budget_before"], child["budget"], child["promoted_from"]) == (1, 3, 1)
    assert "restore_path" not in tuner.generate_parameters(4)  # nobody waits for 3


def test_minimize_and_results_that_do_not_count():
    tuner = asha(optimize_mode="minimize")
    for n, value in enumerate([3.0, float("nan"), 2.0]):
        finish(tuner, n, tuner.generate_parameters(n), value)
    tuner.receive_trial_result(9, {"lr": 0.1, "budget": 1}, -9.0, customized=True)
    tuner.receive_trial_result(10, {"lr": 0.1, "budget": 2}, -9.0)
    assert "restore_path" not in tuner.generate_parameters(3)
    finish(tuner, 3, {"lr": 0.5, "budget": 1}, 2.5)
    assert tuner.generate_parameters(4)["restore_path"] == "trials/2"


def test_weights_that_are_missing_give_way_to_the_next():
    tuner = asha(OpenGate(failed={5}))
    for n in range(6):
        finish(tuner, n, {"lr": n / 10, "budget": 1}, float(n))
    promoted = [tuner.generate_parameters(n).get("restore_path") for n in (6, 7)]
    assert promoted == ["trials/4", None]  # five are left, of which one may go on


def test_a_wait_that_is_cancelled_promotes_nobody():
    gate = ScriptedGate()
    gate.cancel()
    tuner = asha(gate)
    for n in range(3):
        finish(tuner, n, {"lr": 0.1, "budget": 1}, float(n))
    with pytest.raises(WaitCancelled):
        tuner.generate_parameters(3)
    with_gate(tuner, OpenGate())
    assert tuner.generate_parameters(3)["restore_path"] == "trials/2"


def test_a_state_that_is_taken_while_a_request_waits_leaves_its_promotion_to_it():
    gate = ScriptedGate()
    tuner = asha(gate)
    for n in range(3):
        tuner.receive_trial_result(n, {"lr": 0.1, "budget": 1}, float(n))
    answer = []
    thread = threading.Thread(target=lambda: answer.append(tuner.generate_parameters(3)))
    thread.start()
    gate.until_blocked(2)
    other = asha()
    other.restore(json.loads(json.dumps(tuner.state())))
    gate.open(2)
    thread.join(120)
    assert other.generate_parameters(3) == answer[0]
    assert answer[0]["restore_path"] == "trials/2"


def test_a_restored_tuner_goes_on_as_if_never_stopped():
    one, other = asha(), asha(seed=9)
    run(one, range(40))
    other.restore(json.loads(json.dumps(one.state())))
    assert run(other, range(40, 90)) == run(one, range(40, 90))


def test_a_promotion_since_the_state_is_not_made_again():
    one, other = asha(), asha()
    run(one, range(3))
    state = json.loads(json.dumps(one.state()))
    late = one.generate_parameters(3)
    assert late["budget"] == 3
    other.restore(state)
    other.restore_proposal(3, late)
    assert "restore_path" not in other.generate_parameters(4)


def test_without_threads_it_asks_to_be_asked_again():
    tuner = asha(RefusingGate())
    for n in range(3):
        tuner.receive_trial_result(n, {"lr": 0.1, "budget": 1}, float(n))
    with pytest.raises(NoMoreTrialError, match="the end of trial 2 is under way"):
        tuner.generate_parameters(3)
    tuner.trial_end(2, True)
    assert tuner.generate_parameters(3)["restore_path"] == "trials/2"


def test_sixty_four_requests_at_once_promote_nobody_twice():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        tuner = asha()
        for n in range(99):
            finish(tuner, n, {"lr": n / 99, "budget": 1}, float(n))
        answers = []

        def request(n):
            answers.append(tuner.generate_parameters(n))

        threads = [threading.Thread(target=request, args=(n,)) for n in range(100, 164)]
        [thread.start() for thread in threads]
        [thread.join(120) for thread in threads]
        assert len(answers) == 64
        promoted = [one["promoted_from"] for one in answers if "promoted_from" in one]
        assert sorted(promoted) == list(range(66, 99))
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"min_budget": 0}, "min_budget"),
        ({"min_budget": 10}, "below min_budget"),
        ({"eta": 1.5}, "eta is an integer from 2 up"),
        ({"optimize_mode": None}, "maximize"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        asha(**arguments)


def test_beyond_a_bound_the_worst_that_wait_are_counted_and_not_kept(monkeypatch):
    def search(bound):
        monkeypatch.setattr("tuners.asha.KEPT", bound)
        tuner, dice = asha(eta=3), random.Random(8)
        found = []
        for n in range(300):
            found.append(tuner.generate_parameters(n))
            finish(tuner, n, found[-1], dice.random())
        return tuner, found

    whole, proposals = search(1000)
    short, same = search(12)
    assert same == proposals
    kept = short.state()
    assert all(len(rung["waiting"]) <= 12 for rung in kept["rungs"])
    assert len(kept["ended"]) <= 12 * len(kept["rungs"])
    assert len(whole.state()["rungs"][0]["waiting"]) > 100
    again = asha(eta=3)
    again.restore(json.loads(json.dumps(kept)))
    assert again.state() == kept
    assert again.generate_parameters(300) == whole.generate_parameters(300)

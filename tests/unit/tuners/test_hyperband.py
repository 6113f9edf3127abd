"""Hyperband against the table of its paper, and promotions that go on from own weights."""

from __future__ import annotations

import json
import threading

import pytest

from tests.unit.tuners.one_by_one import finish, run
from tuners import NoMoreTrialError, ParentFailed, TunerArgumentError
from tuners.hyperband import HyperbandTuner, bracket, halvings
from tuners.testing import OpenGate, RefusingGate, ScriptedGate, with_gate

SPACE = {"lr": {"_type": "uniform", "_value": [0, 1]}}


def kept(tuner):
    """Trials whose results the tuner has not forgotten."""
    return [number for number, _, _ in tuner.state()["results"]]


def hyperband(gate=None, **arguments):
    arguments = {"max_budget": 9, "eta": 3, "bracket": 2, "seed": 4, **arguments}
    tuner = with_gate(HyperbandTuner(**arguments), gate)
    tuner.update_search_space(SPACE)
    return tuner


def test_the_brackets_are_those_of_table_1():
    # Li et al. (2018), table 1: R = 81, eta = 3.
    table = {
        4: [(81, 1), (27, 3), (9, 9), (3, 27), (1, 81)],
        3: [(34, 3), (11, 9), (3, 27), (1, 81)],
        2: [(15, 9), (5, 27), (1, 81)],
        1: [(8, 27), (2, 81)],
        0: [(5, 81)],
    }
    assert halvings(81, 3) == 4
    for s, rungs in table.items():
        assert [(rung.count, rung.budget) for rung in bracket(81, 3, s)] == rungs
    proposals = []
    tuner = hyperband(max_budget=81, bracket=None)
    proposals = run(tuner, range(206 + 81))
    budgets = [proposals[n]["budget"] for n in proposals]
    wanted = [budget for rungs in table.values() for count, budget in rungs for _ in range(count)]
    assert budgets == wanted + [1] * 81


def test_a_worked_example_the_best_third_goes_on_from_its_own_weights():
    tuner = hyperband()
    scores = [0.1, 0.9, 0.3, 0.8, 0.2, 0.7, 0.0, 0.4, 0.5]
    history = run(tuner, range(13), lambda n, _: [*scores, 0.5, 0.6, 0.4, 1.0][n])
    assert [history[n]["budget"] for n in range(9)] == [1] * 9
    for n, parent in ((9, 1), (10, 3), (11, 5), (12, 10)):
        assert history[n]["restore_path"] == f"trials/{parent}"
        assert history[n]["lr"] == history[parent]["lr"]
        assert history[n]["budget_before"] == history[parent]["budget"]
        assert history[n]["budget"] == 3 * history[parent]["budget"]
    again = tuner.generate_parameters(13)
    assert again["budget"] == 1
    assert again["lr"] not in [history[n]["lr"] for n in history]


def test_minimize_and_from_scratch():
    tuner = hyperband(optimize_mode="minimize", inherit=False)
    history = run(tuner, range(9))
    child = tuner.generate_parameters(9)
    assert child["lr"] == min(parameters["lr"] for parameters in history.values())
    assert child["budget_before"] == 0
    assert not {"save_path", "restore_path"} & set(child)


def test_a_rung_waits_for_the_one_before_and_the_next_bracket_does_not():
    gate = ScriptedGate()
    tuner = hyperband(gate)
    rung = {n: tuner.generate_parameters(n) for n in range(9)}
    answer = []
    thread = threading.Thread(target=lambda: answer.append(tuner.generate_parameters(9)))
    thread.start()
    gate.until_blocked(0)
    assert tuner.generate_parameters(13)["budget"] == 1
    for n in reversed(rung):
        assert not answer
        finish(tuner, n, rung[n], float(n))
        gate.open(n)
    thread.join(120)
    assert answer[0]["restore_path"] == "trials/8"


def test_whoever_failed_is_not_promoted_and_places_stay_empty():
    gate = OpenGate(failed={0, 1, 2, 3, 4})  # 4 reported, and its weights are missing
    tuner = hyperband(gate)
    for n in range(9):
        parameters = tuner.generate_parameters(n)
        if n < 4:
            tuner.trial_end(n, False)
        else:
            finish(tuner, n, parameters, float("nan") if n in (5, 6) else -float(n))
    assert tuner.generate_parameters(9)["restore_path"] == "trials/7"
    assert tuner.generate_parameters(10)["restore_path"] == "trials/8"
    with pytest.raises(ParentFailed, match="only 2 of its rung can be promoted, 3 were to be"):
        tuner.generate_parameters(11)


def test_a_trial_by_hand_is_not_promoted():
    tuner = hyperband()
    run(tuner, range(8))
    tuner.receive_trial_result(8, {"lr": 0.5}, 99.0, customized=True)
    tuner.trial_end(8, True)
    promoted = [tuner.generate_parameters(n)["restore_path"] for n in (9, 10, 11)]
    assert "trials/8" not in promoted


def test_without_threads_it_asks_to_be_asked_again():
    tuner = hyperband(RefusingGate())
    run(tuner, range(8))
    late = tuner.generate_parameters(8)
    with pytest.raises(NoMoreTrialError, match="trial 8 of the rung before"):
        tuner.generate_parameters(9)
    finish(tuner, 8, late, 2.0)
    assert tuner.generate_parameters(9)["restore_path"] == "trials/8"


def test_restored_anywhere_it_goes_on_as_if_never_stopped():
    one = hyperband(bracket=None)
    run(one, range(5))
    state = json.loads(json.dumps(one.state()))
    late = {n: one.generate_parameters(n) for n in range(5, 9)}  # after the state was taken
    other = hyperband(bracket=None, seed=99)
    other.restore(state)
    for tuner in (one, other):
        for n, parameters in late.items():
            finish(tuner, n, parameters, parameters["lr"])
    assert run(other, range(9, 60)) == run(one, range(9, 60))


def test_a_round_is_kept_as_long_as_one_of_its_requests_waits():
    gate = ScriptedGate()
    tuner = hyperband(gate, max_budget=3, bracket=1)  # rounds of four trials
    first = {n: tuner.generate_parameters(n) for n in range(3)}
    answer = []
    thread = threading.Thread(target=lambda: answer.append(tuner.generate_parameters(3)))
    thread.start()
    gate.until_blocked(0)
    finish(tuner, 1, first[1], 5.0)
    for n in (0, 1):
        tuner.trial_end(n, n == 1)
    for start in range(4, 40, 4):
        for n in range(start, start + 4):
            gate.open(n)
            finish(tuner, n, tuner.generate_parameters(n), 1.0)
    for n in range(3):
        gate.open(n)
    finish(tuner, 2, first[2], 1.0)
    thread.join(120)
    assert answer[0]["restore_path"] == "trials/1"
    finish(tuner, 3, answer[0], 1.0)
    assert min(kept(tuner)) == 36


def test_calls_repeated_in_the_order_of_answers_are_answered_as_they_were():
    # What ``tuner replay`` does, and a restart before the first state(): trial 2 was a straggler,
    # so that request 3 was answered when a later round had run already.
    late = [0, 1, *range(4, 12), 2, 3]
    gate = OpenGate()
    tuner = hyperband(gate, max_budget=3, bracket=1)  # rounds of four trials
    history = run(tuner, late)
    assert (
        history[3]["restore_path"]
        == max((history[n]["lr"], history[n]["save_path"]) for n in range(3))[1]
    )
    # From a state that was taken before, proposals are told and not asked for again.
    again = hyperband(gate, max_budget=3, bracket=1)
    again.restore(json.loads(json.dumps(hyperband(max_budget=3, bracket=1).state())))
    for n in late[:-1]:
        again.restore_proposal(n, history[n])
        finish(again, n, history[n], history[n]["lr"])
    assert again.generate_parameters(3) == history[3]


def test_a_number_that_never_comes_is_not_waited_for_for_ever():
    tuner = hyperband(max_budget=3, bracket=1)
    run(tuner, [0, 1, 2, *range(4, 400)])
    assert min(kept(tuner)) == 0
    run(tuner, range(400, 800))
    assert min(kept(tuner)) == 796


def test_five_thousand_trials_leave_no_trace_but_one_round():
    tuner = hyperband(bracket=None)
    longest = 0
    for first in range(0, 5000, 100):
        run(tuner, range(first, first + 100))
        longest = max(longest, len(tuner.state()["ended"]), len(kept(tuner)))
    assert longest <= 22  # in a round


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"max_budget": 0}, "max_budget"),
        ({"eta": 1}, "eta is an integer from 2 up"),
        ({"bracket": 3}, "bracket is from 0 to 2"),
        ({"bracket": -1}, "bracket"),
        ({"inherit": 1}, "inherit is true or false"),
        ({"optimize_mode": ""}, "maximize"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        hyperband(**arguments)

"""Hill climbing and evolution by network morphisms, against Elsken et al. and under failures."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest

from tests.unit.tuners import one_by_one
from tests.unit.tuners.one_by_one import finish
from trial_runtime.morphism import chain
from tuners import NoMoreTrialError, TunerArgumentError
from tuners.growth import applied
from tuners.morphing import MorphingEvolutionTuner, NetworkMorphismTuner
from tuners.testing import OpenGate, RefusingGate, ScriptedGate, with_gate

BLOCKS = [{"width": 2, "kernel": 3}, {"width": 2, "kernel": 3}]
SPACE = {"lr": {"_type": "loguniform", "_value": [1e-3, 1e-1]}}


def climb(gate=None, **arguments):
    arguments = {"blocks": BLOCKS, "neighbours": 4, "steps": 2, "seed": 3, **arguments}
    tuner = with_gate(NetworkMorphismTuner(**arguments), gate)
    tuner.update_search_space(SPACE)
    return tuner


def size(parameters):
    return sum(block["width"] * block["kernel"] for block in parameters["blocks"])


def run(tuner, numbers, value=lambda n, parameters: size(parameters)):
    return one_by_one.run(tuner, numbers, value)


def test_algorithm_1_of_the_paper():
    tuner = climb()
    history = run(tuner, range(13))
    assert "restore_path" not in history[0]
    assert history[0]["blocks"] == tuner.growth.founder()
    best = 0
    for first in (1, 5, 9):
        step = range(first, first + 4)
        for n in step:
            assert history[n]["restore_path"] == f"trials/{best}"
            assert history[n]["inherited"] == history[best]["blocks"]
            assert applied(history[n]["inherited"], history[n]["steps"]) == history[n]["blocks"]
            assert len(history[n]["steps"]) == (0 if n == step[-1] else 2)
        best = max(step, key=lambda n: (size(history[n]), -n))
    assert len({json.dumps(history[n]["steps"]) for n in (1, 2, 3)}) > 1
    assert len({parameters["lr"] for parameters in history.values()}) == 13


def test_a_step_waits_for_all_of_the_one_before():
    gate = ScriptedGate()
    tuner = climb(gate)
    founder = tuner.generate_parameters(0)
    finish(tuner, 0, founder, 1.0)
    gate.open(0)
    step = {n: tuner.generate_parameters(n) for n in range(1, 5)}  # all at once
    answer = []
    thread = threading.Thread(target=lambda: answer.append(tuner.generate_parameters(5)))
    thread.start()
    gate.until_blocked(1)
    for n in (4, 2, 1, 3):
        assert not answer
        finish(tuner, n, step[n], float(n))
        gate.open(n)
    thread.join(120)
    assert answer[0]["restore_path"] == "trials/4"


def test_minimize_and_results_that_do_not_count():
    tuner = climb(optimize_mode="minimize")
    run(tuner, range(5), lambda n, _: [9.0, 5.0, float("nan"), 3.0, 4.0][n])
    tuner.receive_trial_result(6, {"blocks": BLOCKS}, -9.0, customized=True)
    assert tuner.generate_parameters(5)["restore_path"] == "trials/3"


def test_a_best_one_without_weights_gives_way_to_the_next():
    tuner = climb(OpenGate(failed={3}))
    run(tuner, range(5), lambda n, _: [0.0, 1.0, 2.0, 9.0, 3.0][n])
    assert tuner.generate_parameters(5)["restore_path"] == "trials/4"


def test_a_step_in_which_all_fail_is_passed_over():
    tuner = climb(OpenGate(failed=set(range(5, 20))))
    run(tuner, range(5), lambda n, _: float(n))
    for n in range(5, 20):
        assert tuner.generate_parameters(n)["restore_path"] == "trials/4"
        tuner.trial_end(n, False)


def test_without_a_founder_everybody_is_one():
    tuner = climb(OpenGate(failed={0}))
    tuner.generate_parameters(0)
    tuner.trial_end(0, False)
    for n in range(1, 5):
        parameters = tuner.generate_parameters(n)
        assert "restore_path" not in parameters
        assert parameters["blocks"] == tuner.growth.founder()


def test_without_threads_it_asks_to_be_asked_again():
    tuner = climb(RefusingGate())
    founder = tuner.generate_parameters(0)
    with pytest.raises(NoMoreTrialError, match="trial 0 of the step before"):
        tuner.generate_parameters(1)
    finish(tuner, 0, founder, 1.0)
    assert tuner.generate_parameters(1)["restore_path"] == "trials/0"


def test_restored_in_the_middle_it_goes_on_as_if_never_stopped():
    one, other = climb(), climb(seed=99)
    run(one, range(7))
    other.restore(json.loads(json.dumps(one.state())))
    assert run(other, range(7, 30)) == run(one, range(7, 30))


def test_one_seed_gives_one_search_whatever_finishes_first():
    def search(reverse):
        tuner = climb()
        found = run(tuner, [0])
        for first in range(1, 21, 4):
            step = {n: tuner.generate_parameters(n) for n in range(first, first + 4)}
            found |= step
            for n in sorted(step, reverse=reverse):
                finish(tuner, n, step[n], size(step[n]))
        return found

    assert search(reverse=False) == search(reverse=True)


def test_five_thousand_trials_leave_no_trace_but_the_last_steps():
    tuner = climb(max_blocks=3, max_width=4)
    run(tuner, range(400))
    early = len(json.dumps(tuner.state()))
    run(tuner, range(400, 5000))
    assert len(json.dumps(tuner.state())) < early * 1.2


def test_the_trial_can_carry_out_what_is_proposed():
    rng = np.random.default_rng(0)
    tuner = climb(steps=6)
    finish(tuner, 0, tuner.generate_parameters(0), 1.0)
    weights = {
        "blocks.0.weight": rng.normal(size=(2, 1, 3, 3)),
        "blocks.1.weight": rng.normal(size=(2, 2, 3, 3)),
        "head.weight": rng.normal(size=(10, 8)),
    }
    for n in (1, 2, 3, 4):
        parameters = json.loads(json.dumps(tuner.generate_parameters(n)))
        child = chain.inherit(weights, parameters["inherited"], parameters["steps"])
        for place, block in enumerate(parameters["blocks"]):
            wanted = (block["width"], chain.inputs(parameters["blocks"], place, 1))
            kernel = (block["kernel"],) * 2
            assert child[f"blocks.{block['id']}.weight"].shape == (*wanted, *kernel)
        assert child["head.weight"].shape == (10, 4 * parameters["blocks"][-1]["width"])


def test_evolution_by_morphisms():
    tuner = with_gate(MorphingEvolutionTuner(BLOCKS, population_size=4, sample_size=2, seed=1))
    tuner.update_search_space(SPACE)
    history = run(tuner, range(30))
    for n, parameters in history.items():
        assert set(parameters) >= {"lr", "blocks", "steps", "save_path"}
        if n < 4:
            assert parameters["blocks"] == tuner.growth.founder()
        else:
            parent = history[int(parameters["restore_path"].removeprefix("trials/"))]
            assert parameters["inherited"] == parent["blocks"]
            assert len(parameters["steps"]) == 1
            assert applied(parent["blocks"], parameters["steps"]) == parameters["blocks"]
    other = with_gate(MorphingEvolutionTuner(BLOCKS, population_size=4, sample_size=2, seed=9))
    other.update_search_space(SPACE)
    other.restore(json.loads(json.dumps(tuner.state())))
    assert run(other, range(30, 40)) == run(tuner, range(30, 40))


def evolve(gate=None, **arguments):
    arguments = {"population_size": 5, "sample_size": 2, "seed": 1, **arguments}
    tuner = with_gate(MorphingEvolutionTuner(BLOCKS, **arguments), gate)
    tuner.update_search_space(SPACE)
    return tuner


def grown_by(parameters):
    """How often a block of ``BLOCKS`` got wider or its kernel larger."""
    return sum(
        (block["kernel"] - 3) // 2 + block["width"].bit_length() - 2
        for block in parameters["blocks"]
    )


@pytest.mark.parametrize("most, spread", [(0, [0] * 5), (2, [0, 0, 1, 2, 2]), (8, [0, 2, 4, 6, 8])])
def test_the_first_generation_is_spread_over_sizes(most, spread):
    """Mutation: a founder that inherits, or no founder that is the network to begin with."""
    tuner = evolve(founder_steps=most, operations=["wider", "kernel"], max_kernel=9)
    history = run(tuner, range(20))
    assert [grown_by(history[n]) for n in range(5)] == spread
    for n in range(5):
        assert history[n]["steps"] == []
        assert not {"inherited", "restore_path"} & set(history[n])
    for n in range(5, 20):
        parent = history[int(history[n]["restore_path"].removeprefix("trials/"))]
        assert applied(parent["blocks"], history[n]["steps"]) == history[n]["blocks"]
        assert len(history[n]["steps"]) == 1


def test_who_ends_when_changes_no_founder():
    """Mutation: a founder's size by how many have finished. A failed one's place is taken."""
    one, other = evolve(founder_steps=4), evolve(founder_steps=4)
    at_once = [one.generate_parameters(n) for n in range(5)]
    for n in range(5):
        assert other.generate_parameters(n) == at_once[n]
        finish(other, n, at_once[n], 1.0)
    for n in range(5):
        one.trial_end(n, False)
    again = one.generate_parameters(5)
    assert again["blocks"] == one.growth.founder()
    assert "restore_path" not in again


def test_a_first_generation_of_one_is_the_network_to_begin_with():
    tuner = evolve(founder_steps=3, population_size=1, sample_size=1)
    assert tuner.generate_parameters(0)["blocks"] == tuner.growth.founder()


def test_founders_grow_by_a_whole_number_of_steps():
    with pytest.raises(TunerArgumentError, match="founder_steps"):
        evolve(founder_steps=-1)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"neighbours": 1}, "neighbours is an integer from 2 up"),
        ({"blocks": None}, "blocks is a list"),
        ({"seed": "a"}, "seed"),
        ({"optimize_mode": "up"}, "maximize"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        climb(**arguments)

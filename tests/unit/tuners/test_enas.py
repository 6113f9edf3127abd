"""ENAS: the controller's gradients, its rule by hand, its rounds, and a toy that it solves."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tuners import ENASTuner, NoMoreTrialError, TunerArgumentError, WaitNotAllowed
from tuners.enas import Controller, MacroSpace, MicroSpace, Reinforce
from tuners.enas.tape import Tape
from tuners.testing import OpenGate, with_gate

MACRO = MacroSpace(("conv", "pool", "same"), 4)
MICRO = MicroSpace(("conv", "same"), 2)
SPACES = [MACRO, MICRO]
IDS = ["macro", "micro"]
#: Small, so that the tests are quick.
SMALL = {"operations": ["a", "b", "c"], "layers": 3, "hidden": 4, "samples": 2, "batch": 2}
SMALL |= {"weights_trials": 2, "controller_trials": 4}


def controller(space, **more):
    return Controller(space, 5, np.random.default_rng(1), **more)


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_an_architecture_is_its_decisions_and_back(space):
    rng = np.random.default_rng(3)
    for _ in range(20):
        drawn = controller(space).draw(rng)
        told = json.loads(json.dumps(space.architecture(drawn.decisions)))
        assert space.decisions(told) == drawn.decisions


def test_what_a_trial_is_told():
    space = MacroSpace(("conv", "pool"), 4)
    told = space.architecture([0, 1, 1, 1, 0, 0, 1])
    assert told == [
        {"operation": "conv", "skips": []},
        {"operation": "pool", "skips": []},
        {"operation": "pool", "skips": [0]},
        {"operation": "conv", "skips": [1]},
    ]
    cell = MicroSpace(("conv", "same"), 2, ("normal",)).architecture([0, 1, 1, 0, 2, 0, 0, 0])
    assert cell == {
        "normal": [
            {"inputs": [0, 1], "operations": ["same", "conv"]},
            {"inputs": [2, 0], "operations": ["conv", "conv"]},
        ]
    }


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_gradients_are_those_of_finite_differences(space):
    """Of everything that the loss has in it, in random directions through all parameters."""
    own = controller(space)
    for value in own.parameters.values():
        value *= 8  # so that nothing is lost in rounding
    decisions = own.draw(np.random.default_rng(2)).decisions

    def loss() -> float:
        tape = Tape()
        drawn = own.judge(tape, own.on(tape), decisions)
        return float(drawn.log_probability.value * -0.7 + drawn.skip_divergence.value * 0.8)

    tape = Tape()
    parameters = own.on(tape)
    drawn = own.judge(tape, parameters, decisions)
    parts = [tape.scale(drawn.log_probability, -0.7), tape.scale(drawn.skip_divergence, 0.8)]
    tape.backward(tape.total(tape.joined(parts)))
    rng = np.random.default_rng(5)
    for name, value in own.parameters.items():
        direction, step = rng.normal(size=value.shape), 1e-5
        value += step * direction
        above = loss()
        value -= 2 * step * direction
        below = loss()
        value += step * direction
        numeric = (above - below) / (2 * step)
        assert numeric == pytest.approx(float((parameters[name].grad * direction).sum()), abs=1e-8)
        assert abs(numeric) > 1e-9, f"{name} takes no part"


@pytest.mark.parametrize("space", SPACES, ids=IDS)
def test_how_likely_a_sample_is(space):
    """Its log-probability is that of drawing it: the likelihoods of all architectures are 1."""
    own = controller(MacroSpace(("a", "b"), 3) if space is MACRO else MicroSpace(("a",), 1, ("x",)))
    counts: dict[tuple[int, ...], float] = {}
    rng = np.random.default_rng(0)
    for _ in range(150):
        drawn = own.draw(rng)
        counts[tuple(drawn.decisions)] = float(np.exp(drawn.log_probability.value))
    assert sum(counts.values()) == pytest.approx(1.0)


def test_logits_are_cooled_and_bounded():
    """Section 3.2: tanh constant 2.5, temperature 5. No decision can become a certainty."""
    own = controller(MACRO)
    own.parameters["operation"][0] = 1e3
    own.parameters["operation"][1] = -1e3
    tape = Tape()
    odds = []
    own.run(tape, own.on(tape), lambda each: odds.append(each) or 0)
    assert max(each.max() for each in odds) < 1 / (1 + np.exp(-5.0) + np.exp(-2.5)) + 0.2
    assert min(each.min() for each in odds) > np.exp(-5.0) / 3


def test_the_rule_by_hand():
    """Section 2.2 with one decision of two: the moving average, the advantage, one step of Adam.

    Both odds are 1/2 at the parameters below, so the gradient of -log p(first) with respect to
    the first row of the output is -(1 - 1/2) · advantage · h, h what the LSTM says, and + for the
    other row; the first step of Adam is the learning rate against its sign.
    """
    own = Controller(MacroSpace(("a", "b"), 1), 3, np.random.default_rng(0), tanh_constant=0)
    own.parameters["operation"][:] = 0.0
    rule = Reinforce(own, learning_rate=0.01, entropy_weight=0.1, baseline_decay=0.9)
    entropy = np.log(2)
    rule.gradients([([0], 0.5)])
    assert rule.baseline == pytest.approx(0.5 + 0.1 * entropy), "the first reward, and no advantage"
    gradients = rule.gradients([([0], 1.0)])
    baseline = 0.5 + 0.1 * entropy + 0.1 * 0.5
    assert rule.baseline == pytest.approx(baseline)
    advantage = 1.0 + 0.1 * entropy - baseline
    assert advantage == pytest.approx(0.45)
    gates = own.parameters["lstm"] @ np.concatenate([own.parameters["begin"], np.zeros(3)])
    take, _, show, new = gates.reshape(4, 3)
    said = np.tanh(np.tanh(new) / (1 + np.exp(-take))) / (1 + np.exp(-show))
    row = -0.5 * advantage * said / own.temperature
    assert gradients["operation"] == pytest.approx(np.array([row, -row]))
    rule.update([([0], 1.0)])
    assert own.parameters["operation"][0] == pytest.approx(0.01 * np.sign(said), rel=1e-3)


def test_what_pays_becomes_likely():
    """Forty steps on a reward that only counts one operation and one skip."""
    own = controller(MACRO)
    rule = Reinforce(own, learning_rate=0.03, entropy_weight=0.0, skip_weight=0.0)
    rng = np.random.default_rng(4)

    def worth(decisions):
        layers = MACRO.architecture(decisions)
        return np.mean([layer["operation"] == "pool" for layer in layers]) + (
            0 in layers[2]["skips"]
        )

    before = np.mean([worth(own.draw(rng).decisions) for _ in range(50)])
    for _ in range(40):
        samples = [own.draw(rng).decisions for _ in range(3)]
        rule.update([(each, worth(each)) for each in samples])
    after = np.mean([worth(own.draw(rng).decisions) for _ in range(50)])
    assert after > before + 0.3


def test_a_few_hundred_trials_teach_a_controller_with_the_defaults():
    """While the shared weights get better all the time, which says nothing about architectures:
    a baseline that lags behind would praise whatever was drawn."""
    tuner = with_gate(
        ENASTuner(
            ["a", "b", "c"], layers=3, hidden=8, weights_trials=0, controller_trials=24, seed=1
        )
    )
    noise = np.random.default_rng(4)
    shares = []
    for trial in range(240):
        told = tuner.generate_parameters(trial)
        layers = told["architectures"][0]
        shares.append(sum(layer["operation"] == "b" for layer in layers) / 3)
        worth = 0.1 + 0.002 * trial + 0.2 * shares[-1] + noise.normal(0, 0.05)
        tuner.receive_trial_result(trial, told, worth)
    assert np.mean(shares[:24]) < 0.5
    assert np.mean(shares[-24:]) > 0.75


def test_the_prior_of_skips_weighs_no_more_in_a_deeper_network():
    """With all probabilities alike the divergence of a layer is its skips times one number."""
    found = []
    for layers in (4, 8):
        own = controller(MacroSpace(("a", "b"), layers))
        for value in own.parameters.values():
            value *= 0
        skips = sum(range(1, layers - 1))
        divergence = float(own.draw(np.random.default_rng(1)).skip_divergence.value)
        found.append(divergence * (layers - 2) / skips)
    assert found[0] == pytest.approx(found[1])
    assert found[0] == pytest.approx(-0.5 * np.log(4 * 0.4 * 0.6))


def test_rounds_wait_for_the_one_before_and_all_of_one_pin_one_version():
    gate = OpenGate()
    tuner = with_gate(ENASTuner(**SMALL), gate)
    newest, waited = gate.versions, gate.waited
    first = [tuner.generate_parameters(n) for n in (0, 1)]
    assert [one["phase"] for one in first] == ["weights"] * 2
    assert [len(one["architectures"]) for one in first] == [2, 2]
    assert waited == []
    assert all("shared_stores" not in one for one in first)
    newest["omega"] = 2
    second = tuner.generate_parameters(2)
    assert waited == [(0,), (1,)]
    assert second["phase"] == "controller"
    assert second["shared_stores"] == {"omega": 2}
    newest["omega"] = 3  # somebody publishes late
    assert tuner.generate_parameters(3)["shared_stores"] == {"omega": 2}
    waited.clear()
    assert tuner.generate_parameters(4)["shared_stores"] == {"omega": 3}
    assert waited == [(2,), (3,)]
    waited.clear()
    assert tuner.generate_parameters(6)["phase"] == "weights"
    assert waited == [(4,), (5,)]


def test_the_controller_learns_in_order_and_only_from_what_counts():
    """Whatever the order in which results come, and with a trial of a user's among them."""
    one, other = (with_gate(ENASTuner(**SMALL)) for _ in range(2))
    for tuner, order in ((one, (2, 3)), (other, (3, 2))):
        told = {n: tuner.generate_parameters(n) for n in range(4)}
        for n in (0, 1):
            tuner.receive_trial_result(n, told[n], 0.9)
        for n in order:
            tuner.receive_trial_result(n, told[n], 0.1 * n)
        tuner.receive_trial_result(3, told[2], 7.0, customized=True)
    assert one.generate_parameters(4) == other.generate_parameters(4)
    assert one.state() == other.state()
    assert one.state()["rule"]["updates"] == 1


def test_a_restored_tuner_goes_on_to_the_letter():
    tuner = with_gate(ENASTuner(**SMALL))
    told = {n: tuner.generate_parameters(n) for n in range(4)}
    tuner.receive_trial_result(2, told[2], 0.3)
    again = with_gate(ENASTuner(**SMALL | {"seed": 9}))
    again.restore(json.loads(json.dumps(tuner.state())))
    for each in (tuner, again):
        each.receive_trial_result(3, told[3], 0.6)
    assert again.generate_parameters(4) == tuner.generate_parameters(4)
    assert again.state() == tuner.state()


def test_a_serial_tuner_says_not_now():
    gate = OpenGate()

    def refuse(parents, mode, timeout):
        raise WaitNotAllowed("one call at a time")

    gate.wait = refuse
    tuner = with_gate(ENASTuner(**SMALL), gate)
    tuner.generate_parameters(0)
    tuner.generate_parameters(1)
    with pytest.raises(NoMoreTrialError, match="trial 0 of the round before has not ended"):
        tuner.generate_parameters(2)
    tuner.trial_end(0, success=True)
    tuner.trial_end(1, success=False)
    assert tuner.generate_parameters(2)["phase"] == "controller"


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"space": "mikro"}, "space is 'macro' or 'micro'"),
        ({"operations": ["a"]}, "operations is a list of at least 2 different names"),
        ({"operations": "ab"}, "operations is a list"),
        ({"batch": 3}, "controller_trials .4. is no multiple of batch .3."),
        ({"temperature": 0}, "temperature is a number above 0"),
        ({"skip_target": 1.5}, "skip_target"),
        ({"hidden": 0}, "hidden"),
        ({"optimize_mode": "up"}, "optimize_mode"),
    ],
)
def test_arguments_that_do_not_fit(changes, said):
    with pytest.raises(TunerArgumentError, match=said):
        ENASTuner(**SMALL | changes)


def test_a_search_space_says_nothing_to_it():
    assert "leave searchSpace out" in ENASTuner(**SMALL).handles({"x": {"_type": "choice"}})
    assert ENASTuner(**SMALL).handles({}) == ""

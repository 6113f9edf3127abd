"""The examples in numpy: gradients, paths, and members that go on as if never stopped."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def slopes(weights, loss, step=1e-6):
    """Numerical gradients of a few entries of each array."""
    found = {}
    for name, one in weights.items():
        for place in (0, one.size // 2, one.size - 1):
            at = np.unravel_index(place, one.shape)
            kept, values = one[at], []
            for sign in (1, -1):
                one[at] = kept + sign * step
                values.append(loss())
            one[at] = kept
            found[name, at] = (values[0] - values[1]) / (2 * step)
    return found


def cross_entropy(scores, labels):
    scores = scores - scores.max(1, keepdims=True)
    return float((np.log(np.exp(scores).sum(1)) - scores[range(len(labels)), labels]).mean())


def test_the_three_have_the_same_data():
    texts = {(EXAMPLES / f"{name}_digits" / "digits.py").read_text() for name in
             ("spos", "pbt", "morphism")}  # fmt: skip
    assert len(texts) == 1


def test_gradients_of_a_path_and_none_of_what_lies_beside_it(example):
    digits, supernet = (example("spos_digits", name) for name in ("digits", "supernet"))
    rng = np.random.default_rng(0)
    weights = supernet.fresh(rng)
    options = ["relu", "tanh", "narrow", "skip", "relu", "narrow"]
    path = dict(zip(supernet.BLOCKS, options, strict=True))
    x, labels = rng.normal(size=(9, 64)), rng.integers(10, size=9)

    def loss():
        return cross_entropy(supernet.forward(weights, path, x)[-1], labels)

    outputs = supernet.forward(weights, path, x)
    found = supernet.backward(weights, path, x, outputs, digits.gradient(outputs[-1], labels))
    for (name, at), slope in slopes(weights, loss).items():
        assert slope == pytest.approx(found[name][at] if name in found else 0.0, abs=1e-6)
    assert "block1.tanh" not in found
    assert not any(name.startswith("block4") for name in found)


def test_gradients_of_a_chain_with_skips(example):
    digits, network = (example("morphism_digits", name) for name in ("digits", "network"))
    blocks = [
        {"id": 0, "width": 5, "kernel": 0, "skips": []},
        {"id": 3, "width": 4, "kernel": 0, "skips": []},
        {"id": 1, "width": 6, "kernel": 0, "skips": [0]},
        {"id": 2, "width": 3, "kernel": 0, "skips": [3, 0]},
    ]
    rng = np.random.default_rng(0)
    weights = network.fresh(blocks, rng)
    for name in weights:  # a bias of 0 behind dead units stands on the kink itself
        weights[name] += 0.1 * rng.normal(size=weights[name].shape)
    x, labels = rng.normal(size=(9, 64)), rng.integers(10, size=9)

    def loss():
        return cross_entropy(network.forward(weights, blocks, x)["scores"], labels)

    seen = network.forward(weights, blocks, x)
    found = network.backward(weights, blocks, x, seen, digits.gradient(seen["scores"], labels))
    assert set(found) == set(weights)
    for (name, at), slope in slopes(weights, loss).items():
        assert slope == pytest.approx(found[name][at], abs=1e-6)


def test_two_generations_of_a_member_are_one_of_twice_the_length(example, monkeypatch):
    trial = example("pbt_digits", "trial")
    kept = []
    monkeypatch.setattr(trial.bq, "seed", lambda: 5)
    monkeypatch.setattr(trial.bq, "save_weights", lambda state: kept.append(copy.deepcopy(state)))
    monkeypatch.setattr(trial.bq, "load_weights", lambda: copy.deepcopy(kept[-1]) if kept else None)
    hyper = {"rate": 0.3, "momentum": 0.9, "decay": 1e-3}
    trial.train(hyper)
    trial.train(hyper)
    whole = trial.fresh(np.random.default_rng(5))
    trial.advance(whole, hyper, 2 * trial.STEPS)
    assert kept[-1]["step"] == whole["step"] == 120
    for part in ("model", "velocity"):
        for name, one in whole[part].items():
            np.testing.assert_array_equal(kept[-1][part][name], one)

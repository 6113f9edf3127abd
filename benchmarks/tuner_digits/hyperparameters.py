"""The study of tuners of hyperparameters: PBT, successive halving, Hyperband, ASHA.

A small network of numpy learns scikit-learn's digits from 300 noisy examples; searched are learning
rate, momentum, weight decay and input noise. The network is the same for all, so an epoch is an
epoch's core-seconds, and the budget is counted in epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.rows import Row
from benchmarks.tuner_digits.baseline import mean_valid, sweep
from benchmarks.tuner_digits.data import TEST, TRAIN, VALID, data
from benchmarks.tuner_digits.searching import Found, Outcome, search
from benchmarks.tuner_digits.verdict import judged
from tuners import make_builtin

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 3.0]},
    "momentum": {"_type": "uniform", "_value": [0.0, 0.99]},
    "decay": {"_type": "loguniform", "_value": [1e-6, 1e-1]},
    "noise": {"_type": "uniform", "_value": [0.0, 1.0]},
}
EPOCHS = 1600  # of all trials of a search together
SEEDS = range(5)
SWEEP = (20, 60, 120, 240)
GENERATION = 8
WIDTH, BATCH = 48, 30

State = tuple[np.ndarray, ...]


def fresh(dice: np.random.Generator) -> State:
    """Weights, and the momentum of each."""
    first = dice.normal(0.0, np.sqrt(2 / 64), (64, WIDTH))
    second = dice.normal(0.0, np.sqrt(1 / WIDTH), (WIDTH, 10))
    weights = (first, np.zeros(WIDTH), second, np.zeros(10))
    return (*weights, *(np.zeros_like(one) for one in weights))


def train(state: State, config: Mapping[str, Any], epochs: int, dice: np.random.Generator) -> State:
    """Stochastic gradient descent on the cross-entropy; the state that came in stays as it is."""
    all_pictures, all_digits = data()
    pictures, wanted = all_pictures[TRAIN], np.eye(10)[all_digits[TRAIN]]
    parts = [one.copy() for one in state]
    weights, speeds = parts[:4], parts[4:]
    for _ in range(epochs):
        order = dice.permutation(len(pictures))
        for start in range(0, len(order), BATCH):
            picked = order[start : start + BATCH]
            seen = pictures[picked]
            seen = seen + config["noise"] * dice.normal(size=seen.shape)
            hidden = np.maximum(0.0, seen @ weights[0] + weights[1])
            error = softmax(hidden @ weights[2] + weights[3]) - wanted[picked]
            error /= len(picked)
            back = (error @ weights[2].T) * (hidden > 0)
            gradients = (seen.T @ back, back.sum(0), hidden.T @ error, error.sum(0))
            for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
                speed *= config["momentum"]
                speed -= config["lr"] * (gradient + config["decay"] * weight)
                weight += speed
    return tuple(parts)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row by row."""
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def accuracy(state: State, part: slice) -> float:
    """The share of a part of the pictures that is read as it should be."""
    pictures, digits = data()
    hidden = np.maximum(0.0, pictures[part] @ state[0] + state[1])
    guessed = (hidden @ state[2] + state[3]).argmax(1)
    return float((guessed == digits[part]).mean())


@dataclass(frozen=True)
class Training:
    """The task; trials without a budget of their own train for ``epochs``."""

    epochs: int

    def cost(self, parameters: Mapping[str, Any]) -> float:
        if "budget" in parameters:
            return float(parameters["budget"] - parameters["budget_before"])
        return self.epochs

    def run(
        self, parameters: Mapping[str, Any], inherited: State | None, dice: np.random.Generator
    ) -> Outcome:
        state = fresh(dice) if inherited is None else inherited
        with np.errstate(all="ignore"):  # a rate that is too high overflows: it reads nothing
            state = train(state, parameters, int(self.cost(parameters)), dice)
            return Outcome(state, accuracy(state, VALID), accuracy(state, TEST))


def found_by(
    name: str, arguments: Mapping[str, Any], seed: int, epochs: int, budget: int, lookahead: int = 0
) -> Found:
    """What a built-in tuner finds within the budget."""
    tuner = make_builtin(name, {**arguments, "seed": seed})
    tuner.update_search_space(SPACE)
    return search(tuner, Training(epochs), seed, budget, lookahead)


def run(*, quick: bool = False) -> list[Row]:
    """One row a tuner; ``quick`` takes a tenth of the epochs, and gives no verdict."""
    budget = EPOCHS // 10 if quick else EPOCHS
    lengths = [epochs for epochs in SWEEP if epochs * 2 <= budget]
    baseline = sweep(
        lengths, SEEDS, lambda epochs, seed: found_by("Random", {}, seed, epochs, budget)
    )
    told = ", ".join(f"{length}: {mean_valid(of):.3f}" for length, of in baseline.found.items())
    more = f"; random search by epochs a trial: {told}; {budget} epochs a search"
    rows = []
    for name, arguments, lookahead in (
        ("PBT", {"population_size": 10}, 20),
        ("ASHA", {"min_budget": 8, "max_budget": 128, "eta": 4}, 0),
        ("Hyperband", {"max_budget": 81, "eta": 3}, 120),
    ):
        ours = [found_by(name, arguments, seed, GENERATION, budget, lookahead) for seed in SEEDS]
        one = judged(name, ours, baseline.best, more)
        rows.append({**one, "ok": None} if quick else one)
    return rows

"""Tuners that inherit, beside random search with as much training, on digits.

A small network of numpy learns scikit-learn's digits from 300 noisy examples; searched are learning
rate, momentum, weight decay and input noise. The network is the same for all, so an epoch is an
epoch's core-seconds, and the budget is counted in epochs: what a search finds is the same on
every machine. Random search trains every trial for the same number of epochs; which number is
chosen on the very seeds that are reported, in its favour.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.peers.surrogates import Best
from benchmarks.peers.virtual_time import Piece, lead
from benchmarks.rows import Row, row
from benchmarks.tuner_searches import Led
from tuners import make_builtin

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 3.0]},
    "momentum": {"_type": "uniform", "_value": [0.0, 0.99]},
    "decay": {"_type": "loguniform", "_value": [1e-6, 1e-1]},
    "noise": {"_type": "uniform", "_value": [0.0, 1.0]},
}
WORKERS = 4
EPOCHS = 1600  # of all trials of a search together
SEEDS = range(5)
WON = 4
SWEEP = (20, 60, 120, 240)
GENERATION = 8
WIDTH, BATCH = 48, 30
TARGET = f"better on ≥ {WON} of {len(SEEDS)} seeds"

State = tuple[np.ndarray, ...]


@cache
def data() -> tuple[np.ndarray, np.ndarray]:
    """Pictures, standardised and with noise added once, and digits; in a fixed order."""
    from sklearn.datasets import load_digits

    pictures, digits = load_digits(return_X_y=True)
    dice = np.random.default_rng(0)
    pictures = (pictures - pictures.mean()) / pictures.std()
    pictures += dice.normal(0.0, 1.0, pictures.shape)
    order = dice.permutation(len(digits))
    return pictures[order], digits[order]


TRAIN, VALID, TEST = slice(0, 300), slice(300, 1000), slice(1000, None)


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


class Search:
    """A tuner on digits; trials without a budget of their own train for ``epochs``."""

    def __init__(self, led: Led, seed: int, epochs: int) -> None:
        self.led, self.seed, self.epochs = led, seed, epochs
        self.saved: dict[str, State] = {}
        self.best = Best()

    def next(self) -> Piece | None:
        found = self.led.proposal()
        return None if found is None else Piece(self._epochs(found[1]), found)

    def _epochs(self, parameters: Mapping[str, Any]) -> int:
        if "budget" in parameters:
            return int(parameters["budget"] - parameters["budget_before"])
        return self.epochs

    def done(self, piece: Piece) -> None:
        trial, parameters = piece.what
        dice = np.random.default_rng([self.seed, trial])
        state = self.saved.get(parameters.get("restore_path", "")) or fresh(dice)
        with np.errstate(all="ignore"):  # a rate that is too high overflows: it reads nothing
            state = train(state, parameters, self._epochs(parameters), dice)
            valid, test = accuracy(state, VALID), accuracy(state, TEST)
        if "save_path" in parameters:
            self.saved[parameters["save_path"]] = state
        self.best.take(valid, test)
        self.led.over(trial, parameters, valid)


@dataclass(frozen=True)
class Found:
    """What a search found: the best accuracy it saw, and that network's on pictures unseen."""

    valid: float
    test: float


def search(
    name: str, arguments: Mapping[str, Any], seed: int, epochs: int, budget: int, lookahead: int = 0
) -> Found:
    """Lead a tuner to the end of the budget; a trial that would end behind it does not count."""
    tuner = make_builtin(name, {**arguments, "seed": seed})
    tuner.update_search_space(SPACE)
    one = Search(Led(tuner, lookahead), seed, epochs)
    lead(one, seed=seed, workers=WORKERS, horizon=budget / WORKERS)
    return Found(one.best.seen, one.best.true)


def run(*, quick: bool = False) -> list[Row]:
    """One row a tuner; ``quick`` takes a tenth of the epochs, and gives no verdict."""
    budget = EPOCHS // 10 if quick else EPOCHS
    sweep = {
        epochs: [search("Random", {}, seed, epochs, budget) for seed in SEEDS]
        for epochs in SWEEP
        if epochs * 2 <= budget / WORKERS
    }
    means = {
        epochs: statistics.fmean(one.valid for one in found) for epochs, found in sweep.items()
    }
    chosen = max(means, key=lambda epochs: means[epochs])
    told = ", ".join(f"{epochs}: {mean:.3f}" for epochs, mean in means.items())
    rows = []
    for name, arguments, lookahead in (
        ("PBT", {"population_size": 10}, 20),
        ("ASHA", {"min_budget": 8, "max_budget": 128, "eta": 4}, 0),
        ("Hyperband", {"max_budget": 81, "eta": 3}, 120),
    ):
        ours = [search(name, arguments, seed, GENERATION, budget, lookahead) for seed in SEEDS]
        one = judged(name, ours, sweep[chosen])
        one["detail"] += f"; random search by epochs a trial: {told}; {budget} epochs a search"
        rows.append({**one, "ok": None} if quick else one)
    return rows


def judged(name: str, ours: list[Found], baseline: list[Found]) -> Row:
    """The row of a tuner: on how many seeds its best is better than random search's."""
    pairs = list(zip(ours, baseline, strict=True))
    won = sum(own.valid > other.valid for own, other in pairs)
    tested = sum(own.test > other.test for own, other in pairs)

    def mean(found: list[Found]) -> str:
        valid = statistics.fmean(one.valid for one in found)
        return f"{valid:.3f} (test {statistics.fmean(one.test for one in found):.3f})"

    return row(
        f"{name} on digits against random search with as many epochs: best validation accuracy",
        TARGET,
        f"better on {won} of {len(pairs)}",
        won >= WON,
        f"mean {mean(ours)} against {mean(baseline)}; in test accuracy on {tested}",
    )

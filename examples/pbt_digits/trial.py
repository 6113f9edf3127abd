"""The trial: one generation of one member. It goes on with weights, optimiser and schedule."""

from __future__ import annotations

from typing import Any

import digits
import numpy as np

import trial_runtime as bq

STEPS, BATCH = 60, 50
PIXELS, WIDTH, CLASSES = 64, 32, 10

# By hand (python trial.py) there are no parameters.
BY_HAND = {"rate": 0.1, "momentum": 0.9, "decay": 1e-3}


def fresh(rng: np.random.Generator) -> dict[str, Any]:
    """All that a member goes on with: model, the optimiser's velocities, steps taken so far."""
    model = {
        "first": rng.normal(size=(PIXELS, WIDTH)) / np.sqrt(PIXELS),
        "bias": np.zeros(WIDTH),
        "second": rng.normal(size=(WIDTH, CLASSES)) / np.sqrt(WIDTH),
    }
    velocity = {name: np.zeros_like(one) for name, one in model.items()}
    return {"model": model, "velocity": velocity, "step": 0}


def train(parameters: dict[str, Any]) -> float:
    """The trial function that the experiment file names; what it returns is the final result."""
    parameters = {**BY_HAND, **parameters}
    state = bq.load_weights()
    if state is None:
        state = fresh(np.random.default_rng(bq.seed()))
    advance(state, parameters, STEPS)
    bq.save_weights(state)
    pictures, labels = digits.load()["validation"]
    return digits.share_right(forward(state["model"], pictures)[1], labels)


def advance(state: dict[str, Any], hyper: dict[str, Any], steps: int) -> None:
    """Trains in place. The hyperparameters are the trial's, whatever the state was trained with."""
    model, velocity = state["model"], state["velocity"]
    for step in range(int(state["step"]), int(state["step"]) + steps):
        # Of each step its own: batches do not depend on where a generation begins.
        rng = np.random.default_rng([bq.seed(), step])
        pictures, labels = digits.batch(rng, BATCH)
        hidden, scores = forward(model, pictures)
        slope = digits.gradient(scores, labels)
        back = (slope @ model["second"].T) * (hidden > 0)
        found = {"first": pictures.T @ back, "bias": back.sum(0), "second": hidden.T @ slope}
        warm = min(1.0, (step + 1) / 100)  # the schedule: where a member is in it is inherited
        for name, one in found.items():
            one = one + hyper["decay"] * model[name]
            velocity[name] = hyper["momentum"] * velocity[name] - hyper["rate"] * warm * one
            model[name] = model[name] + velocity[name]
    state["step"] = int(state["step"]) + steps


def forward(model: dict[str, np.ndarray], pictures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the hidden units and the scores are."""
    hidden = np.maximum(pictures @ model["first"] + model["bias"], 0)
    return hidden, hidden @ model["second"]


if __name__ == "__main__":
    bq.report_final(train(bq.get_parameters()))

"""A trial that trains step by step, dies once on the way, and goes on where it was."""

import os
import signal

import numpy as np

import trial_runtime as bq

STEPS = 8
DIES_AT = 5


def train(state, steps):
    """Momentum and noise: each step needs all of the state before it."""
    while state["step"] < steps:
        dice = np.random.Generator(np.random.PCG64())
        dice.bit_generator.state = state["dice"]
        gradient = dice.standard_normal(6) + 0.1 * state["weights"]
        state["momentum"] = 0.9 * state["momentum"] + gradient
        state["weights"] = state["weights"] - 0.05 * state["momentum"]
        state["dice"] = dice.bit_generator.state
        state["step"] += 1
        yield state


def beginning(seed):
    return {
        "step": 0,
        "weights": np.zeros(6),
        "momentum": np.zeros(6),
        "dice": _plain(np.random.PCG64(seed).state),
    }


def _plain(state):
    return {**state, "state": {k: str(v) for k, v in state["state"].items()}}


def numbers(state):
    return {**state, "state": {k: int(v) for k, v in state["state"].items()}}


def trial(parameters):
    state = bq.load_checkpoint() or beginning(bq.trial_id())
    began = state["step"]
    with open(os.path.join(bq.checkpoint_dir(), "began"), "a") as file:
        file.write(f"{bq.attempt()}:{began}\n")
    bq.save_artefact("began", f"{began}".encode())
    state["dice"] = numbers(state["dice"])
    for now in train(state, STEPS):
        bq.report_intermediate(float(now["step"]))
        bq.save_checkpoint({**now, "dice": _plain(now["dice"])})
        if bq.attempt() == 1 and now["step"] == DIES_AT:
            os.kill(os.getpid(), signal.SIGKILL)
    bq.report_final(float(state["weights"].sum()))

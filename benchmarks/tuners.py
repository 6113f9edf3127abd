"""What a tuner costs as an experiment grows: time and memory of its calls over 5,000 trials.

Every tuner of the catalogue is here (``tests/arch/test_tuner_measures.py``). ``python -m
benchmarks.tuners CASE …`` measures some and keeps nothing.
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from array import array
from typing import Any

from benchmarks.rows import Row, median, row
from tuners import NoMoreTrialError, ParentFailed, Tuner, make_builtin
from tuners.arguments import legal_arguments
from tuners.builtin import builtin_tuner
from tuners.testing import OpenGate, with_gate

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "units": {"_type": "randint", "_value": [8, 64]},
    "depth": {"_type": "quniform", "_value": [1, 9, 1]},
}
#: As large as they may become: what a proposal costs goes with the size of the network.
FULL = [{"width": 16, "kernel": 3}] * 8

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "Random": ("Random", {}),
    "GridSearch": ("GridSearch", {}),
    "RegularizedEvolution": ("RegularizedEvolution", {"population_size": 50, "sample_size": 10}),
    "the same in order": (
        "RegularizedEvolution",
        {"population_size": 50, "sample_size": 10, "asynchronous": False},
    ),
    "MorphingEvolution": ("MorphingEvolution", {"blocks": FULL, "max_blocks": 8, "max_width": 16}),
    "NetworkMorphism": ("NetworkMorphism", {"blocks": FULL, "max_blocks": 8, "max_width": 16}),
    "with crossover": (
        "MorphingEvolution",
        {"blocks": FULL, "max_blocks": 8, "max_width": 16, "crossover": 0.3},
    ),
    "PBT": ("PBT", {}),
    "Schedule": ("Schedule", {"schedule": [{"lr": 0.1}] * 5_000}),
    "SPOS": ("SPOS", {"generations": 200}),
    "ENAS": ("ENAS", {"operations": ["a", "b"], "layers": 2, "hidden": 4}),
    "Hyperband": ("Hyperband", {"max_budget": 27}),
    "BOHB": ("BOHB", {"max_budget": 27}),
    "ASHA": ("ASHA", {}),
    "Optuna": ("Optuna", {"sampler": "RandomSampler"}),
    "TPE": ("TPE", {}),
    "CMA-ES": ("CMA-ES", {}),
    "QMC": ("QMC", {}),
    "NSGA-II": ("NSGA-II", {}),
    "NSGA-III": ("NSGA-III", {}),
    "GP": ("GP", {"history": 40, "n_startup_trials": 10}),
}
#: For those that cannot search any space.
SPACES: dict[str, dict[str, Any]] = {
    "SPOS": {f"block {n}": {"_type": "randint", "_value": [0, 4]} for n in range(6)},
    "ENAS": {},
}

TRIALS = 5_000
#: A second a request: as many times its bound as the others have trials beyond theirs.
FEWER = {"GP": 300}
ABREAST = 8
BLOCK = 20


def run(*, quick: bool = False) -> list[Row]:
    """One row a tuner; ``quick`` takes a tenth of the trials."""
    return [_one(case, TRIALS // 10 if quick else TRIALS) for case in CASES]


def _one(case: str, trials: int) -> Row:
    trials = min(trials, FEWER.get(case, trials))
    times, grown = _lead(case, trials)
    fifth = trials // 5
    # The first calls of all import and warm up, and what is bounded has not reached its bound.
    early, late = _typical(times[fifth : 2 * fifth]), _typical(times[-fifth:])
    ratio = late / early
    return row(
        f"{case}: request, result and end, the last fifth of {trials:,} trials and the second",
        "≤ 1.2 ×",
        f"{early * 1e6:.0f} µs, {late * 1e6:.0f} µs: {ratio:.2f} ×, {grown:.0f} bytes a trial",
        ratio <= 1.2,
    )


def _typical(times: array[float]) -> float:
    """The median of blocks' means: many a tuner has requests of two kinds, dear and cheap, and
    the median of single ones falls on either side of the gap between them."""
    blocks = [times[start : start + BLOCK] for start in range(0, len(times), BLOCK)]
    return median([sum(block) / len(block) for block in blocks])


def _lead(case: str, trials: int) -> tuple[array[float], float]:
    """Seconds for each trial's calls, and bytes that each adds to what is kept from the second
    fifth on."""
    times, _ = _calls(case, trials)
    held = []
    for count in (2 * trials // 5, 4 * trials // 5):
        tracemalloc.start()
        try:
            _, tuner = _calls(case, count)
            held.append(tracemalloc.get_traced_memory()[0])
            del tuner
        finally:
            tracemalloc.stop()
    return times, (held[1] - held[0]) / (2 * trials // 5)


def _calls(case: str, trials: int) -> tuple[array[float], Tuner]:
    name, arguments = CASES[case]
    seed = {"seed": 5} if "seed" in legal_arguments(builtin_tuner(name)) else {}
    tuner = make_builtin(name, {**arguments, **seed})
    tuner.update_search_space(SPACES.get(name, SPACE))
    gate = OpenGate()
    with_gate(tuner, gate)
    dice = random.Random(1)
    running: dict[int, Any] = {}
    times = array("d", bytes(8 * trials))
    for number in range(trials):
        begun = time.perf_counter()
        try:
            running[number] = tuner.generate_parameters(number)
        except (NoMoreTrialError, ParentFailed):
            pass
        spent = time.perf_counter() - begun
        if len(running) >= ABREAST:
            trial = dice.choice(list(running))
            parameters, value = running.pop(trial), dice.random()
            begun = time.perf_counter()
            tuner.receive_trial_result(trial, parameters, value)
            tuner.trial_end(trial, True)
            spent += time.perf_counter() - begun
        times[number] = spent
        gate.waited.clear()  # what is measured is what the tuner keeps
    return times, tuner


if __name__ == "__main__":
    for wanted in sys.argv[1:] or CASES:
        one = _one(wanted, TRIALS)
        print(one["what"], one["measured"], flush=True)

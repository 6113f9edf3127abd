"""What a tuner costs as an experiment grows: time and memory of its calls over 5,000 trials."""

from __future__ import annotations

import random
import time
import tracemalloc
from array import array
from typing import Any

from benchmarks.rows import Row, median, row
from tuners import NoMoreTrialError, ParentFailed, Tuner, make_builtin

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
    "PBT": ("PBT", {}),
    "Hyperband": ("Hyperband", {"max_budget": 27}),
    "ASHA": ("ASHA", {}),
    "TPE": ("TPE", {}),
    "CMA-ES": ("CMA-ES", {}),
    "QMC": ("QMC", {}),
    "NSGA-II": ("NSGA-II", {}),
}
#: Their time goes with what Optuna looks through: every trial so far.
OPTUNA = {"TPE", "CMA-ES", "QMC", "NSGA-II"}

TRIALS = 5_000
WINDOW = 500
ABREAST = 8


class _OpenGate:
    """Everything that is waited for has ended."""

    def wait(self, parents: tuple[int, ...], mode: str, timeout: float | None) -> list[int]:
        return list(parents)


def run(*, quick: bool = False) -> list[Row]:
    """One row a tuner; ``quick`` takes a tenth of the trials."""
    trials, window = (TRIALS // 10, WINDOW // 10) if quick else (TRIALS, WINDOW)
    return [_one(case, trials, window) for case in CASES]


def _one(case: str, trials: int, window: int) -> Row:
    times, grown = _lead(case, trials, window)
    # The first calls of all import and warm up; what is compared are the second and the last.
    early, late = median(times[window : 2 * window]), median(times[-window:])
    ratio = late / early
    ours = case not in OPTUNA
    return row(
        f"{case}: request, result and end, trials {window:,} to {2 * window:,} and the last",
        "≤ 1.2 ×" if ours else "",
        f"{early * 1e6:.0f} µs, {late * 1e6:.0f} µs: {ratio:.2f} ×, {grown:.0f} bytes a trial",
        ratio <= 1.2 if ours else None,
        "" if ours else "Optuna's sampler looks through all trials so far",
    )


def _lead(case: str, trials: int, window: int) -> tuple[array[float], float]:
    """Seconds for each trial's calls, and bytes that each of them adds to what is kept."""
    times, _ = _calls(case, trials)
    held = []
    for count in (window, 4 * window):
        tracemalloc.start()
        try:
            _, tuner = _calls(case, count)
            held.append(tracemalloc.get_traced_memory()[0])
            del tuner
        finally:
            tracemalloc.stop()
    return times, max(0.0, (held[1] - held[0]) / (3 * window))


def _calls(case: str, trials: int) -> tuple[array[float], Tuner]:
    name, arguments = CASES[case]
    seed = {} if name == "GridSearch" else {"seed": 5}
    tuner = make_builtin(name, {**arguments, **seed})
    tuner.update_search_space(SPACE)
    tuner._bequeath_gate = _OpenGate()
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
    return times, tuner

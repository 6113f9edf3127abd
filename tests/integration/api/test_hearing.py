"""Functions of a script's own that are called in its process while it waits for a search."""

from __future__ import annotations

import os
import threading
import warnings
from pathlib import Path

import pytest

from dispatcher import Experiment
from dispatcher.queries import TrialSummary


def bests(values: list[float], before: float = float("inf")) -> list[float]:
    """Those that are lower than all before them."""
    return [value for at, value in enumerate(values) if value < min([before, *values[:at]])]


@pytest.mark.filterwarnings("always")
def test_a_caller_hears_of_each_end_once_and_a_raising_function_harms_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: what had ended before a resume is called for again; an exception ends it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "light.py").write_text("def run(parameters):\n    return parameters['x']\n")
    experiment = Experiment(
        trial="light:run",
        tuner="GridSearch",
        search_space={"x": {"_type": "choice", "_value": [3, 5, 1, 2, 0]}},
        trial_concurrency=1,
        max_trial_number=3,
        optimize_mode="minimize",
        experiment_working_directory="kept",
    )
    ends: list[tuple[int, float | None]] = []
    best: list[float | None] = []

    def end(trial: TrialSummary) -> None:
        assert threading.current_thread() is not threading.main_thread()
        ends.append((os.getpid(), trial.value))
        raise ValueError("not mine")

    with warnings.catch_warnings(record=True) as heard:
        experiment.run(quiet=True, on_trial_end=end, on_new_best=lambda one: best.append(one.value))
    values = [row["value"] for row in experiment.rows()]
    assert ends == [(os.getpid(), value) for value in values]
    assert len(values) == 3
    assert best == bests(values)
    assert [str(each.message) for each in heard] == [
        f"on_trial_end of trial {number} raised ValueError: not mine" for number in range(3)
    ]
    experiment.update("max_trial_number", 5)
    ends.clear()
    best.clear()
    experiment.run(quiet=True, on_trial_end=lambda one: ends.append((one.id, one.value)),
                   on_new_best=lambda one: best.append(one.value))  # fmt: skip
    later = [row["value"] for row in experiment.rows()][3:]
    assert ends == [*enumerate(later, 3)]
    assert best == bests(later, min(values))

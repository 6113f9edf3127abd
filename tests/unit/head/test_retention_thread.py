"""The thread beside the engine that asks before it removes."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dispatcher import retention
from dispatcher.experiment.loader import build_experiment
from dispatcher.folders import ExperimentFolder


def test_a_sweep_that_waits_for_an_engine_that_has_ended_is_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an answer nothing may be removed; and nobody waits for one that cannot come."""
    monkeypatch.setattr(retention, "ANSWER_S", 600.0)
    config = build_experiment(
        {
            "experimentName": "sweeping",
            "trialCommand": "true",
            "trialConcurrency": 1,
            "tuner": {"name": "random"},
            "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
            "trainingService": {"platform": "local"},
        }
    )
    asked = threading.Event()
    thread = retention.RetentionThread(
        config,
        ExperimentFolder(tmp_path),
        lambda kind, text: None,
        lambda event: asked.set(),
    )
    answers: list[tuple[int, ...]] = []
    sweep = threading.Thread(target=lambda: answers.append(thread._announce([1, 2])))
    sweep.start()
    assert asked.wait(60)
    thread.close()
    sweep.join(60)
    assert answers == [()]

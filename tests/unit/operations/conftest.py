"""Experiments of which the real core has filled the stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from tests.unit.queries.evolution import evolve, make_folder


@pytest.fixture(scope="session")
def evolved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of forty trials, for looking only."""
    folder = make_folder(tmp_path_factory.mktemp("base"))
    evolve(folder, 40)
    return folder


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An experiment of eight trials with a whole file, which may be changed."""
    home = tmp_path / "home"
    monkeypatch.setenv("BEQUEATH_HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = make_folder(home)
    evolve(made, 8)
    values = {
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
    }
    (made / "experiment.json").write_text(to_json(build_experiment(values, base_folder=made)))
    return made

"""Servers over experiments that the real core has written, and over one that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from tests.support.web_server import WebServer
from tests.unit.queries.evolution import evolve, make_folder

EXPERIMENT = "digits-abc123"


def laid_down(home: Path, trials: int = 40, ident: str = EXPERIMENT) -> Path:
    """Write an experiment with a whole file, whose trials are over."""
    folder = make_folder(home, id=ident)
    evolve(folder, trials)
    values = {
        "experimentName": "digits",
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
    }
    (folder / "experiment.json").write_text(to_json(build_experiment(values, base_folder=folder)))
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one experiment of forty trials."""
    home = tmp_path_factory.mktemp("home")
    laid_down(home)
    return home


@pytest.fixture(scope="module")
def server(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server over it."""
    server = WebServer(home, tmp_path_factory.mktemp("state"))
    yield server
    server.end()

"""The example digits_evolution, cut short, with real training: to be asked what digit it sees."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiments.creating import create
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.head.head import Head

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_evolution"


def train_digits(folder: Path, trials: int = 2) -> ExperimentHandle:
    """Run so many trials of the example, with a copy of its code, to their end."""
    code = Path(shutil.copytree(EXAMPLE, folder / "digits"))
    keys: dict[str, Any] = yaml.safe_load((code / "experiment.yml").read_text())
    keys |= {"maxTrialNumber": trials, "experimentWorkingDirectory": str(folder / "kept")}
    (code / "experiment.yml").write_text(json.dumps(keys))
    place = create(load_experiment(code / "experiment.yml"))
    assert Head(place).run() is Phase.COMPLETED
    return ExperimentHandle(place)

"""A real experiment that has ended, whose trials saved weights in numpy, and whose code may be
given any `infer` afterwards."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiments.creating import create
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.head.head import Head
from dispatcher.operations.answers import ModelAnswered
from dispatcher.operations.arguments import AskModel
from dispatcher.operations.operation import Context, perform
from dispatcher.operations.table import INFER

REPOSITORY = Path(__file__).parents[2]

TRIAL = """\
import os

import numpy as np

import trial_runtime as bq


def train(parameters):
    bq.save_weights({"w": np.full((4, 3), float(parameters["n"]), dtype=np.float32)})
    return float(parameters["n"])
"""

TUNER = """\
from tuners import Tuner


class Three(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        return {"n": parameter_id, "save_path": f"w/{parameter_id}"}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""

#: A demo that says what it got, and what of weights and surroundings it sees.
USUAL = """

def load_model(parameters):
    return {"w": bq.load_weights()["w"], "parameters": parameters}


def infer(model, request):
    return {
        "w": model["w"],
        "n": model["parameters"]["n"],
        "request": {k: len(v) if isinstance(v, bytes) else v for k, v in request.items()},
        "cwd": os.getcwd(),
        "secret": os.environ.get("TOKEN"),
        "pid": os.getpid(),
    }
"""


class TrainedSearch:
    """Three trials that have ended, of number n and with weights of n."""

    _offers = 0  # of the trials' module, so far

    def __init__(self, folder: Path, **keys: Any) -> None:
        self.code = folder / "code"
        self.code.mkdir(parents=True)
        self.offer(USUAL)
        (self.code / "tuner.py").write_text(TUNER)
        file = folder / "experiment.yml"
        settings = {
            "experimentName": "trained",
            "tuner": {"className": "tuner:Three", "codeDirectory": str(self.code)},
            "trialCodeDirectory": str(self.code),
            "trialFunction": "trial:train",
            "trialEnvironment": {"TOKEN": "env:TRAINED_TOKEN"},
            "trialConcurrency": 2,
            "maxTrialNumber": 3,
            "optimizeMode": "maximize",
            "experimentWorkingDirectory": str(folder / "kept"),
            "trainingService": {"platform": "local", "reuseMode": "none"},
            **keys,
        }
        file.write_text(json.dumps({k: v for k, v in settings.items() if v is not None}))
        os.environ.setdefault("TRAINED_TOKEN", "hunter-of-secrets")
        self.place = create(load_experiment(file))
        assert Head(self.place).run() is Phase.COMPLETED
        self.handle = ExperimentHandle(self.place)

    def offer(self, more: str) -> None:
        """Give the trials' module these functions."""
        module = self.code / "trial.py"
        module.write_text(TRIAL + more)
        # Python takes cached code for a text that is as long, and was written in the same second.
        self._offers += 1
        os.utime(module, (self._offers, self._offers))

    def ask(
        self, trial: int, request: dict[str, Any], context: Context | None = None, **more: Any
    ) -> ModelAnswered:
        """Ask a model, as all ways in do."""
        wish = AskModel(request=request, **more)
        return perform(INFER, context or Context(), wish, experiment=str(self.place), trial=trial)

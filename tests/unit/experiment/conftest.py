"""A folder with an experiment that holds, and ways to write one that does not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors, load_experiment

#: The platforms of ours, in the order in which people read them.
OURS = (
    "local, adaptdl, aiplatform, azureml, dlc, dlts, frameworkcontroller, kubeflow, kubernetes, "
    "nsml, openpai, ray, slurm, ssh, trainer, vertex"
)

GOOD = """\
searchSpace:
  lr: {_type: loguniform, _value: [0.0001, 0.1]}
tuner:
  name: Random
trialCommand: python3 -c 'print(1)'
trialConcurrency: 2
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file, paths count from the working directory: have a small one."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def good() -> dict[str, Any]:
    return {
        "searchSpace": {"lr": {"_type": "loguniform", "_value": [0.0001, 0.1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "python3 -c 'print(1)'",
        "trialConcurrency": 2,
    }


@pytest.fixture
def config(good: dict[str, Any]) -> ExperimentConfig:
    return ExperimentConfig.model_validate(good)


@pytest.fixture
def errors_of(tmp_path: Path) -> Callable[[str], list[str]]:
    """Load a text as ``e.yml`` and return its errors, the folder's own path taken out."""

    def errors(text: str, name: str = "e.yml") -> list[str]:
        file = tmp_path / name
        file.write_text(text)
        with pytest.raises(ExperimentFileErrors) as refused:
            load_experiment(file)
        return [str(e).replace(f"{tmp_path}/", "") for e in refused.value.errors]

    return errors

"""Files of NNI's in a folder of their own, with the code that they name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors, load_experiment
from tests.unit.experiment.conftest import _own_folder, config, errors_of, good  # noqa: F401

SPACE = '{"lr": {"_type": "loguniform", "_value": [1e-6, 0.1]}}'
OLD_SPACE = '{"lr": {"_type": "loguniform", "_value": [1e-6, 0.1]}, "n": {"_type": "randint", "_value": [9]}}'  # noqa: E501 - one line, for its places

V1 = """\
authorName: somebody
experimentName: old
trialConcurrency: 2
maxExecDuration: 1h
maxTrialNum: 10
trainingServicePlatform: local
searchSpacePath: space.json
useAnnotation: false
tuner:
  builtinTunerName: Random
trial:
  command: python3 train.py
  codeDir: code
  gpuNum: 0
"""

V2 = """\
experimentName: newer
search_space_file: space.json
trialCommand: python3 train.py
trialCodeDirectory: code
trialGpuNumber: 0
trialConcurrency: 2
maxTrialNumber: 10
tuner:
  className: waves.Waves
  codeDirectory: code
  classArgs: {size: 3}
trainingService:
  platform: local
"""


class Files:
    """Writes files into one folder and reads them as an experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        code = folder / "code"
        code.mkdir()
        (folder / "space.json").write_text(SPACE)
        (code / "train.py").write_text("import nni\n")
        (code / "waves.py").write_text("from nni.tuner import Tuner\nclass Waves(Tuner): pass\n")

    def write(self, text: str, name: str = "e.yml") -> Path:
        """Write an experiment file."""
        file = self.folder / name
        file.write_text(text)
        return file

    def load(self, text: str, remarks: list[str] | None = None) -> ExperimentConfig:
        """Read an experiment file."""
        said = remarks if remarks is not None else []
        return load_experiment(self.write(text), said.append)

    def errors(self, text: str) -> list[str]:
        """What is wrong with an experiment file, places without the folder."""
        with pytest.raises(ExperimentFileErrors) as refused:
            self.load(text)
        return [str(error).replace(f"{self.folder}/", "") for error in refused.value.errors]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


Load = Callable[[str], ExperimentConfig]

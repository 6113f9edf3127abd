"""Files of services, each an example of our own, and what reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.errors import ExperimentFileError
from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors, load_experiment
from dispatcher.experiment.loader import converted

KATIB = """\
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata:
  namespace: lab
  name: digits
spec:
  objective:
    type: maximize
    objectiveMetricName: accuracy
    additionalMetricNames: [loss]
  algorithm:
    algorithmName: random
    algorithmSettings:
      - {name: random_state, value: "7"}
  parallelTrialCount: 2
  maxTrialCount: 4
  parameters:
    - name: lr
      parameterType: double
      feasibleSpace: {min: "0.01", max: "0.05"}
    - name: num-layers
      parameterType: int
      feasibleSpace: {min: "2", max: "5"}
  trialTemplate:
    primaryContainerName: training
    trialParameters:
      - {name: learningRate, description: step width, reference: lr}
      - {name: layers, reference: num-layers}
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            restartPolicy: Never
            containers:
              - name: training
                image: example.org/digits:1
                command: [python3, train.py, "--lr=${trialParameters.learningRate}"]
                args: ["--layers", "${trialParameters.layers}"]
"""

AI_PLATFORM = """\
trainingInput:
  scaleTier: BASIC
  pythonModule: trainer.task
  args: [--epochs, "3"]
  region: us-central1
  hyperparameters:
    goal: MINIMIZE
    hyperparameterMetricTag: loss
    maxTrials: 6
    maxParallelTrials: 2
    algorithm: RANDOM_SEARCH
    params:
      - {parameterName: lr, type: DOUBLE, minValue: 0.0001, maxValue: 0.1, scaleType: UNIT_LOG_SCALE}
      - {parameterName: units, type: INTEGER, minValue: 16, maxValue: 64}
      - {parameterName: opt, type: CATEGORICAL, categoricalValues: [sgd, adam]}
      - {parameterName: batch, type: DISCRETE, discreteValues: [32, 64]}
"""  # noqa: E501 - one parameter a line

VERTEX_AI = """\
displayName: digits
maxTrialCount: 6
parallelTrialCount: 2
studySpec:
  metrics:
    - {metricId: accuracy, goal: MAXIMIZE}
  algorithm: RANDOM_SEARCH
  parameters:
    - {parameterId: lr, doubleValueSpec: {minValue: 0.001, maxValue: 0.1}, scaleType: UNIT_LOG_SCALE}
    - {parameterId: units, integerValueSpec: {minValue: "16", maxValue: "64"}}
trialJobSpec:
  workerPoolSpecs:
    - machineSpec: {machineType: n1-standard-4}
      replicaCount: 1
      containerSpec:
        imageUri: example.org/digits:1
        command: [python3, train.py]
        args: [--epochs, "3"]
        env: [{name: DATA, value: /data}]
"""  # noqa: E501 - one parameter a line


class Files:
    """Writes files into one folder and reads them as experiments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, text: str, name: str = "file.yaml") -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def load(self, text: str) -> ExperimentConfig:
        return load_experiment(self.write(text))

    def remarks(self, text: str) -> list[str]:
        remarks: list[str] = []
        load_experiment(self.write(text), remarks.append)
        return remarks

    def errors(self, text: str) -> list[ExperimentFileError]:
        with pytest.raises(ExperimentFileErrors) as raised:
            self.load(text)
        return list(raised.value.errors)

    def converted(self, text: str) -> str:
        native = converted(self.write(text))
        assert native is not None
        return native


def place_of(text: str, what: str) -> str:
    """``line:column`` of the first occurrence of a part of a file."""
    before = text[: text.index(what)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


@pytest.fixture
def files(tmp_path: Path) -> Files:
    (tmp_path / "train.py").write_text("")
    return Files(tmp_path)

"""Programs and files that know nothing of us: whole experiments with real processes."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core.model import Phase
from dispatcher.experiment import load_experiment
from dispatcher.experiment.loader import converted
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from dispatcher.notices import Notice
from dispatcher.queries import ExperimentReader, TrialDetail, list_trials, trial
from tests.support.checker import check_store
from tests.support.processes import end_processes_of


class Desktop:
    """A user's folder with a file and programs beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[Path] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, file: Path) -> list[TrialDetail]:
        """Run a file to its end; all of its trials."""
        config = load_experiment(file)
        kept = {"experiment_working_directory": self.folder / "kept", "retry_backoff": 0.0}
        folder = create(config.model_copy(update=kept))
        self.ran.append(folder)
        notices: list[Notice] = []
        assert Head(folder, on_notice=notices.append).run() is Phase.COMPLETED, notices
        assert check_store(folder / "journal.sqlite") == []
        with ExperimentReader.open(folder) as reader:
            return [trial(reader, each.id) for each in list_trials(reader)]


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    one = Desktop(tmp_path)
    yield one
    for folder in one.ran:
        end_processes_of(folder)


def reported(detail: TrialDetail) -> list[Any]:
    """What counted of the values of a trial before its final one."""
    return [each.value for each in detail.metrics if not each.final and each.counted]


def test_a_program_that_only_prints(desktop: Desktop) -> None:
    """It succeeds, is stopped early, fails once, or has no value. Mutations: a value of an attempt
    that failed counts; the head takes the end for a result; the assessor sees none of it."""
    desktop.write(
        "program.py",
        """
        import json, os, signal, sys
        x = int(sys.argv[1].removeprefix("--x="))
        assert json.load(open(os.environ["BEQUEATH_PARAMETERS"])) == {"x": x}
        print("a line of no use, x:", x)
        if x == 1:
            for epoch, (acc, loss) in enumerate(((0.1, 5), (0.3, 3), (0.2, 4))):
                print(f"epoch={epoch} acc={acc} loss = {loss}", flush=True)
        elif x == 2:
            print("acc=-1", flush=True)
            signal.pause()
        elif x == 3 and os.environ["BEQUEATH_ATTEMPT_NUMBER"] == "1":
            print("acc=0.9", flush=True)
            sys.exit(3)
        elif x == 3:
            print("acc=0.35")
        """,
    )
    desktop.write(
        "strict.py",
        """
        class Strict:
            def assess_trial(self, trial_job_id, trial_history):
                return trial_history[-1] >= 0
        """,
    )
    file = desktop.write(
        "experiment.yml",
        """
        searchSpace: {x: {_type: choice, _value: [1, 2, 3, 4]}}
        tuner: {name: GridSearch}
        assessor: {className: "strict:Strict", codeDirectory: ., keepResult: true}
        trialCommand: python3 program.py
        parametersAs: [arguments, file]
        metrics: {stdout: true, objective: acc, also: [loss], strategies: {loss: min}}
        trialConcurrency: 2
        maxTrialNumber: 4
        trialRetries: 1
        """,
    )
    by_x = {each.trial.parameters["x"]: each for each in desktop.run(file)}
    assert {x: each.trial.outcome for x, each in by_x.items()} == {
        1: "succeeded", 2: "stopped early", 3: "succeeded", 4: "succeeded"
    }  # fmt: skip
    assert reported(by_x[1]) == [
        {"default": acc, "loss": loss, "step": step}
        for step, (acc, loss) in enumerate(((0.1, 5), (0.3, 3), (0.2, 4)))
    ]
    assert by_x[1].trial.result == {"default": 0.2, "loss": 3, "step": 2}
    assert (by_x[2].trial.value, by_x[3].trial.value) == (-1, 0.35)
    assert [each.exit_code for each in by_x[3].attempts] == [3, 0]
    assert by_x[4].trial.value is None
    assert by_x[4].attempts[0].text == "no value of 'acc' was in its output"


KATIB = """\
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {namespace: lab, name: digits}
spec:
  objective:
    type: minimize
    objectiveMetricName: validation-loss
    additionalMetricNames: [accuracy]
    metricStrategies:
      - {name: accuracy, value: latest}
  algorithm:
    algorithmName: random
    algorithmSettings: [{name: random_state, value: "7"}]
  parallelTrialCount: 2
  maxTrialCount: 3
  parameters:
    - {name: lr, parameterType: double, feasibleSpace: {min: "0.1", max: "0.2"}}
    - {name: optimizer, parameterType: categorical, feasibleSpace: {list: [sgd, adam]}}
  metricsCollectorSpec:
    source:
      fileSystemPath: {path: /var/log/metrics.log, kind: File, format: JSON}
    collector: {kind: File}
  trialTemplate:
    primaryContainerName: training
    trialParameters:
      - {name: learningRate, reference: lr}
      - {name: optimizer, reference: optimizer}
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
                command: [python3, train.py]
                args: ["--lr=${trialParameters.learningRate}", --log, METRICS]
                env: [{name: OPTIMIZER, value: "${trialParameters.optimizer}"}]
"""


def test_an_experiment_of_katib(desktop: Desktop) -> None:
    """Its trials print what its collector's default filter finds. Mutation: the last value is the
    final one, where Katib takes the best."""
    text = KATIB.replace("  metricsCollectorSpec:\n", "")
    start, end = text.index("    source:"), text.index("  trialTemplate:")
    file = desktop.write("katib.yaml", text[:start] + text[end:])
    desktop.write(
        "train.py",
        """
        import os, sys
        lr = float(sys.argv[1].removeprefix("--lr="))
        assert os.environ["OPTIMIZER"] in ("sgd", "adam") and sys.argv[2:] == ["--log", "METRICS"]
        for loss in (lr + 1, lr, lr + 0.5):
            print(f"2026-01-02T03:04:05Z INFO validation-loss={loss} accuracy={1 - loss}")
        """,
    )
    for each in desktop.run(file):
        lr = each.trial.parameters["lr"]
        assert 0.1 <= lr <= 0.2
        assert [value["default"] for value in reported(each)] == [lr + 1, lr, lr + 0.5]
        assert each.trial.result == {"default": lr, "accuracy": 1 - (lr + 0.5)}


HYPERTUNE = """
import collections, json, os, time

class HyperTune:
    def __init__(self):
        self.queue = collections.deque(maxlen=100)

    def report_hyperparameter_tuning_metric(
        self, hyperparameter_metric_tag, metric_value, global_step=None, checkpoint_path=""
    ):
        self.queue.append({
            "timestamp": time.time(), "trial": os.environ["CLOUD_ML_TRIAL_ID"],
            hyperparameter_metric_tag: str(float(metric_value)),
            "global_step": str(global_step or 0), "checkpoint_path": checkpoint_path,
        })
        with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
            for each in self.queue:
                print(json.dumps(each, sort_keys=True), file=file)
"""


def test_a_job_of_ai_platform_and_the_file_that_it_is_converted_to(desktop: Desktop) -> None:
    """Mutations: the folder of a job is nobody's, or the same for all trials."""
    desktop.write("trainer/__init__.py", "")
    desktop.write("trainer/hypertune.py", HYPERTUNE)
    desktop.write(
        "trainer/task.py",
        """
        import argparse, os
        from trainer import hypertune

        parser = argparse.ArgumentParser()
        parser.add_argument("--job-dir", required=True)
        parser.add_argument("--epochs", type=int)
        parser.add_argument("--units", type=int)
        parser.add_argument("--rate", type=float)
        given = parser.parse_args()
        open(os.path.join(given.job_dir, "model"), "x").close()
        reporter = hypertune.HyperTune()
        for epoch in range(given.epochs):
            reporter.report_hyperparameter_tuning_metric("loss", given.units + epoch, epoch + 1)
        """,
    )
    job = desktop.write(
        "config.yaml",
        """
        trainingInput:
          scaleTier: CUSTOM
          masterType: n1-standard-4
          region: us-central1
          jobDir: gs://bucket/digits
          pythonModule: trainer.task
          args: [--epochs, "3"]
          hyperparameters:
            goal: MINIMIZE
            hyperparameterMetricTag: loss
            maxTrials: 3
            maxParallelTrials: 2
            algorithm: GRID_SEARCH
            params:
              - {parameterName: units, type: INTEGER, minValue: 16, maxValue: 17}
              - {parameterName: rate, type: DISCRETE, discreteValues: [0.5, 2]}
        """,
    )
    native = converted(job)
    assert native is not None
    ran = desktop.run(desktop.write("native.yml", native))
    parameters = [each.trial.parameters for each in ran]
    assert len({(one["units"], one["rate"]) for one in parameters}) == 3
    assert load_experiment(job) == load_experiment(desktop.folder / "native.yml")
    for each in ran:
        units = each.trial.parameters["units"]
        assert reported(each) == [{"default": units + n, "step": n + 1} for n in range(3)]
        assert each.trial.result == {"default": units + 2, "step": 3}
        attempt = desktop.ran[0] / "trials" / str(each.trial.id) / "1"
        assert len([path for path in attempt.rglob("model") if path.is_file()]) == 1


def test_a_job_of_vertex_ai_with_parameters_below_others(desktop: Desktop) -> None:
    """Mutation: a parameter of a branch that was not drawn is given, or none is."""
    desktop.write("hypertune.py", HYPERTUNE)
    desktop.write(
        "train.py",
        """
        import argparse, os, hypertune
        parser = argparse.ArgumentParser()
        parser.add_argument("--model")
        parser.add_argument("--depth", type=int)
        parser.add_argument("--width", type=float)
        given = parser.parse_args()
        assert (given.depth is None) == (given.model == "mlp") == (given.width is not None)
        assert os.environ["DATA"] == "/data"
        hypertune.HyperTune().report_hyperparameter_tuning_metric(
            "accuracy", given.depth or given.width
        )
        """,
    )
    file = desktop.write(
        "hptuning.json",
        """
        {
          "seed": 1, "displayName": "digits", "maxTrialCount": 6, "parallelTrialCount": 2,
          "studySpec": {
            "algorithm": "RANDOM_SEARCH",
            "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
            "parameters": [{
              "parameterId": "model",
              "categoricalValueSpec": {"values": ["tree", "mlp"]},
              "conditionalParameterSpecs": [
                {
                  "parentCategoricalValues": {"values": ["tree"]},
                  "parameterSpec": {
                    "parameterId": "depth", "integerValueSpec": {"minValue": "2", "maxValue": "9"}
                  }
                },
                {
                  "parentCategoricalValues": {"values": ["mlp"]},
                  "parameterSpec": {
                    "parameterId": "width", "doubleValueSpec": {"minValue": 16, "maxValue": 64},
                    "scaleType": "UNIT_LOG_SCALE"
                  }
                }
              ]
            }]
          },
          "trialJobSpec": {"workerPoolSpecs": [{
            "replicaCount": "1",
            "machineSpec": {"machineType": "n1-standard-4"},
            "containerSpec": {
              "imageUri": "example.org/digits:1", "command": ["python3", "train.py"],
              "env": [{"name": "DATA", "value": "/data"}]
            }
          }]}
        }
        """,
    )
    ran = desktop.run(file)
    assert [each.trial.outcome for each in ran] == ["succeeded"] * 6
    values = [each.trial.value for each in ran]
    assert any(value < 10 for value in values)
    assert any(value > 15 for value in values)

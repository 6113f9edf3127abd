"""A file of Katib from the command line: what is read of it, run and converted."""

from __future__ import annotations

import pytest
import yaml

from dispatcher.cli.exit_codes import ExitCode
from tests.integration.cli.conftest import Place

KATIB = """\
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: digits}
spec:
  objective: {type: maximize, goal: 9.9, objectiveMetricName: accuracy}
  algorithm: {algorithmName: grid}
  parallelTrialCount: 2
  maxTrialCount: 2
  parameters:
    - {name: x, parameterType: int, feasibleSpace: {min: "1", max: "2"}}
  trialTemplate:
    trialParameters: [{name: number, reference: x}]
    trialSpec:
      apiVersion: batch/v1
      kind: Job
      spec:
        template:
          spec:
            containers:
              - name: training
                image: example.org/digits:1
                command: [python3, -c, "print('accuracy=${trialParameters.number}')"]
"""


@pytest.fixture
def katib(place: Place) -> Place:
    (place.folder / "katib.yaml").write_text(KATIB)
    return place


def test_a_file_of_katib_runs_as_it_is(katib: Place) -> None:
    """Mutation: what has no effect is not named."""
    out, err = katib.both("run", "katib.yaml")
    assert out.startswith("digits completed")
    assert "2 trials: 2 succeeded" in out
    assert "image" in err
    assert katib.json("best")["trials"][0]["value"] == 2.0


def test_it_converts_to_a_file_of_ours_and_mistakes_have_places(katib: Place) -> None:
    native = katib("convert", "katib.yaml")
    assert yaml.safe_load(native)["metrics"]["objective"] == "accuracy"
    assert yaml.safe_load(native)["stopWhen"] == {"target": 9.9}
    wrong = KATIB.replace("reference: x", "reference: y").replace("grid", "gradient")
    (katib.folder / "katib.yaml").write_text(wrong)
    err = katib("run", "katib.yaml", code=ExitCode.USER)
    assert "katib.yaml:6:30" in err
    assert "katib.yaml:12:49" in err

"""Tuning jobs of AI Platform Training and Vertex AI: what becomes of them, and what is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.unit.foreign_files.conftest import AI_PLATFORM, VERTEX_AI, Files, place_of

METRICS = {"stdout": False, "hypertune": True}


@pytest.fixture(autouse=True)
def trainer(files: Files) -> None:
    (files.folder / "trainer").mkdir()
    (files.folder / "trainer" / "task.py").write_text("")


def test_a_training_job_becomes_an_experiment_of_ours(files: Files) -> None:
    config = files.load(AI_PLATFORM)
    assert (config.trial_concurrency, config.max_trial_number) == (2, 6)
    assert (config.tuner.name, config.optimize_mode) == ("Random", "minimize")
    assert config.search_space == {
        "lr": {"_type": "loguniform", "_value": [0.0001, 0.1]},
        "units": {"_type": "randint", "_value": [16, 65]},
        "opt": {"_type": "choice", "_value": ["sgd", "adam"]},
        "batch": {"_type": "choice", "_value": [32, 64]},
    }
    assert config.trial_command == "python3 -m trainer.task --epochs 3"
    assert config.parameters_as == ("arguments",)
    assert config.metrics is not None
    assert (config.metrics.hypertune, config.metrics.objective) == (True, "loss")
    assert config.assessor is None


def test_it_may_be_a_whole_job_json_snake_case_or_its_input_alone(files: Files) -> None:
    """As gcloud, the REST interface and Python's client write it."""
    plain = YAML(typ="safe", pure=True).load(AI_PLATFORM)
    inner = plain["trainingInput"]
    job = json.dumps({"jobId": "digits_1", "labels": {"a": "b"}, **plain}, indent="\t")
    assert files.load(job).experiment_name == "digits_1"
    alone = files.load(json.dumps(inner))
    snake = AI_PLATFORM.replace("trainingInput", "training_input").replace(
        "maxParallelTrials", "max_parallel_trials"
    )
    for other in (alone, files.load(snake)):
        assert other.model_dump() == files.load(AI_PLATFORM).model_dump()


def test_what_google_takes_by_itself_is_taken(files: Files) -> None:
    text = AI_PLATFORM
    for line in ("goal: MINIMIZE", "hyperparameterMetricTag: loss", "maxTrials: 6",
                 "maxParallelTrials: 2", "algorithm: RANDOM_SEARCH"):  # fmt: skip
        text = text.replace(f"    {line}\n", "")
    config = files.load(text)
    assert (config.trial_concurrency, config.max_trial_number) == (1, 1)
    assert (config.tuner.name, config.optimize_mode) == ("TPE", "maximize")
    assert config.metrics is not None
    assert config.metrics.objective == "training/hptuning/metric"
    assert "TPE stands in for Google's own search (Vizier)" in files.remarks(text)


def test_early_stops_failures_and_earlier_jobs(files: Files) -> None:
    more = (
        "    enableTrialEarlyStopping: true\n    maxFailedTrials: 3\n    resumePreviousJobId: a\n"
    )
    text = AI_PLATFORM.replace("    params:\n", f"{more}    params:\n")
    config = files.load(text)
    assert config.assessor is not None
    assert (config.assessor.name, config.assessor.keep_result) == ("Medianstop", True)
    assert config.max_failed_trials_in_a_row == 3
    remarks = "\n".join(files.remarks(text))
    assert "'trainingInput.hyperparameters.resumePreviousJobId' has no effect here" in remarks
    assert "bequeath experiment import" in remarks
    quiet = text.replace("Stopping: true", "Stopping: false").replace("Trials: 3", "Trials: 0")
    config = files.load(quiet)
    assert config.assessor is None
    assert config.max_failed_trials_in_a_row is None


@pytest.mark.parametrize(
    "job_dir, argument",
    [
        ("gs://bucket/job", '--job-dir="${BEQUEATH_TRIAL_FOLDER}"'),
        ("/srv/my jobs/", """--job-dir='/srv/my jobs'/"${BEQUEATH_TRIAL}\""""),
    ],
)
def test_a_job_dir_is_a_folder_of_each_trials_own(
    files: Files, job_dir: str, argument: str
) -> None:
    text = AI_PLATFORM.replace("  region", f"  jobDir: {job_dir}\n  region")
    command = files.load(text).trial_command
    assert command is not None
    assert command.endswith(f" {argument}")


def test_fields_may_have_underscores(files: Files) -> None:
    """As Google's own APIs take them. Mutation: a part of the fields is not found then."""
    text = re.sub("(?<=[a-z])([A-Z])(?=[a-z])", lambda match: f"_{match[1].lower()}", AI_PLATFORM)
    assert "{parameter_name: units, type: INTEGER, min_value: 16" in text
    assert files.load(text) == files.load(AI_PLATFORM)


def test_tiers_and_machines(files: Files) -> None:
    gpu = files.load(AI_PLATFORM.replace("BASIC", "BASIC_GPU"))
    assert gpu.trial_needs.trial_gpu_number == 1
    several = AI_PLATFORM.replace("BASIC", "STANDARD_1")
    assert "'scaleTier' STANDARD_1: a trial is one process here" in files.remarks(several)
    custom = AI_PLATFORM.replace(
        "  scaleTier: BASIC\n",
        "  scaleTier: CUSTOM\n  masterType: n1-standard-8\n  workerCount: '2'\n"
        "  masterConfig: {acceleratorConfig: {count: '2', type: NVIDIA_TESLA_K80}}\n",
    )
    assert files.load(custom).trial_needs.trial_gpu_number == 2
    assert any("'trainingInput.workerCount' has no" in each for each in files.remarks(custom))
    (error,) = files.errors(AI_PLATFORM.replace("BASIC", "BASIC_TPU"))
    assert "TPUs are Google's" in error.message


def test_a_container_has_its_own_command(files: Files) -> None:
    text = AI_PLATFORM.replace(
        "  pythonModule: trainer.task\n",
        "  masterConfig: {imageUri: x, containerCommand: [python3, train.py], "
        "containerArgs: [a b]}\n",
    )
    assert files.load(text).trial_command == "python3 train.py 'a b' --epochs 3"


def test_without_a_module_the_file_may_have_our_key(files: Files) -> None:
    """As gcloud is given it on the command line."""
    text = AI_PLATFORM.replace("  pythonModule: trainer.task\n", "")
    (error,) = files.errors(text)
    assert "has neither 'pythonModule' nor a 'containerCommand'" in error.message
    config = files.load(f"{text}trialCommand: python3 train.py\ntrialCodeDirectory: .\n")
    assert config.trial_command == "python3 train.py"
    assert config.parameters_as == ("arguments",)


@pytest.mark.parametrize(
    "old, new, wrong, at",
    [
        ("minValue: 16", "minValue: 16.5", "the 'minValue' 16.5, which is not a whole number",
         "units"),
        ("minValue: 0.0001, ", "", "needs 'minValue'", "lr"),
        ("minValue: 0.0001", "minValue: 0", "begins at 0, which must be above 0", "lr"),
        ("type: DOUBLE", "type: REAL", "has the type 'REAL'; there are DOUBLE", "lr"),
        ("UNIT_LOG_SCALE", "LOG", "has the scale 'LOG'", "lr"),
        ("[sgd, adam]", "[sgd, 3]", "has the value 3, which is not text", "opt"),
        ("[32, 64]", "[]", "names no values", "batch"),
        ("parameterName: units", "parameterName: lr", "is 'lr' twice", "lr, type: INTEGER"),
        ("goal: MINIMIZE", "goal: LEAST", "'goal' is 'LEAST'", "LEAST"),
        ("maxTrials: 6", "maxTrails: 6", "is no field of trainingInput.hyperparameters",
         "maxTrails"),
        ("algorithm: RANDOM_SEARCH", "algorithm: BEST", "'algorithm' is 'BEST'", "BEST"),
        ("maxTrials: 6", "maxTrials: 0", "'trainingInput.hyperparameters.maxTrials' must be at",
         "0\n    maxParallel"),
    ],
)  # fmt: skip
def test_each_refusal_has_its_place(files: Files, old: str, new: str, wrong: str, at: str) -> None:
    text = AI_PLATFORM.replace(old, new, 1)
    (error,) = files.errors(text)
    assert wrong in error.message
    assert error.where == f"{files.folder}/file.yaml:{place_of(text, at)}"


def test_a_reversed_scale_is_named(files: Files) -> None:
    text = AI_PLATFORM.replace("UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")
    assert files.load(text).search_space["lr"]["_type"] == "uniform"
    assert any("UNIT_REVERSE_LOG_SCALE" in remark for remark in files.remarks(text))


def test_a_tuning_job_becomes_an_experiment_of_ours(files: Files) -> None:
    config = files.load(VERTEX_AI)
    assert config.experiment_name == "digits"
    assert (config.trial_concurrency, config.max_trial_number) == (2, 6)
    assert (config.tuner.name, config.optimize_mode) == ("Random", "maximize")
    assert config.search_space == {
        "lr": {"_type": "loguniform", "_value": [0.001, 0.1]},
        "units": {"_type": "randint", "_value": [16, 65]},
    }
    assert config.trial_command == "python3 train.py --epochs 3"
    assert config.trial_environment == {"DATA": "/data"}
    assert config.parameters_as == ("arguments",)
    metrics = config.metrics
    assert metrics is not None
    assert (metrics.hypertune, metrics.objective, metrics.strategies) == (True, "accuracy", {})


def with_parameters(text: str) -> str:
    """The file with other parameters."""
    start, end = VERTEX_AI.index("    - {parameterId: lr"), VERTEX_AI.index("trialJobSpec")
    return VERTEX_AI[:start] + text + VERTEX_AI[end:]


NESTED = """\
    - parameterId: opt
      categoricalValueSpec: {values: [sgd, adam]}
      conditionalParameterSpecs:
      - parentCategoricalValues: {values: [sgd]}
        parameterSpec: {parameterId: momentum, doubleValueSpec: {minValue: 0, maxValue: 1}}
      - parentCategoricalValues: {values: [sgd, adam]}
        parameterSpec:
          parameterId: layers
          integerValueSpec: {minValue: 1, maxValue: 2}
          conditionalParameterSpecs:
          - parentIntValues: {values: ["2"]}
            parameterSpec: {parameterId: units, discreteValueSpec: {values: [16, 32]}}
"""


def test_conditional_parameters_are_a_nested_choice(files: Files) -> None:
    layers: dict[str, Any] = {
        "_type": "choice",
        "_value": [
            {"_name": "1"},
            {"_name": "2", "units": {"_type": "choice", "_value": [16, 32]}},
        ],
    }
    momentum = {"_type": "uniform", "_value": [0, 1]}
    config = files.load(with_parameters(NESTED))
    assert config.search_space == {
        "opt": {
            "_type": "choice",
            "_value": [
                {"_name": "sgd", "momentum": momentum, "layers": layers},
                {"_name": "adam", "layers": layers},
            ],
        }
    }


@pytest.mark.parametrize(
    "old, new, wrong, at",
    [
        ("{values: [sgd]}", "{values: [sgdd]}", "below 'sgdd', which is none of its values",
         "opt\n"),
        ("parentCategoricalValues: {values: [sgd]}", "parentIntValues: {values: [1]}",
         "without 'parentCategoricalValues'", "opt\n"),
        ("parameterId: momentum", "parameterId: layers", "has 'layers' twice below 'sgd'",
         "opt\n"),
        ("maxValue: 2}", "maxValue: 2000}", "more than 100 values", "layers\n"),
        ("categoricalValueSpec: {values: [sgd, adam]}",
         "doubleValueSpec: {minValue: 0, maxValue: 1}", "may have any of a range", "opt\n"),
        ("discreteValueSpec: {values: [16, 32]}", "doubleValueSpec: {maxValue: 1}",
         "needs 'minValue'", "units"),
        ("discreteValueSpec: {values: [16, 32]}", "scaleType: X",
         "needs one of categoricalValueSpec", "units"),
        ("parameterId: units,", "parameterId: units, step: 1,", "is no field of", "step"),
        ("{values: [16, 32]}", "{values: [16, 32], value: 3}", "is no field of", "value: 3"),
        ("parameterSpec: {parameterId: units",
         "when: x\n            parameterSpec: {parameterId: units", "is no field of", "when"),
    ],
)  # fmt: skip
def test_a_nested_space_that_is_none_is_refused(
    files: Files, old: str, new: str, wrong: str, at: str
) -> None:
    text = with_parameters(NESTED.replace(old, new, 1))
    (error,) = [each for each in files.errors(text) if wrong in each.message]
    assert error.where == f"{files.folder}/file.yaml:{place_of(text, at)}"


def test_several_metrics_are_several_objectives_for_tpe(files: Files) -> None:
    metrics = "    - {metricId: accuracy, goal: MAXIMIZE}\n    - {metricId: ms, goal: MINIMIZE}\n"
    text = VERTEX_AI.replace("    - {metricId: accuracy, goal: MAXIMIZE}\n", metrics)
    config = files.load(text.replace("  algorithm: RANDOM_SEARCH\n", ""))
    wanted = {"default": "maximize", "ms": "minimize"}
    assert (config.tuner.name, config.tuner.class_args) == ("TPE", {"objectives": wanted})
    assert config.metrics is not None
    assert config.metrics.also == ("ms",)
    assert any("Random has no use for goals" in remark for remark in files.remarks(text))


@pytest.mark.parametrize(
    "field, stands_in",
    [
        ("medianAutomatedStoppingSpec: {}", False),
        ("decayCurveStoppingSpec: {useElapsedDuration: true}", True),
        ("convexAutomatedStoppingSpec: {minStepCount: 3}", True),
    ],
)
def test_early_stops_are_an_assessor(files: Files, field: str, stands_in: bool) -> None:
    text = VERTEX_AI.replace("  algorithm:", f"  {field}\n  algorithm:")
    config = files.load(text)
    assert config.assessor is not None
    assert (config.assessor.name, config.assessor.keep_result) == ("Medianstop", True)
    remarks = "\n".join(files.remarks(text))
    assert ("Medianstop stands in for" in remarks) == stands_in
    assert ("not by elapsed time" in remarks) == ("useElapsed" in field)


def test_the_best_measurement_may_count(files: Files) -> None:
    kind = "  measurementSelectionType: BEST_MEASUREMENT\n  algorithm:"
    config = files.load(VERTEX_AI.replace("  algorithm:", kind))
    assert config.metrics is not None
    assert config.metrics.strategies == {"accuracy": "max"}


def test_pools_packages_and_schedules(files: Files) -> None:
    start = VERTEX_AI.index("      containerSpec")
    package = """\
      pythonPackageSpec:
        executorImageUri: x
        packageUris: [gs://bucket/trainer.tar.gz]
        pythonModule: trainer.task
        args: [--epochs, 3]
    - {machineSpec: {machineType: n1-standard-4}, replicaCount: 3}
  scheduling: {timeout: 3600s, disableRetries: true, strategy: SPOT}
  baseOutputDirectory: {outputUriPrefix: gs://bucket/out}
"""
    machine = "{machineType: a, acceleratorType: NVIDIA_TESLA_T4, acceleratorCount: 2}"
    text = VERTEX_AI[:start].replace("{machineType: n1-standard-4}", machine) + package
    config = files.load(text)
    assert config.trial_command == "python3 -m trainer.task --epochs 3"
    assert (config.max_trial_duration, config.trial_retries) == (3600.0, 0)
    assert config.trial_needs.trial_gpu_number == 2
    remarks = "\n".join(files.remarks(text))
    assert "a trial is one process, of the first pool" in remarks
    assert "packageUris' has no effect here" in remarks
    assert "BEQUEATH_TRIAL_FOLDER" in remarks
    (error,) = files.errors(text.replace("NVIDIA_TESLA_T4", "TPU_V3"))
    assert "TPUs are Google's" in error.message


@pytest.mark.parametrize(
    "old, new, wrong",
    [
        ("        command: [python3, train.py]\n", "", "names no command"),
        ("  metrics:\n    - {metricId: accuracy, goal: MAXIMIZE}\n", "", "has no 'metrics'"),
        ("maxTrialCount", "maxTrialsCount", "unknown key 'maxTrialsCount'"),
        ("machineType:", "machineKind:", ""),
    ],
)
def test_a_job_that_lacks_something_is_refused(
    files: Files, old: str, new: str, wrong: str
) -> None:
    text = VERTEX_AI.replace(old, new, 1)
    if not wrong:
        files.load(text)  # any field of a machine is Google's
        return
    errors = files.errors(text)
    assert any(wrong in each.message for each in errors), errors


@pytest.mark.parametrize("text", [AI_PLATFORM, VERTEX_AI], ids=["ml.v1", "vertex"])
def test_a_conversion_is_the_same_experiment(files: Files, text: str) -> None:
    native = files.converted(text)
    here, there = files.load(text), files.load(native)
    assert here.model_dump() == there.model_dump()
    assert "region" in native or "machineType" in native

"""Experiments of Katib: what becomes of them, and what is refused at its place."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.unit.foreign_files.conftest import KATIB, Files, place_of

NUMBERS = """\
    - name: num-layers
      parameterType: int
      feasibleSpace: {min: "2", max: "5"}
"""


def with_space(text: str) -> str:
    """The file with another second parameter."""
    return KATIB.replace(NUMBERS, f"    - {{name: num-layers, {text}}}\n")


def test_an_experiment_becomes_one_of_ours(files: Files) -> None:
    config = files.load(KATIB)
    assert config.experiment_name == "digits"
    assert (config.trial_concurrency, config.max_trial_number) == (2, 4)
    assert (config.tuner.name, config.tuner.class_args) == ("Random", {"seed": 7})
    assert config.optimize_mode == "maximize"
    assert config.search_space == {
        "lr": {"_type": "uniform", "_value": [0.01, 0.05]},
        "num-layers": {"_type": "randint", "_value": [2, 6]},
    }
    assert config.trial_command == (
        "python3 train.py --lr=${trialParameters.lr} --layers ${trialParameters.num-layers}"
    )
    metrics = config.metrics
    assert metrics is not None
    assert (metrics.stdout, metrics.stderr, metrics.objective) == (True, True, "accuracy")
    assert metrics.also == ("loss",)
    assert metrics.strategies == {"accuracy": "max", "loss": "max"}, "as Katib's defaults have it"
    assert [service.platform for service in config.services] == ["local"]


@pytest.mark.parametrize(
    "space, ours",
    [
        (
            'parameterType: int, feasibleSpace: {min: "1", max: "64", distribution: logUniform}',
            {"_type": "qloguniform", "_value": [1, 64, 1]},
        ),
        (
            'parameterType: int, feasibleSpace: {min: "2", max: "9", step: "3"}',
            {"_type": "choice", "_value": [2, 5, 8]},
        ),
        (
            'parameterType: double, feasibleSpace: {min: "0.5", max: "2", step: "0.5"}',
            {"_type": "quniform", "_value": [0.5, 2.0, 0.5]},
        ),
        (
            'parameterType: double, feasibleSpace: {min: "0.1", max: "0.5", step: "0.2"}',
            {"_type": "choice", "_value": [0.1, 0.3, 0.5]},
        ),
        (
            'parameterType: double, feasibleSpace: {min: "1", max: "1"}',
            {"_type": "choice", "_value": [1.0]},
        ),
        (
            'parameterType: double, feasibleSpace: {min: "1", max: "7", distribution: normal}',
            {"_type": "normal", "_value": [4.0, 1.0]},
        ),
        (
            'parameterType: int, feasibleSpace: {min: "1", max: "7", distribution: normal}',
            {"_type": "qnormal", "_value": [4.0, 1.0, 1]},
        ),
        (
            'parameterType: double, feasibleSpace: {min: "1", max: "8", step: "0.5", '
            "distribution: logUniform}",
            {"_type": "qloguniform", "_value": [1.0, 8.0, 0.5]},
        ),
        (
            'parameterType: discrete, feasibleSpace: {list: ["8", "16"]}',
            {"_type": "choice", "_value": ["8", "16"]},
        ),
    ],
)
def test_feasible_spaces_are_ours(files: Files, space: str, ours: dict[str, Any]) -> None:
    assert files.load(with_space(space)).search_space["num-layers"] == ours


def test_a_log_normal_space_has_its_bounds_three_sigma_away(files: Files) -> None:
    space = 'parameterType: double, feasibleSpace: {min: "1", max: "8", distribution: logNormal}'
    entry = files.load(with_space(space)).search_space["num-layers"]
    assert entry["_type"] == "lognormal"
    assert entry["_value"] == pytest.approx([math.log(8) / 2, math.log(8) / 6])


@pytest.mark.parametrize(
    "space, wrong",
    [
        ('parameterType: int, feasibleSpace: {min: "2.5", max: "5"}', "not a whole number"),
        ('parameterType: int, feasibleSpace: {max: "5"}', "needs 'min' and 'max'"),
        ('parameterType: int, feasibleSpace: {min: "6", max: "5"}', "is contradictory"),
        ('parameterType: double, feasibleSpace: {min: "0", max: "1", distribution: logUniform}',
         "must be above 0"),
        ('parameterType: double, feasibleSpace: {min: "0", max: "1", step: "0.00003"}',
         "values, and 1,000 are listed at most"),
        ('parameterType: double, feasibleSpace: {min: "0", max: "1", step: "-1"}', "above 0"),
        ('parameterType: double, feasibleSpace: {min: "0", max: "1", distribution: beta}',
         "there are uniform, logUniform, normal, logNormal"),
        ("parameterType: categorical, feasibleSpace: {list: []}", "names no values"),
        ("parameterType: categorical, feasibleSpace: {min: '1'}", "has no 'list' of values"),
        ("parameterType: float, feasibleSpace: {min: '1'}", "there are double, int, discrete"),
        ("parameterType: int, feasibleSpace: {min: '1', max: '2', stepp: '1'}", "mean 'step'"),
        ("parameterType: int, feasibleSpace: {min: '1', max: '2'}, typ: 1", "is no field"),
        ("parameterType: int", "has no 'feasibleSpace'"),
    ],
)  # fmt: skip
def test_a_space_that_is_none_is_refused(files: Files, space: str, wrong: str) -> None:
    (error,) = files.errors(with_space(space))
    assert wrong in f"{error.message} ({error.hint})"
    assert error.where.startswith(f"{files.folder}/file.yaml:21:")


@pytest.mark.parametrize(
    "name, settings, ours",
    [
        ("grid", "[]", ("GridSearch", {})),
        ("tpe", "[{name: n_startup_trials, value: '5'}, {name: n_EI_candidates, value: '9'}]",
         ("TPE", {"n_startup_trials": 5, "n_ei_candidates": 9})),
        ("multivariate-tpe", "[]", ("TPE", {"multivariate": True})),
        ("cmaes", "[{name: sigma, value: '0.5'}]", ("CMA-ES", {"sigma0": 0.5})),
        ("sobol", "[]", ("QMC", {"qmc_type": "sobol"})),
    ],
)  # fmt: skip
def test_algorithms_are_tuners(
    files: Files, name: str, settings: str, ours: tuple[str, dict[str, Any]]
) -> None:
    text = KATIB.replace("algorithmName: random", f"algorithmName: {name}")
    text = text.replace('\n      - {name: random_state, value: "7"}', f" {settings}")
    tuner = files.load(text).tuner
    assert (tuner.name, tuner.class_args) == ours


def test_a_setting_without_a_counterpart_is_named(files: Files) -> None:
    text = KATIB.replace("algorithmName: random", "algorithmName: tpe")
    text = text.replace("random_state, value", "gamma, value")
    assert any("'gamma' has no effect here" in remark for remark in files.remarks(text))
    (error,) = files.errors(text.replace("name: gamma", "name: gama"))
    assert "'gama', which is no setting of 'tpe'" in error.message
    (error,) = files.errors(KATIB.replace('"7"', "seven"))
    assert "is no number: 'seven'" in error.message


def test_hyperbands_resource_is_the_budget(files: Files) -> None:
    """The tuner sets it, so it is no part of the space. Mutation: the program gets another one."""
    text = KATIB.replace("algorithmName: random", "algorithmName: hyperband")
    settings = "[{name: r_l, value: '9'}, {name: eta, value: '3'}"
    text = text.replace(
        '\n      - {name: random_state, value: "7"}',
        f" {settings}, {{name: resource_name, value: num-layers}}]",
    )
    config = files.load(text)
    assert list(config.search_space) == ["lr"]
    assert config.trial_command is not None
    assert config.trial_command.endswith("--layers ${trialParameters.budget}")
    assert config.tuner.class_args == {"inherit": False, "max_budget": 9, "eta": 3}
    (error,) = files.errors(text.replace("r_l", "eta"))
    assert "needs the setting 'r_l'" in error.message


@pytest.mark.parametrize("name", ["pbt", "enas", "darts", "annealing"])
def test_an_algorithm_that_is_not_here_is_refused(files: Files, name: str) -> None:
    text = KATIB.replace("algorithmName: random", f"algorithmName: {name}")
    (error,) = files.errors(text)
    assert error.where.endswith(place_of(text, f"{name}\n"))
    assert error.hint


def test_an_early_stop_is_an_assessor(files: Files) -> None:
    stop = "  earlyStopping:\n    algorithmName: medianstop\n"
    text = KATIB.replace("  parallelTrialCount", f"{stop}  parallelTrialCount")
    assessor = files.load(text).assessor
    assert assessor is not None
    assert (assessor.name, assessor.keep_result) == ("Medianstop", True)
    assert assessor.class_args == {"min_trials": 3, "start_step": 4}, "Katib's own"
    settings = "    algorithmSettings: [{name: start_step, value: '2'}]\n"
    text = KATIB.replace("  parallelTrialCount", f"{stop}{settings}  parallelTrialCount")
    assessor = files.load(text).assessor
    assert assessor is not None
    assert assessor.class_args == {"min_trials": 3, "start_step": 2}
    (error,) = files.errors(text.replace("start_step", "first_step"))
    assert "there are min_trials_required, start_step" in error.hint
    (error,) = files.errors(text.replace("medianstop", "hyperstop"))
    assert "there are medianstop" in error.hint


def test_what_katib_takes_by_itself_is_taken(files: Files) -> None:
    text = KATIB.replace("  parallelTrialCount: 2\n", "").replace("  maxTrialCount: 4\n", "")
    config = files.load(text)
    assert (config.trial_concurrency, config.max_trial_number) == (3, None)


def test_a_goal_and_counts_of_failures_are_named(files: Files) -> None:
    text = KATIB.replace("type: maximize", "type: minimize\n    goal: 0.1")
    text = text.replace("  maxTrialCount: 4", "  maxTrialCount: 4\n  maxFailedTrialCount: 0")
    remarks = files.remarks(text)
    assert any("maxFailedTrialCount" in remark for remark in remarks)
    config = files.load(text)
    assert config.max_failed_trials_in_a_row == 1, "one failure is too many there"
    assert config.stop_when.target == 0.1
    assert config.metrics is not None
    assert config.metrics.strategies["accuracy"] == "min"


def test_strategies_are_those_of_the_file(files: Files) -> None:
    line = "    metricStrategies: [{name: loss, value: latest}]\n"
    text = KATIB.replace("  algorithm:\n", f"{line}  algorithm:\n")
    metrics = files.load(text).metrics
    assert metrics is not None
    assert metrics.strategies == {"accuracy": "max", "loss": "latest"}
    (error,) = files.errors(text.replace("{name: loss", "{name: lost"))
    assert "names 'lost', which is no metric" in error.message


COLLECTOR = """\
  metricsCollectorSpec:
    collector: {kind: File}
    source:
      fileSystemPath: {path: /out/m.json, kind: File, format: JSON}
"""


def test_a_file_of_metrics_is_each_trials_own(files: Files) -> None:
    """Mutation: its path stays in the command, and all trials write there."""
    text = KATIB.replace('args: ["', 'args: [--log=/out/m.json, "')
    text = text.replace("  parallelTrialCount", f"{COLLECTOR}  parallelTrialCount")
    config = files.load(text)
    assert config.trial_command is not None
    assert '--log="${BEQUEATH_METRICS_FILE}" ' in config.trial_command
    metrics = config.metrics
    assert metrics is not None
    assert (metrics.file, metrics.format, metrics.stdout) == ("m.json", "json", False)


def test_a_file_that_nobody_names_is_refused(files: Files) -> None:
    text = KATIB.replace("  parallelTrialCount", f"{COLLECTOR}  parallelTrialCount")
    (error,) = files.errors(text)
    assert "all trials of this machine would write to the same file" in error.message
    assert error.where.endswith(place_of(text, "/out/m.json"))


def test_a_variable_may_name_it(files: Files) -> None:
    text = KATIB.replace("  parallelTrialCount", f"{COLLECTOR}  parallelTrialCount")
    text += "                env: [{name: LOG, value: /out/m.json}, {name: A, value: b c}]\n"
    config = files.load(text)
    assert config.trial_command is not None
    assert config.trial_command.startswith('LOG="${BEQUEATH_METRICS_FILE}" python3 train.py')
    assert config.trial_environment == {"A": "b c"}


def test_a_file_without_a_name_is_katibs_own_or_none(files: Files) -> None:
    """Mutation: an empty text is looked for in the command, and stands before each letter of it."""
    text = KATIB.replace('args: ["', 'args: [--log=/var/log/katib/metrics.log, "')
    text = text.replace("  parallelTrialCount", f"{COLLECTOR}  parallelTrialCount")
    config = files.load(text.replace("path: /out/m.json", "path: ''"))
    assert config.trial_command == (
        "python3 train.py --lr=${trialParameters.lr} "
        '--log="${BEQUEATH_METRICS_FILE}" --layers ${trialParameters.num-layers}'
    )
    assert config.metrics is not None
    assert config.metrics.file == "metrics.log"
    (error,) = files.errors(text.replace("path: /out/m.json", "path: /"))
    assert "is '/', which is no file" in error.message


@pytest.mark.parametrize(
    "before, after, sentence",
    [
        ('min: "2"', "min: 2.5", "has the 'min' 2.5, which is not a whole number"),
        ('value: "7"', 'value: "7.5"', "is no number: '7.5'"),
    ],
)
def test_a_fraction_is_no_whole_number(
    files: Files, before: str, after: str, sentence: str
) -> None:
    """Mutation: what is behind the point is cut off, and nobody is told."""
    (error,) = files.errors(KATIB.replace(before, after))
    assert sentence in error.message


def test_a_long_seed_is_kept(files: Files) -> None:
    """Mutation: it is read as a floating-point number."""
    config = files.load(KATIB.replace('value: "7"', 'value: "1234567890123456789"'))
    assert config.tuner.class_args == {"seed": 1234567890123456789}


def test_filters_are_those_of_the_file(files: Files) -> None:
    spec = "  metricsCollectorSpec: {source: {filter: {metricsFormat: ['(a+): ([0-9]+)']}}}\n"
    metrics = files.load(
        KATIB.replace("  parallelTrialCount", f"{spec}  parallelTrialCount")
    ).metrics
    assert metrics is not None
    assert metrics.filters == ("(a+): ([0-9]+)",)


@pytest.mark.parametrize("kind", ["TensorFlowEvent", "PrometheusMetric", "Custom", "None"])
def test_another_collector_is_refused_unless_the_file_has_our_key(files: Files, kind: str) -> None:
    spec = f"  metricsCollectorSpec: {{collector: {{kind: '{kind}'}}}}\n"
    text = KATIB.replace("  parallelTrialCount", f"{spec}  parallelTrialCount")
    (error,) = files.errors(text)
    assert "write 'metrics' at the top of the file" in error.hint
    ours = files.load(f"{text}metrics: {{stdout: true, objective: auc}}\n").metrics
    assert ours is not None
    assert (ours.objective, ours.also) == ("auc", ())


ENV = """\
                env:
                - {name: OPTIMIZER, value: "x ${trialParameters.layers}"}
                - {name: REFERENCE, value: "env:HOME"}
                - {name: NUMBER, value: 3}
                resources:
                  limits: {cpu: 500m, memory: 1Gi, nvidia.com/gpu: 1, example.com/fpga: 1}
                  requests: {cpu: 250m}
"""


def test_variables_and_resources_of_the_container(files: Files) -> None:
    text = KATIB.replace('"${trialParameters.layers}"]', '"$(NUMBER)", "$(HOME)"]') + ENV
    config = files.load(text)
    assert config.trial_environment == {
        "OPTIMIZER": "x ${trialParameters.num-layers}",
        "REFERENCE": "literal:env:HOME",
        "NUMBER": "3",
    }
    assert config.trial_command is not None
    assert config.trial_command.endswith("""--layers "${NUMBER}" '$(HOME)'""")
    needs = config.trial_needs
    assert (needs.trial_cpu_number, needs.trial_memory_size) == (0.5, 1 << 30)
    assert needs.trial_gpu_number == 1
    assert files.load(f"{text}trialGpuNumber: 0\n").trial_needs.trial_gpu_number == 0


@pytest.mark.parametrize(
    "old, new, wrong",
    [
        ("500m", "lots", "is no quantity: 'lots'"),
        ("500m", "'1e999'", "is no quantity: '1e999'"),
        ("1Gi", ".inf", "is no quantity: inf"),
        ("limits: {", "limit: {", "did you mean 'limits'?"),
        ("requests: {cpu: 250m}", "requests: [cpu]", "must be a section of fields, not a list"),
        ("name: NUMBER", "name: A B", "must have a 'name' that a variable can have"),
        ("value: 3}", "valeu: 3}", "did you mean 'value'?"),
    ],
)
def test_what_is_wrong_with_variables_and_resources(
    files: Files, old: str, new: str, wrong: str
) -> None:
    """Mutation: what has another name, or is none of its kind, is passed over."""
    errors = files.errors(KATIB + ENV.replace(old, new, 1))
    assert any(wrong in f"{error.message} {error.hint}" for error in errors), errors


def test_an_empty_value_is_empty(files: Files) -> None:
    text = KATIB + "                env: [{name: A, value: }, {name: B}]\n"
    assert files.load(text).trial_environment == {"A": "", "B": ""}


def test_what_only_a_cluster_knows_is_refused_unless_the_file_has_it(files: Files) -> None:
    secret = "{secretKeyRef: {name: s, key: k}}"
    text = f"{KATIB}                env: [{{name: TOKEN, valueFrom: {secret}}}]\n"
    (error,) = files.errors(text)
    assert error.hint == "write 'trialEnvironment: {TOKEN: env:TOKEN}' at the top of the file"
    assert error.where.endswith(place_of(text, "valueFrom"))
    own = f"{text}trialEnvironment: {{TOKEN: literal:x}}\n"
    assert files.load(own).trial_environment == {"TOKEN": "literal:x"}


def test_a_command_is_needed(files: Files) -> None:
    command = '[python3, train.py, "--lr=${trialParameters.learningRate}"]'
    text = KATIB.replace(f"                command: {command}\n", "")
    (error,) = files.errors(text)
    assert "names no command" in error.message
    assert "an image's own entry point is not run here" in error.hint
    own = files.load(f"{text}trialCommand: python3 train.py ${{trialParameters.lr}}\n")
    assert own.trial_command == "python3 train.py ${trialParameters.lr}"


@pytest.mark.parametrize(
    "old, new, wrong, at",
    [
        ("v1beta1\n", "v1alpha3\n", "an older form of Katib's", "kubeflow.org/v1alpha3"),
        ("reference: lr", "reference: rl", "refers to 'rl', which is no parameter", "rl}"),
        ("reference: lr", 'reference: "${trialSpec.Kind}"', "only an object of a cluster has",
         '"${trialSpec.Kind}"'),
        ("name: learningRate", "name: rate", "and 'trialParameters' has no 'learningRate'",
         "[python3"),
        ("kind: Job", "kind: Workflow", "is 'Workflow', and its pods are not known here",
         "Workflow"),
        ("  maxTrialCount: 4", "  maxTrials: 4", "is no field of spec of a Katib Experiment",
         "maxTrials"),
        ("type: maximize", "type: best", "'type' is 'best'", "best"),
        ("    type: maximize", "    - type", "must be a section of fields, not a list",
         "- type"),
        ('random_state, value: "7"', 'random_state, valu: "7"',
         "is no field of spec.algorithm.algorithmSettings[] of", "valu:"),
        ('max: "5"', f'max: "{2**63}"', "which is not a whole number", "{min: \"2\""),
        ('max: "0.05"', 'max: "1e400"', "which is not a number", "{min: \"0.01\""),
        ("kind: Job", "kind: {}", "is {}, and its pods are not known here", "{}\n"),
        ("  parallelTrialCount: 2", "  nasConfig: {}\n  parallelTrialCount: 2",
         "'nasConfig' cannot be honoured", "nasConfig"),
        ("python3, train.py", "python3, missing.py", "no such file", "[python3"),
    ],
)  # fmt: skip
def test_each_refusal_has_its_place(files: Files, old: str, new: str, wrong: str, at: str) -> None:
    text = KATIB.replace(old, new, 1)
    if "- type" in new:
        start, end = text.index("    - type"), text.index("  algorithm:\n")
        text = text[:start] + "    - type\n" + text[end:]
    errors = files.errors(text)
    (error,) = [each for each in errors if wrong in each.message]
    assert error.where == f"{files.folder}/file.yaml:{place_of(text, at)}"


ROLES = """\
      apiVersion: kubeflow.org/v1
      kind: PyTorchJob
      spec:
        runPolicy: {cleanPodPolicy: None}
        pytorchReplicaSpecs:
          Master:
            replicas: 1
            template: {spec: {containers: [{name: pytorch, image: x, command: [python3, train.py]}]}}
          Worker:
            replicas: MANY
            template: {spec: {containers: [{name: pytorch, image: x, command: [python3, w.py]}]}}
"""  # noqa: E501 - a pod in a line


def of_object(text: str) -> str:
    return KATIB[: KATIB.index("      apiVersion: batch/v1")] + text


def test_one_process_of_a_training_job_is_run_and_several_are_refused(files: Files) -> None:
    one = of_object(ROLES.replace("MANY", "0"))
    assert files.load(one).trial_command == "python3 train.py"
    (error,) = files.errors(of_object(ROLES.replace("MANY", "2")))
    assert "asks for several processes: 1 Master, 2 Worker" in error.message
    assert "'trialCommand' at the top of the file" in error.hint


def test_a_train_job_is_run_as_one_process(files: Files) -> None:
    text = """\
      apiVersion: trainer.kubeflow.org/v1alpha1
      kind: TrainJob
      spec:
        runtimeRef: {name: torch-distributed}
        trainer: {numNodes: 1, command: [python3, train.py], env: [{name: A, value: b}]}
"""
    config = files.load(of_object(text))
    assert (config.trial_command, config.trial_environment) == ("python3 train.py", {"A": "b"})
    (error,) = files.errors(of_object(text.replace("numNodes: 1", "numNodes: 4")))
    assert "a trial is one process here" in error.hint


def test_only_the_primary_container_is_run(files: Files) -> None:
    text = KATIB.replace(
        "              - name: training\n",
        "              - {name: sidecar, image: y, command: [sleep]}\n"
        "              - name: training\n",
    )
    config = files.load(text)
    assert config.trial_command is not None
    assert config.trial_command.startswith("python3")
    assert "the container 'sidecar' is not run here" in files.remarks(text)


def test_a_trials_name_is_its_experiments_with_a_number(files: Files) -> None:
    text = KATIB.replace("reference: num-layers", 'reference: "${trialSpec.Name}"')
    config = files.load(text)
    assert config.trial_command is not None
    assert config.trial_command.endswith('--layers "${BEQUEATH_EXPERIMENT}-${BEQUEATH_TRIAL}"')


def test_a_conversion_is_the_same_experiment_and_leaves_nothing_out(files: Files) -> None:
    text = KATIB.replace("type: maximize", "type: maximize\n    goal: 0.9") + ENV
    native = files.converted(text)
    here, there = files.load(text), files.load(native)
    assert here.model_dump() == there.model_dump()
    for field in ("metadata.namespace", "spec.objective.goal", "containers[0].image"):
        assert field in native, field
    assert "written for Katib" in native

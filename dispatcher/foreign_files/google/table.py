"""Every field of Google's tuning jobs, and what becomes of it here."""

from __future__ import annotations

from dispatcher.experiment.translated_keys import Does, Row


def _keep(native: str, note: str = "") -> Row:
    return Row(Does.KEEP, native, note)


def _drop(note: str) -> Row:
    return Row(Does.DROP, "", note)


def _nothing(note: str) -> Row:
    return Row(Does.NOTHING, "", note)


def _refuse(note: str) -> Row:
    return Row(Does.REFUSE, "", note)


def _special(native: str, note: str = "") -> Row:
    return Row(Does.SPECIAL, native, note)


_SECTION = Row(Does.SECTION)

_OUTPUT = _drop("the service wrote it")
_OF_GOOGLE = _drop("trials are processes of this machine")
_MACHINE = _drop("trials run on this machine")
_IMAGE = _nothing(
    "no image is used: its command runs on this machine, from the folder of this file"
)
_PACKAGES = _nothing("packages of a bucket are not fetched: the code is that of this file's folder")
_PYTHON = _nothing("trials run with the Python and the libraries of this machine")
_ROLES = _nothing("a trial is one process here, as with 'gcloud ai-platform local train'")
_SPACE = "searchSpace"
_SCALE = _special(
    _SPACE,
    "`UNIT_LINEAR_SCALE`, `UNIT_LOG_SCALE`; `UNIT_REVERSE_LOG_SCALE` is searched evenly, with a "
    "warning",
)
_ALGORITHM = _special(
    "tuner.name", "`TPE` for Google's default; `Random`, `GridSearch` for the others"
)
_FAILED = _special(
    "maxFailedTrialsInARow", "failures in a row count here, and those in all do not; 0 says nothing"
)
_GPUS = _special("trialGpuNumber", "GPUs; TPUs are not counted")

AI_PLATFORM: dict[str, Row] = {
    "jobId": _keep("experimentName"),
    "labels": _drop("they are for Google's lists"),
    **dict.fromkeys(
        ("createTime", "startTime", "endTime", "state", "errorMessage", "etag", "jobPosition"),
        _OUTPUT,
    ),
    "trainingOutput": _OUTPUT,
    "predictionInput": _refuse("it is a job that predicts, and trials train"),
    "predictionOutput": _OUTPUT,
    "trainingInput": _SECTION,
    "trainingInput.scaleTier": _special(
        "trialGpuNumber", "`BASIC_GPU` asks for one GPU; tiers of several machines are one process"
    ),
    "trainingInput.masterType": _MACHINE,
    "trainingInput.masterConfig": _SECTION,
    "trainingInput.masterConfig.imageUri": _IMAGE,
    "trainingInput.masterConfig.containerCommand": _special("trialCommand"),
    "trainingInput.masterConfig.containerArgs": _special("trialCommand"),
    "trainingInput.masterConfig.acceleratorConfig": _SECTION,
    "trainingInput.masterConfig.acceleratorConfig.count": _GPUS,
    "trainingInput.masterConfig.acceleratorConfig.type": _MACHINE,
    "trainingInput.masterConfig.*": _OF_GOOGLE,
    **{
        f"trainingInput.{role}{what}": _ROLES
        for role in ("worker", "parameterServer", "evaluator")
        for what in ("Type", "Config", "Count")
    },
    "trainingInput.packageUris": _PACKAGES,
    "trainingInput.pythonModule": _special("trialCommand", "`python -m MODULE`"),
    "trainingInput.args": _special("trialCommand"),
    "trainingInput.jobDir": _special(
        "trialCommand",
        "`--job-dir` with a folder of each trial's own: below it, if it is one of this machine. "
        "If `gcloud` was given it, write it here",
    ),
    "trainingInput.region": _OF_GOOGLE,
    "trainingInput.runtimeVersion": _PYTHON,
    "trainingInput.pythonVersion": _PYTHON,
    "trainingInput.network": _OF_GOOGLE,
    "trainingInput.serviceAccount": _OF_GOOGLE,
    "trainingInput.encryptionConfig": _OF_GOOGLE,
    "trainingInput.enableWebAccess": _drop("`bequeath trial shell` opens one"),
    "trainingInput.useChiefInTfConfig": _drop("TF_CONFIG is not set for one process"),
    "trainingInput.scheduling": _SECTION,
    "trainingInput.scheduling.maxRunningTime": _keep(
        "maxExperimentDuration", "no new trials after that; running ones go on"
    ),
    "trainingInput.scheduling.*": _drop("nothing waits for Google's queue"),
    "trainingInput.hyperparameters": _SECTION,
    "trainingInput.hyperparameters.goal": _special("optimizeMode"),
    "trainingInput.hyperparameters.hyperparameterMetricTag": _special(
        "metrics.objective", "`training/hptuning/metric` if not given, as in hypertune"
    ),
    "trainingInput.hyperparameters.maxTrials": _special(
        "maxTrialNumber", "1 if not given, as there"
    ),
    "trainingInput.hyperparameters.maxParallelTrials": _special(
        "trialConcurrency", "1 if not given, as there"
    ),
    "trainingInput.hyperparameters.maxFailedTrials": _FAILED,
    "trainingInput.hyperparameters.enableTrialEarlyStopping": _special(
        "assessor", "`Medianstop`; the last value of a stopped trial counts"
    ),
    "trainingInput.hyperparameters.resumePreviousJobId": _nothing(
        "the search begins anew: `bequeath experiment import` takes results of an earlier one"
    ),
    "trainingInput.hyperparameters.algorithm": _ALGORITHM,
    "trainingInput.hyperparameters.params": _special(_SPACE),
    "trainingInput.hyperparameters.params[].parameterName": _special(_SPACE),
    "trainingInput.hyperparameters.params[].type": _special(
        _SPACE, "`DOUBLE`, `INTEGER`, `CATEGORICAL`, `DISCRETE`"
    ),
    "trainingInput.hyperparameters.params[].minValue": _special(_SPACE),
    "trainingInput.hyperparameters.params[].maxValue": _special(_SPACE),
    "trainingInput.hyperparameters.params[].categoricalValues": _special(_SPACE, "a choice"),
    "trainingInput.hyperparameters.params[].discreteValues": _special(_SPACE, "a choice"),
    "trainingInput.hyperparameters.params[].scaleType": _SCALE,
}
"""A job of AI Platform Training. A file that is a TrainingInput by itself is read, too."""

_PARAMETER = "studySpec.parameters[]"
_KINDS = ("doubleValueSpec", "integerValueSpec", "categoricalValueSpec", "discreteValueSpec")
_POOL = "trialJobSpec.workerPoolSpecs[]"

VERTEX_AI: dict[str, Row] = {
    "displayName": _keep("experimentName"),
    "name": _OUTPUT,
    "labels": _drop("they are for Google's lists"),
    **dict.fromkeys(
        (
            *("trials", "state", "createTime", "startTime", "endTime", "updateTime", "error"),
            *("satisfiesPzi", "satisfiesPzs"),
        ),
        _OUTPUT,
    ),
    "encryptionSpec": _OF_GOOGLE,
    "maxTrialCount": _special("maxTrialNumber", "1 if not given, as with gcloud"),
    "parallelTrialCount": _special("trialConcurrency", "1 if not given, as with gcloud"),
    "maxFailedTrialCount": _FAILED,
    "studySpec": _SECTION,
    "studySpec.metrics": _special(
        "metrics", "the first is the objective; of several, TPE looks for a front"
    ),
    "studySpec.metrics[].metricId": _special("metrics.objective, metrics.also"),
    "studySpec.metrics[].goal": _special("optimizeMode"),
    "studySpec.metrics[].safetyConfig": _refuse("no search here keeps away from unsafe trials"),
    "studySpec.parameters": _special(_SPACE),
    f"{_PARAMETER}.parameterId": _special(_SPACE),
    f"{_PARAMETER}.scaleType": _SCALE,
    **{f"{_PARAMETER}.{kind}": _special(_SPACE) for kind in _KINDS},
    **{f"{_PARAMETER}.{kind}.minValue": _special(_SPACE) for kind in _KINDS[:2]},
    **{f"{_PARAMETER}.{kind}.maxValue": _special(_SPACE) for kind in _KINDS[:2]},
    **{f"{_PARAMETER}.{kind}.values": _special(_SPACE, "a choice") for kind in _KINDS[2:]},
    **{
        f"{_PARAMETER}.{kind}.defaultValue": _drop("tuning jobs of Vertex AI do not use it either")
        for kind in _KINDS
    },
    f"{_PARAMETER}.conditionalParameterSpecs": _special(
        _SPACE, "a nested choice: they exist below the values of their parent"
    ),
    f"{_PARAMETER}.conditionalParameterSpecs[].parameterSpec": _special(_SPACE),
    **{
        f"{_PARAMETER}.conditionalParameterSpecs[].{parent}": _special(_SPACE)
        for parent in ("parentCategoricalValues", "parentDiscreteValues", "parentIntValues")
    },
    "studySpec.algorithm": _ALGORITHM,
    "studySpec.observationNoise": _drop("tuning jobs of Vertex AI do not use it either"),
    "studySpec.measurementSelectionType": _special(
        "metrics.strategies", "the last value, or the best one"
    ),
    "studySpec.medianAutomatedStoppingSpec": _special(
        "assessor", "`Medianstop`; the last value of a stopped trial counts"
    ),
    "studySpec.decayCurveStoppingSpec": _special(
        "assessor", "`Medianstop` stands in, with a warning"
    ),
    "studySpec.convexAutomatedStoppingSpec": _special(
        "assessor", "`Medianstop` stands in, with a warning"
    ),
    "studySpec.studyStoppingConfig": _nothing("the search goes on until maxTrialCount"),
    "trialJobSpec": _SECTION,
    "trialJobSpec.workerPoolSpecs": _special("trialCommand", "the first pool, as one process"),
    f"{_POOL}.machineSpec": _SECTION,
    f"{_POOL}.machineSpec.acceleratorCount": _GPUS,
    f"{_POOL}.machineSpec.acceleratorType": _special("trialGpuNumber", "as its count"),
    f"{_POOL}.machineSpec.*": _MACHINE,
    f"{_POOL}.replicaCount": _special("", "one process"),
    f"{_POOL}.diskSpec": _MACHINE,
    f"{_POOL}.nfsMounts": _nothing("mount the share on this machine (`bequeath nfs` does)"),
    f"{_POOL}.lustreMounts": _nothing("mount the file system on this machine"),
    f"{_POOL}.containerSpec": _SECTION,
    f"{_POOL}.containerSpec.imageUri": _IMAGE,
    f"{_POOL}.containerSpec.command": _special("trialCommand"),
    f"{_POOL}.containerSpec.args": _special("trialCommand"),
    f"{_POOL}.containerSpec.env": _special("trialEnvironment"),
    f"{_POOL}.pythonPackageSpec": _SECTION,
    f"{_POOL}.pythonPackageSpec.executorImageUri": _IMAGE,
    f"{_POOL}.pythonPackageSpec.packageUris": _PACKAGES,
    f"{_POOL}.pythonPackageSpec.pythonModule": _special("trialCommand", "`python -m MODULE`"),
    f"{_POOL}.pythonPackageSpec.args": _special("trialCommand"),
    f"{_POOL}.pythonPackageSpec.env": _special("trialEnvironment"),
    f"{_POOL}.env[].name": _special("trialEnvironment"),
    f"{_POOL}.env[].value": _special("trialEnvironment"),
    "trialJobSpec.scheduling": _SECTION,
    "trialJobSpec.scheduling.timeout": _keep("maxTrialDuration"),
    "trialJobSpec.scheduling.disableRetries": _special("trialRetries", "0 if it is true"),
    "trialJobSpec.scheduling.*": _drop("nothing waits for Google's queue"),
    "trialJobSpec.baseOutputDirectory": _nothing(
        "write what is to stay below the folder that BEQUEATH_TRIAL_FOLDER names"
    ),
    "trialJobSpec.tensorboard": _nothing("`sinks` of our own feed a TensorBoard"),
    "trialJobSpec.*": _OF_GOOGLE,
}
"""A HyperparameterTuningJob of Vertex AI."""

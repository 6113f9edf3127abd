"""Every field of an Experiment of Katib, and what becomes of it here."""

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

_OF_THE_CLUSTER = "trials are processes of this machine"
_IMAGE = "no image is used: its command runs on this machine, from the folder of this file"
_OWN_METRICS = "write 'metrics' at the top of the file (docs/programs-of-others.md)"
_ENDS = "a trial's exit code says how it ended"

KATIB: dict[str, Row] = {
    "apiVersion": _special("", "`kubeflow.org/v1beta1`; older ones are refused"),
    "kind": _drop("it is what is read"),
    "metadata": _SECTION,
    "metadata.name": _keep("experimentName"),
    "metadata.generateName": _special("experimentName", "without its hyphen"),
    "metadata.*": _drop("it belongs to the object in a cluster"),
    "status": _drop("it is what came of the experiment in a cluster"),
    "spec": _SECTION,
    "spec.parameters": _special("searchSpace"),
    "spec.parameters[].name": _special("searchSpace"),
    "spec.parameters[].parameterType": _special(
        "searchSpace", "`double`, `int`, `discrete` and `categorical`"
    ),
    "spec.parameters[].feasibleSpace": _special("searchSpace"),
    "spec.parameters[].feasibleSpace.min": _special("searchSpace"),
    "spec.parameters[].feasibleSpace.max": _special("searchSpace"),
    "spec.parameters[].feasibleSpace.list": _special("searchSpace", "a choice"),
    "spec.parameters[].feasibleSpace.step": _special(
        "searchSpace", "a choice among the values of the row, or a multiple of the step"
    ),
    "spec.parameters[].feasibleSpace.distribution": _special(
        "searchSpace",
        "`uniform`, `logUniform`; `normal` and `logNormal` have their bounds three sigma away, as "
        "in Katib, and may leave them",
    ),
    "spec.objective": _SECTION,
    "spec.objective.type": _special("optimizeMode"),
    "spec.objective.goal": _special("stopWhen.target", "trials that run then may finish"),
    "spec.objective.objectiveMetricName": _special("metrics.objective"),
    "spec.objective.additionalMetricNames": _special("metrics.also"),
    "spec.objective.metricStrategies": _special(
        "metrics.strategies", "`min` or `max` by the objective's type if not given, as in Katib"
    ),
    "spec.algorithm": _SECTION,
    "spec.algorithm.algorithmName": _special("tuner.name", "see the table of algorithms"),
    "spec.algorithm.algorithmSettings": _special("tuner.classArgs", "see the table of algorithms"),
    "spec.earlyStopping": _special("assessor"),
    "spec.earlyStopping.algorithmName": _special("assessor.name", "`medianstop`"),
    "spec.earlyStopping.algorithmSettings": _special(
        "assessor.classArgs", "`min_trials_required` (3) and `start_step` (4)"
    ),
    "spec.parallelTrialCount": _special("trialConcurrency", "3 if not given, as in Katib"),
    "spec.maxTrialCount": _keep("maxTrialNumber"),
    "spec.maxFailedTrialCount": _special(
        "maxFailedTrialsInARow", "failures in a row count here, and those in all do not"
    ),
    "spec.resumePolicy": _drop("each experiment can be resumed: `bequeath resume`"),
    "spec.nasConfig": _refuse(
        "Katib's ENAS and DARTS train one network in their own suggestion service; 'ENAS' and "
        "'SPOS' are tuners here (bequeath tuner list)"
    ),
    "spec.metricsCollectorSpec": _SECTION,
    "spec.metricsCollectorSpec.collector": _SECTION,
    "spec.metricsCollectorSpec.collector.kind": _special(
        "metrics",
        "`StdOut` (both streams, as in Katib) and `File`; for others " + _OWN_METRICS,
    ),
    "spec.metricsCollectorSpec.collector.customCollector": _refuse(_OWN_METRICS),
    "spec.metricsCollectorSpec.source": _SECTION,
    "spec.metricsCollectorSpec.source.httpGet": _refuse(_OWN_METRICS),
    "spec.metricsCollectorSpec.source.fileSystemPath": _SECTION,
    "spec.metricsCollectorSpec.source.fileSystemPath.path": _special(
        "metrics.file",
        "a file of each trial's own, in place of the path wherever the command or a variable has "
        "it",
    ),
    "spec.metricsCollectorSpec.source.fileSystemPath.kind": _special("", "`File`"),
    "spec.metricsCollectorSpec.source.fileSystemPath.format": _special(
        "metrics.format", "`TEXT` and `JSON`"
    ),
    "spec.metricsCollectorSpec.source.filter": _SECTION,
    "spec.metricsCollectorSpec.source.filter.metricsFormat": _special("metrics.filters"),
    "spec.trialTemplate": _SECTION,
    "spec.trialTemplate.retain": _drop("logs and files of trials stay"),
    "spec.trialTemplate.primaryPodLabels": _drop(_OF_THE_CLUSTER),
    "spec.trialTemplate.primaryContainerName": _special("trialCommand", "the one that is run"),
    "spec.trialTemplate.successCondition": _drop(_ENDS),
    "spec.trialTemplate.failureCondition": _drop(_ENDS),
    "spec.trialTemplate.configMap": _refuse(
        "it lies in the cluster: put its template here, as 'trialSpec'"
    ),
    "spec.trialTemplate.trialParameters": _special(
        "trialCommand", "`${trialParameters.NAME}` becomes that of the parameter it refers to"
    ),
    "spec.trialTemplate.trialParameters[].name": _special("trialCommand"),
    "spec.trialTemplate.trialParameters[].description": _drop("it is for readers"),
    "spec.trialTemplate.trialParameters[].reference": _special(
        "trialCommand", "a parameter, or `${trialSpec.Name}`"
    ),
    "spec.trialTemplate.trialSpec": _special(
        "trialCommand",
        "a Job, or a job of the Training Operator or a TrainJob with one replica",
    ),
}
"""An Experiment, with its template up to the object that is made of it."""

OBJECT: dict[str, Row] = {
    "object.apiVersion": _drop("its kind says enough"),
    "object.kind": _special(
        "", "`Job`, `PyTorchJob`, `TFJob`, `XGBoostJob`, `PaddleJob`, `TrainJob`"
    ),
    "object.metadata": _drop("it belongs to the object in a cluster"),
    "object.spec": _special("trialCommand"),
    "Job.backoffLimit": _keep("trialRetries"),
    "Job.activeDeadlineSeconds": _keep("maxTrialDuration"),
    "Job.template": _special("trialCommand"),
    "Job.*": _drop(_OF_THE_CLUSTER),
    "replicas.replicas": _special("", "1, over all roles"),
    "replicas.template": _special("trialCommand"),
    "replicas.*": _drop(_OF_THE_CLUSTER),
    "TrainJob.runtimeRef": _nothing(_IMAGE),
    "TrainJob.trainer": _SECTION,
    "TrainJob.trainer.image": _nothing(_IMAGE),
    "TrainJob.trainer.command": _special("trialCommand"),
    "TrainJob.trainer.args": _special("trialCommand"),
    "TrainJob.trainer.env": _special("trialEnvironment"),
    "TrainJob.trainer.numNodes": _special("", "1"),
    "TrainJob.trainer.resourcesPerNode": _special(
        "trialCpuNumber, trialMemorySize, trialGpuNumber", "the limits, else the requests"
    ),
    "TrainJob.trainer.*": _drop(_OF_THE_CLUSTER),
    "TrainJob.*": _drop(_OF_THE_CLUSTER),
    "pod.containers": _special("trialCommand"),
    "pod.restartPolicy": _drop("a trial that failed is tried again as a new attempt"),
    "pod.volumes": _nothing("the folders of this machine are there"),
    "pod.initContainers": _nothing(
        "they are not run: prepare what they prepare before the experiment"
    ),
    "pod.*": _drop(_OF_THE_CLUSTER),
    "container.name": _drop("it says which one is run"),
    "container.image": _nothing(_IMAGE),
    "container.command": _special("trialCommand"),
    "container.args": _special("trialCommand"),
    "container.env": _special("trialEnvironment"),
    "container.env[].name": _special("trialEnvironment"),
    "container.env[].value": _special("trialEnvironment"),
    "container.env[].valueFrom": _refuse(
        "write the variable under 'trialEnvironment' at the top of the file, as a reference"
    ),
    "container.envFrom": _refuse(
        "write its variables under 'trialEnvironment' at the top of the file, as references"
    ),
    "container.resources": _special(
        "trialCpuNumber, trialMemorySize, trialGpuNumber", "the limits, else the requests"
    ),
    "container.resources.claims": _drop(_OF_THE_CLUSTER),
    "container.workingDir": _nothing("trials begin in the folder of this file"),
    "container.volumeMounts": _nothing("the folders of this machine are there"),
    "container.*": _drop(_OF_THE_CLUSTER),
}
"""The object of a trial: `object` is what all kinds have, `Job` and `TrainJob` are their `spec`,
`replicas` a role of the Training Operator's jobs, `pod` the `spec` of a pod."""

"""Every key of NNI's experiment files, and what becomes of it here.

``docs/from-nni.md`` is made from these tables, and the translation follows them, so that the
page cannot say another thing than the code does.
"""

from __future__ import annotations

from dispatcher.experiment.translated_keys import Does, Row
from dispatcher.nni.files.clusters.tables import SECTIONS as OF_CLUSTERS


def _keep(native: str, note: str = "") -> Row:
    return Row(Does.KEEP, native, note)


def _drop(note: str) -> Row:
    return Row(Does.DROP, "", note)


def _refuse(note: str) -> Row:
    return Row(Does.REFUSE, "", note)


def _special(native: str, note: str = "") -> Row:
    return Row(Does.SPECIAL, native, note)


ANNOTATION = (
    "the search space is read from the annotations, and trials run a copy in which they are code"
)
PHASES = "have each phase proposed as a trial of its own: 'Multi-phase' in docs/from-nni.md"
SHARED = (
    "mount the share on all machines (`bequeath nfs` does), and write its folder as "
    "'weightsRoot', or leave the paths to your code"
)
PODS = ("kubeflow", "frameworkcontroller", "adl")
"""Platforms whose pods can have an NFS share that is mounted nowhere else."""
NO_ADDRESS = "agents find the head by themselves, those on other machines through SSH"
_MANAGER = _special("", f"`headAddress` for jobs of clusters; not needed else: {NO_ADDRESS}")
STARTED_ONCE = "no new trials after that; running ones go on, and the experiment ends with them"

_ANNOTATED = Row(Does.WHEN_ON, "useAnnotation", ANNOTATION)
_PHASES = Row(Does.FALSE_ONLY, "", PHASES)
_NO_IMAGE = Row(Does.NOTHING, "", "trials run in processes of the machine itself")
_CLUSTER = "it belongs to jobs of a cluster, and this file's platform has none"
_OF_CLUSTERS = Row(Does.NOTHING, "", _CLUSTER)
_OF_A_CLUSTER = _special("trainingService", "its keys are below")

V1_TOP: dict[str, Row] = {
    "authorName": _drop("nobody asks for it"),
    "experimentName": _keep("experimentName"),
    "description": _drop("nobody asks for it"),
    "trialConcurrency": _keep("trialConcurrency"),
    "maxExecDuration": _keep("maxExperimentDuration", STARTED_ONCE),
    "maxTrialDuration": _keep("maxTrialDuration"),
    "maxTrialNum": _keep("maxTrialNumber"),
    "trainingServicePlatform": _special("trainingService.platform", "`remote` is `ssh` here"),
    "searchSpacePath": _keep("searchSpaceFile"),
    "useAnnotation": _ANNOTATED,
    "multiPhase": _PHASES,
    "multiThread": _keep("multiThread", "a thread for each request: no pool that can fill up"),
    "nniManagerIp": _MANAGER,
    "logDir": _keep("experimentWorkingDirectory"),
    "debug": _keep("debug"),
    "versionCheck": _drop("machines get the code of this very version"),
    "logLevel": _keep("logLevel", "`trace` is read as `debug`, `fatal` as `error`"),
    "logCollection": _drop("logs are always within reach"),
    "tuner": _special("tuner"),
    "assessor": _special("assessor"),
    "advisor": _special("tuner", "an advisor is a tuner here"),
    "trial": _special("", "its keys go to the top level"),
    "localConfig": _special("trainingService"),
    "machineList": _special("trainingService.machineList"),
    "remoteConfig": _special("trainingService"),
    "paiConfig": _OF_A_CLUSTER,
    "paiYarnConfig": _special("", "refused with its platform, which is gone"),
    "kubeflowConfig": _OF_A_CLUSTER,
    "frameworkcontrollerConfig": _OF_A_CLUSTER,
    "dltsConfig": _OF_A_CLUSTER,
    "amlConfig": _OF_A_CLUSTER,
    "hybridConfig": _special("trainingService", "`trainingServicePlatforms`: a list of services"),
    "sharedStorage": _special(
        "", "an NFS share, for pods of clusters: a volume; others are refused"
    ),
}

V1_TRIAL: dict[str, Row] = {
    "command": _keep("trialCommand"),
    "codeDir": _keep("trialCodeDirectory"),
    "gpuNum": _keep("trialGpuNumber"),
    "cpuNum": _keep("trialCpuNumber"),
    "memoryMB": _special("trialMemorySize", "in MB"),
    "nasMode": _special("", "`classic_mode`; others are refused: ENAS and SPOS are tuners here"),
    "image": _NO_IMAGE,
    "virtualCluster": _OF_CLUSTERS,
    "nniManagerNFSMountPath": _OF_CLUSTERS,
    "containerNFSMountPath": _OF_CLUSTERS,
    "paiStorageConfigName": _OF_CLUSTERS,
    "paiStoragePlugin": _OF_CLUSTERS,
    "paiConfigPath": _refuse(_CLUSTER),
    "authFile": _OF_CLUSTERS,
    "shmMB": _OF_CLUSTERS,
    "dataDir": _OF_CLUSTERS,
    "outputDir": _OF_CLUSTERS,
    "portList": _OF_CLUSTERS,
    "ps": _refuse(_CLUSTER),
    "master": _refuse(_CLUSTER),
    "worker": _refuse(_CLUSTER),
    "taskRoles": _refuse(_CLUSTER),
    "memorySize": _keep("trialMemorySize"),
    "namespace": _OF_CLUSTERS,
    "adaptive": _OF_CLUSTERS,
    "imagePullSecrets": _OF_CLUSTERS,
    "nfs": _OF_CLUSTERS,
    "checkpoint": _OF_CLUSTERS,
}

V1_ALGORITHM: dict[str, Row] = {
    "builtinTunerName": _special("name", "see the table of algorithms"),
    "builtinAssessorName": _special("name", "see the table of algorithms"),
    "builtinAdvisorName": _special("name", "see the table of algorithms"),
    "codeDir": _special("file"),
    "classFileName": _special("file"),
    "className": _keep("className"),
    "classArgs": _special("classArgs"),
    "gpuNum": _drop("of v1.0 and before, where it did nothing"),
    "gpuIndices": _special("gpuIndices", "the tuner sees these GPUs, without it none"),
    "includeIntermediateResults": _special("keepResult", "of the assessor"),
    "checkpointDir": _drop("the tuner finds its folder in NNI_CHECKPOINT_DIRECTORY"),
}

V1_LOCAL: dict[str, Row] = {
    "gpuIndices": _keep("gpuIndices"),
    "maxTrialNumPerGpu": _keep("maxTrialNumberPerGpu"),
    "useActiveGpu": _keep("useActiveGpu"),
}

REUSE = "an agent on each machine runs all trials there in any case, each in a process of its own"

V1_REMOTE: dict[str, Row] = {"reuse": _drop(REUSE)}

V1_MACHINE: dict[str, Row] = {
    "ip": _keep("host"),
    "port": _keep("port"),
    "username": _keep("user"),
    "passwd": _special("password", "looked up in your file whenever it is needed, copied nowhere"),
    "sshKeyPath": _keep("keyFile"),
    "passphrase": _special("passphrase", "as `passwd`"),
    "gpuIndices": _keep("gpuIndices"),
    "maxTrialNumPerGpu": _keep("maxTrialNumberPerGpu"),
    "useActiveGpu": _keep("useActiveGpu"),
    "preCommand": _keep("prolog"),
    "pythonPath": _special("python", "the interpreter in that folder"),
}

V2_TOP: dict[str, Row] = {
    "experimentName": _keep("experimentName"),
    "name": _keep("experimentName", "as one of NNI's own examples has it"),
    "experimentType": _special("", "`hpo`; `nas` is refused"),
    "searchSpaceFile": _keep("searchSpaceFile"),
    "searchSpace": _keep("searchSpace"),
    "trialCommand": _keep("trialCommand"),
    "trialCodeDirectory": _keep("trialCodeDirectory"),
    "trialConcurrency": _keep("trialConcurrency"),
    "trialGpuNumber": _keep("trialGpuNumber"),
    "maxExperimentDuration": _keep("maxExperimentDuration", STARTED_ONCE),
    "maxTrialDuration": _keep("maxTrialDuration"),
    "maxTrialNumber": _keep("maxTrialNumber"),
    "nniManagerIp": _MANAGER,
    "useAnnotation": _ANNOTATED,
    "debug": _keep("debug"),
    "logLevel": _keep("logLevel", "`trace` is read as `debug`, `fatal` as `error`"),
    "experimentWorkingDirectory": _keep("experimentWorkingDirectory"),
    "tunerGpuIndices": _special("tuner.gpuIndices", "the tuner sees these GPUs, without it none"),
    "tuner": _special("tuner"),
    "assessor": _special("assessor"),
    "advisor": _special("tuner", "an advisor is a tuner here"),
    "trainingService": _special("trainingService", "a list runs trials on all of its services"),
    "sharedStorage": V1_TOP["sharedStorage"],
    "multiThread": _keep("multiThread", "read up to v2.1, and from `deprecated` up to v2.5"),
    "multiPhase": _PHASES,
    "deprecated": _special("", "its `multiThread` and `multiPhase` are read"),
    "extraConfig": _drop("nothing reads it"),
    "authorName": V1_TOP["authorName"],
    "description": V1_TOP["description"],
    "versionCheck": V1_TOP["versionCheck"],
    "logCollection": V1_TOP["logCollection"],
}

V2_ALGORITHM: dict[str, Row] = {
    "name": _special("name", "see the table of algorithms"),
    "className": _keep("className"),
    "codeDirectory": _keep("codeDirectory"),
    "classDirectory": _keep("codeDirectory", "of v2.0"),
    "classArgs": _special("classArgs"),
}

_REPEATED = _special("", "the same key of the top level, which it overrides")

V2_SERVICE: dict[str, Row] = {
    "platform": _keep("platform", "`remote` is `ssh` here"),
    "trialCommand": _REPEATED,
    "trialCodeDirectory": _REPEATED,
    "trialGpuNumber": _REPEATED,
    "nniManagerIp": _drop(NO_ADDRESS),
    "debug": _REPEATED,
    "reuseMode": _drop(REUSE),
    "useActiveGpu": _keep("useActiveGpu"),
    "maxTrialNumberPerGpu": _keep("maxTrialNumberPerGpu"),
    "gpuIndices": _keep("gpuIndices"),
    "machineList": _special("machineList"),
}

V2_MACHINE: dict[str, Row] = {
    "host": _keep("host"),
    "port": _keep("port"),
    "user": _keep("user"),
    "password": _special(
        "password", "looked up in your file whenever it is needed, copied nowhere"
    ),
    "sshKeyFile": _keep("keyFile"),
    "sshPassphrase": _special("passphrase", "as `password`"),
    "passphrase": _special("passphrase", "as v3's converter writes it"),
    "useActiveGpu": _keep("useActiveGpu"),
    "maxTrialNumberPerGpu": _keep("maxTrialNumberPerGpu"),
    "gpuIndices": _keep("gpuIndices"),
    "pythonPath": _special("python", "the interpreter in that folder"),
}

ANNOTATIONS: dict[str, str] = {
    "variable": "same: the assignment that follows gets the drawn value; `choice` of any "
    "expressions, and NNI's other nine types",
    "function_choice": "better: also where the call stands within another; a choice that no call "
    "of the next statement is among is refused",
    "mutable_layers": "same with `classic_mode`; tuners of your own get the type `mutable_layer`, "
    "built-in ones a plain choice for each layer and its inputs",
    "get_next_parameter": "same",
    "report_intermediate_result": "same",
    "report_final_result": "same",
    "training_update": "same: it does nothing in `classic_mode`",
}
"""Every ``@nni.…`` annotation, and what becomes of it here."""

SECTIONS: dict[str, dict[str, Row]] = {
    "v1, top level": V1_TOP,
    "v1, `trial`": V1_TRIAL,
    "v1, `tuner`, `assessor`, `advisor`": V1_ALGORITHM,
    "v1, `localConfig`": V1_LOCAL,
    "v1, `remoteConfig`": V1_REMOTE,
    "v1, `machineList`": V1_MACHINE,
    "v2 and v3, top level": V2_TOP,
    "v2 and v3, `tuner`, `assessor`, `advisor`": V2_ALGORITHM,
    "v2 and v3, `trainingService`": V2_SERVICE,
    "v2 and v3, `machineList`": V2_MACHINE,
    **OF_CLUSTERS,
}
"""All tables, by what a reader calls them."""

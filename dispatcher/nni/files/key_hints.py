"""Hints for keys of NNI's in files of ours: what to write instead.

Whole files of NNI's are translated, see :mod:`dispatcher.nni.files`; a key of NNI's in one
of ours should get an answer, not just "unknown key".
"""

from __future__ import annotations

from dispatcher.experiment.fields import fold_word

_RENAMED = {
    "maxExecDuration": "maxExperimentDuration",
    "maxTrialNum": "maxTrialNumber",
    "searchSpacePath": "searchSpaceFile",
    "logDir": "experimentWorkingDirectory",
    "codeDir": "trialCodeDirectory",
    "command": "trialCommand",
}
_TUNER_GPUS = "set CUDA_VISIBLE_DEVICES where you start the experiment"
_OF_MACHINES = "it says what a machine has: write it below 'trainingService'"
_OF_TRIALS = "it says what a trial takes: write it at the top level or below 'trainingService'"
_MACHINES = "write 'trainingService: {platform: ssh, machineList: [{host: …}]}'"
_NOT_NEEDED = "remove it: nothing here needs it"

_TOP = {old: f"write '{new}'" for old, new in _RENAMED.items()} | {
    "trial": "write 'trialCommand' and 'trialCodeDirectory' at the top level",
    "tunerGpuIndices": _TUNER_GPUS,
    "gpuNum": "write 'trialGpuNumber'",
    "gpuIndices": _OF_MACHINES,
    "maxTrialNumberPerGpu": _OF_MACHINES,
    "maxTrialNumPerGpu": _OF_MACHINES,
    "useActiveGpu": _OF_MACHINES,
    "nniManagerIp": "remove it, or set 'channel: {transport: tcp, host: …}'",
    "advisor": "an advisor is a tuner here: write 'tuner'",
    "sharedStorage": "write 'weightsRoot', a folder that is mounted already",
    "experimentType": _NOT_NEEDED,
    "authorName": _NOT_NEEDED,
    "description": "remove it, or put it into a comment",
    "versionCheck": _NOT_NEEDED,
    "logCollection": "remove it: logs are always collected",
    "multiPhase": "remove it: have each phase proposed as a trial of its own",
    "localConfig": "write its keys below 'trainingService'",
    "remoteConfig": _MACHINES,
    "machineList": _MACHINES,
    "hybridConfig": "write 'trainingService' as a list of services",
    "trainingServiceConfig": "write 'trainingService'",
}
_SERVICE = {
    "gpuNum": "write 'trialGpuNumber'",
    "reuse": "write 'reuseMode'",
    "machineList": "machines belong to 'platform: ssh'",
}
_MACHINE = {
    "trialGpuNumber": _OF_TRIALS,
    "trialCpuNumber": _OF_TRIALS,
    "trialMemorySize": _OF_TRIALS,
    "pythonPath": "write 'python', the interpreter itself",
}
_ALGORITHM = {
    "builtinTunerName": "write 'name'",
    "builtinAssessorName": "write 'name'",
    "classFileName": "write 'file', and the bare class name in 'className'",
    "codeDir": "write 'codeDirectory'",
    "gpuIndices": _TUNER_GPUS,
    "includeIntermediateResults": "remove it",
    "checkpointDir": "remove it: a tuner receives its folder",
}
_BY_SECTION: dict[str, dict[str, str]] = {
    section: {fold_word(key): hint for key, hint in hints.items()}
    for section, hints in {
        "": _TOP,
        "tuner": _ALGORITHM,
        "assessor": _ALGORITHM,
        "trainingService": _SERVICE,
        "machineList": _MACHINE,
    }.items()
}


def nni_hint(section: str, key: str) -> str:
    """Return what to write instead of a key of NNI's; empty if it is no key of NNI's."""
    return _BY_SECTION.get(section, {}).get(fold_word(key), "")

"""Every key of NNI's sections for clusters, and what becomes of it here.

The pages of the docs are made from these tables, and the translation follows them.
"""

from __future__ import annotations

from dispatcher.experiment.translated_keys import Does, Row


def _keep(native: str, note: str = "") -> Row:
    return Row(Does.KEEP, native, note)


def _special(native: str, note: str = "") -> Row:
    return Row(Does.SPECIAL, native, note)


def _refuse(note: str) -> Row:
    return Row(Does.REFUSE, "", note)


def _drop(note: str) -> Row:
    return Row(Does.DROP, "", note)


_CODE = _keep("trialCodeDirectory", "brought to the jobs")
_NAS = _special("", "`classic_mode`; others are refused: ENAS and SPOS are tuners here")
_KEY = "looked up in your file whenever it is needed, copied nowhere"
_TOKEN = _special("token", _KEY)
_REUSE = _special("allocations.trials", "`false` gives each trial a job of its own")
_ADDRESS = _special("headAddress", "where jobs reach this machine; `channel` listens there")
_REPEATED = _special("", "the same key of the top level, which it overrides")
_IMAGE = _special("image", "`msranni/nni:latest`, as in NNI, if not given")
_ACTIVE = _drop("the GPUs of a job's node are its own")

_PAI_JOB = (
    "it is a whole job of OpenPAI: write its CPUs, memory, image and storage by the keys of this "
    "section, and what it has as 'extras' as 'extras' beside them"
)
_HDFS = (
    "it lies on HDFS, which no OpenPAI since 1.0 has: copy it to a storage of the cluster, and let "
    "the program read it at /mnt/NAME"
)
_PORTS = "the program may take a free port by itself: leave it out"
_AUTH_FILE = (
    "it is a login to a registry on HDFS: write 'registry: {address: …, user: …, password: "
    "env:NAME}' in 'paiConfig'"
)

V1_PAI_TRIAL: dict[str, Row] = {
    "command": _keep("trialCommand"),
    "codeDir": _CODE,
    "gpuNum": _special("gpus", "of a job's node, and of a trial"),
    "cpuNum": _special("cpus", "of a job's node"),
    "memoryMB": _special("memory", "of a job's node"),
    "image": _IMAGE,
    "shmMB": _special("sharedMemory"),
    "virtualCluster": _keep("virtualCluster"),
    "nniManagerNFSMountPath": _special("mounts", "and `sharedFolder`: code, logs and messages"),
    "containerNFSMountPath": _special("mounts", "where jobs have that folder"),
    "paiStorageConfigName": _special("storages"),
    "paiStoragePlugin": _drop("OpenPAI has one way to name a storage"),
    "paiConfigPath": _refuse(_PAI_JOB),
    "authFile": _refuse(_AUTH_FILE),
    "dataDir": _refuse(_HDFS),
    "outputDir": _refuse(_HDFS),
    "portList": _refuse(_PORTS),
    "nasMode": _NAS,
}

_BY_LOGIN = (
    "jobs are asked for by an application token: make one on your profile page of the cluster, and "
    "write 'token: env:NAME' or 'token: file:PATH' in its place"
)

V1_PAI: dict[str, Row] = {
    "host": _keep("address"),
    "userName": _keep("user"),
    "token": _TOKEN,
    "passWord": _refuse(_BY_LOGIN),
    "reuse": _REUSE,
    "gpuNum": _special("gpus", "of a job's node; those of `trial` if not given"),
    "cpuNum": _special("cpus", "as `gpuNum`"),
    "memoryMB": _special("memory", "as `gpuNum`"),
    "maxTrialNumPerGpu": _keep("maxTrialNumberPerGpu"),
    "useActiveGpu": _ACTIVE,
}

_V2_COMMON: dict[str, Row] = {
    "platform": _special("platform"),
    "trialCommand": _REPEATED,
    "trialCodeDirectory": _REPEATED,
    "trialGpuNumber": _REPEATED,
    "nniManagerIp": _ADDRESS,
    "debug": _REPEATED,
    "reuseMode": _REUSE,
}

V2_OPENPAI: dict[str, Row] = {
    **_V2_COMMON,
    "trialGpuNumber": _special("gpus", "of a job's node, and of a trial"),
    "host": _keep("address"),
    "username": _keep("user"),
    "token": _TOKEN,
    "trialCpuNumber": _special("cpus", "of a job's node"),
    "trialMemorySize": _special("memory", "of a job's node"),
    "storageConfigName": _special("storages"),
    "dockerImage": _IMAGE,
    "virtualCluster": _keep("virtualCluster"),
    "localStorageMountPoint": _special("mounts", "and `sharedFolder`: code, logs and messages"),
    "containerStorageMountPoint": _special("mounts", "where jobs have that folder"),
    "openpaiConfig": _refuse(_PAI_JOB),
    "openpaiConfigFile": _refuse(_PAI_JOB),
}

_REGISTRY_LOGIN = (
    "NNI made a Secret of that file: make one by 'kubectl create secret generic NAME "
    "--type=kubernetes.io/dockerconfigjson --from-file=.dockerconfigjson=PATH', and write "
    "'imagePullSecrets: [NAME]' in the section with 'storage'"
)
_ROLE_COMMAND = _special("command", "`trialCommand`: by `BEQUEATH_ROLE` where roles differ")

V1_ROLE: dict[str, Row] = {
    "replicas": _special("replicas"),
    "command": _ROLE_COMMAND,
    "gpuNum": _special("gpus", "`limits`"),
    "cpuNum": _special("cpus", "`limits`"),
    "memoryMB": _special("memory", "`limits`"),
    "image": _special("image"),
    "privateRegistryAuthPath": _refuse(_REGISTRY_LOGIN),
}

V2_ROLE: dict[str, Row] = {
    "replicas": _special("replicas"),
    "command": _ROLE_COMMAND,
    "gpuNumber": _special("gpus", "`limits`"),
    "cpuNumber": _special("cpus", "`limits`"),
    "memorySize": _special("memory", "`limits`"),
    "dockerImage": _IMAGE,
    "codeDirectory": _special("code", "`trialCodeDirectory`, the same for all roles"),
    "privateRegistryAuthPath": _refuse(_REGISTRY_LOGIN),
}

_POLICY = _special("policy", "the first pod of the first role decides, and a pod that fails")
_NAMED: dict[str, Row] = {"name": _special("name"), "frameworkAttemptCompletionPolicy": _POLICY}

V1_TASK_ROLE: dict[str, Row] = {
    **_NAMED,
    "taskNum": _special("replicas"),
    **{key: row for key, row in V1_ROLE.items() if key != "replicas"},
}
V2_TASK_ROLE: dict[str, Row] = {
    **_NAMED,
    "taskNumber": _special("replicas"),
    **{key: row for key, row in V2_ROLE.items() if key != "replicas"},
}

V1_KUBEFLOW_TRIAL: dict[str, Row] = {
    "codeDir": _CODE,
    "nasMode": _NAS,
    "ps": _special("roles", "its keys are below"),
    "master": _special("roles", "its keys are below"),
    "worker": _special("roles", "its keys are below"),
}
V1_FRAMEWORK_TRIAL: dict[str, Row] = {
    "codeDir": _CODE,
    "nasMode": _NAS,
    "taskRoles": _special("roles", "its keys are below"),
}

_NFS = _special("volumes", "at `/tmp/mount` in the pods, as in NNI; `workFolder` lies below")
AZURE = (
    "NNI kept code and logs in that share, and both go by the agents here; for what trials "
    "themselves keep there, make a claim for it and write 'volumes: [{claim: NAME, at: "
    "/tmp/mount}]'"
)
_AZURE = _special("", "not needed for code and logs; for more make a claim, and write `volumes`")
_NAMESPACE = _special("namespace", "`default`, as in NNI, if not given")

_V1_STORAGE: dict[str, Row] = {
    "storage": _special("volumes"),
    "nfs": _NFS,
    "keyVault": _AZURE,
    "azureStorage": _AZURE,
    "uploadRetryCount": _drop("nothing is uploaded"),
    "reuse": _REUSE,
    "namespace": _NAMESPACE,
}
_OPERATOR = _special("kind", "`tf-operator` is `TFJob`, `pytorch-operator` is `PyTorchJob`")
_VERSION = _special("apiVersion", "`v1`; older ones are refused: no operator serves them any more")

V1_KUBEFLOW: dict[str, Row] = {**_V1_STORAGE, "operator": _OPERATOR, "apiVersion": _VERSION}

_TEMPLATE = (
    "templates of Frameworks are not read: write its roles as 'taskRoles' below 'trial', and its "
    "volumes, as 'volumes: [{claim: NAME, at: PATH}]', in 'frameworkcontrollerConfig'"
)
_PVC = "it is a folder of this machine, which needs none: pods get claims by 'volumes'"

V1_FRAMEWORK: dict[str, Row] = {
    **_V1_STORAGE,
    "serviceAccountName": _keep("serviceAccount", "NNI's init container needed it"),
    "pvc": Row(Does.NOTHING, "", _PVC),
    "configPath": _refuse(_TEMPLATE),
}

_V2_PODS: dict[str, Row] = {
    **_V2_COMMON,
    "storage": _special("volumes", "an NFS export, at `/tmp/mount`; its keys are below"),
    "namespace": _NAMESPACE,
}
V2_KUBEFLOW: dict[str, Row] = {
    **_V2_PODS,
    "operator": _OPERATOR,
    "apiVersion": _VERSION,
    "worker": _special("roles", "its keys are below"),
    "ps": _special("roles", "its keys are below"),
    "master": _special("roles", "its keys are below"),
}
V2_FRAMEWORK: dict[str, Row] = {
    **_V2_PODS,
    "serviceAccountName": _keep("serviceAccount", "NNI's init container needed it"),
    "taskRoles": _special("roles", "its keys are below"),
}
V2_STORAGE: dict[str, Row] = {
    "storageType": _special("volumes", "`nfs`, or `azureStorage`"),
    "server": _NFS,
    "path": _NFS,
    "azureAccount": _AZURE,
    "azureShare": _AZURE,
    "keyVaultName": _AZURE,
    "keyVaultKey": _AZURE,
}

_CLAIMS = (
    "no claim is made for each trial: name a 'weightsRoot' on a volume of the pods, and save "
    "by bequeath's checkpoints there"
)

V1_ADL_TRIAL: dict[str, Row] = {
    "command": _keep("trialCommand"),
    "codeDir": _special("codeFolder", "a path of the image; a relative one is brought from here"),
    "gpuNum": _special("limits"),
    "cpuNum": _special("requests"),
    "memorySize": _special("requests"),
    "image": _IMAGE,
    "imagePullSecrets": _special("imagePullSecrets"),
    "adaptive": _special("preemptible", "`false`, as in NNI, if not given"),
    "checkpoint": Row(Does.NOTHING, "", _CLAIMS),
    "namespace": _NAMESPACE,
    "nfs": _special("volumes", "`workFolder` lies below it"),
    "nasMode": _NAS,
}

_JOB: dict[str, Row] = {
    "command": _keep("trialCommand"),
    "codeDir": _CODE,
    "gpuNum": _special("gpus", "of a job's node, and of a trial"),
    "image": _IMAGE,
    "nasMode": _NAS,
}
_SHARES = "jobs get keys and code by a `sharedFolder`, which the section needs beside NNI's keys"

V1_AML_TRIAL: dict[str, Row] = _JOB
V1_AML: dict[str, Row] = {
    "subscriptionId": _keep("subscriptionId"),
    "resourceGroup": _keep("resourceGroup"),
    "workspaceName": _keep("workspace", _SHARES),
    "computeTarget": _keep("compute"),
    "maxTrialNumPerGpu": _keep("maxTrialNumberPerGpu"),
    "useActiveGpu": _ACTIVE,
}
V2_AML: dict[str, Row] = {
    **_V2_COMMON,
    "trialGpuNumber": _special("gpus", "of a job's node, and of a trial"),
    "subscriptionId": _keep("subscriptionId"),
    "resourceGroup": _keep("resourceGroup"),
    "workspaceName": _keep("workspace", _SHARES),
    "computeTarget": _keep("compute"),
    "dockerImage": _IMAGE,
    "maxTrialNumberPerGpu": _keep("maxTrialNumberPerGpu"),
}

V1_DLTS_TRIAL: dict[str, Row] = _JOB
V1_DLTS: dict[str, Row] = {
    "dashboard": _keep("address", _SHARES),
    "cluster": _keep("cluster"),
    "team": _keep("team"),
    "email": _keep("email"),
    "password": _special("password", _KEY),
}

V2_DLC: dict[str, Row] = {
    **_V2_COMMON,
    "trialGpuNumber": _special("gpus", "of a job's node, and of a trial"),
    "type": _drop("all nodes of a job are workers"),
    "jobType": _drop("each job is a PyTorchJob, whose nodes know their ranks"),
    "image": _keep("image"),
    "podCount": _special("", "`trialNodes`"),
    "ecsSpec": _special("ecsSpec", "of a quota, as the text of a dict: `resourceId`, `cpus`, …"),
    "region": _keep("region"),
    "workspaceId": _keep("workspaceId"),
    "nasDataSourceId": _special("dataSources"),
    "ossDataSourceId": _special("dataSources", "where the data set itself says"),
    "localStorageMountPoint": _special("sharedFolder", "and `here` of the NAS"),
    "containerStorageMountPoint": _special("dataSources", "`at` of the NAS"),
    "accessKeyId": _special("accessKeyId", _KEY),
    "accessKeySecret": _special("accessKeySecret", _KEY),
}

SECTIONS: dict[str, dict[str, Row]] = {
    "v1, `trial` of `pai`": V1_PAI_TRIAL,
    "v1, `paiConfig`": V1_PAI,
    "v1, `trial` of `kubeflow`": V1_KUBEFLOW_TRIAL,
    "v1, `ps`, `master`, `worker`": V1_ROLE,
    "v1, `kubeflowConfig`": V1_KUBEFLOW,
    "v1, `trial` of `frameworkcontroller`": V1_FRAMEWORK_TRIAL,
    "v1, `taskRoles`": V1_TASK_ROLE,
    "v1, `frameworkcontrollerConfig`": V1_FRAMEWORK,
    "v1, `trial` of `adl`": V1_ADL_TRIAL,
    "v1, `trial` of `aml`": V1_AML_TRIAL,
    "v1, `amlConfig`": V1_AML,
    "v1, `trial` of `dlts`": V1_DLTS_TRIAL,
    "v1, `dltsConfig`": V1_DLTS,
    "v2 and v3, `trainingService` of `openpai`": V2_OPENPAI,
    "v2 and v3, `trainingService` of `kubeflow`": V2_KUBEFLOW,
    "v2 and v3, `worker`, `ps`, `master`": V2_ROLE,
    "v2 and v3, `trainingService` of `frameworkcontroller`": V2_FRAMEWORK,
    "v2 and v3, `taskRoles`": V2_TASK_ROLE,
    "v2 and v3, `storage`": V2_STORAGE,
    "v2 and v3, `trainingService` of `aml`": V2_AML,
    "v2 and v3, `trainingService` of `dlc`": V2_DLC,
}
"""All tables, by what a reader calls them."""

"""Files for clusters as NNI's own examples have them, written anew from its schema."""

from __future__ import annotations

_TOP_V1 = """\
authorName: somebody
experimentName: digits
trialConcurrency: 2
maxExecDuration: 3h
maxTrialNum: 10
{manager}trainingServicePlatform: {platform}
searchSpacePath: space.json
useAnnotation: false
tuner:
  builtinTunerName: Random
"""

PAI_V1 = (
    _TOP_V1.format(platform="pai", manager="")
    + """\
trial:
  command: python3 train.py
  codeDir: code
  gpuNum: 1
  cpuNum: 2
  memoryMB: 8196
  image: registry.lab/digits:1
  virtualCluster: research
  nniManagerNFSMountPath: share
  containerNFSMountPath: /mnt/confignfs-data
  paiStorageConfigName: confignfs-data
paiConfig:
  userName: alice
  token: t0ken-of-the-file
  host: pai.lab
  reuse: true
"""
)

KUBEFLOW_V1 = (
    _TOP_V1.format(platform="kubeflow", manager="nniManagerIp: 10.0.0.9\n")
    + """\
trial:
  codeDir: code
  worker:
    replicas: 2
    command: python3 train.py
    gpuNum: 1
    cpuNum: 2
    memoryMB: 8192
    image: registry.lab/digits:1
  ps:
    replicas: 1
    command: python3 serve.py
    gpuNum: 0
    cpuNum: 1
    memoryMB: 4096
    image: registry.lab/digits:1
kubeflowConfig:
  operator: tf-operator
  apiVersion: v1
  storage: nfs
  nfs:
    server: 10.10.10.10
    path: /exports/nni
"""
)

FRAMEWORK_V1 = (
    _TOP_V1.format(platform="frameworkcontroller", manager="nniManagerIp: 10.0.0.9\n")
    + """\
trial:
  codeDir: code
  taskRoles:
    - name: worker
      taskNum: 1
      command: python3 train.py
      gpuNum: 1
      cpuNum: 1
      memoryMB: 8192
      image: registry.lab/digits:1
      frameworkAttemptCompletionPolicy:
        minFailedTaskCount: 1
        minSucceededTaskCount: 1
frameworkcontrollerConfig:
  storage: nfs
  serviceAccountName: frameworkbarrier
  nfs:
    server: 10.10.10.10
    path: /exports/nni
"""
)

ADL_V1 = (
    _TOP_V1.format(platform="adl", manager="nniManagerIp: 10.0.0.9\n")
    + """\
trial:
  command: python3 /root/apps/train.py
  codeDir: /root/apps
  gpuNum: 1
  cpuNum: 2
  memorySize: 4Gi
  image: registry.lab/digits:1
  imagePullSecrets:
    - name: stagingsecrets
  adaptive: true
  checkpoint:
    storageClass: dfs
    storageSize: 1Gi
  nfs:
    server: 10.10.10.10
    path: /exports/nni
    containerMountPath: /nfs
"""
)

AML_V1 = (
    _TOP_V1.format(platform="aml", manager="nniManagerIp: 10.0.0.9\n")
    + """\
trial:
  command: python3 train.py
  codeDir: code
  gpuNum: 1
  image: registry.lab/digits:1
amlConfig:
  subscriptionId: 00000000-1111-2222-3333-444444444444
  resourceGroup: lab
  workspaceName: digits
  computeTarget: gpus
  sharedFolder: share
  mounts: {share: /mnt/share}
"""
)

DLTS_V1 = (
    _TOP_V1.format(platform="dlts", manager="nniManagerIp: 10.0.0.9\n")
    + """\
trial:
  command: python3 train.py
  codeDir: code
  gpuNum: 1
  image: registry.lab/digits:1
dltsConfig:
  dashboard: https://dlts.lab
  cluster: .default
  team: platform
  email: alice@lab.example
  password: passw0rd-of-the-file
  sharedFolder: share
  mounts: {share: /mnt/share}
"""
)

_TOP_V2 = """\
searchSpaceFile: space.json
trialConcurrency: 2
maxTrialNumber: 10
tuner:
  name: Random
{more}trainingService:
  platform: {platform}
"""

OPENPAI_V2 = (
    _TOP_V2.format(
        platform="openpai",
        more="trialCommand: python3 train.py\ntrialCodeDirectory: code\ntrialGpuNumber: 1\n",
    )
    + """\
  host: https://pai.lab
  username: alice
  token: t0ken-of-the-file
  trialCpuNumber: 2
  trialMemorySize: 8GB
  storageConfigName: confignfs-data
  dockerImage: registry.lab/digits:1
  localStorageMountPoint: share
  containerStorageMountPoint: /mnt/confignfs-data
"""
)

KUBEFLOW_V2 = (
    _TOP_V2.format(platform="kubeflow", more="nniManagerIp: 10.0.0.9\n")
    + """\
  operator: pytorch-operator
  api_version: v1
  reuseMode: false
  storage:
    storageType: nfs
    server: 10.10.10.10
    path: /exports/nni
  master:
    replicas: 1
    command: python3 train.py
    code_directory: code
    cpuNumber: 2
    gpuNumber: 1
    memorySize: 8gb
  worker:
    replicas: 1
    command: python3 train.py
    code_directory: code
    cpuNumber: 2
    gpuNumber: 1
    memorySize: 8gb
    dockerImage: registry.lab/other:1
"""
)

FRAMEWORK_V2 = (
    _TOP_V2.format(
        platform="frameworkcontroller",
        more="trialCodeDirectory: code\nnniManagerIp: 10.0.0.9\n",
    )
    + """\
  namespace: lab
  storage:
    storageType: nfs
    server: 10.10.10.10
    path: /exports/nni
  taskRoles:
    - name: ps
      dockerImage: registry.lab/digits:1
      taskNumber: 1
      command: python3 serve.py
      gpuNumber: 0
      cpuNumber: 1
      memorySize: 4gb
      frameworkAttemptCompletionPolicy:
        minFailedTaskCount: 1
        minSucceedTaskCount: -1
    - name: worker
      dockerImage: registry.lab/digits:1
      taskNumber: 2
      command: python3 train.py
      gpuNumber: 1
      cpuNumber: 2
      memorySize: 8gb
      frameworkAttemptCompletionPolicy:
        minFailedTaskCount: 1
        minSucceedTaskCount: 2
"""
)

AML_V2 = (
    _TOP_V2.format(
        platform="aml", more="trialCommand: python3 train.py\ntrialCodeDirectory: code\n"
    )
    + """\
  dockerImage: registry.lab/digits:1
  subscriptionId: 00000000-1111-2222-3333-444444444444
  resourceGroup: lab
  workspaceName: digits
  computeTarget: gpus
  sharedFolder: share
  mounts: {share: /mnt/share}
"""
)

DLC_V2 = (
    _TOP_V2.format(
        platform="dlc", more="trialCommand: python3 train.py\ntrialCodeDirectory: code\n"
    )
    + """\
  type: Worker
  image: registry.lab/digits:1
  jobType: PyTorchJob
  podCount: 1
  ecsSpec: ecs.c6.large
  region: cn-hangzhou
  workspaceId: "1234"
  accessKeyId: k3y-of-the-file
  accessKeySecret: s3cret-of-the-file
  nasDataSourceId: d-nas
  ossDataSourceId: d-oss
  localStorageMountPoint: share
  containerStorageMountPoint: /root/data
"""
)

FILES = {
    "openpai": (PAI_V1, OPENPAI_V2),
    "kubeflow": (KUBEFLOW_V1, KUBEFLOW_V2),
    "frameworkcontroller": (FRAMEWORK_V1, FRAMEWORK_V2),
    "adaptdl": (ADL_V1,),
    "azureml": (AML_V1, AML_V2),
    "dlc": (DLC_V2,),
    "dlts": (DLTS_V1,),
}
"""Files by the platform of ours that runs them."""

"""Sections of NNI's for clusters: each file becomes a section that its platform itself takes."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors, load_experiment
from dispatcher.experiment.draft import Draft
from dispatcher.experiment.loader import build_experiment, converted
from dispatcher.experiment.plugged import Unusable, installed
from dispatcher.experiment.references import resolve_reference
from dispatcher.experiment.translated_keys import Does
from dispatcher.nni.files.clusters import catalogue
from dispatcher.nni.files.clusters.catalogue import CLUSTERS
from dispatcher.nni.files.clusters.making import Making, Part
from dispatcher.nni.files.clusters.tables import SECTIONS
from tests.unit.nni.files import cluster_files as texts
from tests.unit.nni.files.conftest import V1, V2, Files

SECRETS = ("t0ken-of-the-file", "passw0rd-of-the-file", "k3y-of-the-file", "s3cret-of-the-file")

HERE = [name for name in texts.FILES if name in installed()]
MISSING = [name for name in texts.FILES if name not in installed()]
EACH = [
    pytest.param(text, id=f"{name}-{index}")
    for name in HERE
    for index, text in enumerate(texts.FILES[name])
]


@pytest.fixture(autouse=True)
def _lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kubeconfig, and a share."""
    document = {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": "https://10.1.2.3:6443"}}],
        "contexts": [{"name": "one", "context": {"cluster": "c", "namespace": "trials"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(document))
    (tmp_path / "share").mkdir()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))


def section(config: ExperimentConfig) -> Any:
    (service,) = config.services
    return service


def written(service: Any) -> dict[str, Any]:
    """What the file says of a service, under our keys."""
    made = service.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert isinstance(made, dict)
    return made


# -- files that run --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", EACH)
def test_each_file_is_taken_by_its_platform(files: Files, text: str) -> None:
    """By all checks of the platform, converted or not. Mutation: a key that it does not have."""
    config = files.load(text)
    assert config.for_nni
    service = section(config)
    assert service.allocations.max == 2, "NNI has as many jobs as trials at once"
    assert service.allocations.min == 0
    assert service.slots == 1
    native = converted(files.write(text))
    assert native is not None
    again = load_experiment(files.write(native, "native.yml"))
    assert again.model_dump() == config.model_dump()


@pytest.mark.parametrize("text", EACH)
def test_no_secret_leaves_the_file(files: Files, text: str) -> None:
    """Mutation: a token in the record of the experiment, or in what 'convert' writes."""
    config, native = files.load(text), converted(files.write(text))
    assert native is not None
    for secret in SECRETS:
        assert secret not in config.model_dump_json()
        assert secret not in native
    misspelt = text.replace("trialConcurrency: 2", "trialConcurrency: two")
    assert not [error for error in files.errors(misspelt) if any(one in error for one in SECRETS)]


def test_openpai(files: Files) -> None:
    remarks: list[str] = []
    config = files.load(texts.PAI_V1, remarks)
    service = section(config)
    assert written(service) | {"token": ""} == {
        "platform": "openpai",
        "address": "https://pai.lab",
        "user": "alice",
        "token": "",
        "virtualCluster": "research",
        "image": "registry.lab/digits:1",
        "cpus": 2,
        "memory": 8196 << 20,
        "gpus": 1,
        "storages": [{"name": "confignfs-data"}],
        "mounts": {str(files.folder / "share"): "/mnt/confignfs-data"},
        "sharedFolder": str(files.folder / "share"),
        "bringCode": True,
        "allocations": {"min": 0, "max": 2, "idle": 600.0},
        "slots": 1,
    }
    assert config.trial_gpu_number == 1
    assert config.trial_command == "python3 train.py"
    assert config.trial_code_directory == files.folder / "code"
    assert resolve_reference(service.token) == "t0ken-of-the-file"
    assert sum("clear text" in text for text in remarks) == 1
    newer = section(files.load(texts.OPENPAI_V2))
    assert (newer.cpus, newer.memory, newer.gpus) == (2, 8 << 30, 1)
    assert newer.seen(files.folder / "share/x") == "/mnt/confignfs-data/x"


def test_openpai_with_what_a_file_may_add(files: Files) -> None:
    """Resources of the job for several trials, a reference in place of a token, jobs for one trial,
    shared memory, and keys of ours. Mutation: those of a trial count for its node."""
    (files.folder / "token").write_text("x")
    text = texts.PAI_V1.replace("token: t0ken-of-the-file", "token: file:token")
    text = text.replace("reuse: true", "reuse: false\n  cpuNum: 8\n  gpuNum: 4\n  memoryMB: 32768")
    text = text.replace("  memoryMB: 8196\n", "  memoryMB: 8196\n  shmMB: 2048\n")
    text += "  maxTrialNumPerGpu: 2\n  useActiveGpu: false\n  wallTime: 12h\n"
    config = files.load(text)
    service = section(config)
    assert (service.cpus, service.gpus, service.memory) == (8, 4, 32 << 30)
    assert config.trial_gpu_number == 1
    assert service.shared_memory == 2 << 30
    assert service.token == f"file:{files.folder / 'token'}"
    assert service.allocations.trials == 1
    assert service.max_trial_number_per_gpu == 2
    assert service.slots is None, "GPUs say how many trials a node has"
    assert service.wall_time == 12 * 3600


def test_kubeflow(files: Files) -> None:
    config = files.load(texts.KUBEFLOW_V1)
    assert written(section(config)) == {
        "platform": "kubeflow",
        "kind": "TFJob",
        "namespace": "default",
        "image": "registry.lab/digits:1",
        "limits": {"cpu": "2", "memory": "8192Mi", "nvidia.com/gpu": "1"},
        "roles": [
            {"name": "worker", "replicas": 2},
            {"name": "ps", "replicas": 1, "limits": {"cpu": "1", "memory": "4096Mi"}},
        ],
        "volumes": [{"at": "/tmp/mount", "nfs": "10.10.10.10:/exports/nni"}],
        "workFolder": "/tmp/mount/nni",
        "bringCode": True,
        "headAddress": "10.0.0.9",
        "allocations": {"min": 0, "max": 2, "idle": 600.0},
        "slots": 1,
    }
    assert config.trial_nodes == 3
    assert config.channel.beyond_this_machine
    assert config.channel.listens_on == "0.0.0.0"
    assert config.trial_command == (
        'case "$BEQUEATH_ROLE" in\nworker)\npython3 train.py\n;;\nps)\npython3 serve.py\n;;\nesac'
    )
    newer = files.load(texts.KUBEFLOW_V2)
    service = section(newer)
    assert service.kind == "PyTorchJob"
    assert service.image == "msranni/nni:latest", "NNI's own, where none is named"
    assert [each.image for each in service.roles] == [None, "registry.lab/other:1"]
    assert [each.limits for each in service.roles] == [None, None], "as all have"
    assert service.limits == {"cpu": "2", "memory": "8192Mi", "nvidia.com/gpu": "1"}
    assert service.allocations.trials == 1
    assert newer.trial_nodes == 2
    assert newer.trial_command == "python3 train.py", "the same in all of them"


def test_one_pod_has_no_roles(files: Files) -> None:
    alone = texts.KUBEFLOW_V1.replace("replicas: 2", "replicas: 1")
    text = alone[: alone.index("  ps:")] + alone[alone.index("kubeflowConfig:") :]
    config = files.load(text)
    assert config.trial_nodes == 1
    assert section(config).roles == ()
    assert config.trial_command == "python3 train.py"


def test_frameworkcontroller(files: Files) -> None:
    config = files.load(texts.FRAMEWORK_V1)
    service = section(config)
    assert [each.name for each in service.roles] == ["worker"], "programs find its name"
    assert service.service_account == "frameworkbarrier"
    assert service.limits == {"cpu": "1", "memory": "8192Mi", "nvidia.com/gpu": "1"}
    assert config.trial_nodes == 1
    newer = files.load(texts.FRAMEWORK_V2)
    service = section(newer)
    assert [(each.name, each.replicas) for each in service.roles] == [("worker", 2), ("ps", 1)], (
        "one that never ends does not speak"
    )
    assert service.namespace == "lab"
    assert service.limits["nvidia.com/gpu"] == "1"
    assert service.roles[1].limits == {"cpu": "1", "memory": "4096Mi"}
    assert newer.trial_nodes == 3


def test_adaptdl(files: Files) -> None:
    remarks: list[str] = []
    config = files.load(texts.ADL_V1, remarks)
    service = section(config)
    assert service.code_folder == "/root/apps"
    assert service.bring_code is False
    assert service.preemptible is True
    assert service.image_pull_secrets == ("stagingsecrets",)
    assert service.limits == {"nvidia.com/gpu": "1"}
    assert service.requests == {"cpu": "2", "memory": "4Gi"}
    assert [each.source for each in service.volumes] == [
        {"nfs": {"server": "10.10.10.10", "path": "/exports/nni"}}
    ]
    assert service.work_folder == "/nfs/nni"
    assert any("'trial.checkpoint' has no effect here: no claim" in text for text in remarks)
    text = texts.ADL_V1.replace("codeDir: /root/apps", "codeDir: code").replace(
        "  adaptive: true\n", ""
    )
    config = files.load(text)
    assert config.trial_code_directory == files.folder / "code"
    assert section(config).bring_code is True
    assert section(config).preemptible is False, "NNI's jobs stay where they are"


@pytest.mark.skipif("azureml" in MISSING, reason="the platform is not there")
def test_azure(files: Files) -> None:
    config = files.load(texts.AML_V1)
    service = section(config)
    assert (service.workspace, service.compute, service.gpus) == ("digits", "gpus", 1)
    assert config.trial_gpu_number == 1
    assert section(files.load(texts.AML_V2)).image == "registry.lab/digits:1"


@pytest.mark.skipif("dlc" in MISSING, reason="the platform is not there")
def test_dlc(files: Files) -> None:
    config = files.load(texts.DLC_V2)
    service = section(config)
    assert resolve_reference(service.access_key_id) == "k3y-of-the-file"
    assert resolve_reference(service.access_key_secret) == "s3cret-of-the-file"
    sources = [(each.id, each.at, each.here, each.is_bucket) for each in service.data_sources]
    share = files.folder / "share"
    assert sources == [("d-nas", "/root/data", share, False), ("d-oss", None, None, True)]
    assert service.shared_folder == share
    quota = "\"{'resource_id': 'quota1', 'cpu': '4', 'memory': '10Gi', 'gpu': 1}\""
    service = section(files.load(texts.DLC_V2.replace("ecs.c6.large", quota)))
    assert (service.resource_id, service.cpus, service.gpus) == ("quota1", 4, 1)
    assert service.memory == 10 << 30


@pytest.mark.skipif("dlc" in MISSING, reason="the platform is not there")
def test_paths_of_a_share_that_no_job_has_are_named(files: Files) -> None:
    """Mutation: they are left out, and nobody is told."""
    remarks: list[str] = []
    files.load(
        texts.DLC_V2.replace(
            "  nasDataSourceId: d-nas\n", "  sharedFolder: share\n  mounts: {share: /mnt}\n"
        ),
        remarks,
    )
    named = [each for each in remarks if "no 'nasDataSourceId'" in each]
    assert len(named) == 2


@pytest.mark.skipif("dlts" in MISSING, reason="the platform is not there")
def test_dlts(files: Files) -> None:
    service = section(files.load(texts.DLTS_V1))
    assert (service.address, service.team, service.gpus) == ("https://dlts.lab", "platform", 1)
    assert resolve_reference(service.password) == "passw0rd-of-the-file"


def test_an_azure_share_is_not_needed_for_code_and_logs(files: Files) -> None:
    remarks: list[str] = []
    azure = (
        "  storage: azureStorage\n  keyVault: {vaultName: v, name: n}\n"
        "  azureStorage: {accountName: a, azureShare: s}\n"
    )
    text = texts.FRAMEWORK_V1.partition("  storage: nfs")[0] + azure
    service = section(files.load(text, remarks))
    assert service.volumes == ()
    assert any("make a claim for it and write 'volumes:" in text for text in remarks)
    claim = "  volumes: [{claim: share, at: /tmp/mount}]\n"
    assert [each.claim for each in section(files.load(text + claim)).volumes] == ["share"]


def test_volumes_of_ours_stand_before_those_of_nni(files: Files) -> None:
    """Mutation: the one is taken for a part of the other."""
    claim = "  volumes: [{claim: share, at: /data}]\n  workFolder: /data/work\n"
    service = section(files.load(texts.KUBEFLOW_V1 + claim))
    assert [each.at for each in service.volumes] == ["/data", "/tmp/mount"]
    assert service.work_folder == "/data/work", "what the file has counts, wherever it stands"


SHARED = (
    "sharedStorage:\n  storageType: NFS\n  nfsServer: 10.2.2.2\n  exportedDirectory: /exports/all\n"
    "  localMountPoint: /mnt/here\n  remoteMountPoint: /mnt/there\n  localMounted: usermount\n"
)


def test_a_share_of_all_is_a_volume_of_pods(files: Files) -> None:
    volumes = section(files.load(texts.FRAMEWORK_V1 + SHARED)).volumes
    assert [(each.at, each.nfs) for each in volumes] == [
        ("/tmp/mount", "10.10.10.10:/exports/nni"),
        ("/mnt/there", "10.2.2.2:/exports/all"),
    ]
    key = "sharedStorage: {storageType: AzureBlob, storageAccountKey: t0ken-of-the-file}\n"
    for text in (V1 + SHARED, texts.PAI_V1 + SHARED, texts.FRAMEWORK_V1 + key):
        (error,) = files.errors(text)
        assert "'sharedStorage' cannot be honoured\n  mount the share on all machines" in error
        assert "t0ken" not in error


# -- several services ------------------------------------------------------------------------------


def test_a_hybrid_of_v1_is_a_list(files: Files) -> None:
    text = texts.PAI_V1.replace("Platform: pai", "Platform: hybrid")
    text += "hybridConfig:\n  trainingServicePlatforms: [local, pai]\n"
    text += "localConfig: {useActiveGpu: true}\n"
    remarks: list[str] = []
    config = files.load(text, remarks)
    here, there = config.services
    assert here.use_active_gpu is True
    assert written(there)["address"] == "https://pai.lab"
    token = written(there)["token"]
    assert resolve_reference(token) == "t0ken-of-the-file"
    assert not [text for text in remarks if "has no effect here" in text]
    wrong = text.replace("token: t0ken-of-the-file", "token: [x]")
    (error,) = files.errors(wrong)
    assert error.startswith("e.yml:24:3: 'token' must be text")


def test_a_list_of_v2(files: Files) -> None:
    service = texts.OPENPAI_V2.partition("trainingService:\n")[2].replace("\n  ", "\n    ")
    listed = texts.OPENPAI_V2.partition("  platform: openpai")[0]
    listed += f"  - {service.strip()}\n  - platform: local\n"
    config = files.load(listed)
    assert [written(each)["platform"] for each in config.services] == ["openpai", "local"]
    assert resolve_reference(written(config.services[0])["token"]) == "t0ken-of-the-file"
    line = listed[: listed.index("8GB")].count("\n") + 1
    (error,) = files.errors(listed.replace("trialMemorySize: 8GB", "trialMemorySize: much"))
    assert error.startswith(f"e.yml:{line}:22: 'trialMemorySize' must be a size, not 'much'")


# -- files that do not -----------------------------------------------------------------------------

Wrong = tuple[str, str, str, str]

WRONG: dict[str, Wrong] = {
    "an operator's old version": (
        texts.KUBEFLOW_V1, "apiVersion: v1", "apiVersion: v1alpha2",
        "'apiVersion' is 'v1alpha2', an older form of these jobs, which went with the operators "
        "that read it: those of today have 'v1' alone\n  write 'apiVersion: v1'",
    ),
    "an operator": (
        texts.KUBEFLOW_V1, "operator: tf-operator", "operator: mpi-operator",
        "'operator' is 'mpi-operator', which is no operator of NNI's\n"
        "  there are 'tf-operator' and 'pytorch-operator'",
    ),
    "a role of another operator": (
        texts.KUBEFLOW_V2, "  worker:", "  ps:",
        "'ps' is no role of a PyTorchJob, which has 'master' and 'worker'",
    ),
    "a misspelt key of a role": (
        texts.KUBEFLOW_V1, "memoryMB: 8192", "memoryMb: 8192",
        "'memoryMb' is no key of the role 'trial.worker'\n  did you mean 'memoryMB'?",
    ),
    "a login to a registry": (
        texts.KUBEFLOW_V1, "memoryMB: 8192", "privateRegistryAuthPath: ~/.docker/config.json",
        "'privateRegistryAuthPath' cannot be honoured\n  NNI made a Secret of that file",
    ),
    "a template": (
        texts.FRAMEWORK_V1, "serviceAccountName: frameworkbarrier", "configPath: template.yml",
        "'configPath' cannot be honoured\n  templates of Frameworks are not read",
    ),
    "a name of a role": (
        texts.FRAMEWORK_V1, "name: worker", "name: my-worker",
        "names 'my-worker' among 'roles', whose names are lower-case letters",
    ),
    "a password of OpenPAI": (
        texts.PAI_V1, "token: t0ken-of-the-file", "passWord: t0ken-of-the-file",
        "'passWord' cannot be honoured\n  jobs are asked for by an application token",
    ),
    "a job of OpenPAI": (
        texts.OPENPAI_V2, "virtualCluster: x", "openpaiConfigFile: job.yml",
        "'openpaiConfigFile' cannot be honoured\n  it is a whole job of OpenPAI",
    ),
    "data on HDFS": (
        texts.PAI_V1, "virtualCluster: research", "dataDir: hdfs://10.1.1.1/data",
        "'dataDir' cannot be honoured\n  it lies on HDFS",
    ),
    "a misspelt key of ours": (
        texts.PAI_V1, "reuse: true", "wallTme: 1h",
        "unknown key 'wallTme' in 'trainingService'; did you mean 'wallTime'?",
    ),
    "a size": (
        texts.OPENPAI_V2, "trialMemorySize: 8GB", "trialMemorySize: much",
        "'trialMemorySize' must be a size, not 'much'",
    ),
    "a share without its place in jobs": (
        texts.PAI_V1, "share\n  containerNFSMountPath: /mnt/confignfs-data", "share",
        "'nniManagerNFSMountPath' is one of two paths of a share, and the other one is missing",
    ),
    "a dict that is none": (
        texts.DLC_V2, "ecsSpec: ecs.c6.large", "ecsSpec: '{[]: 1}'",
        "'ecsSpec' is no text of a dict",
    ),
    "a role in two spellings": (
        texts.KUBEFLOW_V2, "dockerImage: registry.lab/other:1", "cpu_number: 4",
        "'cpu_number' is given in two spellings\n  keep one of the two",
    ),
    "a key in two spellings": (
        texts.KUBEFLOW_V2, "reuseMode: false", "Operator: tf-operator",
        "'Operator' is 'operator' in another spelling\n  keep one of the two",
    ),
    "a share that is not there": (
        texts.PAI_V1, "nniManagerNFSMountPath: share", "nniManagerNFSMountPath: nowhere",
        "is no folder that can be written to",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_honoured_is_refused_at_its_place(files: Files, what: str) -> None:
    """With line and column in the user's own file, and nothing else with it."""
    text, before, after, expected = WRONG[what]
    if before not in text:
        before, after = "  username: alice", f"  username: alice\n  {after}"
    changed = text.replace(before, after, 1)
    errors = [each for each in files.errors(changed) if "'token'" not in each]
    found = [each for each in errors if expected in each]
    assert found, errors
    value = after.rpartition("\n")[2].strip().rpartition(": ")[2]
    line = changed[: changed.index(after) + len(after) - len(value)].count("\n") + 1
    assert found[0].startswith(f"e.yml:{line}:"), found


GONE = {
    "a word that is gone": (
        V1.replace("Platform: local", "Platform: paiYarn"),
        "e.yml:6:26: 'trainingServicePlatform' names 'paiYarn', which is OpenPAI on Hadoop's YARN: "
        "OpenPAI gave that up with its release 1.0, and NNI with v2.1\n"
        "  for an OpenPAI of today write 'pai'",
    ),
    "a list that is missing": (
        V1.replace("Platform: local", "Platform: hybrid"),
        "e.yml:6:26: 'trainingServicePlatform' needs the list of its platforms",
    ),
    "one that was of v1 alone": (
        V2.replace("platform: local", "platform: adl"),
        "e.yml:13:13: 'platform' names 'adl', which NNI had in files of v1 alone\n"
        "  'trainingService: {platform: adaptdl, …}' has it under bequeath's own keys",
    ),
    "several in one": (
        V2.replace("platform: local", "platform: hybrid"),
        "e.yml:13:13: 'platform' is several services in one\n"
        "  write 'trainingService' as a list of them",
    ),
}


@pytest.mark.parametrize("what", GONE)
def test_what_is_gone_says_what_became_of_it(files: Files, what: str) -> None:
    text, expected = GONE[what]
    (error,) = files.errors(text)
    assert error.startswith(expected)


def test_a_platform_that_is_not_there_is_named(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: keys of a platform that nobody can read."""
    gone = Unusable("the platform is not installed", "installed are others")
    monkeypatch.setattr(catalogue, "platform_named", lambda word: gone)
    for text in (texts.PAI_V1, texts.AML_V1, texts.DLTS_V1):
        (error,) = files.errors(text)
        assert "'trainingServicePlatform' names '" in error
        assert error.endswith(" here: the platform is not installed\n  installed are others")


def test_pods_need_an_address(files: Files) -> None:
    """Mutation: jobs are ordered, and nobody ever hears from one."""
    text = texts.KUBEFLOW_V1.replace("nniManagerIp: 10.0.0.9\n", "")
    (error,) = files.errors(text)
    assert error == (
        "e.yml:28:3: 'kubeflowConfig' names no address at which pods reach this machine: NNI took "
        "one of its own choice\n  write 'nniManagerIp: ADDRESS' at the top of the file, or 'jump: "
        "USER@HOST' in this section"
    )
    own = f"{text}  headAddress: 10.0.0.9:7070\n"
    own += "channel: {transport: tcp, host: 10.0.0.9, port: 7070, beyondThisMachine: true}\n"
    assert section(files.load(own)).head_address == "10.0.0.9:7070"


def test_other_sections_of_v1_are_passed_over(files: Files) -> None:
    """Of platforms that the file does not use: with what they hold, right or wrong."""
    extra = "kubeflowConfig: {operator: none}\nhybridConfig: {}\nmachineList: []\n"
    assert section(files.load(texts.PAI_V1 + extra)).platform == "openpai"
    native = converted(files.write(texts.PAI_V1 + extra))
    assert native is not None
    assert "# kubeflowConfig: the platform is pai" in native
    assert "# hybridConfig: the platform is pai" in native


# -- ours or theirs --------------------------------------------------------------------------------


def test_a_section_under_our_keys_stays_as_it_is(files: Files) -> None:
    """With code written for NNI. Mutation: a role is missed, or jobs get another namespace."""
    ours = "  image: i\n  headAddress: 127.0.0.1\n"
    config = files.load(V2.replace("local", "kubeflow") + ours)
    assert config.for_nni
    assert written(section(config)) == {
        "platform": "kubeflow",
        "image": "i",
        "headAddress": "127.0.0.1",
    }


@pytest.mark.parametrize(
    "text", [texts.OPENPAI_V2, texts.KUBEFLOW_V2, texts.FRAMEWORK_V2], ids=["pai", "kf", "fc"]
)
def test_keys_of_a_cluster_that_only_nni_has(files: Files, text: str) -> None:
    """Where no code says it. Mutation: they are unknown keys of ours."""
    for name in ("train.py", "waves.py"):
        (files.folder / "code" / name).write_text("")
    plain = text.replace("nniManagerIp: 10.0.0.9\n", "")
    extra = "" if text is texts.OPENPAI_V2 else "  headAddress: 127.0.0.1\n"
    assert files.load(plain + extra).for_nni


# -- anything at all -------------------------------------------------------------------------------


PLACES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "v1, `trial` of `pai`": (texts.PAI_V1, ("trial",)),
    "v1, `paiConfig`": (texts.PAI_V1, ("paiConfig",)),
    "v1, `trial` of `kubeflow`": (texts.KUBEFLOW_V1, ("trial",)),
    "v1, `ps`, `master`, `worker`": (texts.KUBEFLOW_V1, ("trial", "worker")),
    "v1, `kubeflowConfig`": (texts.KUBEFLOW_V1, ("kubeflowConfig",)),
    "v1, `trial` of `frameworkcontroller`": (texts.FRAMEWORK_V1, ("trial",)),
    "v1, `taskRoles`": (texts.FRAMEWORK_V1, ("trial", "taskRoles", 0)),
    "v1, `frameworkcontrollerConfig`": (texts.FRAMEWORK_V1, ("frameworkcontrollerConfig",)),
    "v1, `trial` of `adl`": (texts.ADL_V1, ("trial",)),
    "v1, `trial` of `aml`": (texts.AML_V1, ("trial",)),
    "v1, `amlConfig`": (texts.AML_V1, ("amlConfig",)),
    "v1, `trial` of `dlts`": (texts.DLTS_V1, ("trial",)),
    "v1, `dltsConfig`": (texts.DLTS_V1, ("dltsConfig",)),
    "v2 and v3, `trainingService` of `openpai`": (texts.OPENPAI_V2, ("trainingService",)),
    "v2 and v3, `trainingService` of `kubeflow`": (texts.KUBEFLOW_V2, ("trainingService",)),
    "v2 and v3, `worker`, `ps`, `master`": (texts.KUBEFLOW_V2, ("trainingService", "master")),
    "v2 and v3, `trainingService` of `frameworkcontroller`": (
        texts.FRAMEWORK_V2,
        ("trainingService",),
    ),
    "v2 and v3, `taskRoles`": (texts.FRAMEWORK_V2, ("trainingService", "taskRoles", 0)),
    "v2 and v3, `storage`": (texts.KUBEFLOW_V2, ("trainingService", "storage")),
    "v2 and v3, `trainingService` of `aml`": (texts.AML_V2, ("trainingService",)),
    "v2 and v3, `trainingService` of `dlc`": (texts.DLC_V2, ("trainingService",)),
}


def drafted(document: dict[str, Any], text: str) -> Draft:
    """What is made of a file, whether its platform is there or not."""
    (ours,) = [name for name, several in texts.FILES.items() if text in several]
    (cluster,) = [each for each in CLUSTERS if each.ours == ours]
    draft = Draft()
    making = Making(draft, document, "/e.yml", ("trainingService",))
    if "trainingService" in document:
        assert cluster.v2 is not None
        cluster.v2(making, Part(document["trainingService"], ("trainingService",)))
    else:
        assert cluster.v1 is not None
        config = Part(document.get(cluster.config, {}), (cluster.config,))
        cluster.v1(making, Part(document["trial"], ("trial",)), config)
    return draft


@pytest.mark.parametrize("title", SECTIONS)
def test_each_key_of_the_tables_has_what_takes_it(title: str) -> None:
    """Each in its section, with one after another for a value. Mutation: a row that nothing takes,
    or a key that is passed on as one of ours."""
    text, path = PLACES[title]
    for key, row in SECTIONS[title].items():
        document = yaml.safe_load(text)
        inner = document
        for each in path:
            inner = inner[each]
        inner[key] = "x"
        draft = drafted(document, text)
        at = (*path, key)
        touched = {each.source[: len(at)] for each in draft.decisions}
        touched |= {each.source[: len(at)] for each in draft.refusals}
        touched |= {each[: len(at)] for each in draft.origins.values()}
        assert at in touched or row.does is Does.SPECIAL, key
        assert not [x for x in draft.decisions if x.source == at and "bequeath's own" in x.text]


_WORDS = ["", "0", "-1", "x y", "\0", "v1", "nfs", "azureStorage", "{'cpu': 1", "env:X", "a" * 99]
_KEYS = ["name", "replicas", "command", "server", "path", "nfs", "gpuNum", "image", "token", "x"]
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from places(value, (*path, key))


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_value_in_any_place_is_an_experiment_or_a_list_of_errors(
    files: Files, data: st.DataObject
) -> None:
    every = [text for several in texts.FILES.values() for text in several]
    document = copy.deepcopy(yaml.safe_load(data.draw(st.sampled_from(every))))
    for _ in range(data.draw(st.integers(1, 2))):
        *above, last = data.draw(st.sampled_from(list(places(document))[1:]))
        inner = document
        for key in above:
            inner = inner[key]
        if data.draw(st.booleans()):
            inner[last] = data.draw(_VALUES)
        elif isinstance(inner, dict):
            inner[data.draw(st.sampled_from(_KEYS))] = data.draw(_VALUES)
    with contextlib.suppress(ExperimentFileErrors):
        build_experiment(document, base_folder=files.folder)

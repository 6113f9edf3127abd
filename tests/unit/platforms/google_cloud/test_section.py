"""What a file gets to hear before anything is asked: keys that do not fit, those of the services
that have another place here, folders in buckets, and secrets that stand in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.http_services import google as asking
from dispatcher.platforms.google_cloud import platform as module
from tests.unit.platforms.google_cloud.on_google import file_of, problems

SHARE = {"server": "10.0.0.2", "path": "/share", "mountPoint": "lab", "here": "/mnt/lab"}
NETWORK = "projects/12345/global/networks/lab"
VERTEX: dict[str, Any] = {"platform": "vertex", "machineType": "n1-standard-4"}
AI: dict[str, Any] = {"platform": "aiplatform", "scaleTier": "BASIC"}
BOTH = pytest.mark.parametrize("own", [VERTEX, AI], ids=["vertex", "aiplatform"])

Bad = dict[str, tuple[dict[str, Any], str, str]]

COMMON: Bad = {
    "a project with capitals": ({"project": "Lab"}, "project", "the id of a project"),
    "a zone": ({"region": "us-central1-a"}, "region", "must be a region, as us-central1"),
    "no project": ({"project": ...}, "project", "needs the key"),
    "a token in the file": ({"token": "ya29.s3cret"}, "token", "never the secret itself"),
    "a token that is not set": ({"token": "env:NOT_SET_HERE"}, "token", "not set here"),
    "an account": ({"serviceAccount": "nas"}, "serviceAccount", "must be an account"),
    "a network by its name": ({"network": "lab"}, "network", "projects/NUMBER/global/networks"),
    "a label with capitals": ({"labels": {"Team": "x"}}, "Team", "small letters"),
    "a label's value": ({"labels": {"team": "My Team"}}, "team", "small letters"),
    "a label of ours": ({"labels": {"bequeath-x": "y"}}, "bequeath-x", "are ours"),
    "too many labels": (
        {"labels": {f"l{n}": "x" for n in range(61)}}, "labels", "64 at most, of which 4 are ours",
    ),
    "an accelerator": ({"acceleratorType": "v100"}, "acceleratorType", "as NVIDIA_TESLA_T4"),
    "a count alone": ({"acceleratorCount": 2}, "acceleratorCount", "no 'acceleratorType'"),
    "an address of a service": ({"endpoints": {"logging": "a b"}}, "logging", "as https://HOST"),
    "a service that is none": ({"endpoints": {"log": "x.lab"}}, "log", "secretmanager"),
    "a wall time without a unit": ({"wallTime": 90}, "wallTime", "must have a unit"),
    "a trial that is longer than a job": ({"wallTime": "1h"}, "wallTime", "'maxTrialDuration'"),
}  # fmt: skip

OF_VERTEX: Bad = {
    "no machine": ({"machineType": ...}, "machineType", "needs the key"),
    "a machine of two words": ({"machineType": "big one"}, "machineType", "as n1-standard-4"),
    "a bucket by https": ({"baseOutputDirectory": "https://x"}, "baseOutputDirectory", "gs://"),
    "a share without a network": ({"nfsMounts": [SHARE]}, "nfsMounts", "no network"),
    "two shares at one place": (
        {"nfsMounts": [SHARE, SHARE], "network": NETWORK}, "mountPoint", "two shares at /mnt/nfs",
    ),
    "a share by a path": (
        {"nfsMounts": [{**SHARE, "mountPoint": "/mnt/nfs/lab"}]}, "mountPoint", "name of a folder",
    ),
    "a share's server by a name": (
        {"nfsMounts": [{**SHARE, "server": "filer"}]}, "server", "as 10.0.0.2",
    ),
    "two networks": (
        {"network": NETWORK, "networkAttachment": "a"}, "networkAttachment", "two ways",
    ),
    "pools": ({"workerPoolSpecs": []}, "workerPoolSpecs", "bequeath writes the pools"),
    "a package": ({"package_uris": ["gs://x/y.tgz"]}, "package_uris", "an image of its own"),
    "replicas": ({"replicaCount": 3}, "replicaCount", "allocations: {max: N}"),
    "tries": ({"restartJobOnWorkerRestart": True}, "restartJobOnWorkerRestart", "trialRetries"),
    "a strategy": ({"strategy": "CHEAP"}, "strategy", "SPOT"),
}  # fmt: skip

OF_AI: Bad = {
    "no machine": ({"scaleTier": ...}, "masterType", "or 'scaleTier: BASIC'"),
    "a tier of many": ({"scaleTier": "STANDARD_1"}, "scaleTier", "n1-highcpu-8"),
    "the largest tier": ({"scaleTier": "premium_1"}, "scaleTier", "11 parameter servers"),
    "a tier of TPUs": ({"scaleTier": "BASIC_TPU"}, "scaleTier", "no agent can run"),
    "a tier that is none": ({"scaleTier": "HUGE"}, "scaleTier", "BASIC_GPU"),
    "a tier and a machine": ({"masterType": "n1-standard-8"}, "masterType", "n1-standard-4"),
    "a runtime": ({"runtimeVersion": "2.11"}, "runtimeVersion", "agents need 3.9"),
    "packages": ({"packageUris": ["gs://x/y.tgz"]}, "packageUris", "in the image"),
    "workers": ({"workerCount": 3}, "workerCount", "trialNodes"),
    "parameter servers": ({"parameterServerType": "x"}, "parameterServerType", "a job of its own"),
    "an input in whole": ({"trainingInput": {}}, "trainingInput", "beside 'platform'"),
    "a search": ({"hyperparameters": {}}, "hyperparameters", "bequeath convert"),
    "a job's folder here": ({"jobDir": "/out"}, "jobDir", "gs://"),
}  # fmt: skip

TABLE = [
    *((VERTEX, f"vertex: {what}", bad) for what, bad in {**COMMON, **OF_VERTEX}.items()),
    *((AI, f"aiplatform: {what}", bad) for what, bad in {**COMMON, **OF_AI}.items()),
]


@pytest.mark.parametrize("own, what, bad", TABLE, ids=[what for _, what, _ in TABLE])
def test_a_key_that_does_not_fit(
    own: dict[str, Any], what: str, bad: tuple[dict[str, Any], str, str], tmp_path: Path
) -> None:
    keys, key, text = bad
    more = {"maxTrialDuration": "2h"} if keys.get("wallTime") == "1h" else {}
    found = problems(tmp_path, {**own, **keys}, **more)
    assert key in found, found
    assert text in found[key]
    assert "s3cret" not in str(found)


@BOTH
def test_one_that_is_in_order_and_comes_back_from_its_record(
    own: dict[str, Any], tmp_path: Path
) -> None:
    """Mutation: a record of the file that the next head cannot read."""
    keys = {**own, "labels": {"team": "nas"}, "network": NETWORK}
    assert problems(tmp_path, keys) == {}
    config = build_experiment(file_of(tmp_path, keys))
    again = from_json(to_json(config))
    assert again.services[0] == config.services[0]
    service: Any = again.services[0]
    assert service.wall_s == 604_800, "as both services have it where nobody says it"


def test_shares_are_mounted_where_vertex_mounts_them(tmp_path: Path) -> None:
    keys = {**VERTEX, "nfsMounts": [SHARE], "network": NETWORK}
    service: Any = build_experiment(file_of(tmp_path, keys)).services[0]
    assert service.seen("/mnt/lab/weights") == "/mnt/nfs/lab/weights"
    assert service.seen(tmp_path / "shared/x") == "/there/x"


@BOTH
def test_weights_in_a_bucket_go_the_way_of_a_store(own: dict[str, Any], tmp_path: Path) -> None:
    """gcsfuse has no rename at once. Mutation: a child reads weights that are half written."""
    shared = str(tmp_path / "shared")
    found = problems(tmp_path, {**own, "mounts": {shared: "/gcs/outputs/nas"}})
    assert "has 'weightsRoot' in a bucket (/gcs/outputs/nas)" in found["mounts"]
    assert "write 'weightsRoot: gs://outputs/nas'" in found["mounts"]
    both = problems(tmp_path, {**own, "mounts": {shared: "/gcs/outputs"}, "sharedFolder": shared})
    assert "Secret Manager" in both["sharedFolder"]


@BOTH
def test_the_library_of_default_credentials_is_named(
    own: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is needed: a token by reference needs none."""
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert problems(tmp_path, own) == {}
    found = problems(tmp_path, {**own, "token": ...})
    assert "needs the package google-auth" in found["platform"]
    assert asking.MISSING in found["platform"]


@BOTH
def test_what_the_services_call_otherwise_is_read(own: dict[str, Any], tmp_path: Path) -> None:
    keys = {**own, "region": ..., "image": ..., "location": "europe-west4", "imageUri": "i:2"}
    service: Any = build_experiment(file_of(tmp_path, {**keys, "timeout": "2h"})).services[0]
    assert (service.region, service.image, service.wall_time) == ("europe-west4", "i:2", 7200.0)

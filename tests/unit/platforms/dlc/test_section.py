"""What a file gets to hear before anything is asked: keys that do not fit, secrets that stand in
the file, storages that do not serve, and a key that nobody has named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.snapshot import from_json, to_json

VARIABLES = ("ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "SECURITY_TOKEN", "CREDENTIALS_URI")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of the vendor's."""
    for word in VARIABLES:
        monkeypatch.delenv(f"ALIBABA_CLOUD_{word}", raising=False)


def values(folder: Path, keys: dict[str, Any], **experiment: Any) -> dict[str, Any]:
    (folder / "shared").mkdir(exist_ok=True)
    (folder / "token").write_text("t0ken")
    service = {
        "platform": "dlc",
        "region": "cn-hangzhou",
        "workspaceId": "268",
        "accessKeyId": f"file:{folder / 'token'}",
        "accessKeySecret": f"file:{folder / 'token'}",
        "image": "registry-vpc.cn-hangzhou.aliyuncs.com/lab/nas:1",
        "ecsSpec": "ecs.g6.2xlarge",
        "dataSources": [{"id": "d-1", "at": "/mnt/nas", "here": str(folder / "shared")}],
        "sharedFolder": str(folder / "shared"),
        "codeFolder": "/app",
        "headAddress": "127.0.0.1",
        **keys,
    }
    return {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(folder),
        "trialConcurrency": 1,
        "weightsRoot": str(folder / "shared/weights"),
        "trainingService": {key: value for key, value in service.items() if value is not ...},
        **experiment,
    }


def problems(folder: Path, keys: dict[str, Any], **experiment: Any) -> dict[str, str]:
    """What is wrong, by the key."""
    try:
        build_experiment(values(folder, keys, **experiment))
    except ExperimentFileErrors as refused:
        errors = refused.errors
        return {x.where.rpartition(".")[2]: f"{x.message}; {x.hint}" for x in errors}
    return {}


def test_one_that_is_in_order_and_comes_back_from_its_record(tmp_path: Path) -> None:
    """Mutation: a record of the file that the next head cannot read."""
    keys = {"wallTime": "2h", "vpc": {"id": "vpc-1", "securityGroup": "sg-1"}, "priority": 3}
    assert problems(tmp_path, keys) == {}
    config = build_experiment(values(tmp_path, keys))
    again = from_json(to_json(config))
    assert again.services[0] == config.services[0]
    service: Any = again.services[0]
    assert service.seen(tmp_path / "shared/x") == "/mnt/nas/x"
    assert service.server == "https://pai-dlc.cn-hangzhou.aliyuncs.com"


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "an id in the file": ({"accessKeyId": "LTAI5t-hunter2"}, "accessKeyId", "write 'env:NAME'"),
    "a secret in the file": (
        {"accessKeySecret": "hunter2"}, "accessKeySecret", "never the secret itself",
    ),
    "a token in the file": ({"securityToken": "hunter2"}, "securityToken", "write 'env:NAME'"),
    "a variable that is not set": (
        {"accessKeySecret": "env:NOT_SET_HERE"}, "accessKeySecret", "not set here",
    ),
    "one half of a key": ({"accessKeySecret": ...}, "accessKeyId", "one half of an access key"),
    "a token alone": (
        {"accessKeyId": ..., "accessKeySecret": ..., "securityToken": "file:/x"}, "securityToken",
        "write 'accessKeyId', too",
    ),
    "no key": (
        {"accessKeyId": ..., "accessKeySecret": ...}, "accessKeyId",
        "neither ALIBABA_CLOUD_ACCESS_KEY_ID nor ALIBABA_CLOUD_CREDENTIALS_URI is set here",
    ),
    "a region": ({"region": "Hang Zhou"}, "region", "a region, as cn-hangzhou"),
    "an address with a login": ({"address": "https://me:pw@x"}, "address", "as https://HOST"),
    "a type of machine": ({"ecsSpec": "big"}, "ecsSpec", "as ecs.g6.2xlarge"),
    "a machine and a quota's": ({"cpus": 4}, "ecsSpec", "'ecsSpec' beside 'cpus'"),
    "no machine": ({"ecsSpec": ...}, "ecsSpec", "'resourceId', 'cpus' and 'memory'"),
    "a quota without sizes": (
        {"ecsSpec": ..., "resourceId": "q"}, "ecsSpec", "names no machine, and no quota",
    ),
    "a priority": ({"priority": 10}, "priority", "at most 9"),
    "a kind of job": ({"jobType": "TFJob"}, "jobType", "leave it out"),
    "several pods": ({"podCount": 2}, "podCount", "'allocations: {max: N}'"),
    "NNI's storages": ({"nasDataSourceId": "d-1"}, "nasDataSourceId", "write 'dataSources:"),
    "tags that are none": ({"settings": {"Tags": "x"}}, "Tags", "no mapping"),
    "a storage without a name": ({"dataSources": [{"at": "/a"}]}, "id", "an 'id' or a 'uri'"),
    "a storage with two": (
        {"dataSources": [{"id": "d", "uri": "nas://x/", "at": "/a"}]}, "id", "and not both",
    ),
    "a storage without a place": ({"dataSources": [{"uri": "nas://x/"}]}, "at", "'at: /mnt/data'"),
    "a storage of another kind": (
        {"dataSources": [{"uri": "s3://b/x", "at": "/a"}]}, "uri", "or oss://",
    ),
    "a storage with a login": (
        {"dataSources": [{"uri": "oss://id:hunter2@b/x", "at": "/a"}]}, "uri", "without a login",
    ),
    "no folder for keys": ({"sharedFolder": ...}, "sharedFolder", "keys of agents lie there"),
    "a misspelt key": ({"workspace": "268"}, "workspace", "workspaceId"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_key_that_does_not_fit(what: str, tmp_path: Path) -> None:
    keys, key, text = BAD[what]
    found = problems(tmp_path, keys)
    assert key in found, found
    assert text in found[key]
    if "login" not in what:  # the address itself is shown
        assert "hunter2" not in str(found)


def test_folders_in_buckets_are_refused(tmp_path: Path) -> None:
    """Mutation: a child that reads half of what its parent has written."""
    here = str(tmp_path / "shared")
    by_address = [{"uri": "oss://b.oss-cn-x.aliyuncs.com/x/", "at": "/mnt/oss", "here": here}]
    by_id = [{"id": "d-1", "at": "/mnt/oss", "here": here, "bucket": True}]
    for sources in (by_address, by_id):
        keys = {"dataSources": sources}
        with pytest.raises(ExperimentFileErrors) as refused:
            build_experiment(values(tmp_path, keys))
        text = str(refused.value)
        assert "'weightsRoot' in a bucket" in text
        assert "weightsRoot: oss://BUCKET/FOLDER" in text
        assert "'sharedFolder' in a bucket" in text
    inner = {"id": "d-2", "at": "/mnt/oss/nas", "here": str(tmp_path / "shared/nas")}
    (tmp_path / "shared/nas").mkdir()
    keys = {"dataSources": [*by_id, inner], "sharedFolder": str(tmp_path / "shared/nas")}
    weights = str(tmp_path / "shared/nas/weights")
    assert problems(tmp_path, keys, weightsRoot=weights) == {}, "the innermost counts"


@pytest.mark.parametrize("variable", ["ACCESS_KEY_ID", "CREDENTIALS_URI"])
def test_a_key_may_be_that_of_the_vendors_variables(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"ALIBABA_CLOUD_{variable}", "http://127.0.0.1:1/keys")
    assert problems(tmp_path, {"accessKeyId": ..., "accessKeySecret": ...}) == {}


def test_a_key_may_be_a_value_in_a_file(tmp_path: Path) -> None:
    """That of the vendor's command, for one. Mutation: the whole file is the key."""
    file = tmp_path / "config.json"
    file.write_text('{"profiles": [{"access_key_id": "i", "access_key_secret": "s"}]}')
    keys = {
        "accessKeyId": f"file:{file}#profiles/0/access_key_id",
        "accessKeySecret": f"file:{file}#profiles/0/access_key_secret",
    }
    service: Any = build_experiment(values(tmp_path, keys)).services[0]
    assert (service.key_source.key().id, service.key_source.key().secret) == ("i", "s")

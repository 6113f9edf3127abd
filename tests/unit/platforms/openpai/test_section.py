"""What a file gets to hear before anything is asked: keys that do not fit, references that lead
nowhere, folders that no job sees, and secrets that stand in the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.experiment.snapshot import from_json, to_json
from dispatcher.platforms.http_jobs import checks
from dispatcher.platforms.registry import platform_of
from tests.unit.platforms.http_jobs.test_allocator import section


def values(folder: Path, keys: dict[str, Any], **experiment: Any) -> dict[str, Any]:
    service = {**section(folder), **keys}
    return {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(folder),
        "trialConcurrency": 1,
        "weightsRoot": str(folder / "shared/weights"),
        "trainingService": {key: value for key, value in service.items() if value is not ...},
        **{key: value for key, value in experiment.items() if value is not None},
    }


def problems(folder: Path, keys: dict[str, Any], **experiment: Any) -> dict[str, str]:
    """What is wrong, by the key."""
    given = values(folder, keys, **experiment)
    given = {key: value for key, value in given.items() if value is not ...}
    try:
        build_experiment(given)
    except ExperimentFileErrors as refused:
        errors = refused.errors
        return {x.where.rpartition(".")[2]: f"{x.message}; {x.hint}" for x in errors}
    return {}


def test_one_that_is_in_order_and_comes_back_from_its_record(tmp_path: Path) -> None:
    """Mutation: a record of the file that the next head cannot read."""
    storages = ["home", {"name": "data", "at": "/d", "here": str(tmp_path)}]
    keys = {"storages": storages, "wallTime": "2h"}
    assert problems(tmp_path, keys) == {}
    config = build_experiment(values(tmp_path, keys))
    again = from_json(to_json(config))
    assert again.services[0] == config.services[0]
    service: Any = again.services[0]
    assert service.seen(tmp_path / "x") == "/d/x"
    assert service.seen(tmp_path / "shared/x") == f"{tmp_path}/there/x", "the innermost counts"
    assert [each.place for each in service.storages] == ["/mnt/home", "/d"]


BAD: dict[str, tuple[dict[str, Any], str, str]] = {
    "a secret in the file": ({"token": "eyJhbGciOi"}, "token", "never the secret itself"),
    "a variable that is not set": ({"token": "env:NOT_SET_HERE"}, "token", "not set here"),
    "a file that is not there": ({"token": "file:/nowhere/t"}, "token", "cannot be read"),
    "an address": ({"address": "pai lab"}, "address", "as https://HOST"),
    "an address with a login": ({"address": "https://me:pw@pai"}, "address", "as https://HOST"),
    "a user": ({"user": "a~b"}, "user", "a name of letters"),
    "an image of two words": ({"image": "a b"}, "image", "must be an image"),
    "a relative place": ({"mounts": {"/a": "b"}}, "/a", "from the root there"),
    "memory without a unit": ({"memory": 16}, "memory", "16GB"),
    "a wall time without a unit": ({"wallTime": 90}, "wallTime", "must have a unit"),
    "a misspelt key": ({"virtualClustr": "x"}, "virtualClustr", "virtualCluster"),
    "a missing key": ({"cpus": ...}, "cpus", "needs the key"),
    "a share that is not there": ({"sharedFolder": "/nowhere"}, "sharedFolder", "no folder"),
    "an authority that is not there": ({"caFile": "/nowhere"}, "caFile", "cannot be read"),
    "a variable of no shell": ({"environment": {"a.b": "1"}}, "environment", "no shell"),
    "a registry's password": (
        {"registry": {"address": "r", "user": "u", "password": "hunter2"}}, "password",
        "never the secret itself",
    ),
    "a registry's variable": (
        {"registry": {"address": "r", "user": "u", "password": "env:NOT_SET_HERE"}}, "password",
        "not set here",
    ),
    "code twice": ({"bringCode": True}, "bringCode", "leave one of them out"),
    "no folder for a channel": (
        {"sharedFolder": ..., "channel": "folder"}, "sharedFolder", "'channel: folder'",
    ),
    "no folder for code": (
        {"sharedFolder": ..., "bringCode": True, "codeFolder": ...}, "sharedFolder", "bringCode",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_a_key_that_does_not_fit(what: str, tmp_path: Path) -> None:
    keys, key, text = BAD[what]
    found = problems(tmp_path, keys)
    assert key in found, found
    assert text in found[key]
    assert "hunter2" not in str(found)
    assert "eyJ" not in str(found)


def test_folders_that_no_job_sees(tmp_path: Path) -> None:
    """Mutation: "file not found" an hour later."""
    outside = problems(tmp_path, {}, weightsRoot=str(tmp_path / "outside"))
    assert "holds" in outside["mounts"]
    assert "'weightsRoot'" in outside["mounts"]
    assert f"write 'mounts: {{{tmp_path / 'outside'}: PATH THERE}}'" in outside["mounts"]
    nowhere = problems(tmp_path, {}, weightsRoot=...)
    assert "where weights would lie" in nowhere["mounts"]
    reads = problems(tmp_path, {}, weightsReadRoots=[str(tmp_path)])
    assert "'weightsReadRoots'" in reads["mounts"]
    code = problems(tmp_path, {"codeFolder": ...})
    assert "'trialCodeDirectory'" in code["mounts"]
    shared = problems(tmp_path, {"mounts": {}})
    assert "'sharedFolder'" in shared["mounts"] or "'weightsRoot'" in shared["mounts"]


def test_variables_of_trials_come_by_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are secrets. Mutation: a script that no shell reads, in a job that just fails."""
    monkeypatch.setenv("A", "1")
    found = problems(tmp_path, {}, trialEnvironment={"a.b": "env:A", "c.d": "plain"})
    assert [text for text in found.values() if "'a.b'" in text]
    assert "c.d" not in str(found)


def test_several_nodes_need_a_folder_in_common(tmp_path: Path) -> None:
    found = problems(tmp_path, {"sharedFolder": ...}, trialNodes=2)
    assert "'trialNodes'" in found["sharedFolder"]


def test_a_way_to_the_head_is_needed(tmp_path: Path) -> None:
    found = problems(tmp_path, {"headAddress": ..., "sharedFolder": ...})
    assert "'headAddress: ADDRESS'" in found["headAddress"]
    assert problems(tmp_path, {"headAddress": ...}) == {}, "the shared folder is one"


def test_a_service_without_secrets_needs_a_place_for_keys(tmp_path: Path) -> None:
    """As others have none. Mutation: keys of agents in variables that a service shows."""
    config = build_experiment(values(tmp_path, {"sharedFolder": ...}))
    found = checks.check_service(
        config.services[0], (), config, has_secrets=False, packages={"urllib3": "http"}
    )
    (problem,) = [each for each in found if each.path == ("sharedFolder",)]
    assert "keys of agents lie there" in problem.text


def test_a_package_that_is_missing_is_named(tmp_path: Path) -> None:
    config = build_experiment(values(tmp_path, {}))
    packages = {"no_such_module": "pai", "no_such.inner": "pai"}
    found = list(checks.check_service(
        config.services[0], (), config, has_secrets=True, packages=packages
    ))  # fmt: skip
    assert [each.path for each in found] == [("platform",), ("platform",)]
    assert found[0].hint == "pip install 'bequeath[pai]'"


@pytest.mark.parametrize("keys, ways", [
    ({}, ("tcp", "folder")),
    ({"sharedFolder": ...}, ("tcp",)),
    ({"headAddress": ...}, ("folder",)),
    ({"jump": "me@login"}, ("tcp", "jump", "folder")),
    ({"channel": "folder"}, ("folder",)),
    ({"channel": "direct"}, ("tcp",)),
])  # fmt: skip
def test_agents_try_the_ways_that_there_are(
    keys: dict[str, Any], ways: tuple[str, ...], tmp_path: Path
) -> None:
    """Mutation: a folder is tried that nobody shares."""
    given = values(tmp_path, {key: value for key, value in keys.items() if key != "jump"})
    service: Any = build_experiment(given).services[0]
    if "jump" in keys:
        service = service.model_copy(update={"jump": object()})
    assert platform_of(service).ways_of(service, "127.0.0.1") == ways


def test_nni_s_words_are_read(tmp_path: Path) -> None:
    keys = {"address": ..., "user": ..., "image": ...}
    given = values(tmp_path, keys)
    given["trainingService"] |= {"host": "pai", "username": "bob", "dockerImage": "i:1"}
    service: Any = build_experiment(given).services[0]
    assert (service.address, service.user, service.image) == ("https://pai", "bob", "i:1")

"""The objects of a head in a cluster, and what a file must say for one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.kubernetes.manifest import (
    FILE_FOLDER,
    STATE_FOLDER,
    HeadPlan,
    file_key,
    is_name,
    namespace_of,
    objects_of,
    problems_of,
    usual_name,
    written,
)
from dispatcher.experiment import load_experiment
from dispatcher.experiment.yaml_text import read_source
from dispatcher.platforms.kubernetes.jobs import JOB
from dispatcher.platforms.kubernetes.rights import rights_of, role_of
from dispatcher.platforms.local.section import LocalServiceConfig

FILE: dict[str, Any] = {
    "searchSpace": {"x": {"_type": "choice", "_value": ["env:x", 1]}},
    "tuner": {"name": "Random"},
    "trialCommand": "true",
    "trialCodeDirectory": "/nowhere/app",
    "trialConcurrency": 1,
    "trialEnvironment": {"TOKEN": "env:TOKEN", "PLAIN": "literal:env:x"},
    "weightsRoot": "/weights/nas",
    "channel": {"transport": "tcp", "host": "0.0.0.0", "port": 7070, "beyondThisMachine": True},
}
SERVICE: dict[str, Any] = {
    "platform": "kubernetes",
    "image": "i:1",
    "namespace": "trials",
    "headAddress": "head.trials",
    "environment": {"KEY": "env:KEY"},
    "volumes": [
        {"claim": "w", "at": "/weights", "subPath": "lab"},
        {"scratch": "1Gi", "at": "/scratch"},
    ],
}


def plan_of(folder: Path, service: dict[str, Any], **keys: Any) -> HeadPlan:
    values = {k: v for k, v in {**FILE, **keys}.items() if v is not None}
    given = {k: v for k, v in {**SERVICE, **service}.items() if v is not None}
    services = values.pop("beside", [])
    values["trainingService"] = [given, *services] if services else given
    file = folder / "lab.yml"
    file.write_text(json.dumps(values, indent=1))
    config = load_experiment(file, elsewhere=True)
    source = read_source(file.read_text(), str(file))
    files = {"lab.yml": file.read_text()}
    return HeadPlan(source, config, "lab.yml", files, "head", namespace_of(config))


def kinds(plan: HeadPlan) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in objects_of(plan)}


def test_a_file_for_elsewhere_is_no_problem_here(tmp_path: Path) -> None:
    """Neither its folders nor its variables are on this machine."""
    assert list(problems_of(plan_of(tmp_path, {}))) == []


@pytest.mark.parametrize(
    "service, keys, path",
    [
        ({"kubeconfig": "k"}, {}, ("trainingService", "kubeconfig")),
        ({"context": "c"}, {}, ("trainingService", "context")),
        ({"headAddress": None}, {}, ("trainingService", "headAddress")),
        ({"headAddress": "127.0.0.1"}, {}, ("trainingService", "headAddress")),
        ({"headAddress": "login1"}, {}, ("trainingService", "headAddress")),
        ({"headAddress": "other.trials.svc.cluster.local"}, {}, ("trainingService", "headAddress")),
        ({"headAddress": "head.trials:7071"}, {}, ("trainingService", "headAddress")),
        ({}, {"channel": {**FILE["channel"], "host": "10.0.0.9"}}, ("channel",)),
        ({}, {"channel": {**FILE["channel"], "port": 0}}, ("channel",)),
        ({}, {"trialCodeDirectory": "."}, ("trialCodeDirectory",)),
        ({}, {"trialCodeDirectory": None}, ("trialCodeDirectory",)),
        ({}, {"tuner": {"className": "a:B"}}, ("tuner", "className")),
        ({}, {"tuner": {"className": "a:B", "codeDirectory": "."}}, ("tuner", "codeDirectory")),
        ({}, {"experimentWorkingDirectory": "/x"}, ("experimentWorkingDirectory",)),
        ({}, {"weightsRoot": None}, ("weightsRoot",)),
        ({}, {"weightsRoot": "/scratch/nas"}, ("weightsRoot",)),
        ({}, {"trialEnvironment": {"A": "file:/home/me/t"}}, ("trialEnvironment", "A")),
        ({}, {"description": "x" * 900_001}, ()),
    ],
)
def test_what_a_pod_could_not_work_with(
    service: dict[str, Any], keys: dict[str, Any], path: tuple[str, ...], tmp_path: Path
) -> None:
    if path == ():
        keys = {"searchSpace": {"x": {"_type": "choice", "_value": ["x" * 900_001]}}}
    plan = plan_of(tmp_path, service, **keys)
    (problem,) = problems_of(plan)
    assert problem.path == path
    assert problem.text
    assert problem.hint


@pytest.mark.parametrize(
    "address",
    [
        "head",
        "head.trials:7070",
        "head.trials.svc",
        "10.0.0.8:30070",
        "lab.example.org",
        "[fd00::1]",
    ],
)
def test_ways_to_a_head_in_a_pod(address: str, tmp_path: Path) -> None:
    """Its Service by any of its names, or what somebody has put before it."""
    assert list(problems_of(plan_of(tmp_path, {"headAddress": address}))) == []


def test_a_secret_on_a_volume_may_be_referred_to(tmp_path: Path) -> None:
    there = plan_of(tmp_path, {}, trialEnvironment={"A": "file:/weights/token"})
    assert list(problems_of(there)) == []


def test_a_file_without_a_service_of_the_cluster(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {})
    (service,) = plan.config.services
    other = LocalServiceConfig.model_validate({"platform": "local"})
    assert type(service) is not type(other)
    local = plan.config.model_copy(update={"training_service": other})
    (problem,) = problems_of(dataclasses.replace(plan, config=local))
    assert "platform: kubernetes" in problem.text


def test_the_rights_are_those_that_are_asked_for(tmp_path: Path) -> None:
    """Mutation: the manifest has a list of its own."""
    objects = kinds(plan_of(tmp_path, {}))
    role, binding = objects["Role"], objects["RoleBinding"]
    (printed, _) = role_of("trials", "somebody", [JOB])
    assert role["rules"] == printed["rules"]
    given = {(verb, kind) for rule in role["rules"] for kind in rule["resources"]
             for verb in rule["verbs"]}  # fmt: skip
    assert given == {(each.verb, each.kind.plural) for each in rights_of(JOB)}
    assert binding["roleRef"]["name"] == role["metadata"]["name"] == "head"
    account = {"kind": "ServiceAccount", "name": "head", "namespace": "trials"}
    assert binding["subjects"] == [account]


def test_two_experiments_of_a_namespace_keep_their_rights(tmp_path: Path) -> None:
    """Mutation: all bindings have one name, and the second experiment takes the first one's."""
    one = plan_of(tmp_path, {})
    two = dataclasses.replace(one, name="other")
    named = {(x["kind"], x["metadata"]["name"]) for p in (one, two) for x in objects_of(p)}
    assert len(named) == 2 * len(list(objects_of(one)))


def test_the_pod_of_the_head(tmp_path: Path) -> None:
    service = {
        "imagePullSecrets": ["pull"],
        "container": {"securityContext": {"runAsUser": 1}},
        "pod": {"securityContext": {"fsGroup": 1}, "affinity": {}},
        "python": "/opt/python",
    }
    objects = kinds(plan_of(tmp_path, service))
    deployment = objects["Deployment"]["spec"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    labels = deployment["template"]["metadata"]["labels"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items()
    assert objects["Service"]["spec"]["selector"].items() <= labels.items()
    assert objects["Service"]["spec"]["ports"][0]["port"] == 7070
    pod = deployment["template"]["spec"]
    assert pod["serviceAccountName"] == "head"
    assert pod["securityContext"] == {"fsGroup": 1}
    assert "affinity" not in pod, "it needs no GPU"
    (container,) = pod["containers"]
    assert container["command"][0] == "/opt/python"
    assert container["args"] == [f"{FILE_FOLDER}/lab.yml"]
    assert container["securityContext"] == {"runAsUser": 1}
    variables = {each["name"]: each for each in container["env"]}
    assert variables.pop("BEQUEATH_HOME")["value"] == STATE_FOLDER
    assert variables == {
        name: {
            "name": name,
            "valueFrom": {"secretKeyRef": {"name": "head-secrets", "key": name}},
        }
        for name in ("KEY", "TOKEN")
    }, "references alone: choices and plain texts are none"
    places = {each["mountPath"]: each for each in container["volumeMounts"]}
    assert set(places) == {STATE_FOLDER, FILE_FOLDER, "/weights"}, "scratch goes with a pod"
    assert places["/weights"]["subPath"] == "lab"
    assert {each["name"] for each in pod["volumes"]} == {each["name"] for each in places.values()}


def test_the_options(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, {})
    assert "storageClassName" not in kinds(plan)["PersistentVolumeClaim"]["spec"]
    other = dataclasses.replace(plan, image="own:2", storage_class="fast", namespace="heads")
    objects = kinds(other)
    assert objects["PersistentVolumeClaim"]["spec"]["storageClassName"] == "fast"
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "own:2"
    assert objects["Deployment"]["metadata"]["namespace"] == "heads"
    assert objects["Role"]["metadata"]["namespace"] == "trials", "where its trials run"
    assert objects["RoleBinding"]["subjects"][0]["namespace"] == "heads"


@pytest.mark.parametrize(
    "experiment, name",
    [
        ("Digits of the lab", "bequeath-digits-of-the-lab"),
        ("7", "bequeath-7"),
        ("ä_b" * 40, "bequeath-" + "-".join(["b"] * 20)),
        ("…", "bequeath"),
    ],
)
def test_usual_names_are_names(experiment: str, name: str) -> None:
    assert usual_name(experiment) == name
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "a" * 49, "1a", "A", "a-", "a.b", "a\n"])
def test_what_is_no_name(name: str) -> None:
    assert not is_name(name)


def test_names_of_files_and_spellings_of_keys() -> None:
    assert file_key("lab 1.yml") == "experiment.yml"
    assert file_key("lab 1.yml", ["experiment.yml"]) == "the-experiment.yml"
    assert file_key("lab.yml", ["experiment.yml"]) == "lab.yml"


def test_a_search_space_with_a_name_that_no_config_map_takes(tmp_path: Path) -> None:
    """Mutation: `kubectl apply` makes half of the objects, and refuses the one with the file."""
    plan = plan_of(tmp_path, {})
    named = dataclasses.replace(plan, files={**plan.files, "my space.json": "{}"})
    (problem,) = problems_of(named)
    assert problem.path == ("searchSpaceFile",)
    assert "rename it" in problem.hint
    values = {"training_service": [{"Head-Address": 1}]}
    path = ("trainingService", 0, "headAddress")
    assert written(values, path) == ("training_service", 0, "Head-Address")
    assert written(values, ("channel", "port")) == ()

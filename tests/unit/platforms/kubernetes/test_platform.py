"""What a file gets to hear before anything is ordered, and what an order becomes on its way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.platforms.kubernetes import KUBERNETES, checks
from dispatcher.platforms.kubernetes.section import KubernetesSection
from dispatcher.platforms.kubernetes.translation import order_there
from tests.unit.platforms.kubernetes.test_bodies import order, section
from trial_runtime.weights.remote.address import RemoteRoot


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def kubeconfig(folder: Path, server: str = "https://10.1.2.3:6443") -> str:
    document = {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "one", "context": {"cluster": "c"}}],
    }
    (folder / "k").write_text(json.dumps(document))
    return str(folder / "k")


def problems(folder: Path, keys: dict[str, Any], **experiment: Any) -> dict[str, str]:
    """What is wrong, by the key."""
    values = {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(folder),
        "trialConcurrency": 1,
        "trainingService": {"platform": "kubernetes", "image": "i", **keys},
        **experiment,
    }
    try:
        build_experiment(values)
    except ExperimentFileErrors as refused:
        errors = refused.errors
        return {x.where.rpartition(".")[2]: f"{x.message}; {x.hint}" for x in errors}
    return {}


OPEN = {"transport": "tcp", "host": "10.0.0.9", "beyondThisMachine": True}


def test_one_that_is_in_order(tmp_path: Path) -> None:
    keys = {"kubeconfig": kubeconfig(tmp_path)}
    assert problems(tmp_path, keys, channel=OPEN) == {}


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_pods_must_reach_the_head(host: str, tmp_path: Path) -> None:
    """Mutation: they are ordered, and nobody ever hears from one."""
    channel = {"transport": "tcp", "host": host, "beyondThisMachine": True}
    keys = {"kubeconfig": kubeconfig(tmp_path)}
    found = problems(tmp_path, keys, channel=channel)
    assert "headAddress: ADDRESS" in found.pop("headAddress")
    assert found == {}
    assert problems(tmp_path, keys | {"headAddress": "head.lab:7070"}, channel=channel) == {}


def test_clusters_that_nobody_knows(tmp_path: Path) -> None:
    assert "no cluster is known here" in problems(tmp_path, {})["kubeconfig"]
    missing = problems(tmp_path, {"kubeconfig": str(tmp_path / "none")})
    assert "does not exist" in missing["kubeconfig"]
    keys = {"kubeconfig": kubeconfig(tmp_path), "context": "two"}
    assert "no context 'two'" in problems(tmp_path, keys)["context"].replace('"', "'")


def test_references_and_folders(tmp_path: Path) -> None:
    keys = {
        "kubeconfig": kubeconfig(tmp_path),
        "environment": {"KEY": "env:NOBODY_HAS_SET_THIS"},
        "weightsReadRoots": ["/a", "/b"],
    }
    found = problems(tmp_path, keys, channel=OPEN)
    assert "NOBODY_HAS_SET_THIS" in found["KEY"]
    assert "names 2 folders" in found["weightsReadRoots"]


VOLUME = {"claim": "w", "at": "/weights"}


@pytest.mark.parametrize(
    "keys, hint",
    [
        ({}, "add a volume that all pods may write to"),
        ({"volumes": [VOLUME]}, "write 'workFolder: /weights/bequeath'"),
        (
            {"volumes": [{**VOLUME, "readOnly": True}]},
            "add a volume that all pods may write to",
        ),
        (
            {
                "volumes": [VOLUME, {"scratch": "1Gi", "at": "/weights/b"}],
                "workFolder": "/weights/b",
            },
            "write 'workFolder: /weights/bequeath'",
        ),
        ({"volumes": [VOLUME], "workFolder": "/weightsless"}, "'workFolder: /weights/bequeath'"),
    ],
)
def test_pods_of_one_trial_need_a_folder_to_meet_in(
    keys: dict[str, Any], hint: str, tmp_path: Path
) -> None:
    keys = {"kubeconfig": kubeconfig(tmp_path), **keys}
    assert problems(tmp_path, keys, channel=OPEN) == {}, "one alone needs none"
    found = problems(tmp_path, keys, channel=OPEN, trialNodes=2)
    text = found.pop("workFolder")
    assert "the pods of a trial meet in it ('trialNodes')" in text
    assert hint in text
    assert found == {}


def test_a_folder_of_a_volume_will_do(tmp_path: Path) -> None:
    meeting = {"volumes": [VOLUME], "workFolder": "/weights/b"}
    keys = {"kubeconfig": kubeconfig(tmp_path), **meeting}
    assert problems(tmp_path, keys, channel=OPEN, trialNodes=2) == {}


def test_the_extra_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    found = problems(tmp_path, {"kubeconfig": kubeconfig(tmp_path)}, channel=OPEN)
    assert found["platform"].endswith("pip install 'bequeath[kubernetes]'")


def test_an_order_gets_the_paths_of_a_pod() -> None:
    keys = {"codeFolder": "/app", "weightsRoot": "/w", "workFolder": "/scratch/b"}
    there = order_there(order(), section(**keys), token="T").config
    assert there.rank_variable == "JOB_COMPLETION_INDEX"
    assert there.head == order().config.head
    assert there.experiment_folder == "/scratch/b/experiments/abc123/kubernetes-2"
    assert there.trial.code_directory == "/app"
    assert there.weights_root == "/w"
    assert there.canonical_root == "/weights"
    assert there.ticket == "S3CRET-TICKET"


def test_what_is_not_named_is_as_it_is_here() -> None:
    there = order_there(order(), section(), token="T").config
    assert (there.trial.code_directory, there.weights_root) == ("/code", "/weights")


def test_secrets_reach_the_pod_as_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """References mean something here only. Mutation: a pod is to resolve them."""
    monkeypatch.setenv("MY_TOKEN", "S3CRET")
    given = order()
    trial = replace(given.config.trial, environment={"TOKEN": "env:MY_TOKEN", "PLAIN": "1"})
    given = dataclasses.replace(given, config=replace(given.config, trial=trial))
    own = section(environment={"OWN": "env:MY_TOKEN", "LITERAL": "literal:env:x"})
    there = order_there(given, own, token="T")
    assert "S3CRET" not in str(there.config.trial)
    assert there.environment["BEQUEATH_SECRET_TOKEN"] == "S3CRET"
    assert there.environment["OWN"] == "S3CRET"
    assert there.environment["LITERAL"] == "env:x"
    assert there.config.trial.environment["TOKEN"] == "env:BEQUEATH_SECRET_TOKEN"
    assert there.config.trial.environment["PLAIN"] == "1"
    assert "PYTHONPATH" not in there.environment


def test_weights_in_a_store_have_views_in_the_pod() -> None:
    """Each agent its own: one removes all that it finds there."""
    given = order()
    remote = RemoteRoot("s3://bucket/x")
    given = dataclasses.replace(given, config=replace(given.config, remote=remote))
    there = order_there(given, section(), token="T").config
    assert there.weights_root.startswith("/tmp/bequeath/experiments/abc123/kubernetes-2/")


@pytest.mark.parametrize(
    "keys, more, seen",
    [
        ({}, {}, False),
        ({}, {"weightsRoot": "/w"}, True),
        ({}, {"weightsRoot": "s3://bucket"}, True),
        ({"weightsRoot": "/w"}, {}, True),
        ({"storageDomain": "pods"}, {}, True),
        ({"volumes": [{"hostPath": "/home", "at": "/home"}]}, {}, True),
        ({"volumes": [{"hostPath": "/data", "at": "/data"}]}, {}, False),
        ({"volumes": [{"scratch": "1Gi", "at": "/home"}]}, {}, False),
    ],
)
def test_pods_see_a_weights_root_that_somebody_names(
    keys: dict[str, Any], more: dict[str, Any], seen: bool, tmp_path: Path
) -> None:
    """The usual one is a folder of this machine. Mutations: pods that see it are told that they do
    not; those that do not are to have it, and never join."""
    file = {
        "experimentWorkingDirectory": "/home/lea/experiments",
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "channel": OPEN,
        "trainingService": {
            "platform": "kubernetes",
            "image": "i",
            "kubeconfig": kubeconfig(tmp_path),
            **keys,
        },
        **more,
    }
    experiment = build_experiment(file)
    (service,) = experiment.services
    assert isinstance(service, KubernetesSection)
    assert (KUBERNETES.no_weights(service, experiment) == "") == seen


def test_pods_without_a_weights_root_wait_for_none() -> None:
    """Mutation: their agents look for the token of a share that nobody mounts, and never join."""
    given = order()
    config = replace(given.config, no_weights="pods see none")
    there = order_there(dataclasses.replace(given, config=config), section(), token="T").config
    assert there.root_token == ""
    assert there.no_weights
    assert there.weights_root.startswith("/tmp/bequeath/experiments/abc123/kubernetes-2/")

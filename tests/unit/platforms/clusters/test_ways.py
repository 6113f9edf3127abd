"""What a file gets to hear about the way from nodes to the head, whatever the cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dispatcher.experiment.addresses import dialed, may_lead_to
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiment.problems import ExperimentFileErrors
from dispatcher.platforms.clusters.jump import USUAL_KEYS, JumpHostConfig, jump_of
from dispatcher.platforms.kubernetes.platform import KubernetesPlatform
from dispatcher.platforms.kubernetes.section import KubernetesSection
from dispatcher.platforms.slurm.platform import SlurmPlatform
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from trial_runtime.endpoint import JumpHost

OPEN = {"transport": "tcp", "host": "10.0.0.9", "beyondThisMachine": True}
ANY = {**OPEN, "host": "0.0.0.0"}
HERE = {"transport": "tcp", "host": "127.0.0.1"}


@pytest.fixture(params=["slurm", "ray", "kubernetes"])
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """The least that a section of each platform has."""
    monkeypatch.setenv("HOME", str(tmp_path))
    document = {
        "current-context": "one",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443"}}],
        "contexts": [{"name": "one", "context": {"cluster": "c"}}],
    }
    (tmp_path / "k").write_text(json.dumps(document))
    own = {"kubernetes": {"image": "i", "kubeconfig": str(tmp_path / "k")}}
    return {"platform": request.param, **own.get(request.param, {})}


def problems(folder: Path, *services: dict[str, Any], **experiment: Any) -> dict[str, str]:
    """What is wrong, by the key."""
    values = {
        "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialCodeDirectory": str(folder),
        "trialConcurrency": 1,
        "trainingService": list(services) if len(services) > 1 else services[0],
        **experiment,
    }
    try:
        build_experiment(values)
    except ExperimentFileErrors as refused:
        errors = refused.errors
        return {x.where.removeprefix("experiment: "): f"{x.message}; {x.hint}" for x in errors}
    return {}


@pytest.mark.parametrize("channel", [{}, {"transport": "ipc"}, HERE, ANY])
def test_nodes_must_reach_the_head(
    cluster: dict[str, Any], channel: dict[str, Any], tmp_path: Path
) -> None:
    """Mutation: allocations are asked for, and nobody ever hears from one."""
    found = problems(tmp_path, {**cluster, "channel": "direct"}, channel=channel)
    assert list(found) == ["trainingService.headAddress"], found
    text = found.popitem()[1]
    assert "headAddress: ADDRESS" in text
    assert "jump: USER@HOST" in text
    assert "headAddress: 127.0.0.1" in text, "for nodes that are this machine"
    assert ("channel: {transport: tcp" in text) == (channel != ANY)
    assert ("channel: folder" in text) == (cluster["platform"] != "kubernetes")


def test_one_way_is_enough(cluster: dict[str, Any], tmp_path: Path) -> None:
    """Where nodes share a folder with this machine there is always one. Mutations: it is refused
    there, too; pods are said to see folders of this machine."""
    found = problems(tmp_path, cluster, channel={})
    assert list(found) == ["trainingService.headAddress"] * (cluster["platform"] == "kubernetes")


KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGd8wLSF9W2mNcpkXHcYJeUzU3n1d6p0pIDoOQkJ1wJT"


@pytest.fixture
def known(tmp_path: Path) -> str:
    """A file that knows the jump host ``login1``."""
    path = tmp_path / "known_hosts"
    path.write_text(f"login1 {KEY}\n[login2]:2222 {KEY}\n")
    return str(path)


@pytest.mark.parametrize("channel", ["auto", "tunnel"])
def test_a_jump_host_is_a_way(
    cluster: dict[str, Any], channel: str, tmp_path: Path, known: str
) -> None:
    jump = {"host": "login1", "knownHosts": known}
    keys = {**cluster, "channel": channel, "jump": jump}
    assert problems(tmp_path, keys, channel={}) == {}
    jump["headAddress"] = "10.0.0.9"
    found = problems(tmp_path, keys, channel={})
    assert list(found) == ["trainingService.jump.headAddress"]
    assert "the head listens on 127.0.0.1 only" in found.popitem()[1]
    assert problems(tmp_path, keys, channel=OPEN) == {}


def test_a_jump_host_must_be_known_here(
    cluster: dict[str, Any], tmp_path: Path, known: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: agents log in to whoever says that it is the jump host."""
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    keys = {**cluster, "channel": "tunnel"}
    assert list(problems(tmp_path, keys)) == ["trainingService.jump"], "it is missing"
    for jump in ("me@login1:2222", {"host": "login2", "knownHosts": known}):
        found = problems(tmp_path, {**keys, "jump": jump})
        assert list(found) == ["trainingService.jump"]
        assert "its key is not known here" in found["trainingService.jump"]
        assert "bequeath hosts add login" in found["trainingService.jump"]
    found = problems(tmp_path, {**keys, "jump": {"host": "login1", "knownHosts": "/nowhere"}})
    assert list(found) == ["trainingService.jump.knownHosts"]


@pytest.mark.parametrize(
    "keys, listens_on, ways",
    [
        ({}, "127.0.0.1", ("folder",)),
        ({}, "0.0.0.0", ("folder",)),
        ({}, "10.0.0.9", ("tcp", "folder")),
        ({"headAddress": "login1:7"}, "127.0.0.1", ("tcp", "folder")),
        ({"headAddress": "127.0.0.1"}, "127.0.0.1", ("tcp", "folder")),
        ({"jump": "login1"}, "127.0.0.1", ("jump", "folder")),
        ({"jump": "login1", "headAddress": "h"}, "0.0.0.0", ("tcp", "jump", "folder")),
        ({"jump": "login1", "channel": "direct"}, "10.0.0.9", ("tcp",)),
        ({"jump": "login1", "channel": "tunnel"}, "10.0.0.9", ("jump",)),
        ({"jump": "login1", "channel": "folder"}, "10.0.0.9", ("folder",)),
    ],
)
def test_the_ways_that_agents_try(
    keys: dict[str, Any], listens_on: str, ways: tuple[str, ...]
) -> None:
    """Mutations: the slow one comes first; a name that leads nowhere is tried for ten seconds."""
    section = SlurmServiceConfig.model_validate({"platform": "slurm", **keys})
    assert SlurmPlatform().ways_of(section, listens_on) == ways
    own = {"platform": "kubernetes", "image": "i", **keys}
    if "folder" not in keys.values():
        pods = KubernetesPlatform().ways_of(KubernetesSection.model_validate(own), listens_on)
        assert pods == (tuple(way for way in ways if way != "folder") or ("tcp",))


def test_an_agent_gets_what_it_needs_of_a_jump_host(known: str, tmp_path: Path) -> None:
    """The key of the jump host comes from here, the one of ours lies there. Mutation: a head on all
    addresses is dialed at 0.0.0.0."""
    config = JumpHostConfig.model_validate(
        {"host": "login2", "port": 2222, "user": "me", "keyFile": "~/k", "knownHosts": known}
    )
    address, jump = jump_of(config, ("0.0.0.0", 4000))
    assert address == "127.0.0.1:4000"
    assert jump == JumpHost("login2", 2222, "me", (KEY,), ("~/k",))
    assert jump.label == "me@login2:2222"
    named = config.model_copy(update={"head_address": "10.0.0.9", "key_file": None})
    address, jump = jump_of(named, ("0.0.0.0", 4000))
    assert (address, jump.key_files) == ("10.0.0.9:4000", USUAL_KEYS)


def test_each_service_says_its_own(cluster: dict[str, Any], tmp_path: Path) -> None:
    """Mutation: the place of the first of several."""
    found = problems(tmp_path, {"platform": "local"}, {**cluster, "channel": "direct"})
    assert list(found) == ["trainingService[1].headAddress"]


@pytest.mark.parametrize(
    "keys, channel",
    [
        ({}, OPEN),
        ({}, {**OPEN, "host": "login1"}),
        ({"headAddress": "login1"}, ANY),
        ({"headAddress": "login1"}, OPEN),
        ({"headAddress": "gate:7070"}, HERE),
        ({"headAddress": "127.0.0.1"}, {}),
        ({"headAddress": "localhost"}, HERE),
        ({"headAddress": "[::1]"}, ANY),
    ],
)
def test_ways_that_may_be_there(
    cluster: dict[str, Any], keys: dict[str, Any], channel: dict[str, Any], tmp_path: Path
) -> None:
    assert problems(tmp_path, {**cluster, **keys}, channel=channel) == {}


@pytest.mark.parametrize(
    "named, channel",
    [
        ("login1", None),
        ("login1", {}),
        ("login1:7070", {"transport": "ipc"}),
        ("login1", HERE),
        ("127.0.0.1", OPEN),
    ],
)
def test_an_address_at_which_nobody_listens(
    named: str, channel: dict[str, Any] | None, tmp_path: Path
) -> None:
    """Mutations: only the transport counts, not the host; the place is that of the whole file."""
    own = {} if channel is None else {"channel": channel}
    found = problems(tmp_path, {"platform": "slurm", "headAddress": named}, **own)
    assert list(found) == ["trainingService.headAddress"], found
    text = found.popitem()[1]
    assert f"at {named}, and it listens on" in text
    assert "beyondThisMachine" in text


@pytest.mark.parametrize("platform", ["slurm", "ray"])
def test_the_folder_is_a_way_as_well(platform: str, tmp_path: Path) -> None:
    """Mutation: an address that is not used has to fit."""
    shared = tmp_path / "shared"
    shared.mkdir()
    keys = {"platform": platform, "channel": "folder", "sharedFolder": str(shared)}
    more = {"weightsRoot": str(shared)}
    assert problems(tmp_path, keys, **more) == {}
    assert problems(tmp_path, {**keys, "headAddress": "login1"}, **more) == {}


def test_a_ray_of_this_machine_alone(tmp_path: Path) -> None:
    """Its nodes can only be here; a port that Ray's client comes by may be forwarded."""
    assert problems(tmp_path, {"platform": "ray", "address": "127.0.0.1:6379"}) == {}
    client = {"platform": "ray", "address": "ray://127.0.0.1:10001", "channel": "direct"}
    assert list(problems(tmp_path, client)) == ["trainingService.headAddress"]


@pytest.mark.parametrize(
    "named, host, leads",
    [
        ("login1", "127.0.0.1", False),
        ("login1", "localhost", False),
        ("10.0.0.1", "[::1]", False),
        ("login1", "::", True),
        ("login1:1", "127.0.0.1", True),
        ("[fe80::1]:1", "127.0.0.1", True),
        ("[fe80::1]", "127.0.0.1", False),
        ("127.0.0.2", "127.0.0.1", True),
        ("localhost", "10.0.0.9", False),
    ],
)
def test_where_an_address_may_lead(named: str, host: str, leads: bool) -> None:
    assert may_lead_to(named, host) is leads


def test_an_address_without_a_port_gets_the_heads() -> None:
    assert dialed("127.0.0.1", ("0.0.0.0", 7)) == "127.0.0.1:7"

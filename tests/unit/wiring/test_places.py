"""From machines of an experiment file to workers and logins."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import ExperimentFileError, PermanentBackendError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.service import LOCAL
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.platforms.logins.targets import target_of
from dispatcher.platforms.ssh.machine import machine_of
from dispatcher.platforms.ssh.section import MachineConfig
from dispatcher.wiring.agents import agent_config
from dispatcher.wiring.archives import packer
from dispatcher.wiring.places import (
    places,
    secrets_of_services,
)
from dispatcher.wiring.settings import settings_of, worker_count
from trial_runtime.endpoint import Endpoint
from trial_runtime.mounts import named_on_network, network_type


def config(service: Any, **keys: Any) -> ExperimentConfig:
    values = {
        "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
        "tuner": {"name": "Random"},
        "trialCommand": "true",
        "trialConcurrency": 4,
        "trainingService": service,
        **keys,
    }
    return build_experiment(values)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ssh(*machines: dict[str, Any], **keys: Any) -> dict[str, Any]:
    return {"platform": "remote", "machineList": list(machines), **keys}


def test_workers_are_called_by_their_hosts_and_told_apart() -> None:
    found = places(
        config(
            [
                {"platform": "local", "slots": 1},
                ssh({"host": "gpu1"}, {"host": "gpu1", "port": 2222}, {"ip": "local"}),
                ssh({"host": "gpu1", "name": "my box/1", "slots": 3}, slots=2),
            ]
        )
    )
    names = [LOCAL, "gpu1", "gpu1-2", "local-2", "my-box-1"]
    assert [place.worker for place in found] == names
    assert [place.slots for place in found] == [1, 4, 4, 4, 3]


def test_a_machine_called_as_the_tuner_is_told_apart_from_it() -> None:
    """Its keys and its way to the head would be the tuner's."""
    assert [place.worker for place in places(config(ssh({"host": "tuner"})))] == ["tuner-2"]


def test_slots_and_the_number_of_workers() -> None:
    two = config(ssh({"host": "a", "slots": 1}, {"host": "b", "slots": 2}))
    assert (two.slots, worker_count(two), settings_of(two).workers) == (3, 2, 2)
    here = config({"platform": "local"})
    assert (here.slots, worker_count(here), settings_of(here).workers) == (4, 1, 1)


def test_which_workers_follow_the_slots_of_the_experiment() -> None:
    """Those of which neither service nor machine says how many they have."""
    assert settings_of(config({"platform": "local"})).slots_follow == ("local",)
    assert settings_of(config({"platform": "local", "slots": 2})).slots_follow == ()
    some = config(
        [
            {"platform": "local", "slots": 4},
            ssh({"host": "a"}, {"host": "b", "slots": 2}),
            ssh({"host": "c"}, {"host": "d", "slots": 2}, slots=3),
        ]
    )
    assert settings_of(some).slots_follow == ("a",)


def test_secrets_are_looked_up_at_login_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_PASSWORD", "geheim")
    made = config(
        ssh({"host": "a", "username": "me", "passwd": "env:LAB_PASSWORD", "jump": "you@j:2200"})
    )
    (place,) = places(made)
    assert isinstance(place.part, MachineConfig)
    machine = machine_of(place.worker, place.part)
    assert "geheim" not in repr(machine)
    monkeypatch.setenv("LAB_PASSWORD", "another")
    target = machine.target()
    assert (target.host, target.user, target.password) == ("a", "me", "another")
    assert target.jump is not None
    assert (target.jump.user, target.jump.host, target.jump.port) == ("you", "j", 2200)
    assert "another" not in repr(target)
    monkeypatch.delenv("LAB_PASSWORD")
    with pytest.raises(PermanentBackendError, match="LAB_PASSWORD"):
        target_of(place.part)


def test_where_a_machine_has_read_roots_is_passed_on(tmp_path: Any) -> None:
    (tmp_path / "pre").mkdir()
    made = config(ssh({"host": "a", "weightsReadRoots": ["/p"]}), weightsReadRoots=["pre"])
    (place,) = places(made)
    assert isinstance(place.part, MachineConfig)
    assert machine_of(place.worker, place.part).read_roots == ("/p",)


def test_copies_are_kept_of_what_a_store_gives_also_on_one_machine(tmp_path: Any) -> None:
    """Each child there would download its parent anew."""

    def told(**keys: Any) -> bool:
        made = config({"platform": "local"}, **keys)
        folder = ExperimentFolder(tmp_path)
        told = agent_config(made, made.services[0], folder, Endpoint(""), 1, tmp_path)
        return told.cache is not None

    assert told(weightsRoot="s3://lab/weights")
    assert not told(weightsRoot="s3://lab/weights", weightsCache="off")
    assert not told()


def test_a_head_starts_while_the_share_of_its_weights_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(
        f"21 1 8:1 / / rw - ext4 /dev/a rw\n30 21 0:4 / {tmp_path}/w rw - nfs4 s:/ rw\n"
    )
    for each in (named_on_network, network_type):
        monkeypatch.setattr(each, "__kwdefaults__", {"mountinfo": table})
    made = config({"platform": "local"}, weightsRoot="w")
    folder = ExperimentFolder(tmp_path)
    real: Callable[..., str] = os.path.realpath

    def asked(path: Any, **keys: Any) -> str:
        assert not os.fspath(path).startswith(f"{tmp_path}/w"), "this would wait for the server"
        return real(path, **keys)

    monkeypatch.setattr(os.path, "realpath", asked)
    told = agent_config(made, made.services[0], folder, Endpoint(""), 1, tmp_path)
    assert told.cache is not None


def test_weights_of_other_hosts_may_take_longer_to_be_seen(tmp_path: Any) -> None:
    def told(made: ExperimentConfig) -> float:
        folder = ExperimentFolder(tmp_path)
        told = agent_config(made, made.services[0], folder, Endpoint(""), 1, tmp_path)
        return told.stale_timeout_s

    assert told(config(ssh({"host": "a"}, {"host": "b"}))) == 75.0
    assert told(config(ssh({"host": "a"}))) == 1.0
    assert told(config([{"platform": "local"}, ssh({"host": "a"})])) == 75.0


LISTENS = {"transport": "tcp", "host": "10.1.2.3", "beyondThisMachine": True}


def test_agents_reach_the_head_by_themselves_where_the_file_says_so() -> None:
    """Mutation: what the service says is not what its machines do."""
    machines = ({"host": "gpu1"}, {"host": "gpu2", "headAddress": "gate:7070"})
    service = ssh(*machines, headAddress="10.1.2.3")
    found = [
        machine_of(place.worker, place.part).head_address
        for place in places(config([{"platform": "local"}, service], channel=LISTENS))
        if isinstance(place.part, MachineConfig)
    ]
    assert found == ["10.1.2.3", "gate:7070"]
    (usual,) = places(config(ssh({"host": "gpu1"})))
    assert isinstance(usual.part, MachineConfig)
    assert machine_of(usual.worker, usual.part).head_address == ""


def test_a_head_that_listens_on_its_loopback_is_not_to_be_reached() -> None:
    """Mutation: nobody looks where the head listens."""
    with pytest.raises(ExperimentFileError, match=r"headAddress") as caught:
        config(ssh({"host": "gpu1", "headAddress": "10.1.2.3"}))
    assert "beyondThisMachine" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["http://gpu1", "gpu1:", "gpu1:99999", "a b", "fe80::1", ""])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ExperimentFileError):
        config(ssh({"host": "gpu1", "headAddress": text}), channel=LISTENS)


def test_secrets_of_services_are_kept_out_of_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: only those of trialEnvironment are."""
    for name in ("TOKEN", "PASS", "PHRASE", "GATE"):
        monkeypatch.setenv(name, f"secret of {name}")
    machine = {
        "host": "gpu1",
        "password": "env:PASS",
        "passphrase": "env:PHRASE",
        "environment": {"A": "env:TOKEN", "B": "plain"},
        "jump": {"host": "gate", "password": "env:GATE"},
    }
    found = secrets_of_services(config([{"platform": "local"}, ssh(machine)]))
    assert sorted(found) == [f"secret of {name}" for name in ("GATE", "PASS", "PHRASE", "TOKEN")]


def test_secrets_are_not_sent_with_the_code(tmp_path: Path) -> None:
    """Mutation: references that say which files are secrets, and nobody who listens."""
    code = tmp_path / "code"
    code.mkdir()
    for name in ("a.py", "key.txt", "pass.txt", "machine.txt", "nni.yml", ".env", "taken-back.txt"):
        (code / name).write_text("x")
    (code / "nni.yml").write_text("machineList: [{passwd: hunter2}]\n")
    (code / ".bequeathignore").write_text("!/taken-back.txt\n")
    machine = {
        "host": "h",
        "password": f"file:{code / 'pass.txt'}",
        "environment": {"TOKEN": f"file:{code / 'machine.txt'}"},
    }
    found = config(
        ssh(machine),
        trialCodeDirectory=str(code),
        trialEnvironment={
            "KEY": f"file:{code / 'key.txt'}",
            "OTHER": f"file:{code / 'nni.yml'}#machineList/0/passwd",
            "BACK": f"file:{code / 'taken-back.txt'}",
        },
    )
    (tmp_path / "experiment").mkdir()
    archive = packer(found, ExperimentFolder(tmp_path / "experiment"))().code.path
    with tarfile.open(archive) as tar:
        assert set(tar.getnames()) == {"a.py", ".bequeathignore", "taken-back.txt"}
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    assert stat.S_IMODE(archive.parent.stat().st_mode) == 0o700

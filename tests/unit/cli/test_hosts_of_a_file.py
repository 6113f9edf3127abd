"""What ``hosts check FILE`` asks of a machine because the file's trials need it."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.hosts.check_targets import check_targets, hosts_of_file
from dispatcher.errors import UserError
from dispatcher.platforms.host import ReachableHost
from dispatcher.platforms.ssh import hosts, machine
from dispatcher.remote_python.findings import HostNeeds


def test_it_asks_for_all_that_trials_take(tmp_path: Path) -> None:
    """Mutations: any of the needs is not passed on; pynvml is asked for where no GPU counts."""
    (tmp_path / "experiment.yml").write_text(
        json.dumps(
            {
                "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
                "trialCommand": "true",
                "trialConcurrency": 1,
                "maxTrialNumber": 1,
                "trialGpuNumber": 2,
                "trialCpuNumber": 4,
                "minGpuMemory": "40gb",
                "tuner": {"name": "Random"},
                "trainingService": {
                    "platform": "ssh",
                    "machineList": [{"host": "gpu1", "gpuIndices": [0, 2]}, {"host": "gpu2"}],
                },
            }
        )
    )
    file = tmp_path / "experiment.yml"
    with ExitStack() as closing:
        first, second = (one.needs for one in check_targets(str(file), closing))
    assert (first.gpus, first.cpus, first.gpu_indices) == (2.0, 4.0, (0, 2))
    assert (second.gpu_memory >> 30, second.gpu_indices) == (40, ())
    assert "pynvml" in first.modules

    file.write_text(file.read_text().replace('"trialGpuNumber": 2', '"trialGpuNumber": 0'))
    with ExitStack() as closing:
        first, _ = (one.needs for one in check_targets(str(file), closing))
    assert first.gpus == 0
    assert "pynvml" not in first.modules


def experiment(folder: Path, root: str, **machine: object) -> str:
    file = folder / "experiment.yml"
    settings = {
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "maxTrialNumber": 1,
        "tuner": {"name": "Random"},
        "weightsRoot": root,
        "weightsReadRoots": [str(folder)],
        "trainingService": {"platform": "ssh", "machineList": [{"host": "gpu1", **machine}]},
    }
    file.write_text(json.dumps(settings))
    return str(file)


def asked_of(needs: HostNeeds, host: ReachableHost, monkeypatch: pytest.MonkeyPatch) -> HostNeeds:
    """What a machine is asked for by a connection that stands at once."""
    seen: list[HostNeeds] = []

    class Open:
        user = "u"

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(machine, "connect", lambda *_, **__: Open())
    monkeypatch.setattr(hosts, "inspect", lambda _, own: seen.append(own) or [])
    assert [one.topic for one in host.check(needs)] == ["login"]
    return seen[0]


def test_machines_know_the_weights_root_by_a_file_that_is_there_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: the file stays; a machine is asked for it where it has no such folder."""
    root = tmp_path / "weights"
    root.mkdir()
    with ExitStack() as closing:
        (one,) = check_targets(experiment(tmp_path, str(root)), closing)
        (token,) = os.listdir(root)
        assert dict(one.needs.folders) == {str(root): token}
        assert asked_of(one.needs, one.host, monkeypatch).read_folders == (str(tmp_path),)
    assert os.listdir(root) == []
    elsewhere = {
        "weightsRoot": "/mnt/w",
        "weightsReadRoots": ["/mnt/r"],
        "workFolder": "/scratch/b",
    }
    with ExitStack() as closing:
        (one,) = check_targets(experiment(tmp_path, str(root), **elsewhere), closing)
        (token,) = os.listdir(root)
        own = asked_of(one.needs, one.host, monkeypatch)
    assert dict(own.folders) == {"/mnt/w": token}
    assert (own.read_folders, own.work_folder) == (("/mnt/r",), "/scratch/b")


def test_a_machine_that_is_named_is_asked_for_the_folder_that_is_named() -> None:
    with ExitStack() as closing:
        (one,) = check_targets("me@gpu1:2222", closing, weights="/mnt/w")
        (bare,) = check_targets("gpu1", closing)
    assert (one.host.name, dict(one.needs.folders)) == ("me@gpu1:2222", {"/mnt/w": ""})
    assert dict(bare.needs.folders) == {}


def test_a_file_without_machines_is_refused(tmp_path: Path) -> None:
    file = Path(experiment(tmp_path, str(tmp_path)))
    file.write_text(file.read_text().replace('"platform": "ssh"', '"platform": "local"'))
    settings = json.loads(file.read_text())
    del settings["trainingService"]["machineList"]
    file.write_text(json.dumps(settings))
    with pytest.raises(UserError, match="names no machines"):
        hosts_of_file(file)

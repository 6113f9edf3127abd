"""What ``hosts check FILE`` asks of a machine because the file's trials need it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from dispatcher.cli.hosts.check_targets import check_targets, hosts_of_file
from dispatcher.errors import UserError
from dispatcher.platforms.host import ReachableHost
from dispatcher.platforms.logins import targets
from dispatcher.platforms.ssh import hosts
from dispatcher.remote_python.findings import HostNeeds
from tests.support.packages import lay_down
from tests.support.ports import free_port
from tests.unit.cli.conftest import Shell


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

    monkeypatch.setattr(targets, "connect", lambda *_, **__: Open())
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


LAKE = """\
from typing import Literal
from dispatcher.platforms.protocol import AgentPlatform, PlannedWorker, ServiceConfig
from dispatcher.findings import Finding, Severity

class Section(ServiceConfig):
    platform: Literal["lake"]

    def planned(self, usual, taken):
        return tuple(PlannedWorker(each, 1, self) for each in ("fog", "leak", "pier"))

class Shore:
    def __init__(self, name):
        self.name = self.label = name

    def check(self, needs):
        if self.name == "leak":
            raise ValueError("a hole")
        return [Finding("water", Severity.OK, "is blue")]

class Lake(AgentPlatform):
    protocol = 2
    section = Section

    def host(self, worker, part):
        if worker == "fog":
            raise RuntimeError("nothing to be seen")
        return Shore(worker)

    def visit(self, given):
        raise NotImplementedError
"""


def test_one_that_a_platform_of_somebody_else_fails_at_does_not_hide_the_others(
    bequeath: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: what it raises ends the command."""
    there = tmp_path / "installed"
    lay_down(there, "lake", "[bequeath.backends]\nlake = lake_with_hosts:Lake\n")
    (there / "lake_with_hosts.py").write_text(LAKE)
    monkeypatch.syspath_prepend(str(there))
    file = Path(experiment(tmp_path, str(tmp_path / "weights")))
    settings = json.loads(file.read_text()) | {"trainingService": {"platform": "lake"}}
    file.write_text(json.dumps(settings))
    said = bequeath("hosts", "check", file, "--json")
    assert said.code == 1
    found = {row["name"]: row["findings"][0] for row in json.loads(said.out)["hosts"]}
    assert found["pier"]["text"] == "is blue"
    assert (
        found["fog"]["text"] == "the platform 'lake' fails at 'host': RuntimeError: nothing to be "
        "seen"
    )
    assert found["leak"]["text"] == "the platform 'lake' fails at 'check': ValueError: a hole"
    assert {found[x]["hint"] for x in ("fog", "leak")} == {"report it to the authors of 'lake'"}
    sys.modules.pop("lake_with_hosts")


QUAY = """\
from dispatcher.platforms.protocol import *

class Section(AllocationService):
    platform: Literal["quay"]
    berths: Count = 1

class Quay(AllocationPlatform):
    protocol = 2
    section = Section

    def inspect(self, section):
        yield Finding("rights", Severity.OK, f"{section.berths} berths")
        if section.berths > 2:
            yield Finding("limits", Severity.PROBLEM, "two at most", "ask the harbour master")
        if section.berths > 3:
            raise OSError("the harbour is closed")

    def allocator(self, service):
        raise NotImplementedError
"""


@pytest.fixture
def quay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Path]]:
    """Files of experiments at a platform of another package that looks at its scheduler."""
    there = tmp_path / "installed"
    lay_down(there, "quay", "[bequeath.backends]\nquay = a_quay:Quay\n")
    (there / "a_quay.py").write_text("from typing import Literal\n" + QUAY)
    monkeypatch.syspath_prepend(str(there))
    file = Path(experiment(tmp_path, str(tmp_path / "weights")))
    settings = json.loads(file.read_text())

    def write(berths: int) -> Path:
        service = {"platform": "quay", "berths": berths}
        file.write_text(json.dumps(settings | {"trainingService": service}))
        return file

    yield write
    sys.modules.pop("a_quay", None)


def test_a_scheduler_is_looked_over_by_its_platform(
    bequeath: Shell, quay: Callable[[int], Path]
) -> None:
    """Mutations: a platform is not asked; a problem is none; an error ends the command."""
    assert bequeath("hosts", "check", quay(2)).code == 0
    said = bequeath("hosts", "check", quay(3), "--json")
    (row,) = json.loads(said.out)["hosts"]
    assert (said.code, row["name"], row["ok"]) == (1, "quay", False)
    assert [each["verdict"] for each in row["findings"]] == ["ok", "problem"]
    said = bequeath("validate", quay(3), "--connect", "--json")
    found = json.loads(said.out)["findings"]
    assert (said.code, found[1]["hint"]) == (1, "ask the harbour master")
    assert bequeath("validate", quay(3)).code == 0, "nobody is asked who was not to be"
    said = bequeath("validate", quay(3), "--connect")
    assert "quay: problem: limits: two at most (ask the harbour master)" in said.out
    where = found[1]["where"]
    line, column = map(int, where.removeprefix(f"{quay(3)}:").split(":"))
    text = quay(3).read_text().splitlines()[line - 1]
    assert text[column - 1 :].startswith('{"platform"'), "that names no key: its section"
    assert f"{where}: quay: problem: limits" in said.out
    assert found[0]["where"] == "", "nothing is wrong with it"
    assert "is fine" not in said.out
    assert "is fine" in bequeath("validate", quay(2), "--connect").out
    (row,) = json.loads(bequeath("hosts", "check", quay(4), "--json").out)["hosts"]
    assert "the harbour is closed" in row["findings"][0]["text"]


def test_doctor_passes_on_what_a_scheduler_says(
    bequeath: Shell, quay: Callable[[int], Path]
) -> None:
    said = bequeath("doctor", quay(3), "--json")
    found = [x for x in json.loads(said.out)["findings"] if x["topic"] == "quay"]
    assert [each["text"] for each in found] == ["rights: 3 berths", "limits: two at most"]
    assert said.code == 1


def test_a_machine_that_cannot_be_reached_is_named_with_its_place(
    bequeath: Shell, tmp_path: Path
) -> None:
    """The second of two, by `validate --connect`. Mutations: machines are not asked; the place is
    that of the list."""
    file = tmp_path / "lab.yml"
    known = tmp_path / "known"
    known.touch()
    file.write_text(f"""\
searchSpace: {{x: {{_type: choice, _value: [1]}}}}
tuner: {{name: Random}}
trialCommand: "true"
trialConcurrency: 1
maxTrialNumber: 1
experimentWorkingDirectory: {tmp_path}
trainingService:
- platform: local
- platform: ssh
  machineList:
  - {{name: one, host: 127.0.0.1, port: {free_port()}, knownHosts: {known}}}
  - {{name: two, host: 127.0.0.2, port: {free_port()}, knownHosts: {known}}}
""")
    said = bequeath("validate", file, "--connect", "--json")
    found = {each["service"]: each for each in json.loads(said.out)["findings"]}
    assert said.code == 1
    assert {name: each["where"] for name, each in found.items()} == {
        "one": f"{file}:11:23",
        "two": f"{file}:12:23",
    }
    assert found["two"]["topic"] == "login"

"""What people get to know of schedulers that cannot be asked."""

from __future__ import annotations

import fcntl
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import ExperimentBusy
from dispatcher.experiment.config import ExperimentConfig
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments import sweeping
from dispatcher.experiments.sweeping import ClearedAllocations, may_be_left, sweep
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import LEADER_NAME, LOCK_NAME
from dispatcher.platforms.allocations.allocation import service_label
from dispatcher.platforms.allocations.incarnation import Incarnation, write_incarnation
from dispatcher.store.leadership import Leadership, read_leader
from trial_runtime import mounts


def config_of(folder: Path, **more: Any) -> ExperimentConfig:
    return build_experiment(
        {
            "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialCodeDirectory": str(folder),
            "trialConcurrency": 1,
            "trainingService": {"platform": "slurm", "headAddress": "127.0.0.1"},
        }
        | more
    )


def test_who_has_to_look_alone_knows_for_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may be deleted in the next moment. Mutation: the names go with it."""
    config = config_of(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    place = ExperimentFolder(tmp_path / "abc234")
    (trouble,) = sweep(place, config).troubles
    assert trouble.startswith("slurm: ")
    assert f"'{service_label('abc234', 'slurm')}-'" in trouble


def test_a_copy_of_one_that_is_led_leaves_its_allocations_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: `bequeath stop`, or `experiment delete`, of a backup cancels what runs."""
    monkeypatch.setenv("PATH", str(tmp_path))
    config = config_of(tmp_path, experimentWorkingDirectory=str(tmp_path / "there"))
    original, copy = (ExperimentFolder(tmp_path / at / "abc234") for at in ("there", "backup"))
    for each in (original, copy):
        write_incarnation(each.path / "agents/slurm", Incarnation(1, "t", "ordered"))
    name = f"{service_label('abc234', 'slurm')}-slurm-1"
    with open(original.path / LOCK_NAME, "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert may_be_left(copy, config) == []
        assert sweep(copy, config) == ClearedAllocations()
    assert may_be_left(copy, config) == may_be_left(original, config) == [name]
    assert sweep(copy, config).troubles, "Slurm is asked, which is not there"


def commands_that_find_nothing(folder: Path) -> None:
    """Slurm's, on a cluster without jobs; what they are called with is kept."""
    folder.mkdir(exist_ok=True)
    for name in ("squeue", "sacct", "scancel"):
        (folder / name).write_text(f'#!/bin/sh\necho "$0 $*" >>{folder}/called\n')
        (folder / name).chmod(0o755)


@pytest.mark.parametrize("kind, host", [("nfs4", ""), ("ext4", "other"), ("nfs4", "other")])
def test_a_head_that_no_lock_tells_of_keeps_its_allocations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, host: str
) -> None:
    """The folder is seen by two machines, whose locks do not reach one another. Mutations: `stop`
    on the second cancels what the head on the first has; or cancels nothing anywhere else."""
    table = tmp_path / "mountinfo"
    table.write_text(f"1 0 0:1 / / rw - {kind} server rw\n")
    kept = {"mountinfo": table}
    for each in (mounts.filesystem_type, mounts.network_type):
        monkeypatch.setattr(each, "__kwdefaults__", kept)
    config = config_of(tmp_path)
    place = ExperimentFolder(tmp_path / "abc234")
    write_incarnation(place.path / "agents/slurm", Incarnation(1, "t", "ordered"))
    leader = {"pid": 1, "host": host or socket.gethostname(), "epoch": 1, "since": 0}
    (place.path / LEADER_NAME).write_text(json.dumps(leader))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    commands_that_find_nothing(tmp_path / "bin")
    swept = sweep(place, config)
    name = f"{service_label('abc234', 'slurm')}-slurm-1"
    if (kind, host) != ("nfs4", "other"):
        assert swept == ClearedAllocations()
        assert may_be_left(place, config) == [], "the scheduler was asked"
        return
    (trouble,) = swept.troubles
    assert "its last head ran on other, and no lock on nfs4 tells from here" in trouble
    assert name in trouble, "for whoever knows that the machine is no more"
    assert not (tmp_path / "bin/called").exists(), "no scheduler was asked"
    assert may_be_left(place, config) == [name]


def test_what_a_scheduler_does_not_have_is_not_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head died with a job that has ended since. Mutation: `doctor` goes on saying for ever that
    it may be there, though the scheduler was asked."""
    config = config_of(tmp_path)
    place = ExperimentFolder(tmp_path / "abc234")
    write_incarnation(place.path / "agents/slurm", Incarnation(1, "t", "ordered"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    (tmp_path / "bin").mkdir()
    squeue = tmp_path / "bin" / "squeue"
    squeue.write_text("#!/bin/sh\nexit 1\n")
    squeue.chmod(0o755)
    assert sweep(place, config).troubles
    assert may_be_left(place, config), "nobody knows"
    commands_that_find_nothing(tmp_path / "bin")
    assert sweep(place, config) == ClearedAllocations()
    assert may_be_left(place, config) == []


class Scheduler:
    """Stands for a platform: notes what is asked of it, and lets a test act meanwhile."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.asked = 0
        self.meanwhile = meanwhile

    def sweep(self, service: Any) -> list[str]:
        self.asked += 1
        self.meanwhile()
        return [f"{service.label}-slurm-1"]


def left_by_a_head(tmp_path: Path) -> ExperimentFolder:
    place = ExperimentFolder(tmp_path / "abc234")
    write_incarnation(place.path / "agents/slurm", Incarnation(1, "t", "ordered"))
    return place


def test_nobody_leads_or_sweeps_while_it_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A head that begins meanwhile, as a supervised one does, orders allocations by the same label.
    Mutation: they are cancelled under it."""
    config, place = config_of(tmp_path), left_by_a_head(tmp_path)
    swept_beside: list[ClearedAllocations] = []

    def begin_and_sweep() -> None:
        with pytest.raises(ExperimentBusy):
            Leadership.acquire(place.path)
        swept_beside.append(sweep(place, config))

    scheduler = Scheduler(begin_and_sweep)
    monkeypatch.setattr(sweeping, "platform_of", lambda _: scheduler)
    name = f"{service_label('abc234', 'slurm')}-slurm-1"
    assert sweep(place, config) == ClearedAllocations((name,))
    assert scheduler.asked == 1
    (beside,) = swept_beside
    assert beside.names == ()
    assert "a head already leads" in beside.troubles[0]
    with Leadership.acquire(place.path):
        pass  # once it is over


def test_what_a_head_leads_by_now_is_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It began between the look of the command and its sweep. Mutation: what it has just ordered is
    cancelled."""
    config, place = config_of(tmp_path), left_by_a_head(tmp_path)
    scheduler = Scheduler()
    monkeypatch.setattr(sweeping, "platform_of", lambda _: scheduler)
    with Leadership.acquire(place.path):
        swept = sweep(place, config)
    assert scheduler.asked == 0
    assert swept.names == ()
    assert swept.troubles


def test_a_sweep_takes_no_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: how the last head ended is not known any more."""
    config, place = config_of(tmp_path), left_by_a_head(tmp_path)
    monkeypatch.setattr(sweeping, "platform_of", lambda _: Scheduler())
    Leadership.acquire(place.path).release()
    sweep(place, config)
    leader = read_leader(place.path)
    assert leader is not None
    assert leader.epoch == 1

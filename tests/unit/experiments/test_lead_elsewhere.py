"""Care of an experiment from a machine whose locks do not reach the one on which its head runs."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from dispatcher.errors import UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments import care
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import LEADER_NAME
from dispatcher.store import SqliteJournal
from tests.unit.queries.evolution import evolve, make_folder
from trial_runtime import mounts


def update(place: ExperimentFolder) -> None:
    ExperimentHandle(place.path).update("trialConcurrency", 3)


def remove_weights(place: ExperimentFolder) -> None:
    ExperimentHandle(place.path).weights.remove(lambda plan: None)


CARE: dict[str, Callable[[ExperimentFolder], object]] = {
    "delete": care.delete,
    "compact": care.compact,
    "verify": care.verify,
    "update": update,
    "weights gc": remove_weights,
}


@pytest.fixture
def place(tmp_path: Path) -> ExperimentFolder:
    folder = make_folder(tmp_path / "home")
    evolve(folder, 3)
    values = {
        "tuner": {"name": "random"},
        "trialCommand": "true",
        "trialConcurrency": 2,
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
    }
    (folder / "experiment.json").write_text(to_json(build_experiment(values, base_folder=folder)))
    return ExperimentFolder(folder)


def on(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system of everything."""
    table = folder / "mountinfo"
    table.write_text(f"1 0 0:1 / / rw - {kind} server rw\n")
    for each in (mounts.filesystem_type, mounts.network_type):
        monkeypatch.setattr(each, "__kwdefaults__", {"mountinfo": table})


def led_by(place: ExperimentFolder, host: str, epoch: int = 7) -> None:
    leader = {"pid": 1, "host": host, "epoch": epoch, "since": 0}
    (place.path / LEADER_NAME).write_text(json.dumps(leader))


@pytest.mark.parametrize("verb", CARE)
def test_what_may_be_led_on_another_machine_is_left_alone(
    place: ExperimentFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The lock can be had here, and says nothing. Mutation: `experiment delete` on a second machine
    takes the folder away from under the head on the first."""
    on("nfs4", tmp_path, monkeypatch)
    led_by(place, "other")
    with pytest.raises(UserError, match="may be running: its last head ran on other") as refused:
        CARE[verb](place)
    assert "run the command there" in refused.value.hint
    assert json.loads((place.path / LEADER_NAME).read_text())["host"] == "other"


@pytest.mark.parametrize("verb", CARE)
@pytest.mark.parametrize("kind, host", [("nfs4", ""), ("ext4", "other"), ("nfs4", "ended")])
def test_where_the_lead_is_known_it_is_cared_for(
    place: ExperimentFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    host: str,
    verb: str,
) -> None:
    """Mutations: a folder that has moved here, or whose head has ended, cannot be deleted."""
    on(kind, tmp_path, monkeypatch)
    led_by(place, host or socket.gethostname())
    if host == "ended":
        journal = SqliteJournal.open(place.journal)
        journal.record_end(7, "completed", "")
        journal.close()
    CARE[verb](place)
    assert place.path.exists() == (verb != "delete")


def test_the_end_of_a_head_before_it_says_nothing(
    place: ExperimentFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on("nfs4", tmp_path, monkeypatch)
    led_by(place, "other", epoch=8)
    journal = SqliteJournal.open(place.journal)
    journal.record_end(7, "stopped", "")
    journal.close()
    with pytest.raises(UserError, match="may be running"):
        care.delete(place)

"""What ``doctor`` says of the mount below the weights, and when that is a problem."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import nfs_setup
from dispatcher.cli.doctor import experiment_of
from nfs_setup import Mount
from tests.unit.cli.conftest import Shell


@pytest.fixture
def mount(monkeypatch: pytest.MonkeyPatch) -> dict[str, Mount]:
    """Pretended mounts: the path that is asked for → what lies below it."""
    mounts: dict[str, Mount] = {}
    plain = Mount("/dev/sda1", "/", "ext4", ("rw",))
    monkeypatch.setattr(nfs_setup, "mount_of", lambda path: mounts.get(str(path), plain))
    return mounts


def experiment_file(folder: Path, weights: Path) -> Path:
    (folder / "trial.py").write_text("")
    path = folder / "experiment.yml"
    path.write_text(
        "trialCommand: python trial.py\ntuner:\n  name: Random\nmaxTrialNumber: 1\n"
        "trialConcurrency: 1\nsearchSpace: {x: {_type: uniform, _value: [0, 1]}}\n"
        f"weightsRoot: {weights}\n"
    )
    return path


def test_a_mount_that_may_cost_results_is_a_problem(
    bequeath: Shell, tmp_path: Path, mount: dict[str, Mount]
) -> None:
    weights = tmp_path / "weights"
    weights.mkdir()
    mount[str(weights)] = Mount("server:/x", "/share", "nfs4", ("rw", "soft", "noac"))
    file = experiment_file(tmp_path, weights)
    said = bequeath("doctor", file)
    assert said.code == 1
    assert "nfs4 at /share: 'soft' gives an error" in said.out
    found = json.loads(bequeath("doctor", file, "--json").out)
    assert found["ok"] is False
    levels = [f["level"] for f in found["findings"] if "nfs4 at" in f["text"]]
    assert levels == ["problem", "note"]


def test_without_a_file_weights_lie_with_the_experiments(
    bequeath: Shell, home: Path, mount: dict[str, Mount]
) -> None:
    mount[str(home)] = Mount("tmpfs", "/tmp", "tmpfs", ("rw",))
    said = bequeath("doctor")
    assert said.code == 0, said.out  # it may be meant
    assert "note: weights" in said.out
    assert "gone after a restart" in said.out


def test_a_good_mount_is_not_worth_a_line(bequeath: Shell, mount: dict[str, Mount]) -> None:
    assert "weights" not in bequeath("doctor").out.replace("weights of torch", "")


def test_who_waits_for_a_head_here(tmp_path: Path) -> None:
    """Mutations: the last word is the file; an agent of a head elsewhere is counted, too."""
    python = ["/usr/bin/python3", "-P", "-m"]
    here, elsewhere = tmp_path / "digits-1", tmp_path / "h1"
    for folder in (here, elsewhere):
        folder.mkdir()
    (here / "journal.sqlite").touch()
    agent = [*python, "trial_runtime.agent", str(here / "agent.config.json"), "--once-on-record"]
    assert experiment_of(agent) == here
    assert experiment_of([*python, "dispatcher.tuner_host", str(here / "host.json")]) == here
    assert experiment_of([*agent[:4], str(elsewhere / "agent-h1.config.json"), agent[5]]) is None
    assert experiment_of([*python, "trial_runtime.agent"]) is None
    assert experiment_of([*python, "http.server", "8000"]) is None

"""Weights that are being read stay, for as long as the reader lives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from dispatcher.errors import PassingBackendError
from dispatcher.weight_keeper import Keep, Need, Policy, holds
from tests.unit.weight_keeper.test_keeper import Experiment


def test_what_is_held_is_known_until_it_is_let_go(tmp_path: Path) -> None:
    assert holds.held(tmp_path) == set()
    with holds.hold(tmp_path, 3), holds.hold(tmp_path, 3), holds.hold(tmp_path, 4):
        assert holds.held(tmp_path) == {3, 4}
    assert holds.held(tmp_path) == set()
    assert list((tmp_path / "held").iterdir()) == []


def test_a_killed_reader_holds_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib\n"
        "from dispatcher.weight_keeper.holds import hold\n"
        "with hold(pathlib.Path(sys.argv[1]), 7):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    reader = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"held\n"
        assert holds.held(tmp_path) == {7}
        reader.kill()
        reader.wait()
        assert holds.held(tmp_path) == set()
    assert list((tmp_path / "held").iterdir()) == []


def test_a_hold_waits_for_a_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holds, "PATIENCE_S", 0.05)
    with (
        FileLock(tmp_path / holds.LOCK_NAME),
        pytest.raises(PassingBackendError, match="being removed"),
        holds.hold(tmp_path, 1),
    ):
        pass


def test_a_sweep_leaves_what_is_held(tmp_path: Path) -> None:
    """Mutation: a keeper that does not ask for holds."""
    experiment = Experiment(tmp_path)
    for trial in range(4):
        experiment.train(trial, value=float(trial))
    keeper = experiment.keeper(Policy(Keep.BEST, 1))
    with holds.hold(tmp_path, 1):
        plan = keeper.sweep(lambda trials: trials)
        assert [one.trial for one in plan.doomed] == [0, 2]
        assert plan.kept[1] is Need.PINNED
    experiment.check_all_but([0, 2])
    assert [one.trial for one in keeper.sweep(lambda trials: trials).doomed] == [1]


def test_a_link_is_no_hold(tmp_path: Path) -> None:
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / f"5.{'0' * 16}").symlink_to("/etc/passwd")
    (tmp_path / "held" / "notes").write_text("")
    assert holds.held(tmp_path) == {5}  # in doubt weights stay
    assert Path("/etc/passwd").exists()

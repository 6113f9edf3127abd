"""The keeper sweeps what crashes left, and never what a live or queued trial uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.weight_keeper.leftovers import LeftoverSweep
from tests.unit.weight_keeper.memory_ledger import LedgerRow, MemoryLedger
from trial_runtime.weights.storage import leftovers
from trial_runtime.weights.storage.leftovers import FILE_AGE_S

SILLY = ".nfs000000000012d68700000001"
NOW = 2_000_000_000.0


@pytest.fixture
def ledger(tmp_path: Path) -> MemoryLedger:
    rows = [
        LedgerRow(1, save_path="1"),
        LedgerRow(2, save_path="2"),
        LedgerRow(3, "running", parent=2, save_path="3"),
        LedgerRow(4, save_path="4"),
        LedgerRow(5, "open"),
    ]
    for row in rows:
        if row.save_path is not None:
            (tmp_path / row.save_path).mkdir()
            (tmp_path / row.save_path / SILLY).write_text("")
            os.utime(tmp_path / row.save_path / SILLY, (0, NOW - 2 * FILE_AGE_S))
    return MemoryLedger({row.id: row for row in rows}, waited_for={4})


def left(root: Path) -> list[str]:
    return sorted(path.parent.name for path in root.rglob(SILLY))


def test_live_trials_and_what_they_start_from_are_let_alone(
    tmp_path: Path, ledger: MemoryLedger
) -> None:
    sweep = LeftoverSweep(tmp_path, ledger, clock=lambda: NOW)
    assert sweep.look() == 1
    assert left(tmp_path) == ["2", "3", "4"]
    ledger.waited_for.clear()
    ledger.rows[3].state = "ended"
    assert sweep.look() == 3
    assert left(tmp_path) == []


def test_a_folder_with_nothing_left_is_not_looked_at_again(
    tmp_path: Path, ledger: MemoryLedger
) -> None:
    sweep = LeftoverSweep(tmp_path, ledger, clock=lambda: NOW)
    sweep.look()
    (tmp_path / "1" / SILLY).write_text("")
    os.utime(tmp_path / "1" / SILLY, (0, 0))
    assert sweep.look() == 0


def test_a_file_system_that_refuses_is_asked_again(
    tmp_path: Path, ledger: MemoryLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = LeftoverSweep(tmp_path, ledger, clock=lambda: NOW)
    real = leftovers.confined.folder

    def refuse(path: str) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(leftovers.confined, "folder", refuse)
    with pytest.raises(PassingBackendError, match="Input/output error"):
        sweep.look()
    monkeypatch.setattr(leftovers.confined, "folder", real)
    assert sweep.look() == 1


def test_what_is_called_like_a_leftover_and_is_a_trials_own_stays(
    tmp_path: Path, ledger: MemoryLedger
) -> None:
    """A save path, ended or live, or a folder above one."""
    ledger.rows[6] = LedgerRow(6, save_path="1.superseded.0")
    ledger.rows[7] = LedgerRow(7, "running", save_path="1.superseded.2/deeper/x")
    names = [f"1.superseded.{number}" for number in range(4)]
    for name in names:
        (tmp_path / name / "deeper" / "x").mkdir(parents=True)
        for folder in (tmp_path / name / "deeper" / "x", tmp_path / name / "deeper"):
            os.utime(folder, (0, 0))
        os.utime(tmp_path / name, (0, 0))
    LeftoverSweep(tmp_path, ledger, clock=lambda: NOW).look()
    assert [name for name in names if (tmp_path / name).exists()] == [names[0], names[2]]

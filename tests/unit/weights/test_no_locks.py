"""Correctness hangs on no lock below the weights root: NFS loses them in a server's crash."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.weight_keeper import Keep, Policy, WeightKeeper
from tests.unit.weight_keeper.memory_ledger import LedgerRow, MemoryLedger
from trial_runtime.agent.attempts.preparing import make_room
from trial_runtime.checkpoints import Checkpoints
from trial_runtime.weights import export, load, published_digest, save, verify_tree


@pytest.fixture
def refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Locks below the root fail, as with a server that has none."""
    asked: list[str] = []

    def refusing(name: str) -> None:
        real = getattr(fcntl, name)

        def lock(file: Any, *how: Any) -> Any:
            path = os.readlink(f"/proc/self/fd/{file if isinstance(file, int) else file.fileno()}")
            if Path(path).is_relative_to(root):
                asked.append(path)
                raise OSError(37, "No locks available")
            return real(file, *how)

        monkeypatch.setattr(fcntl, name, lock)

    for name in ("flock", "lockf", "fcntl"):
        refusing(name)
    return asked


def test_everything_works_without_locks(root: Path, tmp_path: Path, refused: list[str]) -> None:
    with (root / "probe").open("w") as file, pytest.raises(OSError, match="No locks"):
        fcntl.flock(file, fcntl.LOCK_EX)
    (root / "probe").unlink()
    refused.clear()

    make_room(str(root / "1"), 1)
    parent = save({"a": np.ones(9), "b": np.ones(8)}, root / "1")
    child = save(
        {"a": np.ones(9), "b": np.zeros(8)}, root / "2", parent=root / "1",
        parent_digest=parent.digest,
    )  # fmt: skip
    assert load(root / "2", digest=child.digest)["b"].sum() == 0
    export(root / "2", root / "out.safetensors")
    np.save(root / "3.npy", np.ones(3))
    verify_tree(str(root / "3.npy"), published_digest(str(root / "3.npy")).digest)
    Checkpoints(str(root / ".checkpoints" / "e" / "1"), 1).save({"epoch": 1})
    make_room(str(root / "1"), 2)

    rows: dict[int, LedgerRow] = {
        1: LedgerRow(1, save_path="2", number=1.0),
        2: LedgerRow(2, save_path="3.npy"),
    }
    keeper = WeightKeeper(tmp_path, root, MemoryLedger(dict(rows)), Policy(Keep.BEST, 1))
    assert keeper.sweep(lambda trials: trials).done
    assert refused == []
    named = [path.name for path in root.rglob("*") if "lock" in path.name]
    assert named == []

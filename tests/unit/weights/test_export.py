"""One self-contained file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from trial_runtime.errors import CorruptWeights, WeightsError
from trial_runtime.weights import export, save


def test_inherited_and_tied_tensors_are_all_there(root: Path, tmp_path: Path) -> None:
    a, b = np.arange(4.0), np.ones(3, np.float16)
    save({"model": {"a": a, "b": b}}, root / "1")
    model = {"a": a, "b": b + 1, "tied": a, "empty": np.zeros((0, 2))}
    child = save({"model": model, "step": 3}, root / "2", parent=root / "1")
    exported = export(root / "2", tmp_path / "out" / "net.safetensors", digest=child.digest)
    assert exported.nbytes == os.path.getsize(exported.path)
    read = load_file(exported.path)
    assert set(read) == {"model.a", "model.b", "model.tied", "model.empty"}
    for name, array in model.items():
        np.testing.assert_array_equal(read[f"model.{name}"], array)
    assert set(load_file(export(root / "2", tmp_path / "m", key="model").path)) == set(model)


def test_nothing_to_export_and_nothing_half_exported(root: Path, tmp_path: Path) -> None:
    save({"step": 3}, root / "1")
    with pytest.raises(WeightsError, match="no tensor"):
        export(root / "1", tmp_path / "out.safetensors")
    save({"w": np.ones(9)}, root / "2")
    for name in os.listdir(root / "2"):
        if name != "manifest.json":
            with open(root / "2" / name, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"\x01")
    with pytest.raises(CorruptWeights):
        export(root / "2", tmp_path / "out.safetensors")
    assert not (tmp_path / "out.safetensors").exists()

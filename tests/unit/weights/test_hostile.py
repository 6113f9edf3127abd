"""Files that were cut, forged or moved, and paths that lead elsewhere."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trial_runtime.errors import (
    CorruptWeights,
    PathOutsideRoot,
    PathThroughLink,
    WeightsError,
    WeightsTaken,
)
from trial_runtime.weights import load, save, verify
from trial_runtime.weights.format import datafile, manifest


@pytest.fixture
def saved(root: Path) -> Path:
    state = {"a": np.arange(1000.0), "b": np.arange(500, dtype=np.float32)}
    save(state, root / "1", writer="17.2")
    return root / "1"


def data_file(path: Path) -> Path:
    (name,) = [n for n in os.listdir(path) if n != "manifest.json"]
    return path / name


def forge(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    file = path / "manifest.json"
    content = json.loads(file.read_bytes())
    edit(content)
    file.write_bytes(json.dumps(content).encode())


def test_a_flipped_bit_names_tensor_file_and_writer(saved: Path) -> None:
    file = data_file(saved)
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1  # the last bytes are those of b: wide elements lie first
    file.write_bytes(raw)
    with pytest.raises(CorruptWeights, match=r"'b'.*digest differs.*17\.2") as caught:
        load(saved)
    assert caught.value.where == str(file)
    assert list(load(saved, names="a")) == ["a"]  # what is not read is not checked
    load(saved, verify=False)


def test_a_corrupt_tensor_leaves_the_model_untouched(saved: Path) -> None:
    file = data_file(saved)
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    into = {"a": np.zeros(1000), "b": np.zeros(500, np.float32)}
    with pytest.raises(CorruptWeights):
        load(saved, into)
    assert not into["a"].any()
    assert not into["b"].any()


@pytest.mark.parametrize("keep", [0, 4, 100, 11_000])
def test_a_truncated_data_file(saved: Path, keep: int) -> None:
    os.truncate(data_file(saved), keep)
    with pytest.raises(CorruptWeights, match=r"bytes where .* were published.*17\.2"):
        load(saved)


def test_a_data_file_that_is_gone(saved: Path) -> None:
    data_file(saved).unlink()
    with pytest.raises(CorruptWeights, match="missing"):
        load(saved)


@pytest.mark.parametrize("keep", [0, 1, 200])
def test_a_truncated_manifest(saved: Path, keep: int) -> None:
    os.truncate(saved / "manifest.json", keep)
    with pytest.raises(CorruptWeights, match="not a manifest"):
        load(saved)


def test_a_header_that_claims_terabytes(saved: Path) -> None:
    with open(data_file(saved), "r+b") as file:
        file.write(struct.pack("<Q", 1 << 43))
    with pytest.raises(CorruptWeights, match="claims a header of 8,796,093,022,208 bytes"):
        load(saved)
    with pytest.raises(CorruptWeights, match="claims a header"):
        load(data_file(saved))  # as a bare file, without the manifest's word


def test_a_header_longer_than_its_file(saved: Path) -> None:
    with open(data_file(saved), "r+b") as file:
        file.write(struct.pack("<Q", 50_000_000))
    for path in (saved, data_file(saved)):
        with pytest.raises(CorruptWeights, match="claims a header of 50,000,000 bytes"):
            load(path)


def test_a_header_above_the_limit_of_the_format(saved: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(datafile, "MAX_HEADER_BYTES", 16)
    with pytest.raises(CorruptWeights, match="at most 16"):
        load(saved)


@pytest.mark.parametrize(
    "field, value",
    [
        ("offset", -8),
        ("offset", 1 << 60),
        ("offset", 0),  # inside the header
        ("nbytes", 1 << 50),
        ("shape", [1 << 61, 1 << 61]),
        ("shape", [-1]),
        ("shape", [1] * 1000),
        ("dtype", "F7"),
        ("file", "other.safetensors"),
        ("like", "tensorflow"),
    ],
)
def test_forged_entries(saved: Path, field: str, value: Any) -> None:
    forge(saved, lambda content: content["tensors"]["a"].update({field: value}))
    with pytest.raises(CorruptWeights):
        load(saved)


@pytest.mark.parametrize(
    "field, value",
    [("version", 99), ("format", "zip"), ("ties", [["a", "ghost"]]), ("tensors", [])],
)
def test_forged_manifests(saved: Path, field: str, value: Any) -> None:
    forge(saved, lambda content: content.update({field: value}))
    with pytest.raises(CorruptWeights):
        load(saved)


def test_a_state_that_refers_to_no_tensor(saved: Path) -> None:
    forge(saved, lambda content: content.update(state={"$": "tensor", "v": "ghost"}))
    with pytest.raises(CorruptWeights, match="ghost"):
        load(saved)


@pytest.mark.parametrize("depth", [100_000, 950, 500])
def test_a_manifest_nested_beyond_reason(saved: Path, depth: int) -> None:
    text = (saved / "manifest.json").read_text()
    assert '"state":{' in text
    nested = "[" * depth + "]" * depth
    (saved / "manifest.json").write_text(text.replace('"state":{', f'"state":{nested},"x":{{'))
    with pytest.raises(CorruptWeights):
        load(saved)


@pytest.mark.parametrize(
    "node", [{"$": "tuple"}, {"$": 1, "v": []}, {"$": "dict", "v": [1]}, {"$": "dict", "v": 3}]
)
def test_forged_states(saved: Path, node: Any) -> None:
    forge(saved, lambda content: content.update(state=[node]))
    with pytest.raises(CorruptWeights, match="the state holds"):
        load(saved, key="0.x")


def test_a_manifest_beyond_the_limit_is_not_read(saved: Path, monkeypatch: Any) -> None:
    os.truncate(saved / "manifest.json", manifest.MAX_MANIFEST_BYTES + 1)
    with pytest.raises(CorruptWeights, match="are allowed"):
        load(saved)


@pytest.mark.parametrize("target", ["../../outside.safetensors", "/etc/passwd", "a\\b"])
def test_a_reference_that_leads_out_of_the_root(saved: Path, target: str) -> None:
    (saved.parent.parent / "outside.safetensors").write_bytes(data_file(saved).read_bytes())
    size = data_file(saved).stat().st_size

    def lead_out(content: dict[str, Any]) -> None:
        content["files"] = {target: size}
        for entry in content["tensors"].values():
            entry["file"] = target

    forge(saved, lead_out)
    with pytest.raises(CorruptWeights):
        load(saved)


def test_a_data_file_that_is_a_link_out_of_the_root(saved: Path, tmp_path: Path) -> None:
    file = data_file(saved)
    outside = tmp_path / "outside.safetensors"
    file.rename(outside)
    file.symlink_to(outside)
    with pytest.raises(CorruptWeights, match="outside the weights root"):
        load(saved)


def test_a_manifest_that_is_a_link(saved: Path, tmp_path: Path) -> None:
    (saved / "manifest.json").rename(tmp_path / "manifest.json")
    (saved / "manifest.json").symlink_to(tmp_path / "manifest.json")
    with pytest.raises(PathThroughLink):
        load(saved)


def test_a_fifo_in_place_of_a_manifest_does_not_block(root: Path) -> None:
    (root / "1").mkdir()
    os.mkfifo(root / "1" / "manifest.json")
    with pytest.raises(WeightsError, match="not a regular file"):
        load(root / "1")


def test_paths_out_of_the_root_are_neither_read_nor_written(root: Path, tmp_path: Path) -> None:
    with pytest.raises(PathOutsideRoot):
        save({}, tmp_path / "elsewhere")
    with pytest.raises(PathOutsideRoot):
        load("../elsewhere")
    (root / "link").symlink_to(tmp_path)
    with pytest.raises(PathThroughLink):
        save({}, "link/x")
    assert os.listdir(tmp_path) == ["weights"]


def test_another_attempts_weights_are_not_replaced(saved: Path) -> None:
    before = (saved / "manifest.json").read_bytes()
    with pytest.raises(WeightsTaken, match=r"17\.2"):
        save({"a": np.zeros(3)}, saved, writer="17.1")
    with pytest.raises(WeightsTaken):
        save({"a": np.zeros(3)}, saved)
    assert (saved / "manifest.json").read_bytes() == before
    save({"a": np.zeros(3)}, saved, writer="17.2")


def test_a_file_in_place_of_the_folder(root: Path) -> None:
    (root / "1").write_bytes(b"mine")
    with pytest.raises(WeightsError, match="is a file"):
        save({}, root / "1")
    assert (root / "1").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F64", "shape": [4], "data_offsets": [0, 64]}},
        {"a": {"dtype": "F64", "shape": [4], "data_offsets": [-8, 24]}},
        {"a": {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 1 << 43]}},
        {"a": {"dtype": "F64"}},
        [],
    ],
)
def test_forged_headers_of_bare_files(root: Path, header: Any) -> None:
    text = json.dumps(header).encode()
    if not text.startswith(b"{"):
        text = b"{" + text
    (root / "x.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(32))
    with pytest.raises(CorruptWeights):
        load(root / "x.safetensors")


def test_verify_reads_inherited_tensors_too(saved: Path, root: Path) -> None:
    child = save(load(saved), root / "2", parent=saved, writer="18.1")
    verify(root / "2", child.digest)
    file = data_file(saved)
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    with pytest.raises(CorruptWeights):
        verify(root / "2", child.digest)


def test_a_header_full_of_tiny_entries_is_not_read(root: Path, monkeypatch: Any) -> None:
    save({"a": np.arange(100.0)}, root / "1")
    file = data_file(root / "1")
    monkeypatch.setattr(datafile, "MAX_READ_HEADER_BYTES", 64)
    with pytest.raises(CorruptWeights, match="at most 64 are read"):
        load(file)
    assert load(root / "1")["a"][99] == 99, "its manifest describes it"


def test_a_manifest_full_of_empty_lists_is_not_made_into_objects(saved: Path) -> None:
    text = (saved / "manifest.json").read_text().removesuffix("}")
    nothing = ",".join(["[]"] * 4_000_000)
    (saved / "manifest.json").write_text(f'{text},"other":[{nothing}]}}')
    with pytest.raises(CorruptWeights, match="lists and objects"):
        load(saved)


def test_what_readers_would_refuse_is_not_written(root: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("trial_runtime.weights.saving.saving.MAX_PARTS", 100)
    with pytest.raises(WeightsError, match="lists and dicts"):
        save({"many": [[] for _ in range(100)]}, root / "1")
    assert not (root / "1" / "manifest.json").exists()

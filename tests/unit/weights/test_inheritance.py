"""A child refers to what its ancestors wrote, and writes what changed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.errors import WeightsNotFound
from trial_runtime.weights import configure, load, read_manifest, save, verify


def layers(count: int = 100, size: int = 4096, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {f"layer{i}": generator.standard_normal(size).astype(np.float32) for i in range(count)}


def change(state: dict[str, np.ndarray], *indices: int) -> dict[str, np.ndarray]:
    return {
        name: array + 1 if int(name.removeprefix("layer")) in indices else array
        for name, array in state.items()
    }


def data_files(path: Path) -> list[str]:
    return [name for name in os.listdir(path) if name != "manifest.json"]


def bytes_on_disk(path: Path) -> int:
    return sum(os.path.getsize(path / name) for name in os.listdir(path))


def test_a_child_with_nine_tenths_unchanged_writes_at_most_12_percent(root: Path) -> None:
    state = layers()
    parent = save(state, root / "1")
    child = save(change(state, *range(10)), root / "2", parent=root / "1")
    assert child.tensors_written == 10
    assert child.tensors_inherited == 90
    assert child.bytes_written == bytes_on_disk(root / "2")
    assert child.bytes_written <= 0.12 * parent.bytes_written


def test_large_states_are_decided_while_writing(root: Path) -> None:
    # Above the size at which all digests are awaited before the file is laid out.
    state = layers(count=10, size=1 << 20)
    save(state, root / "1")
    changed = change(state, 3, 7)
    child = save(changed, root / "2", parent=root / "1")
    assert (child.tensors_written, child.tensors_inherited) == (2, 8)
    for name, array in load(root / "2").items():
        np.testing.assert_array_equal(array, changed[name])
    verify(root / "2", child.digest)


def test_an_unchanged_child_needs_no_data_file(root: Path) -> None:
    state = layers(5)
    save(state, root / "1")
    child = save(state, root / "2", parent=root / "1")
    assert data_files(root / "2") == []
    assert child.tensors_written == 0
    assert load(root / "2")["layer3"].tolist() == state["layer3"].tolist()


def test_references_lead_straight_to_the_file_with_the_bytes(root: Path) -> None:
    state = layers(4)
    save(state, root / "1")
    for generation in range(2, 6):
        state = change(state, 0)
        save(state, root / str(generation), parent=root / str(generation - 1))
    manifest = read_manifest(root / "5")
    assert manifest.tensors["layer3"].file.startswith("../1/")
    assert manifest.tensors["layer0"].file in data_files(root / "5")
    assert len(manifest.files) == 2
    for between in "234":
        os.unlink(root / between / "manifest.json")
    np.testing.assert_array_equal(load(root / "5")["layer0"], state["layer0"])


def test_a_renamed_or_reshaped_tensor_is_inherited_by_its_bytes(root: Path) -> None:
    weight = np.arange(4096, dtype=np.float32)
    save({"old": weight}, root / "1")
    child = save({"new": weight.reshape(64, 64)}, root / "2", parent=root / "1")
    assert child.tensors_inherited == 1
    assert load(root / "2")["new"].shape == (64, 64)


def test_equal_bytes_of_another_type_are_not_inherited_as_that_type(root: Path) -> None:
    save({"a": np.zeros(8, np.float32)}, root / "1")
    child = save({"a": np.zeros(8, np.int32)}, root / "2", parent=root / "1")
    assert child.tensors_written == 1
    assert load(root / "2")["a"].dtype == np.int32


def test_equal_tensors_inherited_from_one_place_are_not_tied_by_it(root: Path) -> None:
    save({"a": np.zeros(100), "b": np.zeros(100)}, root / "1")
    child = save({"a": np.zeros(100), "b": np.zeros(100)}, root / "2", parent=root / "1")
    assert child.tensors_inherited == 2
    back = load(root / "2")
    back["a"][:] = 1.0
    assert not back["b"].any()


def test_a_parent_outside_the_root_bequeaths_nothing(root: Path, tmp_path: Path) -> None:
    state = layers(3)
    pretrained = tmp_path / "pretrained"
    save(state, pretrained / "net", root=str(pretrained))
    configure(root=str(root), read_roots=(str(pretrained),))
    child = save(state, root / "2", parent=pretrained / "net")
    assert child.tensors_inherited == 0
    assert load(root / "2")["layer1"].tolist() == state["layer1"].tolist()


def test_a_missing_parent_is_an_error_and_a_plain_one_is_not(root: Path) -> None:
    with pytest.raises(WeightsNotFound):
        save(layers(1), root / "2", parent=root / "1")
    (root / "1").mkdir()
    (root / "1" / "mine.npy").write_bytes(b"?")
    assert save(layers(1), root / "2", parent=root / "1").tensors_inherited == 0


def test_an_ancestors_file_that_was_cut_is_not_referred_to(root: Path) -> None:
    state = layers(3)
    save(state, root / "1")
    (file,) = data_files(root / "1")
    os.truncate(root / "1" / file, 100)
    child = save(state, root / "2", parent=root / "1")
    assert child.tensors_written == 3
    verify(root / "2")


def test_saving_again_replaces_what_this_process_wrote(root: Path) -> None:
    for step in range(3):
        save({"w": np.full(100, step)}, root / "1")
    assert len(data_files(root / "1")) == 1
    assert load(root / "1")["w"][0] == 2


def test_saving_again_keeps_what_a_child_refers_to(root: Path) -> None:
    state = layers(2)
    save(state, root / "1")
    save(state, root / "2", parent=root / "1")
    save(change(state, 0, 1), root / "1")
    np.testing.assert_array_equal(load(root / "2")["layer0"], state["layer0"])


def test_saving_over_oneself_inherits_from_oneself(root: Path) -> None:
    state = layers(10)
    save(state, root / "1")
    again = save(change(state, 0), root / "1", parent=root / "1")
    assert again.tensors_written == 1
    verify(root / "1", again.digest)


def test_data_files_are_plain_safetensors(root: Path) -> None:
    from safetensors.numpy import load_file

    state = {"a": np.arange(6, dtype=np.int64).reshape(2, 3), "b": np.ones(3, np.uint8)}
    save(state, root / "1")
    (file,) = data_files(root / "1")
    read = load_file(root / "1" / file)
    for name, array in state.items():
        np.testing.assert_array_equal(read[name], array)

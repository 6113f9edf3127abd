"""One bit of published weights flips on the disk: no reader takes them for what they were."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.faults.storage.flips import flips
from trial_runtime import weights
from trial_runtime.errors import WeightsError

FLIPS = int(os.environ.get("BEQUEATH_TEST_FLIPS", "300"))  # of each file


@pytest.fixture
def family(tmp_path: Path) -> tuple[Path, str]:
    """A child that refers to its parent's file; the digest that was announced of it."""
    root = tmp_path / "weights"
    dice = np.random.default_rng(3)
    state = {
        "encoder": dice.standard_normal((8, 16)).astype("float32"),
        "head": dice.standard_normal(10),
        "steps": np.arange(5),
        "epoch": 7,
        "notes": {"rate": 0.25, "name": "root"},
    }
    weights.save(state, root / "0", root=str(root), writer="0.1")
    child = {**state, "head": state["head"] + 1, "epoch": 8}
    published = weights.save(child, root / "1", parent=root / "0", root=str(root), writer="1.1")
    assert published.tensors_inherited == 2
    return root, published.digest


def _state(root: Path, digest: str | None) -> dict[str, object]:
    return weights.load(
        root / "1", digest=digest, root=str(root), framework="numpy", stale_timeout_s=0.0
    )


def _same(one: dict[str, object], other: dict[str, object]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name])
        if isinstance(one[name], np.ndarray)
        else one[name] == other[name]
        for name in one
    )


def _files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and path.parent.name != "")


def test_no_flipped_bit_is_loaded(family: tuple[Path, str], tmp_path: Path) -> None:
    root, digest = family
    good = {
        name: np.copy(x) if isinstance(x, np.ndarray) else x
        for name, x in _state(root, digest).items()
    }
    used = [path for path in _files(root) if path != root / "0" / "manifest.json"]
    assert len(used) == 3, "the child's manifest and file, and its parent's file"
    for path in used:
        content = path.read_bytes()
        found = 0
        for at, bad in flips(content, FLIPS, seed=4):
            path.write_bytes(bad)
            try:
                state = _state(root, digest)
            except WeightsError as error:
                found += 1
                said = str(error)
                assert str(root) in said, "it is named where"
                continue
            assert _same(state, good), f"byte {at} of {path.name} was believed"
        path.write_bytes(content)
        assert found > FLIPS // 8, f"{path.name} is not checked"


#: How a stored tensor may come to where it is wanted: each of these takes another way through the
#: code, and what each way copies must have been compared with its digest.
WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "as bytes": np.zeros_like,
    "converted": lambda x: np.zeros(x.shape, np.int32 if x.dtype.kind == "i" else np.float16),
    "strided": lambda x: np.zeros((*x.shape, 2), x.dtype)[..., 0],
    "of a foreign byte order": lambda x: np.zeros(x.shape, x.dtype.newbyteorder(">")),
    "wider": lambda x: np.zeros([side + 3 for side in x.shape], x.dtype),
    "narrower": lambda x: np.zeros([side - 3 for side in x.shape], x.dtype),
    "wider and converted": lambda x: np.zeros(
        [side + 3 for side in x.shape], "f2" if x.dtype.kind == "f" else "i4"
    ),
    "torch, as bytes": lambda x: _torch(x.shape, x),
    "torch, strided": lambda x: _torch((*x.shape, 2), x)[..., 0],
    "torch, wider": lambda x: _torch([side + 3 for side in x.shape], x),
}

TENSORS = ("encoder", "head", "steps")


def _torch(shape: Any, like: np.ndarray) -> Any:
    torch = pytest.importorskip("torch")
    return torch.zeros(tuple(shape), dtype=getattr(torch, like.dtype.name))


def _flip(root: Path, name: str, at: int) -> None:
    """A bit of a tensor of the child, in whosever file it lies: ``at`` of its bytes."""
    entry = weights.read_manifest(root / "1", root=str(root)).tensors[name]
    with open(root / "1" / entry.file, "r+b") as file:
        file.seek(entry.offset + at % entry.nbytes)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 16]))


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("way", WAYS)
def test_a_damaged_tensor_comes_in_by_no_way(family: tuple[Path, str], way: str, name: str) -> None:
    root, digest = family
    good = {
        each: np.copy(tensor)
        for each, tensor in _state(root, digest).items()
        if isinstance(tensor, np.ndarray)
    }
    assert set(good) == set(TENSORS)

    def taken(only: tuple[str, ...]) -> dict[str, Any]:
        into = {each: WAYS[way](good[each]) for each in only}
        try:
            report = weights.load(root / "1", into, digest=digest, root=str(root), resize="overlap")
        except WeightsError:
            assert not any(np.asarray(each).any() for each in into.values()), "half of it is there"
            raise
        copied = {*report.loaded, *(each.name for each in report.reshaped if each.copied)}
        assert copied == set(only)
        assert all(np.asarray(each).any() for each in into.values())
        return into

    taken(TENSORS)
    for at in (0, -1):  # of which a corner has one and not the other
        _flip(root, name, at)
        with pytest.raises(WeightsError):
            taken(TENSORS)
        with pytest.raises(WeightsError):
            taken((name,))
        taken(tuple(each for each in TENSORS if each != name))  # the rest is as good as before
        _flip(root, name, at)
    taken(TENSORS)


def test_verify_finds_each_flip_without_an_announcement_too(family: tuple[Path, str]) -> None:
    """A store that is checked years later: the manifests themselves have no digest then, so
    what is asked of their flips is only that nothing breaks and no tensor is another one."""
    root, digest = family
    (data,) = (path for path in (root / "1").iterdir() if path.name != "manifest.json")
    content = data.read_bytes()
    opened = weights.read_manifest(root / "1")
    ranges = [
        range(entry.offset, entry.offset + entry.nbytes)
        for entry in opened.tensors.values()
        if entry.file == data.name
    ]
    assert ranges
    for at, bad in flips(content, FLIPS, seed=5):
        data.write_bytes(bad)
        if any(at in each for each in ranges):
            with pytest.raises(WeightsError, match=r"1\.1") as caught:  # whose they are
                weights.verify(root / "1", root=str(root), stale_timeout_s=0.0)
            assert str(data) in str(caught.value)
    data.write_bytes(content)
    weights.verify(root / "1", digest, root=str(root))


def test_a_flipped_manifest_without_an_announcement_breaks_nothing(
    family: tuple[Path, str],
) -> None:
    root, _digest = family
    path = root / "1" / "manifest.json"
    content = path.read_bytes()
    refused = 0
    for _at, bad in flips(content, FLIPS, seed=6):
        path.write_bytes(bad)
        try:
            weights.verify(root / "1", root=str(root), stale_timeout_s=0.0)
        except WeightsError:
            refused += 1
    assert refused > FLIPS // 3
    shutil.rmtree(root)

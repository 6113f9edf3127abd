"""Which files belong to whom, and what may go."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.errors import CorruptWeights, PathOutsideRoot, StaleWeights
from trial_runtime.weights import load, published_digest, save, verify
from trial_runtime.weights.usage import Removal, file_use, plan_removal, remove


@pytest.fixture
def family(root: Path) -> Path:
    """1 → 2 → 3; each changes one of three tensors."""
    state = {name: np.full(1000, i, np.float64) for i, name in enumerate("abc")}
    save(state, root / "1")
    state["a"] = state["a"] + 10
    save(state, root / "2", parent=root / "1")
    state["b"] = state["b"] + 10
    save(state, root / "3", parent=root / "2")
    return root


def data_file(path: Path) -> str:
    (name,) = [n for n in os.listdir(path) if n != "manifest.json"]
    return f"{path.name}/{name}"


def test_own_and_inherited_files(family: Path) -> None:
    first, third = file_use(str(family), "1"), file_use(str(family), "3")
    assert not first.inherited
    assert set(third.inherited) == {data_file(family / "1"), data_file(family / "2")}
    assert set(third.own) == {"3/manifest.json", data_file(family / "3")}
    assert 8000 <= third.own_bytes < 16000
    assert third.inherited_bytes >= 32000
    assert file_use(str(family), "nothing").own_bytes == 0


def test_only_what_no_kept_manifest_refers_to_goes(family: Path) -> None:
    expected = {name: array.copy() for name, array in load(family / "3").items()}
    plan = plan_removal(str(family), drop=["1", "2"], keep=["3"])
    assert plan.delete == ("1/manifest.json", "2/manifest.json")
    assert set(plan.kept_for) == {data_file(family / "1"), data_file(family / "2")}
    assert set(plan.kept_for.values()) == {("3",)}
    remove(str(family), plan)
    verify(family / "3")
    for name, array in load(family / "3").items():
        np.testing.assert_array_equal(array, expected[name])


def test_everything_goes_when_nothing_is_kept(family: Path) -> None:
    (family / "2" / ".tmp-0123-weights").write_bytes(b"left behind")
    plan = plan_removal(str(family), drop=["1", "2", "3"], keep=[])
    assert plan.nbytes == sum(file_use(str(family), path).own_bytes for path in "123")
    remove(str(family), plan)
    remove(str(family), plan)  # carried out again after an interruption
    assert os.listdir(family) == []


def test_an_unreadable_kept_manifest_stops_the_plan(family: Path) -> None:
    (family / "3" / "manifest.json").write_bytes(b"{")
    with pytest.raises(CorruptWeights):
        plan_removal(str(family), drop=["1"], keep=["2", "3"])


def test_a_kept_manifest_that_is_not_to_be_seen_stops_the_plan(family: Path) -> None:
    digest = published_digest(str(family / "3")).digest
    keep = {"3": digest}
    assert plan_removal(str(family), drop=["1"], keep=keep).kept_for
    (family / "3" / "manifest.json").unlink()
    with pytest.raises(StaleWeights):
        plan_removal(str(family), drop=["1"], keep=keep)


def test_plain_weights_go_as_a_whole(root: Path) -> None:
    (root / "1" / "deep").mkdir(parents=True)
    (root / "1" / "deep" / "model.pt").write_bytes(b"x")
    (root / "2.pt").write_bytes(b"y")
    remove(str(root), plan_removal(str(root), drop=["1", "2.pt"], keep=[]))
    assert os.listdir(root) == []


def test_a_link_is_removed_and_what_it_leads_to_is_not(root: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_bytes(b"!")
    (root / "1").mkdir()
    (root / "1" / "link").symlink_to(tmp_path / "precious")
    remove(str(root), plan_removal(str(root), drop=["1"], keep=[]))
    assert not (root / "1").exists()
    assert (tmp_path / "precious" / "file").exists()


def test_a_plan_of_another_root_is_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"!")
    with pytest.raises(PathOutsideRoot):
        remove(str(root), Removal(("../file",), (), 1, {}))
    assert (tmp_path / "file").exists()

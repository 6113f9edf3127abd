"""Readers of announced weights wait for a file system that lags, and no longer."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.errors import CorruptWeights, StaleWeights, StorageStale, WeightsNotFound
from trial_runtime.weights import load, save
from trial_runtime.weights.read.opening import open_manifest
from trial_runtime.weights.read.plain import digest_tree, verify_tree
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.patience import Patience
from trial_runtime.weights.storage.roots import Located


@dataclass
class LaggingClock:
    """Time that passes only while the reader sleeps; the world changes at a given moment."""

    at_s: float = float("inf")
    change: Callable[[], object] = lambda: None
    now_s: float = 0.0
    pauses: list[float] = field(default_factory=list)

    def sleep(self, pause_s: float) -> None:
        self.pauses.append(pause_s)
        before, self.now_s = self.now_s, self.now_s + pause_s
        if before < self.at_s <= self.now_s:
            self.change()

    def patience(self, timeout_s: float = 75.0) -> Patience:
        return Patience(timeout_s, lambda: self.now_s, self.sleep)


def located(path: Path) -> Located:
    return Located(str(path), str(path.parent))


def test_a_manifest_that_appears_late_is_found(root: Path) -> None:
    hidden = root / "hidden"
    published = save({"w": np.ones(3)}, hidden)
    clock = LaggingClock(60.0, lambda: hidden.rename(root / "1"))
    opened = open_manifest(located(root / "1"), published.digest, clock.patience())
    assert opened.digest == published.digest
    assert 60.0 <= clock.now_s < 63.0


def test_an_older_manifest_is_waited_out(root: Path) -> None:
    save({"w": np.zeros(3)}, root / "1")
    new = save({"w": np.ones(3)}, root / "2")

    def swap() -> None:
        shutil.rmtree(root / "1")
        (root / "2").rename(root / "1")

    clock = LaggingClock(10.0, swap)
    assert open_manifest(located(root / "1"), new.digest, clock.patience()).digest == new.digest


def test_the_bound_ends_in_an_error_with_both_digests(root: Path) -> None:
    old = save({"w": np.zeros(3)}, root / "1")
    clock = LaggingClock()
    with pytest.raises(StaleWeights) as caught:
        open_manifest(located(root / "1"), "ab" * 32, clock.patience(5.0))
    assert (caught.value.expected, caught.value.actual) == ("ab" * 32, old.digest)
    assert caught.value.found == old.digest, "its name in 0.1"
    assert caught.value.where == str(root / "1")
    assert "within 5 s" in str(caught.value)
    assert clock.now_s == 5.0
    assert clock.pauses[:3] == [0.05, 0.1, 0.2]


def test_a_short_file_may_still_grow(root: Path) -> None:
    published = save({"w": np.ones(100)}, root / "1")
    (name,) = [n for n in os.listdir(root / "1") if n != "manifest.json"]
    whole = (root / "1" / name).read_bytes()
    (root / "1" / name).write_bytes(whole[:50])
    clock = LaggingClock(1.0, lambda: (root / "1" / name).write_bytes(whole))
    open_manifest(located(root / "1"), published.digest, clock.patience())
    (root / "1" / name).write_bytes(whole[:50])
    with pytest.raises(CorruptWeights, match="holds 50 bytes"):
        open_manifest(located(root / "1"), published.digest, LaggingClock().patience())


def test_without_a_digest_nothing_is_waited_for(root: Path) -> None:
    clock = LaggingClock()
    with pytest.raises(WeightsNotFound):
        open_manifest(located(root / "1"), None, clock.patience())
    assert clock.pauses == []


def test_a_data_file_seen_before_its_manifest_is_not_taken_for_foreign(root: Path) -> None:
    published = save({"w": np.ones(3)}, root / "1")
    (root / "1" / "manifest.json").unlink()
    with pytest.raises(StaleWeights, match="found no manifest"):
        load(root / "1", digest=published.digest, stale_timeout_s=0.0)


def test_plain_files_are_waited_for_as_well(root: Path) -> None:
    hidden = root / "hidden.pt"
    hidden.write_bytes(b"weights")
    digest = digest_tree(str(hidden)).digest
    clock = LaggingClock(30.0, lambda: hidden.rename(root / "1.pt"))
    found = verify_tree(str(root / "1.pt"), digest, patience=clock.patience())
    assert found.nbytes == 7
    with pytest.raises(StaleWeights):
        verify_tree(str(root / "1.pt"), "cd" * 32, patience=LaggingClock().patience())


def test_nothing_is_inherited_from_a_parent_that_is_not_the_announced_one(root: Path) -> None:
    """A client that lags shows the folder of an attempt that was set aside by the name of its
    successor: what a child referred to there would soon be nowhere."""
    seen = save({"w": np.ones(100)}, root / "1")
    child = save({"w": np.ones(100)}, root / "2", parent=root / "1", parent_digest="ab" * 32)
    assert child.tensors_inherited == 0
    shutil.rmtree(root / "1")
    assert load(root / "2", digest=child.digest)["w"].sum() == 100
    missing = save({"w": np.ones(9)}, root / "3", parent=root / "1", parent_digest=seen.digest)
    assert missing.tensors_inherited == 0


def test_a_stale_handle_is_waited_out_for_as_long_as_announced_weights_are(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An export that was taken back comes again after 40 s: longer than a step is repeated."""
    published = save({"w": np.ones(3)}, root / "1")
    clock = LaggingClock()
    monkeypatch.setattr(faults, "clock", lambda: clock.now_s)
    monkeypatch.setattr(faults, "sleep", clock.sleep)
    real = os.open

    def stale(path: str, *how: int, **at: int) -> int:
        if path == "manifest.json" and clock.now_s < 40:
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(path, *how, **at)

    monkeypatch.setattr(os, "open", stale)
    opened = open_manifest(located(root / "1"), published.digest, clock.patience())
    assert opened.digest == published.digest
    assert 40 <= clock.now_s < 60
    clock.now_s = -1e9
    with pytest.raises(StorageStale):
        open_manifest(located(root / "1"), published.digest, clock.patience())

"""Weights that a trial wrote by its own means."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from trial_runtime.errors import (
    CorruptWeights,
    PathThroughLink,
    StaleWeights,
    WeightsError,
    WeightsNotFound,
    WeightsTaken,
)
from trial_runtime.weights import await_published, digest_tree, published_digest, save, verify_tree
from trial_runtime.weights.read.plain import saved_again


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "1" / "deep").mkdir(parents=True)
    (root / "1" / "model.pt").write_bytes(b"model")
    (root / "1" / "deep" / "opt.pt").write_bytes(b"optimiser")
    return root / "1"


def test_names_sizes_and_contents_count(tree: Path) -> None:
    first = digest_tree(str(tree))
    assert [(f.path, f.nbytes) for f in first.files] == [("deep/opt.pt", 9), ("model.pt", 5)]
    assert first.nbytes == 14
    assert digest_tree(str(tree)) == first
    (tree / "model.pt").rename(tree / "renamed.pt")
    renamed = digest_tree(str(tree))
    (tree / "renamed.pt").write_bytes(b"mode1")
    changed = digest_tree(str(tree))
    assert len({first.digest, renamed.digest, changed.digest}) == 3


def test_a_single_file(root: Path) -> None:
    (root / "1.pt").write_bytes(b"x")
    (only,) = digest_tree(str(root / "1.pt")).files
    assert (only.path, only.nbytes) == (".", 1)


def test_files_and_folders_are_synced_before_they_are_read(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = []
    real = os.fsync

    def note(fd: int) -> None:
        synced.append(os.path.relpath(os.readlink(f"/proc/self/fd/{fd}"), tree))
        real(fd)

    monkeypatch.setattr(os, "fsync", note)
    digest_tree(str(tree))
    assert set(synced) == {".", "deep", "model.pt", "deep/opt.pt"}


def test_a_change_after_the_commit_names_the_file_and_its_writer(tree: Path) -> None:
    committed = digest_tree(str(tree))
    assert verify_tree(str(tree), committed.digest) == committed
    (tree / "deep" / "opt.pt").write_bytes(b"other")
    with pytest.raises(CorruptWeights, match=r"deep/opt.pt \(written by 3\.1\)"):
        verify_tree(
            str(tree),
            committed.digest,
            expected=committed.files,
            writer="3.1",
            stale_timeout_s=0.0,
        )


def test_links_inside_are_followed_and_links_out_refused(tree: Path, root: Path) -> None:
    (tree / "latest.pt").symlink_to("model.pt")
    assert len(digest_tree(str(tree)).files) == 3
    (root / "secret").write_bytes(b"?")
    (tree / "leak").symlink_to(root / "secret")
    with pytest.raises(PathThroughLink):
        digest_tree(str(tree))
    with pytest.raises(PathThroughLink):
        digest_tree(str(tree / "latest.pt"))


def test_too_many_files_and_things_that_are_none(tree: Path) -> None:
    with pytest.raises(WeightsError, match="more than 2"):
        digest_tree(str(tree), max_files=2)
    os.mkfifo(tree / "pipe")
    with pytest.raises(WeightsError, match="not a regular file"):
        digest_tree(str(tree))


def test_nothing_there(root: Path) -> None:
    with pytest.raises(WeightsNotFound):
        digest_tree(str(root / "1"))
    (root / "1").mkdir()
    with pytest.raises(WeightsNotFound):
        published_digest(str(root / "1"))


def test_published_digest_tells_the_two_kinds_apart(tree: Path, root: Path) -> None:
    plain = published_digest(str(tree))
    assert (plain.kind, plain.digest) == ("files", digest_tree(str(tree)).digest)
    published = save({"w": np.ones(2)}, root / "2")
    ours = published_digest(str(root / "2"))
    assert (ours.kind, ours.digest, ours.nbytes) == ("bequeath", published.digest, 16)
    for name in os.listdir(root / "2"):
        if name != "manifest.json":
            os.truncate(root / "2" / name, 3)
    with pytest.raises(CorruptWeights):
        published_digest(str(root / "2"))


def test_what_another_attempt_has_saved_is_not_taken_for_ones_own(root: Path) -> None:
    """It was given up, lives on, and published in the moment in which its successor did. Copies
    of another trial's weights are a trial's own."""
    published = save({"w": np.ones(2)}, root / "3", writer="3.1")
    with pytest.raises(WeightsTaken, match=r"attempt 3\.1 has saved; this is 3\.2"):
        published_digest(str(root / "3"), writer="3.2")
    with pytest.raises(WeightsTaken):
        saved_again(str(root / "3"), "00" * 32, writer="3.2")
    for writer in ("3.1", "13.1", "4.1", "by hand", ""):
        assert published_digest(str(root / "3"), writer=writer).digest == published.digest


def test_what_another_attempt_is_about_to_save_is_nobodys_weights(root: Path) -> None:
    """It was given up and lives on, and its successor has saved nothing at the same path."""
    save({"w": np.ones(2)}, root / "3", writer="3.1")
    os.unlink(root / "3" / "manifest.json")  # the last thing that a save does
    (data,) = os.listdir(root / "3")
    unnamed = root / "3" / f".tmp-{'0' * 16}-{data}"
    unnamed.write_bytes(b"half")
    (root / "3" / f".nfs{'0' * 24}").write_bytes(b"removed")
    for writer in ("3.2", "3.1"):  # its own, too: no reader opens what has no manifest
        with pytest.raises(WeightsNotFound, match="what a save has left unfinished"):
            published_digest(str(root / "3"), writer=writer)
    assert published_digest(str(root / "3"), writer="4.1").kind == "files", "a copy of its own"
    os.unlink(root / "3" / data)
    for writer in ("3.1", "3.2", "4.1", ""):
        with pytest.raises(WeightsNotFound):
            published_digest(str(root / "3"), writer=writer)
    (root / "3" / "model.pt").write_bytes(b"mine")
    assert published_digest(str(root / "3"), writer="3.2").kind == "files"
    (root / "3" / "model.pt").unlink()
    unnamed.rename(root / "3" / data)  # no file of ours, though it is called so
    assert published_digest(str(root / "3"), writer="3.2").kind == "files"
    (root / "3" / data).rename(root / "3" / "x.bin")
    (root / "3" / data).symlink_to("x.bin")
    assert published_digest(str(root / "3"), writer="3.2").kind == "files"


def test_both_kinds_can_be_awaited(tree: Path, root: Path) -> None:
    save({"w": np.ones(2)}, root / "2")
    for path in (tree, root / "2"):
        told = published_digest(str(path))
        await_published(str(path), told.kind, told.digest)
        with pytest.raises(StaleWeights):
            await_published(str(path), told.kind, "00" * 32, stale_timeout_s=0.0)

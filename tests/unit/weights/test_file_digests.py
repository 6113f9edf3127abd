"""Manifests carry the digests of whole data files, by which hosts keep copies of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from blake3 import blake3

from trial_runtime import weights
from trial_runtime.errors import CorruptWeights


@pytest.fixture(autouse=True)
def copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody may keep copies of what is saved."""
    monkeypatch.setenv("BEQUEATH_WEIGHTS_CACHE", "auto:0:")


def digests_fit(folder: Path) -> bool:
    manifest = weights.read_manifest(folder)
    assert manifest.digests.keys() == manifest.files.keys()
    return all(
        blake3((folder / reference).read_bytes()).hexdigest() == digest
        for reference, digest in manifest.digests.items()
    )


@pytest.mark.parametrize("elements", [10, 3_000_000])  # hashed at once, and beside the writing
def test_what_is_written_and_what_is_inherited(root: Path, elements: int) -> None:
    weights.save({"a": np.arange(elements), "b": np.ones(elements)}, "1")
    weights.save({"a": np.arange(elements), "c": np.zeros(elements)}, "2", parent="1")
    assert len(weights.read_manifest(root / "2").files) == 2
    assert digests_fit(root / "1")
    assert digests_fit(root / "2")


def test_weights_from_before_there_were_such_digests_are_loaded(root: Path) -> None:
    weights.save({"a": np.arange(9)}, "1")
    path = root / "1" / "manifest.json"
    old = msgspec.json.decode(path.read_bytes())
    del old["digests"]
    path.write_bytes(msgspec.json.encode(old))
    assert weights.load("1")["a"].tolist() == list(range(9))
    weights.save({"a": np.arange(9)}, "2", parent="1")  # and inherited from
    assert weights.read_manifest(root / "2").digests == {}


def test_what_is_no_digest_is_refused(root: Path) -> None:
    weights.save({"a": np.arange(9)}, "1")
    path = root / "1" / "manifest.json"
    forged = msgspec.json.decode(path.read_bytes())
    forged["digests"] = dict.fromkeys(forged["files"], "../../etc/passwd")
    path.write_bytes(msgspec.json.encode(forged))
    with pytest.raises(CorruptWeights, match="not the digest"):
        weights.load("1")


def test_where_nobody_keeps_copies_no_file_is_hashed_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BEQUEATH_WEIGHTS_CACHE")
    weights.save({"a": np.arange(9)}, "1")
    assert weights.read_manifest(root / "1").digests == {}
